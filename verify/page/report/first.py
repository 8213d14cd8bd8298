"""The main plots of the first page, each with its mark in words."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from verify.page.main import MainRun, draw_plot, main_plots
from verify.page.markup import themed
from verify.page.outcomes import SHORT
from verify.results import Results

__all__ = ["Cell", "cells"]


class Cell(NamedTuple):
    """A main plot: where it is in its paper, its formula (LaTeX), mark and its words, figure, caption and target."""

    where: str
    formula: str
    mark: str
    said: str
    figure: Markup
    caption: str
    target: str


def cells(results: Results) -> list[Cell]:
    """Return the main plots that a run has the numbers for."""
    run, found = MainRun(results), list[Cell]()
    for plot in main_plots(results):
        mark, figure = plot.outcome(run), themed(draw_plot(plot, run))
        found.append(
            Cell(plot.where, plot.formula, mark, SHORT[mark], figure, plot.caption(run), plot.target)
        )
    return found
