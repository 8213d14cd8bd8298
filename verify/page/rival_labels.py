"""Names of rivals at the ends of their lines, to the right of a frame, and their letters where they are points.

Rivals whose lines cannot be told from each other share one line, with all their names; letters that would hide each
other stand side by side.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from verify.page import wording
from verify.page.drawing import DASHES, Floats, Limits
from verify.page.formulas import typeset
from verify.page.theme import PALETTE
from verify.results import Curve, PointOutcome

__all__ = [
    "MARGIN",
    "LineName",
    "draw_letter",
    "draw_letters",
    "draw_names",
    "line_names",
    "names_height",
    "rivals_in_margins",
    "shared_lines",
    "spread",
]

MARGIN = 1.5
"""Inches to the right of a frame that has names there."""

LETTERS = 22
"""Longest line of a name."""

LEADING = 8.6
"""Points from one line of a name to the next."""

SAME = 0.004
"""Lines nearer than this to each other, as a share of the height of a frame, are one to the eye."""

RING = 9.0
"""Points from the middle of a rival's letter to that of the next one that it does not hide."""

Share = Callable[[Sequence[float]], Floats]
"""Values on an axis to shares of its length."""


def spread(
    places: Sequence[float], apart: float, *, least: float = -math.inf, most: float = math.inf
) -> list[float]:
    """Places moved by as little as keeps each so far from the next, in their order, between `least` and `most`.

    >>> spread([0.0, 2.0, 2.0, 9.0], 1.0), spread([0.0, 0.0], 1.0, least=0.0)
    ([0.0, 1.5, 2.5, 9.0], [0.0, 1.0])
    """
    order = sorted(range(len(places)), key=lambda k: places[k])
    heaps: list[tuple[float, int]] = []  # the middle of a row of neighbours, and how many they are
    for k in order:
        middle, count = places[k], 1
        while heaps and middle - heaps[-1][0] < apart * (count + heaps[-1][1]) / 2:
            before, more = heaps.pop()
            middle, count = (middle * count + before * more) / (count + more), count + more
        heaps.append((middle, count))
    stand = [middle + apart * (i - (count - 1) / 2) for middle, count in heaps for i in range(count)]
    found = [0.0] * len(places)
    for i, place in enumerate(stand):
        stand[i] = max(place, least)
        least = stand[i] + apart
    for k, place in zip(reversed(order), reversed(stand), strict=True):
        found[k] = min(place, most)
        most = found[k] - apart
    return found


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


def draw_letters(
    axes: Axes, places: Iterable[tuple[float, float, str]], along: str, clear: float = math.nan
) -> None:
    """Letters of rivals that would hide each other stand side by side, `along` x or y.

    They also stand clear of a mark at `clear`, above it or to its right.
    """
    found = list(places)
    k = "xy".index(along)
    shown = (
        axes.transData.transform([place[:2] for place in found]) * _points_per_pixel(axes) if found else []
    )
    spots = [float(spot[k]) for spot in shown]
    if not math.isnan(clear) and found:
        mark = [clear, found[0][1]] if along == "x" else [found[0][0], clear]
        at = float(axes.transData.transform(mark)[k]) * _points_per_pixel(axes)
        near = [max(spot, at) if spot > at - RING else math.nan for spot in spots]
        raised = iter(spread([spot for spot in near if not math.isnan(spot)], RING, least=at + RING))
        spots = [spot if math.isnan(close) else next(raised) for spot, close in zip(spots, near, strict=True)]
    most = float((axes.bbox.x1, axes.bbox.y1)[k]) * _points_per_pixel(axes)
    for moved, spot, (_, _, letter) in zip(spread(spots, RING, most=most), shown, found, strict=True):
        spot = [moved, spot[1]] if along == "x" else [spot[0], moved]
        x, y = axes.transData.inverted().transform(np.array(spot) / _points_per_pixel(axes))
        draw_letter(axes, float(x), float(y), letter)


def _points_per_pixel(axes: Axes) -> float:
    figure = axes.get_figure(root=True)
    return 72 / figure.dpi if figure is not None else 1.0


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
            (left if distance < 0 else right).append(f"{letters[rival.name]} {wording.numeral(distance, 2)}")
    style = {"fontsize": 7.2, "color": PALETTE["rival"], "va": "center"}
    if left:
        axes.text(limits[0], place - 0.3, "◂ " + ", ".join(left), ha="left", **style)
    if right:
        axes.text(limits[1], place - 0.3, ", ".join(right) + " ▸", ha="right", **style)


class LineName(NamedTuple):
    """What stands at the end of a line: the names, which dashes they have, and the height of the end."""

    text: str
    dash: int
    end: float
    beyond: str

    @property
    def lines(self) -> list[str]:
        """The text as it is drawn, with an arrow to what lies beyond the frame."""
        return textwrap.wrap(self.text + self.beyond, LETTERS, break_on_hyphens=False)


def shared_lines(curves: Sequence[Curve], names: Sequence[str], up: Share) -> list[list[str]]:
    """The rivals that share a line: along every curve their lines are one to the eye.

    >>> lines = {"half": [0.5, 0.5], "1/2": [0.5, 0.5], "one": [1.0, 1.0]}
    >>> curve = Curve(axis="x", at={}, x=[0.0, 1.0], predicted=[0.0, 0.0], rivals=lines)
    >>> shared_lines([curve], ["half", "one", "1/2"], np.asarray)
    [['half', '1/2'], ['one']]
    """
    groups: list[list[str]] = []
    for name in names:
        home = next(
            (group for group in groups if all(_same(curve, group[0], name, up) for curve in curves)), None
        )
        if home is None:
            groups.append([name])
        else:
            home.append(name)
    return groups


def _same(curve: Curve, one: str, other: str, up: Share) -> bool:
    if one not in curve.rivals or other not in curve.rivals:
        return (one in curve.rivals) == (other in curve.rivals)
    a, b = up(curve.rivals[one]), up(curve.rivals[other])
    gaps = np.isnan(a) == np.isnan(b)
    return bool(gaps.all()) and not bool((np.abs(a - b) > SAME).any())


def line_names(curves: Sequence[Curve], groups: Sequence[Sequence[str]], up: Share) -> list[LineName]:
    """A name for each group of rivals, at the end of one of its lines: one that ends in the frame, if there is one."""
    found = []
    for dash, group in enumerate(groups):
        ends = [_end(up(curve.rivals[group[0]])) for curve in curves if group[0] in curve.rivals]
        known = [end for end in ends if not math.isnan(end)]
        inside = [end for end in known if 0 <= end <= 1]
        end = inside[0] if inside else min(known, key=lambda end: abs(end - 0.5), default=math.nan)
        beyond = "" if inside else " (no value)" if math.isnan(end) else " ↑" if end > 1 else " ↓"
        found.append(
            LineName(
                typeset(" = ".join(group)), dash, 0.5 if math.isnan(end) else min(max(end, 0.0), 1.0), beyond
            )
        )
    return found


def _end(heights: Floats) -> float:
    known = heights[~np.isnan(heights)]
    return float(known[-1]) if known.size else math.nan


def names_height(names: Sequence[LineName]) -> float:
    """Inches that the names need, one below the other."""
    return sum(len(name.lines) for name in names) * LEADING / 72


def draw_names(axes: Axes, names: Sequence[LineName], ends: Mapping[str, float], height: float) -> None:
    """Names with a piece of their line each, which leads to its end; `ends` has the width of the frame in points."""
    tall = height * 72
    order = sorted(range(len(names)), key=lambda k: names[k].end)
    slots = [k for k in order for _ in names[k].lines]
    places = spread([names[k].end * tall for k in slots], LEADING, most=tall - 2)
    for k in order:
        own = [place for place, slot in zip(places, slots, strict=True) if slot == k]
        middle = sum(own) / len(own) / tall
        start = names[k].end if not names[k].beyond else middle
        right = 1 + 16 / ends["width"]
        axes.plot(
            [1 + 2 / ends["width"], right], [start, middle], transform=axes.transAxes, clip_on=False,
            color=PALETTE["rival"], lw=1.1, dashes=DASHES[names[k].dash % len(DASHES)],
        )  # fmt: skip
        for text, place in zip(names[k].lines, reversed(own), strict=True):
            axes.annotate(
                text, (right, place / tall), xycoords="axes fraction", xytext=(3, 0), va="center_baseline",
                textcoords="offset points", fontsize=7.0, color=PALETTE["rival"], annotation_clip=False,
            )  # fmt: skip
