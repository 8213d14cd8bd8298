"""Edge of the linear network: the stored numbers, sampled matrices, symmetries and limits."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

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


def test_scale_and_common_factor_of_the_widths() -> None:
    base = linear_network_edge(0.8, weight_variance=1.0, width_ratios=[1.2, 0.7])
    assert_allclose(linear_network_edge(0.8, weight_variance=2.5, width_ratios=[1.2, 0.7]), 2.5 * base)
    assert_allclose(linear_network_edge(0.4, weight_variance=1.0, width_ratios=[2.4, 1.4]), base, rtol=1e-13)
    assert linear_network_edge(0.8, weight_variance=0) == 0.0
