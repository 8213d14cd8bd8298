"""The panels of a row: prediction, margin, rivals and measured points, in the unit of the quantity and in margins.

| kind | above | below |
|---|---|---|
| with curves | over the parameter, lines or a bar at each point | the same points in margins |
| spans sizes | over the sizes, with what they tend to | a line for each point, in margins |
| distribution | its function | a line for each point, in margins |
| any other | | a line for each point, in margins; of many points no names |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from verify.judging.judge import PRINTED
from verify.model import ABSOLUTE, Kind
from verify.page import wording
from verify.page.axes import across, decades, deviation_axis, limits_around, plain_ticks, row_bands, share_of
from verify.page.drawing import (
    CURVE_MARKS,
    DASHES,
    EN,
    LARGEST,
    OFF_CURVES,
    WIDTH,
    Floats,
    Limits,
    Panel,
    draw_measured,
    drawable,
    finite_values,
    in_lines,
    tip,
)
from verify.page.formulas import typeset
from verify.page.rival_labels import (
    MARGIN,
    draw_names,
    line_names,
    names_height,
    rivals_in_margins,
    shared_lines,
)
from verify.page.theme import PALETTE
from verify.page.vocabulary import EXACT
from verify.page.wording import Placed
from verify.results import Curve, PointOutcome, ProfilePoint, Row
from verify.results.lines import (
    drawn_at_points_only,
    known_at_points_only,
    on_axis,
    others,
    spans_decades,
)

LEFT, RIGHT = 0.72, 0.22
"""Inches beside a frame."""

SMALLEST = 1e-100
"""Numbers below are treated like 0 where an axis is logarithmic."""

OWN = ("corrected", "theory")
"""The reading of a formula that our copy reads otherwise."""

BAR = 0.36
"""Half the length of the bar that stands for the prediction at a point; the next point is 1 away."""

FEW = 12
"""Points that have a line with a name each."""

MANY = 5
"""Entries of a list that a name shows in full; of a longer one the first ones, and how many more there are."""

NAME = 66
"""Longest line of the name of a point."""

PLACES = 40
"""Places at which a distribution function is shown."""


class Track(NamedTuple):
    """A line of theory between the sides of its margin, and those of the rivals, over the same places."""

    x: Floats
    predicted: Floats
    half: Floats
    rivals: Mapping[str, Floats]


class Mark(NamedTuple):
    """Where a measured point stands, and the shape of its mark where that tells its curve."""

    x: float
    point: PointOutcome
    shape: str = ""


class Across(NamedTuple):
    """The horizontal axis: its name, places, whether it is logarithmic, and its ticks if it has no scale of its own."""

    name: str
    places: Sequence[float]
    logarithmic: bool = False
    ticks: Mapping[float, str] | None = None

    def dress(self, axes: Axes) -> None:
        """Draw it."""
        across(axes, self.places, logarithmic=self.logarithmic, names=self.ticks)
        axes.set_xlabel(typeset(self.name))
        axes.grid(axis="y")


class View(NamedTuple):
    """Content of a panel in the unit of the quantity; `decades` is true for a logarithmic axis."""

    title: str
    across: Across
    tracks: list[Track]
    marks: list[Mark]
    notes: str
    decades: bool = False


def row_panels(row: Row) -> list[Panel]:
    """The panels of a row, as its kind has them."""
    if row.curves:
        return [curve_panel(row), residual_panel(row)]
    point, seen = wording.telling(row), PROFILES.get(row.kind)
    view = seen(row, point) if seen and point else None
    return [*([_view_panel(row, view)] if view else []), _forest_panel(row, titled=view is None)]


def _view_panel(row: Row, view: View) -> Panel:
    """Theory in its band, the rivals with their names at the ends of their lines, and what was measured."""
    limits = _value_limits(view)
    heights = [
        {name: share_of(y, limits, logarithmic=view.decades) for name, y in track.rivals.items()}
        for track in view.tracks
    ]
    groups = shared_lines(heights)
    names = line_names(heights, groups)
    height, right = max(1.9, names_height(names)), _right(names)

    def draw(axes: Axes) -> None:
        view.across.dress(axes)
        if view.decades:
            axes.set_yscale("log")
            decades(axes.yaxis, *limits)
        else:
            plain_ticks(axes.yaxis)
        axes.set_ylim(*limits)
        for x, y, half, rivals in view.tracks:
            low, high = _agreeing(row, limits, y - half, y + half)
            axes.fill_between(x, low, high, color=PALETTE["band"], linewidth=0)
            for k, group in enumerate(groups):
                if group[0] in rivals:
                    dashes = DASHES[k % len(DASHES)]
                    axes.plot(x, rivals[group[0]], color=PALETTE["rival"], lw=1.1, dashes=dashes)
            axes.plot(x, y, color=PALETTE["theory"], lw=1.6)
        draw_names(axes, names, 72 * (WIDTH - LEFT - right), 72 * height)
        for x, point, shape in view.marks:
            size = 4.6 if point.verdict else 3.6
            draw_measured(axes, point, x, "y", limits, size=size, mark=shape, said=tip(point))

    return Panel(height, draw, title=typeset(view.title), notes=view.notes, left=LEFT, right=right)


def _right(names: Sequence[Any]) -> float:
    return MARGIN if names else RIGHT


def _value_limits(view: View) -> Limits:
    """Everything measured and predicted, and of margins, intervals and rivals what stays within reach of it."""
    core = finite_values(*(track.predicted for track in view.tracks), [m.point.measured for m in view.marks])
    halves = finite_values(*(track.half for track in view.tracks), [m.point.margin for m in view.marks])
    extra = finite_values(
        *(values for track in view.tracks for values in track.rivals.values()),
        [side for mark in view.marks for side in (mark.point.lower, mark.point.upper)],
    )
    least = 1.3 * float(halves.max(initial=0.0))
    if view.decades:
        shares = finite_values(*(t.half / np.abs(t.predicted) for t in view.tracks if t.predicted.all()))
        least = 1.3 * math.log1p(min(float(shares.max(initial=0.0)), 1.0))
    return limits_around(core, extra, least=least, logarithmic=view.decades)


def _agreeing(row: Row, limits: Limits, low: Any, high: Any) -> tuple[Any, Any]:
    """Where the interval of an agreeing claim lies: between these, one of them the end of the axis for a bound."""
    if _from_zero(row):
        return 0.0, high
    return (
        limits[0] if row.kind == Kind.AT_MOST else low,
        limits[1] if row.kind == Kind.AT_LEAST else high,
    )


def _from_zero(row: Row) -> bool:
    """Whether what is judged is a share, a distance or a difference: the prediction is 0, and nothing lies below it."""
    return row.kind in ABSOLUTE or row.kind in EXACT


# --- over a parameter


def curve_panel(row: Row) -> Panel:
    """Prediction with its margin, rivals, and the measured points, over the parameter of the curves.

    Predictions from measured inputs are known where these were measured, and where points have settings of their own no
    line leads from one to the next: points then stand side by side, a bar at each.
    """
    apart, placed = drawn_at_points_only(row), _axis_points(row)
    tracks = _bars(row) if apart else [_line(row, curve) for curve in row.curves]
    values = finite_values(*(track.predicted for track in tracks), [p.measured for p in row.points])
    spread = bool(values.size and values.min() > 0 and values.max() / values.min() > 60)
    marks = [Mark(x, point, _shape(row, place)) for x, point, place in placed if place is not None or apart]
    title = row.quantity or "measured and predicted"
    return _view_panel(
        row, View(title, _parameter(row), tracks, marks, _curve_key(row), decades=row.relative and spread)
    )


def _parameter(row: Row) -> Across:
    """The axis of the parameter; points side by side, each with its value, where only points are drawn."""
    name, placed = wording.named(row.curves[0].axis), _axis_points(row)
    if drawn_at_points_only(row):
        ticks = {x: wording.numeral(_at(row, point), 4) for x, point, _ in placed}
        return Across(name, [-BAR, len(placed) - 1 + BAR], ticks=ticks)
    grid = [x for curve in row.curves for x in curve.x]
    return Across(name, grid, spans_decades(grid))


def residual_panel(row: Row) -> Panel:
    """Panel of the deviations from the prediction, in margins, which the scale of the curve hides."""
    apart = drawn_at_points_only(row)
    rivals = [name for curve in row.curves for name in curve.rivals]

    def draw(axes: Axes) -> None:
        _parameter(row).dress(axes)
        limits = deviation_axis(axes, "y", row.points, "in margins", rivals=False, from_zero=_from_zero(row))
        axes.axhspan(*_agreeing(row, limits, -1.0, 1.0), color=PALETTE["band"], linewidth=0)
        axes.axhline(0, color=PALETTE["theory"], lw=1.2)
        for x, point, place in _axis_points(row):
            beside = x if apart else _dodged(axes, x, place, len(row.curves))
            shape = _shape(row, place)
            draw_measured(axes, _in_margins(point), beside, "y", limits, mark=shape, said=tip(point))

    return Panel(1.05, draw, title="Deviation", left=LEFT, right=_right(rivals))


def _axis_points(row: Row) -> list[tuple[float, PointOutcome, int | None]]:
    """Return points in the order of the parameter: position on the axis, point, and number of the curve."""
    last = len(row.curves)
    found = sorted(on_axis(row), key=lambda at: (_at(row, at[0]), last if at[1] is None else at[1]))
    apart = drawn_at_points_only(row)
    return [(float(k) if apart else _at(row, point), point, place) for k, (point, place) in enumerate(found)]


def _at(row: Row, point: PointOutcome) -> float:
    return float(point.parameters[row.curves[0].axis])


def _line(row: Row, curve: Curve) -> Track:
    """A curve with its margin: a formula as it reads in our copy has that of the theory it is judged beside."""
    beside = [curve.rivals[name] for name in OWN if name in curve.rivals] if row.reading == PRINTED else []
    theory = drawable(beside[0] if beside else curve.predicted)
    half = row.margin * np.abs(theory) if row.relative else np.full(len(curve.x), row.margin)
    rivals = {name: drawable(values) for name, values in curve.rivals.items()}
    return Track(np.array(curve.x), drawable(curve.predicted), half, rivals)


def _bars(row: Row) -> list[Track]:
    """A piece of line at each point, and of each rival that is known there."""
    placed = _axis_points(row)
    names = dict.fromkeys(name for curve in row.curves for name in curve.rivals)

    def pieces(values: Sequence[float]) -> Floats:
        return drawable([part for value in values for part in (value, value, math.nan)])

    def rival(name: str, point: PointOutcome, place: int | None) -> float:
        curve = row.curves[place] if place is not None else None
        return (
            curve.rivals[name][curve.x.index(_at(row, point))] if curve and name in curve.rivals else math.nan
        )

    x = drawable([part for at, *_ in placed for part in (at - BAR, at + BAR, math.nan)])
    return [
        Track(
            x,
            pieces([point.predicted for _, point, _ in placed]),
            pieces([point.margin for _, point, _ in placed]),
            {name: pieces([rival(name, point, place) for _, point, place in placed]) for name in names},
        )
    ]


def _shape(row: Row, place: int | None) -> str:
    """The mark of a curve where there are several; that of the verdict where there is one."""
    if place is None:
        return OFF_CURVES[0]
    return list(CURVE_MARKS)[place % len(CURVE_MARKS)] if len(row.curves) > 1 else ""


def _dodged(axes: Axes, x: float, place: int | None, count: int) -> float:
    """Points of different curves at one parameter stand side by side."""
    by = 0.022 * ((count if place is None else place) - (count - 1) / 2)
    low, high = axes.get_xlim()
    return x * (high / low) ** by if axes.get_xscale() == "log" else x + by * (high - low)


def _curve_key(row: Row) -> str:
    """Return the key: the meaning of the lines, and the mark of each curve if there are several."""
    lines = [
        "bars: prediction, from what was measured beside it, and margin"
        if known_at_points_only(row)
        else "bars: prediction and margin, at settings that change from point to point"
        if drawn_at_points_only(row)
        else "line and band: prediction and margin"
    ]
    curves = row.curves
    if len(curves) > 1:
        varying = {
            k for c in curves for k, v in others(c).items() if any(others(d).get(k) != v for d in curves)
        }
        names = [brief({k: v for k, v in others(c).items() if k in varying}) for c in curves]
        lines += [f"{sign}{EN}{EN}{name}" for sign, name in zip(CURVE_MARKS.values(), names, strict=False)]
    hidden = sum(place is None for _, place in on_axis(row))
    if hidden:
        more = f"{hidden} more point{'s' * (hidden > 1)}, at other settings"
        where = "" if drawn_at_points_only(row) else ": only in the panel below"
        lines.append(f"{OFF_CURVES[1]}{EN}{EN}{more}{where}")
    seen = {point.verdict for point in row.points}
    said = {"disagrees": "with a cross: disagrees", "undecided": "hollow: undecided"}
    told = "; ".join(text for verdict, text in said.items() if verdict in seen)
    return "\n".join([*lines, told] if told and len(lines) > 1 else lines)


# --- over sizes, and of a distribution


def _sizes(row: Row, point: PointOutcome) -> View | None:
    """Means at each size, or exponents between them, and what they tend to at the right edge."""
    usable = (p for p in point.profile if SMALLEST < p.x < LARGEST and abs(p.measured) < LARGEST)
    profile = sorted(usable, key=lambda p: p.x)
    if len({p.x for p in profile}) < 2:
        return None
    first, last = math.log(profile[0].x), math.log(profile[-1].x)
    settled = row.kind == Kind.SETTLED
    end = profile[-1].x if settled else math.exp(min(last + 0.22 * (last - first), 690.0))
    marks = [Mark(p.x, mean_at(p)) for p in profile[: -1 if settled else None]]
    title, note = (
        row.quantity or "Mean at each size",
        "line and band: prediction and margin; dots: means at each size",
    )
    if row.kind == Kind.EXPONENT:
        marks = [Mark(x, _number(slope)) for x, slope in local_slopes(profile)]
        title, note = (
            f"Exponent between successive sizes of {row.quantity}",
            "line and band: prediction and margin",
        )
    x = np.array([math.exp(first), end])
    flat = {r.name: drawable([r.value] * 2) for r in point.rivals}
    ticks = {p.x: wording.numeral(p.x) for p in reversed(profile)}
    return View(
        title + _at_point(row, point),
        Across("size", x.tolist(), True, ticks if settled else {end: "∞", **ticks}),
        [Track(x, drawable([point.predicted] * 2), drawable([point.margin] * 2), flat)],
        [*marks, Mark(end, point)],
        note if settled else f"{note}; at ∞: extrapolated",
    )


def local_slopes(profile: Sequence[ProfilePoint]) -> list[tuple[float, float]]:
    """Slopes in decades between successive sizes, each at the geometric mean of its two sizes.

    What has no sign, or not the same one at both sizes, has no slope.

    >>> at = [ProfilePoint(x=x, measured=5 * x**1.5, lower=0.0, upper=0.0, predicted=0.0) for x in (10.0, 40.0)]
    >>> [(round(x, 9), round(slope, 9)) for x, slope in local_slopes(at)]
    [(20.0, 1.5)]
    """
    return [
        (
            math.sqrt(a.x) * math.sqrt(b.x),
            (math.log(abs(b.measured)) - math.log(abs(a.measured))) / (math.log(b.x) - math.log(a.x)),
        )
        for a, b in pairwise(profile)
        if b.x > a.x and min(abs(a.measured), abs(b.measured)) > SMALLEST and a.measured * b.measured > 0
    ]


def mean_at(at: ProfilePoint, verdict: str = "") -> PointOutcome:
    """The mean at one size as an outcome, on which nothing is judged by itself."""
    return PointOutcome(
        parameters={}, verdict=verdict, predicted=at.predicted, margin=0.0, measured=at.measured,
        lower=at.lower, upper=at.upper,
    )  # fmt: skip


def _number(value: float) -> PointOutcome:
    return mean_at(ProfilePoint(x=0.0, measured=value, lower=value, upper=value, predicted=math.nan))


def _distribution(row: Row, point: PointOutcome) -> View | None:
    """The distribution function, predicted and measured."""
    profile = [p for p in point.profile if abs(p.x) < LARGEST]
    if len({p.x for p in profile}) < 2:
        return None
    x, predicted = drawable([p.x for p in profile]), drawable([p.predicted for p in profile])
    shown = profile[:: math.ceil(len(profile) / PLACES)]
    return View(
        "Distribution function" + _at_point(row, point),
        Across(row.quantity, x.tolist()),
        [Track(x, predicted, drawable([point.margin] * len(x)), {})],
        [Mark(p.x, mean_at(p, point.verdict)) for p in shown],
        "line and band: prediction and margin; dots: the share of replicates up to here",
    )


PROFILES: dict[str, Callable[[Row, PointOutcome], View | None]] = {
    Kind.DISTRIBUTION: _distribution,
    Kind.SETTLED: _sizes,
    Kind.LIMIT: _sizes,
    Kind.EXPONENT: _sizes,
}
"""Inputs of the estimand of a kind, at the point that decides the verdict."""


# --- in margins


def _forest_panel(row: Row, *, titled: bool) -> Panel:
    """A line for each point: its interval and its rivals, in margins; `titled` where no panel above says of what.

    Many points are sorted and have neither names nor rivals.
    """
    points, few = row.points, len(row.points) <= FEW
    beyond = sum(p.verdict != "agrees" for p in points)
    count = "" if few else f"beyond the margin: {beyond or 'none'} of {len(points)} examples"
    heading = ": ".join(part for part in (row.quantity if titled else "", count) if part)
    if not few:
        points = sorted(points, key=lambda p: -_order(wording.deviation(p)))
    # the distance of two laws from a third says nothing of theirs
    names = (
        letters_of(r.name for p in points for r in p.rivals) if few and row.kind != Kind.DISTRIBUTION else {}
    )
    called = [in_lines(_name_of(p, points), NAME) for p in points] if few else []

    def draw(axes: Axes) -> None:
        name = f"{wording.headings(row.kind).deviation} / {'tolerance' if row.kind in EXACT else 'margin'}"
        limits = deviation_axis(axes, "x", points, name, rivals=bool(names), from_zero=_from_zero(row))
        axes.set_ylim(-len(points) + 0.4, 0.64)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        low, high = _agreeing(row, limits, -1.0, 1.0)
        if len(points) > 1 and few:
            row_bands(axes, low, high, len(points))
        else:
            axes.axvspan(low, high, color=PALETTE["band"], linewidth=0)
            axes.axvline(0, color=PALETTE["theory"], lw=1.2)
        for place, point in enumerate(points):
            size = 4.6 if few else 3.0
            draw_measured(axes, _in_margins(point), -place, "x", limits, size=size, said=tip(point))
            rivals_in_margins(axes, point, -place, limits, names) if names else None
            if few:
                _write_name(axes, point, "\n".join(called[place]), place)

    lines = max(map(len, called), default=1)
    pitch = (0.54 if names else 0.44) + 0.16 * (max(lines, 1) - 1) if few else 1.4 / len(points)
    key = [f"{letter}{EN}{EN}rival: {typeset(name)}" for name, letter in names.items()]
    return Panel(
        pitch * len(points) + 0.1,
        draw,
        title=typeset(heading) or "Deviation in margins",
        left=RIGHT,
        notes="\n".join(key),
    )


def _write_name(axes: Axes, point: PointOutcome, name: str, place: int) -> None:
    """Write the name of a line above it."""
    said = " — ".join(part for part in (name, "no value" * math.isnan(point.measured)) if part)
    axes.annotate(
        said, (0, -place), xycoords=("axes fraction", "data"), xytext=(2, 7), textcoords="offset points",
        fontsize=7.5, color=PALETTE["muted"], va="bottom",
    )  # fmt: skip


def letters_of(names: Iterator[str]) -> dict[str, str]:
    """Names to letters, numbers after z.

    >>> letters_of(iter(["kappa2", "half", "kappa2"]))
    {'kappa2': 'a', 'half': 'b'}
    """
    return {name: chr(ord("a") + k) if k < 26 else str(k) for k, name in enumerate(dict.fromkeys(names))}


def _in_margins(point: PointOutcome) -> PointOutcome:
    """Return the outcome in units of its margin, with the prediction at 0."""
    low, high = (wording.deviation(point, side) for side in (point.lower, point.upper))
    return replace(
        point,
        predicted=0.0,
        measured=wording.deviation(point),
        lower=-math.inf if math.isnan(low) else low,
        upper=math.inf if math.isnan(high) else high,
    )


def _order(value: float) -> float:
    return math.inf if math.isnan(value) else value


# --- names of points


def _at_point(row: Row, point: PointOutcome) -> str:
    """Which of several points a panel shows."""
    name = _name_of(point, row.points)
    return f" at {name}" if name else ""


def _name_of(point: Placed, points: Sequence[Placed]) -> str:
    """Return a short name that tells a point from the others; empty for a single point."""
    if len(points) < 2:
        return ""
    names = [brief(wording.differing(other, points)) for other in points]
    place = next((k for k, other in enumerate(points) if other is point), 0)
    here = names[place]
    # long lists may differ in what is not shown
    return here if names.count(here) < 2 else f"{here} ({names[: place + 1].count(here)})"


def brief(values: Mapping[str, Any]) -> str:
    """Parameters as text, of long lists the first entries.

    >>> brief({"p": (0.31, 0.22, 0.15, 0.11, 0.08, 0.05), "dim": 40})
    'p = (0.31, 0.22, 0.15, … 3 more), dim = 40'
    """
    return typeset(", ".join(_brief(name, value) for name, value in values.items()))


def _brief(name: str, value: Any) -> str:
    nested = isinstance(value, list | tuple) and any(isinstance(entry, list | tuple) for entry in value)
    shown = 1 if nested else MANY - 2
    if not isinstance(value, list | tuple) or len(value) <= (shown if nested else MANY):
        return wording.parameters({name: value})
    start = wording.parameters({name: tuple(value[:shown])}).rstrip(",)") + ")" * nested
    return f"{start}, … {len(value) - shown} more)"
