"""Measurements of a watcher against dense Hessians and gradients of single samples."""

import itertools
from collections import deque
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

import losscurv
from simulate.objectives import Objective
from simulate.operators import hessian
from tests.verify.practice.watch.small_watchers import (
    LOSS,
    batches,
    free,
    images,
    net,
    require_eigenvalue,
    require_top,
    spectrum,
    top,
    train,
    trained,
    watched,
)
from verify.practice.watch import CurvatureRecord


def test_eigenvalues_are_those_of_the_dense_hessians_at_every_step() -> None:
    """Eigenvalues are of the fixed samples and of the batch, with the decay that is part of the gradient.

    A residual bounds the distance to an eigenvalue, which is a neighbour of the largest now and then, never above it.
    """
    model, data, decay = net(), batches(23), 0.2
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5, weight_decay=decay)
    watcher = losscurv.watch(optimizer, model, LOSS, every=1, samples=images(), clock=free)
    largest, apart = [], []

    def look(found: CurvatureRecord) -> None:
        fixed, batch = (spectrum(model, given, added=decay) for given in (images(), data[found.step - 1]))
        largest.append(require_eigenvalue(found.eigenvalue, found.error, fixed))
        largest.append(require_eigenvalue(found.batch_eigenvalue, found.batch_error, batch))
        apart.append(batch[-1] / fixed[-1] - 1)

    train(watcher, model, optimizer, data, look=look)

    assert [found.step for found in watcher.records] == list(range(1, 24))
    assert sum(largest) >= len(largest) - 1
    assert np.median(apart) > 0.05  # one would not pass for the other
    warm = [found.products for found in watcher.records if (found.step - 1) % 5]
    assert np.mean(warm) < watcher.records[0].products


def test_batch_statistics_are_those_of_training_and_dropout_is_on() -> None:
    model, data = net(mixing=True), batches(4)
    watcher = trained(model, data, rate=0.5)
    model[3].p = 0.0

    found, on = watched(model, samples=data[0]).step(*data[3]), watcher.records[-1]

    require_top(found.eigenvalue, found.error, top(model, data[0], training=True))
    require_top(found.batch_eigenvalue, found.batch_error, top(model, data[3], training=True))
    assert abs(found.eigenvalue / top(model, data[0]) - 1) > 0.05
    assert abs(on.batch_eigenvalue / found.batch_eigenvalue - 1) > 0.05


def test_mode_can_be_chosen() -> None:
    model, data = net(mixing=True), batches(1)[0]
    model[1].eval()
    found = watched(model, training=False).step(*data)
    require_top(found.eigenvalue, found.error, top(model, data))
    with pytest.raises(
        ValueError, match="all modules must be in one mode, got '1' in another mode than the model"
    ):
        watched(model).step(*data)


def test_frozen_parameters_are_left_out() -> None:
    model, data = net(), batches(1)[0]
    model[0].weight.requires_grad_(False)
    optimizer = torch.optim.SGD([model[0].weight, model[0].bias], lr=0.5)

    watcher = losscurv.watch(optimizer, model, LOSS, every=1, clock=free)
    for names in (["0.bias"], ["0.bias", "2"]):  # what begins to train is followed
        found = watcher.step(*data)
        matrix = hessian(Objective(model, [data], LOSS, parameters=names)).dense()
        require_top(found.eigenvalue, found.error, float(torch.linalg.eigvalsh(matrix)[-1]))
        assert not model[0].weight.requires_grad
        if len(names) == 1:
            optimizer.add_param_group({"params": list(model[2].parameters())})


def test_an_eigenvalue_that_overtakes_is_found_by_the_next_fresh_start() -> None:
    """Its vector is orthogonal to the old one: no start from that leads to it but by chance."""
    model = nn.utils.skip_init(nn.Linear, 400, 1, bias=False, dtype=torch.float64)
    nn.init.zeros_(model.weight)
    scales = torch.zeros(400, dtype=torch.float64)
    scales[0] = 4.0

    def loss(outputs: Tensor, _: Any) -> Tensor:
        return (scales * outputs[:, 0].square()).sum() / 2

    inputs = torch.eye(400, dtype=torch.float64)
    watcher = watched(model, loss, rate=0.0, samples=(inputs, inputs))
    for _ in range(3):
        require_top(watcher.step().eigenvalue, 0.05, 4.0)
    scales[1] = 4.4
    found = [watcher.step().eigenvalue for _ in range(5)]
    assert all(abs(each - 4.4) < 0.05 for each in found[2:])  # the first and the sixth start at random


def test_mean_over_batches_is_that_of_the_latest() -> None:
    model, data = net(), batches(7)
    watcher = trained(model, data, batches=3)

    latest = deque(maxlen=3)
    for found in watcher.records:
        latest.append(found.batch_eigenvalue)
        assert_allclose(found.mean_batch_eigenvalue, np.mean(latest), rtol=1e-12)
        assert found.batches == len(latest)
    assert_allclose(found.mean_batch_error, np.std(latest, ddof=1) / 3**0.5, rtol=1e-12)
    assert watcher.records[0].mean_batch_error is None


def flat_gradient(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    slopes = torch.autograd.grad(LOSS(model(inputs), targets), list(model.parameters()))
    return torch.cat([slope.reshape(-1) for slope in slopes])


def test_noise_of_a_batch_is_told_by_its_halves() -> None:
    model, (inputs, targets) = net(), batches(1, size=11)[0]
    found = watched(model).step(inputs, targets)

    one, other = flat_gradient(model, inputs[:6], targets[:6]), flat_gradient(model, inputs[6:], targets[6:])
    assert_allclose(found.gradient_square, one @ other, rtol=1e-9)
    assert_allclose(found.gradient_variance, (one - other).square().sum() / (1 / 6 + 1 / 5), rtol=1e-9)
    assert_allclose(found.noise_scale, found.gradient_variance / found.gradient_square, rtol=1e-12)


def test_noise_scale_is_that_of_the_gradients_of_single_samples() -> None:
    """Parameters that stand still, and every batch of four of two samples: means are those of the population."""
    model, (inputs, targets) = net(), images(2)
    every = [list(rows) for rows in itertools.product(range(2), repeat=4)]
    watcher = trained(model, [(inputs[rows], targets[rows]) for rows in every], rate=0.0, batches=len(every))

    each = torch.stack([flat_gradient(model, inputs[[i]], targets[[i]]) for i in range(2)])
    square, variance = float(each.mean(0).square().sum()), float(each.var(0, correction=0).sum())
    for name, exact in (("gradient_square", square), ("gradient_variance", variance)):
        assert_allclose(np.mean([getattr(found, name) for found in watcher.records]), exact, rtol=1e-9)
    assert_allclose(watcher.records[-1].noise_scale, variance / square, rtol=1e-9)


def test_without_batches_the_samples_are_measured_alone() -> None:
    model, data = net(), images(24)
    found = watched(model, samples=data).step()
    require_top(found.eigenvalue, found.error, top(model, data))
    assert_allclose(found.loss, LOSS(model(data[0]), data[1]).item(), rtol=1e-12)
    assert found.samples == 24 and found.batch_eigenvalue is None and found.noise_scale is None
    assert found.passes == found.products + 1


def test_the_first_batch_is_followed_if_nothing_else_is() -> None:
    model, data = net(), batches(3)
    held = [(inputs.clone(), targets.clone()) for inputs, targets in data]
    watcher = trained(model, data, rate=0.3)
    data[0][0].zero_()  # what a loader writes over
    require_top(watcher.records[-1].eigenvalue, watcher.records[-1].error, top(model, held[0]))


class Answer(nn.Module):
    """A model that returns more than a tensor, and takes inputs by name."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"logits": self.inner(x)}


def test_outputs_can_be_picked_from_what_a_model_returns() -> None:
    model, (inputs, targets) = Answer(), batches(1)[0]
    found = watched(model, outputs=lambda answer: answer["logits"]).step({"x": inputs}, targets)
    require_top(found.eigenvalue, found.error, top(model.inner, (inputs, targets)))


def test_arrays_of_numpy_and_single_precision() -> None:
    model, (inputs, targets) = net().float(), batches(1)[0]
    found = watched(model).step(inputs.numpy(), targets.numpy().astype(np.int32))
    exact = top(model.double(), (inputs, targets))
    assert abs(found.eigenvalue - exact) <= found.error + 1e-5 * exact


class Alike(nn.Module):
    """Model of the similarity of samples in a batch, with as many outputs for each sample as there are samples."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) @ self.inner(x.flip(1)).mT


def test_a_loss_between_samples_has_a_curvature_and_no_noise_of_its_halves() -> None:
    """Its targets are the samples themselves: half of a batch has outputs for the first half alone."""
    model, (inputs, _) = Alike(), batches(1)[0]
    targets = torch.arange(len(inputs))
    found, exact = watched(model).step(inputs, targets), top(model, (inputs, targets))
    require_top(found.eigenvalue, found.error, exact)
    whole = losscurv.measure(model, (inputs, targets), top=1)
    assert abs(whole.hessian.top[0].value - exact) < 1e-6 and whole.noise is None and whole.coupling
    assert found.gradient_variance is None and found.noise_scale is None
