"""A plan as pictures: rates of the trial runs, and limits from curvature, against the batch size."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from verify.page.canvas import draw_law, draw_points, draw_rival, name_lines
from verify.page.drawing import Floats
from verify.page.theme import PALETTE
from verify.practice.page_plots import ROOM, PagePlot, figure_of, fit_axes
from verify.practice.plan.curvature import Linearised
from verify.practice.plan.planned import Plan

_GRID = 200
_TICKS = 8


def plan_plots(made: Plan) -> list[PagePlot]:
    """Rate against batch size, both logarithmic: a picture for each section of the plan."""
    bar = any(at.within for at in made.trials)
    caption = "In 8 of 10 held-out cases the best rate lay within the bar." if bar else ""
    drawn = [PagePlot(f"Trial runs: {made.optimizer}", partial(draw_trials, made=made), caption, ROOM)]
    if made.linearised is not None:
        caption = "Squares: 2/E λ₁(B). Bars: 8 of 10 batches. These are limits, not rates to use."
        draw = partial(_draw_limits, found=made.linearised)
        drawn.append(PagePlot("Plain SGD, limits from curvature", draw, caption, ROOM))
    return drawn


def plan_figure(made: Plan) -> Figure:
    """All pictures in one figure."""
    return figure_of(plan_plots(made), "Learning rate against batch size", f"losscurv · seed {made.seed}")


def draw_trials(axes: Axes, made: Plan) -> None:
    """Draw suggested rates with their ranges, and the rates at which training ends."""
    rows = [
        (at.batch_size, at.start, at.trains, at.fails, *(at.within or (at.start, at.start)))
        for at in made.trials
    ]
    sizes, start, trained, failed, low, high = np.array(rows, dtype=float).reshape(-1, 6).T
    _scale(axes, sizes, start, trained, failed, low, high)
    draw_points(axes, sizes, start, low, high, size=5.0)
    axes.plot(sizes, start, ls="", color=PALETTE["ink"], label="suggested")  # for its name alone
    style: Any = {"ls": "", "mew": 1.4, "color": PALETTE["muted"]}
    axes.plot(sizes, trained, marker="_", ms=9, label="largest that trained", **style)
    axes.plot(sizes, failed, marker="x", ms=6, label="failed", **style)
    name_lines(axes)


def _draw_limits(axes: Axes, found: Linearised) -> None:
    sizes = np.array([at.batch_size for at in found.rates], dtype=float)
    grid = np.clip(np.geomspace(sizes[0], sizes[-1], _GRID), sizes[0], sizes[-1])
    lower, upper = found.bracket.rates(grid)
    high, low = np.array([(2 / at.batch.low, 2 / at.batch.high) for at in found.rates]).T
    theorem_4 = np.array([at.theorem_4.value for at in found.rates])
    _scale(axes, sizes, lower, upper, low, high, theorem_4)
    axes.fill_between(grid, lower, upper, color=PALETTE["band"], lw=0, zorder=1)
    draw_law(axes, grid, upper, lw=1.3, label="unstable above")
    draw_law(axes, grid, lower, lw=1.3, label="stable below")
    draw_rival(axes, sizes, theorem_4, label="2 / Theorem 4")
    draw_points(axes, sizes, [at.sharpness.value for at in found.rates], low, high, networks=True)
    name_lines(axes)


def _scale(axes: Axes, sizes: Floats, *rates: Floats) -> None:
    """Batch sizes as they were asked for, as far as there is room."""
    fit_axes(axes, ("batch size B", sizes), ("learning rate", np.concatenate(rates)), "xy")
    axes.xaxis.set_major_locator(FixedLocator(sizes[:: -(-len(sizes) // _TICKS)].tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:.0f}"))
