"""Models whose samples meet in some batches only, or are reordered inside: every route is right, or refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from simulate.factors import kfac
from simulate.modules.diagonals import gauss_newton_diagonal, hessian_diagonal
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import quadratic_forms, variance_along
from simulate.modules.projected import projected
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.modules.sites import by_sample
from simulate.objectives import Objective
from simulate.operators import gauss_newton
from tests.simulate.small_perceptrons import assert_same

LOSS, OUTPUTS = nn.CrossEntropyLoss(), 3
MIXED = "the model gives a sample other outputs beside other samples"


class Layers(nn.Module):
    """Two layers, and what happens between them."""

    def __init__(self, between: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.below, self.above, self.between = (
            nn.Linear(4, 3).double(),
            nn.Linear(3, OUTPUTS).double(),
            between,
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.above(self.between(self.below(x).relu()))


class Experts(nn.Module):
    """Each takes half of the samples at most, and four of the smallest batches: what is left over is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 2).double()
        self.experts = nn.ModuleList(nn.Linear(4, OUTPUTS).double() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        shares = self.gate(x).softmax(1)
        found = x.new_zeros(len(x), OUTPUTS)
        for i, expert in enumerate(self.experts):
            taken = (shares.argmax(1) == i).nonzero()[: max(4, math.ceil(len(x) / 2)), 0]
            found = found.index_add(0, taken, expert(x[taken]).tanh() * shares[taken, i : i + 1])
        return found


class Reordered(nn.Module):
    """Layers on the samples in another order, and their outputs put back."""

    def __init__(self, order: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layers, self.order = Layers(lambda h: h.tanh()), order

    def forward(self, x: Tensor) -> Tensor:
        order = self.order(x)
        return self.layers(x[order])[order.argsort()]


def swapped_ends(x: Tensor) -> Tensor:
    order = torch.arange(len(x))
    order[0], order[-1] = len(x) - 1, 0
    return order


MIXING: dict[str, Callable[[], nn.Module]] = {
    "mean subtracted from four samples on": lambda: Layers(lambda h: h - h.mean(0) if len(h) > 3 else h),
    "mean subtracted from nine samples on": lambda: Layers(lambda h: h - h.mean(0) if len(h) > 8 else h),
    "mixed with the batch reversed": lambda: Layers(lambda h: 0.7 * h + 0.3 * h.flip(0)),
    "mixed at the ends": lambda: Layers(lambda h: h + h[swapped_ends(h)]),
    "experts with a capacity": Experts,
}
REORDERING: dict[str, Callable[[], nn.Module]] = {
    "sorted": lambda: Reordered(lambda x: x[:, 0].argsort()),
    "ends swapped": lambda: Reordered(swapped_ends),
    "reversed": lambda: Reordered(lambda x: torch.arange(len(x)).flip(0)),
}
MODELS = {**MIXING, **REORDERING}


def inputs(samples: int) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(samples, 4, generator=generator, dtype=torch.float64) + 0.5


def built(name: str, samples: int = 17) -> tuple[Objective, nn.Module, Tensor]:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        model = MODELS[name]()
    x = inputs(samples)
    return Objective(model, (x, torch.arange(samples) % OUTPUTS), LOSS), model, x


def rows(ends: Tensor, model: nn.Module) -> Tensor:
    """Derivatives by all parameters."""
    leaves = list(model.parameters())
    found = [torch.autograd.grad(e, leaves, retain_graph=True, materialize_grads=True) for e in ends]
    return torch.stack([torch.cat([g.flatten() for g in row]) for row in found])


def jacobian(model: nn.Module, x: Tensor) -> Tensor:
    return rows(model(x).flatten(), model)


def curvature(model: nn.Module, x: Tensor) -> Tensor:
    """G of the cross-entropy from the Jacobian of the outputs."""
    steep, p = jacobian(model, x).unflatten(0, (len(x), -1)), model(x).softmax(1).detach()
    inner = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    return torch.einsum("nip,nij,njq->pq", steep, inner, steep) / len(x)


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def assert_curvature(objective: Objective, model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> None:
    """Trace, diagonals, and what is projected, of the batches that are there."""
    shares = [len(y) / sum(len(y) for _, y in batches) for _, y in batches]
    expected: Any = sum(s * curvature(model, x) for s, (x, _) in zip(shares, batches, strict=True))
    loss: Any = sum(s * LOSS(model(x), y) for s, (x, y) in zip(shares, batches, strict=True))
    slope = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    whole = rows(torch.cat([g.flatten() for g in slope]), model)
    assert_same(gauss_newton(objective).dense(), expected)
    assert_same(number(trace_gauss_newton(objective)), expected.trace())
    assert_same(gauss_newton_diagonal(objective), expected.diagonal())
    assert_same(hessian_diagonal(objective), whole.diagonal())
    frame = torch.eye(objective.dim, 6).double().roll(2, 0)
    found = projected(objective, frame)
    assert_same(found.g_term, frame.mT @ expected @ frame)
    assert_same(found.hessian, frame.mT @ whole @ frame)


def labels(x: Tensor) -> Tensor:
    return torch.arange(len(x)) % OUTPUTS


@pytest.mark.parametrize("name", MODELS)
def test_curvature_and_kernel_are_those_of_the_batch(name: str) -> None:
    objective, model, x = built(name)
    assert_curvature(objective, model, [(x, labels(x))])
    steep = jacobian(model, x)
    assert_same(empirical_kernel(model, x).flatten(2).flatten(0, 1), steep @ steep.mT)


@pytest.mark.parametrize("name", MIXING)
def test_samples_that_meet_have_no_matrices_of_their_own(name: str) -> None:
    objective, _, _ = built(name)
    assert objective.coupling == objective.mixing == MIXED
    vector = torch.ones(objective.dim, 1).double()
    for ask in (lambda: quadratic_forms(objective, vector), lambda: variance_along(objective, vector[:, 0])):
        with pytest.raises(ValueError, match="got samples that see each other"):
            ask()
    with pytest.raises(ValueError, match="on every sample apart"):
        kfac(objective)


def ends_swapped_from(size: int, to: float = math.inf) -> nn.Module:
    return Reordered(lambda x: swapped_ends(x) if size <= len(x) <= to else torch.arange(len(x)))


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        (REORDERING["sorted"](), [17]),
        (REORDERING["reversed"](), [17]),
        (ends_swapped_from(1), [17]),
        (ends_swapped_from(33), [50]),  # at a size beyond those of a few samples
        (ends_swapped_from(40), [12, 40]),  # in the second batch, which is larger
        (ends_swapped_from(1, 9), [20, 9]),  # in the last one, which is smaller
    ],
)
def test_samples_that_are_reordered_have_their_own_derivatives(model: nn.Module, sizes: list[int]) -> None:
    batches = [(part, labels(part)) for part in inputs(sum(sizes)).split(sizes)]
    objective = Objective(model, batches, LOSS)
    assert objective.separable and objective.apart
    assert_curvature(objective, model, batches)
    with pytest.raises(ValueError, match="on every sample apart"):
        kfac(objective)
    if len(sizes) == 1:
        steep = jacobian(model, batches[0][0])
        assert_same(empirical_kernel(model, batches[0][0]).flatten(2).flatten(0, 1), steep @ steep.mT)
    vector = torch.linspace(-1, 1, objective.dim).double()[:, None]
    alone = [Objective(model, (x[[i]], y[[i]]), LOSS) for x, y in batches for i in range(len(y))]
    expected = np.concatenate([quadratic_forms(one, vector) for one in alone])
    assert_same(torch.from_numpy(quadratic_forms(objective, vector)), torch.from_numpy(expected))
    assert sizes != [17] or not by_sample(objective)


def test_samples_that_meet_in_batches_of_the_size_that_is_used_are_found() -> None:
    """Of a batch of 120 the passes hold 30 samples, which do not meet, or 60, which do."""
    model = Layers(lambda h: h - h.mean(0) if len(h) > 40 else h)
    x = inputs(120)
    y = labels(x)
    assert Objective(model, (x, y), LOSS, chunk=30).coupling == ""
    coupled = Objective(model, (x, y), LOSS, chunk=60)
    assert coupled.coupling == MIXED and coupled.chunk is None


@pytest.mark.parametrize("sizes", [[12, 40], [20, 9]])
def test_samples_that_meet_in_batches_of_one_size_are_found(sizes: list[int]) -> None:
    """In the second batch, which is larger, or in the last one, which is smaller."""
    model = Layers(lambda h: h - h.mean(0) if len(h) in (40, 9) else h)
    objective = Objective(model, [(part, labels(part)) for part in inputs(sum(sizes)).split(sizes)], LOSS)
    assert objective.mixing == MIXED and not objective.apart
    with pytest.raises(ValueError, match="pass all samples as one batch"):
        objective.gradient()


class Routed(nn.Module):
    """Each of two experts takes samples of one sign."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, OUTPUTS).double() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        found = x.new_zeros(len(x), OUTPUTS)
        for i, expert in enumerate(self.experts):
            taken = ((x[:, 0] > 0) == bool(i)).nonzero()[:, 0]
            found = found.index_add(0, taken, expert(x[taken])) if len(taken) else found
        return found


def test_a_batch_that_a_layer_takes_in_part_is_not_taken_for_a_whole_one() -> None:
    """All samples of the first batch go to one expert, not those of the second."""
    model, x = Routed(), inputs(12)
    x[:6, 0] = x[:6, 0].abs()
    x[6:, 0] = -x[6:, 0].abs() * torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    batches = list(zip(x.split(6), labels(x).split(6), strict=True))
    objective = Objective(model, batches, LOSS)
    assert not by_sample(objective)
    objective.answers["by_sample"] = True  # as if the samples that are asked had not shown it
    assert_curvature(objective, model, batches)
    with pytest.raises(ValueError, match="part in the outputs"):
        kfac(objective)
