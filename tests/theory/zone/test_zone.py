"""The scaled network: its exact laws on a small homogeneous model, its edges and bulk against quadrature and draws."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate

from theory import outliers, softmax, zone

WEIGHTS = np.array([0.7, -0.4, 1.1, 0.9])


def logits(theta: np.ndarray) -> np.ndarray:
    """Three logits of degree three in four weights."""
    a, b, c, d = theta
    return np.array([a * b * c, a * b * d, c * c * d / 2])


def derivatives(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivatives of the logits, by hand."""
    a, b, c, d = theta
    first = np.array([[b * c, a * c, a * b, 0], [b * d, a * d, 0, a * b], [0, 0, c * d, c * c / 2]])
    second = np.zeros((3, 4, 4))
    for k, i, j, value in [
        *((0, 0, 1, c), (0, 0, 2, b), (0, 1, 2, a), (1, 0, 1, d), (1, 0, 3, b), (1, 1, 3, a), (2, 2, 3, c))
    ]:
        second[k, i, j] = second[k, j, i] = value
    second[2, 2, 2] = d
    return first, second


def parts(theta: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """G and the H-term at given probabilities, label 1."""
    first, second = derivatives(theta)
    return first.T @ softmax.covariance(p) @ first, np.einsum("k,kij->ij", p - np.eye(3)[1], second)


def probabilities(theta: np.ndarray, heat: float) -> np.ndarray:
    w = np.exp(logits(theta) / heat)
    return w / w.sum()


def hessian(theta: np.ndarray, heat: float) -> np.ndarray:
    G, H = parts(theta, probabilities(theta, heat))
    return G / heat**2 + H / heat


def gradient(theta: np.ndarray, heat: float) -> np.ndarray:
    return derivatives(theta)[0].T @ (probabilities(theta, heat) - np.eye(3)[1]) / heat


@pytest.mark.parametrize(("alpha", "heat"), [(0.3, 1.0), (2.5, 1.0), (1.3, 4.0), (3.0, 27.0)])
def test_hessian_of_the_scaled_network_has_the_two_factors(alpha: float, heat: float) -> None:
    """The left side has nothing of the scaling law in it, the right derivatives at unscaled weights only."""
    G, H = parts(WEIGHTS, probabilities(alpha * WEIGHTS, heat))
    factors = zone.curvature_factors(alpha, depth=3, temperature=heat)

    expected = hessian(alpha * WEIGHTS, heat)
    assert_allclose(factors.gauss_newton * G + factors.h_term * H, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 2.0, 7.0])
def test_matched_rate_keeps_the_path_at_the_matching_temperature(alpha: float) -> None:
    """Twenty steps with momentum; the rate is alpha^2 times the old one."""
    rate = float(zone.matched_rate(0.1, alpha=alpha, depth=3, temperature=alpha**3))
    paths = []
    for scale, eta, heat in ((1.0, 0.1, 1.0), (alpha, rate, alpha**3)):
        theta, velocity = scale * WEIGHTS, np.zeros(4)
        for _ in range(20):
            velocity = 0.5 * velocity - eta * gradient(theta, heat)
            theta = theta + velocity
        paths.append(theta / scale)

    assert_allclose(rate, 0.1 * alpha**2, rtol=1e-14)
    assert_allclose(paths[1], paths[0], rtol=1e-11)


def test_lower_edge_is_where_the_two_norms_cross() -> None:
    G, H = (np.linalg.norm(part, 2) for part in parts(WEIGHTS, np.full(3, 1 / 3)))
    edge = zone.lower_edge(G, H, depth=3)
    factors = zone.curvature_factors(edge, depth=3)

    assert_allclose(factors.gauss_newton * G, factors.h_term * H, rtol=1e-14)
    assert_allclose(zone.lower_edge(32.0, 1.0, depth=5), 0.5, rtol=1e-15)


@pytest.mark.parametrize("alpha", [8.0, 20.0])
def test_near_tie_weight_is_the_integral_over_gaps(alpha: float) -> None:
    """Exponential gaps of density 0.8 e^{-0.8 g}; f' / f = -0.8 sets the error."""
    scale = alpha**2 / 1.5
    exact = (
        integrate.quad(lambda u: 0.8 * np.exp(-0.8 * u / scale) / (4 * np.cosh(u / 2) ** 2), 0, 60)[0] / scale
    )
    found = zone.near_tie_weight(alpha, gap_density=0.8, depth=2, temperature=1.5)

    assert_allclose(found, exact, rtol=2 * 0.8 / scale)
    assert found > exact


def test_upper_edge_is_where_one_sample_is_left_within_reach() -> None:
    """The smallest of N gaps, in 2000 draws, is 1/(N f(0)) on average: alpha_high to the power -L."""
    rng = np.random.default_rng(0)
    smallest = rng.exponential(1 / 0.8, size=(2000, 300)).min(axis=1)
    edge = zone.upper_edge(300, gap_density=0.8, depth=3)

    assert abs(smallest.mean() - edge**-3.0) < 5 * smallest.std() / np.sqrt(2000)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_edges_and_rates_grow_with_their_powers(depth: int) -> None:
    edges = zone.upper_edge([10, 1000], gap_density=0.3, depth=depth)
    rates = zone.largest_base_rate([0.1, 1.0], sharpness=2.5, depth=depth)

    assert_allclose(np.log(edges[1] / edges[0]), np.log(100) / depth, rtol=1e-13)
    assert_allclose(rates, [0.8 * 0.1 ** (depth - 2), 0.8], rtol=1e-13)


def test_spiked_excess_without_bulk_and_in_high_dimension() -> None:
    found = zone.spiked_excess(2.0, rank=9, bulk_norm=[0.0, 1.0, 1.0], dim=[50, 50, 266_200])

    assert_allclose(found, [3.0, 2.5846, 0.0698], atol=5e-5)


def test_outlier_separates_at_half_the_norm_of_the_bulk() -> None:
    found = zone.bulk_outlier([0.3, 0.8, 1.5], bulk_norm=1.0)
    expected = outliers.additive_wigner([0.3, 0.8, 1.5], sigma=0.5)
    assert_allclose([*vars(found).values()], [*vars(expected).values()], rtol=1e-15)
