"""After a run on a device: some of its blocks drawn again on the CPU, and how far their scores are from each other."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Scores, run_block
from verify.model import Claim
from verify.running.replays import CLOSE
from verify.running.settings import COUNTED, Settings

if TYPE_CHECKING:
    from verify.running.pump import Draws

__all__ = ["SHARE", "Again", "Rounding", "draw_again", "left_by_rounding", "roundings_of"]

Rounding = dict[tuple[str, str], float]
"""Of judged scores, by experiment and name: the numerical error that is known, in their unit; 0 if none is."""

NONE: Rounding = {}

SHARE = 0.05
"""Of the blocks of a run."""

SECONDS = 60.0
"""In which it should end; what takes longer is not begun."""


@dataclass(frozen=True, kw_only=True)
class Again:
    """Blocks drawn again, of those asked for and of all that there were, and what differs, each by how much.

    `off` are differences of judged scores beyond what their claims allow for, and count against the run; `other` those
    of indicators, which flip where rounding decides, of experiments in single precision of which no claim knows by how
    much, and of all that is not judged. `compared` counts judged scores, block by block, and `excused` those of them
    that are among the others. `failed` are blocks that the CPU could not draw, each with the reason; `stopped` says
    that somebody ended it.
    """

    drawn: int
    asked: int
    blocks: int
    off: dict[str, float]
    other: dict[str, float]
    compared: int = 0
    excused: int = 0
    failed: dict[str, str] = field(default_factory=dict[str, str])
    stopped: bool = False

    def line(self, device: str) -> str:
        """What came of it; empty where there was nothing to draw.

        >>> Again(drawn=2, asked=3, blocks=60, off={}, other={"a/b, x": 0.5}, compared=9).line("cuda")
        '2 of 60 blocks of cuda drawn again on the CPU (3 asked for): all judged scores agree; a/b, x differs by 0.5'
        """
        if not self.asked:
            return ""
        why = [f"{self.asked} asked for"] * (self.drawn < self.asked) + ["stopped"] * self.stopped
        short = f" ({', '.join(why)})" if why else ""
        failed = [f"{name} could not be drawn there: {reason}" for name, reason in self.failed.items()]
        told = [*self._agreement(), *_differences(self.off), *_differences(self.other), *failed]
        where = f"{self.drawn} of {self.blocks} blocks of {device} drawn again on the CPU{short}"
        return f"{where}: {'; '.join(told)}"

    def _agreement(self) -> list[str]:
        if self.off:
            return []
        if not self.compared:
            return ["no judged score was compared" if self.drawn else "nothing was compared"]
        return [f"all judged scores{' but those named' * bool(self.excused)} agree"]

    def doubts(self, device: str) -> list[str]:
        """What counts against the run."""
        if not self.off:
            return []
        return [f"scores of {device} that the CPU does not find: {'; '.join(_differences(self.off))}"]


def _differences(found: Mapping[str, float]) -> list[str]:
    return [f"{name} differs by {gap:.2g}" for name, gap in found.items()]


def roundings_of(claims: Iterable[Claim]) -> Rounding:
    """The scores that claims read, by experiment and name, each with the largest numerical error that is known.

    Of a score, in its own unit and at every point: that of a measured mean is in the unit of the margin.
    """
    found: Rounding = {}
    for claim in claims:
        own = (claim.score,) if isinstance(claim.score, str) else claim.score
        printed = (claim.printed,) if isinstance(claim.printed, str) else ()
        for names, known in (((*own, *printed), claim.numerical), (claim.inputs, 0.0)):
            for name in names:
                place = claim.experiment.id, name
                found[place] = max(known, found.get(place, 0.0))
    return found


def left_by_rounding(claims: Iterable[Claim]) -> Rounding:
    """The scores that rounding moves further than others, by experiment and name, each with the part of its size."""
    experiments = {claim.experiment.id: claim.experiment for claim in claims}
    return {(e.id, score): part for e in experiments.values() for score, part in e.rounding.items()}


def draw_again(
    runs: Sequence[Draws],
    settings: Settings,
    judged: Rounding,
    *,
    single: Collection[str] = (),
    rounding: Rounding = NONE,
    without: Collection[str] = (),
    share: float = SHARE,
    seconds: float = SECONDS,
) -> Again:
    """Draw a share of all blocks on the CPU, chosen by the seed of the run, from the numbers that the run drew from.

    A block that fails there is named, and an interrupt from the keyboard ends it: the run is over and has its report.

    Parameters
    ----------
    runs
        What was drawn.
    settings
        Of the run.
    judged
        The judged scores, with the differences that their claims allow for; see `roundings_of`.
    single
        Ids of experiments in single precision: where a claim does not know how much that moves, it is not held to it.
    rounding
        The scores that rounding moves further than others; see `left_by_rounding`.
    without
        Ids of what no CPU draws.
    share, seconds
        How many blocks, rounded up, and for how long: none is begun that took longer in the run than is left.
    """
    blocks = [
        (run, i) for run in runs if run.name not in without and not run.error for i in range(_count(run))
    ]
    asked = math.ceil(share * len(blocks))
    order = np.random.default_rng(settings.seed).permutation(len(blocks))[:asked]
    found = _Found(judged, single, rounding)
    end, drawn, stopped = time.monotonic() + seconds, 0, False
    try:
        for place in order.tolist():
            run, index = blocks[place]
            if time.monotonic() + run.seconds / _count(run) <= end:
                drawn += found.added(run, index, settings)
    except KeyboardInterrupt:
        stopped = True
    return Again(
        drawn=drawn,
        asked=asked,
        blocks=len(blocks),
        off=found.off,
        other=found.other,
        compared=found.compared,
        excused=len(found.excused),
        failed=found.failed,
        stopped=stopped,
    )


class _Found:
    """What blocks drawn again have shown so far; see `Again`."""

    def __init__(self, judged: Rounding, single: Collection[str], rounding: Rounding) -> None:
        self._judged, self._single, self._rounding = judged, single, rounding
        self.off: dict[str, float] = {}
        self.other: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.excused: set[str] = set()
        self.compared = 0

    def added(self, run: Draws, index: int, settings: Settings) -> bool:
        """Whether this block could be drawn; it is then compared."""
        try:
            here = _drawn(run, index, settings)
            rows = slice(index * run.size, (index + 1) * run.size)
            for score, values in here.items():
                self._compare(run.name, score, values, run.scores[score][rows])
        except Exception as error:  # what the host has no memory for, say: the run is done and has its report
            self.failed.setdefault(run.name, str(error).partition("\n")[0] or type(error).__name__)
            return False
        return True

    def _compare(
        self, experiment: str, score: str, here: NDArray[np.float64], there: NDArray[np.float64]
    ) -> None:
        known = self._judged.get((experiment, score))
        self.compared += known is not None
        difference, gap = _gap(here, there)
        left = self._rounding.get((experiment, score), 0.0)
        if gap <= (left if CLOSE < left < math.inf else CLOSE) or difference <= (known or 0.0):
            return
        name = f"{experiment}, {score}"
        held = known is not None and (known > 0 or (experiment not in self._single and left < math.inf))
        found = self.off if held and not np.isin(here, (0.0, 1.0)).all() else self.other
        if found is self.other and known is not None:
            self.excused.add(name)
        found[name] = max(gap, found.get(name, 0.0))


def _count(run: Draws) -> int:
    return len(next(iter(run.scores.values()), ())) // run.size


def _drawn(run: Draws, index: int, settings: Settings) -> Scores:
    return run_block(
        run.simulate,
        experiment=run.name,
        point=run.point,
        seed=settings.seed,
        index=index,
        device="cpu",
        size=run.size,
        counted=settings.drawn_by == COUNTED,
    ).scores


def _gap(here: NDArray[np.float64], there: NDArray[np.float64]) -> tuple[float, float]:
    """The largest difference, and that over the largest entry; none where both have no number, or the same infinity."""
    size = float(np.abs(here[np.isfinite(here)]).max(initial=0.0)) or 1.0
    with np.errstate(invalid="ignore"):
        apart = np.abs(here - there)
    apart[np.isnan(apart)] = math.inf
    apart[(here == there) | (np.isnan(here) & np.isnan(there))] = 0.0
    largest = float(apart.max(initial=0.0))
    return largest, largest / size
