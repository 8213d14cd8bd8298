"""Names of rivals at the ends of their lines, to the right of a frame, and their letters where they are points.

Rivals whose lines cannot be told from each other share one line, with all their names.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from verify.page import wording
from verify.page.drawing import DASHES, Floats, Limits
from verify.page.formulas import typeset
from verify.page.theme import PALETTE
from verify.results import PointOutcome

MARGIN = 1.5
"""Inches to the right of a frame that has names there."""

LETTERS = 22
"""Longest line of a name."""

LEADING = 8.6
"""Points from one line of a name to the next."""

SAME = 0.004
"""Lines nearer than this to each other, as a share of the height of a frame, are one to the eye."""

Heights = Mapping[str, Floats]
"""Heights of the rivals along one curve, as shares of the height of the frame."""


def rivals_in_margins(
    axes: Axes, point: PointOutcome, place: int, limits: Limits, letters: Mapping[str, str]
) -> None:
    """Letters of rivals in rings where they lie; those beyond the edge are named there with their distance."""
    beyond: dict[bool, list[str]] = {False: [], True: []}
    for rival in point.rivals:
        letter, distance = letters[rival.name], wording.deviation(point, rival.value)
        if limits[0] <= distance < limits[1]:
            axes.plot(
                [distance], [place], ls="", marker="o", ms=8.5, mfc=PALETTE["paper"], mec=PALETTE["rival"],
                mew=0.9, zorder=5, clip_on=False,
            )  # fmt: skip
            axes.annotate(
                letter, (distance, place), ha="center", va="center_baseline", fontsize=6.5,
                color=PALETTE["rival"], zorder=5.1, annotation_clip=False,
            )  # fmt: skip
        else:
            beyond[distance < 0].append(f"{letter} {wording.numeral(distance, 2)}")
    style = {"fontsize": 7.2, "color": PALETTE["rival"], "va": "center"}
    if beyond[True]:
        axes.text(limits[0], place - 0.3, "◂ " + ", ".join(beyond[True]), ha="left", **style)
    if beyond[False]:
        axes.text(limits[1], place - 0.3, ", ".join(beyond[False]) + " ▸", ha="right", **style)


class LineName(NamedTuple):
    """Label at the end of a line: lines of names, their dash pattern, and the height of the end."""

    lines: list[str]
    dash: int
    end: float
    inside: bool


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
    a, b = curve[one], curve[other]
    return np.array_equal(np.isnan(a), np.isnan(b)) and not bool((np.abs(a - b) > SAME).any())


def line_names(curves: Sequence[Heights], groups: Sequence[Sequence[str]]) -> list[LineName]:
    """A name for each group of rivals, at the end of one of its lines: one that ends in the frame, if there is one."""
    found = []
    for dash, group in enumerate(groups):
        known = [curve[group[0]] for curve in curves if group[0] in curve]
        ends = [float(heights[~np.isnan(heights)][-1]) for heights in known if not np.isnan(heights).all()]
        end = min(ends, key=lambda end: abs(end - 0.5), default=math.nan)
        inside = 0 <= end <= 1
        beyond = "" if inside else " (no value)" if math.isnan(end) else " ↑" if end > 1 else " ↓"
        lines = textwrap.wrap(typeset(" = ".join(group)) + beyond, LETTERS, break_on_hyphens=False)
        found.append(LineName(lines, dash, 0.5 if math.isnan(end) else min(max(end, 0.0), 1.0), inside))
    return found


def names_height(names: Sequence[LineName]) -> float:
    """Inches that the names need, one below the other."""
    return sum(len(name.lines) for name in names) * LEADING / 72


def draw_names(axes: Axes, names: Sequence[LineName], width: float, height: float) -> None:
    """Names with a piece of their line each, which leads to its end, beside a frame of so many points."""
    right, room = 1 + 16 / width, height - 2
    for name in sorted(names, key=lambda name: -name.end):
        tall = LEADING * (len(name.lines) - 1)
        top = min(name.end * height + tall / 2, room)  # from the top down, each below the one before
        own = [(top - LEADING * k) / height for k in range(len(name.lines))]
        room, middle = top - tall - LEADING, sum(own) / len(own)
        axes.plot(
            [1 + 2 / width, right], [name.end if name.inside else middle, middle], transform=axes.transAxes,
            clip_on=False, color=PALETTE["rival"], lw=1.1, dashes=DASHES[name.dash % len(DASHES)],
        )  # fmt: skip
        for text, place in zip(name.lines, own, strict=True):
            axes.annotate(
                text, (right, place), xycoords="axes fraction", xytext=(3, 0), va="center_baseline",
                textcoords="offset points", fontsize=7.0, color=PALETTE["rival"], annotation_clip=False,
            )  # fmt: skip
