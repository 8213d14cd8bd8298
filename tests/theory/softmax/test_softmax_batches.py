"""Gamma of batches and of equal tails, against dense matrices in 60 digits; where the law of one ray ends."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
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
    rng = np.random.default_rng(case)
    z = rng.normal(size=(rng.integers(1, 5), rng.integers(2, 5))) * 10 ** rng.uniform(-2, 3)
    temperature = 10 ** rng.uniform(-2, 2)
    if case % 3 == 0:
        z[:, 0] += 1e6 * (1 + 1e-7 * np.arange(len(z)))
    with mpmath.workdps(60):
        expected = dense(z, temperature)

    assert_allclose(softmax.batch_gammas_from_logits(z, temperature=temperature), expected, rtol=4e-15)


def test_agrees_with_the_values_from_logits_and_for_many_classes() -> None:
    z = 2 * np.random.default_rng(0).normal(size=(3, 20, 400))
    p = np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)

    found = softmax.batch_gammas(p)
    assert_allclose(found, softmax.batch_gammas_from_logits(z), rtol=1e-13)
    assert_allclose(found.mean, softmax.gamma(p, average=True), rtol=1e-15)


def test_one_member_has_one_value_and_copies_scale_the_separate_one() -> None:
    p = np.array([0.6, 0.3, 0.1])
    found = softmax.batch_gammas(np.stack([p] * 4))

    assert_allclose(softmax.batch_gammas(p[None]), [softmax.gamma(p)] * 2, rtol=1e-15)
    assert_allclose(found, [softmax.gamma(p), 2 * softmax.gamma(p)], rtol=1e-15)


def test_disjoint_members_have_one_value() -> None:
    p = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.3, 0.7]])

    assert_allclose(*softmax.batch_gammas(p), rtol=1e-15)


def test_of_one_saturated_batch_the_smallest_gap_decides() -> None:
    """Every probability rounds to one-hot, and the member with gap 9000 is alone with its two runners-up."""
    z = np.array([[1e4, 0.0, -5.0], [1000.0, 10_000.0, 1000.0], [-3e4, 0.0, -2e4]])

    assert_allclose(softmax.batch_gammas_from_logits(z), np.sqrt(8 / 5), rtol=1e-15)


def test_temperature_is_one_for_each_batch() -> None:
    z = np.random.default_rng(1).normal(size=(2, 5, 3))
    found = softmax.batch_gammas_from_logits(z, temperature=[[0.5], [2.0], [7.0]])

    assert found.mean.shape == found.separate.shape == (3, 2)
    single = softmax.batch_gammas_from_logits(z[1] / 2.0)
    assert_allclose([value[1, 1] for value in found], single, rtol=1e-14)


@pytest.mark.parametrize("z", [[[1e308, -1e308, 0.0], [1e308, 1.0, 2.0]], [[1e308, -1e308]], [[0.0, 0.0]]])
def test_logits_of_any_size_give_a_value(z: list[list[float]]) -> None:
    assert_allclose(softmax.batch_gammas_from_logits(z, temperature=1e-300), 1.0, rtol=1e-15)


def test_logits_whose_difference_is_no_float_keep_their_weight_at_such_temperatures() -> None:
    z = np.array([[1.0, 0.999, -1.0], [-1.0, 0.3, 0.7]])
    found = softmax.batch_gammas_from_logits(1e308 * z, temperature=1e308)

    assert_allclose(found, softmax.batch_gammas_from_logits(z), rtol=4e-15)


@pytest.mark.parametrize("members", [2, 3, 5, 10, 200])
@pytest.mark.parametrize("share", [1e-300, 1e-12, 0.3, 1.0, 1.2])
def test_equal_tails_have_the_spectrum_and_gamma_of_the_general_functions(members: int, share: float) -> None:
    tail = min(share / members, 1 / (members - 1) - 0.01 / members)
    p = np.array([1 - (members - 1) * tail, *[tail] * (members - 1), 0.0, 0.0])
    found = softmax.equal_tail_eigenvalues(tail, members=members, classes=members + 2)

    assert_allclose(found, softmax.eigenvalues(p), rtol=1e-12 if share > 1 else 3e-15, atol=0)
    assert_allclose(softmax.equal_tail_gamma(tail, members=members), softmax.gamma(p), rtol=1e-13)
