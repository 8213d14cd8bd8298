"""What is drawn of every claim with a parameter on its axis: the prediction, at each point and between the points."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from simulate.monte_carlo import Point
from verify.claims import registry
from verify.judging.judge import Reading, readings
from verify.model import Claim
from verify.page.panels import curve_panel
from verify.page.theme import PALETTE
from verify.results import Curve, PointOutcome, Row
from verify.results.lines import drawn_at_points_only, on_axis, spans_decades
from verify.running import rows
from verify.running.settings import Settings

CLOSE = 1e-6
STEEPEST = 3
"""Pieces of each line that are compared with the formula in between."""

MISSED = 0.02
"""Of what a line spans, by which it may miss the formula between two of its places."""


PLACES = 350
"""Of a line with five steps, each as steep as it is drawn."""


def drawn_claims() -> list[Claim]:
    listed = (claim for claim in registry.claims() if isinstance(claim, Claim))
    return [claim for claim in listed if claim.axis and not claim.inputs and not claim.along]


def outcome(claim: Claim, reading: Reading, point: Point) -> PointOutcome:
    """As if the prediction of the first reading had been measured."""
    predicted = claim.prediction(point, reading.predict)
    return PointOutcome(
        parameters=dict(point),
        verdict="agrees",
        predicted=predicted,
        margin=claim.margin_at(point),
        measured=predicted,
        lower=predicted,
        upper=predicted,
    )


@cache
def rows_of(claim_id: str) -> list[Row]:
    claim = next(claim for claim in drawn_claims() if claim.id == claim_id)
    points = claim.experiment.points
    found = {reading: [outcome(claim, reading, p) for p in points] for reading in readings(claim)}
    return [rows.claim_row(claim, reading, found, 0.0, Settings(seed=1)) for reading in found]


def theory_lines(row: Row) -> list[tuple[np.ndarray, np.ndarray]]:
    axes = Figure().add_subplot()
    curve_panel(row).draw(axes)
    lines = [line for line in axes.get_lines() if to_hex(line.get_color()) == PALETTE["theory"]]
    drawn = [np.asarray(line.get_xydata(), float) for line in lines]
    parts = [part for at in drawn for part in np.split(at, np.flatnonzero(np.isnan(at[:, 0])))]
    solid = [part[~np.isnan(part[:, 0])] for part in parts]
    return [(part[:, 0], part[:, 1]) for part in solid if len(part)]


def passes(line: tuple[np.ndarray, np.ndarray], x: float, y: float) -> bool:
    return bool(np.isclose(np.interp(x, *line), y, rtol=CLOSE, atol=0.0)) and line[0][0] <= x <= line[0][-1]


def passed(line: tuple[np.ndarray, np.ndarray], known: Sequence[tuple[float, float]]) -> int:
    return sum(passes(line, x, y) for x, y in known)


@pytest.mark.parametrize("claim_id", [claim.id for claim in drawn_claims()])
def test_the_line_at_each_point_is_its_prediction(claim_id: str) -> None:
    """And a line that passes a single point leads past no other: it would show as its prediction what is not."""
    for row in rows_of(claim_id):
        axis, lines, bars = row.curves[0].axis, theory_lines(row), drawn_at_points_only(row)
        points = sorted(
            (point.parameters[axis], place is None, place, point) for point, place in on_axis(row)
        )
        shown = [
            (k if bars else x, p.predicted) for k, (x, off, _, p) in enumerate(points) if bars or not off
        ]
        assert lines and all(any(passes(line, x, y) for line in lines) for x, y in shown), row.id
        for line in lines:
            over = [(x, y) for x, y in shown if line[0][0] <= x <= line[0][-1]]
            assert passed(line, shown) in (len(over), *range(2, len(over))), (row.id, over)


@pytest.mark.parametrize("claim_id", [claim.id for claim in drawn_claims()])
def test_between_the_points_a_line_is_the_formula(claim_id: str) -> None:
    """Where it is steepest it follows the formula, or is as steep as a step can be drawn."""
    claim = next(claim for claim in drawn_claims() if claim.id == claim_id)
    for row, reading in zip(rows_of(claim_id), readings(claim), strict=True):
        for curve in [] if drawn_at_points_only(row) else row.curves:
            at = next(p for p in claim.experiment.points if Point(**curve.at).items() <= p.items())
            for x, y, off in steepest(curve):
                said = rows._value(claim, reading.predict, at, x)
                assert not math.isfinite(said) or abs(said - y) <= off, (row.id, x, y, said)


@pytest.mark.parametrize("claim_id", [claim.id for claim in drawn_claims()])
def test_no_line_has_more_places_than_a_picture_shows(claim_id: str) -> None:
    """And none has more digits: the places between the points make up most of a results file otherwise."""
    for row in rows_of(claim_id):
        for curve in row.curves:
            assert len(curve.x) <= PLACES, row.id
            between = set(curve.x) - {float(point.parameters[curve.axis]) for point in row.points}
            numbers = [*between, *curve.predicted, *(y for values in curve.rivals.values() for y in values)]
            assert all(float(f"{y:.7g}") == y for y in numbers if math.isfinite(y)), row.id


def test_where_only_points_are_drawn_a_file_has_no_other_places() -> None:
    held = [row for claim in drawn_claims() for row in rows_of(claim.id) if drawn_at_points_only(row)]
    more = [row.id for row in held if {x for c in row.curves for x in c.x} - set(at_points(row))]

    assert len(held) > 20 and not more


def at_points(row: Row) -> list[float]:
    return [float(point.parameters[row.curves[0].axis]) for point in row.points]


def steepest(curve: Curve) -> list[tuple[float, float, float]]:
    """Middles of the steepest pieces that are wider than a pixel, with the largest distance from the formula."""
    x, y = np.asarray(curve.x), np.asarray(curve.predicted)
    logarithmic = spans_decades([x[0], x[-1]])
    u = np.log(x) if logarithmic else x
    whole = all(float(value).is_integer() for value in x)
    wide = (np.diff(u) > (u[-1] - u[0]) / 1500) & np.isfinite(np.diff(y)) & (~whole | (np.diff(x) > 1))
    order = np.argsort(-np.abs(np.diff(y)))
    scale = np.nanmax(y) - np.nanmin(y) or np.nanmax(np.abs(y))
    found: list[tuple[float, float, float]] = []
    for k in [k for k in order if wide[k]][:STEEPEST]:
        middle = float(math.sqrt(x[k] * x[k + 1]) if logarithmic else (x[k] + x[k + 1]) / 2)
        middle = float(round(middle)) if whole else middle
        found.append((middle, float(np.interp(middle, x, y)), MISSED * float(scale)))
    return found
