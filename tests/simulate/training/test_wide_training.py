"""Full-batch gradient descent of stacked wide networks: its steps, its explosions and where they begin."""

import dataclasses
from collections.abc import Callable

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate import _memory
from simulate.activations import ACTIVATIONS
from simulate.monte_carlo import Block, Point, stream
from simulate.training import wide_training
from simulate.wide import fisher_gram, signals
from simulate.wide.signals import WideNetwork
from tests.refusals import refusal


def peak_bytes(function: Callable[[], object]) -> int:
    """Most bytes that torch holds during a call, in addition to what it held before."""
    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu], profile_memory=True) as profile:
        function()
    used = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            used += event.nbytes()
            peak = max(peak, used)
    return peak


SHAPES = [((3, 1), 1), ((1, 1, 1), 2), ((4, 6, 5, 3), 4), ((3, 2, 7, 4, 2), 5)]


def networks(widths=(4, 6, 5, 2), samples: int = 4, count: int = 2) -> tuple[WideNetwork, Tensor]:
    block = Block(tuple(stream(0, "training", Point(), i) for i in range(count)))
    network = signals.wide_network(
        block, widths=widths, samples=samples, weight_variance=1.9, bias_variance=0.3
    )
    return network, block.normal(samples, widths[-1])


def one_of(network: WideNetwork, n: int) -> WideNetwork:
    weights, biases = (tuple(t[n : n + 1] for t in part) for part in (network.weights, network.biases))
    return WideNetwork(weights=weights, biases=biases, inputs=network.inputs[n : n + 1])


def trained_by_hand(network: WideNetwork, activation: str, y: Tensor, rate: float, steps: int, less: bool):
    """Losses of one network by jacobians of its outputs: the gradient is -J'(y - f) / T."""
    parameters, depth = [*network.weights, *network.biases], network.depth

    def outputs(*theta: Tensor) -> Tensor:
        one = WideNetwork(weights=theta[:depth], biases=theta[depth:], inputs=network.inputs)
        f = signals.forward(one, activation).preactivations[-1][0]
        return f - f.mean(0) if less else f

    losses = []
    for _ in range(steps + 1):
        residual = y - outputs(*parameters)
        losses.append(float(residual.square().sum()) / (2 * len(y)))
        jacobians = torch.func.jacrev(outputs, argnums=tuple(range(len(parameters))))(*parameters)
        parameters = [
            p + rate * torch.tensordot(residual, j, 2) / len(y)
            for p, j in zip(parameters, jacobians, strict=True)
        ]
    return losses


each_subtracted = pytest.mark.parametrize("subtracted", [False, True])
each_widths_and_samples = pytest.mark.parametrize(("widths", "samples"), SHAPES)


@each_subtracted
@pytest.mark.parametrize("activation", ACTIVATIONS)
@each_widths_and_samples
def test_steps_are_those_of_jacobians(
    widths: tuple[int, ...], samples: int, activation: str, subtracted: bool
) -> None:
    network, targets = networks(widths, samples)
    rates = torch.tensor([[0.02, 0.11], [0.3, 0.07]]).double()
    run = wide_training.descend(network, activation, targets, rates=rates, steps=2, subtracted=subtracted)

    for n, r in ((0, 1), (1, 0)):
        one, rate = one_of(network, n), float(rates[n, r])
        expected = trained_by_hand(one, activation, targets[n], rate, 2, subtracted)
        assert_allclose(run.losses[n, r], expected, rtol=1e-13, atol=1e-15)


@each_subtracted
@each_widths_and_samples
def test_sharpness_is_the_top_of_the_fisher_spectrum(
    widths: tuple[int, ...], samples: int, subtracted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sharpness of many replicates equals the sharpness of each by itself."""
    network, _ = networks(widths, samples)
    gram = fisher_gram.gram(network, "tanh")
    expected = fisher_gram.fisher_eigenvalues(fisher_gram.centred(gram) if subtracted else gram)[:, -1]
    for entries in (wide_training._ENTRIES, 1):
        monkeypatch.setattr(wide_training, "_ENTRIES", entries)
        found = wide_training.sharpness(network, "tanh", subtracted=subtracted)
        assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("bad", [1e6, 1e300])
def test_an_explosion_is_infinite_and_leaves_the_others_alone(bad: float) -> None:
    network, targets = networks()
    rates = torch.tensor([[0.01, bad], [bad, 0.02]], dtype=torch.float64)
    both = wide_training.descend(network, "linear", targets, rates=rates, steps=9)
    assert both.exploded.tolist() == [[False, True], [True, False]]
    assert both.peak.isinf().tolist() == both.exploded.tolist()
    assert not both.losses.isnan().any()
    assert torch.equal(both.peak[0, 0], both.losses[0, 0].max()) and torch.equal(
        both.final, both.losses[..., 9]
    )
    first = both.losses.isinf().int().argmax(-1)
    assert both.losses[0, 1, first[0, 1] :].isinf().all()
    alone = wide_training.descend(network, "linear", targets, rates=rates.diagonal()[:, None], steps=9)
    assert_allclose(both.losses.diagonal().T, alone.losses[:, 0], rtol=1e-13)


def test_a_gram_beyond_all_numbers_is_infinitely_sharp() -> None:
    network, _ = networks()
    huge = dataclasses.replace(network, inputs=network.inputs * torch.tensor([1e200, 1.0])[:, None, None])
    found = wide_training.sharpness(huge, "linear")
    assert found[0].isinf() and found[1].isfinite()


def test_explosions_begin_where_a_quadratic_loss_overflows() -> None:
    """Without hidden layers a step multiplies by 1 - rate lambda: in 150 steps by 1e154, whose square overflows."""
    network, targets = networks((5, 1), 4)
    limits = 2 / wide_training.sharpness(network, "linear")
    found = wide_training.critical_rates(
        network, "linear", targets, lower=limits, upper=limits * 40, steps=150, halvings=7
    )
    expected = limits * (1 + 10 ** (154 / 150)) / 2
    assert_allclose(found.upper / found.lower, 40 ** (1 / 2**7), rtol=1e-12)
    assert ((0.97 * expected < found.lower) & (found.upper < 1.03 * expected)).all()


def test_a_search_that_misses_the_limit_says_so() -> None:
    network, targets = networks((5, 1), 4)
    limits = 2 / wide_training.sharpness(network, "linear")
    how = {"steps": 60, "halvings": 1}
    calm, wild = (
        wide_training.critical_rates(
            network, "linear", targets, lower=limits * low, upper=limits * high, **how
        )
        for low, high in ((1 / 9, 1), (1e3, 1e4))
    )
    assert calm.upper.isinf().all() and (calm.lower > limits / 9).all()
    assert (wild.lower == 0).all() and (wild.upper < limits * 1e4).all()


def test_runs_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    network, targets = networks((200, 200, 1), 300)
    monkeypatch.setattr(_memory, "available", lambda _: 1e6)
    with refusal("rates must be small enough for memory: 400 runs of 300 samples need"):
        wide_training.descend(network, "relu", targets, rates=torch.ones(2, 200), steps=1)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize(
    ("widths", "samples"),
    [((30, 40, 5), 60), ((90, 90, 90, 1), 9), ((20, 20, 20, 1), 200), ((300, 9, 1), 40)],
)
def test_the_estimate_covers_the_peak_of_training(
    widths: tuple[int, ...], samples: int, activation: str
) -> None:
    """Peak memory of torch stays below the estimate, and is at least a fourth of it."""
    network, targets = networks(widths, samples)
    rates = torch.full((2, 3), 1e-3, dtype=torch.float64)
    peak = peak_bytes(
        lambda: wide_training.descend(network, activation, targets, rates=rates, steps=2, subtracted=True)
    )
    assert 1 / 4 < peak / (rates.numel() * wide_training._numbers(network) * 8) < 1
