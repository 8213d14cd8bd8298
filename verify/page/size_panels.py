"""Panels of the kinds that span sizes: means at each size, and what they tend to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from verify.model import Kind
from verify.page import wording
from verify.page.axes import decades, plain_ticks
from verify.page.drawing import (
    DASHES,
    LARGEST,
    Floats,
    Limits,
    Panel,
    draw_measured,
    drawable,
    finite_values,
    tip,
)
from verify.page.panel_parts import at_point, letters, room, title
from verify.page.rival_labels import draw_letter
from verify.page.theme import PALETTE
from verify.results import PointOutcome, ProfilePoint, Row

__all__ = ["local_slopes", "mean_at", "size_panels"]

SMALLEST = 1e-100
"""Numbers below are treated like 0 where an axis is logarithmic."""

LETTER = 0.065
"""Height of a letter as a share of that of a frame."""

COLUMNS = 3
"""Letters that may stand side by side at the right edge."""

INFINITY = "∞"


class _Frame(NamedTuple):
    """Sizes on a logarithmic axis, and to their right the places of the limit and of the rivals' letters."""

    sizes: Floats
    limit: float
    rivals: Floats
    ends: Limits


def size_panels(row: Row, point: PointOutcome) -> list[Panel]:
    """The panels of one point; none where not two sizes have a mean."""
    shown = [p for p in point.profile if SMALLEST < p.x < LARGEST and abs(p.measured) < LARGEST]
    if len({p.x for p in shown}) < 2:
        return []
    point = replace(point, profile=sorted(shown, key=lambda p: p.x))
    return _exponent_panels(row, point) if row.kind == Kind.EXPONENT else [_means_panel(row, point)]


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
    """The mean at one size as an outcome on which nothing is judged."""
    return PointOutcome(
        parameters={},
        verdict="",
        predicted=at.predicted,
        margin=0.0,
        measured=at.measured,
        lower=at.lower,
        upper=at.upper,
    )


# Means by size, and what they tend to.


def _means_panel(row: Row, point: PointOutcome) -> Panel:
    """Means at each size; for a limit, what is extrapolated from them at the right edge."""
    limit = row.kind == Kind.LIMIT
    heading = title((row.quantity or "Mean at each size") + at_point(row, point))

    def draw(axes: Axes) -> None:
        frame = _size_axis(axes, _frame(point, limit=limit))
        limits = _value_limits(point, [p.measured for p in point.profile])
        _predicted_level(axes, point, frame)
        _means(axes, point.profile if limit else point.profile[:-1], limits)
        _right_edge(axes, row, point, frame, limits, limit=limit)
        plain_ticks(axes.yaxis)
        axes.set_ylim(*limits)
        axes.set_title(heading)

    return Panel(1.9, draw, top=room(heading), notes=_level_key(limit=limit))


def _level_key(*, limit: bool) -> str:
    lines = ["line and band: prediction and margin; dots: means at each size"]
    if limit:
        lines.append(f"at {INFINITY}: extrapolated from all sizes")
    return "\n".join(lines)


def _size_axis(axes: Axes, frame: _Frame) -> _Frame:
    """A logarithmic axis with the sizes as ticks, and infinity at its right where a limit is drawn."""
    axes.set_xscale("log")
    ticks = _spread_out(frame.sizes, frame.ends)
    names = {float(size): wording.numeral(float(size)) for size in ticks}
    if frame.limit > frame.sizes[-1]:
        names[frame.limit] = INFINITY
        axes.axvline(
            math.sqrt(frame.sizes[-1]) * math.sqrt(frame.limit), color=PALETTE["rule"], lw=0.8, zorder=0.5
        )
    axes.xaxis.set_major_locator(FixedLocator(list(names)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: names.get(float(value), "")))
    axes.set_xlim(*frame.ends)
    axes.set_xlabel("size")
    axes.grid(axis="y")
    return frame


def _frame(point: PointOutcome, *, limit: bool, lettered: bool = True) -> _Frame:
    """Room for the sizes, for the limit and, where there are rivals, for their letters."""
    sizes = np.array(sorted({p.x for p in point.profile}))
    span = math.log(sizes[-1]) - math.log(sizes[0])

    def beyond(share: float) -> float:
        return math.exp(min(math.log(sizes[-1]) + share * span, 690.0))

    after = 0.22 if limit else 0.0
    columns = np.array([beyond(after + 0.09 + 0.05 * k) for k in range(COLUMNS)])
    start = math.exp(math.log(sizes[0]) - 0.06 * span)
    end = beyond(after + (0.23 if lettered and point.rivals else 0.06))
    return _Frame(sizes, beyond(after), columns, (start, end))


def _spread_out(sizes: Floats, ends: Limits) -> list[float]:
    """The sizes whose names do not run into each other, the largest above all."""
    room_of_one = 0.085 * (math.log(ends[1]) - math.log(ends[0]))
    kept = [float(sizes[-1])]
    for size in sizes[-2::-1].tolist():
        if math.log(kept[-1]) - math.log(size) >= room_of_one:
            kept.append(size)
    return kept


def _predicted_level(axes: Axes, point: PointOutcome, frame: _Frame) -> None:
    """The predicted value with its margin, up to where the rivals' letters begin."""
    x = [frame.ends[0], min(frame.ends[1], math.sqrt(frame.limit) * math.sqrt(float(frame.rivals[0])))]
    if abs(point.predicted) + abs(point.margin) < LARGEST:
        low, high = point.predicted - point.margin, point.predicted + point.margin
        axes.fill_between(x, low, high, color=PALETTE["band"], linewidth=0)
        axes.plot(x, [point.predicted] * 2, color=PALETTE["theory"], lw=1.4)


def _means(axes: Axes, profile: Sequence[ProfilePoint], limits: Limits) -> None:
    """Measured means, in ink: nothing is judged at a single size."""
    for at in profile:
        draw_measured(axes, mean_at(at), x=at.x, limits=limits, size=3.6, cap=5.5, said=tip(mean_at(at)))


def _right_edge(
    axes: Axes, row: Row, point: PointOutcome, frame: _Frame, limits: Limits, *, limit: bool
) -> None:
    """What is judged, and the rivals beside it."""
    draw_measured(
        axes, point, x=frame.limit if limit else float(frame.sizes[-1]), limits=limits, size=5.2,
        said=tip(point),
    )  # fmt: skip
    names = letters(row)
    values = {names[r.name]: r.value for r in point.rivals if limits[0] < r.value < limits[1]}
    for letter, (column, value) in _in_columns(values, limits).items():
        draw_letter(axes, float(frame.rivals[column]), value, letter)


def _in_columns(values: Mapping[str, float], limits: Limits) -> dict[str, tuple[int, float]]:
    """Letters at their heights, in the first column in which they do not hide another one."""
    tall = LETTER * (limits[1] - limits[0])
    last = [-math.inf] * COLUMNS
    places: dict[str, tuple[int, float]] = {}
    for letter, value in sorted(values.items(), key=lambda item: item[1]):
        column = next((k for k, below in enumerate(last) if value - below >= tall), int(np.argmin(last)))
        last[column], places[letter] = value, (column, value)
    return places


def _value_limits(point: PointOutcome, values: Sequence[float]) -> Limits:
    """All that was measured and predicted, and of intervals and rivals what stays within reach of it."""
    core = finite_values(
        values,
        [point.measured, point.predicted, point.predicted - point.margin, point.predicted + point.margin],
    )
    if not core.size:
        return -1.0, 1.0
    low, high = float(core.min()), float(core.max())
    reach = 0.3 * (high - low) or 0.5 * abs(high) or 1.0
    sides = [side for p in point.profile for side in (p.lower, p.upper)]
    extra = finite_values([point.lower, point.upper], sides, [r.value for r in point.rivals])
    extra = extra[(extra > low - reach) & (extra < high + reach)]
    low, high = float(min([low, *extra])), float(max([high, *extra]))
    pad = 0.08 * (high - low) or reach
    return low - pad, high + pad


# An exponent: slopes.


def _exponent_panels(row: Row, point: PointOutcome) -> list[Panel]:
    visible = [p for p in point.profile if abs(p.measured) > SMALLEST]
    above = [_slope_panel(row, replace(point, profile=visible))] if len({p.x for p in visible}) > 1 else []
    return [*above, _local_panel(row, point)]


def _slope_panel(row: Row, point: PointOutcome) -> Panel:
    """Means against size in decades, with the predicted slope and those of the rivals through the largest size."""
    heading = title((row.quantity or "Mean at each size") + at_point(row, point))
    sign = -1.0 if point.profile[-1].measured < 0 else 1.0
    shown = [_absolute(p) for p in point.profile if sign * p.measured > 0]
    names = letters(row)

    def draw(axes: Axes) -> None:
        frame = _size_axis(axes, _frame(replace(point, profile=shown), limit=False, lettered=False))
        limits = _decade_limits(shown, point.margin)
        axes.set_yscale("log")
        decades(axes.yaxis, *limits)
        x = np.array([frame.ends[0], frame.ends[1]])
        _fan(axes, x, shown[-1], point)
        for k, rival in enumerate(point.rivals):
            if abs(rival.value) < LARGEST:
                _rival_slope(axes, x, shown[-1], rival.value, names[rival.name], k, limits)
        _means(axes, shown, limits)
        axes.set_ylim(*limits)
        axes.set_title(heading)

    note = "line and band: predicted slope and margin, through the largest size"
    return Panel(1.9, draw, top=room(heading), notes=note + ("\nsigns are negative" if sign < 0 else ""))


def _absolute(point: ProfilePoint) -> ProfilePoint:
    if point.measured > 0:
        return point
    return replace(point, measured=-point.measured, lower=-point.upper, upper=-point.lower)


def _line(x: Floats, through: ProfilePoint, slope: float) -> Floats:
    exponents = slope * np.log(x / through.x)
    return through.measured * np.exp(np.clip(exponents, -200.0, 200.0))


def _fan(axes: Axes, x: Floats, through: ProfilePoint, point: PointOutcome) -> None:
    low, high = (float(v) for v in drawable([point.predicted - point.margin, point.predicted + point.margin]))
    if math.isfinite(low + high):
        grid = np.geomspace(x[0], x[1], 33)
        edges = _line(grid, through, low), _line(grid, through, high)
        axes.fill_between(grid, np.minimum(*edges), np.maximum(*edges), color=PALETTE["band"], linewidth=0)
        axes.plot(x, _line(x, through, point.predicted), color=PALETTE["theory"], lw=1.4)


def _rival_slope(
    axes: Axes, x: Floats, through: ProfilePoint, slope: float, letter: str, k: int, limits: Limits
) -> None:
    """A rival's slope, with its letter as far left as the frame shows it, each rival in a column of its own."""
    axes.plot(
        x,
        _line(x, through, slope),
        color=PALETTE["rival"],
        lw=1.0,
        dashes=DASHES[k % len(DASHES)],
        zorder=1.5,
    )
    grid = np.geomspace(x[0], x[1], 65)[2 + 5 * (k % 6) : 52]
    y = _line(grid, through, slope)
    pad = (limits[1] / limits[0]) ** LETTER
    inside = np.flatnonzero((y > limits[0] * pad) & (y < limits[1] / pad))
    if inside.size:
        draw_letter(axes, float(grid[inside[0]]), float(y[inside[0]]), letter)


def _decade_limits(profile: Sequence[ProfilePoint], margin: float) -> Limits:
    """Room for the means, and, where they hardly change with size, for the slopes within the margin."""
    values = np.log10([p.measured for p in profile])
    low, high = float(values.min()), float(values.max())
    fan = 1.5 * min(abs(margin), 2.0) * abs(math.log10(profile[-1].x / profile[0].x))
    short = max(0.0, fan - (high - low)) if math.isfinite(fan) else 0.0
    pad = 0.14 * (high - low) + 0.5 * short or 0.5
    return 10.0 ** (low - pad), 10.0 ** (high + pad)


def _local_panel(row: Row, point: PointOutcome) -> Panel:
    """Exponents between successive sizes, and the one extrapolated from them."""
    local = local_slopes(point.profile)

    def draw(axes: Axes) -> None:
        frame = _size_axis(axes, _frame(point, limit=True))
        limits = _value_limits(replace(point, profile=[]), [slope for _, slope in local])
        _predicted_level(axes, point, frame)
        axes.plot(*zip(*local, strict=True), color=PALETTE["ink"], lw=0.8, marker="o", ms=3.6, mew=0)
        _right_edge(axes, row, point, frame, limits, limit=True)
        plain_ticks(axes.yaxis)
        axes.set_ylim(*limits)
        axes.set_title("Exponent between successive sizes")

    return Panel(1.25, draw, notes=f"at {INFINITY}: extrapolated from all sizes")
