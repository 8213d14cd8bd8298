"""Positions of a row's points on its curves, and whether the curves pass through the table's values there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from verify.results.records import Curve, PointOutcome, Row

CLOSE = 1e-6
"""Largest distance of a curve from the table, as a share of the value, or of the margin where that is larger."""


def same_line(one: Curve, other: Curve) -> bool:
    """Whether two curves are the same line up to rounding, compared at their common positions, of which one must exist.

    Curves may have other numbers of positions, which no verdict depends on.
    """
    if one.rivals.keys() != other.rivals.keys():
        return False
    places = {x: i for i, x in enumerate(other.x)}
    pairs = [(i, places[x]) for i, x in enumerate(one.x) if x in places]
    lines = [(one.predicted, other.predicted), *((one.rivals[k], other.rivals[k]) for k in one.rivals)]
    return bool(pairs) and all(_same(a[i], b[j], 0.0) for a, b in lines for i, j in pairs)


def spans_decades(values: Sequence[float]) -> bool:
    """Whether an axis with these values is logarithmic.

    >>> spans_decades([2, 24.1]), spans_decades([0.0, 100.0])
    (True, False)
    """
    return min(values) > 0 and max(values) / min(values) > 12


def drawn_at_points_only(row: Row) -> bool:
    """Whether there is nothing to draw between the points.

    Predictions read measured inputs, or a point has settings of its own: the line through it belongs to no other point
    and misses the others' predictions.
    """
    places = [place for _, place in on_axis(row)]
    alone = len(row.curves) > 1 and any(places.count(k) < 2 for k in range(len(row.curves)))
    own = alone and any(curve.predicted != row.curves[0].predicted for curve in row.curves)
    return own or any(point.inputs for point in row.points)


def others(curve: Curve) -> dict[str, Any]:
    """Return the parameters that do not change along a curve."""
    return {name: value for name, value in curve.at.items() if name != curve.axis}


def on_axis(row: Row) -> Iterator[tuple[PointOutcome, int | None]]:
    """Yield the points on the axis of the curves, each with the number of its curve, if it is drawn."""
    axis = row.curves[0].axis
    for point in row.points:
        if isinstance(point.parameters.get(axis), int | float):
            at = {name: value for name, value in point.parameters.items() if name != axis}
            yield point, next((k for k, curve in enumerate(row.curves) if others(curve) == at), None)


def strays(row: Row) -> Iterator[str]:
    """Yield the places where a curve of the row differs from the table's number at that point."""
    for point, place in on_axis(row) if row.curves else ():
        if place is not None:
            yield from _strays_at(row.curves[place], point)


def _strays_at(curve: Curve, point: PointOutcome) -> Iterator[str]:
    at = float(point.parameters[curve.axis])
    if at not in curve.x:
        yield f"no place for {curve.axis} = {at:g}"
        return
    i = curve.x.index(at)
    pairs = [("prediction", curve.predicted[i], point.predicted)]
    pairs += [(r.name, curve.rivals[r.name][i], r.value) for r in point.rivals if r.name in curve.rivals]
    for name, drawn, stated in pairs:
        if not _same(drawn, stated, point.margin):
            yield f"{name} drawn at {drawn:g} for {stated:g}, at {curve.axis} = {at:g}"


def _same(drawn: float, stated: float, margin: float) -> bool:
    """Whether two numbers are the same within `CLOSE`; a number that is not finite is a gap in a curve."""
    if not (math.isfinite(drawn) and math.isfinite(stated)):
        return not (math.isfinite(drawn) or math.isfinite(stated))
    slack = CLOSE * margin if 0 < margin < math.inf else 0.0
    return math.isclose(drawn, stated, rel_tol=CLOSE, abs_tol=slack)
