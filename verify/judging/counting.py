"""Statistical intervals that claims use of those of their family."""

from __future__ import annotations

from collections.abc import Iterable

from simulate.monte_carlo import Point
from verify.judging.estimands import components
from verify.judging.judge import applies, readings
from verify.model import ABSOLUTE, MODEL_BASED, AnyClaim, Claim, Kind, StatisticalProperty

__all__ = ["intervals"]


def intervals(listed: Iterable[AnyClaim]) -> int:
    """Statistical intervals of these claims; two readings of one score share one, so do a property's examples."""
    return sum(
        sum(_intervals_at(c, point) for point in c.experiment.points)
        if isinstance(c, Claim)
        else int(isinstance(c, StatisticalProperty))
        for c in listed
    )


def _intervals_at(claim: Claim, point: Point) -> int:
    """Model-based claims have none in the family; a settled mean has one for the mean and one for its drift."""
    if claim.kind in MODEL_BASED:
        return 0
    each = 2 if claim.kind is Kind.SETTLED else 1
    return each * sum(len(_scores_read(claim, at)) for at in components(claim, point))


def _scores_read(claim: Claim, point: Point) -> set[tuple[object, object]]:
    judged = [r for r in readings(claim) if applies(claim, r, point)]
    own = claim.inputs or claim.kind in ABSOLUTE
    return {(r.score, r.predict if own else None) for r in judged}
