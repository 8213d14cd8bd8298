"""Weights drawn where signals meet them: one matrix up and back, and the law of networks with all their weights."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate.monte_carlo import Block, Point, stream
from simulate.wide import few_signals, signals


def block_of(count: int) -> Block:
    return Block(tuple(stream(0, "few", Point(), i) for i in range(count)))


def network_of(count: int, **changed) -> few_signals.LazyNetwork:
    given = {"widths": (7, 9, 8, 3), "samples": 2, "weight_variance": 1.7, "bias_variance": 0.4}
    return few_signals.LazyNetwork(block_of(count), **{**given, **changed})


def passed(network: signals.Network, activation: str = "relu") -> tuple[signals.Signals, list[Tensor]]:
    """Signals, and derivatives by u^1..u^L."""
    up = signals.forward(network, activation)
    return up, list(signals.backward(network, activation, up.preactivations))[::-1]


@pytest.mark.parametrize("samples", [1, 2, 12])
def test_one_matrix_acts_on_the_way_up_and_on_the_way_back(samples: int) -> None:
    """Without biases a rectifier network is the sum of its derivatives by a layer times what the layer holds."""
    up, back = passed(network_of(3, samples=samples, bias_variance=0.0))
    outputs = up.preactivations[-1].mT

    for u, delta in zip(up.preactivations, back, strict=True):
        assert_allclose((delta * u[:, None]).sum(3), outputs, atol=1e-12)
    assert outputs.abs().max() > 0.1
    assert network_of(1).parameters == 9 * 8 + 8 * 10 + 3 * 9


@pytest.mark.parametrize("samples", [1, 4])
def test_weights_that_all_samples_have_met_are_known_on_the_way_back(samples: int) -> None:
    """With as many samples as units below, derivatives follow from the signals: delta W, W from u = W h."""
    network = network_of(2, widths=(5, samples, 6, 2), samples=samples, bias_variance=0.0)
    up, back = passed(network, "tanh")
    h, u = up.activations[1], up.preactivations[1]
    weights = torch.linalg.solve(h, u).mT
    slope = 1 - up.preactivations[0].tanh() ** 2

    assert_allclose(back[0], (back[1] @ weights[:, None]) * slope[:, None], atol=1e-9)


def test_signals_that_are_sent_again_are_known() -> None:
    network = network_of(2)
    first, again = (signals.forward(network, "tanh").preactivations[-1] for _ in range(2))

    assert_allclose(again, first, rtol=1e-12)


SCORES = {
    "squared outputs": lambda u, delta, h: u.square().mean((1, 2)),
    "squared derivatives": lambda u, delta, h: delta.square().sum(3).mean((1, 2)),
    "derivatives of two samples": lambda u, delta, h: (delta[:, :, 0] * delta[:, :, 1]).sum(2).mean(1),
    "entry of the Gram matrix": lambda u, delta, h: (
        (delta[:, 0, 0] * delta[:, 0, 1]).sum(1) * (h[:, 0] * h[:, 1]).sum(1)
    ),
    "outputs and derivatives": lambda u, delta, h: (
        u[:, 0].square().sum(1) * delta[:, :, 0].square().sum((1, 2))
    ),
}


@cache
def many_networks(activation: str) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Outputs, derivatives and activations of the first layer: by few signals, and of networks with all weights."""
    count, sizes = 2000, {"widths": (4, 5, 6, 2), "samples": 2, "weight_variance": 1.7, "bias_variance": 0.4}
    every = Block(tuple(stream(1, "all", Point(), i) for i in range(count)))
    networks = network_of(count, **sizes), signals.wide_network(every, **sizes)
    both = [passed(network, activation) for network in networks]
    return [(up.preactivations[-1], back[0], up.activations[0]) for up, back in both]


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_law_is_that_of_networks_with_all_their_weights(name: str, activation: str) -> None:
    few, every = (SCORES[name](*drawn) for drawn in many_networks(activation))

    assert abs(few.mean() - every.mean()) <= 5 * math.sqrt((few.var() + every.var()) / len(few))


DEPENDENT = {
    "derivatives of all samples are alike": ((7, 19, 18, 3), "linear", 4),
    "some units are off for some samples": ((9, 19, 18, 3), "relu", 6),
    "same inputs": ((2, 29, 28, 3), "linear", 5),
}


@pytest.mark.parametrize("case", DEPENDENT)
def test_what_is_drawn_does_not_hang_on_the_last_digit(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decomposition of columns that depend on each other takes directions from rounding errors."""
    widths, activation, samples = DEPENDENT[case]
    _, here = passed(network_of(3, widths=widths, samples=samples), activation)
    rng = torch.Generator().manual_seed(1)

    def otherwise(own: Callable[[Tensor], Any], a: Tensor) -> Any:
        return own(a * (1 + 1e-15 * torch.randn(a.shape, generator=rng, dtype=a.dtype)))

    for name in ("qr", "cholesky_ex"):
        monkeypatch.setattr(torch.linalg, name, partial(otherwise, getattr(torch.linalg, name)))
    _, there = passed(network_of(3, widths=widths, samples=samples), activation)
    for one, other in zip(here, there, strict=True):
        assert_allclose(other, one, rtol=0, atol=1e-8 * float(one.abs().max()))
