"""Panels of a distribution: its function, measured and predicted, and the difference in margins."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from verify.page.axes import plain_ticks
from verify.page.drawing import LARGEST, Floats, Panel, colour_of, drawable, shorten
from verify.page.panel_parts import at_point, room, title
from verify.page.theme import PALETTE
from verify.results import PointOutcome, ProfilePoint, Row

__all__ = ["distribution_panels"]

FARTHEST = 6.0
"""Differences beyond so many margins are cut off."""


def distribution_panels(row: Row, point: PointOutcome) -> list[Panel]:
    """The panels of one point; none where nothing was kept of it."""
    profile = [p for p in point.profile if abs(p.x) < LARGEST]
    if len({p.x for p in profile}) < 2:
        return []
    margin = point.margin if 0 < point.margin < LARGEST else 1.0
    return [_functions_panel(row, point, profile), _difference_panel(point, profile, margin)]


def _functions_panel(row: Row, point: PointOutcome, profile: list[ProfilePoint]) -> Panel:
    heading = title("Distribution function" + at_point(row, point))
    x, measured, lower, upper, predicted = _columns(profile)
    colour = colour_of(point)

    def draw(axes: Axes) -> None:
        axes.fill_between(x, lower, upper, color=colour, alpha=0.16, linewidth=0, step="post")
        axes.plot(x, measured, color=colour, lw=1.2, drawstyle="steps-post")
        axes.plot(x, predicted, color=PALETTE["theory"], lw=1.6)
        axes.set_ylim(-0.03, 1.03)
        _dress(axes, x)
        axes.set_xlabel(shorten(row.quantity, 56))
        axes.set_title(heading)

    note = "line: prediction; steps and their band: the share of replicates up to here"
    return Panel(1.9, draw, top=room(heading), notes=note)


def _difference_panel(point: PointOutcome, profile: list[ProfilePoint], margin: float) -> Panel:
    """What the scale of the functions hides; the largest difference is what is judged."""
    x, measured, lower, upper, predicted = _columns(profile)
    middle, below, above = ((side - predicted) / margin for side in (measured, lower, upper))
    reach = float(np.nanmax(np.abs(middle))) if np.isfinite(middle).any() else 1.0
    limit = min(1.15 * max(reach, 1.4), FARTHEST)

    def draw(axes: Axes) -> None:
        axes.axhspan(-1, 1, color=PALETTE["band"], linewidth=0)
        axes.axhline(0, color=PALETTE["theory"], lw=1.2)
        axes.fill_between(x, below, above, color=colour_of(point), alpha=0.16, linewidth=0)
        axes.plot(x, middle, color=colour_of(point), lw=1.2)
        axes.set_ylim(-limit, limit)
        _dress(axes, x)
        axes.set_title("Difference in margins")

    return Panel(1.05, draw, bottom=0.35)


def _columns(profile: list[ProfilePoint]) -> list[Floats]:
    names = ("x", "measured", "lower", "upper", "predicted")
    return [drawable([getattr(p, name) for p in profile]) for name in names]


def _dress(axes: Axes, x: Floats) -> None:
    axes.set_xlim(float(x.min()), float(x.max()))
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.grid(axis="y")
