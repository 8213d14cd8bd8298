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
    named_scale,
    padded_ends,
    plain_scale,
    powers,
    share_along,
    share_of,
    tick_text,
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
    tip,
    width_of,
)
from verify.page.formulas import typeset
from verify.page.heading import mathtext
from verify.page.rival_labels import (
    LEADING,
    SIZE,
    dashes_of,
    draw_names,
    draw_tag,
    line_name,
    names_height,
    names_width,
    shared_lines,
    write_beside,
)
from verify.page.theme import PALETTE
from verify.page.vocabulary import EXACT
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

MARKS = {False: {"o": "●", "^": "▲", "v": "▼"}, True: {"s": "■", "^": "▲", "v": "▼"}}
"""Marks of the curves of a row that has several, as drawn and as at the end of the curve; True: on networks."""

OFF_CURVES = "P"
"""Mark of a point on none of the curves that are drawn."""

FEW = 12
"""Points that have a line with a name each."""

TALLEST, STRIP = 168.0, 96.0
"""Height of a frame with a line for each point, and of one with many."""

NAMES = 0.29
"""Widest line of the name of a point, as a share of the figure."""

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


class View(NamedTuple):
    """Content of a panel in the unit of the quantity; `decades` is true for a logarithmic axis."""

    title: str
    across: Scale
    tracks: list[Track]
    marks: list[Mark]
    note: str
    decades: bool = False


def row_panels(row: Row, width: float = WIDTH) -> list[Panel]:
    """The panels of a row, the main one first, as its kind has them."""
    view = _view(row)
    return [*([_view_panel(row, view, width)] if view else []), deviations_panel(row, width)]


def _view(row: Row) -> View | None:
    if row.curves:
        return curve_view(row)
    point, seen = wording.telling(row), PROFILES.get(row.kind)
    return seen(row, point) if seen and point else None


def _view_panel(row: Row, view: View, width: float) -> Panel:
    """Theory in its band, the rivals with their names at the ends of their lines, and what was measured."""
    limits = _value_limits(view, row.margin)
    heights = [
        {name: share_of(y, limits, logarithmic=view.decades) for name, y in track.rivals.items()}
        for track in view.tracks
    ]
    groups = shared_lines(heights)
    curves = [share_of(track.predicted, limits, logarithmic=view.decades) for track in view.tracks]
    names = [line_name(t.name, [ends]) for t, ends in zip(view.tracks, curves, strict=True) if t.name]
    for k, (name, *same) in enumerate(groups):
        lines = [shown[name] for shown in heights if name in shown]
        names.append(line_name(" = ".join([name, *same]), lines, dashes_of(k)))
    up = plain_scale("", limits, logarithmic=view.decades)
    left = max(LEFT, 10 + max((width_of(text, 9.5) for text in up.texts.values()), default=0.0))
    right = max(RIGHT, names_width(names))
    room = width - 2 * EDGE - left - right
    title, lift = _named(row, view.title, width - 2 * EDGE)
    over = view.across
    name, drop = _named(row, view.across.name, room + left - 10)

    def draw(axes: Axes) -> None:
        dress(axes, over._replace(name=name), up._replace(name=title), left=left, above=TOP + lift)
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

    height = max(142.0, names_height(names))
    return Panel(height, draw, view.note, left, right, TOP + lift, BELOW + 6 + drop)


def _named(row: Row, words: str, room: float) -> tuple[str, float]:
    """The name of an axis in lines, with the letter that its paper has for it, and the height of all lines but one."""
    lines = in_lines(typeset(words), room - 30, 10.0)
    letter = next((latex for latex, said in row.symbols.items() if said in (words, f"number of {words}")), "")
    escaped = "\n".join(lines).replace("$", r"\$")
    return f"{escaped} {mathtext(letter)}".strip(), 12.2 * max(len(lines) - 1, 0)


def _value_limits(view: View, margin: float) -> Limits:
    """Everything measured and predicted, and of margins, intervals and rivals what stays within reach of it."""
    core = finite_values(*(track.predicted for track in view.tracks), [m.point.measured for m in view.marks])
    extra = finite_values(
        *(values for track in view.tracks for values in track.rivals.values()),
        [side for mark in view.marks for side in (mark.point.lower, mark.point.upper)],
    )
    halves = finite_values(*(track.half for track in view.tracks), [m.point.margin for m in view.marks])
    least = min(margin, 0.7) if view.decades else float(halves.max(initial=0.0))
    return limits_around(core, extra, least=1.3 * least, logarithmic=view.decades)


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
        Mark(x, point, "s" * bool(row.data) if apart else _shape(row, place))
        for x, point, place in placed
        if place is not None or apart
    ]
    title = row.quantity or "measured and predicted"
    return View(title, _parameter(row), tracks, marks, _note(row), decades=row.relative and spread)


def _parameter(row: Row) -> Scale:
    """The axis of the parameter; points side by side, each with its value, where only points are drawn."""
    name, placed = wording.named(row.curves[0].axis), _axis_points(row)
    if drawn_at_points_only(row):
        ticks = {x: wording.numeral(_at(row, point), 4) for x, point, _ in placed}
        return named_scale(name, padded_ends([-BAR, len(placed) - 1 + BAR]), ticks)
    grid = [x for curve in row.curves for x in curve.x]
    logarithmic = spans_decades(grid)
    whole = all(float(x).is_integer() for x in grid)
    return plain_scale(name, padded_ends(grid, logarithmic=logarithmic), logarithmic=logarithmic, whole=whole)


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
    signs = [*MARKS[bool(row.data)].values()]
    name = short_names([others(curve) for curve in row.curves])[place]
    return Track(
        np.array(curve.x),
        drawable(curve.predicted),
        half,
        rivals,
        name and f"{signs[place % len(signs)]} {name}",
    )


def _bars(row: Row) -> list[Track]:
    """A piece of line at each point, and of each rival that is known there."""
    placed = _axis_points(row)

    def pieces(values: Sequence[float]) -> Floats:
        return drawable([part for value in values for part in (value, value, math.nan)])

    def known(point: PointOutcome, place: int | None) -> dict[str, float]:
        if place is None:
            return {}
        curve = row.curves[place]
        return {name: values[curve.x.index(_at(row, point))] for name, values in curve.rivals.items()}

    rivals = [known(point, place) for _, point, place in placed]
    names = dict.fromkeys(name for at in rivals for name in at)
    return [
        Track(
            drawable([part for at, *_ in placed for part in (at - BAR, at + BAR, math.nan)]),
            pieces([point.predicted for _, point, _ in placed]),
            pieces([point.margin for _, point, _ in placed]),
            {name: pieces([at.get(name, math.nan) for at in rivals]) for name in names},
        )
    ]


def _shape(row: Row, place: int | None) -> str:
    """The mark of a curve where there are several; that of the verdict, or of networks, where there is one."""
    if place is None:
        return OFF_CURVES
    marks = [*MARKS[bool(row.data)]]
    return marks[place % len(marks)] if len(row.curves) > 1 else "s" * bool(row.data)


def _note(row: Row) -> str:
    """Meaning of the lines and marks, and the number of points that are on none of them."""
    half = f"{wording.numeral(100 * row.margin, 3)} %" if row.relative else wording.numeral(row.margin, 3)
    said, hidden = "Line: predicted", sum(place is None for _, place in on_axis(row))
    if drawn_at_points_only(row):
        where = (
            "from what was measured with it" if known_at_points_only(row) else "at the settings of each point"
        )
        said, hidden = f"Bars: predicted {where}", 0
    more = f"; {hidden} more point{'s' * (hidden > 1)} at other settings" if hidden else ""
    marks = "squares: measured on networks" if row.data else "marks: measured"
    return f"{said}; band: margin, {half}; {marks}, with intervals{more}."


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
        named_scale(
            "size",
            padded_ends(x.tolist(), logarithmic=True),
            ticks if settled else {end: "∞", **ticks},
            logarithmic=True,
        ),
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
        plain_scale(row.quantity, padded_ends(x.tolist())),
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


def deviations_panel(row: Row, width: float = WIDTH) -> Panel:
    """A line for each point: its interval and its rivals, in margins; exact ones as differences beside their tolerance.

    Many points are sorted and have neither names nor numbers. Rivals beyond the axis are in the note.
    """
    exact, found = row.kind in EXACT, wording.headings(row.kind)
    points, names = _named_points(row, NAMES * width)
    x = (
        _exact_scale(row)
        if exact
        else margins_scale(points, f"{found.deviation} / margin", from_zero=_from_zero(row))
    )
    numbers = [_numbers(row, point) for point in points] if names else []
    head = found.measured + f" ({found.predicted})" * (not _from_zero(row))
    left = 10 + max((width_of(line, 9.5) for name in names for line in name.split("\n")), default=4.0)
    right = RIGHT + max((8 + width_of(text, SIZE) for text in (head, *numbers) if names), default=0.0)
    # the distance of two laws from a third says nothing of theirs
    rivals = {} if row.kind == Kind.DISTRIBUTION else _rivals(points, exact, farthest=not names)
    tags, beyond = _tags(rivals, x)
    if beyond:
        beyond = f"Rivals beyond the axis, in margins{'' if names else ', at the farthest point'}: {beyond}."
    off = sum(point.verdict != "agrees" for point in points)
    count = "" if names else f"outside the band: {off or 'none'} of {len(points)} points"
    title, lift = _named(row, "; ".join(part for part in (row.quantity, count) if part), width - 2 * EDGE)
    along, drop = _named(row, x.name, width - 2 * EDGE - right)
    above = (TOP + lift if title else 8.0) + LEADING * max(len(tags), bool(names))
    pitch = _pitch(names) if names else STRIP / len(points)
    last, shown = 0.5 - len(points), {float(-place): name for place, name in enumerate(names)}

    def draw(axes: Axes) -> None:
        dress(
            axes,
            x._replace(name=along),
            Scale(title, (last, 0.5), [*shown], texts=shown),
            left=left,
            above=above,
        )
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        low, high = _agreeing(row, x.ends, -1.0, 1.0)
        axes.fill_between(
            [x.ends[0], max(p.margin for p in points)] if exact else [low, high], last, 0.5, color=PALETTE["band"], lw=0
        )  # fmt: skip
        if not exact:
            draw_law(axes, [0, 0], [last, 0.5])
        for k, values in enumerate(rivals.values()):
            pieces = [part for value in values for part in (value, value, math.nan)]
            heights = [part for place in range(len(values)) for part in (0.5 - place, -0.5 - place, math.nan)]
            draw_rival(axes, pieces, heights, ls=(0, dashes_of(k)))
        for level, (text, share, k) in enumerate(tags):
            draw_tag(axes, text, share, dashes_of(k), level)
        for place, point in enumerate(points):
            draw_measured(
                axes, _on_axis(point, x, exact), -place, "x", x.ends, size=4.6 if names else 3.0, said=tip(point),
                networks=bool(row.data), mark="s" * bool(row.data),
            )  # fmt: skip
        for place, number in enumerate(numbers):
            write_beside(
                axes, number, (1, -place), (right - RIGHT, 0), coords=("axes fraction", "data"), ha="right"
            )
        if names:
            write_beside(axes, head, (1, 1), (right - RIGHT, 8), ha="right")

    return Panel(max(pitch * len(points), 30.0), draw, beyond, left, right, above, BELOW + 4 + drop)


def _named_points(row: Row, room: float) -> tuple[list[PointOutcome], list[str]]:
    """Points with their names; many, or such that need too much room, sorted and without names."""
    points = row.points
    names = ["\n".join(in_lines(name, room, 9.5)) for name in short_names([p.parameters for p in points])]
    if len(points) <= FEW and _pitch(names) * len(points) <= TALLEST:
        return points, names
    return sorted(points, key=lambda point: -_order(wording.deviation(point))), []


def _pitch(names: Sequence[str]) -> float:
    """Points from one line to the next."""
    return max(18.0, 5 + 11.6 * (1 + max(name.count("\n") for name in names)))


def _numbers(row: Row, point: PointOutcome) -> str:
    """What was measured and predicted, as the table has it."""
    if math.isnan(point.measured):
        return "no value"
    if _from_zero(row):
        return wording.numeral(point.measured, 2)
    return f"{wording.measurement(point)} ({wording.numeral(point.predicted)})"


def _exact_scale(row: Row) -> Scale:
    """Logarithmic axis of differences, from the smallest, or from 0, to the farthest rival."""
    seen = finite_values([p.measured for p in row.points])
    tolerance = max(finite_values([p.margin for p in row.points]).max(initial=0.0), 1e-30)
    others = finite_values([r.value for p in row.points for r in p.rivals])
    floor = 10.0 ** math.floor(math.log10(min(seen[seen > SMALLEST].min(initial=tolerance), tolerance / 100)))
    zero = bool((seen <= SMALLEST).any())
    ends = (floor / (30 if zero else 2), 3 * max(tolerance, seen.max(initial=0.0), others.max(initial=0.0)))
    texts = {ends[0]: "0"} if zero else {}
    texts |= {value: tick_text(value) for value in powers(floor, ends[1]) if not zero or value > 20 * floor}
    name = "violation" if "property" in row.kind else "relative difference of the two routes"
    return Scale(f"{name}; tolerance {wording.numeral(tolerance, 2)}", ends, [*texts], True, texts)


def _on_axis(point: PointOutcome, x: Scale, exact: bool) -> PointOutcome:
    """Return the outcome in units of its margin, or a difference with 0 at the end of its logarithmic axis."""

    def place(value: float, none: float) -> float:
        seen = max(value, x.ends[0]) if exact else wording.deviation(point, value)
        return none if math.isnan(seen) else seen

    low, high = place(point.lower, -math.inf), place(point.upper, math.inf)
    return replace(point, predicted=0.0, measured=place(point.measured, math.nan), lower=low, upper=high)


def _rivals(points: Sequence[PointOutcome], exact: bool, *, farthest: bool) -> dict[str, list[float]]:
    """Places of each rival on the axis, one for each point; NaN where it has none; or the `farthest` for all."""
    found: dict[str, list[float]] = {}
    for place, point in enumerate(points):
        for rival in point.rivals:
            at = rival.value if exact else wording.deviation(point, rival.value)
            found.setdefault(rival.name, [math.nan] * len(points))[place] = at
    if farthest:
        return {
            name: [max(finite_values(at), key=abs, default=math.nan)] * len(at) for name, at in found.items()
        }
    return found


def _tags(rivals: Mapping[str, list[float]], x: Scale) -> tuple[list[tuple[str, float, int]], str]:
    """Names of rivals with the places of their farthest marks and their numbers, and those beyond the axis, in words.

    From the middle outwards: the line that leads to a mark passes beside the names below its own.
    """
    inside, beyond = list[tuple[str, float, int]](), list[str]()
    for k, (name, values) in enumerate(rivals.items()):
        shown = [value for value in values if x.ends[0] <= value <= x.ends[1]]
        if shown:
            inside.append((typeset(name), share_along(max(shown, key=abs), x), k))
        else:
            nearest = min((value for value in values if not math.isnan(value)), key=abs, default=math.nan)
            beyond.append(f"{typeset(name)} ({wording.numeral(nearest, 2)})")
    inside.sort(key=lambda tag: abs(tag[1] - 0.5))
    return sorted(inside, key=lambda tag: tag[1] > 0.5), ", ".join(beyond)


def _order(value: float) -> float:
    return math.inf if math.isnan(value) else value


def short_names(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names by as few parameters as tell all apart; empty for a single one.

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


# --- names of points


def _at_point(row: Row, point: PointOutcome) -> str:
    """Which of several points a panel shows."""
    name = short_names([p.parameters for p in row.points])[row.points.index(point)]
    return f" at {name}" if name else ""


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
