"""Does `losscurv.check` keep its promise? Thousands of checks of formulas whose truth is known, as a Markdown table.

``python -m benchmarks.check_calibration --checks 2000``: every law with a formula that is true, one that is 1.5 margins
off and one that is 5 % off, in turn too large and too small. A verdict is wrong if it agrees where the formula is off,
or disagrees where it is true, in any component. It takes a quarter of an hour on a busy core.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.timing import command, table
from verify.checking import check

ERROR = 1e-2
MARGIN = 0.02
SPREAD = 0.1
BUDGET = 20_000

OFF = {"true": 0.0, "1.5 margins off": 1.5 * MARGIN, "5 % off": 0.05}
"""By how much the formula is off."""

Generator = np.random.Generator


class Law(NamedTuple):
    """Replicates of mean `truth`, and how they are judged."""

    simulate: Callable[[Generator, int], Any]
    truth: Any = 1.0
    kind: str = "mean"


def vector(rng: Generator, size: int) -> np.ndarray:
    """Five components that share a third of their variance."""
    shared, own = rng.standard_normal((size, 1)), rng.standard_normal((size, 5))
    return np.arange(1, 6) * (1 + SPREAD * (math.sqrt(1 / 3) * shared + math.sqrt(2 / 3) * own))


LOGNORMAL = math.exp(0.5), math.sqrt(math.exp(2) - math.exp(1))
"""Mean and standard deviation."""

LAWS = {
    "normal": Law(lambda rng, size: 1 + SPREAD * rng.standard_normal(size)),
    "exponential": Law(lambda rng, size: 1 + SPREAD * (rng.exponential(size=size) - 1)),
    "lognormal(1)": Law(lambda rng, n: 1 + SPREAD * (rng.lognormal(size=n) - LOGNORMAL[0]) / LOGNORMAL[1]),
    "Bernoulli(0.95)": Law(lambda rng, size: rng.random(size) < 0.95, 0.95, "probability"),
    "vector of 5, one off": Law(vector, np.arange(1.0, 6.0)),
}


def formula(truth: Any, off: float, seed: int) -> Any:
    """A formula that is off, of a vector in one component only."""
    factor = 1 + off * (-1) ** seed
    return truth * factor if np.ndim(truth) == 0 else truth * np.where(np.arange(5) == seed % 5, factor, 1.0)


def row(name: str, words: str, checks: int) -> tuple[list[str], int]:
    """One line of the table, and how many checks had a wrong verdict."""
    law, off = LAWS[name], OFF[words]
    wrong, undecided, draws = 0, 0, list[int]()
    for seed in range(checks):
        predicted = formula(law.truth, off, seed)
        found = check(
            partial(lambda value: value, predicted), law.simulate, margin=MARGIN, kind=law.kind, error=ERROR,
            budget=BUDGET, vectorised=True, seed=seed,
        )  # fmt: skip
        right = np.ravel(np.asarray(predicted) == law.truth)
        never = {True: "disagrees", False: "agrees"}
        wrong += any(p.verdict == never[bool(r)] for p, r in zip(found.points, right, strict=True))
        undecided += found.verdict == "undecided"
        draws.append(found.draws)
    return [name, words, str(wrong), str(undecided), f"{statistics.median(draws):,.0f}"], wrong


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; the exit status is 1 if a row breaks the promise."""
    parser = command("benchmarks.check_calibration", __doc__, checks=2000)
    options = parser.parse_args(words)
    found = [row(name, off, options.checks) for name in LAWS for off in OFF]
    head = ("replicates", "formula", f"wrong verdicts of {options.checks:,}", "undecided", "median draws")
    print(table(head, [line for line, _ in found]))
    return int(any(wrong > ERROR * options.checks for _, wrong in found))


if __name__ == "__main__":
    raise SystemExit(main())
