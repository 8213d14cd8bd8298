"""Small blocks of experiments on the pretended device, compared with the same blocks on the CPU."""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from benchmarks.pretend.counts import ROOT, Counts, EnoughLaunches
from benchmarks.pretend.device import NAME, pretended
from benchmarks.pretend.rules import Rounding
from simulate.monte_carlo import Point, Scores, run_block
from verify.claims import registry
from verify.model import Claim, StatisticalProperty

SAME = 1e-9
"""Relative difference of a score that another order of a sum may cause."""

SINGLE = 1e-4
"""Relative difference allowed for a score in single precision."""

NOTHING: Mapping[str, float] = {}

CLOSE = 1e-6
"""Relative difference that another machine may cause in double precision, as in a replay."""


class Drawn(NamedTuple):
    """Entry of the registry that draws replicates.

    Attributes
    ----------
    name
        Name of its streams.
    kind
        ``experiment``, ``property`` or ``observation``.
    on_host
        Its declared work on the CPU, whatever the device.
    single
        Its declared work in single precision.
    rounding
        Declared scores that rounding moves further than others, with the allowed relative difference.
    """

    name: str
    kind: str
    simulate: Any
    points: tuple[Point, ...]
    on_host: str
    single: str = ""
    rounding: Mapping[str, float] = NOTHING

    @property
    def size(self) -> int:
        """Number of replicates of a small block, drawn as a run does."""
        return 1 if self.kind == "observation" else 2


@dataclass
class Trial:
    """Result of one block.

    Attributes
    ----------
    failure
        Error with the last lines of this package; empty without an error.
    gap
        Largest difference of a score from the CPU, relative to the largest entry of that score.
    whole
        Whether the block was completed.
    """

    failure: str = ""
    gap: float = 0.0
    score: str = ""
    whole: bool = True
    counts: Counts = field(default_factory=Counts)


def drawn() -> Iterator[Drawn]:
    """Yield all experiments, properties and observations that need no images of the user, each once."""
    # sizes for a GPU alone are left out: they share their code with other observations
    seen: set[str] = set()
    for claim in registry.claims():
        if isinstance(claim, Claim) and claim.experiment.id not in seen:
            e = claim.experiment
            seen.add(e.id)
            if e.needs is None:
                yield Drawn(e.id, "experiment", e.simulate, e.points, e.on_host, e.single, e.rounding)
        elif isinstance(claim, StatisticalProperty):
            yield Drawn(claim.id, "property", claim.simulate, claim.examples, claim.on_host)
    for o in registry.observations():
        if o.cost is None:
            yield Drawn(o.id, "observation", o.simulate, o.points, o.on_host, o.single)


def tried(
    one: Drawn,
    point: Point,
    size: int = 1,
    *,
    most: float = math.inf,
    rounding: Rounding | None = None,
    device: str = NAME,
) -> Trial:
    """Run one block on the device for at most `most` launches, and, if completed, the same block on the CPU.

    Nothing is counted on a real device.
    """
    ask: dict[str, Any] = {"experiment": one.name, "point": point, "seed": 7, "index": 0, "size": size}
    trial, there = Trial(), None
    with pretended(most, rounding) if device == NAME else nullcontext(Counts()) as trial.counts:
        try:
            there = run_block(one.simulate, **ask, counted=True, device=device).scores
        except EnoughLaunches:
            trial.whole = False
        except Exception as error:  # refusals are the result
            trial.failure = failure(error)
    if there is not None:
        here = run_block(one.simulate, **ask, counted=True).scores
        trial.gap, trial.score = difference(
            here, there, one.rounding if rounding or device != NAME else NOTHING
        )
    return trial


def difference(here: Scores, there: Scores, allowed: Mapping[str, float] = NOTHING) -> tuple[float, str]:
    """Return the largest relative difference of a score between two blocks, and the name of the score.

    Differences up to the allowed one count as 0.
    """
    with np.errstate(invalid="ignore"):
        gaps = [(_difference(values, there[name]), name) for name, values in here.items()]
    return max(((gap, name) for gap, name in gaps if gap > allowed.get(name, 0.0)), default=(0.0, ""))


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    if np.array_equal(one, other, equal_nan=True):
        return 0.0
    size = float(np.abs(one[np.isfinite(one)]).max(initial=0.0)) or 1.0
    return float(np.nan_to_num(np.abs(one - other), nan=np.inf).max()) / size


def failure(error: Exception) -> str:
    """Return the text of an error, with the last lines of this package."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f.filename.startswith(str(ROOT)) and "benchmarks" not in f.filename]
    lines = " < ".join(f"{f.filename[len(str(ROOT)) + 1 :]}:{f.lineno}" for f in reversed(ours[-4:]))
    return f"{type(error).__name__}: {str(error)[:200]} at {lines}"
