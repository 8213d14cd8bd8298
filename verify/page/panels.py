"""The panels of a row: prediction, margin, rivals and measured points, in the unit of the quantity and in margins.

| kind | first panel | more, where all are asked for |
|---|---|---|
| with curves | over the parameter, lines or a bar at each point | the same points in margins |
| spans sizes | over the sizes, with what they tend to | a line for each point, in margins |
| distribution | its function | a line for each point, in margins |
| exact | a line for each point: the difference beside its tolerance | |
| any other | a line for each point, in margins; of many points no names | |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from verify.judging.judge import PRINTED
from verify.model import ABSOLUTE, Kind
from verify.page import wording
from verify.page.axes import (
    limits_around,
    margins_scale,
    powers,
    scale,
    share_along,
    share_of,
    span,
    tick_text,
    uncrowded,
)
from verify.page.canvas import ABOVE, BELOW, Scale, draw_law, draw_rival, dress
from verify.page.drawing import (
    EDGE,
    LARGEST,
    WIDTH,
    Floats,
    Limits,
    Panel,
    draw_measured,
    drawable,
    finite_values,
    in_lines,
    points_per_pixel,
    tip,
    width_of,
)
from verify.page.formulas import typeset
from verify.page.heading import mathtext
from verify.page.rival_labels import (
    LEADING,
    SIZE,
    AboveName,
    LineName,
    Written,
    dashes_of,
    draw_names,
    levels,
    line_names,
    name_at,
    names_height,
    names_width,
    shared_lines,
)
from verify.page.theme import PALETTE
from verify.page.vocabulary import EXACT
from verify.page.wording import Placed
from verify.results import PointOutcome, ProfilePoint, Row
from verify.results.lines import (
    drawn_at_points_only,
    known_at_points_only,
    on_axis,
    others,
    spans_decades,
)

LEFT, RIGHT, TOP = 44.0, 14.0, ABOVE + 4
"""Points beside a frame, and above it."""

SMALLEST = 1e-100
"""Numbers below are treated like 0 where an axis is logarithmic."""

OWN = ("corrected", "theory")
"""The reading of a formula that our copy reads otherwise."""

BAR = 0.36
"""Half the length of the bar that stands for the prediction at a point; the next point is 1 away."""

CURVE_MARKS = {"o": "●", "^": "▲", "v": "▼"}
NETWORK_MARKS = {"s": "■", "^": "▲", "v": "▼"}
"""Marks of the curves of a row that has several, as drawn and as at the end of the curve."""

OFF_CURVES = "P"
"""Mark of a point on none of the curves that are drawn."""

FEW = 12
"""Points that have a line with a name each."""

TALLEST, STRIP = 168.0, 96.0
"""Height of a frame with a line for each point, and of one with many."""

NAMES, LINES = 150.0, 3
"""Widest line of the name of a point, and most lines; longer names have fewer parameters."""

MANY = 5
"""Entries of a list that a name shows in full; of a longer one the first ones, and how many more there are."""

PLACES = 40
"""Places at which a distribution function is shown."""


class Track(NamedTuple):
    """A line of theory between the sides of its margin, and those of the rivals, over the same places; its name."""

    x: Floats
    predicted: Floats
    half: Floats
    rivals: Mapping[str, Floats]
    name: str = ""


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

    def scale(self, room: float) -> Scale:
        """The axis, of so many points."""
        ends = span(self.places, logarithmic=self.logarithmic)
        if self.ticks is None:
            whole = all(float(value).is_integer() for value in self.places)
            return scale(self.name, ends, logarithmic=self.logarithmic, whole=whole)
        shown = uncrowded(self.ticks, ends, room, logarithmic=self.logarithmic)
        return Scale(self.name, ends, shown, self.logarithmic, self.ticks)


class View(NamedTuple):
    """Content of a panel in the unit of the quantity; `decades` is true for a logarithmic axis."""

    title: str
    across: Across
    tracks: list[Track]
    marks: list[Mark]
    note: str
    decades: bool = False


def row_panels(row: Row, width: float = WIDTH) -> list[Panel]:
    """The panels of a row, the main one first, as its kind has them."""
    view = _view(row)
    return [*([_view_panel(row, view, width)] if view else []), deviations_panel(row, width)]


def main_panel(row: Row, width: float = WIDTH) -> Panel:
    """The panel that stands for a row."""
    view = _view(row)
    return _view_panel(row, view, width) if view else deviations_panel(row, width)


def _view(row: Row) -> View | None:
    if row.curves:
        return curve_view(row)
    point, seen = wording.telling(row), PROFILES.get(row.kind)
    return seen(row, point) if seen and point else None


def curve_panel(row: Row) -> Panel:
    """Prediction with its margin, rivals, and the measured points, over the parameter of the curves."""
    return _view_panel(row, curve_view(row), WIDTH)


def _view_panel(row: Row, view: View, width: float) -> Panel:
    """Theory in its band, the rivals with their names at the ends of their lines, and what was measured."""
    limits = _value_limits(view)
    heights = [
        {name: share_of(y, limits, logarithmic=view.decades) for name, y in track.rivals.items()}
        for track in view.tracks
    ]
    groups = shared_lines(heights)
    names = [*_curve_names(view, limits), *line_names(heights, groups)]
    up = scale("", limits, logarithmic=view.decades)
    left = max(LEFT, 10 + max((width_of(text, 9.5) for text in up.texts.values()), default=0.0))
    right = max(RIGHT, names_width(names))
    room = width - 2 * EDGE - left - right
    title, lift = _named(row, view.title, width - 2 * EDGE)
    over = view.across.scale(room)
    name, drop = _named(row, view.across.name, room + left - 10)
    ticks = 10.5 * max((text.count("\n") for text in over.texts.values()), default=0)

    def draw(axes: Axes) -> None:
        dress(
            axes, over._replace(name=name), up._replace(name=title), left=left, above=TOP + lift, below=17 + ticks
        )  # fmt: skip
        for x, y, half, rivals, _ in view.tracks:
            low, high = _agreeing(row, limits, y - half, y + half)
            axes.fill_between(x, low, high, color=PALETTE["band"], linewidth=0)
            for k, group in enumerate(groups):
                if group[0] in rivals:
                    draw_rival(axes, x, rivals[group[0]], ls=(0, dashes_of(k)))
            draw_law(axes, x, y)
        draw_names(axes, names)
        for x, point, shape in view.marks:
            draw_measured(axes, point, x, "y", limits, mark=shape, networks=bool(row.data), said=tip(point),
                          size=4.2 if point.verdict else 3.4)  # fmt: skip

    above, below = TOP + lift, BELOW + 6 + ticks + drop
    return Panel(max(150.0, names_height(names)), draw, view.note, left, right, above, below)


def _named(row: Row, words: str, room: float) -> tuple[str, float]:
    """The name of an axis in lines, with the letter that its paper has for it, and the height of all lines but one."""
    lines = in_lines(typeset(words), room - 30, 10.0)
    letter = next((latex for latex, said in row.symbols.items() if said in (words, f"number of {words}")), "")
    escaped = "\n".join(lines).replace("$", r"\$")
    return f"{escaped} {mathtext(letter)}".strip(), 12.2 * max(len(lines) - 1, 0)


def _curve_names(view: View, limits: Limits) -> list[LineName]:
    """Names of curves at their ends, where there are several."""
    found = []
    for track in view.tracks:
        known = track.predicted[~np.isnan(track.predicted)]
        if track.name and known.size:
            end = float(share_of(known[-1:], limits, logarithmic=view.decades)[0])
            found.append(name_at(track.name, end))
    return found


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


def curve_view(row: Row) -> View:
    """Prediction with its margin, rivals, and the measured points, over the parameter of the curves.

    Predictions from measured inputs are known where these were measured, and where points have settings of their own no
    line leads from one to the next: points then stand side by side, a bar at each.
    """
    apart, placed = drawn_at_points_only(row), _axis_points(row)
    tracks = _bars(row) if apart else [_line(row, k) for k in range(len(row.curves))]
    values = finite_values(*(track.predicted for track in tracks), [p.measured for p in row.points])
    spread = bool(values.size and values.min() > 0 and values.max() / values.min() > 60)
    marks = [
        Mark(x, point, "" if apart else _shape(row, place))
        for x, point, place in placed
        if place is not None or apart
    ]
    title = row.quantity or "measured and predicted"
    return View(title, _parameter(row), tracks, marks, _note(row), decades=row.relative and spread)


def _parameter(row: Row) -> Across:
    """The axis of the parameter; points side by side, each with its value, where only points are drawn."""
    name, placed = wording.named(row.curves[0].axis), _axis_points(row)
    if drawn_at_points_only(row):
        return Across(name, [-BAR, len(placed) - 1 + BAR], ticks=_bar_ticks(row))
    grid = [x for curve in row.curves for x in curve.x]
    return Across(name, grid, spans_decades(grid))


def _bar_ticks(row: Row) -> dict[float, str]:
    """The value of the parameter at each point, and below it what tells points of one value apart."""
    placed = _axis_points(row)
    values = [wording.numeral(_at(row, point), 4) for _, point, _ in placed]
    if len({*values}) == len(values):
        return {x: value for (x, *_), value in zip(placed, values, strict=True)}
    axis = row.curves[0].axis
    rest = [{k: v for k, v in point.parameters.items() if k != axis} for _, point, _ in placed]
    names = [in_lines(name, 300 / len(placed), 9.5) for name in short_names(rest)]
    return {x: "\n".join([value, *name]) for (x, *_), value, name in zip(placed, values, names, strict=True)}


def _axis_points(row: Row) -> list[tuple[float, PointOutcome, int | None]]:
    """Return points in the order of the parameter: position on the axis, point, and number of the curve."""
    last = len(row.curves)
    found = sorted(on_axis(row), key=lambda at: (_at(row, at[0]), last if at[1] is None else at[1]))
    apart = drawn_at_points_only(row)
    return [(float(k) if apart else _at(row, point), point, place) for k, (point, place) in enumerate(found)]


def _at(row: Row, point: PointOutcome) -> float:
    return float(point.parameters[row.curves[0].axis])


def _line(row: Row, place: int) -> Track:
    """A curve with its margin: a formula as it reads in our copy has that of the theory it is judged beside."""
    curve = row.curves[place]
    beside = [curve.rivals[name] for name in OWN if name in curve.rivals] if row.reading == PRINTED else []
    theory = drawable(beside[0] if beside else curve.predicted)
    half = row.margin * np.abs(theory) if row.relative else np.full(len(curve.x), row.margin)
    rivals = {name: drawable(values) for name, values in curve.rivals.items()}
    signs = [*(NETWORK_MARKS if row.data else CURVE_MARKS).values()]
    name = f"{signs[place % len(signs)]} {_curve_name(row, place)}" if len(row.curves) > 1 else ""
    return Track(np.array(curve.x), drawable(curve.predicted), half, rivals, name)


def _curve_name(row: Row, place: int) -> str:
    """What tells a curve from the others."""
    return short_names([others(curve) for curve in row.curves])[place]


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
    """The mark of a curve where there are several; on networks always a square or another of theirs."""
    if place is None:
        return OFF_CURVES
    marks = [*(NETWORK_MARKS if row.data else CURVE_MARKS)]
    return marks[place % len(marks)] if len(row.curves) > 1 else _square(row)


def _square(row: Row) -> str:
    return "s" if row.data else ""


def _note(row: Row) -> str:
    """Meaning of the lines, and the number of points that are on none of them."""
    half = f"{wording.numeral(100 * row.margin, 3)} %" if row.relative else wording.numeral(row.margin, 3)
    if known_at_points_only(row):
        said = "Bars: predicted from what was measured with it"
    elif drawn_at_points_only(row):
        said = "Bars: predicted at the settings of each point"
    else:
        said = "Line: predicted"
    hidden = 0 if drawn_at_points_only(row) else sum(place is None for _, place in on_axis(row))
    more = f" {hidden} more point{'s' * (hidden > 1)} at other settings." if hidden else ""
    return f"{said}; band: margin, {half}; {_marks_said(row)}.{more}"


def _marks_said(row: Row) -> str:
    """What the marks are, and how those that disagree look."""
    seen = {point.verdict for point in row.points}
    crossed = bool(row.data) or (len(row.curves) > 1 and not drawn_at_points_only(row))
    plain = "diamonds" if seen == {"disagrees"} and not crossed else "dots"
    said = "squares: measured on networks" if row.data else f"{plain}: measured"
    odd = "crossed" if crossed else "diamonds"
    return f"{said}, with intervals" + f", {odd} where they disagree" * (
        "disagrees" in seen and plain == "dots"
    )


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
        "Line and band: predicted, with margin; dots: means at each size",
    )
    if row.kind == Kind.EXPONENT:
        marks = [Mark(x, _number(slope)) for x, slope in local_slopes(profile)]
        title, note = (
            f"Exponent between successive sizes of {row.quantity}",
            "Line and band: predicted, with margin; dots: between sizes",
        )
    x = np.array([math.exp(first), end])
    flat = {r.name: drawable([r.value] * 2) for r in point.rivals}
    ticks = {p.x: wording.numeral(p.x) for p in reversed(profile)}
    return View(
        title + _at_point(row, point),
        Across("size", x.tolist(), True, ticks if settled else {end: "∞", **ticks}),
        [Track(x, drawable([point.predicted] * 2), drawable([point.margin] * 2), flat)],
        [*marks, Mark(end, point)],
        f"{note}." if settled else f"{note}; at ∞: extrapolated, with its interval.",
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
        "Line and band: predicted, with margin; dots: share of replicates up to here.",
    )


PROFILES: dict[str, Callable[[Row, PointOutcome], View | None]] = {
    Kind.DISTRIBUTION: _distribution,
    Kind.SETTLED: _sizes,
    Kind.LIMIT: _sizes,
    Kind.EXPONENT: _sizes,
}
"""Inputs of the estimand of a kind, at the point that decides the verdict."""


# --- in margins


class Rows(NamedTuple):
    """Points of a row, each on a line of its own: its name in lines and its numbers; many have neither."""

    points: list[PointOutcome]
    names: list[list[str]]
    numbers: list[list[str]]

    @property
    def few(self) -> bool:
        """Whether each has a name."""
        return bool(self.names)

    @property
    def pitch(self) -> float:
        """Points from one line to the next."""
        if not self.few:
            return STRIP / len(self.points)
        return max(18.0, 4 + LEADING * max(map(len, self.names))) * (1.6 if len(self.points) == 1 else 1.0)


def _rows(row: Row) -> Rows:
    points = row.points
    if len(points) <= FEW:
        short = short_names([point.parameters for point in points])
        for names in ([_name_of(point, points) for point in points], short):
            found = Rows(
                points, [in_lines(name, NAMES, SIZE) for name in names], [_numbers(row, p) for p in points]
            )
            tall = max(map(len, found.names)) > LINES and names is not short
            if found.pitch * len(points) <= TALLEST and not tall:
                return found
    return Rows(sorted(points, key=lambda p: -_order(wording.deviation(p))), [], [])


def _numbers(row: Row, point: PointOutcome) -> list[str]:
    """What was measured and predicted, as the table has it."""
    if _from_zero(row):
        return [wording.numeral(point.measured, 2)]
    return [wording.measurement(point), wording.numeral(point.predicted)]


def deviations_panel(row: Row, width: float = WIDTH) -> Panel:
    """A line for each point: its interval and its rivals, in margins; exact ones as differences beside their tolerance.

    Many points are sorted and have neither names nor numbers.
    """
    rows, exact = _rows(row), row.kind in EXACT
    points, headings = rows.points, wording.headings(row.kind)
    columns = [headings.measured, headings.predicted][: len(rows.numbers[0]) if rows.few else 0]
    widths = [
        8 + max(width_of(text, SIZE) for text in (column, *(numbers[k] for numbers in rows.numbers)))
        for k, column in enumerate(columns)
    ]
    left = 10 + max((width_of(line, SIZE) for name in rows.names for line in name), default=4.0)
    right = RIGHT + sum(widths)
    x = _exact_scale(row) if exact else margins_scale(
        points, f"{headings.deviation} / margin", from_zero=_from_zero(row)
    )  # fmt: skip
    room, few = width - 2 * EDGE - left - right, rows.few
    shown = [_on_axis(point, x.ends) if exact else _in_margins(point) for point in points]
    # the distance of two laws from a third says nothing of theirs
    rivals = _rivals(() if row.kind == Kind.DISTRIBUTION else points, exact)
    tags = _tags(rivals, x)
    above_names = levels(tags, left - 4, 0.0 if columns else RIGHT - 4, room)
    beyond = sum(p.verdict != "agrees" for p in points)
    edge = "tolerance" if exact else "margin"
    count = "" if few else f"beyond the {edge}: {beyond or 'none'} of {len(points)} points"
    title, lift = _named(row, "; ".join(part for part in (row.quantity, count) if part), width - 2 * EDGE)
    tiers = max((level + 1 for _, level, _ in above_names), default=0)
    above = (TOP + lift if title else 6.0) + LEADING * max(tiers, bool(columns)) + 4 * bool(tiers or columns)
    height = rows.pitch * len(points)
    last = -len(points) + 0.5

    def draw(axes: Axes) -> None:
        dress(axes, x, Scale(title, (last, 0.5), []), left=left, above=above)
        axes.spines["left"].set_visible(False)
        axes.tick_params(left=False)
        for place, point in enumerate(points):
            sides = (x.ends[0], point.margin or x.ends[0]) if exact else _agreeing(row, x.ends, -1.0, 1.0)
            axes.fill_between(sides, -place - 0.5, -place + 0.5, color=PALETTE["band"], linewidth=0)
        if not exact:
            axes.plot([0, 0], [last, 0.5], color=PALETTE["theory"], lw=1.9, zorder=2)
        for k, values in enumerate(rivals.values()):
            _draw_rival_marks(axes, values, x.ends, k, few)
        _draw_tags(axes, tags, above_names, room)
        for place, (point, at) in enumerate(zip(points, shown, strict=True)):
            size = 4.6 if few else 3.0
            draw_measured(axes, at, -place, "x", x.ends, size=size, said=tip(point), networks=bool(row.data),
                          mark=_square(row))  # fmt: skip
            if few:
                _write_beside(axes, place, rows, left, widths, missing=math.isnan(point.measured))
        _write_columns(axes, columns, widths)

    return Panel(max(height, 30.0), draw, "", left, right, above, BELOW + 4)


def _exact_scale(row: Row) -> Scale:
    """Logarithmic axis of differences, from the smallest, or from 0, to the farthest rival."""
    seen = finite_values([p.measured for p in row.points])
    tolerance = max(finite_values([p.margin for p in row.points]).max(initial=0.0), 1e-30)
    others = finite_values([r.value for p in row.points for r in p.rivals])
    least = min(seen[seen > SMALLEST].min(initial=tolerance), tolerance / 100)
    floor = 10.0 ** math.floor(math.log10(least))
    zero = bool((seen <= SMALLEST).any())
    ends = (floor / (30 if zero else 2), 3 * max(tolerance, seen.max(initial=0.0), others.max(initial=0.0)))
    texts = {ends[0]: "0"} if zero else {}
    texts |= {value: tick_text(value) for value in powers(floor, ends[1]) if not zero or value > 20 * floor}
    name = "violation" if "property" in row.kind else "relative difference of the two routes"
    told = f"{name}; tolerance {wording.numeral(tolerance, 2)}"
    return Scale(told, ends, [*texts], True, texts)


def _on_axis(point: PointOutcome, ends: Limits) -> PointOutcome:
    """Return a difference with what is 0 at the end of its logarithmic axis."""
    low, seen, high = (max(value, ends[0]) for value in (point.lower, point.measured, point.upper))
    return replace(point, lower=low, measured=seen, upper=high)


def _rivals(points: Sequence[PointOutcome], exact: bool) -> dict[str, list[float]]:
    """Places of each rival on the axis, one for each point; NaN where it has none."""
    found: dict[str, list[float]] = {}
    for place, point in enumerate(points):
        for rival in point.rivals:
            at = rival.value if exact else wording.deviation(point, rival.value)
            found.setdefault(rival.name, [math.nan] * len(points))[place] = at
    return found


def _tags(rivals: Mapping[str, list[float]], x: Scale) -> list[AboveName]:
    """Names of rivals above the frame: where the first of their marks is, or at the edge, with the nearest distance."""
    low, high = x.ends
    found = []
    for k, (name, values) in enumerate(rivals.items()):
        known = [value for value in values if not math.isnan(value)]
        inside = [value for value in known if low <= value <= high]
        text = typeset(name)
        if inside:
            found.append(AboveName(text, share_along(inside[0], x), "", dashes_of(k)))
            continue
        nearest = min(known, key=abs, default=math.nan)
        far = "no value" if math.isnan(nearest) else wording.numeral(nearest, 2)
        if nearest < low:
            found.append(AboveName(f"◂ {text}: {far}", 0.0, "<", ()))
        else:
            found.append(AboveName(f"{text}: {far} ▸", 1.0, ">", ()))
    return found


def _draw_rival_marks(axes: Axes, values: Sequence[float], ends: Limits, k: int, few: bool) -> None:
    """A dashed piece of line across each point's own line; of many points one line at the farthest."""
    inside = [(place, value) for place, value in enumerate(values) if ends[0] <= value <= ends[1]]
    if not few and inside:
        farthest = max((value for _, value in inside), key=abs)
        draw_rival(axes, [farthest] * 2, [-len(values) + 0.5, 0.5], ls=(0, dashes_of(k)))
    for place, value in inside if few else ():
        draw_rival(axes, [value] * 2, [-place - 0.5, -place + 0.5], ls=(0, dashes_of(k)))


def _draw_tags(axes: Axes, tags: Sequence[AboveName], names: Sequence[Written], room: float) -> None:
    """Names of rivals above the frame, each with a line that leads to its marks."""
    height, width = (side * points_per_pixel(axes) for side in reversed(axes.bbox.size))
    for tag, (start, level, text) in zip(tags, names, strict=True):
        rise = 5 + LEADING * level
        axes.annotate(
            text, (0, 1), xycoords="axes fraction", xytext=(start * width / room, rise), textcoords="offset points",
            fontsize=SIZE, color=PALETTE["rival"], va="baseline", annotation_clip=False, parse_math=False,
        )  # fmt: skip
        if tag.dash:
            axes.plot(
                [tag.place] * 2, [1, 1 + (rise - 2) / height], transform=axes.transAxes, clip_on=False, lw=1.0,
                color=PALETTE["rival"], ls=(0, tag.dash),
            )  # fmt: skip


def _write_beside(
    axes: Axes, place: int, rows: Rows, left: float, widths: Sequence[float], *, missing: bool
) -> None:
    """Name of a line to its left, its numbers to its right."""
    style: Any = {
        "fontsize": SIZE, "color": PALETTE["muted"], "textcoords": "offset points", "annotation_clip": False,
        "va": "center_baseline", "parse_math": False,
    }  # fmt: skip
    name = rows.names[place]
    for k, line in enumerate(name):
        drop = LEADING * ((len(name) - 1) / 2 - k)
        axes.annotate(line, (0, -place), (-left, drop), ("axes fraction", "data"), **style)
    numbers, at = ["no value", *rows.numbers[place][1:]] if missing else rows.numbers[place], 0.0
    for k, (text, width) in enumerate(zip(numbers, widths, strict=True)):
        at += width
        axes.annotate(
            text, (1, -place), (at, 0), ("axes fraction", "data"), ha="right",
            **style | ({} if k else {"color": PALETTE["ink"]}),
        )  # fmt: skip


def _write_columns(axes: Axes, columns: Sequence[str], widths: Sequence[float]) -> None:
    """What the numbers to the right are."""
    at = 0.0
    for name, width in zip(columns, widths, strict=True):
        at += width
        axes.annotate(
            name, (1, 1), (at, 4), "axes fraction", textcoords="offset points", fontsize=SIZE, ha="right",
            color=PALETTE["muted"], annotation_clip=False,
        )  # fmt: skip


def short_names(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names by as few parameters as tell all apart.

    >>> short_names([{"law": "relu", "dim": 7, "k": 1}, {"law": "relu", "dim": 7, "k": 2}])
    ['k = 1', 'k = 2']
    """
    names = list(dict.fromkeys(name for at in values for name in at))

    def kinds(chosen: Sequence[str]) -> int:
        return len({repr([at.get(name) for name in chosen]) for at in values})

    kept: list[str] = []
    while kinds(kept) < kinds(names):
        kept.append(
            max(names, key=lambda name: (kinds([*kept, name]), -len(brief({name: values[0].get(name)}))))
        )
    return [brief({name: at[name] for name in kept if name in at}) for at in values]


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
