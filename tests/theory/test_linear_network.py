"""Edge of the linear network: the stored numbers, sampled matrices, symmetries and limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory.fisher import mean_subtracted_statistics
from theory.linear_network import (
    _argument,
    _edge,
    _spread,
    linear_network_edge,
    linear_network_largest,
)
from theory.rmt.tracy_widom import TracyWidom


@pytest.mark.parametrize(("ratio", "edge"), [(0.5, 7.789281), (1.0, 9.945659), (2.0, 13.674391)])
def test_edge_at_equal_widths(ratio: float, edge: float) -> None:
    assert linear_network_edge(ratio, weight_variance=1.0) == pytest.approx(edge, abs=6e-7)


@pytest.mark.parametrize(("first", "second", "ratio"), [(1, 1, 1.0), (0.5, 1.5, 2.0), (2, 0.5, 0.5)])
def test_edge_of_a_sampled_network(first: float, second: float, ratio: float) -> None:
    """X'(|v|^2 + W'W)X/T, centred, at M = 400: the deviation M^(-2/3) from the edge is 3 to 8 %."""
    rng, m = np.random.default_rng(3), 400
    inputs, hidden, samples = int(first * m), int(second * m), int(m / ratio)
    x = rng.standard_normal((inputs, samples))
    w = rng.standard_normal((hidden, inputs)) * math.sqrt(1.7 / inputs)
    x -= x.mean(1, keepdims=True)
    factor = np.linalg.cholesky(1.7 * np.eye(inputs) + w.T @ w).T @ x
    top = np.linalg.svd(factor, compute_uv=False)[0] ** 2 / samples
    edge = linear_network_edge(ratio, weight_variance=1.7, width_ratios=[first, second])
    assert 0.91 < top / edge < 1.0


@pytest.mark.parametrize(("first", "second", "samples"), [(120, 120, 90), (60, 150, 130), (160, 50, 40)])
def test_mean_of_the_largest_of_sampled_networks(first: int, second: int, samples: int) -> None:
    """Forty draws scatter by 1 % in the mean; the Tracy-Widom mean is 4 to 6 %."""
    rng = np.random.default_rng(4)
    tops = []
    for _ in range(40):
        w = rng.standard_normal((second, first)) / math.sqrt(first)
        x = rng.standard_normal((first, samples))
        factor = np.linalg.cholesky(np.eye(first) + w.T @ w).T @ (x - x.mean(1, keepdims=True))
        tops.append(np.linalg.norm(factor, 2) ** 2 / samples)
    found = linear_network_largest(
        width=10, samples=samples, weight_variance=1.0, width_ratios=[first / 10, second / 10]
    )
    assert found == pytest.approx(np.mean(tops), rel=0.02)


@pytest.mark.parametrize(("gamma", "share"), [(1.5, 1.0), (0.7, 0.3), (2.0, 4.0), (30.0, 0.01), (0.01, 50.0)])
def test_spread_about_the_edge_by_quadrature(gamma: float, share: float) -> None:
    w = _argument(gamma, share)
    a, angles = 1 + 1 / w + share / (1 - w), (np.arange(20000) + 0.5) * np.pi / 20000
    y = 1 + share + 2 * math.sqrt(share) * np.cos(angles)
    masses = 2 * share * np.sin(angles) ** 2 / y / 20000
    t, mass = np.append(1 + y, 1.0), np.append(masses, 1 - masses.sum())
    first, second, third = (float(mass @ (t / (a - t)) ** k) for k in (1, 2, 3))
    assert_allclose(gamma * second, 1, rtol=1e-11)
    assert_allclose(_edge(gamma, share, w), a * (1 + gamma * first), rtol=1e-11)
    assert_allclose(_spread(gamma, share, w), a * math.cbrt(1 + gamma * third), rtol=1e-11)


@pytest.mark.parametrize("ratios", [(1.0, 1.0), (0.3, 2.0), (4.0, 0.1)])
def test_few_and_many_samples(ratios: tuple[float, float]) -> None:
    """Many samples show the population, 1 + the edge of its Marchenko-Pastur law; of few the trace is left."""
    first, second = ratios
    many = linear_network_edge(1e-12, weight_variance=1.0, width_ratios=ratios)
    few = linear_network_edge(1e12, weight_variance=1.0, width_ratios=ratios)
    assert_allclose(many, 1 + (1 + math.sqrt(second / first)) ** 2, rtol=1e-5)
    assert_allclose(few / (1e12 * first), 1 + second / first, rtol=1e-5)


@pytest.mark.parametrize("samples", [10**9, 10**13, 10**17, 2**63 - 1])
def test_many_samples_leave_the_largest_of_the_population(samples: int) -> None:
    """The edge of the population, and of its hidden units the Tracy-Widom mean at the scale of Johnstone (2001)."""
    width, mu = 10**4, TracyWidom(beta=1).mean()
    expected = 5 + mu * 2 ** (4 / 3) * width ** (-2 / 3)
    found = linear_network_largest(width=width, samples=samples, weight_variance=1.0)
    assert found == pytest.approx(expected, rel=3 * width / samples + 1e-13)


def test_edge_is_a_minimum() -> None:
    ratio, share = 0.7, 1.9
    w = np.linspace(0.01, 1 / (1 + math.sqrt(share)), 20001)
    a = 1 + 1 / w + share / (1 - w)
    edge = linear_network_edge(ratio, weight_variance=1.0, width_ratios=[1.0, share])
    assert_allclose(edge, (a * (1 - ratio + ratio * a * w)).min(), rtol=1e-8)


def test_scale_and_common_factor_of_the_widths() -> None:
    base = linear_network_edge(0.8, weight_variance=1.0, width_ratios=[1.2, 0.7])
    assert_allclose(linear_network_edge(0.8, weight_variance=2.5, width_ratios=[1.2, 0.7]), 2.5 * base)
    assert_allclose(linear_network_edge(0.4, weight_variance=1.0, width_ratios=[2.4, 1.4]), base, rtol=1e-13)
    assert linear_network_edge(0.8, weight_variance=0) == 0.0


@pytest.mark.parametrize("ratio", [0.2, 1.0, 5.0])
def test_edge_lies_between_the_bounds_of_theorem_3_3(ratio: float) -> None:
    size: dict[str, Any] = {"width": 10**6, "samples": round(10**6 / ratio), "outputs": 1}
    bounds = mean_subtracted_statistics("linear", depth=2, weight_variance=1.4, bias_variance=0.3, **size)
    assert bounds.lower < linear_network_edge(ratio, weight_variance=1.4) < bounds.upper


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ratio": 0.0}, r"ratio must be positive and finite, got 0\.0"),
        ({"ratio": [1.0, 2.0]}, "ratio must be a scalar"),
        ({"ratio": math.nan}, "ratio must be positive and finite"),
        ({"ratio": 1e-200}, "ratio must be such that no shape is extreme, got 1e-200"),
        ({"weight_variance": -1.0}, "weight_variance must be non-negative and finite"),
        (
            {"weight_variance": 1.7e308},
            "ratio, weight_variance must be such that the result does not overflow",
        ),
        ({"width_ratios": [1.0]}, "width_ratios must be a sequence of 2 numbers"),
        ({"width_ratios": [1.0, 0.0]}, "width_ratios must be positive and finite"),
        ({"width_ratios": [1e-80, 1e80]}, "width_ratios must be such that no shape is extreme"),
    ],
)
def test_bad_arguments_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        linear_network_edge(**{"ratio": 1.0, "weight_variance": 1.0, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "width must be an integer >= 1"),
        ({"samples": 1}, "samples must be an integer >= 2"),
        ({"weight_variance": math.nan}, "weight_variance must be non-negative and finite"),
        ({"weight_variance": 1.7e308}, "weight_variance must be such that the result does not overflow"),
        ({"width_ratios": [1e-80, 1e80]}, "width_ratios must be such that no shape is extreme"),
    ],
)
def test_bad_sizes_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        linear_network_largest(**{"width": 10, "samples": 5, "weight_variance": 1.0, **changes})
