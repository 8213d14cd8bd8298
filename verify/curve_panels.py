"""Panels of a row that has a parameter on its axis: prediction and rivals as curves, and the deviations below."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from verify import wording
from verify.drawing import (
    CURVE_MARKS,
    DASHES,
    PALETTE,
    Floats,
    Limits,
    Panel,
    axis_of_parameter,
    decades,
    deviation_axis,
    draw_letter,
    draw_measured,
    drawable,
    finite,
    plain_ticks,
    shorten,
    spans_decades,
)
from verify.panel_parts import EN, band, in_margins, letter_key, letters_of, never_negative, room, title
from verify.results import Curve, PointOutcome, Row

__all__ = ["curve_panel", "residual_panel"]

LETTER_ROOM = (0.035, 0.075)
"""Room of a letter, as shares of the width and the height of a frame."""

CLEAR = 0.07
"""Distance from the prediction at which a letter is clearly that of the rival, as a share of the height."""

Places = dict[str, tuple[float, float]]
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
    shown = _labelled_rivals(row, names, limits, logarithmic=logarithmic)

    def draw(axes: Axes) -> None:
        axis_of_parameter(axes, row)
        if logarithmic:
            axes.set_yscale("log")
            decades(axes.yaxis, *limits)
        else:
            plain_ticks(axes.yaxis)
        for curve in row.curves:
            x, y = np.array(curve.x), drawable(curve.predicted)
            half = row.margin * np.abs(y) if row.relative else np.full_like(y, row.margin)
            axes.fill_between(x, *band(row, limits, y - half, y + half), color=PALETTE["band"], linewidth=0)
            for name, values in curve.rivals.items():
                dashes = DASHES[names.index(name) % len(DASHES)]
                axes.plot(x, drawable(values), color=PALETTE["rival"], lw=1.1, dashes=dashes)
            axes.plot(x, y, color=PALETTE["theory"], lw=1.6)
        for name, place in shown.items():
            draw_letter(axes, *place, letters[name])
        for point, place in _on_axis(row):
            if place is not None:
                mark = CURVE_MARKS[place % len(CURVE_MARKS)]
                draw_measured(
                    axes, point, x=float(point.parameters[row.curves[0].axis]), limits=limits, mark=mark
                )
        axes.set_ylim(*limits)
        axes.set_title(title(row.quantity or "measured and predicted"))

    notes = [_curve_key(row), letter_key(letters, [name for name in names if name not in shown])]
    return Panel(1.9, draw, notes="\n".join(notes), top=room(row.quantity))


def _labelled_rivals(row: Row, names: Sequence[str], limits: Limits, *, logarithmic: bool) -> Places:
    """Where each rival's curve carries its letter: in the frame, away from all else that is drawn there."""
    grid = [value for curve in row.curves for value in curve.x]
    across = _share(min(grid), max(grid), logarithmic=spans_decades(grid))
    up = _share(*limits, logarithmic=logarithmic)
    marks = [
        (_one(across, point.parameters[row.curves[0].axis]), _one(up, side))
        for point, _ in _on_axis(row)
        for side in (point.measured, point.lower, point.upper)
    ]
    places: Places = {}
    for k, name in enumerate(names):
        others = [(_one(across, x), _one(up, y)) for x, y in places.values()]
        # every rival has its own stretch of the axis, so that letters do not pile up
        found = _best_place(row, name, (across, up), 0.93 - 0.17 * (k % 5), (marks, others))
        if found is not None:
            curve, i = found
            places[name] = curve.x[i], curve.rivals[name][i]
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
        axis_of_parameter(axes, row)
        limits = deviation_axis(axes, "y", row.points, from_zero=never_negative(row))
        axes.axhspan(*band(row, limits), color=PALETTE["band"], linewidth=0)
        axes.axhline(0, color=PALETTE["theory"], lw=1.2)
        for point, place in _on_axis(row):
            mark = CURVE_MARKS[(place or 0) % len(CURVE_MARKS)]
            x = _dodged(axes, float(point.parameters[row.curves[0].axis]), place, len(row.curves))
            draw_measured(axes, in_margins(point), x=x, limits=limits, mark=mark)
        axes.set_title("Deviation in margins")

    return Panel(1.05, draw)


def _on_axis(row: Row) -> Iterator[tuple[PointOutcome, int | None]]:
    """Points with a place on the axis of the curves, each with the number of its curve, if it is drawn."""
    axis = row.curves[0].axis
    for point in row.points:
        if isinstance(point.parameters.get(axis), int | float):
            others = {k: v for k, v in point.parameters.items() if k != axis}
            yield point, next((k for k, curve in enumerate(row.curves) if _others(curve) == others), None)


def _dodged(axes: Axes, x: float, place: int | None, count: int) -> float:
    """Points of different curves at one parameter stand side by side."""
    by = 0.022 * ((count if place is None else place) - (count - 1) / 2)
    low, high = axes.get_xlim()
    return x * (high / low) ** by if axes.get_xscale() == "log" else x + by * (high - low)


def _others(curve: Curve) -> dict[str, Any]:
    return {k: v for k, v in curve.at.items() if k != curve.axis}


def _curve_key(row: Row) -> str:
    """Which mark belongs to which curve, where there are several."""
    lines = ["line and band: prediction and margin; marks: measured"]
    if len(row.curves) > 1:
        varying = {
            k
            for c in row.curves
            for k, v in _others(c).items()
            if any(_others(d).get(k) != v for d in row.curves)
        }
        names = (
            wording.parameters({k: v for k, v in _others(c).items() if k in varying}) for c in row.curves
        )
        lines += [f"{shape}{EN}{EN}{shorten(name, 64)}" for shape, name in zip("●■▲", names, strict=False)]
    hidden = sum(place is None for _, place in _on_axis(row))
    if hidden:
        lines.append(
            f"{hidden} more {'points' if hidden > 1 else 'point'}, at other settings: only in the panel below"
        )
    return "\n".join(lines)


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
