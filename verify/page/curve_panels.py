"""Panels of a row that has a parameter on its axis: prediction and rivals as curves, and the deviations below.

Predictions from measured inputs are known where these were measured, and where points have settings of their own no
line leads from one to the next: points then stand side by side, a bar at each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes

from verify.judging.judge import PRINTED
from verify.page.axes import (
    axis_of_parameter,
    axis_of_places,
    decades,
    deviation_axis,
    plain_ticks,
    where_logarithmic,
)
from verify.page.drawing import (
    CURVE_MARKS,
    DASHES,
    OFF_CURVES,
    WIDTH,
    Floats,
    Limits,
    Panel,
    draw_measured,
    drawable,
    finite_values,
    tip,
)
from verify.page.panel_parts import (
    EN,
    agreement_band,
    brief,
    in_margins,
    letter_key,
    letters_of,
    never_negative,
    room,
    title,
)
from verify.page.rival_labels import MARGIN, draw_letter, draw_names, line_names, names_height, shared_lines
from verify.page.theme import PALETTE
from verify.results import Curve, PointOutcome, Row
from verify.results.lines import drawn_at_points_only, known_at_points_only, on_axis, others

__all__ = ["curve_panel", "residual_panel"]

LEFT = 0.72
"""Inches to the left of a frame."""

OWN = ("corrected", "theory")
"""The reading of a formula that our copy reads otherwise."""

BAR = 0.36
"""Half the length of the bar that stands for the prediction at a point; the next point is 1 away."""

BESIDE = (-0.22, 0.22, -0.36, 0.36)
"""Where letters stand beside a point, from the mark."""

Places = dict[str, list[tuple[float, float]]]
"""Where letters stand, by name."""

Share = Callable[[Sequence[float]], Floats]
"""Values on an axis to shares of its length."""


def curve_panel(row: Row) -> Panel:
    """Prediction with its margin, rivals, and the measured points."""
    return _bars_panel(row) if drawn_at_points_only(row) else _lines_panel(row)


def _lines_panel(row: Row) -> Panel:
    """Curves, with the names of the rivals at their ends."""
    logarithmic, limits = _value_axis(row)
    up = _share(*limits, logarithmic=logarithmic)
    groups = shared_lines(row.curves, _rival_names(row), up)
    names = line_names(row.curves, groups, up)
    height = max(1.9, names_height(names))

    def draw(axes: Axes) -> None:
        x = _places(axes, row)
        _dress(axes, row, limits, logarithmic=logarithmic)
        _lines(axes, row, limits, groups)
        draw_names(axes, names, {"width": 72 * (WIDTH - LEFT - _right(row))}, height)
        _points(axes, row, x, limits)

    return Panel(height, draw, notes=_curve_key(row), left=LEFT, right=_right(row), top=room(row.quantity))


def _bars_panel(row: Row) -> Panel:
    """Predictions at the points alone, and letters of the rivals beside them."""
    logarithmic, limits = _value_axis(row)
    names = _rival_names(row)
    letters = letters_of(names)
    shown = _beside_bars(row, names, limits, logarithmic=logarithmic)

    def draw(axes: Axes) -> None:
        x = _places(axes, row)
        _dress(axes, row, limits, logarithmic=logarithmic)
        _bars(axes, row, x, limits)
        for name, places in shown.items():
            for place in places:
                draw_letter(axes, *place, letters[name])
        _points(axes, row, x, limits)

    notes = [_curve_key(row), letter_key(letters, [name for name in names if name not in shown])]
    return Panel(1.9, draw, notes="\n".join(notes), top=room(row.quantity))


def _right(row: Row) -> float:
    """Inches to the right of the frames, which stand one below the other."""
    return MARGIN if _rival_names(row) and not drawn_at_points_only(row) else 0.22


def _rival_names(row: Row) -> list[str]:
    return list(dict.fromkeys(name for curve in row.curves for name in curve.rivals))


def _value_axis(row: Row) -> tuple[bool, Limits]:
    logarithmic = row.relative and _needs_decades(_values(row))
    return logarithmic, _value_limits(row, logarithmic=logarithmic)


def _dress(axes: Axes, row: Row, limits: Limits, *, logarithmic: bool) -> None:
    """The vertical axis and the title."""
    if logarithmic:
        axes.set_yscale("log")
        decades(axes.yaxis, *limits)
    else:
        plain_ticks(axes.yaxis)
    axes.set_ylim(*limits)
    axes.set_title(title(row.quantity or "measured and predicted"))


def _points(axes: Axes, row: Row, x: Sequence[float], limits: Limits) -> None:
    """What was measured, at each place."""
    for at, (point, place) in zip(x, _in_order(row), strict=True):
        if place is not None or drawn_at_points_only(row):
            draw_measured(axes, point, x=at, limits=limits, mark=_mark(row, place), said=tip(point))


def _in_order(row: Row) -> list[tuple[PointOutcome, int | None]]:
    """Points with a place on the axis, each with the number of its curve, in the order of the parameter."""
    axis, last = row.curves[0].axis, len(row.curves)
    placed = list(on_axis(row))
    return sorted(placed, key=lambda at: (at[0].parameters[axis], last if at[1] is None else at[1]))


def _places(axes: Axes, row: Row) -> list[float]:
    """Where the points stand on the axis, which is drawn: at their parameter, or side by side."""
    values = [float(point.parameters[row.curves[0].axis]) for point, _ in _in_order(row)]
    if drawn_at_points_only(row):
        axis_of_places(axes, row.curves[0].axis, values)
        return [float(k) for k in range(len(values))]
    axis_of_parameter(axes, row)
    return values


def _lines(axes: Axes, row: Row, limits: Limits, groups: Sequence[Sequence[str]]) -> None:
    """The prediction in its band, and the rivals, along each curve."""
    for curve in row.curves:
        x, y, half = np.array(curve.x), drawable(curve.predicted), _half_width(row, curve)
        axes.fill_between(
            x, *agreement_band(row, limits, y - half, y + half), color=PALETTE["band"], linewidth=0
        )
        for k, group in enumerate(groups):
            if group[0] in curve.rivals:
                rival = drawable(curve.rivals[group[0]])
                axes.plot(x, rival, color=PALETTE["rival"], lw=1.1, dashes=DASHES[k % len(DASHES)])
        axes.plot(x, y, color=PALETTE["theory"], lw=1.6)


def _half_width(row: Row, curve: Curve) -> Floats:
    """The margin along a curve: a formula as it reads in our copy has that of the theory it is judged beside."""
    beside = [curve.rivals[name] for name in OWN if name in curve.rivals] if row.reading == PRINTED else []
    theory = beside[0] if beside else curve.predicted
    return row.margin * np.abs(drawable(theory)) if row.relative else np.full(len(curve.x), row.margin)


def _bars(axes: Axes, row: Row, x: Sequence[float], limits: Limits) -> None:
    """The prediction at each point, in its band."""
    for at, (point, _) in zip(x, _in_order(row), strict=True):
        y, half = drawable([point.predicted]), drawable([point.margin])
        low, high = agreement_band(row, limits, y - half, y + half)
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


def residual_panel(row: Row) -> Panel:
    """The same points as deviations from the prediction, in margins: what the curve's scale hides."""

    def draw(axes: Axes) -> None:
        places = _places(axes, row)
        limits = deviation_axis(axes, "y", row.points, from_zero=never_negative(row))
        axes.axhspan(*agreement_band(row, limits), color=PALETTE["band"], linewidth=0)
        axes.axhline(0, color=PALETTE["theory"], lw=1.2)
        for at, (point, place) in zip(places, _in_order(row), strict=True):
            x = at if drawn_at_points_only(row) else _dodged(axes, at, place, len(row.curves))
            draw_measured(
                axes, in_margins(point), x=x, limits=limits, mark=_mark(row, place), said=tip(point)
            )
        axes.set_title("Deviation in margins" + where_logarithmic(axes, "y"))

    return Panel(1.05, draw, left=LEFT, right=_right(row))


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
        else "bars: prediction and margin, at settings that change from point to point; marks: measured"
        if drawn_at_points_only(row)
        else "line and band: prediction and margin; marks: measured"
    ]
    if len(row.curves) > 1:
        varying = {
            k
            for c in row.curves
            for k, v in others(c).items()
            if any(others(d).get(k) != v for d in row.curves)
        }
        names = [brief({k: v for k, v in others(c).items() if k in varying}) for c in row.curves]
        shapes = CURVE_MARKS.values()
        lines += [f"{shape}{EN}{EN}{name}" for shape, name in zip(shapes, names, strict=False)]
    hidden = [point for point, place in on_axis(row) if place is None]
    if hidden:
        more = f"{len(hidden)} more {'points' if len(hidden) > 1 else 'point'}, at other settings"
        where = "" if drawn_at_points_only(row) else ": only in the panel below"
        lines.append(f"{OFF_CURVES[1]}{EN}{EN}{more}{where}")
    return "\n".join([*lines, *_verdict_key(row, several=len(row.curves) > 1 or bool(hidden))])


def _verdict_key(row: Row, *, several: bool) -> list[str]:
    """How marks that tell the curve show a verdict."""
    seen = {point.verdict for point in row.points}
    named = {"disagrees": "with a cross: disagrees", "undecided": "hollow: undecided"}
    said = [text for verdict, text in named.items() if verdict in seen]
    return ["; ".join(said)] if said and several else []


def _values(row: Row) -> Floats:
    return finite_values(
        [v for curve in row.curves for v in curve.predicted], [p.measured for p in row.points]
    )


def _needs_decades(values: Floats) -> bool:
    return bool(values.size and values.min() > 0 and values.max() / values.min() > 60)


def _band(row: Row, *, logarithmic: bool) -> float:
    """What the widest margin takes on the axis, and a little more: where nothing varies it is what gives the scale."""
    if logarithmic:
        return 1.3 * math.log1p(min(row.margin, 1.0))
    return 1.3 * float(finite_values([point.margin for point in row.points]).max(initial=0.0))


def _value_limits(row: Row, *, logarithmic: bool) -> Limits:
    """Everything measured and predicted, and of the intervals and rivals what stays within reach of it."""
    core = _values(row)
    core = np.log(core[core > 0]) if logarithmic else core
    if not core.size:
        return (0.1, 10.0) if logarithmic else (-1.0, 1.0)
    low, high = float(core.min()), float(core.max())
    reach = max(0.35 * (high - low), _band(row, logarithmic=logarithmic)) or 0.5 * abs(high) or 1.0
    extra = finite_values(
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
