"""Axes and the numbers along them, as all figures have them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from verify.page import wording
from verify.page.drawing import LARGEST, Floats, Limits, finite_values
from verify.page.formulas import typeset
from verify.page.theme import PALETTE
from verify.results import PointOutcome, Row
from verify.results.lines import spans_decades

__all__ = [
    "axis_of_parameter",
    "axis_of_places",
    "decades",
    "deviation_axis",
    "example_axis",
    "line_axis",
    "logarithmic_axis",
    "plain_ticks",
    "replicate_ticks",
    "row_bands",
    "tick_text",
    "ticks_apart",
    "where_logarithmic",
]

SIDES_LINEAR = 12.0
"""Deviations up to so many margins are drawn linearly; beyond, the axis is logarithmic outside the band."""

LETTER = 5.2
"""Width in points of a letter of a tick's name."""

LINE = 10.0
"""Height in points of a line of them."""

PAD = 0.035
"""Room beside the first and the last place of an axis, as a share of its length."""

NEAR_RIVALS = 4.5
"""Rivals up to so many margins away are always inside the frame."""


def line_axis(axes: Axes, count: int) -> None:
    """Room for so many lines, one below the other."""
    axes.set_ylim(-count + 0.4, 0.64)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def example_axis(axes: Axes, count: int) -> None:
    """Room for so many examples, one beside the other."""
    axes.set_xlim(-0.8, count - 0.2)
    axes.set_xticks([])
    axes.set_xlabel("examples drawn by hypothesis, sorted" if count > 1 else "example", labelpad=9)


def axis_of_parameter(axes: Axes, row: Row) -> None:
    """The horizontal axis of a row's curves."""
    grid = [value for curve in row.curves for value in curve.x]
    low, high = min(grid), max(grid)
    if spans_decades(grid):
        axes.set_xscale("log")
        decades(axes.xaxis, low, high)
    else:
        plain_ticks(axes.xaxis, whole=all(float(value).is_integer() for value in grid))
    axes.set_xlim(*_padded(low, high, logarithmic=spans_decades(grid)))
    axes.set_xlabel(typeset(wording.named(row.curves[0].axis)))
    axes.grid(axis="y")


def _padded(low: float, high: float, *, logarithmic: bool) -> Limits:
    """Room beside the first and the last point for their marks, also where several stand side by side."""
    if logarithmic:
        factor = (high / low) ** PAD
        return low / factor, high * factor
    pad = PAD * (high - low) or 0.5 * abs(high) or 1.0
    return low - pad, high + pad


def axis_of_places(axes: Axes, axis: str, values: Sequence[float]) -> None:
    """Points side by side, in the order of the parameter, each with its value."""
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.set_xticks(range(len(values)), [wording.numeral(float(value), 4) for value in values])
    axes.set_xlabel(typeset(wording.named(axis)))
    axes.grid(axis="y")


def deviation_axis(
    axes: Axes,
    along: str,
    points: Sequence[PointOutcome],
    *,
    with_rivals: bool = False,
    from_zero: bool = False,
) -> Limits:
    """Scale of deviations in margins on the axis `along`, symmetric or `from_zero`; returns its limits."""
    axis = getattr(axes, f"{along}axis")
    centres = finite_values([wording.deviation(p) for p in points])
    sides = finite_values([wording.deviation(p, side) for p in points for side in (p.lower, p.upper)])
    rivals = np.abs(
        finite_values([wording.deviation(p, r.value) for p in points for r in p.rivals if with_rivals])
    )
    near = rivals[rivals <= NEAR_RIVALS].max(initial=0.0)
    reach = max(np.abs(centres).max(initial=0.0), min(np.abs(sides).max(initial=0.0), NEAR_RIVALS), near)
    limit = 1.12 * max(float(reach), 1.6)
    bent = limit > SIDES_LINEAR
    if bent:
        getattr(axes, f"set_{along}scale")("symlog", linthresh=1.0, linscale=0.6)
        decades = range(math.floor(math.log10(min(limit, 1e15))) + 1)
        limit = min(limit, 1e15) * 1.6
        step = max(1, math.ceil(len(decades) / 4))
        outer = [10.0**k for k in decades if k % step == 0 or k == 0]
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
    axis.set_major_locator(
        FixedLocator(ticks_apart(axes, along, [v for v in wanted if limits[0] <= v <= limits[1]]))
    )
    return limits


def where_logarithmic(axes: Axes, along: str) -> str:
    """What a title says of an axis of deviations that is not linear all along."""
    return ", logarithmic beyond one" if getattr(axes, f"get_{along}scale")() == "symlog" else ""


def ticks_apart(axes: Axes, along: str, wanted: Sequence[float]) -> list[float]:
    """The ticks whose names do not run into those of ticks before them in the list, in order; limits are set."""
    figure = axes.get_figure(root=True)
    points = 72 / figure.dpi if figure is not None else 1.0
    kept: list[tuple[float, float, float]] = []
    for value in wanted:
        shown = axes.transData.transform((value, 0.0) if along == "x" else (0.0, value))
        place = float(shown["xy".index(along)]) * points
        room = LETTER * len(tick_text(value)) / 2 + 2 if along == "x" else LINE / 2
        if all(abs(place - other) >= room + more for other, more, _ in kept):
            kept.append((place, room, value))
    return sorted(value for *_, value in kept)


def logarithmic_axis(axes: Axes, row: Row, axis: str = "x") -> tuple[float, float]:
    """Differences in decades, and, `axis` being "y", the tolerance; zero lies on the edge."""
    seen = finite_values(
        [p.measured for p in row.points],
        [r.value for p in row.points for r in p.rivals],
        [p.margin for p in row.points],
    )
    seen = seen[seen > 1 / LARGEST]
    low = 10.0 ** (math.floor(math.log10(seen.min(initial=1e-16))) - 0.5)
    high = 10.0 ** (math.ceil(math.log10(seen.max(initial=1e-8))) + 0.5)
    getattr(axes, f"set_{axis}scale")("log")
    getattr(axes, f"set_{axis}lim")(low, high)
    decades(getattr(axes, f"{axis}axis"), low, high)
    for tolerance in sorted({p.margin for p in row.points}):
        if 0 < tolerance < LARGEST:
            if axis == "y":
                axes.axhspan(low, tolerance, color=PALETTE["band"], linewidth=0)
                axes.axhline(tolerance, color=PALETTE["theory"], lw=1.2)
            _tolerance(axes, tolerance, axis)
    return low, high


def row_bands(axes: Axes, spans: Sequence[tuple[float, float, float]], *, named: bool) -> None:
    """A band for each line of a panel, and the line of its prediction; both leave out the name above.

    `spans` has the ends of each band and the place of its line; the limits of the panel are set.
    """
    per_line = abs(float(np.diff(axes.transData.transform([(0, 0), (0, 1)])[:, 1])[0]))
    figure = axes.get_figure(root=True)
    above = 6.0 * (figure.dpi / 72 if figure is not None else 1.0) / per_line if named else 0.64
    corners, codes = [], []
    xs, ys = [], []
    for k, (low, high, line) in enumerate(spans):
        bottom, top = -k - (0.4 if named or k == len(spans) - 1 else 0.5), -k + min(above, 0.64)
        corners += [(low, bottom), (high, bottom), (high, top), (low, top), (low, bottom)]
        codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
        xs += [line, line, math.nan]
        ys += [bottom, top, math.nan]
    axes.add_patch(PathPatch(Path(corners, codes), facecolor=PALETTE["band"], linewidth=0, zorder=0.9))
    axes.plot(xs, ys, color=PALETTE["theory"], lw=1.2, zorder=2)


def _tolerance(axes: Axes, value: float, axis: str) -> None:
    if axis == "x":
        axes.annotate(
            "tolerance", (value, 0), xycoords=("data", "axes fraction"), xytext=(3, 2),
            textcoords="offset points", ha="left", va="bottom", fontsize=7.5, color=PALETTE["theory"],
        )  # fmt: skip
    else:
        axes.annotate(
            "tolerance", (1, value), xycoords=("axes fraction", "data"), xytext=(0, 2),
            textcoords="offset points", ha="right", va="bottom", fontsize=7.5, color=PALETTE["theory"],
        )  # fmt: skip


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


def replicate_ticks(axes: Axes, n: Floats) -> None:
    """The first look, its multiples by four, and the last look."""
    low, high = max(float(n.min()), 1.0), max(float(n.max()), 1.0)
    ticks = [low, *(low * 4**k for k in range(1, 12) if low * 4**k <= high / 2), high]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}".replace(",", "\u202f")))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(low / 1.06, high * 1.06)


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
