"""After a run on a device: some of its blocks drawn again on the CPU, and how far their scores are from each other."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import run_block
from verify.running.replays import CLOSE
from verify.running.settings import COUNTED, Settings

if TYPE_CHECKING:
    from verify.running.pump import Draws

__all__ = ["SHARE", "Again", "draw_again"]

SHARE = 0.05
"""Of the blocks of a run."""

SECONDS = 60.0
"""After so many no other block is begun."""


@dataclass(frozen=True, kw_only=True)
class Again:
    """Blocks drawn again, of those asked for and of all that there were, and what differs, each by how much.

    `off` are differences of judged experiments beyond what their claims allow for, and count against the run; `other`
    those of indicators, which flip where rounding decides, and of observations, of which most are in single precision.
    """

    drawn: int
    asked: int
    blocks: int
    off: dict[str, float]
    other: dict[str, float]

    def line(self, device: str) -> str:
        """What came of it; empty where there was nothing to draw.

        >>> Again(drawn=2, asked=3, blocks=60, off={}, other={"a/b, x": 0.5}).line("cuda")
        '2 of 60 blocks of cuda drawn again on the CPU (3 asked for): all judged scores agree; a/b, x differs by 0.5'
        """
        if not self.asked:
            return ""
        short = "" if self.drawn == self.asked else f" ({self.asked} asked for)"
        agree = [] if self.off else ["all judged scores agree"] if self.drawn else ["nothing was compared"]
        told = [*agree, *_differences(self.off), *_differences(self.other)]
        where = f"{self.drawn} of {self.blocks} blocks of {device} drawn again on the CPU{short}"
        return f"{where}: {'; '.join(told)}"

    def doubts(self, device: str) -> list[str]:
        """What counts against the run."""
        if not self.off:
            return []
        return [f"scores of {device} that the CPU does not find: {'; '.join(_differences(self.off))}"]


def _differences(found: Mapping[str, float]) -> list[str]:
    return [f"{name} differs by {gap:.2g}" for name, gap in found.items()]


def draw_again(
    runs: Sequence[Draws],
    settings: Settings,
    allowed: Mapping[str, float],
    *,
    without: Collection[str] = (),
    share: float = SHARE,
    seconds: float = SECONDS,
) -> Again:
    """Draw a share of all blocks on the CPU, chosen by the seed of the run, from the numbers that the run drew from.

    Parameters
    ----------
    runs
        What was drawn.
    settings
        Of the run.
    allowed
        Judged experiments by their ids, with the relative difference that their claims allow for.
    without
        Ids of what no CPU draws.
    share, seconds
        How many blocks, rounded up, and for how long.
    """
    blocks = [
        (run, i) for run in runs if run.name not in without and not run.error for i in range(_count(run))
    ]
    asked = math.ceil(share * len(blocks))
    order = np.random.default_rng(settings.seed).permutation(len(blocks))[:asked]
    started, drawn = time.monotonic(), 0
    off: dict[str, float] = {}
    other: dict[str, float] = {}
    for place in order.tolist():
        if time.monotonic() - started > seconds:
            break
        run, index = blocks[place]
        for score, gap, indicator in _gaps(run, index, settings):
            limit = max(CLOSE, allowed.get(run.name, 0.0))
            if not gap <= limit:
                found = off if run.name in allowed and not indicator else other
                name = f"{run.name}, {score}"
                found[name] = max(gap, found.get(name, 0.0))
        drawn += 1
    return Again(drawn=drawn, asked=asked, blocks=len(blocks), off=off, other=other)


def _count(run: Draws) -> int:
    return len(next(iter(run.scores.values()), ())) // run.size


def _gaps(run: Draws, index: int, settings: Settings) -> list[tuple[str, float, bool]]:
    """Of each score of a block: the largest difference over the largest entry, and whether it is an indicator."""
    here = run_block(
        run.simulate,
        experiment=run.name,
        point=run.point,
        seed=settings.seed,
        index=index,
        device="cpu",
        size=run.size,
        counted=settings.drawn_by == COUNTED,
    ).scores
    rows = slice(index * run.size, (index + 1) * run.size)
    return [
        (name, _gap(values, run.scores[name][rows]), bool(np.isin(values, (0.0, 1.0)).all()))
        for name, values in here.items()
    ]


def _gap(here: NDArray[np.float64], there: NDArray[np.float64]) -> float:
    if np.array_equal(here, there, equal_nan=True):
        return 0.0
    size = float(np.abs(here[np.isfinite(here)]).max(initial=0.0)) or 1.0
    with np.errstate(invalid="ignore"):
        return float(np.nan_to_num(np.abs(here - there), nan=math.inf).max()) / size
