"""Gamma from pairs of classes, its slope along a ray against differences in 60 digits, and entropy beside it."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory import softmax


@pytest.mark.parametrize("tail", [0.2, 1e-9, 1e-150, 1e-300])
def test_pairs_give_gamma_at_every_confidence(tail: float) -> None:
    p = tail * np.array([1.0, 0.4, 0.0, 0.7])
    p = np.append(p, 1 - p.sum())
    assert_allclose(softmax.gamma_of_pairs(p), softmax.gamma(p), rtol=3e-15)


def inverse_square(z: list[float], beta: Any) -> Any:
    weights = [mpmath.exp(beta * (mpmath.mpf(x) - max(z))) for x in z]
    p = [w / mpmath.fsum(weights) for w in weights]
    s2, s3 = (mpmath.fsum(x**n for x in p) for n in (2, 3))
    return (s2 - 2 * s3 + s2**2) / (1 - s2) ** 2


@pytest.mark.parametrize(
    "z", [[0.3, -1.2, 2.1, 0.7], [40.0, 3.0, 1.0], [300.0, 0.0, -1.0, -2.0], [0.0, 0.0, -3.0]]
)
@pytest.mark.parametrize("beta", [0.125, 1.0, 2.0])
def test_slope_is_the_derivative_however_confident(z: list[float], beta: float) -> None:
    with mpmath.workdps(800):
        exact = float(mpmath.diff(lambda b: inverse_square(z, b), beta, h=mpmath.mpf(10) ** -150))

    assert_allclose(softmax.ray_slope(z, temperature=1 / beta), exact, rtol=1e-11, atol=1e-300)
    assert_allclose(
        softmax.ray_slope(np.array(z) * 8, temperature=8 / beta), 8 * exact, rtol=1e-11, atol=1e-300
    )


@pytest.mark.parametrize("temperature", [3.0, 1e3, 1e9, 1e15, 1e100])
@pytest.mark.parametrize("z", [[0.3, -1.2, 0.4], [7.0, 6.5, 6.0, 5.0], [1e8 + 1, 1e8, 1e8 - 1.5, 1e8, 1e8]])
def test_slope_keeps_its_digits_at_high_temperatures(z: list[float], temperature: float) -> None:
    """Near equal probabilities its terms nearly cancel."""
    with mpmath.workdps(800):
        beta = 1 / mpmath.mpf(temperature)
        exact = float(mpmath.diff(lambda b: inverse_square(z, b), beta, h=mpmath.mpf(10) ** -200))

    assert_allclose(softmax.ray_slope(z, temperature=temperature), exact, rtol=1e-13)


def test_slope_is_never_negative_and_vanishes_for_two_classes() -> None:
    z = 3 * np.random.default_rng(0).standard_normal((200, 6))
    assert np.all(softmax.ray_slope(z) > 0)
    assert_allclose(softmax.ray_slope(z[:, :2], temperature=np.full(200, 0.7)), 0.0, atol=1e-15)


@pytest.mark.parametrize("classes", [3, 4, 10])
def test_discordance_is_that_of_random_pairs(classes: int) -> None:
    p = np.random.default_rng(classes).dirichlet(np.ones(classes), size=(2, 200_000))
    entropy, gamma = -(p * np.log(p)).sum(-1), softmax.gamma(p)
    drawn = (entropy[0] - entropy[1]) * (gamma[0] - gamma[1]) < 0

    assert (
        abs(softmax.entropy_discordance(classes) - drawn.mean()) < 5 * drawn.std() / np.sqrt(200_000) + 6e-4
    )


@pytest.mark.parametrize("members", [2, 3, 7, 23])
def test_rounded_gamma_is_what_floats_have(members: int) -> None:
    p = np.array([1.0] + [1e-40] * (members - 1))
    dense = np.diag(p) - np.outer(p, p)
    assert_allclose(np.trace(dense) / np.linalg.norm(dense), softmax.rounded_gamma(members), rtol=1e-14)
