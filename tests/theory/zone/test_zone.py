"""The scaled network: its exact laws on a small homogeneous model, its edges and bulk against quadrature and draws."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

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

    drawn = np.random.default_rng(2).standard_normal((900, 900)) * 0.65 / np.sqrt(1800)
    np.fill_diagonal(drawn, 0.0)  # its trace is what scatters
    dense = drawn + drawn.T + np.diag([2.6] * 9 + [0.0] * 891)  # spikes over a semicircle of norm 1.3
    excess = np.trace(dense) / np.linalg.norm(dense)
    assert_allclose(excess, zone.spiked_excess(2.6, rank=9, bulk_norm=1.3, dim=900), rtol=0.01)


def test_outlier_separates_at_half_the_norm_of_the_bulk() -> None:
    found = zone.bulk_outlier([0.3, 0.8, 1.5], bulk_norm=1.0)
    expected = outliers.additive_wigner([0.3, 0.8, 1.5], sigma=0.5)
    assert_allclose([*vars(found).values()], [*vars(expected).values()], rtol=1e-15)


@pytest.mark.parametrize("alpha", [0.3, 2.7])
def test_logits_and_their_derivatives_scale_with_falling_powers(alpha: float) -> None:
    scaled = (logits(alpha * WEIGHTS), *derivatives(alpha * WEIGHTS))
    for order, (one, other) in enumerate(zip((logits(WEIGHTS), *derivatives(WEIGHTS)), scaled, strict=True)):
        assert_allclose(other, zone.homogeneous_factor(alpha, depth=3, order=order) * one, rtol=1e-13)


def test_gradient_of_the_loss_at_the_matched_temperature() -> None:
    a = 1.7
    factor = zone.homogeneous_factor(a, depth=3, order=1, temperature=a**3)
    assert_allclose(gradient(a * WEIGHTS, a**3), factor * gradient(WEIGHTS, 1.0), rtol=1e-13)


def test_euler_on_the_model_and_as_derivative_of_a_power() -> None:
    first, second = derivatives(WEIGHTS)
    assert_allclose(first @ WEIGHTS, zone.euler_factor(3) * logits(WEIGHTS), rtol=1e-13)
    curved = np.einsum("kij,i,j->k", second, WEIGHTS, WEIGHTS)
    assert_allclose(curved, zone.euler_factor(3, order=2) * logits(WEIGHTS), rtol=1e-13)
    for depth, order in ((1, 0), (5, 3), (4, 4), (4, 5)):
        exact = float(mpmath.diff(lambda a, depth=depth: a**depth, 1, order))
        assert_allclose(zone.euler_factor(depth, order=order), exact, atol=1e-9)


@pytest.mark.parametrize("widths", [(2, 1), (3, 4, 2), (2, 3, 3, 2)])
def test_tanh_correction_is_the_next_term(widths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(widths))
    shapes = zip((*widths[1:], 2), widths, strict=True)
    matrices = [rng.standard_normal(shape) for shape in shapes]
    x, alpha = rng.standard_normal(widths[0]), mpmath.mpf(10) ** -12
    with mpmath.workdps(60):
        scaled = linear = mpmath.matrix(x.tolist())
        for number, w in enumerate(map(np.ndarray.tolist, matrices), start=1):
            matrix = mpmath.matrix(w)
            linear, scaled = matrix * linear, alpha * matrix * scaled
            scaled = scaled if number == len(matrices) else scaled.apply(mpmath.tanh)
        found = (scaled / alpha ** len(matrices) - linear) / alpha**2
        exact = [float(v) for v in found]

    assert_allclose(zone.tanh_correction(matrices, x), exact, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.2, 3.0, 60.0])
def test_trace_of_two_classes_is_that_of_the_softmax_covariance(alpha: float) -> None:
    gaps, squares, depth, heat = np.array([0.3, 0.02, 1.4]), np.array([2.0, 0.7, 5.0]), 3, 1.7
    with mpmath.workdps(30):
        terms = [
            s / (4 * mpmath.cosh(mpmath.mpf(alpha) ** depth * g / (2 * heat)) ** 2)
            for g, s in zip(gaps.tolist(), squares.tolist(), strict=True)
        ]
        exact = float(mpmath.log(mpmath.mpf(alpha) ** (2 * depth - 2) * sum(terms) / 3 / heat**2))
    found = zone.confident_log_trace(gaps, squares, alpha=alpha, depth=depth, temperature=heat)

    assert_allclose(found, exact, rtol=1e-13)
