"""One figure with the main plots of a run, or of a paper: what README and `losscurv plot --main` show."""

from __future__ import annotations

import textwrap
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from verify.page.canvas import ABOVE, BELOW, HEIGHT, LEFT, RIGHT, WIDTH
from verify.page.heading import mathtext
from verify.page.main import MainPlot, MainRun, main_plots
from verify.page.outcomes import CORRECTED, FAILS, HOLDS, LIMITS, SEEN
from verify.page.theme import PALETTE, STYLE
from verify.results import Results

EDGE, GAP, ROW_GAP = 14.0, 28.0, 22.0
"""Points around the figure, and between columns and rows: half a gap is the edge of a cell."""

PLACE, FORMULA, CAPTION = 16.0, 42.0, 34.0
"""Heights of the line with paper and number, of the formula, and of the caption."""

CELL = np.array([WIDTH + GAP, PLACE + FORMULA + HEIGHT + CAPTION + ROW_GAP])
"""Width and height of a plot with what is around it."""

LINE = 50
"""Letters in a line of a caption."""

MARKS = {
    HOLDS: ("o", "agrees"),
    LIMITS: ("^", "limits"),
    CORRECTED: ("v", "limits"),
    FAILS: ("D", "disagrees"),
    SEEN: ("o", "muted"),
}
"""Mark and colour of an outcome."""


def main_figure(results: Results, paper: str = "", columns: int = 4) -> Figure:
    """Draw the main plots of a run side by side, all of them or those of a paper.

    Raises
    ------
    ValueError
        If the run has none of them: a full run of the default tier has all.
    """
    run = MainRun(results)
    shown = [plot for plot in main_plots(results) if not paper or plot.target.startswith(f"{paper}/")]
    if not shown:
        of = f" of {paper}" if paper else ""
        raise ValueError(f"this run has no main plot{of}; run `losscurv report` without --claim first")
    columns = min(columns, len(shown))
    rows = -(-len(shown) // columns)
    width, height = CELL * (columns, rows) / 72
    with mpl.rc_context(STYLE):
        figure = Figure((width, height), label="Main statements: prediction and measurement")
        FigureCanvasAgg(figure)
        cells = figure.subfigures(rows, columns, squeeze=False, wspace=0, hspace=0)
        for plot, cell in zip(shown, cells.flat, strict=False):
            _draw_cell(cell, plot, run)
    return figure


def _draw_cell(cell: Any, plot: MainPlot, run: MainRun) -> None:
    """Draw paper and number with the mark of the outcome, the formula, the plot and its caption, one below another."""

    def write(down: float, text: str, size: float, **style: Any) -> None:
        cell.text(EDGE / CELL[0], 1 - (ROW_GAP / 2 + down) / CELL[1], text, fontsize=size, **style)

    write(PLACE / 2, plot.where, 10.5, color=PALETTE["muted"], va="center")
    shape, colour = MARKS[plot.outcome(run)]
    cell.add_artist(Line2D(
        [1 - (EDGE + 8) / CELL[0]], [1 - (ROW_GAP + PLACE) / 2 / CELL[1]], marker=shape, ms=8.5, ls="", mew=1.4,
        mec=PALETTE[colour], mfc="none" if colour == "muted" else PALETTE[colour],
    ))  # fmt: skip
    write(
        PLACE + FORMULA / 2, mathtext(plot.formula), 13, va="center", parse_math=True, math_fontfamily="stix"
    )
    base = PLACE + FORMULA + HEIGHT
    corner = np.array([EDGE + LEFT, CELL[1] - ROW_GAP / 2 - base + BELOW]) / CELL
    inside = np.array([WIDTH - LEFT - RIGHT, HEIGHT - ABOVE - BELOW]) / CELL
    plot.draw(cell.add_axes((*corner, *inside)), run)
    write(base + 2, "\n".join(textwrap.wrap(plot.caption(run), LINE)), 11, va="top", linespacing=1.35)
