"""What a run could have seen, in a sentence: the deviations it excludes, and those it would have caught."""

from __future__ import annotations

import math

from verify.judging.properties import Explored
from verify.model import Claim, ExactProperty, Kind, StatisticalProperty, Verdict
from verify.results import PointOutcome

__all__ = ["claim_power", "digits", "explored_power"]

LOOSE = 1.05
"""From this factor on a bound is said to be loose."""

NOTHING = "No interval yet: this run excludes nothing."
TIMES = 2.0
"""From here on a relative deviation reads better as a factor than in percent."""


def claim_power(claim: Claim, outcomes: list[PointOutcome]) -> str:
    """Which deviations this run excludes, in the words of the kind."""
    disagreeing = any(o.verdict == Verdict.DISAGREES for o in outcomes)
    if claim.kind.bounds_every_replicate:
        return _seen(outcomes) if disagreeing else _never_seen(outcomes)
    if claim.kind.one_sided and not disagreeing:
        return _bound_power(claim, outcomes)
    if claim.kind is Kind.DISTRIBUTION and not disagreeing:
        return _distance_power(outcomes)
    return _power(claim.relative, outcomes)


def _power(relative: bool, outcomes: list[PointOutcome]) -> str:
    """Which deviations this run excludes, and which it would have caught, at its least sharp point."""
    wrong = [o for o in outcomes if o.verdict == Verdict.DISAGREES]
    if wrong:
        return _shortfall(relative, wrong)
    if _blank(outcomes):
        return NOTHING
    scales = _scales(relative, outcomes)
    excluded = max(
        (abs(o.measured - o.predicted) + _half(o)) / s for o, s in zip(outcomes, scales, strict=True)
    )
    return (
        f"A deviation beyond {_size(excluded, relative)} is excluded by this run; "
        f"one beyond {_size(_caught(relative, outcomes), relative)} would have been caught."
    )


def _bound_power(claim: Claim, outcomes: list[PointOutcome]) -> str:
    """How far the mean is from its bound, and how strong a bound this run would have broken."""
    if _blank(outcomes):
        return NOTHING
    side = "above" if claim.kind is Kind.AT_LEAST else "below"
    tightest = min(outcomes, key=lambda o: abs(o.measured - o.predicted) / o.margin)
    limit = tightest.upper + tightest.margin if side == "above" else tightest.lower - tightest.margin
    return (
        f"Where it is tightest the mean is {tightest.measured:.3g}, the bound {tightest.predicted:.3g}; "
        f"a bound {side} {limit:.3g} would have been broken.{_looseness(outcomes)}"
    )


def _looseness(outcomes: list[PointOutcome]) -> str:
    """That a bound holds says little if much stronger ones hold too."""
    slacks = [o.slack for o in outcomes if o.slack is not None and o.slack > 0]
    tightest = min((max(s, 1 / s) for s in slacks), default=1.0)
    return f" It holds, loose by a factor of {tightest:.2g}." if tightest >= LOOSE else ""


def _seen(outcomes: list[PointOutcome]) -> str:
    broken = [o for o in outcomes if o.violations]
    first = broken[0].violations[0]
    return (
        f"Broken: by {_size(first.by, False)} in replicate {first.replicate}, and in "
        f"{100 * max(o.measured for o in broken):.2g} % of the replicates where it is worst. One is enough."
    )


def _never_seen(outcomes: list[PointOutcome]) -> str:
    rarest = max(o.upper for o in outcomes)
    if not math.isfinite(rarest):
        return NOTHING
    return f"No violation in any replicate: they are rarer than {100 * rarest:.2g} %.{_looseness(outcomes)}"


def _distance_power(outcomes: list[PointOutcome]) -> str:
    if _blank(outcomes):
        return NOTHING
    excluded = max(o.upper for o in outcomes)
    caught = max(o.margin + 2 * _half(o) for o in outcomes)
    return (
        f"Distribution functions that differ by more than {_size(excluded, False)} somewhere are excluded by this "
        f"run; a difference of {_size(caught, False)} would have been caught."
    )


def _blank(outcomes: list[PointOutcome]) -> bool:
    return any(not math.isfinite(o.lower + o.upper) or not math.isfinite(o.predicted) for o in outcomes)


def _half(outcome: PointOutcome) -> float:
    return max(outcome.upper - outcome.measured, outcome.measured - outcome.lower)


def _scales(relative: bool, outcomes: list[PointOutcome]) -> list[float]:
    return [abs(o.predicted) if relative and o.predicted else 1.0 for o in outcomes]


def _caught(relative: bool, outcomes: list[PointOutcome]) -> float:
    return max(
        (o.margin + 2 * _half(o)) / s for o, s in zip(outcomes, _scales(relative, outcomes), strict=True)
    )


def _shortfall(relative: bool, wrong: list[PointOutcome]) -> str:
    """By how much a rejected formula is off, at least, where it is off the most."""
    if any(not math.isfinite(o.predicted) for o in wrong):
        return "It gives no finite number."
    gaps = [
        max(o.lower - o.predicted, o.predicted - o.upper)
        / (abs(o.measured) if relative and o.measured else 1.0)
        for o in wrong
    ]
    gap = max(gaps)
    return f"It is off by at least {_size(gap, relative)}{' of' * (gap < TIMES) if relative else ''}" + (
        " what was measured." if relative else "."
    )


def explored_power(claim: ExactProperty | StatisticalProperty, explored: Explored) -> str:
    """What all examples of a property together could have seen."""
    count = len(explored.outcomes)
    if explored.failing:
        return f"{count} examples tried; the simplest that disagrees is shown."
    if isinstance(claim, ExactProperty):
        return f"None of {count} examples violates it by more than {claim.tolerance:.1g}."
    decided = [o for o in explored.outcomes if math.isfinite(o.lower + o.upper)]
    return (
        f"{count} examples. {_power(claim.relative, decided)}"
        if decided
        else f"{count} examples, none decided."
    )


def digits(difference: float) -> str:
    """Digits to which two routes agree, in words where there are none or all."""
    if difference >= 1.0:
        return "no"
    return "all" if difference == 0.0 else f"{-math.log10(difference):.1f}"


def _size(value: float, relative: bool) -> str:
    if relative and value >= TIMES:
        return f"{value:.2g} times"
    return f"{100 * value:.2g} %" if relative else f"{value:.2g}"
