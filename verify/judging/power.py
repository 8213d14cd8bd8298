"""What a run could have seen, in a sentence: the deviations it excludes, and those it would have caught."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from verify.judging.properties import Explored
from verify.model import (
    BOUNDS_EVERY_REPLICATE,
    ONE_SIDED,
    Claim,
    ExactProperty,
    Kind,
    StatisticalProperty,
    Verdict,
    raised,
)
from verify.results import PointOutcome

__all__ = ["Power", "claim_power", "explored_power", "explored_sensitivity", "factor"]

LOOSE = 1.05
"""From this factor on a bound is said to be loose."""

NOTHING = "No interval yet: this run excludes nothing."
TIMES = 2.0
"""From here on a relative deviation reads better as a factor than in percent."""


class Power(NamedTuple):
    """Which deviations a run excludes, in a sentence, and the smallest error that it is sure to tell, if any."""

    words: str
    sensitivity: float | None


class _Unit(NamedTuple):
    """How a deviation is told: in percent of a number, as a factor where the numbers are logarithms, else plainly."""

    relative: bool
    logarithm: str = ""

    def size(self, value: float) -> str:
        """A deviation in words."""
        if self.logarithm:
            return factor(self.logarithm, value)
        if self.relative and value >= TIMES:
            return f"{number(value)} times"
        return f"{number(100 * value)} %" if self.relative else number(value)

    def told(self, value: float) -> str:
        """A mean or a bound, of logarithms what they are logarithms of."""
        return number(raised(self.logarithm, value) if self.logarithm else value, 3)


_PLAIN = _Unit(relative=False)


def _unit(claim: Claim) -> _Unit:
    return _Unit(claim.relative, claim.logarithm)


def claim_power(claim: Claim, outcomes: list[PointOutcome]) -> Power:
    """What a run could have seen of a claim, in the words and the unit of its kind."""
    return Power(_claim_words(claim, outcomes), _claim_sensitivity(claim, outcomes))


def _claim_words(claim: Claim, outcomes: list[PointOutcome]) -> str:
    disagreeing = any(o.verdict == Verdict.DISAGREES for o in outcomes)
    if claim.kind in BOUNDS_EVERY_REPLICATE:
        return _seen(outcomes) if disagreeing else _never_seen(outcomes)
    if claim.kind in ONE_SIDED and not disagreeing:
        return _bound_power(claim, outcomes)
    if claim.kind is Kind.DISTRIBUTION and not disagreeing:
        return _distance_power(outcomes)
    return _power(_unit(claim), outcomes)


def _claim_sensitivity(claim: Claim, outcomes: list[PointOutcome]) -> float | None:
    r"""The smallest error of the theory that a run as sharp as this one is sure to tell from the truth.

    With margin :math:`\delta` and half-width :math:`h` this is :math:`\delta + 2 h`, at the least sharp point: an
    interval that holds the truth then lies outside of the margin. Of a bound on a mean it is how much stronger the
    bound may be before the interval at hand breaks it; of one on every replicate the share of violations that would
    not have stayed unseen.

    Returns
    -------
    A fraction of the prediction where the margin is relative, else in the unit of the margin; None without an
    interval, and for a bound that a replicate breaks, where one is enough.
    """
    disagreeing = any(o.verdict == Verdict.DISAGREES for o in outcomes)
    if _blank(outcomes) or (claim.kind in BOUNDS_EVERY_REPLICATE and disagreeing):
        return None
    if claim.kind in BOUNDS_EVERY_REPLICATE:
        return max(o.upper for o in outcomes)
    if claim.kind in ONE_SIDED and not disagreeing:
        return _stronger(claim, outcomes)
    return _caught(claim.relative, outcomes)


def explored_sensitivity(claim: ExactProperty | StatisticalProperty, explored: Explored) -> float | None:
    """The same of a property, at the least sharp of the examples that were decided."""
    if isinstance(claim, ExactProperty):
        return claim.tolerance
    decided = [o for o in explored.outcomes if math.isfinite(o.lower + o.upper)]
    return _caught(claim.relative, decided) if decided else None


def _power(unit: _Unit, outcomes: list[PointOutcome]) -> str:
    """Which deviations this run excludes, and which it would have caught, at its least sharp point."""
    wrong = [o for o in outcomes if o.verdict == Verdict.DISAGREES]
    if wrong:
        return f"{_shortfall(unit, wrong, outcomes)}{_seen_from(unit, outcomes)}"
    if _blank(outcomes):
        return NOTHING
    scales = _scales(unit.relative, outcomes)
    excluded = max(
        (abs(o.measured - o.predicted) + _half(o)) / s for o, s in zip(outcomes, scales, strict=True)
    )
    return (
        f"A deviation beyond {unit.size(excluded)} is excluded by this run; "
        f"one beyond {unit.size(_caught(unit.relative, outcomes))} would have been caught."
        f"{_everywhere(unit, outcomes)}"
    )


def _everywhere(unit: _Unit, outcomes: list[PointOutcome]) -> str:
    """What a formula that is wrong by as much at every point may not exceed: its sharpest point tells.

    Never in percent of a prediction where the margin is not: it may be an exponent or a logarithm, which can be 0.
    """
    known = [o for o in outcomes if o.predicted or not unit.relative]
    if not known:
        return ""
    sharpest = min(
        (o.margin + 2 * _half(o)) / s for o, s in zip(known, _scales(unit.relative, known), strict=True)
    )
    if unit.size(sharpest) == unit.size(_caught(unit.relative, outcomes)):
        return ""
    return f" A theory off by {unit.size(sharpest)} at every point would have been told from the truth."


def _seen_from(unit: _Unit, outcomes: list[PointOutcome]) -> str:
    return (
        ""
        if _blank(outcomes)
        else f" From {unit.size(_caught(unit.relative, outcomes))} on it would be seen."
    )


def _bound_power(claim: Claim, outcomes: list[PointOutcome]) -> str:
    """How far the mean is from its bound, and how strong a bound this run would have broken."""
    if _blank(outcomes):
        return NOTHING
    side = "above" if claim.kind is Kind.AT_LEAST else "below"
    tightest = _tightest(outcomes)
    unit = _unit(claim)
    mean = "geometric mean" if unit.logarithm else "mean"
    return (
        f"Where it is tightest the {mean} is {unit.told(tightest.measured)}, "
        f"the bound {unit.told(tightest.predicted)}; "
        f"a bound {side} {unit.told(_breaking(claim, tightest))}, "
        f"stronger by {unit.size(_stronger(claim, outcomes))}, would have been broken."
        f"{_looseness(outcomes)}"
    )


def _tightest(outcomes: list[PointOutcome]) -> PointOutcome:
    return min(outcomes, key=lambda o: abs(o.measured - o.predicted) / o.margin)


def _breaking(claim: Claim, at: PointOutcome) -> float:
    """The weakest bound that the interval at hand breaks."""
    return at.upper + at.margin if claim.kind is Kind.AT_LEAST else at.lower - at.margin


def _stronger(claim: Claim, outcomes: list[PointOutcome]) -> float:
    at = _tightest(outcomes)
    return abs(_breaking(claim, at) - at.predicted) / _scales(claim.relative, [at])[0]


def _looseness(outcomes: list[PointOutcome]) -> str:
    """That a bound holds says little if much stronger ones hold too."""
    slacks = [o.slack for o in outcomes if o.slack is not None and o.slack > 0]
    tightest = min((max(s, 1 / s) for s in slacks), default=1.0)
    return f" It holds, loose by a factor of {number(tightest)}." if tightest >= LOOSE else ""


def _seen(outcomes: list[PointOutcome]) -> str:
    broken = [o for o in outcomes if o.violations]
    first = broken[0].violations[0]
    return (
        f"Broken: by {number(first.by)} in replicate {first.replicate}, and in "
        f"{number(100 * max(o.measured for o in broken))} % of the replicates where it is worst. One is enough."
    )


def _never_seen(outcomes: list[PointOutcome]) -> str:
    rarest = max(o.upper for o in outcomes)
    if not math.isfinite(rarest):
        return NOTHING
    return (
        f"No violation in any replicate: they are rarer than {number(100 * rarest)} %.{_looseness(outcomes)}"
    )


def _distance_power(outcomes: list[PointOutcome]) -> str:
    if _blank(outcomes):
        return NOTHING
    excluded = max(o.upper for o in outcomes)
    caught = max(o.margin + 2 * _half(o) for o in outcomes)
    return (
        f"Distribution functions that differ by more than {_PLAIN.size(excluded)} somewhere are excluded by this "
        f"run; a difference of {_PLAIN.size(caught)} would have been caught."
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


def _shortfall(unit: _Unit, wrong: list[PointOutcome], outcomes: list[PointOutcome]) -> str:
    """By how much a rejected formula is off, at least, where it is off the most: at other points it may be less."""
    if any(not math.isfinite(o.predicted) for o in wrong):
        return "It gives no finite number."
    gap = max(
        max(o.lower - o.predicted, o.predicted - o.upper)
        / (abs(o.measured) if unit.relative and o.measured else 1.0)
        for o in wrong
    )
    told = f"{unit.size(gap)}{' of' * (gap < TIMES)} what was measured" if unit.relative else unit.size(gap)
    return f"{'At its worst point it' if len(outcomes) > 1 else 'It'} is off by at least {told}."


def explored_power(claim: ExactProperty | StatisticalProperty, explored: Explored) -> str:
    """What all examples of a property together could have seen."""
    return f"{_power_of_examples(claim, explored)}{_again(explored.again)}"


def _power_of_examples(claim: ExactProperty | StatisticalProperty, explored: Explored) -> str:
    count = len(explored.outcomes)
    if explored.failing:
        return f"{count} examples tried; the simplest that disagrees is shown."
    if isinstance(claim, ExactProperty):
        return f"None of {count} examples violates it by more than {claim.tolerance:.1g}."
    decided = [o for o in explored.outcomes if math.isfinite(o.lower + o.upper)]
    return (
        f"{count} examples. {_power(_Unit(claim.relative), decided)}"
        if decided
        else f"{count} examples, none decided."
    )


def _again(outcomes: Sequence[PointOutcome]) -> str:
    """What became of examples that failed once, on which no verdict rests."""
    told = [
        f"{', '.join(f'{name} {value}' for name, value in o.parameters.items())}: {o.verdict}"
        for o in outcomes
    ]
    return f" In addition, not counted, what failed once: {'; '.join(told)}." if told else ""


# --- numbers in sentences: plainly, and differences of logarithms as the factors that they stand for


def number(value: float, digits: int = 2) -> str:
    """A number to so many significant digits, large ones without a power of ten.

    >>> number(168.3), number(99.7), number(0.01234), number(9.5e-8), number(618.4, 3), number(2.44e7)
    ('170', '100', '0.012', '9.5e-08', '618', '24000000')
    """
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:.0f}" if 1e6 <= abs(rounded) < 1e15 else f"{rounded:g}"


def factor(logarithm: str, difference: float) -> str:
    """A difference of logarithms to a base as the factor between the two numbers; one near 1 to more digits.

    >>> factor("10", 0.2), factor("e", 0.0218), factor("2", -1.0)
    ('a factor of 1.6', 'a factor of 1.022', 'a factor of 2')
    """
    by = raised(logarithm, abs(difference))
    beyond = by - 1.0
    digits = 2 if not 0 < beyond < 0.1 else min(2 - math.floor(math.log10(beyond)), 12)
    return f"a factor of {number(by, digits)}"
