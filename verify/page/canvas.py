"""Small landscape plots of prediction against measurement, in one look: the plots of the first page and of a claim.

One point of matplotlib is one CSS pixel on a page of 1400 pixels. The name of y is above the plot, that of x below its
last tick; lines are named where they are, so that no plot needs a legend.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import ArrayLike

from verify.page.theme import PALETTE

WIDTH, HEIGHT = 305.0, 148.0
"""Size of a small plot, in points."""

LEFT, RIGHT, ABOVE, BELOW = 30.0, 12.0, 17.0, 30.0
"""Points between the axes and the ends of the plot, which hold the names and ticks."""

LETTERS, LINE, APART = 20, 11.0, 2.5
"""Letters in a line of the name of a line, points from one to the next, and points more between two names."""

_INDEX = re.compile("(?<![A-Za-z])([A-Za-zα-ωΓ])_([A-Za-z]+)")

_TICKS: Any = {"length": 3, "width": 0.8, "pad": 2.5, "labelsize": 9.5, "labelcolor": PALETTE["muted"]}


class Scale(NamedTuple):
    """An axis: its name (mathtext between dollars), ends, ticks, and the text of ticks that are not plain numbers.

    A `bent` one is linear up to 1 and logarithmic beyond.
    """

    name: str
    ends: tuple[float, float]
    ticks: Sequence[float]
    logarithmic: bool = False
    texts: Mapping[float, str] = {}
    bent: bool = False


def frame(
    label: str, *, left: float = LEFT, right: float = RIGHT, width: float = WIDTH, height: float = HEIGHT
) -> tuple[Figure, Axes]:
    """Return an empty plot; `label` is its text alternative, `left` and `right` the room next to the axes in points."""
    figure = Figure(figsize=(width / 72, height / 72), label=label)
    FigureCanvasAgg(figure)
    inside = (width - left - right) / width, (height - ABOVE - BELOW) / height
    return figure, figure.add_axes((left / width, BELOW / height, *inside))


def dress(axes: Axes, x: Scale, y: Scale, *, left: float = LEFT, above: float = ABOVE) -> None:
    """Give the axes their ends, ticks and names.

    The name of y begins `left` points before the axes and `above` points above them.
    """
    for name, scale in (("x", x), ("y", y)):
        form: Any = {"value": "log" if scale.logarithmic else "linear"}
        if scale.bent:
            form = {"value": "symlog", "linthresh": 1.0, "linscale": 0.6}
        getattr(axes, f"set_{name}scale")(**form)
        getattr(axes, f"set_{name}lim")(scale.ends)
        axis: Axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(FixedLocator([*scale.ticks]))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda at, _, texts=scale.texts: _tick(at, texts)))
        axis.set_tick_params(which="major", **_TICKS)
        if any("$" in text for text in scale.texts.values()):  # ticks are made here, and once more when drawn
            for label in axis.get_ticklabels():
                label.set_parse_math(True)
    style: Any = {"fontsize": 10, "color": PALETTE["muted"], "parse_math": True, "annotation_clip": False}
    style |= {"textcoords": "offset points", "va": "top"}
    axes.annotate(x.name, (1, 0), (0, -17), "axes fraction", ha="right", **style)
    axes.annotate(y.name, (0, 1), (-left, above - 3), "axes fraction", ha="left", **style)


def _tick(at: float, texts: Mapping[float, str]) -> str:
    plain = f"{at:g}".replace("-", "−")
    return next((text for place, text in texts.items() if math.isclose(at, place, rel_tol=1e-5)), plain)


def draw_law(axes: Axes, x: ArrayLike, y: ArrayLike, **style: Any) -> None:
    """Draw a prediction as a smooth line."""
    axes.plot(x, y, **({"color": PALETTE["theory"], "lw": 1.9, "zorder": 2} | style))


def draw_rival(axes: Axes, x: ArrayLike, y: ArrayLike, **style: Any) -> None:
    """Draw a misprint or a rival as a dashed line."""
    axes.plot(x, y, **({"color": PALETTE["rival"], "lw": 1.3, "ls": (0, (4, 2.5)), "zorder": 1.5} | style))


def draw_points(
    axes: Axes, x: ArrayLike, y: ArrayLike, low: ArrayLike, high: ArrayLike, *,
    networks: bool = False, hollow: bool = False, size: float = 0.0,
) -> None:  # fmt: skip
    """Draw measured values with their intervals: dots, or squares on real networks; `hollow` is a second series."""
    x, y, low, high = (np.asarray(values, dtype=float) for values in (x, y, low, high))
    colour = PALETTE["nets" if networks else "ink"]
    axes.errorbar(
        x, y, yerr=[np.maximum(y - low, 0.0), np.maximum(high - y, 0.0)], fmt="s" if networks else "o",
        ms=size or (3.9 if networks else 3.7), mew=1.0, mfc=PALETTE["paper"] if hollow else colour, mec=colour,
        ecolor=colour, elinewidth=1.1, capsize=0, zorder=4,
    )  # fmt: skip


def draw_label(axes: Axes, x: float, y: float, text: str, colour: str = "muted", **style: Any) -> None:
    """Write a text at a place in the units of the data; mathtext between dollars."""
    place = {"ha": "left", "va": "center", "zorder": 6} | style
    axes.text(x, y, text, fontsize=9.5, color=PALETTE[colour], parse_math=True, **place)


def points_per_pixel(axes: Axes) -> float:
    """72 over the resolution of the figure."""
    figure = axes.get_figure(root=True)
    return 72 / figure.dpi if figure is not None else 1.0


def with_indices(text: str) -> str:
    r"""Return a text for `parse_math`, whose letters have their indices below them.

    >>> with_indices("d σ_e in $")
    'd $\\mathregular{σ_{e}}$ in \\$'
    """
    return _INDEX.sub(r"$\\mathregular{\1_{\2}}$", text.replace("$", r"\$"))


def lines_of(name: str) -> list[str]:
    r"""Return a name in short lines, which do not part a sign from its numbers.

    >>> lines_of("of the schedule, 2 − L")
    ['of the schedule,', '2\xa0−\xa0L']
    >>> lines_of("2 (1 + momentum) / rate")
    ['2 (1\xa0+\xa0momentum) /', 'rate']
    """
    return textwrap.wrap(
        re.sub(r"(?<!\)) ([−+=/≤≥]) ", "\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", name), LETTERS
    )


def name_lines(axes: Axes, piece: float = 0.0) -> None:
    """Write the labels of lines to the right of the axes, each at the end of its line and none on another.

    A `piece` of the line, so many points long, leads to its label. Lines that leave the axes have an arrow.
    """
    axes.autoscale_view()  # the ends below depend on the limits, which matplotlib would set later
    width, tall = (points_per_pixel(axes) * side for side in axes.bbox.size)
    ends = list[tuple[float, str, Line2D]]()
    for line in axes.get_lines():
        known = np.asarray(line.get_xydata(), dtype=float)
        known = known[np.isfinite(known).all(axis=1)]
        if len(known) and not str(line.get_label()).startswith("_"):
            end = float((line.get_transform() - axes.transAxes).transform(known[-1])[1])
            arrow = " ↑" if end > 1.01 else " ↓" if end < -0.01 else ""
            ends.append((min(max(end, 0.0), 1.0), "\n".join(lines_of(str(line.get_label()))) + arrow, line))
    heights = {text: LINE * (text.count("\n") + 1) + APART for _, text, _ in ends}
    above, needed = tall, sum(heights[text] for _, text, _ in ends) - APART
    for end, text, line in sorted(ends, key=lambda end: -end[0]):
        high = heights[text] - APART
        top = max(min(end * tall + high / 2, above), needed)
        above, needed, middle = top - high - APART, needed - high - APART, (top - high / 2) / tall
        if piece:
            lead = Line2D([1 + 3 / width, 1 + piece / width], [end, middle])
            lead.update_from(line)
            lead.set(transform=axes.transAxes, clip_on=False, label="_")
            axes.add_artist(lead)
        axes.annotate(
            with_indices(text), (1, middle), (piece + 4, 0), "axes fraction", textcoords="offset points", va="center",
            fontsize=9.5, color=line.get_color(), linespacing=1.0, annotation_clip=False, parse_math=True,
        )  # fmt: skip
