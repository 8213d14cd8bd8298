"""Names of lines at their ends: to the right of a frame, or above it where lines run upwards.

Rivals whose lines cannot be told from each other share one line, with all their names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from verify.page.canvas import points_per_pixel
from verify.page.drawing import DASHES, Floats, in_lines, width_of
from verify.page.formulas import typeset
from verify.page.theme import PALETTE

SIZE, LEADING = 9.0, 11.0
"""Size of a name, and points from one line to the next."""

LONGEST = 118.0
"""Widest line of a name."""

PIECE = 16.0
"""Length of the piece of line between a frame and a name."""

SAME = 0.004
"""Lines nearer than this to each other, as a share of the height of a frame, are one to the eye."""

Heights = Mapping[str, Floats]
"""Heights of the rivals along one curve, as shares of the height of the frame."""


class LineName(NamedTuple):
    """Name at the end of a line: its lines of text, its dashes (none of a prediction), and the height of the end."""

    lines: list[str]
    dash: tuple[float, ...]
    end: float


def dashes_of(k: int) -> tuple[float, ...]:
    """Dashes of the rival of this number."""
    return DASHES[k % len(DASHES)]


def shared_lines(curves: Sequence[Heights]) -> list[list[str]]:
    """The rivals that share a line: along every curve their lines are one to the eye.

    >>> shared_lines([{name: np.full(2, y) for name, y in (("half", 0.5), ("one", 1.0), ("1/2", 0.5))}])
    [['half', '1/2'], ['one']]
    """
    groups: list[list[str]] = []
    for name in dict.fromkeys(name for curve in curves for name in curve):
        home = next((group for group in groups if all(_same(c, group[0], name) for c in curves)), None)
        if home is None:
            groups.append([name])
        else:
            home.append(name)
    return groups


def _same(curve: Heights, one: str, other: str) -> bool:
    if one not in curve or other not in curve:
        return (one in curve) == (other in curve)
    return np.allclose(curve[one], curve[other], rtol=0, atol=SAME, equal_nan=True)


def line_name(text: str, heights: Sequence[Floats], dash: tuple[float, ...] = ()) -> LineName:
    """A name at the end of one of these lines: one that ends in the frame, if there is one."""
    ends = [float(known[-1]) for line in heights if (known := line[~np.isnan(line)]).size]
    end = min(ends, key=lambda end: abs(end - 0.5), default=math.nan)
    beyond = " (no value)" if math.isnan(end) else " ↑" if end > 1 else " ↓" if end < 0 else ""
    return LineName(in_lines(typeset(text) + beyond, LONGEST, SIZE), dash, end)


def names_height(names: Sequence[LineName]) -> float:
    """Points that the names need, one below the other."""
    return sum(len(name.lines) for name in names) * LEADING


def names_width(names: Sequence[LineName]) -> float:
    """Points that the names need beside the frame."""
    widths = [width_of(line, SIZE) for name in names for line in name.lines]
    return PIECE + 6 + max(widths) if widths else 0.0


def draw_names(axes: Axes, names: Sequence[LineName]) -> None:
    """Names with a piece of their line each, which leads to its end, to the right of the frame.

    From above: each at its end, if the one before leaves room, and those after it have room in the frame.
    """
    width, height = (side * points_per_pixel(axes) for side in axes.bbox.size)
    above, needed = height + LEADING / 2, names_height(names) - LEADING / 2
    for lines, dash, end in sorted(names, key=lambda name: -math.inf if math.isnan(name.end) else -name.end):
        tall = LEADING * len(lines)
        place = 0.5 if math.isnan(end) else min(max(end, 0.0), 1.0)
        top = max(min(place * height + tall / 2, above), needed)
        above, needed, middle = top - tall, needed - tall, (top - tall / 2) / height
        colour = PALETTE["rival" if dash else "theory"]
        axes.plot(
            [1 + 3 / width, 1 + PIECE / width], [end if 0 <= end <= 1 else middle, middle], lw=1.3 if dash else 1.9,
            transform=axes.transAxes, clip_on=False, color=colour, ls=(0, dash) if dash else "-",
        )  # fmt: skip
        for k, text in enumerate(lines):
            write_beside(axes, text, (1, (top - LEADING * (k + 0.5)) / height), (PIECE + 3, 0), color=colour)


def draw_tag(axes: Axes, text: str, share: float, dash: tuple[float, ...], level: int) -> None:
    """The name of a rival above a frame, on its level, and the line that leads from it to its mark."""
    rise, before = 6 + LEADING * level, share > 0.5
    write_beside(
        axes, text, (share, 1), (-3 if before else 3, rise + 2), ha="right" if before else "left",
        color=PALETTE["rival"],
    )  # fmt: skip
    height = float(axes.bbox.height) * points_per_pixel(axes)
    axes.plot(
        [share, share], [1, 1 + (rise + 4) / height], transform=axes.transAxes, clip_on=False, lw=1.0,
        color=PALETTE["rival"], ls=(0, dash),
    )  # fmt: skip


def write_beside(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], *, coords: Any = "axes fraction",
    **style: Any,
) -> None:  # fmt: skip
    """Write a name outside of a frame, so many points from a place."""
    style = {"color": PALETTE["muted"], "va": "center_baseline", "parse_math": False} | style
    axes.annotate(
        text, at, offset, coords, textcoords="offset points", fontsize=SIZE, annotation_clip=False, **style
    )
