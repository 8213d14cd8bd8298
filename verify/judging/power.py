"""Power of a run, in a sentence: the deviations it excludes, and those it would have caught."""

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

TIMES = 2.0
"""Relative deviation from which on a factor reads better than percent."""

Outcomes = Sequence[PointOutcome]


class Power(NamedTuple):
    """Deviations that a run excludes, in a sentence, and the smallest error it is sure to detect, if any."""

    words: str
    sensitivity: float | None = None


NOTHING = Power("No interval yet: this run excludes nothing.")


class _Unit(NamedTuple):
    """Unit of a deviation: percent of a number, a factor where the numbers are logarithms, or the plain number."""

    relative: bool
    logarithm: str = ""

    def size(self, value: float) -> str:
        """A deviation in words."""
        if self.logarithm:
            return factor(self.logarithm, value)
        if self.relative and value >= TIMES:
            return f"{number(value)} times"
        return f"{number(100 * value)} %" if self.relative else number(value)

    def scale(self, at: PointOutcome) -> float:
        """Scale that deviations at a point are relative to."""
        return abs(at.predicted) if self.relative and at.predicted else 1.0

    def caught(self, at: PointOutcome) -> float:
        """Smallest error that is sure to be detected at a point."""
        return (at.margin + 2 * at.half_width) / self.scale(at)


def claim_power(claim: Claim, outcomes: Outcomes) -> Power:
    r"""Return the power of a run for a claim, in the words and the unit of its kind.

    With margin :math:`\delta` and half-width :math:`h` the smallest error of the theory that a run as sharp as this one
    is sure to detect is :math:`\delta + 2 h`, at the least sharp point: an interval that holds the truth
    then lies outside of the margin. For a bound on a mean it is how much stronger the bound may be before this interval
    breaks it; for a bound on every replicate the share of violations that would have been seen.

    It is a fraction of the prediction where the margin is relative, else in the unit of the margin; None without an
    interval, and for a bound that a replicate breaks, where one is enough.
    """
    unit = _Unit(claim.relative, claim.logarithm)
    disagreeing = any(o.verdict == Verdict.DISAGREES for o in outcomes)
    if claim.kind in BOUNDS_EVERY_REPLICATE:
        return _violations(outcomes, disagreeing)
    if claim.kind not in ONE_SIDED or disagreeing or _lacks_intervals(outcomes):
        return _power(unit, outcomes)
    at = min(outcomes, key=lambda o: abs(o.measured - o.predicted) / o.margin)
    # the weakest bound that the interval at hand breaks
    breaking = at.upper + at.margin if claim.kind is Kind.AT_LEAST else at.lower - at.margin
    stronger = abs(breaking - at.predicted) / unit.scale(at)
    return Power(f"A bound stronger by {unit.size(stronger)} would have been broken.", stronger)


def _power(unit: _Unit, outcomes: Outcomes) -> Power:
    """Return the deviations that this run excludes, and those it would have caught, at its least sharp point."""
    blank, wrong = _lacks_intervals(outcomes), [o for o in outcomes if o.verdict == Verdict.DISAGREES]
    caught = None if blank else max(map(unit.caught, outcomes))
    if wrong:
        would_show = "" if caught is None else f" From {unit.size(caught)} on it would be seen."
        return Power(f"{_shortfall(unit, wrong, outcomes)}{would_show}", caught)
    if caught is None:
        return NOTHING
    excluded = max((abs(o.measured - o.predicted) + o.half_width) / unit.scale(o) for o in outcomes)
    return Power(
        f"A deviation beyond {unit.size(excluded)} is excluded by this run; "
        f"one beyond {unit.size(caught)} would have been caught.",
        caught,
    )


def _violations(outcomes: Outcomes, broken: bool) -> Power:
    if broken:
        return Power(f"Broken in {number(100 * max(o.measured for o in outcomes))} % of the replicates.")
    if _lacks_intervals(outcomes):
        return NOTHING
    rarest = max(o.upper for o in outcomes)
    return Power(f"No violation in any replicate: they are rarer than {number(100 * rarest)} %.", rarest)


def _lacks_intervals(outcomes: Outcomes) -> bool:
    return any(not math.isfinite(o.lower + o.upper) or not math.isfinite(o.predicted) for o in outcomes)


def _shortfall(unit: _Unit, wrong: Outcomes, outcomes: Outcomes) -> str:
    """Return the least error of a rejected formula, at the point where it is largest."""
    if any(not math.isfinite(o.predicted) for o in wrong):
        return "It gives no finite number."
    # The formula is wrong, and may predict 0: what was measured is the scale.
    gap = max(
        max(o.lower - o.predicted, o.predicted - o.upper)
        / (abs(o.measured) if unit.relative and o.measured else 1.0)
        for o in wrong
    )
    least = f"{unit.size(gap)}{' of' * (gap < TIMES)} what was measured" if unit.relative else unit.size(gap)
    return f"{'At its worst point it' if len(outcomes) > 1 else 'It'} is off by at least {least}."


def explored_power(claim: ExactProperty | StatisticalProperty, explored: Explored) -> Power:
    """Power over all examples of a property; sensitivity at the least sharp of those that were decided."""
    count = len(explored.outcomes)
    decided = [o for o in explored.outcomes if math.isfinite(o.lower + o.upper)]
    if isinstance(claim, ExactProperty):
        sensitivity = claim.tolerance
        words = f"None of {count} examples violates it by more than {sensitivity:.1g}."
    elif decided:
        words, sensitivity = _power(_Unit(claim.relative), decided)
        words = f"{count} examples. {words}"
    else:
        words, sensitivity = f"{count} examples, none decided.", None
    if explored.failing:
        words = f"{count} examples tried; the simplest that disagrees is shown."
    if explored.again:  # examples that failed once, on which no verdict rests
        listed = [
            f"{', '.join(f'{name} {value}' for name, value in o.parameters.items())}: {o.verdict}"
            for o in explored.again
        ]
        words += f" In addition, not counted, what failed once: {'; '.join(listed)}."
    return Power(words, sensitivity)


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
