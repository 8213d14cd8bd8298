"""The twelve main statements as small agreement plots: on the first page, and in one figure.

| file | statements |
|---|---|
| `verify.page.main.granziol` | Theorems 3, 4, 7 and 10 of Granziol et al. (2022) |
| `verify.page.main.vysogorets` | Eqs. (8) and (11), Figures 2 and 3 of Vysogorets et al. (2024) |
| `verify.page.main.karakida` | Theorems 2.2, 3.3 and 3.4 of Karakida et al. (2019) |
| `verify.page.main.later` | the edge of stability, the catapult |

A plot is drawn if the run has everything that it reads. Lines are `theory`, evaluated densely; points are the run's.
"""

from __future__ import annotations

import contextlib

import matplotlib as mpl
from matplotlib.figure import Figure

from verify.page.canvas import frame
from verify.page.main import granziol, karakida, later, vysogorets
from verify.page.main.plot import MainPlot, MainRun
from verify.page.theme import STYLE
from verify.results import Results

__all__ = ["PLOTS", "MainPlot", "MainRun", "draw_plot", "main_plots"]

PLOTS: tuple[MainPlot, ...] = (*granziol.PLOTS, *vysogorets.PLOTS, *karakida.PLOTS, *later.PLOTS)


def main_plots(results: Results) -> dict[MainPlot, Figure]:
    """Draw the main plots for which the run has all that they read."""
    run = MainRun(results)
    made = {}
    for plot in PLOTS:
        if run.has((plot.target, *plot.needs)):
            # the claims of a file of another version may not have the parameters and scores of today's
            with contextlib.suppress(ArithmeticError, LookupError, StopIteration, TypeError, ValueError):
                made[plot] = draw_plot(plot, run)
    return made


def draw_plot(plot: MainPlot, run: MainRun) -> Figure:
    """Draw one main plot; its label says in words what it shows."""
    with mpl.rc_context(STYLE):
        figure, axes = frame(f"{plot.where}: prediction and measurement. {plot.caption(run)}")
        plot.draw(axes, run)
    return figure
