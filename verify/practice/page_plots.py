"""Pictures of the pages of `measure`, `plan` and `watch`: small plots with a title and a caption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from verify.page.axes import decades, plain_ticks
from verify.page.canvas import ABOVE, BELOW, HEIGHT, RIGHT, WIDTH, Scale, dress, frame
from verify.page.drawing import Panel, stack
from verify.page.markup import themed
from verify.page.theme import PALETTE, STYLE

LEFT = 40.0
"""Points for the ticks of y, which are any numbers here."""

ROOM = 106.0
"""Points for names of lines on the right."""

_WIDTHS = {1: 440.0, 2: 440.0, 3: 416.0}
"""Width of a picture in points by the number of pictures in a row."""

_TITLE, _GAP = 24.0, 28.0
"""Points for a title in a figure of several pictures, and between them."""


class PagePlot(NamedTuple):
    """A plot with a title, a caption, and room in points for names on the right; `bars` are the names of its rows."""

    title: str
    draw: Callable[[Axes], None]
    caption: str = ""
    right: float = RIGHT
    bars: Sequence[str] = ()


def fit_axes(axes: Axes, x: tuple[str, ArrayLike], y: tuple[str, ArrayLike], logarithmic: str = "") -> None:
    """Give the axes names, ends around these numbers, and ticks; `logarithmic` holds x, y or both."""
    ends = []
    for letter, (name, values) in zip("xy", (x, y), strict=True):
        known = np.asarray(values, dtype=float).ravel()
        known = known[np.isfinite(known) & ((known > 0) | (letter not in logarithmic))]
        low, high = (float(known.min()), float(known.max())) if len(known) else (1.0, 1.0)
        if letter in logarithmic:
            pad = max(high / low, 2.0) ** 0.06
            ends.append(Scale(name, (low / pad, high * pad), (), logarithmic=True))
        else:
            pad = 0.05 * (high - low) or 0.5 * abs(high) or 1.0
            ends.append(Scale(name, (low - pad, high + pad), ()))
    dress(axes, *ends, left=LEFT)
    for each, axis in zip(ends, (axes.xaxis, axes.yaxis), strict=True):
        decades(axis, *each.ends) if each.logarithmic else plain_ticks(axis)


def plots_html(pictures: Sequence[PagePlot]) -> Markup:
    """Return pictures for a row of a page."""
    width = _WIDTHS.get(len(pictures), WIDTH)
    found = Markup()
    for each in pictures:
        height = ABOVE + BELOW + 16.0 * len(each.bars) if each.bars else HEIGHT * width / WIDTH
        with mpl.rc_context(STYLE):
            left = max([LEFT, *(12 + 6.0 * len(name) for name in each.bars)])
            label = f"{each.title}. {each.caption}".strip()
            figure, axes = frame(label, left=left, right=each.right, width=width, height=height)
            each.draw(axes)
        found += Markup("<figure><h3>{}</h3>{}<figcaption>{}</figcaption></figure>\n").format(
            each.title, themed(figure), each.caption
        )
    return found


def figure_of(pictures: Sequence[PagePlot], label: str, foot: str) -> Figure:
    """Return one figure with the pictures side by side, two in a row; `foot` is its small print."""
    width, columns = _WIDTHS[2], min(2, len(pictures))
    height = HEIGHT * width / WIDTH - ABOVE - BELOW
    panels = [
        Panel(height, partial(_draw_titled, each), left=LEFT, right=each.right + _GAP, above=ABOVE + _TITLE)
        for each in pictures
    ]
    with mpl.rc_context(STYLE):
        return stack(panels, label, foot, columns * (width + _GAP), columns=columns)


def _draw_titled(picture: PagePlot, axes: Axes) -> None:
    picture.draw(axes)
    axes.annotate(
        picture.title, (0, 1), (-LEFT, ABOVE + 2), "axes fraction", "offset points", fontsize=10.5,
        fontweight="bold", color=PALETTE["ink"],
    )  # fmt: skip
