"""A plan as a picture: rates of the trial runs against the batch size."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter

from verify.page.canvas import draw_points, name_lines
from verify.page.theme import PALETTE
from verify.practice.page_plots import ROOM, PagePlot, fit_axes
from verify.practice.plan.planned import Plan

_TICKS = 8
"""Most batch sizes that are named."""


def plan_plot(made: Plan) -> PagePlot:
    """Rate against batch size, both logarithmic."""
    bars = any(at.within for at in made.trials)
    caption = "In 8 of 10 held-out cases the best rate lay within the bar." if bars else ""
    return PagePlot(f"Trial runs: {made.optimizer}", partial(draw_trials, made=made), caption, ROOM)


def draw_trials(axes: Axes, made: Plan) -> None:
    """Draw suggested rates with their ranges, and the rates at which training ends."""
    rows = [
        (at.batch_size, at.start, at.trains, at.fails, *(at.within or (at.start, at.start)))
        for at in made.trials
    ]
    sizes, start, trained, failed, low, high = np.array(rows, dtype=float).reshape(-1, 6).T
    rates = np.concatenate([start, trained, failed, low, high])
    fit_axes(axes, ("batch size B", sizes), ("learning rate", rates), "xy")
    # the batch sizes that were asked for, as far as there is room
    axes.xaxis.set_major_locator(FixedLocator(sizes[:: -(-len(sizes) // _TICKS)].tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:.0f}"))
    draw_points(axes, sizes, start, low, high, size=5.0)
    axes.plot(sizes, start, ls="", color=PALETTE["ink"], label="suggested")  # for its name alone
    style: Any = {"ls": "", "mew": 1.4, "color": PALETTE["muted"]}
    axes.plot(sizes, trained, marker="_", ms=9, label="largest that trained", **style)
    axes.plot(sizes, failed, marker="x", ms=6, label="failed", **style)
    name_lines(axes)
