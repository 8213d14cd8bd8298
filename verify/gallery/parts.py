"""Shared parts of pictures: their setting, streams, lines and points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from simulate.monte_carlo import Block, fixture
from verify.page.axes import decades
from verify.page.drawing import DASHES, Floats, Panel
from verify.page.theme import PALETTE

MEASURED = PALETTE["agrees"]
OTHER = PALETTE["broken"]
"""Colour of a second law and of its draws."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Setting of pictures: the seed, the device of the simulation, and the images of real networks."""

    seed: int = 2024
    device: str = "cpu"
    data: str = "digits"

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")

    def block(self, name: str, count: int) -> Block:
        """Return streams for `count` draws, filed under a name."""
        return Block(tuple(fixture(self.seed, f"picture {name} {i}") for i in range(count)), self.device)


def curve(
    axes: Axes, x: Any, y: Any, label: str, *, role: str = "theory", dash: int | None = None, colour: str = ""
) -> None:
    """Draw a line of theory, or of a rival formula; in a colour of its own where there are many."""
    width = 1.6 if role == "theory" else 1.2
    line = axes.plot(x, y, color=colour or PALETTE[role], lw=width, label=label, zorder=3)[0]
    if dash is not None:
        line.set_dashes(DASHES[dash])


def mean_points(
    axes: Axes, x: Any, draws: Sequence[Any], label: str, *, mark: str = "o", colour: str = MEASURED
) -> None:
    """Draw means of draws, with a bar of two standard errors to either side."""
    mean = np.array([np.mean(d) for d in draws])
    error = np.array([2 * np.std(d, ddof=1) / len(d) ** 0.5 for d in draws])
    axes.errorbar(
        x, mean, yerr=error, ls="", marker=mark, ms=4, mew=0, elinewidth=1.2, color=colour,
        label=label, zorder=4,
    )  # fmt: skip


def batch_axis(axes: Axes, sizes: Floats, *, label: str) -> None:
    """Make both axes logarithmic, with batch sizes on the horizontal one."""
    log_axes(axes, sizes, "batch size B", label)


def log_axes(axes: Axes, x: Floats, x_label: str, y_label: str) -> None:
    """Make both axes logarithmic, the horizontal one a little wider than the numbers on it."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(x.min() / 1.15, x.max() * 1.15)
    decades(axes.xaxis, x.min(), x.max())
    decades(axes.yaxis, *axes.get_ylim())
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(axis="y")


def legend(axes: Axes, place: Any = "best", *, columns: int = 1) -> None:
    """Draw the names of lines and points in the frame."""
    axes.legend(
        loc=place, frameon=False, fontsize=7.5, labelcolor=PALETTE["muted"], handlelength=2.4, ncols=columns
    )


def inches(
    height: float, draw: Any, *, left: float = 0.72, right: float = 0.22, top: float = 0.42, bottom: float = 0.5,
    notes: str = "",
) -> Panel:  # fmt: skip
    """A panel whose drawing names its own axes, with its lengths in inches."""
    return Panel(72 * height, draw, notes, 72 * left, 72 * right, 72 * top, 72 * bottom)
