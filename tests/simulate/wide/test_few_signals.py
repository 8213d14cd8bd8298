"""Weights drawn where signals meet them: one matrix up and back, and the law of networks with all their weights."""

import math
from functools import cache

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate.monte_carlo import Block, Point, stream
from simulate.wide import few_signals, gram_variants, signals


def block_of(count: int) -> Block:
    return Block(tuple(stream(0, "few", Point(), i) for i in range(count)))


def passed(count: int, **changed) -> few_signals.Passed:
    given = {
        "widths": (7, 9, 8, 3),
        "samples": 2,
        "activation": "relu",
        "weight_variance": 1.7,
        "bias_variance": 0.4,
    }
    return few_signals.passed(block_of(count), **{**given, **changed})


@pytest.mark.parametrize("samples", [1, 2, 12])
def test_one_matrix_acts_on_the_way_up_and_on_the_way_back(samples: int) -> None:
    """Without biases a rectifier network is the sum of its derivatives by a layer times what the layer holds."""
    up, back = passed(3, samples=samples, bias_variance=0.0)
    outputs = up.preactivations[-1].mT

    for u, delta in zip(up.preactivations, back, strict=True):
        assert_allclose((delta * u[:, None]).sum(3), outputs, atol=1e-12)
    assert outputs.abs().max() > 0.1
    assert passed(1).parameters == 9 * 8 + 8 * 10 + 3 * 9


@pytest.mark.parametrize("samples", [1, 4])
def test_weights_that_all_samples_have_met_are_known_on_the_way_back(samples: int) -> None:
    """With as many samples as units below, derivatives follow from the signals: delta W, W from u = W h."""
    up, back = passed(2, widths=(5, samples, 6, 2), samples=samples, activation="tanh", bias_variance=0.0)
    h, u = up.activations[1], up.preactivations[1]
    weights = torch.linalg.solve(h, u).mT
    slope = 1 - up.preactivations[0].tanh() ** 2

    assert_allclose(back[0], (back[1] @ weights[:, None]) * slope[:, None], atol=1e-9)


@pytest.mark.parametrize("variance", [None, 0.3])
def test_the_gram_matrix_is_the_sum_over_layers_of_two_inner_products(variance: float | None) -> None:
    found = passed(2, activation="tanh")
    up, back = found
    law = {"weight_variance": 1.7, "bias_variance": variance}
    overlap = None if variance is None else gram_variants.tangent_overlap(**law)
    weights = [1.0 if variance is None else 1.7 / h.shape[2] for h in up.activations]
    layers = [
        torch.einsum("nksi,nmti->nkmst", delta, delta)
        * (w * torch.einsum("nsj,ntj->nst", h, h) + (1.0 if variance is None else variance))[:, None, None]
        for w, h, delta in zip(weights, up.activations, back, strict=True)
    ]

    assert_allclose(few_signals.passed_gram(found, overlap=overlap), sum(layers), rtol=1e-12)


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
    up, back = few_signals.passed(block_of(count), activation=activation, **sizes)
    network = signals.wide_network(Block(tuple(stream(1, "all", Point(), i) for i in range(count))), **sizes)
    known = signals.forward(network, activation)
    *_, first = signals.backward(network, activation, known.preactivations)
    return [
        (up.preactivations[-1], back[0], up.activations[0]),
        (known.preactivations[-1], first, known.activations[0]),
    ]


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_law_is_that_of_networks_with_all_their_weights(name: str, activation: str) -> None:
    few, every = (SCORES[name](*drawn) for drawn in many_networks(activation))

    assert abs(few.mean() - every.mean()) <= 5 * math.sqrt((few.var() + every.var()) / len(few))


DEPENDENT = {
    "derivatives of all samples are alike": ((7, 9, 8, 3), "linear", 4),
    "some units are off for some samples": ((9, 5, 5, 3), "relu", 6),
    "same inputs": ((2, 9, 8, 3), "tanh", 5),
}


@pytest.mark.parametrize("case", DEPENDENT)
def test_what_is_drawn_does_not_hang_on_the_last_digit(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decomposition of columns that depend on each other takes directions from rounding errors."""
    how = dict(zip(("widths", "activation", "samples"), DEPENDENT[case], strict=True))
    here = passed(3, **how)
    own, rng = torch.linalg.qr, torch.Generator().manual_seed(1)

    def otherwise(a: Tensor, **how: str) -> object:
        return own(a * (1 + 1e-15 * torch.randn(a.shape, generator=rng, dtype=a.dtype)), **how)

    monkeypatch.setattr(torch.linalg, "qr", otherwise)
    there = passed(3, **how)
    for one, other in zip(here.deltas, there.deltas, strict=True):
        assert_allclose(other, one, rtol=0, atol=1e-8 * float(one.abs().max()))
