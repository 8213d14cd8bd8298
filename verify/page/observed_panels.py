"""Panels of an observation: ratios of theory to measurement over what runs along its tables, beside the line at 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from verify.page import wording
from verify.page.axes import limits_around, padded_ends, plain_scale
from verify.page.canvas import ABOVE, BELOW, draw_law, dress
from verify.page.drawing import EDGE, WIDTH, Floats, Limits, Panel, drawable, finite_values, in_lines
from verify.page.formulas import typeset
from verify.page.panels import brief
from verify.page.ratios import OFF
from verify.page.theme import PALETTE
from verify.results import Observed, ObservedGroup

LINES = (
    ("s", "■□", "nets"),
    ("o", "●○", "ink"),
    ("^", "▲△", "muted"),
    ("D", "◆◇", "nets"),
    ("v", "▼▽", "ink"),
)
"""Marker, its letters in the key, full and then hollow, and colour of each column; verdicts have other colours."""

SPREAD = 0.6
"""Share of the way from one counted thing to the next over which the columns stand side by side."""

MOST_PANELS = 12
"""Points with a panel of their own."""

HEIGHT, LEFT, RIGHT = 92.0, 36.0, 12.0
"""Height of a frame, and the room beside it."""

REACH = 1.6
"""Ranges are drawn up to this factor beyond the means."""

SMALLEST = 1e-100
"""Smaller ratios are at the lower end of the axis, as are those of the wrong sign."""


def observed_panels(made: Observed) -> list[Panel]:
    """One panel for each point whose table runs along a parameter; none without such a parameter or a ratio."""
    columns = [place for place, column in enumerate(made.columns) if column.ratio]
    groups = [group for group in made.groups if group.rows and group.rows[0].at is not None]
    if not columns or not groups:
        return []
    cells = [row.cells[place] for group in groups for row in group.rows for place in columns]
    means = finite_values([cell.mean for cell in cells])
    sides = finite_values([side for cell in cells for side in (cell.lowest, cell.highest)])
    means = np.append(means[means > SMALLEST], 1.0)
    limits = limits_around(means, sides, least=math.log(REACH), logarithmic=True)
    key = [
        f"{_style(k)[1]}\N{NO-BREAK SPACE}{typeset(made.columns[place].heading)}"
        for k, place in enumerate(columns)
    ]
    said = f"Predicted over measured, band within a factor {OFF:g}: {',  '.join(key)}."
    if len(groups) > MOST_PANELS:
        said += f" {len(groups) - MOST_PANELS} more points in the table."
    shown = groups[:MOST_PANELS]
    side = (WIDTH - 2 * EDGE) / panels_beside(len(shown))
    return [_panel(made, group, columns, limits, side, said if group is shown[-1] else "") for group in shown]


def panels_beside(count: int) -> int:
    """Return how many of so many panels stand side by side."""
    return 1 if count == 1 else 2 if count in (2, 4) else 3


def _style(k: int) -> tuple[dict[str, Any], str]:
    """Return the style of the points of a column, and the letter that marks it."""
    marker, letters, colour = LINES[k % len(LINES)]
    hollow = k // len(LINES) % 2
    inside = {"markerfacecolor": PALETTE["paper"]} if hollow else {}
    return {"color": PALETTE[colour], "marker": marker, **inside}, letters[hollow]


def _panel(
    made: Observed, group: ObservedGroup, columns: Sequence[int], limits: Limits, side: float, note: str
) -> Panel:
    """The ratios of one point over the parameter that runs along them; nothing connects things that are numbered."""
    rows = sorted(group.rows, key=lambda row: row.at or 0.0)
    x = np.array([row.at or 0.0 for row in rows])
    counted = len(x) > 1 and bool((x == np.arange(1, len(x) + 1)).all())
    decades = bool((x > 0).all()) and not counted
    title = in_lines(brief(wording.differing(group, made.groups)) or "predicted / measured", side - 12, 10.0)
    above = ABOVE + 12.2 * (len(title) - 1)

    def shown(column: int, edge: str) -> Floats:
        return np.clip(drawable([getattr(row.cells[column], edge) for row in rows]), *limits)

    def draw(axes: Axes) -> None:
        ends = padded_ends([0.5, len(x) + 0.5] if counted else x.tolist(), logarithmic=decades)
        names = {float(at): wording.numeral(float(at), 4) for at in x}
        across = plain_scale(typeset(made.axis), ends, logarithmic=decades)
        up = plain_scale("\n".join(title), limits, logarithmic=True)
        dress(
            axes,
            across._replace(ticks=[*names], texts=names) if counted else across,
            up,
            left=LEFT,
            above=above,
        )
        axes.axhspan(1 / OFF, OFF, color=PALETTE["band"], linewidth=0)
        draw_law(axes, ends, [1.0, 1.0], lw=1.3)
        for k, column in enumerate(columns):
            look, mean = _style(k)[0], shown(column, "mean")
            sides = shown(column, "lowest"), shown(column, "highest")
            at = x + SPREAD * ((k + 0.5) / len(columns) - 0.5) if counted else x
            axes.vlines(at, *sides, color=look["color"], lw=1.1)
            axes.plot(at, mean, ms=3.7, lw=1.2, ls="" if counted else "-", **look)

    return Panel(HEIGHT, draw, note, LEFT, RIGHT, above, BELOW + 8)
