"""Palette, layout, marks and axes: what all figures have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from verify.page import wording
from verify.results import PointOutcome, Row
from verify.results.lines import spans_decades

__all__ = [
    "CURVE_MARKS",
    "DASHES",
    "FONTS",
    "LARGEST",
    "OFF_CURVES",
    "PALETTE",
    "STYLE",
    "Floats",
    "Limits",
    "Panel",
    "arrow",
    "axis_of_parameter",
    "axis_of_places",
    "colour_of",
    "decades",
    "deviation_axis",
    "draw_letter",
    "draw_mark",
    "draw_measured",
    "drawable",
    "example_axis",
    "finite",
    "line_axis",
    "logarithmic_axis",
    "name_line",
    "plain_ticks",
    "remark",
    "replicate_ticks",
    "rivals_in_margins",
    "shorten",
    "stack",
    "tick_text",
]

Floats = NDArray[np.float64]
Limits = tuple[float, float]

PALETTE = {
    "paper": "#fdfdfc",
    "ink": "#20242b",
    "muted": "#616a77",
    "rule": "#e3e6ea",
    "band": "#dbe6f4",
    "theory": "#2b5fa3",
    "rival": "#86642f",
    "agrees": "#0e7466",
    "disagrees": "#c03e10",
    "undecided": "#8c6208",
    "broken": "#7d2ac7",
}
"""Every colour of a figure by its part; the report replaces them by variables of its light and dark page."""

MARKERS = {"agrees": "o", "disagrees": "D", "undecided": "o", "broken": "X"}
DASHES = ((4, 2), (1.5, 1.5), (6, 2, 1.5, 2), (3, 1), (8, 3), (1, 3))
CURVE_MARKS = {"o": "●", "s": "■", "^": "▲"}
"""Marks of the curves of a row that has several, as drawn and as in the key; colour tells the verdict."""

OFF_CURVES = ("P", "✚")
"""Mark of a point on none of the curves that are drawn."""

FONTS = "system-ui, 'DejaVu Sans', sans-serif"

WIDTH = 4.8
LINE = 0.175
SIDES_LINEAR = 12.0
"""Deviations up to so many margins are drawn linearly; beyond, the axis is logarithmic outside the band."""

LARGEST = 1e100
"""Numbers beyond are treated like infinity: the arithmetic of a drawing would overflow."""

THICK = 4.0
"""Line of what more replicates would shrink, where a size model adds to it."""

NEAR_RIVALS = 4.5
"""Rivals up to so many margins away are always inside the frame."""

STYLE: Any = {
    "svg.hashsalt": "losscurv",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # nothing stands above a frame: no search for room at every drawing
    "axes.labelsize": 9.0,
    "axes.labelcolor": PALETTE["muted"],
    "axes.titlecolor": PALETTE["ink"],
    "axes.edgecolor": PALETTE["rule"],
    "axes.facecolor": PALETTE["paper"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "figure.facecolor": PALETTE["paper"],
    "figure.edgecolor": PALETTE["paper"],
    "grid.color": PALETTE["rule"],
    "grid.linewidth": 0.6,
    "text.color": PALETTE["ink"],
    "text.parse_math": False,
    "xtick.color": PALETTE["rule"],
    "ytick.color": PALETTE["rule"],
    "xtick.labelcolor": PALETTE["muted"],
    "ytick.labelcolor": PALETTE["muted"],
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "lines.solid_capstyle": "butt",
}


# Layout: panels of given heights in inches, one above the other.


class Panel:
    """What is drawn, and the room it takes: inches of the frame and around it, and lines of notes below."""

    def __init__(
        self,
        height: float,
        draw: Any,
        *,
        left: float = 0.72,
        top: float = 0.42,
        bottom: float = 0.5,
        notes: str = "",
    ) -> None:
        self.height, self.draw, self.left, self.top = height, draw, left, top
        self.notes = notes.splitlines()
        self.bottom = bottom + LINE * len(self.notes) + (0.08 if notes else 0.0)

    @property
    def total(self) -> float:
        """Height with everything around the frame."""
        return self.top + self.height + self.bottom


def stack(panels: Sequence[Panel], label: str, mark: str, width: float = WIDTH) -> Figure:
    """Panels one above the other; `mark` is the small print at the foot."""
    foot = 0.22 if mark else 0.05
    total = sum(panel.total for panel in panels) + foot
    figure = Figure(figsize=(width, total), label=label)
    FigureCanvasAgg(figure)
    above = total
    for panel in panels:
        base = above - panel.top - panel.height
        box = (panel.left / width, base / total, (width - panel.left - 0.22) / width, panel.height / total)
        panel.draw(figure.add_axes(box))
        for line, note in enumerate(panel.notes):
            y = (base - 0.5 - LINE * (line + 0.5)) / total
            figure.text(0.18 / width, y, note, fontsize=7.8, color=PALETTE["muted"], va="center")
        above = base - panel.bottom
    if mark:
        figure.text(1 - 0.12 / width, 0.08 / total, mark, fontsize=6.5, color=PALETTE["muted"], ha="right")
    return figure


# Marks.


def draw_measured(
    axes: Axes,
    point: PointOutcome,
    *,
    limits: tuple[float, float],
    x: float | None = None,
    y: float = 0.0,
    size: float = 4.6,
    cap: float = 8.5,
    mark: str = "",
) -> None:
    """A measured value with its interval, thin where a size model widens it.

    What lies beyond the limits ends in an arrow at the edge.
    """
    low, high = limits
    if math.isnan(point.measured):
        return
    start, end = (min(max(side, low), high) for side in (point.lower, point.upper))
    centre = min(max(point.measured, low), high)
    line, caps = (
        {"color": colour_of(point), "lw": 1.4, "zorder": 3},
        {"ms": cap, "mew": 1.2, "zorder": 3, "ls": ""},
    )
    spans = [(start, low), (end, high)]
    core = [min(max(side, low), high) for side in _without_size_model(point)]
    if x is not None:
        axes.plot([x, x], [start, end], **line)
        if core:
            axes.plot([x, x], core, color=colour_of(point), lw=THICK, zorder=3)
        for value, edge in spans:
            if value != edge:
                axes.plot([x], [value], marker="_", color=colour_of(point), **caps)
        draw_mark(axes, x, centre, point, size=size, mark=mark, beyond=arrow(point.measured, low, high, "v^"))
    else:
        axes.plot([start, end], [y, y], **line)
        if core:
            axes.plot(core, [y, y], color=colour_of(point), lw=THICK, zorder=3)
        for value, edge in spans:
            if value != edge:
                axes.plot([value], [y], marker="|", color=colour_of(point), **caps)
        draw_mark(
            axes,
            centre,
            y or 0.0,
            point,
            size=size,
            mark=mark,
            beyond=arrow(point.measured, low, high, "<>"),
        )


def _without_size_model(point: PointOutcome) -> tuple[float, ...]:
    """The limits without the part of the size model, if it has one."""
    part = point.size_model
    return (point.lower + part, point.upper - part) if 0 < part < LARGEST else ()


def arrow(value: float, low: float, high: float, arrows: str) -> str:
    """The marker of a value outside the limits, one of two arrows; none for a value inside."""
    return arrows[0] if value < low else arrows[1] if value > high else ""


def draw_mark(
    axes: Axes,
    x: float,
    y: float,
    point: PointOutcome,
    *,
    size: float = 5.5,
    mark: str = "",
    beyond: str = "",
) -> None:
    """The marker of a verdict, an arrow where the value lies beyond the edge.

    `mark` replaces its shape where that tells something else. Hollow while undecided; then crossed if it disagrees.
    """
    hollow = point.verdict == "undecided"
    axes.plot(
        [x],
        [y],
        ls="",
        marker=beyond or mark or MARKERS.get(point.verdict, "o"),
        ms=size,
        mew=1.3,
        mec=colour_of(point),
        mfc=PALETTE["paper"] if hollow else colour_of(point),
        clip_on=False,
        zorder=4,
    )
    if mark and not beyond and point.verdict == "disagrees":
        axes.plot([x], [y], ls="", marker="x", ms=0.6 * size, mew=1.0, mec=PALETTE["paper"], zorder=4.1)


def draw_letter(axes: Axes, x: float, y: float, letter: str) -> None:
    """The letter of a rival, in a ring."""
    axes.plot(
        [x], [y], ls="", marker="o", ms=8.5, mfc=PALETTE["paper"], mec=PALETTE["rival"], mew=0.9, zorder=5,
        clip_on=False,
    )  # fmt: skip
    axes.annotate(
        letter, (x, y), ha="center", va="center_baseline", fontsize=6.5, color=PALETTE["rival"], zorder=5.1,
        annotation_clip=False,
    )  # fmt: skip


def remark(axes: Axes, x: float, y: float, text: str, *, left: bool) -> None:
    """A small remark beside a mark."""
    axes.annotate(
        text, (x, y), xytext=(-7 if left else 7, 0), textcoords="offset points", fontsize=7.5,
        color=PALETTE["muted"], ha="right" if left else "left", va="center", annotation_clip=False,
    )  # fmt: skip


def rivals_in_margins(
    axes: Axes, point: PointOutcome, place: int, limits: Limits, letters: dict[str, str]
) -> None:
    """Rivals where they lie; those beyond the edge are named there with their distance."""
    left: list[str] = []
    right: list[str] = []
    for rival in point.rivals:
        distance = wording.deviation(point, rival.value)
        if math.isnan(distance):
            right.append(f"{letters[rival.name]} not a number")
        elif limits[0] <= distance < limits[1]:
            draw_letter(axes, distance, place, letters[rival.name])
        else:
            (left if distance < 0 else right).append(f"{letters[rival.name]} {wording.number(distance, 2)}")
    style = {"fontsize": 7.2, "color": PALETTE["rival"], "va": "center"}
    if left:
        axes.text(limits[0], place - 0.3, "◂ " + ", ".join(left), ha="left", **style)
    if right:
        axes.text(limits[1], place - 0.3, ", ".join(right) + " ▸", ha="right", **style)


def name_line(axes: Axes, point: PointOutcome, row: Row, place: int) -> None:
    """The parameters that tell this line from the others, above it."""
    text = wording.parameters(wording.differing(point, row.points)) if len(row.points) > 1 else ""
    note = "" if not math.isnan(point.measured) else "no value"
    axes.annotate(
        " — ".join(part for part in (shorten(text, 64), note) if part), (0, place + 0.34),
        xycoords=("axes fraction", "data"), xytext=(2, 0), textcoords="offset points", fontsize=7.5,
        color=PALETTE["muted"], va="center",
    )  # fmt: skip


# Axes.


def line_axis(axes: Axes, count: int) -> None:
    """Room for so many lines, one below the other."""
    axes.set_ylim(-count + 0.4, 0.6)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def example_axis(axes: Axes, count: int) -> None:
    """Room for so many examples, one beside the other."""
    axes.set_xlim(-0.8, count - 0.2)
    axes.set_xticks([])
    axes.set_xlabel("examples drawn by hypothesis, sorted" if count > 1 else "example")


def axis_of_parameter(axes: Axes, row: Row) -> None:
    """The horizontal axis of a row's curves."""
    grid = [value for curve in row.curves for value in curve.x]
    low, high = min(grid), max(grid)
    if spans_decades(grid):
        axes.set_xscale("log")
        decades(axes.xaxis, low, high)
    else:
        plain_ticks(axes.xaxis)
    axes.set_xlim(low, high)
    axes.set_xlabel(row.curves[0].axis)
    axes.grid(axis="y")


def axis_of_places(axes: Axes, axis: str, values: Sequence[float]) -> None:
    """Points side by side, in the order of the parameter, each with its value."""
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.set_xticks(range(len(values)), [wording.number(float(value), 4) for value in values])
    axes.set_xlabel(axis)
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
    centres = finite([wording.deviation(p) for p in points])
    sides = finite([wording.deviation(p, side) for p in points for side in (p.lower, p.upper)])
    rivals = np.abs(finite([wording.deviation(p, r.value) for p in points for r in p.rivals if with_rivals]))
    near = rivals[rivals <= NEAR_RIVALS].max(initial=0.0)
    reach = max(np.abs(centres).max(initial=0.0), min(np.abs(sides).max(initial=0.0), NEAR_RIVALS), near)
    limit = 1.12 * max(float(reach), 1.6)
    if limit > SIDES_LINEAR:
        getattr(axes, f"set_{along}scale")("symlog", linthresh=1.0, linscale=0.6)
        decades = range(math.floor(math.log10(min(limit, 1e15))) + 1)
        limit = min(limit, 1e15) * 1.6
        step = max(1, math.ceil(len(decades) / 4))
        outer = [10.0**k for k in decades if k % step == 0 or k == 0]
        axis.set_major_locator(FixedLocator([-v for v in reversed(outer)] + [0.0] + outer))
        axis.set_minor_locator(NullLocator())
    else:
        step = 1.0 if limit < 4.5 else 2.0 if limit < 9 else 4.0
        whole = np.arange(step, limit, step)
        axis.set_major_locator(FixedLocator(sorted({0.0, 1.0, -1.0, *whole, *(-whole)})))
    axis.set_major_formatter(FuncFormatter(tick_text))
    # half a margin of room for the mark at 0
    limits = (-min(0.5, 0.05 * limit) if from_zero else -limit, limit)
    getattr(axes, f"set_{along}lim")(*limits)
    return limits


def logarithmic_axis(axes: Axes, row: Row, axis: str = "x") -> tuple[float, float]:
    """Differences and tolerance in decades; zero lies on the edge."""
    seen = finite(
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
    span, line = (axes.axvspan, axes.axvline) if axis == "x" else (axes.axhspan, axes.axhline)
    for tolerance in sorted({p.margin for p in row.points}):
        if 0 < tolerance < LARGEST:
            span(low, tolerance, color=PALETTE["band"], linewidth=0)
            line(tolerance, color=PALETTE["theory"], lw=1.2)
            _tolerance(axes, tolerance, axis)
    return low, high


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
    few = FuncFormatter(lambda value, _: wording.number(value, 3))
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


def plain_ticks(axis: Any) -> None:
    """A few round numbers, written like all other numbers of the report."""
    axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: wording.number(round(value, 14), 6)))


def tick_text(value: float, _: Any = None) -> str:
    """A tick as all other numbers of the report are written, far powers of ten as such."""
    power = round(math.log10(abs(value))) if value else 0
    if not -3 < power < 4 and math.isclose(abs(value), 10.0**power):
        return ("−" if value < 0 else "") + wording.power_of_ten(power)
    return wording.number(value, 3)


def colour_of(point: PointOutcome) -> str:
    """The colour of a verdict."""
    return PALETTE.get(point.verdict, PALETTE["ink"])


def shorten(text: str, length: int) -> str:
    """Text cut to so many characters."""
    return text if len(text) <= length else text[: length - 1].rstrip(" ,") + "…"


def finite(*groups: Sequence[float]) -> Floats:
    """The finite numbers of all groups."""
    values = drawable([value for group in groups for value in group])
    return values[~np.isnan(values)]


def drawable(values: Sequence[float]) -> Floats:
    """NaN, a gap in a line, for numbers too large for a drawing."""
    array = np.array(values, dtype=float)
    return np.where(np.abs(array) < LARGEST, array, np.nan)
