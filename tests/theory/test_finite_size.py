"""Edges and outliers of finite matrices against small matrices, resolvents and each other."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from theory import finite_size, outliers
from theory.finite_size import wigner_edge, wishart_edge
from theory.rmt import MarchenkoPastur, Semicircle, TracyWidom

UNIT = TracyWidom(beta=1)


def slope(function: Callable[[Any], Any], z: float) -> float:
    """Derivative of a real analytic function along a tiny imaginary step."""
    return float(np.imag(function(z + 1e-12j * z)) / 1e-12 / z)


def test_two_by_two_wigner_matrix_in_closed_form() -> None:
    """E lambda_max = sigma sqrt(pi / (2 P)) at P = 2: half a Rayleigh variable. The error is of order P^(-4/3)."""
    exact = math.sqrt(math.pi) / 2

    assert abs(wigner_edge(2, sigma=1.0).mean - exact) < 0.15 * 2 ** (-4 / 3)
    without_shift = 2 + 2 ** (-2 / 3) * UNIT.mean()
    assert abs(without_shift - exact) > 0.8 * 2 ** (-4 / 3)


def test_edges_tend_to_those_of_the_laws() -> None:
    sizes = 10.0 ** np.arange(3, 13)
    edge = wigner_edge(sizes, sigma=0.7)
    expected = UNIT.mean() / 2 - sizes ** (-1 / 3) / 4  # the 1/2 of the centre
    assert_allclose((edge.mean / 1.4 - 1) * sizes ** (2 / 3), expected, rtol=2e-4)
    assert_allclose(edge.sd * sizes ** (2 / 3) / 0.7, math.sqrt(UNIT.var()), rtol=1e-3)
    assert_array_equal(wigner_edge(sizes, sigma=0.7, lower=True).mean, -edge.mean)
    for p, n in [(3, 8), (8, 3)]:
        for lower in (False, True):
            limit = MarchenkoPastur(q=p / n, variance=0.6).edges[0 if lower else 1]
            found = wishart_edge(p * sizes, n * sizes, variance=0.6, lower=lower)
            gap = (found.mean / limit - 1) * sizes ** (2 / 3)
            assert_allclose(gap[6:], gap[-1], rtol=1e-3)  # the 1/2 is of relative order size^(-1/3)
            assert_allclose(
                found.sd[6:] / abs(found.mean - limit)[6:], -math.sqrt(UNIT.var()) / UNIT.mean(), rtol=1e-3
            )


@pytest.mark.parametrize(("p", "n"), [(3, 8), (8, 3)])
def test_scale_of_the_wishart_edges_in_the_limit(p: int, n: int) -> None:
    """variance (1 +- sqrt(q))^(4/3) q^(-1/6) n^(-2/3), the curvature of the Marchenko-Pastur density at its ends."""
    size, root = 1e12, math.sqrt(p / n)
    for lower, sign in [(False, 1.0), (True, -1.0)]:
        scale = 0.6 * abs(1 + sign * root) ** (4 / 3) * root ** (-1 / 3) * (n * size) ** (-2 / 3)
        found = wishart_edge(p * size, n * size, variance=0.6, lower=lower)
        assert_allclose(found.sd, scale * math.sqrt(UNIT.var()), rtol=1e-7)


def test_a_narrow_lower_edge_keeps_its_digits() -> None:
    edge = wishart_edge(7, 1e30, variance=1.0, lower=True)

    assert_allclose(edge.mean, 1.0, rtol=1e-14)
    assert_allclose(edge.sd, math.sqrt(UNIT.var()) * 6.5 ** (-1 / 6) * 1e-15, rtol=1e-9)


def free_sd(spike: float, law: Any, dim: Any) -> Any:
    """Scatter in free noise of any spectrum, by the overlap."""
    overlap = outliers.additive(spike, law).overlap
    return abs(spike) * np.sqrt(2 * overlap * (1 - overlap) / dim)


def test_closed_forms_are_cases_of_free_noise() -> None:
    for spike in [0.8, -3.0]:
        found = finite_size.additive_wigner_sd(spike, sigma=0.6, dim=[30, 90])
        assert_allclose(found, free_sd(spike, Semicircle(sigma=0.6), np.array([30, 90])), rtol=1e-12)
    for dim, samples in [(40, 130), (130, 40)]:
        found = finite_size.additive_wishart_sd(6.5, dim=dim, samples=samples, variance=0.9)
        law = MarchenkoPastur(q=dim / samples, variance=0.9)
        assert_allclose(found, free_sd(6.5, law, dim), rtol=1e-12)


@pytest.mark.parametrize(("dim", "samples"), [(40, 130), (130, 40)])
def test_information_plus_noise_scatters_as_its_resolvents(dim: int, samples: int) -> None:
    """With y = z^2 the outlier solves y (u'Gu)(v'G~v) = (1/sqrt(spike) - u'GEv)^2, three independent scatters."""
    spike, variance, q = 6.5, 0.9, dim / samples
    y = float(outliers.information_plus_noise(spike, q=q, variance=variance).eigenvalue)
    rows, columns = MarchenkoPastur(q=q, variance=variance), MarchenkoPastur(q=1 / q, variance=variance * q)
    a, b = float(rows.stieltjes(y)), float(columns.stieltjes(y))
    da, db = slope(rows.stieltjes, y), slope(columns.stieltjes, y)
    assert_allclose(y * a * b * spike, 1.0, rtol=1e-12)

    of_a, of_b = -2 / dim * (da + a * a), -2 / samples * (db + b * b)
    of_cross = -(y * da + a) / samples
    total = (y * b) ** 2 * of_a + (y * a) ** 2 * of_b + 4 / spike * of_cross
    expected = math.sqrt(total) / abs(a * b + y * (da * b + a * db))
    found = finite_size.information_plus_noise_sd(spike, dim=dim, samples=samples, variance=variance)
    assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("spike", [1.2, 6.5, 400.0])
def test_spiked_covariance_adds_the_scatter_of_the_spike_itself(spike: float) -> None:
    """The samples along u have the variance spike chi^2_n / n, seen through the slope of the outlier."""
    sizes = {"dim": 40, "samples": 130, "variance": 0.9}
    fixed = finite_size.information_plus_noise_sd(spike, **sizes)
    seen = spike * math.sqrt(2 / 130) * (1 - 40 / 130 * 0.9**2 / spike**2)

    assert_allclose(finite_size.spiked_covariance_sd(spike, **sizes), np.hypot(fixed, seen), rtol=1e-13)


def test_limits_of_the_outliers() -> None:
    assert finite_size.additive_wigner_sd(-2.0, sigma=0.0, dim=50) == 0
    for name in ("additive_wishart_sd", "information_plus_noise_sd", "spiked_covariance_sd"):
        noiseless = getattr(finite_size, name)(2.0, dim=5, samples=50, variance=0.0)
        assert_allclose(noiseless, 0.4 if name == "spiked_covariance_sd" else 0.0)
    assert finite_size.additive_wigner_sd(0.6 * (1 + 1e-12), sigma=0.6, dim=50) < 1e-6
