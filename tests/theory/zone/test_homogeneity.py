"""Scaled weights: Euler's theorem and the powers on a homogeneous model, tanh in 60 digits, two torn classes."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.theory.zone.test_zone import WEIGHTS, derivatives, gradient, logits
from theory import zone


@pytest.mark.parametrize("alpha", [0.3, 2.7])
def test_logits_and_their_derivatives_scale_with_falling_powers(alpha: float) -> None:
    scaled = (logits(alpha * WEIGHTS), *derivatives(alpha * WEIGHTS))
    for order, (one, other) in enumerate(zip((logits(WEIGHTS), *derivatives(WEIGHTS)), scaled, strict=True)):
        assert_allclose(other, zone.homogeneous_factor(alpha, depth=3, order=order) * one, rtol=1e-13)


def test_gradient_of_the_loss_at_the_matched_temperature() -> None:
    a = 1.7
    factor = zone.homogeneous_factor(a, depth=3, order=1, temperature=a**3)
    assert_allclose(gradient(a * WEIGHTS, a**3), factor * gradient(WEIGHTS, 1.0), rtol=1e-13)


def test_curvature_factors_are_made_of_them() -> None:
    at = {"depth": 5, "temperature": [0.7, 2.0]}
    factors = zone.curvature_factors(1.3, **at)
    assert_allclose(factors.gauss_newton, zone.homogeneous_factor(1.3, order=1, **at) ** 2, rtol=1e-14)
    assert_allclose(factors.h_term, zone.homogeneous_factor(1.3, order=2, **at), rtol=1e-14)


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
