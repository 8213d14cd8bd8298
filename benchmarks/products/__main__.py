"""The cost of our curvature products beside those of other libraries, in one process.

    python -m benchmarks.products --network lenet-5 --only hessian

The unit is one forward and one backward pass of the same network on the same samples, timed right before every call,
so that a machine that is slow for a while is slow for both. What can be prepared once and used again, operators and
the graphs they keep, is ready before. Every result is compared with one in float64.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
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
"""Seconds after which a way is not repeated once more, and how often even the slowest is."""

OURS = "losscurv"

BUSY = 1.2
"""Half of the passes took longer than the fastest by this factor: others use the machine."""


@dataclass(kw_only=True)
class Timing:
    """What came of one way to do a work.

    Attributes
    ----------
    library, version
        Which one does it.
    units
        Of a forward and backward pass, one right before every call of any library for the same work.
    seconds, errors
        Of every call, these in the Frobenius norm relative to the result in float64.
    failed
        What the library raised; empty if nothing.
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
        """The fastest call, in fastest forward and backward passes."""
        return min(self.seconds) / min(self.units)

    @property
    def quartiles(self) -> list[float]:
        """Between which a quarter, half and three quarters of the calls lie, in median passes."""
        parts = np.quantile(self.seconds, (0.25, 0.5, 0.75)) / statistics.median(self.units)
        return parts.tolist()

    def time(self, case: Case, call: Call, truth: Tensor) -> None:
        """One call, and its error."""
        unit, _ = _timed(case.both_passes, case.device)
        seconds, found = _timed(call, case.device)
        parts = [found] if isinstance(found, Tensor) else found
        numbers = torch.cat([part.detach().reshape(-1) for part in parts]).to(truth)
        if numbers.numel() != truth.numel() or not bool(numbers.isfinite().all()):
            raise ValueError(f"result must be {truth.numel()} finite numbers, got {numbers}")
        self.units.append(unit)
        self.seconds.append(seconds)
        self.errors.append(float((numbers - truth.flatten()).norm() / truth.norm()))


def bench(case: Case, *, only: Sequence[str] = (), repeats: int = 30) -> tuple[list[Timing], list[str]]:
    """Time works, all that suit the network if none is named, in every library that is installed; name the others.

    Each way to do a work is called so often, in turn; at least twice, but less often, if it takes seconds.
    """
    found = list(installed())
    results: list[Timing] = []
    with _quietly():
        for work in WORKS:
            if work.name in only or (not only and work.suits(case.network)):
                units: list[float] = []
                sides = [
                    Timing(way=way, library=library.name, version=version(library.distribution), units=units)
                    for library, ways in found
                    for way in ways or ()
                    if way.work == work.name
                ]
                _measure(case, sides, work.truth(case), repeats)
                results += sides
    return results, [library.name for library, ways in found if ways is None]


def _measure(case: Case, sides: Sequence[Timing], truth: Tensor, repeats: int) -> None:
    calls: list[Call] = []
    for side in sides:  # a first call, that may build what is kept, counts if it is long
        calls.append(case.both_passes)
        with _forgiven(side):
            calls[-1] = side.way.prepare(case)
            side.time(case, calls[-1], truth)
        if sum(side.seconds) < BUDGET:
            side.seconds.clear()
            side.errors.clear()
    gc.collect()
    for _ in range(repeats):
        for side, call in zip(sides, calls, strict=True):
            if not side.failed and (len(side.seconds) < LEAST or sum(side.seconds) < BUDGET):
                with _forgiven(side):
                    side.time(case, call, truth)


@contextmanager
def _forgiven(side: Timing) -> Iterator[None]:
    """What another library raises is its result; what this one raises is an error."""
    try:
        yield
    except Exception as error:
        if side.library == OURS:
            raise
        side.failed = " ".join(f"{type(error).__name__}: {error}".split())


def _timed(call: Call, device: torch.device) -> tuple[float, Any]:
    # on one core the seconds of the process itself: those of the wall count what others do there
    clock = time.process_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    finish = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    finish()
    start = clock()
    found = call()
    finish()
    return clock() - start, found


@contextmanager
def _quietly() -> Iterator[None]:
    """Nothing of what other libraries print and warn of; the generators they draw from are left as found."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        preserve_state(None, training=False),
    ):
        warnings.simplefilter("ignore")
        yield


# --- the command


def main(words: Sequence[str] | None = None) -> int:
    """Time what the options ask for and print the table, or JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.products", description=__doc__.splitlines()[0]
    )
    names = [work.name for work in WORKS]
    parser.add_argument("--only", action="append", choices=names, help="this work (repeatable)")
    parser.add_argument(
        "--network", default="lenet-300-100", choices=NETWORKS, help="lenet-300-100 (default)"
    )
    parser.add_argument("--samples", type=int, metavar="N", help="digits in a pass (default 1000 or fewer)")
    parser.add_argument("--repeats", type=int, metavar="N", default=30, help="calls of each; slow ones fewer")
    parser.add_argument("--threads", type=int, metavar="N", default=1, help="threads to use (default 1)")
    parser.add_argument("--device", metavar="NAME", default="cpu", help="cpu (default), cuda, cuda:<index>")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    asked = parser.parse_args(words)
    network = NETWORKS[asked.network]
    if other := [w.name for w in WORKS if w.name in (asked.only or ()) and not w.suits(network)]:
        parser.error(f"--only must name works of {network.title}, got {', '.join(other)}")
    torch.set_num_threads(asked.threads)
    try:
        case = Case(asked.samples or network.samples, resolve_device(asked.device), network=network)
    except ValueError as error:
        parser.error(str(error))
    with threadpool_limits(asked.threads):
        results, missing = bench(case, only=asked.only or (), repeats=asked.repeats)
    device = torch.cuda.get_device_name(case.device) if case.device.type == "cuda" else "cpu"
    setting = f"{network.title} on {len(case.x)} digits, float32; {machine('torch')}; {device}, {asked.threads} threads"
    if asked.json:
        print(
            json.dumps(
                {"setting": setting, "missing": missing, "results": [*map(_record, results)]}, indent=1
            )
        )
        return 0
    units = [seconds for unit in {id(r.units): r.units for r in results}.values() for seconds in unit]
    best, median = min(units), statistics.median(units)
    pass_ = f"{1e3 * best:.3g} ms at best, {1e3 * median:.3g} ms in the median"
    print(f"{setting}\nunit: one forward and backward pass, {pass_}")
    if median > BUSY * best:
        print("the machine was busy with something else: compare medians, or repeat on a quiet one")
    rows = [_cells(result, results) for result in results]
    print(f"\n{table(HEAD, rows)}\n")
    for result in results:
        ours = min(r.passes for r in results if r.way.work == result.way.work and r.library == OURS)
        if not result.failed and result.passes < ours:
            told = f"{_ratio(result.passes / ours)} of our time, relative error {max(result.errors):.0e}"
            print(f"ahead of us: {result.library} by {result.way.method}, {result.way.work}: {told}")
    if missing:
        print(f"not installed: {', '.join(missing)}")
    return 0


HEAD = ("work", "library", "by", "best", "median", "quartiles", "times ours", "relative error", "runs")


def _record(result: Timing) -> dict[str, Any]:
    told = {"library": result.library, "version": result.version, **result.way._asdict()}
    del told["prepare"]
    if result.failed:
        return {**told, "failed": result.failed}
    error, runs = max(result.errors), len(result.seconds)
    return {
        **told,
        "passes": result.passes,
        "quartiles": result.quartiles,
        "relative error": error,
        "runs": runs,
    }


def _cells(result: Timing, results: Sequence[Timing]) -> list[str]:
    ours, way = next(r for r in results if r.way.work == result.way.work), result.way
    title = next(work.title for work in WORKS if work.name == way.work) if result is ours else ""
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
