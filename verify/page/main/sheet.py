"""One figure with the main plots of a run, or of a paper: what README and `losscurv plot --main` show."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from verify.page.canvas import ABOVE, BELOW, HEIGHT, LEFT, RIGHT, WIDTH
from verify.page.heading import mathtext
from verify.page.main import MainPlot, MainRun, main_plots
from verify.page.outcomes import FAILS, HOLDS, LIMITS, SEEN
from verify.page.theme import PALETTE, STYLE
from verify.results import Results

__all__ = ["main_figure"]

EDGE, GAP, ROW_GAP = 14.0, 28.0, 22.0
"""Points around the figure, and between columns and rows."""

PLACE, FORMULA, CAPTION = 16.0, 42.0, 34.0
"""Heights of the line with paper and number, of the formula, and of the caption."""

LINE = 50
"""Letters in a line of a caption."""

MARKS = {HOLDS: ("o", "agrees"), LIMITS: ("^", "limits"), FAILS: ("D", "disagrees"), SEEN: ("o", "muted")}
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
    cell = PLACE + FORMULA + HEIGHT + CAPTION
    width = columns * WIDTH + (columns - 1) * GAP + 2 * EDGE
    height = rows * cell + (rows - 1) * ROW_GAP + 2 * EDGE
    with mpl.rc_context(STYLE):
        figure = Figure(
            figsize=(width / 72, height / 72), label="Main statements: prediction and measurement"
        )
        FigureCanvasAgg(figure)
        for k, plot in enumerate(shown):
            left = EDGE + (k % columns) * (WIDTH + GAP)
            top = height - EDGE - (k // columns) * (cell + ROW_GAP)
            _draw_cell(figure, plot, run, left, top, (width, height))
    return figure


def _draw_cell(
    figure: Figure, plot: MainPlot, run: MainRun, left: float, top: float, size: Sequence[float]
) -> None:
    """Draw paper and number with the mark of the outcome, the formula, the plot and its caption, below `top`."""
    width, height = size
    y = top - PLACE / 2
    figure.text(left / width, y / height, plot.where, fontsize=10.5, color=PALETTE["muted"], va="center")
    shape, colour = MARKS[plot.outcome(run)]
    mark = Line2D(
        [(left + WIDTH - 8) / width], [y / height], marker=shape, ms=8.5, ls="", mec=PALETTE[colour],
        mfc="none" if colour == "muted" else PALETTE[colour], mew=1.4,
    )  # fmt: skip
    figure.add_artist(mark)
    figure.text(
        left / width, (top - PLACE - FORMULA / 2) / height, mathtext(plot.formula), fontsize=13, va="center",
        parse_math=True, math_fontfamily="stix",
    )  # fmt: skip
    base = top - PLACE - FORMULA - HEIGHT
    inside = (WIDTH - LEFT - RIGHT) / width, (HEIGHT - ABOVE - BELOW) / height
    plot.draw(figure.add_axes(((left + LEFT) / width, (base + BELOW) / height, *inside)), run)
    caption = "\n".join(textwrap.wrap(plot.caption(run), LINE))
    figure.text(left / width, (base - 2) / height, caption, fontsize=11, va="top", linespacing=1.35)
