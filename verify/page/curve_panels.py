"""Panels of a row that has a parameter on its axis: prediction and rivals as curves, and the deviations below.

Predictions from measured inputs are known where these were measured: points then stand side by side, a bar at each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes

from verify.judging.judge import PRINTED
from verify.page import wording
from verify.page.drawing import (
    CURVE_MARKS,
    DASHES,
    OFF_CURVES,
    PALETTE,
    Floats,
    Limits,
    Panel,
    axis_of_parameter,
    axis_of_places,
    decades,
    deviation_axis,
    draw_letter,
    draw_measured,
    drawable,
    finite,
    plain_ticks,
    shorten,
)
from verify.page.panel_parts import EN, band, in_margins, letter_key, letters_of, never_negative, room, title
from verify.results import Curve, PointOutcome, Row
from verify.results.lines import known_at_points_only, on_axis, others, spans_decades

__all__ = ["curve_panel", "residual_panel"]

LETTER_ROOM = (0.035, 0.075)
"""Room of a letter, as shares of the width and the height of a frame."""

CLEAR = 0.07
"""Distance from the prediction at which a letter is clearly that of the rival, as a share of the height."""

OWN = ("corrected", "theory")
"""The reading of a formula that our copy reads otherwise."""

BAR = 0.36
"""Half the length of the bar that stands for the prediction at a point; the next point is 1 away."""

BESIDE = (-0.22, 0.22, -0.36, 0.36)
"""Where letters stand beside a point, from the mark."""

Places = dict[str, list[tuple[float, float]]]
"""Where letters stand, by name."""

Spots = Sequence[tuple[float, float]]
"""What is drawn where, as shares of the width and the height of a frame."""

Share = Callable[[Sequence[float]], Floats]
"""Values on an axis to shares of its length."""


def curve_panel(row: Row) -> Panel:
    """Prediction with its margin, rivals, and the measured points."""
    names = list(dict.fromkeys(name for curve in row.curves for name in curve.rivals))
    letters = letters_of(names)
    logarithmic = row.relative and _needs_decades(_values(row))
    limits = _value_limits(row, logarithmic=logarithmic)
    found = _beside_bars if known_at_points_only(row) else _labelled_rivals
    shown = found(row, names, limits, logarithmic=logarithmic)

    def draw(axes: Axes) -> None:
        x = _places(axes, row)
        if logarithmic:
            axes.set_yscale("log")
            decades(axes.yaxis, *limits)
        else:
            plain_ticks(axes.yaxis)
        if known_at_points_only(row):
            _bars(axes, row, x, limits)
        else:
            _lines(axes, row, limits, names)
        for name, places in shown.items():
            for place in places:
                draw_letter(axes, *place, letters[name])
        for at, (point, place) in zip(x, _in_order(row), strict=True):
            if place is not None:
                draw_measured(axes, point, x=at, limits=limits, mark=_mark(row, place))
        axes.set_ylim(*limits)
        axes.set_title(title(row.quantity or "measured and predicted"))

    notes = [_curve_key(row), letter_key(letters, [name for name in names if name not in shown])]
    return Panel(1.9, draw, notes="\n".join(notes), top=room(row.quantity))


def _in_order(row: Row) -> list[tuple[PointOutcome, int | None]]:
    """Points with a place on the axis, each with the number of its curve, in the order of the parameter."""
    axis, last = row.curves[0].axis, len(row.curves)
    placed = list(on_axis(row))
    return sorted(placed, key=lambda at: (at[0].parameters[axis], last if at[1] is None else at[1]))


def _places(axes: Axes, row: Row) -> list[float]:
    """Where the points stand on the axis, which is drawn: at their parameter, or side by side."""
    values = [float(point.parameters[row.curves[0].axis]) for point, _ in _in_order(row)]
    if known_at_points_only(row):
        axis_of_places(axes, row.curves[0].axis, values)
        return [float(k) for k in range(len(values))]
    axis_of_parameter(axes, row)
    return values


def _lines(axes: Axes, row: Row, limits: Limits, names: Sequence[str]) -> None:
    """The prediction in its band, and the rivals, along each curve."""
    for curve in row.curves:
        x, y, half = np.array(curve.x), drawable(curve.predicted), _half_width(row, curve)
        axes.fill_between(x, *band(row, limits, y - half, y + half), color=PALETTE["band"], linewidth=0)
        for name, values in curve.rivals.items():
            dashes = DASHES[names.index(name) % len(DASHES)]
            axes.plot(x, drawable(values), color=PALETTE["rival"], lw=1.1, dashes=dashes)
        axes.plot(x, y, color=PALETTE["theory"], lw=1.6)


def _half_width(row: Row, curve: Curve) -> Floats:
    """The margin along a curve: a formula as it reads in our copy has that of the theory it is judged beside."""
    beside = [curve.rivals[name] for name in OWN if name in curve.rivals] if row.reading == PRINTED else []
    theory = beside[0] if beside else curve.predicted
    return row.margin * np.abs(drawable(theory)) if row.relative else np.full(len(curve.x), row.margin)


def _bars(axes: Axes, row: Row, x: Sequence[float], limits: Limits) -> None:
    """The prediction at each point, in its band."""
    for at, (point, place) in zip(x, _in_order(row), strict=True):
        y, half = drawable([point.predicted]), drawable([point.margin])
        if place is not None:
            low, high = band(row, limits, y - half, y + half)
            ends = [at - BAR, at + BAR]
            axes.fill_between(ends, low, high, color=PALETTE["band"], linewidth=0)
            axes.plot(ends, [*y, *y], color=PALETTE["theory"], lw=1.6)


def _mark(row: Row, place: int | None) -> str:
    """The mark of a curve where there are several; that of the verdict where there is one."""
    if place is None:
        return OFF_CURVES[0]
    return list(CURVE_MARKS)[place % len(CURVE_MARKS)] if len(row.curves) > 1 else ""


def _beside_bars(row: Row, names: Sequence[str], limits: Limits, *, logarithmic: bool) -> Places:
    """At every point, on either side of what was measured, the rivals that lie in the frame."""
    up = _share(*limits, logarithmic=logarithmic)
    places: Places = {}
    for at, (point, place) in enumerate(_in_order(row)):
        curve = row.curves[place] if place is not None else None
        for name in names if curve else ():
            y = _rival_at(curve, point, name)
            if 0 < _one(up, y) < 1:
                k = names.index(name)
                places.setdefault(name, []).append((at + BESIDE[k % len(BESIDE)], y))
    return places


def _rival_at(curve: Curve | None, point: PointOutcome, name: str) -> float:
    if curve is None or name not in curve.rivals:
        return math.nan
    return curve.rivals[name][curve.x.index(float(point.parameters[curve.axis]))]


def _labelled_rivals(row: Row, names: Sequence[str], limits: Limits, *, logarithmic: bool) -> Places:
    """Where each rival's curve carries its letter: in the frame, away from all else that is drawn there."""
    grid = [value for curve in row.curves for value in curve.x]
    across = _share(min(grid), max(grid), logarithmic=spans_decades(grid))
    up = _share(*limits, logarithmic=logarithmic)
    marks = [
        (_one(across, point.parameters[row.curves[0].axis]), _one(up, side))
        for point, _ in on_axis(row)
        for side in (point.measured, point.lower, point.upper)
    ]
    places: Places = {}
    for k, name in enumerate(names):
        letters = [(_one(across, x), _one(up, y)) for ((x, y),) in places.values()]
        # every rival has its own stretch of the axis, so that letters do not pile up
        found = _best_place(row, name, (across, up), 0.93 - 0.17 * (k % 5), (marks, letters))
        if found is not None:
            curve, i = found
            places[name] = [(curve.x[i], curve.rivals[name][i])]
    return places


def _best_place(
    row: Row, name: str, axes: tuple[Share, Share], home: float, taken: tuple[Spots, Spots]
) -> tuple[Curve, int] | None:
    """The curve and the index where a letter is away from the prediction, from marks, and above all from letters."""
    best, found = -math.inf, None
    for curve in row.curves:
        x, theory = axes[0](curve.x), axes[1](curve.predicted)
        rival = axes[1](curve.rivals.get(name, []))
        for i in np.flatnonzero(
            (rival > 0.02) & (rival < 0.98) & (x[: len(rival)] > 0.02) & (x[: len(rival)] < 0.98)
        ).tolist():
            distance = abs(rival[i] - theory[i])
            score = min(distance, CLEAR) / CLEAR if math.isfinite(distance) else 0.0
            score -= 0.8 * abs(x[i] - home) + sum(
                weight * any(_close(x[i], rival[i], *at) for at in spots)
                for weight, spots in zip((0.6, 4.0), taken, strict=True)
            )
            if score > best:
                best, found = score, (curve, i)
    return found


def _share(low: float, high: float, *, logarithmic: bool) -> Share:
    """Values as shares of the way from the lower to the upper end of an axis; NaN for what it cannot show."""

    def share(values: Sequence[float]) -> Floats:
        scaled = drawable(values)
        if not logarithmic:
            return (scaled - low) / ((high - low) or 1.0)
        positive = np.where(scaled > 0, scaled, np.nan)
        return (np.log(positive) - math.log(low)) / (math.log(high) - math.log(low))  # quotients may overflow

    return share


def _one(share: Share, value: float) -> float:
    return float(share([value])[0])


def _close(x: float, y: float, other_x: float, other_y: float) -> bool:
    return abs(x - other_x) < LETTER_ROOM[0] and abs(y - other_y) < LETTER_ROOM[1]


def residual_panel(row: Row) -> Panel:
    """The same points as deviations from the prediction, in margins: what the curve's scale hides."""

    def draw(axes: Axes) -> None:
        places = _places(axes, row)
        limits = deviation_axis(axes, "y", row.points, from_zero=never_negative(row))
        axes.axhspan(*band(row, limits), color=PALETTE["band"], linewidth=0)
        axes.axhline(0, color=PALETTE["theory"], lw=1.2)
        for at, (point, place) in zip(places, _in_order(row), strict=True):
            x = at if known_at_points_only(row) else _dodged(axes, at, place, len(row.curves))
            draw_measured(axes, in_margins(point), x=x, limits=limits, mark=_mark(row, place))
        axes.set_title("Deviation in margins")

    return Panel(1.05, draw)


def _dodged(axes: Axes, x: float, place: int | None, count: int) -> float:
    """Points of different curves at one parameter stand side by side."""
    by = 0.022 * ((count if place is None else place) - (count - 1) / 2)
    low, high = axes.get_xlim()
    return x * (high / low) ** by if axes.get_xscale() == "log" else x + by * (high - low)


def _curve_key(row: Row) -> str:
    """Which mark belongs to which curve, where there are several."""
    lines = [
        "bars: prediction, from what was measured beside it, and margin; marks: measured"
        if known_at_points_only(row)
        else "line and band: prediction and margin; marks: measured"
    ]
    if len(row.curves) > 1:
        varying = {
            k
            for c in row.curves
            for k, v in others(c).items()
            if any(others(d).get(k) != v for d in row.curves)
        }
        names = [wording.parameters({k: v for k, v in others(c).items() if k in varying}) for c in row.curves]
        shapes = CURVE_MARKS.values()
        lines += [f"{shape}{EN}{EN}{shorten(name, 64)}" for shape, name in zip(shapes, names, strict=False)]
    hidden = [point for point, place in on_axis(row) if place is None]
    if hidden:
        more = f"{len(hidden)} more {'points' if len(hidden) > 1 else 'point'}, at other settings"
        lines.append(f"{OFF_CURVES[1]}{EN}{EN}{more}: only in the panel below")
    return "\n".join([*lines, *_verdict_key(row, several=len(row.curves) > 1 or bool(hidden))])


def _verdict_key(row: Row, *, several: bool) -> list[str]:
    """How marks that tell the curve show a verdict."""
    seen = {point.verdict for point in row.points}
    named = {"disagrees": "crossed: disagrees", "undecided": "hollow: undecided"}
    said = [text for verdict, text in named.items() if verdict in seen]
    return ["; ".join(said)] if said and several else []


def _values(row: Row) -> Floats:
    return finite([v for curve in row.curves for v in curve.predicted], [p.measured for p in row.points])


def _needs_decades(values: Floats) -> bool:
    return bool(values.size and values.min() > 0 and values.max() / values.min() > 60)


def _value_limits(row: Row, *, logarithmic: bool) -> Limits:
    """Everything measured and predicted, and of the intervals and rivals what stays within reach of it."""
    core = _values(row)
    core = np.log(core[core > 0]) if logarithmic else core
    if not core.size:
        return (0.1, 10.0) if logarithmic else (-1.0, 1.0)
    low, high = float(core.min()), float(core.max())
    reach = 0.35 * (high - low) or 0.5 * abs(high) or 1.0
    extra = finite(
        [v for curve in row.curves for values in curve.rivals.values() for v in values],
        [side for p in row.points for side in (p.lower, p.upper)],
    )
    extra = np.log(extra[extra > 0]) if logarithmic else extra
    low, high = (
        min([low, *np.clip(extra, low - reach, high + reach)]),
        max([high, *np.clip(extra, low - reach, high + reach)]),
    )
    pad = 0.06 * (high - low) or reach
    ends = (low - pad, high + pad)
    return (math.exp(ends[0]), math.exp(ends[1])) if logarithmic else ends
