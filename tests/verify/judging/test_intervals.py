"""Intervals: each formula against an independent derivation, and their promise against simulated streams."""

import math

import mpmath as mp
import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy import stats

from verify.judging.guards import SKEWED
from verify.judging.intervals import (
    FEWEST,
    TIGHTEST_AT,
    mean_interval,
    multiplier,
    proportion_interval,
    ratio_interval,
    widened,
)
from verify.model import ALPHA


def t_martingale(t: float, n: int, alpha: float) -> mp.mpf:
    """E[likelihood ratio of Student's t under effect d to no effect], d ~ N(0, 1/c^2), by quadrature over d.

    The density of the noncentral t with m = n - 1 degrees of freedom and noncentrality u, over that of the central
    one, is exp(-u^2/2) E exp(u t y / sqrt(t^2 + m)) with y chi-distributed, n degrees of freedom.
    """
    level = 2 * mp.log(1 / mp.mpf(alpha))
    c2 = TIGHTEST_AT / (level + mp.log(1 + level))
    lean = t / mp.sqrt(t**2 + n - 1)

    def ratio(d: mp.mpf) -> mp.mpf:
        u = d * mp.sqrt(n)
        b = u * lean
        half = b**2 / 2
        odd = b * mp.sqrt(2) * mp.gamma(mp.mpf(n + 1) / 2) / mp.gamma(mp.mpf(n) / 2)
        mean = mp.hyp1f1(mp.mpf(n) / 2, mp.mpf(1) / 2, half) + odd * mp.hyp1f1(
            mp.mpf(n + 1) / 2, mp.mpf(3) / 2, half
        )
        return mp.exp(-(u**2) / 2) * mean * mp.sqrt(c2 / (2 * mp.pi)) * mp.exp(-c2 * d**2 / 2)

    scale = 1 / mp.sqrt(n + c2)
    return mp.quad(ratio, [scale * k for k in (-12, -4, 0, 4, 8, 12, 16, 24)])


@pytest.mark.parametrize(("n", "alpha"), [(FEWEST, ALPHA), (208, 1e-2)])
def test_multiplier_is_where_the_mixture_of_noncentral_t_reaches_one_over_alpha(n: int, alpha: float) -> None:
    k = multiplier(n, alpha)

    with mp.workdps(20):
        assert_allclose(float(t_martingale(k, n, alpha) * alpha), 1.0, rtol=1e-9)


def test_multiplier_is_infinite_while_no_t_reaches_one_over_alpha() -> None:
    """With n replicates the mixture is bounded in t; its supremum is 1/alpha where the multiplier diverges."""
    finite = [math.isfinite(multiplier(n, 1e-6)) for n in range(2, FEWEST)]

    assert not finite[0] and finite[-1] and finite == sorted(finite)
    last = finite.index(True) + 1
    with mp.workdps(20):
        assert t_martingale(1e12, last, 1e-6) < 1e6 < t_martingale(1e12, last + 1, 1e-6)


@pytest.mark.parametrize(("k", "n"), [(2.0, FEWEST), (6.0, 100), (12.0, 10**6)])
@pytest.mark.parametrize("skewness", [0.0, 5e-324, 1e-110, 1e-17, 0.1, 0.6, 1.0, 3.0, 30.0])
def test_widening_solves_its_equation_and_is_refused_past_one_sixth(
    k: float, n: int, skewness: float
) -> None:
    wide, c = widened(k, n, skewness), skewness / (3 * math.sqrt(n))

    if math.isinf(wide):  # refused exactly where the solution would lie past c k' = 1/6
        assert (1 / (6 * c)) ** 2 / 3 <= k**2 / 2 * (1 + 1e-12)
    else:
        assert wide >= k * (1 - 1e-12) and c * wide <= (1 + 1e-12) / 6
        assert_allclose(wide**2 / 2 - c * wide**3, k**2 / 2, rtol=1e-12)
    assert wide == widened(k, n, -skewness)


# --- means


def test_mean_interval_has_the_parts_the_rule_names() -> None:
    x = default_rng(0).gamma(4.0, size=300)
    found = mean_interval(x, alpha=1e-4, numerical=0.01)

    k = widened(multiplier(300, 1e-4), 300, float(stats.skew(x)) * (299 / 300) ** 1.5)
    half = k * x.std(ddof=1) / math.sqrt(300) + 0.01
    assert_allclose([found.estimate, found.lower, found.upper], [x.mean(), x.mean() - half, x.mean() + half])
    assert_allclose(found.half_width, half)
    assert found.numerical == 0.01 and found.obstacle == "" and found.skewness > 0.5


@pytest.mark.parametrize(("scale", "shift"), [(0.01, -100.0), (70.0, 3.0)])
def test_mean_interval_moves_and_scales_with_the_data(scale: float, shift: float) -> None:
    x = default_rng(3).gamma(9.0, size=160)
    plain = mean_interval(x, alpha=1e-3)
    ends = np.array([plain.lower, plain.estimate, plain.upper]) * scale + shift
    for found in (mean_interval(scale * x + shift, alpha=1e-3), plain.scaled(scale).shifted(shift)):
        assert_allclose([found.lower, found.estimate, found.upper], ends, rtol=1e-9, atol=1e-9)
        assert_allclose(found.half_width, scale * plain.half_width)


def heavy() -> np.ndarray:
    x = np.zeros(256)
    x[0] = 1.0
    return x


@pytest.mark.parametrize(
    ("values", "obstacle"),
    [
        (default_rng(1).normal(size=FEWEST - 1), "too few replicates"),
        (np.array([1.0]), "too few replicates"),
        (np.full(100, 0.1), "zero variance"),
        (1e9 * (1 + 1e-16 * default_rng(1).normal(size=100)), "zero variance"),
        (heavy(), SKEWED),
    ],
)
def test_what_stands_in_the_way_of_an_interval(values: np.ndarray, obstacle: str) -> None:
    found = mean_interval(values, alpha=1e-6)
    assert found.obstacle == obstacle
    assert (found.lower, found.upper, found.half_width) == (-math.inf, math.inf, math.inf)


def test_replicates_that_do_not_vary_are_enough_only_where_exactness_is_declared() -> None:
    same = np.full(FEWEST, 0.3)
    exact = mean_interval(same, alpha=1e-6, numerical=0.001, exact=True)
    assert_allclose([exact.lower, exact.upper], [0.299, 0.301])
    assert exact.obstacle == ""
    assert mean_interval(same[:-1], alpha=1e-6, exact=True).obstacle == "zero variance"


# --- ratios


def fieller(a: np.ndarray, b: np.ndarray, k: float) -> list[float]:
    """Roots of (mean a - r mean b)^2 = k^2 var(a - r b) / n, a quadratic in r."""
    (aa, ab), (_, bb) = np.outer(means := [a.mean(), b.mean()], means) - k**2 * np.cov(a, b) / len(a)
    return sorted(np.roots([bb, -2 * ab, aa]).real)


@pytest.mark.parametrize("slope", [2.0, -3.0, 0.0])
def test_ratio_interval_is_fiellers(slope: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the widening for skewness, which depends on the ratio tried, the inversion is a quadratic."""
    monkeypatch.setattr("verify.judging.intervals.widened", lambda k, n, skewness: k)
    rng = default_rng(5)
    b = rng.normal(2.0, 1.0, 400)
    a = slope * b + rng.normal(size=400)
    found = ratio_interval(a, b, alpha=1e-4)
    assert_allclose([found.lower, found.upper], fieller(a, b, multiplier(400, 1e-4)), rtol=1e-9)
    assert_allclose(found.estimate, a.mean() / b.mean())


@pytest.mark.parametrize(
    ("denominator", "obstacle"),
    [
        (default_rng(7).normal(0.1, 1.0, 100), "denominator not resolved from 0"),
        (default_rng(7).normal(-9.0, 1.0, 100), "denominator not resolved from 0"),
        (heavy(), SKEWED),
        (np.ones(FEWEST - 1), "zero variance"),
    ],
)
def test_ratio_needs_a_denominator_resolved_from_zero(denominator: np.ndarray, obstacle: str) -> None:
    a = default_rng(8).normal(size=len(denominator))
    found = ratio_interval(a, denominator, alpha=1e-3)
    assert found.obstacle == obstacle and (found.lower, found.upper) == (-math.inf, math.inf)


def test_ratio_of_proportional_replicates_does_not_vary() -> None:
    b = default_rng(9).normal(5.0, 1.0, 100)
    assert ratio_interval(2 * b, b, alpha=1e-3).obstacle == "zero variance"


# --- proportions


def mixture_over_likelihood(p: float, h: int, n: int) -> float:
    """Mixture over likelihood with Jeffreys' prior, by quadrature: p = sin^2 x makes the prior uniform."""
    with mp.workdps(40):

        def likelihood(p: mp.mpf) -> mp.mpf:
            return mp.mpf(p) ** h * (1 - mp.mpf(p)) ** (n - h)

        peak = mp.asin(mp.sqrt(mp.mpf(h) / n))
        steps = sorted(
            {mp.mpf(0), mp.pi / 2, *(min(max(peak + j / mp.sqrt(n), 0), mp.pi / 2) for j in range(-6, 7))}
        )
        return float(mp.quad(lambda x: likelihood(mp.sin(x) ** 2), steps) * 2 / mp.pi / likelihood(p))


@pytest.mark.parametrize(("h", "n"), [(0, 96), (3, 128), (64, 128), (128, 128), (517, 1024)])
@pytest.mark.parametrize("alpha", [1e-2, ALPHA])
def test_proportion_interval_is_where_the_beta_mixture_reaches_one_over_alpha(
    h: int, n: int, alpha: float
) -> None:
    found = proportion_interval(h, n, alpha=alpha)
    turned = proportion_interval(n - h, n, alpha=alpha)
    assert (found.lower == 0) == (h == 0) and (found.upper == 1) == (h == n)
    ends = [end for end in (found.lower, found.upper) if 0 < end < 1]
    assert_allclose([alpha * mixture_over_likelihood(p, h, n) for p in ends], 1.0, rtol=1e-6)
    assert_allclose([1 - turned.upper, 1 - turned.lower], [found.lower, found.upper], atol=1e-12)
    assert found.estimate == h / n


def test_a_proportion_waits_for_enough_replicates() -> None:
    found = proportion_interval(5, FEWEST - 1, alpha=1e-2)
    assert found.obstacle == "too few replicates" and found.half_width == math.inf


# --- the promise: never missing, at all looks together
