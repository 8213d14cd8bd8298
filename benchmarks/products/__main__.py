"""Cost of curvature products compared with other libraries, in one process.

    python -m benchmarks.products --network lenet-5 --only hessian
    python -m benchmarks.products --network large --network attention --only eigenvalue

The unit is one forward and one backward pass of the same network on the same samples, timed right before every call,
so that a machine that is slow for a while is slow for both. Operators and the graphs that they keep are prepared before
the call. Every result is compared with one in float64.

Without `--network` and `--only` all networks are timed, each with the works named in `TABLE`. The table of a network is
printed when its last work is done.

`--network` and `--only` name networks and works (repeatable). A time of another library is marked `ahead` if it is less
than 0.95 of ours. `--samples` are the digits in a pass, 1000 or fewer by the network if 0; `--repeats`
are the calls of each, with fewer of slow ones.
"""

from __future__ import annotations

import contextlib
import gc
import io
import statistics
import sys
import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmarks.products.peers import installed
from benchmarks.products.works import NETWORKS, WORKS, BenchNetwork, Call, Case, Way
from benchmarks.timing import command, machine, table, version
from simulate.monte_carlo import resolve_device
from simulate.objectives.restoring import preserve_state

BUDGET, LEAST = 2.0, 2
"""Seconds after which a call is not repeated, and least number of calls."""

OURS = "losscurv"

AHEAD = 0.95
"""Share of our time below which another library is marked."""


@dataclass(kw_only=True)
class Timing:
    """Result of one way to do a work.

    Attributes
    ----------
    library
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
    units: list[float]
    seconds: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    failed: str = ""

    @property
    def passes(self) -> float:
        """Fastest call, in units of the fastest forward and backward pass."""
        return min(self.seconds) / min(self.units)

    @property
    def median(self) -> float:
        """Median call, in median passes."""
        return statistics.median(self.seconds) / statistics.median(self.units)

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
                    Timing(way=way, library=f"{library.name} {version(library.distribution)}", units=units)
                    for library, ways in found
                    for way in ways or ()
                    if way.work == name
                ]
                _measure(case, sides, work.truth(case.double()), repeats)
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
        if side.library.startswith(OURS):
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
    """Time the requested works and print the table."""
    parser = command("benchmarks.products", __doc__, samples=0, repeats=30, device="cpu")
    parser.add_argument("--only", action="append", choices=WORKS)
    parser.add_argument("--network", action="append", choices=NETWORKS)
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    listed = NETWORKS if not options.only else ["lenet-300-100"]
    missing = list[str]()
    for name in options.network or listed:
        only = options.only or (() if options.network else TABLE.get(name, SHORT))
        results, missing = _compare(NETWORKS[name], only, parser, options)
        # network by network: all of them take some ten minutes
        print(f"\n{table(HEAD, [_cells(result, results) for result in results])}\n", flush=True)
    if missing:
        print(f"not installed: {', '.join(missing)}")
    return 0


def _compare(
    network: BenchNetwork, only: Sequence[str], parser: ArgumentParser, options: Namespace
) -> tuple[list[Timing], list[str]]:
    if other := [name for name in options.only or () if not WORKS[name].suits(network)]:
        parser.error(f"--only must name works of {network.title}, got {', '.join(other)}")
    try:
        case = Case(options.samples or network.samples, resolve_device(options.device), network=network)
    except ValueError as error:
        parser.error(str(error))
    with threadpool_limits(1):
        results, missing = bench(case, only=only, repeats=options.repeats)
    device = torch.cuda.get_device_name(case.device) if case.device.type == "cuda" else "cpu"
    print(f"{network.title} on {len(case.x)} digits, float32; {machine('torch')}; {device}", end=", ")
    unit = min(min(result.units) for result in results)
    print(f"one thread\nunit: one forward and backward pass, {1e3 * unit:.3g} ms at best", flush=True)
    return results, missing


SHORT = "hessian", "gauss-newton", "eigenvalue"

TABLE = {
    "lenet-300-100": (),
    "residual": (*SHORT, "gram"),
    "attention": (*SHORT, "measure"),
    "large": SHORT[2:],
    "tiny": (*SHORT[:2], "dense", "dense anew"),
    "outputs": ("diagonal",),
}
"""Works of networks in the table of all of them; empty for all works, `SHORT` where a network is not named."""

HEAD = ("work", "library", "by", "best", "median", "times ours", "relative error")


def _cells(result: Timing, results: Sequence[Timing]) -> list[str]:
    ours, way = next(r for r in results if r.way.work == result.way.work), result.way
    named = [WORKS[way.work].title if result is ours else "", result.library, way.method]
    if result.failed:
        return [*named, "-", "-", "-", result.failed[:60]]
    times = result.passes / ours.passes
    compared = "" if result is ours else f"{times:.3g}{' ahead' * (times < AHEAD)}"
    return [*named, f"{result.passes:.3g}", f"{result.median:.3g}", compared, f"{max(result.errors):.1e}"]


if __name__ == "__main__":
    sys.exit(main())
