"""A plan as a picture: rates that were tried, and below them the linearised dynamics, against the batch size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from verify.gallery.parts import MEASURED, batch_axis, curve
from verify.page.drawing import Floats, inches, stack
from verify.page.theme import PALETTE, STYLE
from verify.practice.plan.linearised import Linearised
from verify.practice.plan.planned import Plan
from verify.practice.plan.words import SHARPER

_GRID = 200
_TICKS = 12
_WIDTH = 6.2


def plan_figure(made: Plan) -> Figure:
    """Rate against batch size, both logarithmic: a panel for each section of the plan."""
    panels = [inches(2.6, lambda axes: _draw_trials(axes, made), bottom=0.8)] if made.trials else []
    found = made.linearised
    if found is not None:
        panels.append(inches(2.6, lambda axes: _draw_bracket(axes, found), bottom=1.0))
        if found.anchor is not None:
            panels.append(inches(1.0, lambda axes: _draw_adam(axes, found)))
    if made.batch_curvature:
        panels.append(inches(2.0, lambda axes: _draw_batches(axes, made)))
    with mpl.rc_context(STYLE):
        return stack(panels, "Learning rate against batch size", f"losscurv · seed {made.seed}", 72 * _WIDTH)


def draw_rates(axes: Axes, made: Plan) -> None:
    """The first of its panels alone."""
    if made.trials:
        _draw_trials(axes, made)
    elif made.linearised is not None:
        _draw_bracket(axes, made.linearised)
    elif made.batch_curvature:
        _draw_batches(axes, made)
    else:
        axes.set_title("no rates: summary() says why")


def _draw_trials(axes: Axes, made: Plan) -> None:
    for at in made.trials:
        if at.within is not None:
            axes.plot([at.batch_size] * 2, at.within, color=MEASURED, lw=1.2, zorder=4)
    _marks(axes, [(at.batch_size, at.start) for at in made.trials], "start with", marker="o", ms=5)
    _marks(axes, [(at.batch_size, at.trains) for at in made.trials], "largest that trained", marker="_", ms=9)
    failed = [(at.batch_size, at.fails if at.start else at.walked.best.rate) for at in made.trials]
    _marks(axes, failed, "failed", marker="x", ms=5)
    _axes(axes, _floats([at.batch_size for at in made.trials]))
    axes.set_title(f"Trial training: {made.optimizer}")
    _legend(axes)


def _marks(axes: Axes, points: Sequence[tuple[int, float | None]], label: str, **style: Any) -> None:
    known = [(size, rate) for size, rate in points if rate is not None]
    if known:
        axes.plot(*np.array(known).T, ls="", color=MEASURED, zorder=5, label=label, **style)


def _draw_bracket(axes: Axes, found: Linearised) -> None:
    sizes = _sizes(found)
    grid = np.clip(np.geomspace(sizes[0], sizes[-1], _GRID), sizes[0], sizes[-1])
    lower, upper = found.bracket.rates(grid)
    name = "stable below, unstable above"
    axes.fill_between(grid, lower, upper, color=PALETTE["band"], lw=0, zorder=2, label=name)
    curve(axes, grid, upper, "")
    curve(axes, grid, lower, "")
    curve(axes, sizes, [at.theorem_4.value for at in found.rates], "2 / Theorem 4", role="rival", dash=0)
    if found.hessian > SHARPER * found.bracket.largest:
        flat = np.full(len(sizes), 2 / found.hessian)
        curve(axes, sizes, flat, "2 / λ₁ of the Hessian", role="rival", dash=1)
    _batches(axes, found)
    _axes(axes, sizes)
    _crossover(axes, found)
    axes.set_title("Plain SGD, linearised at these parameters")
    _legend(axes)


def _draw_adam(axes: Axes, found: Linearised) -> None:
    curve(axes, _sizes(found), [at.adam for at in found.rates], "", role="rival", dash=1)
    _axes(axes, _sizes(found))
    axes.set_title("Adam, in proportion to √B")


def _draw_batches(axes: Axes, made: Plan) -> None:
    sizes = np.array([at.batch_size for at in made.batch_curvature], dtype=float)
    curve(axes, sizes, [at.rate for at in made.batch_curvature], "", role="rival", dash=1)
    # a curve of one batch size is a point
    known = [(at.batch_size, at.rate) for at in made.batch_curvature if math.isfinite(at.rate)]
    _marks(axes, known, "", marker="o", ms=4)
    _axes(axes, sizes)
    axes.set_title("2 / E λ₁(H_B), with the statistics of each batch")


def _legend(axes: Axes) -> None:
    axes.legend(
        loc="upper left", bbox_to_anchor=(-0.02, -0.16), ncols=3, frameon=False, fontsize=7.5,
        labelcolor=PALETTE["muted"], handlelength=2.2, columnspacing=1.4,
    )  # fmt: skip


def _axes(axes: Axes, sizes: Floats) -> None:
    """Batch sizes as they were asked for, as far as there is room."""
    batch_axis(axes, sizes, label="learning rate")
    shown = sizes[:: -(-len(sizes) // _TICKS)]
    axes.xaxis.set_major_locator(FixedLocator(shown.tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:.0f}"))


def _sizes(found: Linearised) -> Floats:
    return _floats([at.batch_size for at in found.rates])


def _floats(sizes: Sequence[int]) -> Floats:
    return np.array(sizes, dtype=float)


def _batches(axes: Axes, found: Linearised) -> None:
    sizes, color = _sizes(found), PALETTE["rival"]
    ends = np.array([(2 / at.batch.high, 2 / at.batch.low) for at in found.rates]).T
    axes.vlines(sizes, *ends, color=color, lw=1.2, zorder=4)
    middle, label = [at.sharpness.value for at in found.rates], "2 / E λ₁(B), eight of ten batches"
    axes.plot(sizes, middle, ls="", marker="s", ms=3.5, mew=0, color=color, label=label, zorder=4)


def _crossover(axes: Axes, found: Linearised) -> None:
    low, high = axes.get_xlim()
    first, last = (min(max(size, low), high) for size in found.crossover)
    if first < last:
        axes.axvspan(first, last, color=PALETTE["rule"], lw=0, alpha=0.6, zorder=0, label="crossover within")
