"""Every point of every row against its prediction, in margins, on one page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from verify.page import wording
from verify.page.axes import tick_text
from verify.page.drawing import arrow, draw_mark, finite_values, shorten
from verify.page.theme import PALETTE
from verify.results import PointOutcome, Row

__all__ = ["draw_overview"]

NAME = 46
"""Longest name of a row."""

MODEL_BASED = " (model-based)"


def draw_overview(axes: Axes, rows: Sequence[Row]) -> None:
    """Every point of every row, in margins, linear inside the band and logarithmic outside."""
    points = [point for row in rows for point in row.points]
    limit = _overview_limit(points)
    axes.set_xscale("symlog", linthresh=1.0, linscale=1.0)
    axes.set_xlim(-limit * 1.3, limit * 1.3)  # first: limits that are open are found anew with every line
    axes.set_ylim(_foot(rows), -0.4)
    axes.axvspan(-1, 1, color=PALETTE["band"], linewidth=0)
    axes.axvline(0, color=PALETTE["theory"], lw=1.0)
    ticks: list[float] = []
    for place, row in _places(axes, rows):
        ticks.append(place)
        axes.axhline(place, color=PALETTE["rule"], lw=0.5, zorder=0.5)
        for marks in _alike(row.points, limit):
            centres = [min(max(mark.value, -limit), limit) for mark in marks]
            draw_mark(axes, centres, place, marks[0].point, size=4.0, beyond=marks[0].beyond)
        if not any(math.isfinite(wording.deviation(point)) for point in row.points):
            axes.text(
                0, place, row.verdict, ha="center", va="center", fontsize=7, color=PALETTE.get(row.verdict)
            )
    axes.set_yticks(ticks, [_name(row) for row in rows], fontsize=7)
    axes.tick_params(left=False)
    outer = [10.0**k for k in range(0, math.ceil(math.log10(limit)), 1 + int(limit > 2e4))]
    axes.xaxis.set_major_locator(FixedLocator([-v for v in reversed(outer)] + [0.0] + outer))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(tick_text))
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("(measured − predicted) / margin")


class _Mark(NamedTuple):
    """A point, its deviation in margins, and the arrow of one that lies beyond the limits."""

    point: PointOutcome
    value: float
    beyond: str


def _alike(points: Sequence[PointOutcome], limit: float) -> Iterator[list[_Mark]]:
    """Those with a value, as long as they follow one another with one mark: drawn together, in their order."""
    valued = ((point, wording.deviation(point)) for point in points)
    marks = (
        _Mark(p, value, arrow(value, -limit, limit, "<>")) for p, value in valued if not math.isnan(value)
    )
    for _, run in groupby(marks, lambda mark: (mark.point.verdict, mark.beyond)):
        yield list(run)


def _places(axes: Axes, rows: Sequence[Row]) -> Iterator[tuple[float, Row]]:
    """A height for each row, with the paper's name above its rows."""
    place, paper = 0.0, None
    for row in rows:
        if row.paper != paper:
            place, paper = place - 1.9, row.paper
            axes.annotate(
                row.paper, (0, place + 0.9), xycoords=("axes fraction", "data"), xytext=(-6, 0), fontsize=8,
                textcoords="offset points", ha="right", va="center", fontweight="bold", annotation_clip=False,
            )  # fmt: skip
        else:
            place -= 1.0
        yield place, row


def _foot(rows: Sequence[Row]) -> float:
    """A little below the last row."""
    return -len(rows) - 0.9 * len(list(groupby(row.paper for row in rows))) - 0.6


def _overview_limit(points: Sequence[PointOutcome]) -> float:
    values = np.abs(finite_values([wording.deviation(point) for point in points]))
    return float(min(max(values.max(initial=3.0) * 1.2, 3.0), 1e6))


def _name(row: Row) -> str:
    name = row.id.removeprefix(f"{row.paper}/")
    return shorten(name, NAME - len(MODEL_BASED)) + MODEL_BASED if row.model_based else shorten(name, NAME)
