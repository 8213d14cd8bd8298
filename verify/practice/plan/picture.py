"""A plan as pictures: rates that were tried, and the linearised dynamics, against the batch size."""

from __future__ import annotations

import math
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
from verify.practice.plan.linearised import Linearised
from verify.practice.plan.planned import Plan
from verify.practice.plan.words import SHARPER

_GRID = 200
_TICKS = 8


def plan_plots(made: Plan) -> list[PagePlot]:
    """Rate against batch size, both logarithmic: a picture for each section of the plan."""
    drawn = list[PagePlot]()
    if made.trials:
        caption = "In 80 % of held-out runs the best rate was within the bar."
        title = f"Trial training: {made.optimizer}"
        drawn.append(PagePlot(title, partial(_draw_trials, made=made), caption, ROOM))
    found = made.linearised
    if found is not None:
        caption = "Squares: 2/E λ₁(B). Bars: eight of ten batches. These are limits, not rates to use."
        title = "Plain SGD, linearised at these parameters"
        drawn.append(PagePlot(title, partial(_draw_bracket, found=found), caption, ROOM))
    if made.batch_curvature:
        caption = "H_B is the Hessian of a random batch. Only the change with B is of use."
        title = "2/E λ₁(H_B), with the statistics of each batch"
        drawn.append(PagePlot(title, partial(_draw_batches, made=made), caption))
    return drawn


def plan_figure(made: Plan) -> Figure:
    """All pictures in one figure."""
    return figure_of(plan_plots(made), "Learning rate against batch size", f"losscurv · seed {made.seed}")


def draw_rates(axes: Axes, made: Plan) -> None:
    """Draw the first picture alone."""
    for picture in plan_plots(made)[:1]:
        picture.draw(axes)
    if not axes.has_data():
        axes.set_title("no rates: summary() says why")


def _draw_trials(axes: Axes, made: Plan) -> None:
    rows = [
        (at.batch_size, at.start, at.trains, at.fails if at.start else at.walked.best.rate,
         *(at.within or (math.nan, math.nan)))
        for at in made.trials
    ]  # fmt: skip
    sizes, start, trained, failed, low, high = np.array(rows, dtype=float).T
    _scale(axes, sizes, start, trained, failed, low, high)
    draw_points(axes, sizes, start, low, high, size=5.0)
    axes.plot(sizes, start, ls="", color=PALETTE["ink"], label="start with")  # for its name alone
    style: Any = {"ls": "", "mew": 1.4, "color": PALETTE["muted"]}
    axes.plot(sizes, trained, marker="_", ms=9, label="largest that trained", **style)
    axes.plot(sizes, failed, marker="x", ms=6, label="failed", **style)
    name_lines(axes)


def _draw_bracket(axes: Axes, found: Linearised) -> None:
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
    if found.hessian > SHARPER * found.bracket.largest:
        draw_rival(axes, sizes, np.full(len(sizes), 2 / found.hessian), ls=":", label="2 / λ₁(H)")
    draw_points(axes, sizes, [at.sharpness.value for at in found.rates], low, high, networks=True)
    name_lines(axes)


def _draw_batches(axes: Axes, made: Plan) -> None:
    sizes, rates = np.array([(at.batch_size, at.rate) for at in made.batch_curvature], dtype=float).T
    _scale(axes, sizes, rates)
    draw_points(axes, sizes, rates, rates, rates, networks=True)


def _scale(axes: Axes, sizes: Floats, *rates: Floats) -> None:
    """Batch sizes as they were asked for, as far as there is room."""
    fit_axes(axes, ("batch size B", sizes), ("learning rate", np.concatenate(rates)), "xy")
    axes.xaxis.set_major_locator(FixedLocator(sizes[:: -(-len(sizes) // _TICKS)].tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:.0f}"))
