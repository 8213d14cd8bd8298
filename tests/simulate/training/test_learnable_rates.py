"""Gradient descent of stacked classifiers: steps against automatic differentiation, and where learning ends."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate import networks
from simulate.training import learnable_rates
from simulate.training.learnable_rates import Classifiers


def stack(widths: tuple[int, ...] = (4, 9, 8, 3), count: int = 3, samples: int = 6) -> Classifiers:
    rng = np.random.default_rng(0)
    weights = [networks.mlp_weights(rng, widths) for _ in range(count)]
    return Classifiers(
        tuple(torch.stack(layer) for layer in zip(*weights, strict=True)),
        torch.from_numpy(rng.standard_normal((count, samples, widths[0]))),
        torch.from_numpy(rng.integers(0, widths[-1], (count, samples))),
    )


def loss_by_hand(weights: list[Tensor], x: Tensor, labels: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(networks.mlp_logits(weights, x), labels)


def trained_by_hand(networks_: Classifiers, i: int, rate: float, steps: int) -> list[float]:
    """Losses before each step and after the last, by automatic differentiation."""
    weights, losses = [w[i].clone().requires_grad_() for w in networks_.weights], []
    for _ in range(steps + 1):
        loss = loss_by_hand(weights, networks_.inputs[i], networks_.labels[i])
        losses.append(float(loss.detach()))
        slopes = torch.autograd.grad(loss, weights)
        weights = [(w - rate * g).detach().requires_grad_() for w, g in zip(weights, slopes, strict=True)]
    return losses


@pytest.mark.parametrize("widths", [(4, 3), (4, 9, 3), (5, 6, 7, 8, 2)])
def test_gradients_are_those_of_automatic_differentiation(widths: tuple[int, ...]) -> None:
    found = stack(widths)
    losses, gradients, dead = learnable_rates.losses_and_gradients(found)

    for i in range(3):
        weights = [w[i].clone().requires_grad_() for w in found.weights]
        loss = loss_by_hand(weights, found.inputs[i], found.labels[i])
        assert_allclose(losses[i], loss.detach(), rtol=1e-13)
        for gradient, expected in zip(gradients, torch.autograd.grad(loss, weights), strict=True):
            assert_allclose(gradient[i], expected, rtol=1e-11, atol=1e-14)
    assert not dead.any()


@pytest.mark.parametrize("steps", [1, 7])
def test_a_run_learns_as_soon_as_its_loss_is_below_the_target(steps: int) -> None:
    """The loss after the last step counts, none after it; every network at its own rate."""
    found, rates = stack(), torch.tensor([0.05, 0.2, 0.4]).double()
    paths = [trained_by_hand(found, i, float(rates[i]), steps) for i in range(3)]
    for target in {round(min(path) + shift, 6) for path in paths for shift in (-1e-4, 1e-4)}:
        expected = [min(path) < target for path in paths]
        assert learnable_rates.learns(found, rates, target=target, steps=steps).tolist() == expected


def test_networks_that_explode_or_die_do_not_learn() -> None:
    found = stack()
    rates = torch.tensor([1e200, 1e4, 0.3], dtype=torch.float64)

    assert learnable_rates.learns(found, rates, target=0.9, steps=60).tolist() == [False, False, True]
    dead = found._replace(
        weights=(-found.inputs[:, :1].sum(1, keepdim=True).repeat(1, 9, 1) * 0, *found.weights[1:])
    )
    assert learnable_rates.losses_and_gradients(dead)[2].all()
    one_layer = Classifiers((torch.zeros(3, 3, 4).double(),), found.inputs, found.labels)
    assert not learnable_rates.losses_and_gradients(one_layer)[2].any()


def test_the_ladder_ends_where_learning_does() -> None:
    """As many rungs as learn, and half a rung down from the one after them; each network from its own first rung."""
    found, lowest = stack().scaled(1.0), torch.tensor([0.02, 0.03, 0.05]).double()
    assert_allclose(stack().scaled(0.3).weights[1], 0.3 * stack().weights[1], rtol=1e-15)
    rates = learnable_rates.largest_rates(found, lowest=lowest, factor=3.0, count=9, target=0.6, steps=80)
    rungs = sum(
        learnable_rates.learns(found, lowest * 3.0**j, target=0.6, steps=80).double() for j in range(9)
    )

    assert 0 < rungs.sum() < 27
    assert_allclose(rates, lowest * 3.0 ** (rungs - 0.5), rtol=1e-12)


RATES = torch.full((3,), 0.1).double()


def test_labels_of_other_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="weights, inputs and labels must fit"):
        learnable_rates.learns(stack()._replace(labels=torch.zeros(3, 5).long()), RATES, target=0.5, steps=3)
