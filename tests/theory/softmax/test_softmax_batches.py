"""Gamma of batches and of equal tails, against dense matrices in 60 digits; where the law of one ray ends."""

from __future__ import annotations

from collections.abc import Callable

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


def test_of_a_batch_is_not_monotone_along_a_temperature_ray() -> None:
    """Ten samples on two classes, one on two others: it rises before it falls, unlike that of one sample."""
    z = np.full((11, 4), -1e6)
    z[:10, :2], z[10, 2:] = [1.0, 0.0], [0.5, 0.0]
    beta = np.array([0.2, 1, 2, 4, 4.6, 8])
    z = np.where(z < -1, z, z[None] * beta[:, None, None])

    found = softmax.batch_gammas_from_logits(z).mean
    assert_allclose(found, [1.095, 1.112, 1.167, 1.371, 1.409, 1.169], atol=6e-4)


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


@pytest.mark.parametrize("members", [2, 3, 7, 12])
def test_equal_tails_reach_the_collapse_limit_with_the_slope_of_eq_11(members: int) -> None:
    """4 (S-1)/(S+2) + 4 (S-1)(S^2-2S) eps/(S+2)^2; S = 10 is left out, where (S - 1)/3 is the same."""
    S, eps = members, 1e-6
    found = softmax.equal_tail_gamma([0.0, eps], members=S) ** 2

    assert_allclose(found[0], 4 * (S - 1) / (S + 2), rtol=1e-15)
    slope = 4 * (S - 1) * (S * S - 2 * S) / (S + 2) ** 2
    assert_allclose((found[1] - found[0]) / eps, slope, rtol=1e-4, atol=1e-8)


def test_ten_thousand_classes_agree_with_40_digits() -> None:
    z = 3 * np.random.default_rng(1).normal(size=10_000)
    with mpmath.workdps(40):
        w = [mpmath.exp(mpmath.mpf(float(x))) for x in z]
        s1, s2, s3 = (mpmath.fsum(x**n for x in w) for n in (1, 2, 3))
        s2, s3 = s2 / s1**2, s3 / s1**3
        expected = float((1 - s2) / mpmath.sqrt(s2 - 2 * s3 + s2**2))

    assert_allclose(softmax.gamma_from_logits(z), expected, rtol=4e-15)
    assert_allclose(softmax.gamma(np.exp(z) / np.exp(z).sum()), expected, rtol=4e-15)


def test_the_dense_formula_fails_at_high_confidence() -> None:
    """Trace and norm of diag(p) - p p' in plain floats: off by a fifth, below the bound 1, where ours is exact."""
    p = np.exp([0.0, -40.0])
    naive = np.diag(p / p.sum()) - np.outer(p, p) / p.sum() ** 2

    assert np.trace(naive) / np.linalg.norm(naive) < 0.9
    assert_allclose(softmax.gamma_from_logits([0.0, -40.0]), 1.0, rtol=4e-16)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: softmax.batch_gammas([0.5, 0.5]), r"p must be a batch of shape \(..., N, K\), got \(2,\)"),
        (lambda: softmax.batch_gammas([[1.0, 0.0]]), "p must be not one-hot in every member of the batch"),
        (lambda: softmax.batch_gammas([[0.5, 0.4]]), "p must be a probability vector"),
        (
            lambda: softmax.batch_gammas_from_logits([1.0, 2.0]),
            r"z must be a batch of shape \(..., N, K\), K >= 2",
        ),
        (lambda: softmax.batch_gammas_from_logits([[1.0]]), "z must be a batch"),
        (lambda: softmax.batch_gammas_from_logits(np.empty((0, 3))), "z must be a batch"),
        (lambda: softmax.batch_gammas_from_logits([[np.nan, 1.0]]), "z must be finite"),
        (
            lambda: softmax.batch_gammas_from_logits([[0.0, 1.0]], temperature=0),
            "temperature must be positive",
        ),
        (
            lambda: softmax.batch_gammas_from_logits(np.zeros((2, 3, 4)), temperature=[1, 2, 3]),
            "z, temperature must be broadcastable",
        ),
        (
            lambda: softmax.batch_gammas_from_logits(np.zeros((9, 10)), temperature=np.ones(10**7)),
            "z must be small enough for memory",
        ),
        (
            lambda: softmax.gamma_from_logits(np.zeros(10**4), temperature=np.ones(10**6)),
            "z must be small enough for memory",
        ),
        (lambda: softmax.equal_tail_gamma(0.1, members=1), "members must be at least 2, got 1"),
        (lambda: softmax.equal_tail_gamma(0.51, members=3), "tail must be at most 1/2, got 0.51"),
        (lambda: softmax.equal_tail_gamma(-0.1, members=3), "tail must be non-negative"),
        (lambda: softmax.equal_tail_gamma(1.0, members=2), "tail must be below 1 for two members"),
        (
            lambda: softmax.equal_tail_eigenvalues(0.1, members=5, classes=4),
            "classes must be an integer >= 5",
        ),
        (
            lambda: softmax.equal_tail_eigenvalues(0.1, members=5, classes=10**9),
            "classes must be small enough",
        ),
    ],
)
def test_what_is_out_of_domain_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
