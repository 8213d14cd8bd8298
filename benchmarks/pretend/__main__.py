"""Run every experiment, observation and property on a pretended device, to find what a GPU refuses or never gets.

    python -m benchmarks.pretend                        all points
    python -m benchmarks.pretend --only karakida2019 --first    names with this text, the first point of each
    python -m benchmarks.pretend --first --rounding     find scores that depend on the last digit
    python -m benchmarks.pretend --first --device cuda  compare a real device with the CPU; nothing is counted

With `--rounding` the device rounds other than the CPU, as another machine may; what is in single precision is left out.

Each has a row: launches, synchronisations, the share of torch's work that the CPU did, and problems with the lines that
did most of the work.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from benchmarks.pretend.device import NAME
from benchmarks.pretend.rules import Rounding
from benchmarks.pretend.trials import CLOSE, SAME, SINGLE, Drawn, Trial, drawn, tried
from benchmarks.timing import command

MOST_BESIDE = 0.2
"""Share of the work that may stay on the CPU without `on_host`: preparation, and reading of results."""

HEAD = """| what | launches | waits | on the CPU | what, or what is wrong |
|---|---|---|---|---|"""


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if something was refused, differs, or stayed on the CPU without `on_host`."""
    parser = command("benchmarks.pretend", __doc__, only="", first=False, rounding=False, device=NAME)
    asked = parser.parse_args(words)
    warnings.simplefilter("ignore")
    bad, rounding = 0, Rounding() if asked.rounding else None
    print(HEAD)
    for one in drawn():
        if asked.only not in one.name or (rounding and one.single):
            continue
        for point in one.points[:1] if asked.first else one.points:
            trial = tried(one, point, one.size, rounding=rounding, device=asked.device)
            same, c = SAME if asked.device == NAME and not rounding else CLOSE, trial.counts
            wrong = complaint(one, trial, same, counted=asked.device == NAME)
            bad += bool(wrong)
            name = one.name if asked.first else f"{one.name} {point.canonical()}"
            note = wrong or one.on_host
            print(f"| {name} | {c.launches} | {c.waits} | {c.host_share:.0%} | {note} |", flush=True)
    return int(bad > 0)


def complaint(one: Drawn, trial: Trial, same: float = SAME, *, counted: bool = True) -> str:
    """Return the problem of one trial; empty if there is none."""
    share = trial.counts.host_share
    if trial.failure:
        return trial.failure
    # the device takes several vectors at once, which rounds differently in single precision
    if trial.gap > (SINGLE if one.single else same) and not (one.single and same > SAME):
        return f"{trial.score} differs from that of the CPU by {trial.gap:.2g}"
    if not counted:
        return ""
    if share > MOST_BESIDE and not one.on_host:
        lines = "; ".join(line for line, _ in trial.counts.host_work.most_common(3))
        return f"{share:.0%} of the work is done on the CPU: {lines or 'in numpy'}"
    if share <= MOST_BESIDE and one.on_host and trial.whole:
        return f"says that on the CPU is {one.on_host}, but {1 - share:.0%} of the work is done on the device"
    return ""


if __name__ == "__main__":
    sys.exit(main())
