"""Layout and marks: what all figures have in common."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from verify.page import wording
from verify.page.theme import PALETTE
from verify.results import PointOutcome

Floats = NDArray[np.float64]
Limits = tuple[float, float]

MARKERS = {"agrees": "o", "disagrees": "D", "undecided": "o", "broken": "X"}
DASHES = ((4, 2), (1.5, 1.5), (6, 2, 1.5, 2), (3, 1), (8, 3), (1, 3))
CURVE_MARKS = {"o": "●", "s": "■", "^": "▲"}
"""Marks of the curves of a row that has several, as drawn and as in the key; colour tells the verdict."""

OFF_CURVES = ("P", "✚")
"""Mark of a point on none of the curves that are drawn."""

WIDTH = 4.8
LINE = 0.175

KEY = "●■▲◆▼✚○□△◇▽"
"""A line of notes that begins with one of these has it in the colour of the marks."""

NOTE, TITLE = 72, 50
"""Longest lines of notes and of a title."""

EN = "\u2002"
"""A space that SVG does not collapse: between the mark of a key and what it means."""

TIP = "tip: "
"""Begins the name of an artist that is a text to be shown where the cursor rests on it."""

LARGEST = 1e100
"""Numbers beyond are treated like infinity: the arithmetic of a drawing would overflow."""


# Layout: panels of given heights in inches, one above the other.


class Panel:
    """Part of a figure below its own title, with its size: inches of the frame and its margins, and lines of notes."""

    def __init__(
        self,
        height: float,
        draw: Any,
        *,
        title: str = "",
        left: float = 0.72,
        right: float = 0.22,
        top: float = 0.42,
        bottom: float = 0.5,
        notes: str = "",
        colours: Sequence[str] = (),
    ) -> None:
        self.height, self.draw, self.left, self.right = height, draw, left, right
        self.title = "\n".join(in_lines(title, TITLE))
        self.notes = [
            part for line in notes.splitlines() for part in in_lines(line, NOTE, 5 * EN if EN in line else "")
        ]
        self.colours = colours
        self.top = top + 0.16 * self.title.count("\n")
        self.bottom = bottom + LINE * len(self.notes) + (0.08 if notes else 0.0)

    @property
    def total(self) -> float:
        """Height with everything around the frame."""
        return self.top + self.height + self.bottom


def in_lines(text: str, width: int, indent: str = "") -> list[str]:
    """A text in lines that do not part a name from its value."""
    kept = text.replace(" = ", _EQUALS)
    lines = textwrap.wrap(kept, width, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace(_EQUALS, " = ") for line in lines]


_EQUALS = "\u00a0=\u00a0"


def stack(panels: Sequence[Panel], label: str, mark: str, width: float = WIDTH) -> Figure:
    """Panels one above the other; `mark` is the small print at the foot."""
    foot = 0.22 if mark else 0.05
    total = sum(panel.total for panel in panels) + foot
    figure = Figure(figsize=(width, total), label=label)
    FigureCanvasAgg(figure)
    above = total
    for panel in panels:
        base = above - panel.top - panel.height
        inside = width - panel.left - panel.right
        axes = figure.add_axes((panel.left / width, base / total, inside / width, panel.height / total))
        panel.draw(axes)
        if panel.title:
            axes.set_title(panel.title)
        colours = iter(panel.colours)
        for line, note in enumerate(panel.notes):
            y = (base - 0.5 - LINE * (line + 0.5)) / total
            if note[:1] in KEY:
                colour = PALETTE[next(colours, "muted")]
                figure.text(0.18 / width, y, note[0], **{**_NOTES, "color": colour})
                figure.text(0.41 / width, y, note[1:].strip(), **_NOTES)
            else:
                figure.text(0.18 / width, y, note, **_NOTES)
        above = base - panel.bottom
    if mark:
        figure.text(1 - 0.12 / width, 0.08 / total, mark, fontsize=6.5, color=PALETTE["muted"], ha="right")
    return figure


_NOTES: Any = {"fontsize": 7.8, "color": PALETTE["muted"], "va": "center"}


# Marks.


def tip(point: PointOutcome) -> str:
    """Return the text that a page shows when the cursor rests on a point.

    >>> seen = {"predicted": 1.236, "measured": 1.234, "lower": 1.229, "upper": 1.239, "replicates": 208}
    >>> tip(PointOutcome(parameters={}, verdict="agrees", margin=0.1, **seen))
    'measured 1.234 ± 0.005, predicted 1.236, n = 208'
    """
    up, down = point.upper - point.measured, point.measured - point.lower
    said = f"measured {wording.numeral(point.measured)}"
    if math.isfinite(up + down) and up + down > 0:
        even = math.isclose(up, down, rel_tol=0.02)
        ends = f" ({wording.numeral(point.lower)} to {wording.numeral(point.upper)})"
        said += f" ± {wording.numeral(up, 2)}" if even else ends
    said += f", predicted {wording.numeral(point.predicted)}"
    return said + (f", n = {point.replicates}" if point.replicates else "")


def draw_measured(
    axes: Axes,
    point: PointOutcome,
    at: float,
    along: str,
    limits: Limits,
    *,
    size: float = 4.6,
    mark: str = "",
    said: str = "",
) -> None:
    """A measured value with its interval, `along` x or y, at a place on the other axis.

    What lies beyond the limits ends in an arrow at the edge; `said` is shown where the cursor rests on the mark.
    """
    low, high = limits
    if math.isnan(point.measured):
        return
    colour = PALETTE.get(point.verdict, PALETTE["ink"])
    ends = [min(max(side, low), high) for side in (point.lower, point.upper)]

    def put(values: Sequence[float], **style: Any) -> None:
        others = [at] * len(values)
        axes.plot(*((values, others) if along == "x" else (others, values)), color=colour, zorder=3, **style)

    put(ends, lw=1.4)
    caps = [end for end, edge in zip(ends, limits, strict=True) if end != edge]
    if caps:
        put(caps, ls="", marker="|" if along == "x" else "_", ms=1.85 * size, mew=1.2)
    centre = min(max(point.measured, low), high)
    beyond = arrow(point.measured, low, high, "<>" if along == "x" else "v^")
    x, y = (centre, at) if along == "x" else (at, centre)
    draw_mark(axes, x, y, point, size=size, mark=mark, beyond=beyond, said=said)


def arrow(value: float, low: float, high: float, arrows: str) -> str:
    """The marker of a value outside the limits, one of two arrows; none for a value inside."""
    return arrows[0] if value < low else arrows[1] if value > high else ""


def draw_mark(
    axes: Axes,
    x: float | Sequence[float],
    y: float,
    point: PointOutcome,
    *,
    size: float = 5.5,
    mark: str = "",
    beyond: str = "",
    said: str = "",
) -> None:
    """The marker of a verdict, an arrow where the value lies beyond the edge; of several points at one height too.

    `mark` replaces its shape where that tells something else. Hollow while undecided; then crossed if it disagrees.
    """
    places, colour = np.atleast_1d(x), PALETTE.get(point.verdict, PALETTE["ink"])
    heights = np.full(len(places), y)
    hollow = point.verdict == "undecided"
    crossed = bool(mark) and not beyond and point.verdict == "disagrees"
    if crossed:  # behind the mark, whose shape tells the curve: a cross inside would make another one of it
        axes.plot(
            places, heights, ls="", marker="x", ms=2.0 * size, mew=1.0, mec=colour, zorder=3.9, clip_on=False
        )  # fmt: skip
    axes.plot(
        places,
        heights,
        gid=TIP + said if said else None,
        ls="",
        marker=beyond or mark or MARKERS.get(point.verdict, "o"),
        ms=size,
        mew=1.3,
        mec=colour,
        mfc=PALETTE["paper"] if hollow else colour,
        clip_on=False,
        zorder=4,
    )


def shorten(text: str, length: int) -> str:
    """Text cut to so many characters."""
    return text if len(text) <= length else text[: length - 1].rstrip(" ,") + "…"


def finite_values(*groups: Iterable[float]) -> Floats:
    """The finite numbers of all groups."""
    values = drawable([value for group in groups for value in group])
    return values[~np.isnan(values)]


def drawable(values: Sequence[float]) -> Floats:
    """NaN, a gap in a line, for numbers too large for a drawing."""
    array = np.array(values, dtype=float)
    return np.where(np.abs(array) < LARGEST, array, np.nan)
