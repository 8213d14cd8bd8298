"""``losscurv bench``: the cost of our curvature products beside those of other libraries, in one process.

The unit is one forward and one backward pass of the same network on the same samples, timed right before every call,
so that a machine that is slow for a while is slow for both. What can be prepared once and used again, operators and
the graphs they keep, is ready before. Every result is compared with one in float64.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import math
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from simulate import _checks
from simulate._checks import did_you_mean
from simulate.monte_carlo import resolve_device
from simulate.objectives.restoring import as_found
from verify.practice.bench.networks import NETWORKS, BenchNetwork
from verify.practice.bench.peers import Library, installed
from verify.practice.bench.works import WORKS, Benchmark, Call, Case, Way
from verify.practice.work import Tell, Work, on_terminal

__all__ = ["REPEATS", "Bench", "Timing", "bench", "run_bench"]

REPEATS = 30

BUDGET, LEAST = 2.0, 2
"""Seconds after which a way is not repeated once more, and how often even the slowest is."""

OURS = "losscurv"
_FIRST = 0.3
"""About the share of the time that first calls take, for the progress bar."""

_SHOWN = 60
"""Characters of what a library raised, in the table."""

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
    works, repeats = _chosen(only, case.network), _checks.natural("repeats", repeats)
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


def _chosen(only: Sequence[str], network: BenchNetwork) -> list[Benchmark]:
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


# --- the command ------------------------------------------------------------------------------------------------


def run_bench(options: argparse.Namespace) -> int:
    """Time what the options ask for and print the table, or JSON."""
    threads, network = _checks.natural("threads", options.threads), _network(options.network)
    if options.samples is None:
        options.samples = network.samples
    samples = _checks.natural("samples", options.samples)
    only, repeats, device = options.only or (), options.repeats, resolve_device(options.device)
    _chosen(only, network)
    _checks.natural("repeats", repeats)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads), on_terminal("curvature products") as tell:
            found = bench(Case(samples, device, network=network), only=only, repeats=repeats, tell=tell)
    finally:
        torch.set_num_threads(before)
    print(_json(found, options, device) if options.json else _text(found, options, device))
    return 0


def _network(name: str) -> BenchNetwork:
    if name not in NETWORKS:
        raise ValueError(
            f"network must be one of {', '.join(NETWORKS)}, got {name!r}{did_you_mean(name, NETWORKS)}"
        )
    return NETWORKS[name]


def _json(found: Bench, options: argparse.Namespace, device: str) -> str:
    record = {
        "setting": {
            **_setting(device),
            "network": options.network,
            "threads": options.threads,
            "samples": options.samples,
        },
        "unit": {"best": min(found.units), "median": statistics.median(found.units), "busy": found.busy},
        "missing": found.missing,
        "results": [_record(result) for result in found.results],
    }
    return json.dumps(record, indent=1, allow_nan=False)


def _setting(device: str) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu",
        "cores": os.cpu_count(),
    }


def _record(result: Timing) -> dict[str, Any]:
    told = {name: getattr(result, name) for name in ("work", "library", "version", "method", "exact")}
    if result.failed:
        return {**told, "failed": result.failed}
    numbers = {
        "passes": result.passes,
        "median": result.median,
        "quartiles": result.quartiles,
        "runs": len(result.seconds),
    }
    return {**told, **numbers, "relative error": max(result.errors)}


def _text(found: Bench, options: argparse.Namespace, device: str) -> str:
    setting, title = _setting(device), NETWORKS[options.network].title
    best, median = (1000 * seconds for seconds in (min(found.units), statistics.median(found.units)))
    lines = [
        f"{title} on {options.samples} digits, float32; Python {setting['python']}, torch {setting['torch']};"
        f" {setting['device']}, {options.threads} of {setting['cores']} cores",
        f"unit: one forward and backward pass, {best:.3g} ms at best, {median:.3g} ms in the median",
        "",
        _table(found.results),
        "",
    ]
    if not math.isnan(found.farthest):
        lines.append(f"largest relative error of what is exact but for rounding: {found.farthest:.0e}")
    lines += [f"ahead of us: {line}" for line in _ahead(found.results)]
    if found.missing:
        lines.append(f"not installed: {', '.join(found.missing)}")
    if found.busy:
        lines.append("the machine was busy with something else: compare medians, or repeat on a quiet one")
    return "\n".join(lines)


def _ahead(results: Sequence[Timing]) -> list[str]:
    """Who is faster at what, by the best of all calls."""
    lines: list[str] = []
    for work in WORKS:
        done = [r for r in results if r.work == work.name and not r.failed]
        ours = min((r.passes for r in done if r.library == OURS), default=0.0)
        lines += [
            f"{r.library} by {r.method}, {work.title}: {_ratio(r.passes / ours)} of our time,"
            f" relative error {max(r.errors):.0e}"
            for r in done
            if r.library != OURS and r.passes < ours
        ]
    return lines


def _table(results: Sequence[Timing]) -> str:
    """In Markdown that reads well as text."""
    head = ["work", "library", "by", "best", "median", "quartiles", "times ours", "relative error", "runs"]
    rows = [head, *(_cells(result, results) for result in results)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in lines)


def _cells(result: Timing, results: Sequence[Timing]) -> list[str]:
    ours = next(r for r in results if r.work == result.work)
    title = next(work.title for work in WORKS if work.name == result.work) if result is ours else ""
    names = [
        title,
        f"{result.library} {result.version}".strip() if result.library != OURS else OURS,
        result.method,
    ]
    if result.failed:
        return [*names, "-", "-", "-", "-", result.failed[:_SHOWN], "0"]
    times = "" if result is ours else _ratio(result.passes / ours.passes)
    spread = "-".join(map(_ratio, result.quartiles))
    error = f"{max(result.errors):.1e}"
    return [
        *names,
        _ratio(result.passes),
        _ratio(result.median),
        spread,
        times,
        error,
        str(len(result.seconds)),
    ]


def _ratio(times: float) -> str:
    return f"{times:.2f}" if times < 10 else f"{times:.1f}" if times < 100 else f"{times:.0f}"
