"""Gamma of batches and of equal tails, against dense matrices in 60 digits; where the law of one ray ends."""

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from theory import softmax


def dense(z: np.ndarray, temperature: float) -> tuple[float, float]:
    """Both values from matrices of mpmath, entry by entry."""
    classes = z.shape[1]
    total, square = mpmath.zeros(classes), mpmath.mpf(0)
    for row in z:
        w = [mpmath.exp((mpmath.mpf(float(x)) - float(row.max())) / mpmath.mpf(temperature)) for x in row]
        p = [x / mpmath.fsum(w) for x in w]
        M = mpmath.diag([x * mpmath.fsum(p[:k] + p[k + 1 :]) for k, x in enumerate(p)])
        for i, j in np.ndindex(classes, classes):
            M[i, j] = M[i, j] if i == j else -p[i] * p[j]
        total, square = total + M, square + mpmath.fsum(x**2 for x in M)
    trace = mpmath.fsum(total[i, i] for i in range(classes))
    return float(trace / mpmath.mnorm(total, "f")), float(trace / mpmath.sqrt(square))


@pytest.mark.parametrize("case", range(24))
def test_from_logits_agrees_with_60_digits(case: int) -> None:
    """Gaps of a million in a third of the cases: members are told apart by differences of gaps."""
    rng = default_rng(case)
    z = rng.normal(size=(rng.integers(1, 5), rng.integers(2, 5))) * 10 ** rng.uniform(-2, 3)
    temperature = 10 ** rng.uniform(-2, 2)
    if case % 3 == 0:
        z[:, 0] += 1e6 * (1 + 1e-7 * np.arange(len(z)))
    with mpmath.workdps(60):
        expected = dense(z, temperature)

    assert_allclose(softmax.batch_gammas_from_logits(z, temperature=temperature), expected, rtol=4e-15)


def test_agrees_with_the_values_from_logits_and_for_many_classes() -> None:
    z = 2 * default_rng(0).normal(size=(3, 20, 400))
    p = np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)

    found = softmax.batch_gammas(p)
    assert_allclose(found, softmax.batch_gammas_from_logits(z), rtol=1e-13)
    assert_allclose(found.mean, softmax.gamma(p, average=True), rtol=1e-15)


def test_of_one_saturated_batch_the_smallest_gap_decides() -> None:
    """Every probability rounds to one-hot, and the member with gap 9000 is alone with its two runners-up."""
    z = np.array([[1e4, 0.0, -5.0], [1000.0, 10_000.0, 1000.0], [-3e4, 0.0, -2e4]])

    assert_allclose(softmax.batch_gammas_from_logits(z), np.sqrt(8 / 5), rtol=1e-15)


def test_temperature_is_one_for_each_batch() -> None:
    z = default_rng(1).normal(size=(2, 5, 3))
    found = softmax.batch_gammas_from_logits(z, temperature=[[0.5], [2.0], [7.0]])

    assert found.mean.shape == found.separate.shape == (3, 2)
    single = softmax.batch_gammas_from_logits(z[1] / 2.0)
    assert_allclose([value[1, 1] for value in found], single, rtol=1e-14)


@pytest.mark.parametrize("z", [[[1e308, -1e308, 0.0], [1e308, 1.0, 2.0]], [[1e308, -1e308]], [[0.0, 0.0]]])
def test_logits_of_any_size_give_a_value(z: list[list[float]]) -> None:
    assert_allclose(softmax.batch_gammas_from_logits(z, temperature=1e-300), 1.0, rtol=1e-15)


@pytest.mark.parametrize("members", [2, 3, 5, 10, 200])
@pytest.mark.parametrize("share", [1e-300, 1e-12, 0.3, 1.0, 1.2])
def test_equal_tails_have_the_spectrum_and_gamma_of_the_general_functions(members: int, share: float) -> None:
    tail = min(share / members, 1 / (members - 1) - 0.01 / members)
    p = np.array([1 - (members - 1) * tail, *[tail] * (members - 1), 0.0, 0.0])
    found = softmax.equal_tail_eigenvalues(tail, members=members, classes=members + 2)

    assert_allclose(found, softmax.eigenvalues(p), rtol=1e-12 if share > 1 else 3e-15, atol=0)
    assert_allclose(softmax.equal_tail_gamma(tail, members=members), softmax.gamma(p), rtol=1e-13)


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


def test_slopes_of_many_logits_are_those_of_each() -> None:
    z = default_rng(0).standard_normal((5, 3))
    assert_allclose(softmax.ray_slope(z), [softmax.ray_slope(row) for row in z], rtol=1e-12)


@pytest.mark.parametrize("temperature", [3.0, 1e3, 1e9, 1e15, 1e100])
@pytest.mark.parametrize("z", [[0.3, -1.2, 0.4], [7.0, 6.5, 6.0, 5.0], [1e8 + 1, 1e8, 1e8 - 1.5, 1e8, 1e8]])
def test_slope_keeps_its_digits_at_high_temperatures(z: list[float], temperature: float) -> None:
    """Near equal probabilities its terms nearly cancel."""
    with mpmath.workdps(800):
        beta = 1 / mpmath.mpf(temperature)
        exact = float(mpmath.diff(lambda b: inverse_square(z, b), beta, h=mpmath.mpf(10) ** -200))

    assert_allclose(softmax.ray_slope(z, temperature=temperature), exact, rtol=1e-13)


@pytest.mark.parametrize("classes", [3, 4, 10])
def test_discordance_is_that_of_random_pairs(classes: int) -> None:
    p = default_rng(classes).dirichlet(np.ones(classes), size=(2, 200_000))
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
