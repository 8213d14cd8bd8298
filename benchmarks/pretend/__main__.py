"""What would a GPU refuse, and what would never reach it? Every experiment, observation and property, at every point.

    python -m benchmarks.pretend                        all points
    python -m benchmarks.pretend --only karakida2019 --first
    python -m benchmarks.pretend --first --markdown     the table of docs/devices.md
    python -m benchmarks.pretend --first --rounding     whose scores hang on the last digit

A line for each: what was refused, or launches, synchronisations and the share of torch's work that the CPU did, with
the line that did most of it.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.pretend.rounding import Rounding
from benchmarks.pretend.trials import CLOSE, SAME, SINGLE, Drawn, Trial, drawn, tried

MOST_BESIDE = 0.2
"""Share of the work that may stay on the CPU unannounced: what prepares, and what reads results."""


HEAD = """| what | launches | waits | on the CPU | what, or what is wrong |
|---|---|---|---|---|"""


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; 1 if something was refused, differs, or stayed on the CPU unannounced."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pretend", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="those with this in their name")
    parser.add_argument("--first", action="store_true", help="the first point of each only")
    parser.add_argument(
        "--launches", type=float, default=math.inf, metavar="N", help="end each after so many (no)"
    )
    parser.add_argument("--size", type=int, default=2, metavar="N", help="replicates of a block (2)")
    parser.add_argument(
        "--rounding",
        action="store_true",
        help="round otherwise than the CPU, as another machine may; what is in single precision is left out",
    )
    parser.add_argument("--markdown", action="store_true", help="as rows of a table")
    asked = parser.parse_args(words)
    warnings.simplefilter("ignore")
    bad = 0
    if asked.markdown:
        print(HEAD)
    named = (one for one in drawn() if asked.only in one.name)
    for one in named if not asked.rounding else (one for one in named if not one.single):
        for trial in _trials(one, asked):
            wrong = complaint(one, trial, CLOSE if asked.rounding else SAME)
            bad += bool(wrong)
            print((_row if asked.markdown else _line)(one, trial, wrong), flush=True)
    return int(bad > 0)


def complaint(one: Drawn, trial: Trial, same: float = SAME) -> str:
    """What is wrong with one trial; empty if nothing is."""
    share = trial.counts.host_share
    if trial.failure:
        return trial.failure
    # several vectors go at once there, which single precision rounds otherwise
    if trial.gap > (SINGLE if one.single else same) and not (one.single and same > SAME):
        return f"{trial.score} differs from that of the CPU by {trial.gap:.2g}"
    if share > MOST_BESIDE and not one.on_host:
        lines = "; ".join(line for line, _ in trial.counts.host_work.most_common(3))
        return f"{share:.0%} of the work is done on the CPU: {lines or 'in numpy'}"
    if share <= MOST_BESIDE and one.on_host and trial.whole:
        return f"says that on the CPU is {one.on_host}, but {1 - share:.0%} of the work is done on the device"
    return ""


def _trials(one: Drawn, asked: argparse.Namespace) -> Iterator[Trial]:
    points: Iterable = one.points[:1] if asked.first else one.points
    size = 1 if one.kind == "observation" else asked.size  # as a run draws them
    rounding = Rounding() if asked.rounding else None
    return (tried(one, point, size, most=asked.launches, rounding=rounding) for point in points)


def _line(one: Drawn, trial: Trial, wrong: str) -> str:
    c = trial.counts
    more = "" if trial.whole else " and more"
    numbers = (
        f"{c.launches}{more} launches, {c.waits} waits, {c.host_share:.0%} on the CPU, {trial.seconds:.2f} s"
    )
    return f"{one.name}: {numbers}{f'; {wrong}' if wrong else ''}"


def _row(one: Drawn, trial: Trial, wrong: str) -> str:
    c = trial.counts
    more = "" if trial.whole else " and more"
    return f"| {one.name} | {c.launches}{more} | {c.waits} | {c.host_share:.0%} | {wrong or one.on_host} |"


if __name__ == "__main__":
    sys.exit(main())
