"""Axes and the numbers along them, as all figures have them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from verify.page import wording
from verify.page.drawing import Floats, Limits, finite_values
from verify.page.theme import PALETTE
from verify.results import PointOutcome

SIDES_LINEAR = 12.0
"""Deviations up to so many margins are drawn linearly; beyond, the axis is logarithmic outside the band."""

LETTER, LINE = 5.2, 10.0
"""Width and height in points of a letter of a tick's name."""

PAD = 0.035
"""Room beside the first and the last place of an axis, as a share of its length."""

NEAR = 4.5
"""Rivals and ends of intervals up to so many margins away are inside the frame."""


def across(
    axes: Axes, places: Sequence[float], *, logarithmic: bool, names: Mapping[float, str] | None = None
) -> None:
    """A horizontal axis with room beside its first and last place; `names` are its ticks, where it has no others."""
    low, high = min(places), max(places)
    if logarithmic:
        axes.set_xscale("log")
        pad = (high / low) ** PAD if high > low else 2.0
        axes.set_xlim(low / pad, high * pad)
    else:
        pad = PAD * (high - low) or 0.5 * abs(high) or 1.0
        axes.set_xlim(low - pad, high + pad)
    if names is not None:
        named = dict(names)
        axes.xaxis.set_major_locator(FixedLocator(_uncrowded_ticks(axes, "x", named)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: named.get(float(value), "")))
    elif logarithmic:
        decades(axes.xaxis, low, high)
    else:
        plain_ticks(axes.xaxis, whole=all(float(value).is_integer() for value in places))


def limits_around(core: Floats, others: Floats, *, least: float = 0.0, logarithmic: bool = False) -> Limits:
    """Ends of an axis: all of the `core`, and of the others what stays within reach of it, `least` or more."""
    if logarithmic:
        core, others = np.log(core[core > 0]), np.log(others[others > 0])
    if not core.size:
        return (0.1, 10.0) if logarithmic else (-1.0, 1.0)
    low, high = float(core.min()), float(core.max())
    reach = max(0.35 * (high - low), least) or 0.5 * abs(high) or 1.0
    near = np.clip(others, low - reach, high + reach)
    low, high = min([low, *near]), max([high, *near])
    pad = 0.06 * (high - low) or reach
    ends = float(low - pad), float(high + pad)
    return (math.exp(ends[0]), math.exp(ends[1])) if logarithmic else ends


def share_of(values: Floats, limits: Limits, *, logarithmic: bool) -> Floats:
    """Values as shares of the way from the lower to the upper end of an axis; NaN for what it cannot show."""
    low, high = limits
    if not logarithmic:
        return (values - low) / ((high - low) or 1.0)
    positive = np.where(values > 0, values, np.nan)
    return (np.log(positive) - math.log(low)) / (math.log(high) - math.log(low))  # quotients may overflow


def deviation_axis(
    axes: Axes, along: str, points: Sequence[PointOutcome], name: str, *, rivals: bool, from_zero: bool
) -> Limits:
    """A named scale of deviations in margins on the axis `along`, symmetric or `from_zero`; returns its limits."""
    axis = getattr(axes, f"{along}axis")
    centres = finite_values([wording.deviation(p) for p in points])
    sides = finite_values([wording.deviation(p, side) for p in points for side in (p.lower, p.upper)])
    others = finite_values([wording.deviation(p, r.value) for p in points for r in p.rivals if rivals])
    near = np.abs(others)[np.abs(others) <= NEAR].max(initial=0.0)
    limit = 1.12 * max(np.abs(centres).max(initial=1.6), min(np.abs(sides).max(initial=0.0), NEAR), near)
    bent = bool(limit > SIDES_LINEAR)
    if bent:
        getattr(axes, f"set_{along}scale")("symlog", linthresh=1.0, linscale=0.6)
        powers = range(math.floor(math.log10(min(limit, 1e15))) + 1)
        limit = min(limit, 1e15) * 1.6
        outer = [10.0**k for k in powers if k % max(1, math.ceil(len(powers) / 4)) == 0]
        axis.set_minor_locator(NullLocator())
    else:
        step = 1.0 if limit < 4.5 else 2.0 if limit < 9 else 4.0
        outer = [1.0, *np.arange(step, limit, step).tolist()]
    axis.set_major_formatter(FuncFormatter(tick_text))
    # half a margin of room for the mark at 0
    limits = (-min(0.5, 0.05 * limit) if from_zero else -limit, limit)
    getattr(axes, f"set_{along}lim")(*limits)
    wanted = [sign * value for value in dict.fromkeys(outer) for sign in (1.0, -1.0)]
    wanted = [*wanted, 0.0] if bent else [0.0, *wanted]  # the ends of the band show where the scale changes
    shown = [v for v in wanted if limits[0] <= v <= limits[1]]
    axis.set_major_locator(FixedLocator(_uncrowded_ticks(axes, along, {v: tick_text(v) for v in shown})))
    getattr(axes, f"set_{along}label")(name + ", logarithmic beyond 1" * bent)
    return limits


def _uncrowded_ticks(axes: Axes, along: str, names: Mapping[float, str]) -> list[float]:
    """Return the ticks whose names do not overlap those of earlier ticks in the list; limits must be set."""
    kept: list[tuple[float, float, float]] = []
    for value, name in names.items():
        at = axes.transData.transform((value, 0.0) if along == "x" else (0.0, value))
        place = float(at["xy".index(along)]) * points_per_pixel(axes)
        room = LETTER * len(name) / 2 + 2 if along == "x" else LINE / 2
        if all(abs(place - other) >= room + more for other, more, _ in kept):
            kept.append((place, room, value))
    return sorted(value for *_, value in kept)


def points_per_pixel(axes: Axes) -> float:
    """72 over the resolution of the figure."""
    figure = axes.get_figure(root=True)
    return 72 / figure.dpi if figure is not None else 1.0


def row_bands(axes: Axes, low: float, high: float, count: int) -> None:
    """The band and the prediction of so many lines of a panel, below the names of the lines."""
    per_line = abs(float(np.diff(axes.transData.transform([(0, 0), (0, 1)])[:, 1])[0]))
    above = min(6.0 / points_per_pixel(axes) / per_line, 0.64)
    places = np.arange(count)
    axes.bar(
        np.full(count, low), 0.4 + above, width=high - low, bottom=-places - 0.4, align="edge",
        color=PALETTE["band"], linewidth=0, zorder=0.9,
    )  # fmt: skip
    axes.vlines(np.zeros(count), -places - 0.4, -places + above, color=PALETTE["theory"], lw=1.2, zorder=2)


def decades(axis: Any, low: float, high: float) -> None:
    """Powers of ten as ticks, 1, 2 and 5 times them where there are few, or round numbers within less."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first >= 2:
        step = max(1, math.ceil((last - first) / 6))
        axis.set_major_locator(FixedLocator([10.0**k for k in range(first, last + 1, step)]))
    else:
        ticks = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
        within = [t for t in ticks if low <= t <= high]
        axis.set_major_locator(FixedLocator(within) if len(within) > 1 else MaxNLocator(4))
    axis.set_minor_locator(NullLocator())
    # beside 20 000 and 50 000 a power of ten would read as something else
    few = FuncFormatter(lambda value, _: wording.numeral(value, 3))
    axis.set_major_formatter(FuncFormatter(tick_text) if last - first >= 2 else few)


def plain_ticks(axis: Any, *, whole: bool = False) -> None:
    """A few round numbers, `whole` ones where others mean nothing, written like all other numbers of the report."""
    steps = [1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10]
    axis.set_major_locator(MaxNLocator(nbins=5, steps=steps, integer=whole))
    axis.set_major_formatter(FuncFormatter(lambda value, _: wording.numeral(round(value, 14), 6)))


def tick_text(value: float, _: Any = None) -> str:
    """A tick as all other numbers of the report are written, far powers of ten as such."""
    power = round(math.log10(abs(value))) if value else 0
    if not -3 < power < 4 and math.isclose(abs(value), 10.0**power):
        return ("−" if value < 0 else "") + wording.power_of_ten(power)
    return wording.numeral(value, 3)
