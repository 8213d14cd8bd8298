"""Positions of a row's points on its curves, and how its curves are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from verify.results.records import PointOutcome, Row


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


def on_axis(row: Row) -> Iterator[tuple[PointOutcome, int | None]]:
    """Yield the points on the axis of the curves, each with the number of its curve, if it is drawn."""
    axis = row.curves[0].axis
    for point in row.points:
        if isinstance(point.parameters.get(axis), int | float):
            at = {name: value for name, value in point.parameters.items() if name != axis}
            yield point, next((k for k, curve in enumerate(row.curves) if curve.at == at), None)
