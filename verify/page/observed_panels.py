"""Panels of an observation: ratios of theory to measurement, beside the line at 1."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from verify.page import wording
from verify.page.axes import decades, plain_ticks
from verify.page.drawing import DASHES, Floats, Limits, Panel, drawable
from verify.page.panel_parts import EN, brief, room, title
from verify.page.ratios import FAR, OFF, off_by
from verify.page.theme import PALETTE
from verify.results import Observed, ObservedGroup, ObservedRow

__all__ = ["observed_panels"]

LINES = (
    ("o", "●○", "ink"),
    ("s", "■□", "rival"),
    ("^", "▲△", "muted"),
    ("D", "◆◇", "ink"),
    ("v", "▼▽", "rival"),
)
"""Marker, its letters in the key, full and then hollow, and colour of each column; verdicts have other colours."""

SPREAD = 0.6
"""Share of the way from one counted thing to the next over which the columns stand side by side."""

MOST_PANELS = 12
"""Points with a panel of their own."""

REACH = 1.6
"""Ranges are drawn up to this factor beyond the means, or by as much of a linear axis."""

APART = 0.11
"""Distance of two ticks, as a share of the axis."""

SMALLEST = 1e-100
"""Smaller ratios are off any logarithmic axis."""


class _Column(NamedTuple):
    """A column of ratios and how it is drawn."""

    place: int
    heading: str
    marker: str
    letter: str
    colour: str
    dashes: tuple[float, ...] | None

    @property
    def looks(self) -> dict[str, Any]:
        """How its points are drawn."""
        hollow = (
            {"markerfacecolor": PALETTE["paper"]} if self.letter in {two[1] for _, two, _ in LINES} else {}
        )
        return {"color": PALETTE[self.colour], "marker": self.marker, **hollow}


class Scale(NamedTuple):
    """The axis of ratios, the same in all panels."""

    logarithmic: bool
    limits: Limits


def observed_panels(made: Observed) -> list[Panel]:
    """One panel for each point, ratios over what runs along; points without such a parameter share one panel."""
    columns = _columns(made)
    placed = [g for g in made.groups if g.rows and g.rows[0].at is not None]
    alone = [g for g in made.groups if g.rows and g.rows[0].at is None]
    if not columns or not (placed or alone):
        return []
    scale = _scale([row for g in (*placed, *alone) for row in g.rows], columns)
    panels = [_panel(made, group, columns, scale) for group in placed[:MOST_PANELS]]
    panels += [_lines_panel(made, alone, columns, scale)] if alone else []
    key = [_key(column) for column in columns]
    hidden = len(placed) - MOST_PANELS
    key += [f"{hidden} more points in the table"] if hidden > 0 else []
    last = panels[-1]
    notes = "\n".join(key)
    panels[-1] = Panel(
        last.height, last.draw, left=last.left, top=last.top, notes=notes, colours=[c.colour for c in columns]
    )
    return panels


def _columns(made: Observed) -> list[_Column]:
    found: list[_Column] = []
    for place, column in enumerate(made.columns):
        if column.ratio:
            k = len(found)
            marker, letters, colour = LINES[k % len(LINES)]
            letter = letters[k // len(LINES) % 2]
            dashes = DASHES[(k - 1) % len(DASHES)] if k else None
            found.append(_Column(place, column.heading, marker, letter, colour, dashes))
    return found


def _key(column: _Column) -> str:
    return "\n".join(
        textwrap.wrap(
            f"{column.letter}{EN}{column.heading}", 72, subsequent_indent=2 * EN, break_on_hyphens=False
        )
    )


def _scale(rows: Sequence[ObservedRow], columns: Sequence[_Column]) -> Scale:
    """Room for every mean and for 1, and for the ranges as far as they stay near."""
    cells = [row.cells[column.place] for row in rows for column in columns]
    means = drawable([cell.mean for cell in cells])
    sides = drawable([side for cell in cells for side in (cell.lowest, cell.highest)])
    means, sides = means[~np.isnan(means)], sides[~np.isnan(sides)]
    logarithmic = bool(means.size) and bool((means > SMALLEST).all()) and max(map(off_by, means)) > FAR
    values = np.log(means) if logarithmic else means
    ranges = np.log(sides[sides > SMALLEST]) if logarithmic else sides
    low, high = _reach(values, ranges, *((0.0, math.log(REACH)) if logarithmic else (1.0, REACH - 1)))
    return Scale(logarithmic, (math.exp(low), math.exp(high)) if logarithmic else (low, high))


def _reach(values: Floats, ranges: Floats, perfect: float, most: float) -> Limits:
    low, high = min(values.min(initial=perfect), perfect), max(values.max(initial=perfect), perfect)
    most = max(most, 0.25 * (high - low))
    low = min(low, max(ranges.min(initial=low), low - most))
    high = max(high, min(ranges.max(initial=high), high + most))
    pad = 0.1 * max(high - low, 0.3)
    return float(low - pad), float(high + pad)


def _panel(made: Observed, group: ObservedGroup, columns: Sequence[_Column], scale: Scale) -> Panel:
    """The ratios of one point over the parameter that runs along them."""
    heading = _name(made, group) or "predicted / measured"

    def draw(axes: Axes) -> None:
        _ratio_axis(axes, "y", scale)
        rows = sorted(group.rows, key=lambda row: row.at or 0.0)
        x = np.array([row.at or 0.0 for row in rows])
        _place_axis(axes, x)
        for k, column in enumerate(columns):
            cells = [row.cells[column.place] for row in rows]
            sides = [
                _shown([getattr(cell, side) for cell in cells], scale)
                for side in ("mean", "lowest", "highest")
            ]
            if _counts(x):
                _side_by_side(axes, column, x + SPREAD * ((k + 0.5) / len(columns) - 0.5), *sides)
            else:
                _curve(axes, column, x, *sides)
        axes.set_xlabel(made.axis)
        axes.set_ylabel("predicted / measured")
        axes.set_title(title(heading))

    return Panel(1.5, draw, top=room(heading))


def _counts(x: Floats) -> bool:
    """Whether the places number things, which no curve connects: 1, 2, 3, ..."""
    return len(x) > 1 and bool((x == np.arange(1, len(x) + 1)).all())


def _curve(axes: Axes, column: _Column, x: Floats, mean: Floats, lowest: Floats, highest: Floats) -> None:
    axes.fill_between(x, lowest, highest, color=PALETTE[column.colour], alpha=0.14, linewidth=0)
    axes.plot(x, mean, ms=3.8, lw=1.2, **column.looks, **_dashed(column))


def _side_by_side(
    axes: Axes, column: _Column, x: Floats, mean: Floats, lowest: Floats, highest: Floats
) -> None:
    axes.vlines(x, lowest, highest, color=PALETTE[column.colour], lw=1.2)
    axes.plot(x, mean, ms=4.2, ls="", **column.looks)


def _lines_panel(
    made: Observed, groups: Sequence[ObservedGroup], columns: Sequence[_Column], scale: Scale
) -> Panel:
    """The ratios of points that have one row each, one line below the other."""
    rows = [(group, row) for group in groups for row in group.rows][: 4 * MOST_PANELS]

    def draw(axes: Axes) -> None:
        _ratio_axis(axes, "x", scale)
        for place, (group, row) in enumerate(rows):
            for k, column in enumerate(columns):
                cell = row.cells[column.place]
                mean, lowest, highest = _shown([cell.mean, cell.lowest, cell.highest], scale)
                y, colour = -place - 0.12 * k, PALETTE[column.colour]
                axes.plot([lowest, highest], [y, y], color=colour, lw=1.2)
                axes.plot([mean], [y], ms=4.2, ls="", **column.looks)
            axes.annotate(
                _name(made, group), (0, place * -1 + 0.34), xycoords=("axes fraction", "data"),
                xytext=(2, 0), textcoords="offset points", fontsize=7.5, color=PALETTE["muted"], va="center",
            )  # fmt: skip
        axes.set_ylim(-len(rows) + 0.6 - 0.12 * len(columns), 0.6)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("predicted / measured")

    return Panel((0.36 + 0.04 * len(columns)) * len(rows) + 0.1, draw, left=0.22, top=0.15)


def _name(made: Observed, group: ObservedGroup) -> str:
    return brief(wording.differing(group, made.groups))


def _dashed(column: _Column) -> dict[str, Any]:
    return {"dashes": column.dashes} if column.dashes else {}


def _shown(values: Sequence[float], scale: Scale) -> Floats:
    """Values as far as the axis goes; NaN, a gap, where there is none."""
    found = drawable(values)
    if scale.logarithmic:
        found = np.where(found > SMALLEST, found, np.nan)
    return np.clip(found, *scale.limits)


def _ratio_axis(axes: Axes, along: str, scale: Scale) -> None:
    """The line at 1 in the band of what is not marked."""
    axis = getattr(axes, f"{along}axis")
    span, line = (axes.axhspan, axes.axhline) if along == "y" else (axes.axvspan, axes.axvline)
    if scale.logarithmic:
        getattr(axes, f"set_{along}scale")("log")
        decades(axis, *scale.limits)
    else:
        plain_ticks(axis)
    span(1 / OFF, OFF, color=PALETTE["band"], linewidth=0)
    line(1.0, color=PALETTE["theory"], lw=1.2)
    getattr(axes, f"set_{along}lim")(*scale.limits)
    axes.grid(axis="y" if along == "y" else "x")


def _place_axis(axes: Axes, x: Floats) -> None:
    """Logarithmic where it can be, with the places themselves as ticks, as far as they stand apart."""
    logarithmic = bool((x > 0).all()) and not _counts(x)
    if logarithmic:
        axes.set_xscale("log")
    at = np.log(x) if logarithmic else x
    low, high = float(at.min()), float(at.max())
    pad = 0.5 if _counts(x) else _pad(low, high)
    low, high = low - pad, high + pad
    ticks: list[int] = []
    for k, value in enumerate(at):
        if not ticks or value - at[ticks[-1]] > APART * (high - low):
            ticks.append(k)
    axes.xaxis.set_major_locator(FixedLocator([float(x[k]) for k in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: wording.numeral(value, 4)))
    axes.set_xlim(*(np.exp([low, high]) if logarithmic else (low, high)))


def _pad(low: float, high: float) -> float:
    apart = high - low > 1e-9 * max(abs(low), abs(high), 1e-9)
    return 0.05 * (high - low) if apart else max(0.7, 0.5 * abs(low))
