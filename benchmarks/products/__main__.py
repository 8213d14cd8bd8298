"""The command: what is timed, and the table or JSON of it."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from benchmarks.products import OURS, REPEATS, Bench, Timing, bench, chosen
from benchmarks.products.networks import NETWORKS, BenchNetwork
from benchmarks.products.works import WORKS, Case
from simulate import _checks
from simulate._checks import did_you_mean
from simulate.monte_carlo import resolve_device
from verify.endings import ended
from verify.practice.work import on_terminal

_SHOWN = 60
"""Characters of what a library raised, in the table."""


def main(words: Sequence[str] | None = None) -> int:
    """Time what the options ask for and print the table, or JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.products",
        description="Time curvature products beside those of other libraries, if installed.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="hessian, gauss-newton, columns, projected, eigenvalue, eigenvalues or density; of a perceptron"
        " trace or gram, of the tiny one dense (repeatable)",
    )
    parser.add_argument(
        "--network",
        metavar="NAME",
        default="lenet-300-100",
        help="lenet-300-100 (default), lenet-5, vgg, residual, attention or tiny",
    )
    parser.add_argument(
        "--samples", type=int, metavar="N", help="digits in a pass (default 1000 for perceptrons, else fewer)"
    )
    parser.add_argument(
        "--repeats",
        type=int,
        metavar="N",
        default=REPEATS,
        help="calls of each; slow ones fewer (default 30)",
    )
    parser.add_argument("--threads", type=int, metavar="N", default=1, help="threads to use (default 1)")
    parser.add_argument(
        "--device", metavar="NAME", default="cpu", help="cpu (default), cuda, cuda:<index> or auto"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args(words)
    return ended(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    threads, network = _checks.natural("threads", options.threads), _network(options.network)
    if options.samples is None:
        options.samples = network.samples
    samples = _checks.natural("samples", options.samples)
    only, repeats, device = options.only or (), options.repeats, resolve_device(options.device)
    chosen(only, network)
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
    """Return the table as Markdown."""
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


if __name__ == "__main__":
    sys.exit(main())
