"""Tables of a campaign: for each optimiser and state, how far the rates of rules are from the best one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from benchmarks.rates.campaign import Result, best, place, rate
from benchmarks.timing import table

_GOOD = 0.1
"""Share of the possible loss reduction that a good rate may lose."""

_CONFIDENCE = 0.9
"""Of the one-sided lower bound of a share."""


class Judged(NamedTuple):
    """Answer of a rule for a network, state, optimiser and batch size.

    Attributes
    ----------
    rule, kind
        Rule, and `optimiser, state`.
    regret
        Loss above that of the best rate, over the loss reduction of the best rate; at most 1, also without an answer.
    ratio
        Rate over the best rate; None without an answer and for optimisers that need no rate.
    steps
        Training steps of the rule for a batch size.
    """

    rule: str
    kind: str
    regret: float
    ratio: float | None
    steps: float

    @property
    def fails(self) -> bool:
        """Whether the training with the rate gained nothing."""
        return self.regret >= 1


def judged(results: Iterable[Result]) -> list[Judged]:
    """Return all answers at batch sizes at which some rate trains."""
    found: list[Judged] = []
    for result in results:
        _, state, optimiser = result.kind
        kind = f"{optimiser}, {state}"
        for size in result.losses:
            losses = result.grid(size)
            least = best(losses)

            def regret(loss: float, start: float = result.reference, low: float = losses[least]) -> float:
                return min((loss - low) / (start - low), 1.0)

            if not losses[least] < 0.99 * result.reference:
                continue
            for rule, answer in result.rules.items():
                given, steps = answer["rates"][size], answer["steps"] / len(result.losses)
                lost = regret(losses[place(given)]) if given else 1.0
                found.append(Judged(rule, kind, lost, given and given / rate(least), steps))
            for rule, runs in result.replaced.items():
                found.append(Judged(rule, kind, regret(float(np.mean(runs[size]))), None, 0.0))
    return found


def lower_bound(good: int, of: int) -> float:
    """Return the one-sided lower Clopper-Pearson bound of a share.

    >>> round(lower_bound(18, 18), 3), lower_bound(0, 18)
    (0.88, 0.0)
    """
    return float(beta.ppf(1 - _CONFIDENCE, good, of - good + 1)) if good else 0.0


HEAD = ("judgements", "regret <= .1", "lower bound", "mean regret", "within 2x", "fails", "steps a size")


def row(rows: Sequence[Judged]) -> list[str]:
    """Return the entries below `HEAD` of one rule."""
    good = sum(each.regret <= _GOOD for each in rows)
    ratios = [abs(math.log2(each.ratio)) <= 1.01 for each in rows if each.ratio]
    return [
        str(len(rows)),
        f"{good / len(rows):.2f}",
        f"{lower_bound(good, len(rows)):.2f}",
        f"{np.mean([each.regret for each in rows]):.3f}",
        f"{sum(ratios) / len(rows):.2f}" if ratios else "",
        str(sum(each.fails for each in rows)),
        f"{np.mean([each.steps for each in rows]):.0f}",
    ]


def tables(results: Iterable[Result], *, ranges_of: str = "plan") -> str:
    """Return a table of rules for each optimiser and state, for all of them, and the range of best over suggested."""
    rows, parts = judged(results), list[str]()
    kinds = list(dict.fromkeys(each.kind for each in rows))
    for kind in [*kinds, "all"]:
        of = [each for each in rows if kind in (each.kind, "all")]
        by_rule: dict[str, list[Judged]] = {}
        for each in sorted(of, key=lambda each: each.steps):
            by_rule.setdefault(each.rule, []).append(each)
        parts.append(table([kind, *HEAD], ([name, *row(its)] for name, its in by_rule.items())) + "\n")
    ranges = {
        kind: [1 / each.ratio for each in rows if each.ratio and (each.rule, each.kind) == (ranges_of, kind)]
        for kind in kinds
    }
    lines = (
        [kind, *(f"{np.quantile(x, q):.2g}" for q in (0.1, 0.5, 0.9))] for kind, x in ranges.items() if x
    )
    parts.append(table([f"best rate over that of {ranges_of}", "10 %", "50 %", "90 %"], lines))
    return "\n".join(parts)
