"""Drawn predictions equal the table at its points, and the formula between them."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

from simulate.monte_carlo import Point
from tests.verify.results.drawn_rows import WITH_AXIS, axes_of, rows_of
from tests.verify.results.sample_results import sample, sample_of_kinds
from verify.judging.judge import readings
from verify.model import Kind
from verify.page.drawing import DASHES
from verify.page.panels import row_panels
from verify.page.theme import PALETTE
from verify.results import Curve, PointOutcome, Row, lines
from verify.running import rows

INPUTS = [name for name, claim in WITH_AXIS.items() if claim.inputs]
FORMULAS = [name for name in WITH_AXIS if name not in INPUTS]
SAMPLES = {item.id: item for item in (*sample().rows, *sample_of_kinds().rows) if item.curves}

STEEPEST, MISSED = 3, 0.02
"""Pieces of each line that are compared with the formula in between, and by what share of its span it may miss."""

PLACES = 350
"""Of a line with five steps, each as steep as it is drawn."""


@cache
def drawn_of(name: str) -> list[tuple[Row, Axes]]:
    """Rows with what their panels draw: once for all tests, which only read it."""
    found = rows_of(name) if name in WITH_AXIS else (SAMPLES[name],)
    return [(item, axes_of(row_panels(item)[0])) for item in found]


def coloured(axes: Axes, name: str) -> list[Line2D]:
    return [line for line in axes.get_lines() if line.get_color() == PALETTE[name]]


def on_curves(item: Row) -> Iterator[tuple[PointOutcome, Curve, float]]:
    """Points of a row that are on a curve, with their places."""
    for at, place in lines.on_axis(item):
        if place is not None:
            yield at, item.curves[place], place_of(at, item)


def place_of(at: PointOutcome, item: Row) -> float:
    return float(at.parameters[item.curves[0].axis])


def corners(drawn: list[Line2D]) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for line in drawn for x, y in np.asarray(line.get_xydata())]


def is_among(x: float, y: float, found: list[tuple[float, float]]) -> bool:
    return any(a == x and math.isclose(b, y, rel_tol=1e-6, abs_tol=1e-9) for a, b in found)


def bands(axes: Axes) -> list[tuple[float, float]]:
    """The corners of all bands."""
    colours = [[*s.get_facecolor(), *s.get_edgecolor()][-1] for s in axes.collections]
    found = [s for s, c in zip(axes.collections, colours, strict=True) if to_hex(c) == PALETTE["band"]]
    paths = [np.asarray(path.vertices) for shape in found for path in shape.get_paths()]
    return [(float(x), float(y)) for path in paths for x, y in path]


def edges(at: PointOutcome, kind: str) -> list[float]:
    sides = {Kind.AT_MOST: [1], Kind.AT_LEAST: [-1]}.get(Kind(kind), [-1, 1])
    return [edge for edge in (at.predicted + side * at.margin for side in sides) if math.isfinite(edge)]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WITH_AXIS, *SAMPLES])
def test_line_band_and_rivals_pass_through_the_table(name: str) -> None:
    """Predictions from measured inputs have no line: their points are drawn in margins."""
    for item, axes in drawn_of(name):
        if lines.drawn_at_points_only(item):
            assert any("/ margin" in text.get_text() for text in axes.texts)
            continue
        assert name not in INPUTS
        theory, band = corners(coloured(axes, "theory")), bands(axes)
        for at, _, x in on_curves(item):
            assert is_among(x, at.predicted, theory) or not math.isfinite(at.predicted)
            assert all(is_among(x, edge, band) for edge in edges(at, item.kind)), (item.id, x)
        if name in FORMULAS:
            require_rivals(item, axes)


def require_rivals(item: Row, axes: Axes) -> None:
    """Check that rivals have dashes of their own."""
    # beside the curves their names stand with a piece of the line
    drawn = [line for line in coloured(axes, "rival") if line.get_transform() == axes.transData]
    curves = [line for line in drawn if line.get_marker() == "None"]
    names = list(dict.fromkeys(rival for curve in item.curves for rival in curve.rivals))
    unseen = [(curve, rival) for curve in item.curves for rival in curve.rivals]
    for line in curves:
        pattern = vars(line)["_unscaled_dash_pattern"][1]
        assert (None if pattern is None else tuple(pattern)) in DASHES[: len(names)]
        unseen.remove(next(pair for pair in unseen if passes(line, item, *pair)))
    assert not [pair for pair in unseen if np.isfinite(pair[0].rivals[pair[1]]).any()]


def passes(line: Line2D, item: Row, curve: Curve, rival: str) -> bool:
    """Whether a line goes through the values of a rival in the table, along one curve."""
    at = [(x, r.value) for p, own, x in on_curves(item) if own is curve for r in p.rivals if r.name == rival]
    return all(is_among(x, value, corners([line])) or not math.isfinite(value) for x, value in at)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMULAS)
def test_between_the_points_a_line_is_the_formula_at_as_many_places_as_a_picture_shows(name: str) -> None:
    """Where it is steepest it follows the formula, or is as steep as a step can be drawn."""
    claim = WITH_AXIS[name]
    for row, reading in zip(rows_of(name), readings(claim), strict=True):
        whole = all(isinstance(at.parameters[claim.axis], int) for at in row.points)
        for curve in row.curves:
            assert len(curve.x) <= PLACES and (all(x == round(x) for x in curve.x) or not whole)
            between = {*curve.x} - {place_of(point, row) for point in row.points}
            numbers = [*between, *curve.predicted, *(y for values in curve.rivals.values() for y in values)]
            assert all(float(f"{y:.7g}") == y for y in numbers if math.isfinite(y)), row.id
            if lines.drawn_at_points_only(row) or claim.along:
                continue
            at = next(p for p in claim.experiment.points if Point(**curve.at).items() <= p.items())
            for x, y, off in steepest(curve):
                said = rows._value(claim, reading.predict, at, x)
                assert not math.isfinite(said) or abs(said - y) <= off, (row.id, x, y, said)


def steepest(curve: Curve) -> list[tuple[float, float, float]]:
    """Middles of the steepest pieces that are wider than a pixel, with the largest distance from the formula."""
    x, y = np.asarray(curve.x), np.asarray(curve.predicted)
    logarithmic = lines.spans_decades([x[0], x[-1]])
    u = np.log(x) if logarithmic else x
    whole = all(float(value).is_integer() for value in x)
    wide = (np.diff(u) > (u[-1] - u[0]) / 1500) & np.isfinite(np.diff(y)) & (~whole | (np.diff(x) > 1))
    scale = np.nanmax(y) - np.nanmin(y) or np.nanmax(np.abs(y))
    found = []
    for k in [k for k in np.argsort(-np.abs(np.diff(y))) if wide[k]][:STEEPEST]:
        middle = float(math.sqrt(x[k] * x[k + 1]) if logarithmic else (x[k] + x[k + 1]) / 2)
        middle = float(round(middle)) if whole else middle
        found.append((middle, float(np.interp(middle, x, y)), MISSED * float(scale)))
    return found
