"""What the pictures of the Goldilocks zone share: bands over networks, columns, and networks as they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from simulate.monte_carlo import Point
from verify.gallery.parts import MEASURED, Setting
from verify.page.axes import decades
from verify.page.drawing import Floats
from verify.page.theme import PALETTE

__all__ = [
    "SECOND",
    "THIRD",
    "drawn_networks",
    "frames_beside",
    "read_off",
    "scale_axis",
    "shaded_median",
    "small_key",
]

SECOND, THIRD = PALETTE["disagrees"], PALETTE["broken"]
"""Colours of a second and a third measured quantity beside that of the first."""


def shaded_median(axes: Axes, x: Any, rows: Any, label: str, *, colour: str = MEASURED) -> None:
    """Median over networks, a row each, and a shade from the smallest to the largest."""
    rows = np.asarray(rows, dtype=float)
    axes.fill_between(x, rows.min(0), rows.max(0), color=colour, alpha=0.2, lw=0, zorder=2)
    axes.plot(x, np.median(rows, 0), color=colour, lw=1.3, label=label, zorder=3.5)


def frames_beside(axes: Axes, draws: Sequence[Callable[[Axes], None]], *, gap: float = 0.1) -> list[Axes]:
    """Draw side by side in one frame, each in a frame of its own."""
    axes.set_axis_off()
    width = (1 - gap * (len(draws) - 1)) / len(draws)
    found = [axes.inset_axes((i * (width + gap), 0, width, 1)) for i in range(len(draws))]
    for draw, part in zip(draws, found, strict=True):
        draw(part)
    return found


def drawn_networks(
    setting: Setting, name: str, build: Callable[..., Any], count: int, *, samples: int, dim: int
) -> list[Any]:
    """Networks seen through a frame, drawn one after the other from streams of this name."""
    block = setting.block(name, count)
    point = Point(images=setting.data, samples=samples, dim=dim)
    return [build(rng, point, setting.device).net for rng in block.streams]


def scale_axis(axes: Axes, values: Floats, label: str = "scale α") -> None:
    """A logarithmic axis below, from the first number to the last."""
    axes.set_xscale("log")
    axes.set_xlim(values[0], values[-1])
    decades(axes.xaxis, values[0], values[-1])
    axes.set_xlabel(label)
    axes.grid(axis="y")


def read_off(axes: Axes) -> None:
    """Numbers on the left are those of the frame beside it."""
    axes.yaxis.set_major_formatter(NullFormatter())
    axes.set_ylabel("")


def small_key(axes: Axes, place: Any, **options: Any) -> None:
    """A legend for a frame of half the width."""
    style: dict[str, Any] = {
        "frameon": False, "fontsize": 6.8, "labelcolor": PALETTE["muted"], "handlelength": 1.6,
        "handletextpad": 0.5, "labelspacing": 0.3, "borderaxespad": 0.3,
    }  # fmt: skip
    axes.legend(loc=place, **(style | options))
