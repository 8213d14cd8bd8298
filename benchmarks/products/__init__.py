"""The cost of our curvature products beside those of other libraries, in one process.

    python -m benchmarks.products --network lenet-5 --only hessian

The unit is one forward and one backward pass of the same network on the same samples, timed right before every call,
so that a machine that is slow for a while is slow for both. What can be prepared once and used again, operators and
the graphs they keep, is ready before. Every result is compared with one in float64.
"""

from __future__ import annotations

import gc
import io
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.products.networks import BenchNetwork
from benchmarks.products.peers import Library, installed
from benchmarks.products.works import WORKS, Benchmark, Call, Case, Way
from simulate import _checks
from simulate._checks import did_you_mean
from simulate.objectives.restoring import as_found
from verify.practice.work import Tell, Work

__all__ = ["OURS", "REPEATS", "Bench", "Timing", "bench", "chosen"]

REPEATS = 30

BUDGET, LEAST = 2.0, 2
"""Seconds after which a way is not repeated once more, and how often even the slowest is."""

OURS = "losscurv"
_FIRST = 0.3
"""About the share of the time that first calls take, for the progress bar."""

BUSY = 1.2
"""Half of the passes took longer than the fastest by this factor: others use the machine."""


Found = list[tuple[Library, tuple[Way, ...] | None]]


@dataclass(kw_only=True)
class Timing:
    """What came of one way to do a work.

    Attributes
    ----------
    work, library, version, method
        What was called.
    exact
        Whether the result is exact up to rounding, or an estimate.
    seconds
        Of every call.
    units
        Of a forward and backward pass, one right before every call of any library for the same work.
    errors
        Of every call, in the Frobenius norm relative to the result in float64.
    failed
        What the library raised; empty if nothing.
    """

    work: str
    library: str
    version: str
    method: str
    exact: bool
    units: list[float]
    seconds: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    failed: str = ""

    @property
    def passes(self) -> float:
        """The fastest call, in fastest forward and backward passes."""
        return min(self.seconds) / min(self.units)

    @property
    def median(self) -> float:
        """The same with medians."""
        return statistics.median(self.seconds) / statistics.median(self.units)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Between which half of the calls lie, in median passes."""
        low, high = np.quantile(self.seconds, (0.25, 0.75)) / statistics.median(self.units)
        return float(low), float(high)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """All results, and the names of the libraries that are not installed."""

    results: tuple[Timing, ...]
    missing: tuple[str, ...]

    @property
    def units(self) -> list[float]:
        """Seconds of every forward and backward pass."""
        lists = {id(result.units): result.units for result in self.results}
        return [seconds for units in lists.values() for seconds in units]

    @property
    def busy(self) -> bool:
        """Whether the machine did something else meanwhile."""
        return statistics.median(self.units) > BUSY * min(self.units)

    @property
    def farthest(self) -> float:
        """Largest relative error of a result that is exact but for rounding."""
        return max((max(r.errors) for r in self.results if r.exact and r.errors), default=math.nan)


def bench(case: Case, *, only: Sequence[str] = (), repeats: int = REPEATS, tell: Tell) -> Bench:
    """Time all works in every library that is installed.

    Parameters
    ----------
    case
        Network and samples.
    only
        Names of works; all if none.
    repeats
        Calls of each way to do a work, in turn; fewer, but at least two, of one that takes seconds.
    tell
        Called with what is done next and the share of all that is done.

    Raises
    ------
    ValueError
        If a work is unknown or not of this network, or `repeats` is not positive.
    """
    works, repeats = chosen(only, case.network), _checks.natural("repeats", repeats)
    found: Found = list(installed())
    sides = {work: _sides(case, work, found) for work in works}
    parts = Work({work.name: len(sides[work]) for work in works}, tell)
    with _quietly():
        for work in works:
            with parts.part(work.name) as done:
                _measure(sides[work], work.truth(case), repeats, done)
    return Bench(
        results=tuple(side.result for work in works for side in sides[work]),
        missing=tuple(library.name for library, ways in found if ways is None),
    )


def chosen(only: Sequence[str], network: BenchNetwork) -> list[Benchmark]:
    """Return the works of these names that this network allows; all that it allows if no name is given."""
    works = [work for work in WORKS if work.suits(network)]
    names = [work.name for work in works]
    for name in only:
        if name not in names:
            raise ValueError(
                f"only must name some of {', '.join(names)}, got {name!r}{did_you_mean(name, names)}"
            )
    return [work for work in works if not only or work.name in only]


def _sides(case: Case, work: Benchmark, found: Found) -> list[_Side]:
    units: list[float] = []
    return [
        _Side(case, library, way, units)
        for library, ways in found
        for way in ways or ()
        if way.work == work.name
    ]


class _Side:
    """One way to do a work, and what comes of it."""

    def __init__(self, case: Case, library: Library, way: Way, units: list[float]) -> None:
        self.result = Timing(
            work=way.work,
            library=library.name,
            version=library.version,
            method=way.method,
            exact=way.exact,
            units=units,
        )
        self._case, self._prepare = case, way.prepare
        self._call: Call = case.both_passes

    def warm_up(self, truth: Tensor) -> None:
        """A first call, that may build what is kept; it counts if it is long."""
        with self._forgiven():
            self._call = self._prepare(self._case)
            self.time(truth)
        if sum(self.result.seconds) < BUDGET:
            self.result.seconds.clear()
            self.result.errors.clear()

    def time(self, truth: Tensor) -> None:
        with self._forgiven():
            unit, _ = _timed(self._case.both_passes, self._case.device)
            seconds, found = _timed(self._call, self._case.device)
            error = _error(found, truth)
            self.result.units.append(unit)
            self.result.seconds.append(seconds)
            self.result.errors.append(error)

    def goes_on(self) -> bool:
        spent = self.result.seconds
        return not self.result.failed and (len(spent) < LEAST or sum(spent) < BUDGET)

    @contextmanager
    def _forgiven(self) -> Iterator[None]:
        """What another library raises is its result; what this one raises is an error."""
        try:
            yield
        except Exception as error:
            if self.result.library == OURS:
                raise
            self.result.failed = " ".join(f"{type(error).__name__}: {error}".split())


def _measure(sides: Sequence[_Side], truth: Tensor, repeats: int, done: Callable[[float], None]) -> None:
    for i, side in enumerate(sides):
        side.warm_up(truth)
        done(_FIRST * (i + 1) / len(sides))
    gc.collect()
    for i in range(repeats):
        for side in sides:
            if side.goes_on():
                side.time(truth)
        done(_FIRST + (1 - _FIRST) * (i + 1) / repeats)


def _timed(call: Call, device: torch.device) -> tuple[float, Any]:
    # on one core the seconds of the process itself: those of the wall count what others do there
    clock = time.process_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    _finish(device)
    start = clock()
    found = call()
    _finish(device)
    return clock() - start, found


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _error(found: Any, truth: Tensor) -> float:
    parts = [found] if isinstance(found, Tensor) else found
    numbers = torch.cat([part.detach().reshape(-1) for part in parts]).to(truth)
    if numbers.numel() != truth.numel():
        raise ValueError(f"result must be {truth.numel()} numbers, got {numbers.numel()}")
    if not bool(numbers.isfinite().all()):
        raise ValueError("result must be finite, got NaN or infinity")
    return float((numbers - truth.flatten()).norm() / truth.norm())


@contextmanager
def _quietly() -> Iterator[None]:
    """Nothing of what other libraries print and warn of; the generators they draw from are left as found."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), as_found(None, training=False):
        warnings.simplefilter("ignore")
        yield
