"""What is drawn as the prediction is the prediction of the table, and marks are those of the key."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

from tests.verify.results.drawn_rows import WITH_AXIS, axes_of, coloured, rows_of, table_of
from tests.verify.results.sample_results import sample, sample_of_kinds
from verify.claims import registry
from verify.judging.judge import PRINTED, readings
from verify.model import Kind
from verify.model.observation import Observation
from verify.page.drawing import CURVE_MARKS, DASHES, OFF_CURVES
from verify.page.observed_panels import LINES, MOST_PANELS, observed_panels
from verify.page.panels import curve_panel, residual_panel
from verify.page.theme import PALETTE
from verify.results import Curve, PointOutcome, Row, lines
from verify.running import rows
from verify.running.settings import Settings

INPUTS = [name for name, claim in WITH_AXIS.items() if claim.inputs]
FORMULAS = [name for name in WITH_AXIS if name not in INPUTS]
SAMPLES = {item.id: item for item in (*sample().rows, *sample_of_kinds().rows) if item.curves}
ON_NETWORKS = "granziol2022/theorem-7-on-networks"


@pytest.fixture(autouse=True)
def few_places_between_the_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """The places of the points are always on a curve; the others, of a grid or of a step, cost a formula each."""
    monkeypatch.setattr(rows, "CURVE_POINTS", 5)
    monkeypatch.setattr(rows, "BISECTIONS", 0)


def rows_named(name: str) -> tuple[Row, ...]:
    return rows_of(name) if name in WITH_AXIS else (SAMPLES[name],)


DRAWN = dict[int, tuple[Row, Axes]]()
"""By the identity of a row, which is kept with it."""


def curve_axes(item: Row) -> Axes:
    """What the panel of a row draws: once for all tests, which only read it."""
    if id(item) not in DRAWN:
        DRAWN[id(item)] = item, axes_of(curve_panel(item))
    return DRAWN[id(item)][1]


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
    """The corners of all bands: areas of curves, thick lines of bars."""
    colours: list[Any] = [[*s.get_facecolor(), *s.get_edgecolor()][-1] for s in axes.collections]
    found = [s for s, c in zip(axes.collections, colours, strict=True) if to_hex(c) == PALETTE["band"]]
    paths = [np.asarray(path.vertices) for shape in found for path in shape.get_paths()]
    return [(float(x), float(y)) for path in paths for x, y in path]


def edges(at: PointOutcome, kind: str) -> list[float]:
    sides = {Kind.AT_MOST: [1], Kind.AT_LEAST: [-1]}.get(Kind(kind), [-1, 1])
    return [edge for edge in (at.predicted + side * at.margin for side in sides) if math.isfinite(edge)]


@pytest.mark.parametrize("name", [*FORMULAS, *SAMPLES])
def test_line_and_band_pass_through_the_table(name: str) -> None:
    for item in rows_named(name):
        if lines.drawn_at_points_only(item):
            require_bars(item)
            continue
        axes = curve_axes(item)
        theory, band = corners(coloured(axes, "theory")), bands(axes)
        for at, _, x in on_curves(item):
            assert is_among(x, at.predicted, theory) or not math.isfinite(at.predicted)
            assert all(is_among(x, edge, band) for edge in edges(at, item.kind)), (item.id, x)


@pytest.mark.parametrize("name", FORMULAS)
def test_rivals_pass_through_the_table_in_dashes_of_their_own(name: str) -> None:
    for item in rows_of(name):
        if lines.drawn_at_points_only(item):
            continue  # pieces at the points: see `require_bars`
        axes = curve_axes(item)
        # beside the curves their names stand with a piece of the line
        drawn = [line for line in coloured(axes, "rival") if line.get_transform() == axes.transData]
        curves = [line for line in drawn if line.get_marker() == "None"]
        names = list(dict.fromkeys(rival for curve in item.curves for rival in curve.rivals))
        assert set(WITH_AXIS[name].rivals) >= {r.name for r in item.points[0].rivals}
        unseen = [(curve, rival) for curve in item.curves for rival in curve.rivals]
        told = len(unseen) - len(curves)  # rivals that are one to the eye share a line
        assert 0 <= told < len(unseen) or not unseen
        for line in curves:
            assert dashes_of(line) in DASHES[: len(names)]
            mine = next(pair for pair in unseen if passes(line, item, *pair))
            unseen.remove(mine)
        assert len(unseen) == told


def passes(line: Line2D, item: Row, curve: Curve, rival: str) -> bool:
    """Whether a line goes through the values of a rival in the table, along one curve."""
    at = [(x, r.value) for p, own, x in on_curves(item) if own is curve for r in p.rivals if r.name == rival]
    return all(is_among(x, value, corners([line])) or not math.isfinite(value) for x, value in at)


def dashes_of(line: Line2D) -> Any:
    pattern: Any = vars(line)["_unscaled_dash_pattern"][1]
    return None if pattern is None else tuple(pattern)


@pytest.mark.parametrize("name", INPUTS)
def test_a_prediction_from_measured_inputs_is_a_bar_at_its_point_and_nowhere_else(name: str) -> None:
    for item in rows_of(name):
        require_bars(item)
        assert "bars: prediction, from what was measured" in "".join(curve_panel(item).notes)


def require_bars(item: Row) -> None:
    """A piece of the prediction, of its band and of each rival at each point, the points side by side."""
    axes = curve_axes(item)
    (line,) = coloured(axes, "theory")
    bars, low, high = pieces(line), *axes.get_ylim()
    rivals = [piece for line in coloured(axes, "rival") for piece in pieces(line)]

    assert len(bars) == len(side_by_side(item))
    for k, (at, place) in enumerate(side_by_side(item)):
        assert [y for _, y in bars[k]] == [at.predicted] * 2 and bars[k][0][0] < k < bars[k][1][0]
        band = [y for x, y in bands(axes) if bars[k][0][0] <= x <= bars[k][1][0]]
        assert all(any(math.isclose(edge, y) for y in band) for edge in edges(at, item.kind))
        known = item.curves[place].rivals if place is not None else {}
        near = 0.004 * (high - low)  # rivals that are one to the eye share a piece
        for value in (rival.value for rival in at.rivals if rival.name in known and low < rival.value < high):
            assert any(
                x < k < z and math.isclose(y, value, rel_tol=0.05, abs_tol=near) for (x, y), (z, _) in rivals
            )


def pieces(line: Line2D) -> list[list[tuple[float, float]]]:
    """The ends of each piece of a line that is broken between two points."""
    ends = corners([line])
    return [ends[k : k + 2] for k in range(0, len(ends), 3)]


def side_by_side(item: Row) -> list[tuple[PointOutcome, int | None]]:
    return sorted(lines.on_axis(item), key=lambda at: (place_of(at[0], item), at[1]))


def test_the_other_reading_of_measured_inputs_is_that_of_its_own_row() -> None:
    corrected, printed = rows_of(ON_NETWORKS)
    for mine, other, label in ((corrected, printed, PRINTED), (printed, corrected, corrected.reading)):
        said = {tuple(at.parameters.items()): at.predicted for at in other.points}
        drawn = [
            (curve.rivals[label][curve.x.index(x)], said.get(tuple(at.parameters.items()), math.nan))
            for at, curve, x in on_curves(mine)
        ]
        assert any(math.isfinite(value) for value, _ in drawn)
        as_stated = [rows._as_drawn(stated) for _, stated in drawn]
        np.testing.assert_equal([mine for mine, _ in drawn], as_stated)


@pytest.mark.parametrize("name", [*WITH_AXIS, *SAMPLES])
def test_marks_of_points_are_those_of_the_key(name: str) -> None:
    """Where a row has several curves the shape tells which, in both panels; colour and filling tell the verdict."""
    for item in rows_named(name):
        key = "\n".join(curve_panel(item).notes)
        above, below = marks(curve_axes(item)), marks(axes_of(residual_panel(item)))
        for at, place in lines.on_axis(item):
            shape, sign = expected_mark(item, at, place)
            assert sign in key
            assert (shape, PALETTE[at.verdict]) in [mark for mark, _ in below]
            if place is not None and math.isfinite(at.measured):
                bars = lines.drawn_at_points_only(item)
                x = side_by_side(item).index((at, place)) if bars else place_of(at, item)
                here = [mark for mark, corner in above if is_among(*corner, [(x, at.measured)])]
                assert (shape, PALETTE[at.verdict]) in here
        assert len(below) == sum(not math.isnan(at.measured) for at, _ in lines.on_axis(item))


def marks(axes: Axes) -> list[tuple[tuple[str, str], tuple[float, float]]]:
    """Shape, colour and place of the marks of measured points."""
    return [
        ((str(line.get_marker()), str(line.get_markeredgecolor())), corners([line])[0])
        for line in axes.get_lines()
        if line.get_zorder() == 4
    ]


def expected_mark(item: Row, at: PointOutcome, place: int | None) -> tuple[str, str]:
    if place is None:
        return OFF_CURVES
    if len(item.curves) == 1:
        return "D" if at.verdict == "disagrees" else "o", ""
    return list(CURVE_MARKS.items())[place]


def test_a_curve_that_leaves_its_table_is_no_row() -> None:
    """The guard of the engine and of the file: value, rival and place, each checked by a change of its own."""
    item = SAMPLES["granziol2022/theorem-4"]
    curve = item.curves[0]
    i = curve.x.index(1.9)
    moved = [value * (1 + 1e-5 * (k == i)) for k, value in enumerate(curve.predicted)]
    rival = {"no repulsion": [v + 0.01 * (k == i) for k, v in enumerate(curve.rivals["no repulsion"])]}
    shifted = [x + 1e-9 * (k == i) for k, x in enumerate(curve.x)]
    changes: list[dict[str, Any]] = [
        {"predicted": moved},
        {"rivals": {**curve.rivals, **rival}},
        {"x": shifted},
    ]

    assert list(lines.strays(item)) == []
    for change, word in zip(
        changes, ("prediction drawn at", "no repulsion drawn at", "no place"), strict=True
    ):
        broken = dataclasses.replace(item, curves=[dataclasses.replace(curve, **change), *item.curves[1:]])
        (stray,) = lines.strays(broken)
        assert stray.startswith(word) and "spike = 1.9" in stray


def test_a_table_that_its_formula_does_not_give_is_an_error() -> None:
    claim, (item,) = WITH_AXIS["granziol2022/semicircle"], rows_of("granziol2022/semicircle")
    (reading,) = readings(claim)
    off = [dataclasses.replace(at, predicted=1.01 * at.predicted + 0.01) for at in item.points]

    with pytest.raises(
        ValueError, match=r"curves of granziol2022/semicircle must pass through its table, got pred"
    ):
        rows.claim_row(claim, reading, {reading: off}, 0.0, Settings())


@pytest.mark.parametrize("observation", registry.observations(), ids=lambda o: o.id)
def test_ratios_of_a_table_are_drawn_where_it_has_them(observation: Observation) -> None:
    """Every mean, with the mark, the filling and the colour that the key gives its column."""
    made = table_of(observation)
    ratios = [place for place, column in enumerate(made.columns) if column.ratio]
    panels = observed_panels(made)
    assert bool(panels) == bool(ratios and made.along)
    key = [line for line in "\n".join(panels[-1].notes).splitlines() if line[0] != "\u2002"] if panels else []
    assert len({line[0] for line in key}) == len(key)
    groups = [g.rows for g in made.groups[:MOST_PANELS]]
    for panel, table in zip(panels, groups if panels else [], strict=True):
        drawn = [line for line in axes_of(panel).get_lines() if line.get_marker() != "None"]
        for k, place in enumerate(ratios):
            letter, (marker, glyphs, colour) = key[k][0], LINES[k % len(LINES)]
            hollow = letter == glyphs[1]
            mine = [line for line in drawn if look(line) == (marker, PALETTE[colour], hollow)]
            means = sorted(row.cells[place].mean for row in table)
            found = sorted(v for line in mine for v in np.ravel(line.get_ydata()))
            assert letter in glyphs and found == pytest.approx(means)


def look(line: Line2D) -> tuple[str, str, bool]:
    return str(line.get_marker()), str(line.get_color()), line.get_markerfacecolor() == PALETTE["paper"]


def test_whole_numbers_on_an_axis_have_nothing_between_two_of_them() -> None:
    for name, claim in WITH_AXIS.items():
        for item in rows_of(name) if name not in INPUTS else ():
            whole = all(isinstance(at.parameters[claim.axis], int) for at in item.points)
            assert all(x == round(x) for curve in item.curves for x in curve.x) or not whole
