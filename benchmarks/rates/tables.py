"""Tables of a campaign: for each optimiser and state, how far the rates of rules are from the best one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.calibration.misses import clopper_pearson
from benchmarks.rates.campaign import Result, best, place, rate
from benchmarks.timing import table

_GOOD = 0.1
"""Share of the possible loss reduction that a good rate may lose."""

_CONFIDENCE = 0.9
"""Confidence of the one-sided lower bound of a share."""


class Judged(NamedTuple):
    """Answer of a rule for a network, state, optimiser and batch size.

    Attributes
    ----------
    rule, kind
        Rule, and `optimiser, state`.
    regret
        Loss above that of the best rate, over the loss reduction of the best rate. It is 1 if the training gains
        nothing, and without an answer: such a rate fails.
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
    return clopper_pearson(good, of, 2 * _CONFIDENCE - 1)[0]


HEAD = (
    "judgements", "regret <= .1", "lower bound", "mean regret", "fails", "within 2x", "best / rate", "steps a size"
)  # fmt: skip


def row(rows: Sequence[Judged]) -> list[str]:
    """Return the entries below `HEAD` of one rule; `best / rate` is the range from the 10 % to the 90 % quantile."""
    regrets = np.array([each.regret for each in rows])
    good, logs = (
        int((regrets <= _GOOD).sum()),
        np.array([-math.log2(each.ratio) for each in rows if each.ratio]),
    )
    near = f"{(abs(logs) <= 1.01).sum() / len(rows):.2f}"
    low, high = 2 ** np.quantile(logs, (0.1, 0.9)) if len(logs) else (0, 0)
    return [
        str(len(rows)),
        f"{good / len(rows):.2f}",
        f"{lower_bound(good, len(rows)):.2f}",
        f"{regrets.mean():.3f}",
        str((regrets >= 1).sum()),
        *([near, f"{low:.2g} to {high:.2g}"] if len(logs) else ["", ""]),
        f"{np.mean([each.steps for each in rows]):.0f}",
    ]


def tables(results: Iterable[Result]) -> str:
    """Return a table of rules for each optimiser and state, and for all of them; rules with few steps come first."""
    rows, parts = sorted(judged(results), key=lambda each: each.steps), list[str]()
    for kind in [*sorted({each.kind for each in rows}), ""]:
        by_rule: dict[str, list[Judged]] = {}
        for each in rows:
            if kind in ("", each.kind):
                by_rule.setdefault(each.rule, []).append(each)
        parts.append(table([kind or "all", *HEAD], ([name, *row(its)] for name, its in by_rule.items())))
    return "\n\n".join(parts)
