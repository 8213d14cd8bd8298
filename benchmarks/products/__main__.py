"""Cost of curvature products compared with other libraries, in one process.

    python -m benchmarks.products --network lenet-5 --only hessian

The unit is one forward and one backward pass of the same network on the same samples, timed right before every call,
so that a machine that is slow for a while is slow for both. Operators and the graphs that they keep are prepared before
the call. Every result is compared with one in float64.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import statistics
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmarks.products.peers import installed
from benchmarks.products.works import NETWORKS, WORKS, Call, Case, Way
from benchmarks.timing import machine, table, version
from simulate.monte_carlo import resolve_device
from simulate.objectives.restoring import preserve_state

BUDGET, LEAST = 2.0, 2
"""Seconds after which a call is not repeated, and least number of calls."""

OURS = "losscurv"

BUSY = 1.2
"""Median over fastest pass, above which other processes use the machine."""


@dataclass(kw_only=True)
class Timing:
    """Result of one way to do a work.

    Attributes
    ----------
    library, version
        Library and its version.
    units
        Seconds of a forward and backward pass, right before every call of any library for the same work.
    seconds, errors
        Seconds and errors of every call; errors in the Frobenius norm relative to the result in float64.
    failed
        Error raised by the library; empty without an error.
    """

    way: Way
    library: str
    version: str
    units: list[float]
    seconds: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    failed: str = ""

    @property
    def passes(self) -> float:
        """Fastest call, in units of the fastest forward and backward pass."""
        return min(self.seconds) / min(self.units)

    @property
    def quartiles(self) -> list[float]:
        """Quartiles of the calls, in median passes."""
        parts = np.quantile(self.seconds, (0.25, 0.5, 0.75)) / statistics.median(self.units)
        return parts.tolist()

    def time(self, case: Case, call: Call, truth: Tensor) -> None:
        """Time one call, and record its error."""
        unit, _ = _time_call(case.both_passes, case.device)
        seconds, found = _time_call(call, case.device)
        parts = [found] if isinstance(found, Tensor) else found
        numbers = torch.cat([part.detach().reshape(-1) for part in parts]).to(truth)
        if numbers.numel() != truth.numel() or not bool(numbers.isfinite().all()):
            raise ValueError(f"result must be {truth.numel()} finite numbers, got {numbers}")
        self.units.append(unit)
        self.seconds.append(seconds)
        self.errors.append(float((numbers - truth.flatten()).norm() / truth.norm()))


def bench(case: Case, *, only: Sequence[str] = (), repeats: int = 30) -> tuple[list[Timing], list[str]]:
    """Time works in every installed library; return the timings, and the names of missing libraries.

    Without names in `only` all works that suit the network are timed. The ways to do a work are called in turn,
    `repeats` times each; less often if they take seconds, but at least twice.
    """
    found = list(installed())
    results: list[Timing] = []
    with _quietly():
        for name, work in WORKS.items():
            if name in only or (not only and work.suits(case.network)):
                units: list[float] = []
                sides = [
                    Timing(way=way, library=library.name, version=version(library.distribution), units=units)
                    for library, ways in found
                    for way in ways or ()
                    if way.work == name
                ]
                _measure(case, sides, work.truth(case), repeats)
                results += sides
    return results, [library.name for library, ways in found if ways is None]


def _measure(case: Case, sides: Sequence[Timing], truth: Tensor, repeats: int) -> None:
    calls: list[Call] = []
    for side in sides:  # the first call may build graphs; it counts only if it is long
        calls.append(case.both_passes)
        with _record_failure(side):
            calls[-1] = side.way.prepare(case)
            side.time(case, calls[-1], truth)
        if sum(side.seconds) < BUDGET:
            side.seconds.clear()
            side.errors.clear()
    gc.collect()
    for _ in range(repeats):
        for side, call in zip(sides, calls, strict=True):
            if not side.failed and (len(side.seconds) < LEAST or sum(side.seconds) < BUDGET):
                with _record_failure(side):
                    side.time(case, call, truth)


@contextmanager
def _record_failure(side: Timing) -> Iterator[None]:
    """Record an error of another library as its result; let errors of this one pass."""
    try:
        yield
    except Exception as error:
        if side.library == OURS:
            raise
        side.failed = " ".join(f"{type(error).__name__}: {error}".split())


def _time_call(call: Call, device: torch.device) -> tuple[float, Any]:
    # on one core process time: wall time would count other processes on the core
    clock = time.process_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    finish = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    finish()
    start = clock()
    found = call()
    finish()
    return clock() - start, found


@contextmanager
def _quietly() -> Iterator[None]:
    """Hide prints and warnings of other libraries, and restore the generators from which they draw."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        preserve_state(None, training=False),
    ):
        warnings.simplefilter("ignore")
        yield


# --- the command


def main(words: Sequence[str] | None = None) -> int:
    """Time the requested works and print the table, or JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.products", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", action="append", choices=WORKS, help="this work (repeatable)")
    parser.add_argument(
        "--network", default="lenet-300-100", choices=NETWORKS, help="lenet-300-100 (default)"
    )
    parser.add_argument("--samples", type=int, metavar="N", help="digits in a pass (default 1000 or fewer)")
    parser.add_argument(
        "--repeats", type=int, metavar="N", default=30, help="calls of each; fewer of slow ones"
    )
    parser.add_argument("--threads", type=int, metavar="N", default=1, help="threads to use (default 1)")
    parser.add_argument("--device", metavar="NAME", default="cpu", help="cpu (default), cuda, cuda:<index>")
    options = parser.parse_args(words)
    network = NETWORKS[options.network]
    if other := [name for name in options.only or () if not WORKS[name].suits(network)]:
        parser.error(f"--only must name works of {network.title}, got {', '.join(other)}")
    torch.set_num_threads(options.threads)
    try:
        case = Case(options.samples or network.samples, resolve_device(options.device), network=network)
    except ValueError as error:
        parser.error(str(error))
    with threadpool_limits(options.threads):
        results, missing = bench(case, only=options.only or (), repeats=options.repeats)
    device = torch.cuda.get_device_name(case.device) if case.device.type == "cuda" else "cpu"
    setting = f"{machine('torch')}; {device}, {options.threads} threads"
    units = [seconds for unit in {id(r.units): r.units for r in results}.values() for seconds in unit]
    best, median = min(units), statistics.median(units)
    pass_ = f"{1e3 * best:.3g} ms at best, {1e3 * median:.3g} ms in the median"
    print(
        f"{network.title} on {len(case.x)} digits, float32; {setting}\nunit: one forward and backward pass, {pass_}"
    )
    if median > BUSY * best:
        print("other processes use the machine: compare medians, or repeat on an idle one")
    rows = [_cells(result, results) for result in results]
    print(f"\n{table(HEAD, rows)}\n")
    for result in results:
        ours = min(r.passes for r in results if r.way.work == result.way.work and r.library == OURS)
        if not result.failed and result.passes < ours:
            ratio = f"{_ratio(result.passes / ours)} of our time, relative error {max(result.errors):.0e}"
            print(f"faster than ours: {result.library} by {result.way.method}, {result.way.work}: {ratio}")
    if missing:
        print(f"not installed: {', '.join(missing)}")
    return 0


HEAD = ("work", "library", "by", "best", "median", "quartiles", "times ours", "relative error", "runs")


def _cells(result: Timing, results: Sequence[Timing]) -> list[str]:
    ours, way = next(r for r in results if r.way.work == result.way.work), result.way
    title = WORKS[way.work].title if result is ours else ""
    library = OURS if result.library == OURS else f"{result.library} {result.version}".strip()
    if result.failed:
        return [title, library, way.method, "-", "-", "-", "-", result.failed[:60], "0"]
    low, median, high = map(_ratio, result.quartiles)
    times = "" if result is ours else _ratio(result.passes / ours.passes)
    numbers = (_ratio(result.passes), median, f"{low}-{high}", times, f"{max(result.errors):.1e}")
    return [title, library, way.method, *numbers, str(len(result.seconds))]


def _ratio(times: float) -> str:
    return f"{times:.2f}" if times < 10 else f"{times:.1f}" if times < 100 else f"{times:.0f}"


if __name__ == "__main__":
    sys.exit(main())
