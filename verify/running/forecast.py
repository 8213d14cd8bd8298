"""How many seconds a run still takes, from what its parts are said to cost and the pace at which they go."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

__all__ = ["Costs", "Drawing", "costs_of", "forecast", "pace", "remaining"]

FILE = "results.json"

PRIOR = 10.0
"""Seconds in which all workers are busy, against which those of this run are weighed."""

DECLARED = 0.06
"""Share of all work that goes as declared, against which what is finished is weighed: the first parts tell little."""

PACES = (1 / 3, 3.0)
"""A pace beyond these says more of the parts that are finished than of those to come."""

SLOWEST = 0.1
"""Share of its workers that a run keeps busy at least: on a machine with much else to do."""

Costs = Mapping[tuple[str, str], float]
"""Seconds by experiment and point, as `simulate.monte_carlo.Point.canonical` writes it."""


class Drawing(Protocol):
    """Blocks drawn of one simulator at one point.

    `expected` are the seconds of one core that it takes in all, `seconds` those it has taken, `drawn` those of them in
    this run; `replicates` of `wanted` are there, `size` of them in a block, and `began` is when the last block was
    sent, 0 if none is underway.
    """

    expected: float
    seconds: float
    drawn: float
    wanted: int
    done: bool
    error: str
    size: int
    began: float

    @property
    def replicates(self) -> int:
        """Replicates so far."""
        ...


def costs_of(folder: Path | None, tier: str, replicates: int | None, device: str) -> Costs:
    """What each part took in the run that a report folder is of; nothing where that run was another sort of run.

    A file that cannot be read counts as none: it is the forecast that is poorer, not the run.
    """
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8")) if folder else {}
        suite = found["suite"]
        if (suite["tier"], suite["replicates"], suite["device"]) != (tier, replicates, device):
            return {}
        return {
            (run["experiment"], json.dumps(run["parameters"], sort_keys=True)): float(run["seconds"])
            for run in found["runs"]
        }
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}


def forecast(
    parts: Iterable[Drawing],
    others: float,
    *,
    credited: float,
    elapsed: float,
    workers: int,
    now: float | None = None,
) -> float:
    """Seconds left of a run.

    What is unfinished costs what is expected of it, times the pace of what is finished; at least the replicates of the
    next look. The workers do as much of it in a second as they did so far, the main process' pauses included. No number
    of workers shortens a single replicate.

    Parameters
    ----------
    parts
        All that is drawn.
    others
        Seconds of one core of what is not drawn and has not been judged.
    credited
        Seconds of one core that went into what is not drawn and has been judged.
    elapsed
        Seconds on the clock.
    workers
        Blocks drawn at a time.
    now
        The time that `Drawing.began` refers to, `time.monotonic()` if None.
    """
    at = time.monotonic() if now is None else now
    listed = list(parts)
    speed, unfinished = pace(listed), [part for part in listed if not part.done]
    left = speed * others + sum(remaining(part, speed) for part in unfinished)
    done = credited + sum(part.drawn for part in listed) + _underway(unfinished, at, workers)
    rate = (done + PRIOR * workers) / (elapsed + PRIOR) if done else workers  # else it only starts
    longest = max((_longest(part, speed, at) for part in unfinished), default=0.0)
    return max(left / min(max(rate, SLOWEST * workers), workers), longest)


def pace(parts: Iterable[Drawing]) -> float:
    """Seconds that finished parts took over those expected of them; near 1 as long as few are finished."""
    listed = list(parts)
    finished = [part for part in listed if part.done and not part.error and part.expected > 0]
    took, expected = (
        math.fsum(values) for values in ((p.seconds for p in finished), (p.expected for p in finished))
    )
    prior = max(DECLARED * math.fsum(part.expected for part in listed), PRIOR)
    low, high = PACES
    return min(max((took + prior) / (expected + prior), low), high)


def remaining(part: Drawing, speed: float = 1.0) -> float:
    """Seconds of one core that a part still takes, at this pace; some of them remain until it is done."""
    if part.done:
        return 0.0
    expected = speed * part.expected
    each = part.seconds / part.replicates if part.replicates else 0.0
    if part.size == 1 and part.replicates:  # all of an observation is drawn, each replicate like the first
        return each * (part.wanted - part.replicates)
    return max(expected - part.seconds, (part.wanted - part.replicates) * each, 0.05 * expected)


def _underway(parts: Sequence[Drawing], at: float, workers: int) -> float:
    """Seconds in blocks that have not come back; so many of them are drawn at a time, the oldest, the others wait."""
    return sum(sorted((at - part.began for part in parts if part.began), reverse=True)[:workers])


def _longest(part: Drawing, speed: float, at: float) -> float:
    """What no number of workers shortens: one block, less what it has had already."""
    missing = max(part.wanted - part.replicates, 0)
    each = part.seconds / part.replicates if part.replicates else speed * part.expected / max(part.wanted, 1)
    return max(each * min(part.size, missing) - (at - part.began if part.began else 0.0), 0.0)
