"""What the pictures share: their setting, streams, lines and points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from simulate.monte_carlo import Block, fixture
from verify.drawing import DASHES, PALETTE, Floats, decades

__all__ = ["MEASURED", "Setting", "batch_axis", "curve", "highest", "legend", "points"]

MEASURED = PALETTE["agrees"]
LINES = {"theory": PALETTE["theory"], "rival": PALETTE["rival"]}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How pictures are drawn: the seed, the device of the simulation, and the images of real networks."""

    seed: int = 2024
    device: str = "cpu"
    data: str = "digits"

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")

    def block(self, name: str, count: int) -> Block:
        """Streams of so many draws, filed under a name."""
        return Block(tuple(fixture(self.seed, f"picture {name} {i}") for i in range(count)), self.device)


def curve(axes: Axes, x: Any, y: Any, label: str, *, role: str = "theory", dash: int | None = None) -> None:
    """A line of theory, or of a rival formula."""
    line = axes.plot(x, y, color=LINES[role], lw=1.6 if role == "theory" else 1.2, label=label, zorder=3)[0]
    if dash is not None:
        line.set_dashes(DASHES[dash])


def points(axes: Axes, x: Any, draws: Sequence[Any], label: str, *, mark: str = "o") -> None:
    """Means of draws, with a bar of two standard errors to either side."""
    mean = np.array([np.mean(d) for d in draws])
    error = np.array([2 * np.std(d, ddof=1) / len(d) ** 0.5 for d in draws])
    axes.errorbar(
        x, mean, yerr=error, ls="", marker=mark, ms=4, mew=0, elinewidth=1.2, color=MEASURED,
        label=label, zorder=4,
    )  # fmt: skip


def batch_axis(axes: Axes, sizes: Floats, *, label: str) -> None:
    """Both axes logarithmic, batch sizes below."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes.min() / 1.15, sizes.max() * 1.15)
    decades(axes.xaxis, sizes.min(), sizes.max())
    low, high = axes.get_ylim()
    decades(axes.yaxis, low, high)
    axes.set_xlabel("batch size B")
    axes.set_ylabel(label)
    axes.grid(axis="y")


def highest(draws: Sequence[Floats]) -> float:
    """The largest of the means."""
    return max(float(np.mean(d)) for d in draws)


def legend(axes: Axes, place: Any = "best") -> None:
    """Names of lines and points, in the frame."""
    axes.legend(loc=place, frameon=False, fontsize=7.5, labelcolor=PALETTE["muted"], handlelength=2.4)
