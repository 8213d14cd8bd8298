"""Bounds on every replicate and on means: one violation is enough, and how loose they are."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate.monte_carlo import BLOCK
from tests.verify.judging.by_hand import POINT, judged, recorded, spread_evenly, tight as claim
from verify.judging.estimands import Estimand, excesses
from verify.judging.intervals import FEWEST
from verify.model import ALPHA, Claim, Kind, Verdict

# --- bounds on every replicate


def bound(kind: Kind, **changes) -> Claim:
    return claim(kind, **{"relative": False, "margin": 0.05, **changes})


@pytest.mark.parametrize(("kind", "sign"), [(Kind.NEVER_ABOVE, 1), (Kind.NEVER_BELOW, -1)])
def test_one_violation_in_many_is_enough_and_kept_with_its_replicate(kind: Kind, sign: int) -> None:
    y = sign * np.linspace(1.0, 2.0, 4096)
    rivals = {"stronger": lambda p: 1.5 * sign, "weaker": lambda p: 9.0 * sign}
    tested = bound(kind, predict=lambda p: 3.0 * sign, rivals=rivals)
    found = recorded(tested, y)
    assert found.verdict == "agrees" and {r.name: r.rejected for r in found.rivals} == {
        "stronger": True,
        "weaker": False,
    }
    assert_allclose([r.value for r in found.rivals], [0.5, 0.0], atol=0.01)
    y[1234] = 3.25 * sign
    found = recorded(tested, y)
    assert found.verdict == "disagrees" and not found.reason
    assert [(v.replicate, v.by) for v in found.violations] == [(1234, 0.25)]
    assert found.measured == 1 / 4096 and 0 < found.lower < 1 / 4096 < found.upper
    y[[7, 300, *range(2000, 2020)]] = 4 * sign
    kept = recorded(tested, y).violations
    assert [v.replicate for v in kept] == [7, 300, 1234, *range(2000, 2005)]


def test_a_violation_counts_before_any_interval_does() -> None:
    y = np.append(np.ones(15), 4.0)
    assert judged(bound(Kind.NEVER_ABOVE), y).verdict is Verdict.DISAGREES
    assert judged(bound(Kind.NEVER_ABOVE), np.ones(16)).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(("by", "verdict"), [(1e-9, Verdict.AGREES), (1.1e-9, Verdict.DISAGREES)])
def test_rounding_is_no_violation(by: float, verdict: Verdict) -> None:
    y = np.append(np.zeros(1023), by)
    tested = bound(Kind.NEVER_ABOVE, predict=lambda p: 0.0, numerical=1e-9)
    assert judged(tested, y).verdict is verdict
    assert judged(replace(tested, numerical=0.0), y).verdict is Verdict.DISAGREES


def test_a_bound_on_a_measured_input_is_compared_replicate_by_replicate() -> None:
    x = np.linspace(1.0, 2.0, 1024)
    tested = bound(Kind.NEVER_ABOVE, predict=lambda p: p.x**2, inputs={"x": 1.5})
    assert judged(tested, x, x=x).verdict is Verdict.AGREES
    beyond = excesses(
        Estimand(tested, tested.predict, "y", POINT, {"y": np.where(x > 1.9, 4.0, x), "x": x}, ALPHA)
    )
    assert_allclose(beyond, np.where((x > 1.9) & (x < 2), 4 - x**2, 0.0))


@pytest.mark.parametrize("kind", [Kind.NEVER_ABOVE, Kind.NEVER_BELOW])
def test_a_bound_that_is_no_number_is_violated(kind: Kind) -> None:
    x = np.linspace(-0.1, 1.0, 1024)
    tested = bound(kind, predict=lambda p: (p.x + 0j) ** 0.5 if kind is Kind.NEVER_ABOVE else np.log(p.x))
    tested = replace(tested, inputs={"x": 0.5})
    with np.errstate(invalid="ignore", divide="ignore"):
        found = recorded(tested, np.zeros(1024) if kind is Kind.NEVER_ABOVE else np.ones(1024), x=x)
    assert found.verdict == "disagrees"
    assert found.violations[0].replicate == 0 and found.violations[0].by == math.inf


@pytest.mark.parametrize("n", [FEWEST, 100, 4096])
def test_what_was_never_seen_is_rarer_than_ln_one_over_alpha_in_n(n: int) -> None:
    """Also at every n at once: the first n at which a rate would be missed has a chance below alpha by itself."""
    found = judged(bound(Kind.NEVER_ABOVE), np.ones(n)).interval
    assert (found.estimate, found.lower) == (0.0, 0.0)
    assert_allclose(found.upper, math.log(1 / ALPHA) / n)
    rate = found.upper * 1.0001
    assert (1 - rate) ** n < ALPHA


def test_the_replicates_that_a_bound_still_needs_are_those_at_which_it_agrees() -> None:
    tested = bound(Kind.NEVER_ABOVE, margin=0.004)
    found = recorded(tested, np.ones(FEWEST))
    assert found.reason == "budget" and found.needed == BLOCK * math.ceil(math.log(1 / ALPHA) / 0.004 / BLOCK)
    assert judged(tested, np.ones(int(found.needed))).verdict is Verdict.AGREES
    assert judged(tested, np.ones(int(found.needed) - BLOCK)).verdict is Verdict.UNDECIDED


# --- bounds on means, and how loose they are


@pytest.mark.parametrize(
    ("kind", "y", "slack"),
    [
        (Kind.NEVER_ABOVE, np.linspace(0.0, 1.5, 64), 0.5),  # the closest replicate, not the mean
        (Kind.NEVER_BELOW, np.linspace(4.5, 90.0, 64), 1.5),
        (Kind.MEAN, spread_evenly(3.0, 0.1), None),
    ],
)
def test_slack_is_what_was_measured_over_its_bound(kind: Kind, y: np.ndarray, slack: float | None) -> None:
    """A bound of zero or NaN has no slack."""
    tested = claim(kind, relative=False, margin=0.05)
    assert recorded(tested, y).slack == (None if slack is None else pytest.approx(slack))
    for value in (0.0, math.inf, math.nan):
        assert recorded(replace(tested, predict=lambda p, v=value: v), -y).slack is None
