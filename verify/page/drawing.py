"""Layout and marks: what all figures have in common. Lengths are points, one of which is a CSS pixel of a page."""

from __future__ import annotations

import contextlib
import math
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray

from verify.page import wording
from verify.page.canvas import ABOVE, BELOW, LEFT, RIGHT, points_per_pixel, with_indices
from verify.page.theme import PALETTE
from verify.results import PointOutcome

Floats = NDArray[np.float64]
Limits = tuple[float, float]

MARKERS = {"agrees": "o", "disagrees": "D", "undecided": "o", "broken": "X"}
DASHES = ((4, 2.5), (1.5, 1.5), (6, 2, 1.5, 2), (3, 1), (8, 3), (1, 3))

WIDTH = 520.0
"""Width of a figure."""

EDGE, FOOT, NOTE = 8.0, 14.0, 9.0
"""Room around a figure, the height of the line below it, and the size of notes."""

LEADING = 1.22
"""Distance between lines of text, in units of the font size."""

TIP = "tip: "
"""Begins the name of an artist that is a text to be shown where the cursor rests on it."""

LARGEST = 1e100
"""Numbers beyond are treated like infinity: the arithmetic of a drawing would overflow."""


class Panel(NamedTuple):
    """Part of a figure: a frame with the room around it, what draws it, and a note for the foot of the figure."""

    height: float
    draw: Any
    note: str = ""
    left: float = LEFT
    right: float = RIGHT
    above: float = ABOVE
    below: float = BELOW


class TopLines(NamedTuple):
    """Heading above the panels: its height, and the function that draws it from the top left corner."""

    height: float
    draw: Any


def stack(
    panels: Sequence[Panel],
    label: str,
    mark: str,
    width: float = WIDTH,
    heading: TopLines | None = None,
    columns: int = 1,
) -> Figure:
    """A heading above panels, in columns; below each row of panels its notes; `mark` is the small print at the foot."""
    rows: list[tuple[Sequence[Panel], list[str]]] = []
    for k in range(0, len(panels), columns):
        notes = [line for p in panels[k : k + columns] for line in in_lines(p.note, width - 2 * EDGE, NOTE)]
        rows.append((panels[k : k + columns], notes))
    top = heading.height if heading else 0.0
    heights = [
        max(panel.above for panel in shown)
        + max(panel.height + panel.below for panel in shown)
        + NOTE * LEADING * len(notes)
        for shown, notes in rows
    ]
    total = top + sum(heights) + FOOT * bool(mark) + 2 * EDGE
    figure = Figure(figsize=(width / 72, total / 72), label=label)
    FigureCanvasAgg(figure)
    small: Any = {"color": PALETTE["muted"], "va": "top", "parse_math": True}
    y = total - EDGE
    if heading:
        heading.draw(figure, EDGE, y, width - 2 * EDGE)
        y -= top
    own = (width - 2 * EDGE) / columns
    for (shown, notes), height in zip(rows, heights, strict=True):
        for k, panel in enumerate(shown):
            x, inside = EDGE + k * own + panel.left, own - panel.left - panel.right
            base = y - max(other.above for other in shown) - panel.height
            panel.draw(figure.add_axes((x / width, base / total, inside / width, panel.height / total)))
        y -= height
        for k, line in enumerate(reversed(notes), 1):
            figure.text(
                EDGE / width, (y + NOTE * LEADING * k) / total, with_indices(line), fontsize=NOTE, **small
            )
    if mark:
        figure.text(1 - EDGE / width, (y - 2) / total, mark, fontsize=7.0, ha="right", **small)
    return figure


def width_of(text: str, size: float) -> float:
    """Width of a line of text, with a little more for the rounding of its letters to pixels."""
    return 1.04 * size * sum(map(_advance, text))


@lru_cache(maxsize=8192)
def _advance(letter: str) -> float:
    """Width of a letter among others, in units of the font size: to lay out whole lines takes far longer."""
    font = FontProperties(family="DejaVu Sans", size=100)
    with any_glyph():
        long, short = (
            text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
            for text in (f"n{letter}n", "nn")
        )
    return float(long - short) / 100


@contextlib.contextmanager
def any_glyph() -> Iterator[None]:
    """No word about letters that the font of the layout lacks: a page takes them from another."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def in_lines(text: str, room: float, size: float) -> list[str]:
    """A text in lines of at most this width that do not part a name from its value."""
    kept = text.replace(" = ", _EQUALS)
    letters = max(int(room / (0.45 * size)), 8)
    while True:
        lines = textwrap.wrap(kept, letters, break_on_hyphens=False)
        if letters <= 8 or all(width_of(line, size) <= room for line in lines):
            return [line.replace(_EQUALS, " = ") for line in lines]
        letters -= max(1, letters // 20)


_EQUALS = "\u00a0=\u00a0"


# Marks.


def tip(point: PointOutcome) -> str:
    """Return the text that a page shows when the cursor rests on a point.

    >>> seen = {"predicted": 1.236, "measured": 1.234, "lower": 1.229, "upper": 1.239, "replicates": 208}
    >>> tip(PointOutcome(parameters={}, verdict="agrees", margin=0.1, **seen))
    'measured 1.2340 ± 0.0050, predicted 1.236, n = 208'
    """
    said = f"measured {wording.measurement(point)}, predicted {wording.numeral(point.predicted)}"
    return said + (f", n = {point.replicates}" if point.replicates else "")


def draw_measured(
    axes: Axes, point: PointOutcome, at: float, along: str, limits: Limits, *,
    size: float, mark: str, networks: bool, said: str,
) -> None:  # fmt: skip
    """A measured value with its interval, `along` x or y, at a place on the other axis.

    What lies beyond the limits ends in an arrow at the edge; `said` is shown where the cursor rests on the mark. A mark
    that would hide its interval is smaller. Networks have a colour of their own; in a model what agrees is dark, the
    rest in the colour of its verdict.
    """
    low, high = limits
    if math.isnan(point.measured):
        return
    ends, others = [min(max(side, low), high) for side in (point.lower, point.upper)], [at, at]
    colour = PALETTE["nets" if networks else "ink" if point.verdict == "agrees" else point.verdict or "ink"]
    places = (ends, others) if along == "x" else (others, ends)
    if point.lower < point.upper:  # an exact number has no interval
        axes.plot(*places, color=colour, lw=1.2, zorder=3, solid_capstyle="butt")
    shown = axes.transData.transform(np.column_stack(places)) * points_per_pixel(axes)
    length = float(np.abs(shown[1] - shown[0]).max())
    if 3.0 < length < 1.6 * size and point.verdict != "undecided":
        size = max(0.6 * length, 2.2)
    centre, arrows = min(max(point.measured, low), high), "<>" if along == "x" else "v^"
    beyond = arrows[0] if point.measured < low else arrows[1] if point.measured > high else mark
    x, y = (centre, at) if along == "x" else (at, centre)
    draw_mark(axes, x, y, point, size=size, mark=beyond, said=said, colour=colour)


def draw_mark(
    axes: Axes, x: float, y: float, point: PointOutcome, *, size: float, mark: str = "", said: str = "",
    colour: str = "",
) -> None:  # fmt: skip
    """The marker of a verdict, or another `mark`; hollow while undecided."""
    colour = colour or PALETTE.get(point.verdict, PALETTE["ink"])
    inside = PALETTE["paper"] if point.verdict == "undecided" else colour
    axes.plot(
        x, y, gid=TIP + said if said else None, ls="", marker=mark or MARKERS.get(point.verdict, "o"),
        ms=size, mew=1.0, mec=colour, mfc=inside, clip_on=False, zorder=4,
    )  # fmt: skip


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
