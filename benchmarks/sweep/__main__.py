"""Ask every public entry about every model of the sweep, and write what came of it.

    python -m benchmarks.sweep --out sweep.csv

Prints what is not as expected: wrong, crashed, refused though there is an answer, or answered though there is none;
then the exit status is 1. The table has a line for each model and a column for each entry, with the relative error of
what is right, and last the sentences of the refusals. It takes 90 seconds of one core.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

import losscurv
from benchmarks.sweep import FAMILIES
from benchmarks.sweep.entries import FarError, entries
from benchmarks.sweep.listing import Listed, built
from benchmarks.sweep.reference import Reference


class Outcome(NamedTuple):
    """Outcome of one entry on one model."""

    family: str
    model: str
    entry: str
    outcome: str
    expected: bool
    error: float | None
    said: str
    seconds: float


def outcomes(family: str, name: str, listed: Listed, only: Sequence[str] = ()) -> Iterator[Outcome]:
    """Yield the outcomes of a model, entry by entry."""
    model, inputs, targets = built(name, listed)
    several = listed.cut and zip(inputs.split(listed.cut), targets.split(listed.cut), strict=True)
    data = list(several) if several else (inputs, targets)
    more = {} if isinstance(model, torch.nn.Module) else {"parameters": model.leaves}
    objective: list[Any] = []

    def asked(ask: Callable[[Any], float]) -> float:
        if not objective:
            objective.append(losscurv.Objective(model, data, listed.loss, **more))
        return ask(objective[0])

    if listed.refused:
        each = iter([("hessian", lambda o: float(losscurv.hessian(o).dense().norm()))])
    else:
        each = entries(listed, model, inputs, targets, Reference(name, listed))
    for entry, ask in each:
        if only and not any(words in entry for words in only):
            continue
        factors = entry in ("kfac", "ekfac") and (listed.mixed or not listed.sited)
        none = bool(listed.refused) or factors or entry in listed.refuses
        started, error, said = time.process_time(), None, ""
        try:
            error = asked(ask)
            outcome = "right" if error <= listed.tolerance and not listed.refused else "wrong"
        except FarError as far:
            outcome, said = "wrong", str(far)
        except ValueError as refusal:
            outcome, said = "refused", " ".join(str(refusal).split())
        except Exception as crash:
            outcome, said = "crashed", f"{type(crash).__name__}: {crash}"
        expected = outcome == ("refused" if none else "right") and listed.refused in said
        yield Outcome(family, name, entry, outcome, expected, error, said, time.process_time() - started)


def table(found: list[Outcome]) -> Iterator[list[str]]:
    """Yield a heading and a line for each model."""
    entries_of = list(dict.fromkeys(each.entry for each in found))
    yield ["family", "model", *entries_of, "said"]
    for family, model in dict.fromkeys((each.family, each.model) for each in found):
        own = {each.entry: each for each in found if each.model == model}
        cells = (own.get(entry) for entry in entries_of)
        yield [
            family,
            model,
            *("" if c is None else f"{c.error:.0e}" if c.outcome == "right" else c.outcome for c in cells),
            " | ".join(dict.fromkeys(each.said for each in own.values() if each.said)),
        ]


def main(arguments: list[str] | None = None) -> int:
    """Run the sweep and write its table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep")
    parser.add_argument("--out", type=Path, help="file for the table, as CSV")
    parser.add_argument("--models", default="", help="those with these words in their names")
    parser.add_argument("--entries", default="", help="names, or words of them, with commas between")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found: list[Outcome] = []
    for family, models in FAMILIES.items():
        for name, listed in models.items():
            if options.models in name:
                found += outcomes(family, name, listed, list(filter(None, options.entries.split(","))))
    for each in found:
        if not each.expected:
            error = "" if each.error is None else f" by {each.error:.1e}"
            print(f"{each.model}: {each.entry} {each.outcome}{error} {each.said}")
    if options.out:
        with options.out.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table(found))
    unexpected = sum(not each.expected for each in found)
    print(f"{dict(Counter(each.outcome for each in found))}, {unexpected} not as expected")
    return int(unexpected > 0)


if __name__ == "__main__":
    sys.exit(main())
