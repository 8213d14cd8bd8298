"""The panels of a row: prediction, margin, rivals and measured points, in the unit of the quantity and in margins.

| row | first panel |
|---|---|
| with curves | over the parameter |
| spans sizes | over the sizes, with what they tend to |
| any other, or with predictions at its points only | a line for each point, in margins; of many points no names |

Where all panels are asked for, the deviations in margins are below the first two as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from verify.judging.judge import PRINTED
from verify.model import ABSOLUTE, Kind
from verify.page import wording
from verify.page.axes import (
    differences_scale,
    limits_around,
    margins_scale,
    padded_ends,
    plain_scale,
)
from verify.page.canvas import (
    ABOVE,
    APART,
    BELOW,
    LINE,
    Scale,
    draw_law,
    draw_rival,
    dress,
    lines_of,
    name_lines,
    points_per_pixel,
    with_indices,
)
from verify.page.drawing import (
    DASHES,
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
from verify.page.theme import PALETTE
from verify.page.vocabulary import EXACT
from verify.results import PointOutcome, ProfilePoint, Row
from verify.results.lines import drawn_at_points_only, on_axis, spans_decades

LEFT, RIGHT, TOP = 44.0, 14.0, ABOVE + 4
"""Points beside a frame, and above it."""

SMALLEST = 1e-100
"""Numbers below are treated like 0 where an axis is logarithmic."""

OWN = ("corrected", "theory")
"""The reading of a formula that our copy reads otherwise."""

MARKS = {"o": "●", "^": "▲", "v": "▼"}
"""Marks of the curves of a row that has several, as drawn and as at the end of the curve."""

PIECE = 16.0
"""Length of the piece of a line between a frame and the name of the line."""

FEW, STRIP = 12, 96.0
"""Points that have a line with a name each, and the height of a frame of more points."""

TALLEST = 168.0
"""Height of a frame with a line for each point."""

NAMES = 0.29
"""Widest line of the name of a point, as a share of the figure."""

LONGEST = 36
"""Letters of a parameter; of a longer list only the first entries are shown."""


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


def row_panels(row: Row, width: float = WIDTH, *, main: bool = False) -> list[Panel]:
    """The panels of a row, the main one first, or this one alone."""
    view, point = None, wording.telling(row)
    if row.curves and not drawn_at_points_only(row):
        view = curve_view(row)
    elif point and row.kind in (Kind.LIMIT, Kind.EXPONENT):
        view = _sizes(row, point)
    shown = [_view_panel(row, view, width)] if view else []
    return shown if shown and main else [*shown, deviations_panel(row, width)]


def _view_panel(row: Row, view: View, width: float) -> Panel:
    """Theory in its band, the rivals with their names at the ends of their lines, and what was measured."""
    limits = _value_limits(view, row.margin)
    rivals = dict.fromkeys(name for track in view.tracks for name in track.rivals)
    dashes = {name: dashes_of(k) for k, name in enumerate(rivals)}
    names = [*map(typeset, dashes), *(track.name for track in view.tracks)]
    named = list(map(lines_of, names))
    texts = [width_of(f"{line} ↑", 9.5) for lines in named for line in lines]
    up = plain_scale("", limits, logarithmic=view.decades)
    left = max(LEFT, 10 + max((width_of(text, 9.5) for text in up.texts.values()), default=0.0))
    right = PIECE + 6 + max(texts) if texts else RIGHT
    title, lift = _named(row, view.title, width - 2 * EDGE)
    name, drop = _named(row, view.across.name, width - 2 * EDGE - right - 10)

    def draw(axes: Axes) -> None:
        dress(axes, view.across._replace(name=name), up._replace(name=title), left=left, above=TOP + lift)
        unnamed = {name: typeset(name) for name in dashes}
        for x, y, half, lines, law in view.tracks:
            low, high = _agreeing(row, limits, y - half, y + half)
            axes.fill_between(x, low, high, color=PALETTE["band"], linewidth=0)
            for rival, values in lines.items():
                if np.isfinite(values).any():
                    draw_rival(axes, x, values, ls=(0, dashes[rival]), label=unnamed.pop(rival, "_"))
            draw_law(axes, x, y, label=law or "_")
        name_lines(axes, PIECE)
        for x, point, shape in view.marks:
            draw_measured(axes, point, x, "y", limits, mark=shape, networks=bool(row.data), said=tip(point),
                          size=4.2 if point.verdict else 3.4)  # fmt: skip

    note = f"Line and band: predicted, with margin; marks: measured, with intervals{view.note}."
    height = LINE * len(texts) + APART * len(named)
    return Panel(max(142.0, height), draw, note, left, right, TOP + lift, BELOW + 6 + drop)


def dashes_of(k: int) -> tuple[float, ...]:
    """Dashes of the rival of this number."""
    return DASHES[k % len(DASHES)]


def _named(row: Row, words: str, room: float) -> tuple[str, float]:
    """The name of an axis in lines, with the letter that its paper has for it, and the height of all lines but one."""
    lines = in_lines(typeset(words), room - 30, 10.0)
    letter = next((latex for latex, said in row.symbols.items() if said in (words, f"number of {words}")), "")
    return f"{with_indices(chr(10).join(lines))} {mathtext(letter)}".strip(), 12.2 * max(len(lines) - 1, 0)


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
    """Prediction with its margin, rivals, and the measured points, over the parameter of the curves."""
    axis, shapes = row.curves[0].axis, [*MARKS] if len(row.curves) > 1 else ["s" * bool(row.data)]
    tracks = [_line(row, k) for k in range(len(row.curves))]
    values = finite_values(*(track.predicted for track in tracks), [p.measured for p in row.points])
    spread = bool(values.size and values.min() > 0 and values.max() / values.min() > 60)
    found = [
        Mark(float(point.parameters[axis]), point, shapes[place % len(shapes)])
        for point, place in on_axis(row)
        if place is not None
    ]
    hidden = sum(place is None for _, place in on_axis(row))
    more = f"; {hidden} more point{'s' * (hidden > 1)} at other settings" if hidden else ""
    grid = [x for curve in row.curves for x in curve.x]
    logarithmic, whole = spans_decades(grid), all(float(x).is_integer() for x in grid)
    ends = padded_ends(grid, logarithmic=logarithmic)
    across = plain_scale(wording.named(axis), ends, logarithmic=logarithmic, whole=whole)
    return View(
        row.quantity or "measured and predicted", across, tracks, found, more, decades=row.relative and spread
    )


def _line(row: Row, place: int) -> Track:
    """A curve with its margin: a formula as it reads in our copy has that of the theory it is judged beside."""
    curve = row.curves[place]
    beside = [curve.rivals[name] for name in OWN if name in curve.rivals] if row.reading == PRINTED else []
    theory = drawable(beside[0] if beside else curve.predicted)
    half = row.margin * np.abs(theory) if row.relative else np.full(len(curve.x), row.margin)
    name = short_names([curve.at for curve in row.curves])[place]
    sign = [*MARKS.values()][place % len(MARKS)]
    rivals = {name: drawable(values) for name, values in curve.rivals.items()}
    return Track(np.array(curve.x), drawable(curve.predicted), half, rivals, name and f"{sign} {name}")


def _sizes(row: Row, point: PointOutcome) -> View | None:
    """Means at each size, or exponents between them, and what they tend to at the right edge."""
    usable = (p for p in point.profile if SMALLEST < p.x < LARGEST and abs(p.measured) < LARGEST)
    profile = sorted(usable, key=lambda p: p.x)
    if len({p.x for p in profile}) < 2:
        return None
    first, last = math.log(profile[0].x), math.log(profile[-1].x)
    end = math.exp(min(last + 0.22 * (last - first), 690.0))
    marks = [Mark(p.x, mean_at(p)) for p in profile]
    title = row.quantity or "Mean at each size"
    if row.kind == Kind.EXPONENT:
        marks = [
            Mark(x, mean_at(ProfilePoint(x=x, measured=slope, lower=slope, upper=slope, predicted=math.nan)))
            for x, slope in local_slopes(profile)
        ]
        title = f"Exponent between successive sizes of {row.quantity}"
    x = np.array([math.exp(first), end])
    flat = {r.name: drawable([r.value] * 2) for r in point.rivals}
    across = plain_scale("size", padded_ends(x.tolist(), logarithmic=True), logarithmic=True)
    ticks = [at for at in across.ticks if at <= profile[-1].x]
    across = across._replace(ticks=[*ticks, end], texts={**across.texts, end: "∞"})
    track = Track(x, drawable([point.predicted] * 2), drawable([point.margin] * 2), flat)
    return View(
        title + _at_point(row, point), across, [track], [*marks, Mark(end, point)], "; at ∞: extrapolated"
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


def mean_at(at: ProfilePoint) -> PointOutcome:
    """The mean at one size as an outcome, on which nothing is judged by itself."""
    return PointOutcome(
        parameters={}, verdict="", predicted=at.predicted, margin=0.0, measured=at.measured,
        lower=at.lower, upper=at.upper,
    )  # fmt: skip


# --- in margins


def deviations_panel(row: Row, width: float) -> Panel:
    """A line for each point: its interval and its rivals, in margins; exact ones in tolerances, logarithmic.

    Many points are sorted and have neither names nor numbers. Rivals beyond the axis are in the note.
    """
    exact, found = row.kind in EXACT, wording.headings(row.kind)
    points, names = _named_points(row, NAMES * width)
    x = (
        differences_scale(points, f"{found.deviation} / tolerance")
        if exact
        else margins_scale(points, f"{found.deviation} / margin", from_zero=_from_zero(row))
    )
    numbers = [_numbers(row, point) for point in points] if names else []
    head = found.measured + f" ({found.predicted})" * (not _from_zero(row))
    left = 14 + max((width_of(line, 9.5) for name in names for line in name.split("\n")), default=0.0)
    right = RIGHT + max((12 + width_of(text, 9.0) for text in (head, *numbers) if names), default=0.0)
    # the distance of two laws from a third says nothing of theirs
    rivals = {} if row.kind == Kind.DISTRIBUTION else _rivals(points)
    if not names:
        rivals = {
            k: [max(finite_values(at), key=abs, default=math.nan)] * len(at) for k, at in rivals.items()
        }
    inside = {name: any(x.ends[0] <= at <= x.ends[1] for at in values) for name, values in rivals.items()}
    beyond = ", ".join(_distance(name, rivals[name]) for name in rivals if not inside[name])
    rivals = {typeset(name): values for name, values in rivals.items() if inside[name]}
    if beyond:
        beyond = f"Rivals beyond the axis, in margins: {beyond}."
    off = sum(point.verdict != "agrees" for point in points)
    count = f"outside the band: {off or 'none'} of {len(points)} points"
    said = [row.quantity] if names else [row.quantity, count, "rivals at their farthest" * bool(rivals)]
    title, lift = _named(row, "; ".join(filter(None, said)), width - 2 * EDGE)
    along, drop = _named(row, x.name, width - 2 * EDGE - right)
    rise = LINE if names else 4.0  # room below the rivals for the heading of the numbers, or for marks
    above = (TOP + lift if title else 8.0) + LINE * len(rivals) + rise * bool(names or rivals)
    pitch = _pitch(names) if names else STRIP / len(points)
    last, shown = 0.5 - len(points), {float(-place): name for place, name in enumerate(names)}

    def draw(axes: Axes) -> None:
        lines = Scale(
            title, (last, 0.5), [*shown], texts={at: with_indices(name) for at, name in shown.items()}
        )
        dress(axes, x._replace(name=along), lines, left=left, above=above)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0, pad=6)
        low, high = _agreeing(row, x.ends, -1.0, 1.0)
        axes.fill_between([x.ends[0] if exact else low, high], last, 0.5, color=PALETTE["band"], lw=0)
        if not exact:
            draw_law(axes, [0, 0], [last, 0.5])
        for k, (name, values) in enumerate(rivals.items()):
            pieces, heights, top = list[float](), list[float](), 0.5
            # one line through equal values: dashes begin anew with each line, and a short one has no gap
            for value, run in groupby(values):
                end = top - sum(1 for _ in run)
                pieces, heights, top = [*pieces, value, value, math.nan], [*heights, top, end, math.nan], end
            draw_rival(axes, pieces, heights, ls=(0, dashes_of(k)))
            _draw_key(axes, name, k, -left, 6 + LINE * k + rise)
        for place, point in enumerate(points):
            draw_measured(
                axes, _in_margins(point), -place, "x", x.ends, size=4.6 if names else 3.0, said=tip(point),
                networks=bool(row.data), mark="s" * bool(row.data),
            )  # fmt: skip
        for place, number in enumerate(numbers):
            _write(axes, number, (1, -place), (right - RIGHT, 0), coords=("axes fraction", "data"))
        if names:
            _write(axes, head, (1, 1), (right - RIGHT, 8))

    return Panel(max(pitch * len(points), 30.0), draw, beyond, left, right, above, BELOW + 4 + drop)


def _draw_key(axes: Axes, name: str, k: int, x: float, y: float) -> None:
    """The name of a rival with a piece of its line, so many points from the top left corner of a frame."""
    width, height = (points_per_pixel(axes) * side for side in axes.bbox.size)
    draw_rival(
        axes, [x / width, (x + PIECE) / width], [1 + y / height] * 2, ls=(0, dashes_of(k)),
        transform=axes.transAxes, clip_on=False,
    )  # fmt: skip
    _write(axes, name, (0, 1), (x + PIECE + 4, y), ha="left", color=PALETTE["rival"])


def _write(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], *, coords: Any = "axes fraction",
    **style: Any,
) -> None:  # fmt: skip
    """Write outside of a frame, so many points from a place."""
    style = {"color": PALETTE["muted"], "va": "center_baseline", "ha": "right", "parse_math": True} | style
    axes.annotate(
        with_indices(text),
        at,
        offset,
        coords,
        textcoords="offset points",
        fontsize=9,
        annotation_clip=False,
        **style,
    )


def _named_points(row: Row, room: float) -> tuple[list[PointOutcome], list[str]]:
    """Points with their names; many, or such that need too much room, sorted and without names."""
    points = _in_order(row.points)
    names = ["\n".join(in_lines(name, room, 9.5)) for name in short_names([p.parameters for p in points])]
    if len(points) <= FEW and _pitch(names) * len(points) <= TALLEST:
        return points, names
    return sorted(points, key=lambda p: -np.nan_to_num(wording.deviation(p), nan=math.inf)), []


def _in_order(points: Sequence[PointOutcome]) -> list[PointOutcome]:
    """Return the points by what tells them apart, where that is numbers."""
    names = _distinguishing([p.parameters for p in points])
    found = [[p.parameters.get(name) for name in names] for p in points]
    plain = all(isinstance(value, int | float) for values in found for value in values)
    return sorted(points, key=lambda p: [p.parameters[name] for name in names]) if plain else [*points]


def _pitch(names: Sequence[str]) -> float:
    """Points from one line to the next."""
    return max(18.0, 5 + 11.6 * (1 + max(name.count("\n") for name in names)))


def _numbers(row: Row, point: PointOutcome) -> str:
    """Return the measured and the predicted value as text, rounded as in the table."""
    if math.isnan(point.measured):
        return "no value"
    if _from_zero(row):
        return wording.numeral(point.measured, 2)
    return f"{wording.measurement(point)} ({wording.numeral(point.predicted)})"


def _in_margins(point: PointOutcome) -> PointOutcome:
    """Return the outcome in units of its margin; what has no meaning there is open."""
    low, middle, high = (wording.deviation(point, v) for v in (point.lower, point.measured, point.upper))
    low, high = -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high
    return replace(point, predicted=0.0, measured=middle, lower=low, upper=high)


def _rivals(points: Sequence[PointOutcome]) -> dict[str, list[float]]:
    """Deviations of each rival, one for each point; NaN where it has none."""
    found: dict[str, list[float]] = {}
    for place, point in enumerate(points):
        for rival in point.rivals:
            at = wording.deviation(point, rival.value)
            found.setdefault(rival.name, [math.nan] * len(points))[place] = at
    return found


def _distance(name: str, values: Sequence[float]) -> str:
    nearest = min((value for value in values if not math.isnan(value)), key=abs, default=math.nan)
    return f"{typeset(name)} ({wording.numeral(nearest, 2)})"


def short_names(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names by as few parameters as tell all apart; empty for a single one.

    >>> short_names([{"law": "relu", "dim": 7, "k": 1}, {"law": "relu", "dim": 7, "k": 2}])
    ['k = 1', 'k = 2']
    """
    kept = _distinguishing(values)
    return [brief({name: at[name] for name in kept if name in at}) for at in values]


def _distinguishing(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return as few parameters as tell all apart, those first that all have and that are short."""
    names = list(dict.fromkeys(name for at in values for name in at))

    def kinds(chosen: Sequence[str]) -> int:
        return len({repr([at.get(name) for name in chosen]) for at in values})

    kept: list[str] = []
    while kinds(kept) < kinds(names):

        def use(name: str) -> tuple[int, bool, int]:
            everywhere = all(name in at for at in values)
            return kinds([*kept, name]), everywhere, -len(brief({name: values[0].get(name)}))

        kept.append(max(names, key=use))
    return kept


# --- names of points


def _at_point(row: Row, point: PointOutcome) -> str:
    """Which of several points a panel shows."""
    name = short_names([p.parameters for p in row.points])[row.points.index(point)]
    return f" at {name}" if name else ""


def brief(values: Mapping[str, Any]) -> str:
    """Parameters as text, of long lists the first entries.

    >>> brief({"p": (0.3123, 0.2201, 0.1504, 0.1102, 0.0801, 0.0502), "dim": 40})
    'p = (0.3123, 0.2201, 0.1504, …), dim = 40'
    """
    return typeset(", ".join(_brief(name, value) for name, value in values.items()))


def _brief(name: str, value: Any) -> str:
    said = wording.parameters({name: value})
    cut = said[:LONGEST].rpartition(", ")[0]
    return f"{cut}, …)" if cut and len(said) > LONGEST else said
