"""Whole distributions, against other routes to the same number."""

import math

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy import stats

from tests.verify.judging.by_hand import POINT, exponential, judged, law, most, recorded
from verify.judging.estimands import formula_distance
from verify.judging.intervals import FEWEST, distance_interval, doublings, largest_distance
from verify.model import Verdict

# --- distributions


@pytest.mark.parametrize("digits", [16, 1])
@pytest.mark.parametrize("n", [1, 64, 1000])
def test_the_distance_is_kolmogorovs(n: int, digits: int) -> None:
    """Ties in the sample included; scipy has no laws with atoms."""
    x = default_rng(4).exponential(1.3, n).round(digits)
    found = largest_distance(x, exponential(1.0))
    assert_allclose(found, stats.kstest(x, stats.expon.cdf).statistic, rtol=1e-12)


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_the_distance_from_a_law_with_atoms_is_that_of_the_probabilities(p: float) -> None:
    x = default_rng(5).binomial(6, 0.3, 500).astype(float)
    grid = np.arange(-1, 8)
    direct = max(abs((x <= k).mean() - stats.binom.cdf(k, 6, p)) for k in grid)
    assert_allclose(largest_distance(x, lambda t: stats.binom.cdf(t, 6, p)), direct, atol=1e-12)


def test_the_radius_is_massarts_at_every_doubling() -> None:
    x = default_rng(6).random(1000)
    spent = 0.0
    for k, n in enumerate((96, 192, 384, 768), start=1):
        found = distance_interval(x[:n], lambda t: np.clip(t, 0, 1), alpha=0.01)
        share = 2 * math.exp(-2 * n * (found.upper - found.estimate) ** 2)
        assert_allclose(share, 0.01 / (k * (k + 1)))
        spent += share
    assert spent < 0.01
    assert [doublings(n) for n in (0, 95, 96, 191, 192, 6144, 12000)] == [0, 0, 96, 96, 192, 6144, 6144]
    assert distance_interval(x[: FEWEST - 1], np.sin, alpha=0.01).obstacle == "too few replicates"


@pytest.mark.parametrize("alpha", [0.05, 1e-2])
def test_a_distribution_keeps_its_promise_over_all_looks(alpha: float) -> None:
    """The distance of the true law is 0, so the interval misses if its lower end is above 0."""
    rng, count = default_rng(7), 300
    missed = 0
    for _ in range(count):
        x = rng.exponential(size=1536)
        looks = (distance_interval(x[:n], exponential(1.0), alpha=alpha) for n in (96, 192, 384, 768, 1536))
        missed += any(i.lower > 0 for i in looks)
    assert missed <= most(alpha, count)


def test_a_law_is_judged() -> None:
    y = default_rng(9).exponential(size=6144 + 500)
    rivals = {"twice": lambda p: exponential(2.0), "near": lambda p: exponential(1.01)}
    found = recorded(law(exponential(1.0), rivals=rivals), y)
    assert (found.verdict, found.replicates, found.predicted) == ("agrees", 6144, 0.0)
    assert found.measured == largest_distance(y[:6144], exponential(1.0)) and not found.offset_resolved
    assert {r.name: r.rejected for r in found.rivals} == {"twice": True, "near": False}
    assert_allclose(found.rivals[0].value, 0.25, atol=1e-5)  # |e^-t/2 - e^-t| at t = 2 ln 2
    wrong = recorded(law(exponential(2.0)), y)
    assert wrong.verdict == "disagrees" and wrong.lower > 0.1
    x, predicted = np.array([[p.x, p.predicted] for p in found.profile]).T
    assert (x[0], x[-1], found.profile[-1].measured) == (y[:6144].min(), y[:6144].max(), 1.0)
    assert all(p.lower <= p.measured <= p.upper for p in found.profile)
    assert_allclose(predicted, exponential(1.0)(x))
    assert recorded(law(exponential(1.0)), y[:32]).profile == []


def test_a_law_that_is_no_number_disagrees() -> None:
    y = default_rng(9).exponential(size=256)
    tested = law(lambda t: np.full_like(np.asarray(t, dtype=float), math.nan))
    found = judged(tested, y)
    assert found.verdict is Verdict.DISAGREES and math.isnan(found.predicted)
    assert judged(tested, y[:32]).verdict is Verdict.UNDECIDED
    assert formula_distance(tested, POINT, lambda p: exponential(1.0), tested.predict) == math.inf


def test_the_replicates_a_distribution_still_needs_are_a_look() -> None:
    y = default_rng(9).exponential(size=8192)
    found = recorded(law(exponential(1.0)), y[:512])
    assert found.reason == "budget"
    assert doublings(int(found.needed)) == found.needed > 512
    assert judged(law(exponential(1.0)), y[: int(found.needed)]).verdict is Verdict.AGREES


@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_laws_of_any_scale_are_told_apart(scale: float) -> None:
    one, other = (lambda p, s=s: exponential(s) for s in (scale, 2 * scale))
    assert_allclose(formula_distance(law(one), POINT, other, one), 0.25, atol=1e-4)
