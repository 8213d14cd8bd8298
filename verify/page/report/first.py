"""The main plots of the first page, each with its mark in words."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from verify.page.main import MainRun, draw_plot, main_plots
from verify.page.main.plot import PRINTED
from verify.page.markup import themed
from verify.page.outcomes import FAILS, HOLDS, SEEN, limit_of
from verify.results import Results

__all__ = ["Cell", "cells"]

SHORT = {HOLDS: "holds", FAILS: "does not hold", SEEN: "not judged"}
"""Marks in short."""


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
        try:
            figure, caption = themed(draw_plot(plot, run)), plot.caption(run)
        except (ArithmeticError, LookupError, StopIteration, TypeError, ValueError):
            continue  # a file of another version has other parameters; all that it has is on the cards
        mark = plot.outcome(run)
        names = (plot.target, f"{plot.target}{PRINTED}", *plot.judged)
        said = SHORT.get(mark) or limit_of(run.rows[name] for name in names if name in run.rows)
        found.append(Cell(plot.where, plot.formula, mark, said, figure, caption, plot.target))
    return found
