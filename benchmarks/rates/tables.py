"""Tables of a half: results of the cells, and the distance of each rule from the best rate and from the edge."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rates.cells import Cell, Result, Results, best, edge, rate
from benchmarks.rates.rules import EDGES, RULES, WALK, WALK_EDGE, nearest_run
from benchmarks.timing import table

_GOOD = 0.1
"""Share of the gain of training that a good rate may lose."""


class Judged(NamedTuple):
    """Answer of a rule in a cell in which some rate trains.

    Attributes
    ----------
    cell, rule
        Cell and rule.
    ratio, edge_ratio
        Rate over the best rate, and over the largest rate that trains; None without an answer.
    above
        Whether the run at the rate does not train, and the rate is larger than the best.
    regret
        Loss above the best, relative to the gain of training over the better of start and constant output; infinite
        without an answer, and for rules of the edge, whose rates are not run.
    """

    cell: Cell
    rule: str
    ratio: float | None
    edge_ratio: float | None
    above: bool
    regret: float


def judged(results: Results) -> list[Judged]:
    """Return all answers in cells in which some rate trains."""
    return [
        _judge_answer(cell, result, rule, given)
        for cell, result in results.items()
        if edge(result.tried) is not None
        for rule, given in result.answers.items()
    ]


def _judge_answer(cell: Cell, result: Result, rule: str, given: float | None) -> Judged:
    last, least = edge(result.tried), best(result.tried)
    if given is None or last is None:
        return Judged(cell, rule, None, None, False, math.inf)
    regret, above = math.inf, False
    if rule not in EDGES:
        seen = result.runs[nearest_run(given)]
        regret, above = regretted(result, seen.loss), not seen.trains and given > rate(least)
    return Judged(cell, rule, given / rate(least), given / rate(last), above, regret)


def regretted(result: Result, loss: float) -> float:
    """Return the loss above the best of the grid, over the gain of the best; negative if a rule's run is better."""
    least = result.tried[best(result.tried)].loss
    return (loss - least) / (result.reference - least)


# --- tables ------------------------------------------------------------------------------------------------------


def tables(results: Results) -> str:
    """Return the tables as Markdown: cells, rules of each optimiser and state, trial runs, and the edge."""
    rows = judged(results)
    kinds = _group_by(rows, lambda row: f"{row.cell.optimiser}, {row.cell.state}")
    cells = _group_by(results, lambda cell: f"{cell.optimiser}, {cell.state}, B = {cell.batch_size}")
    parts = [_table("cells of", _CELLS, {kind: _cell_row(of, results) for kind, of in cells.items()})]
    for kind, of in kinds.items():
        to_train_with = [row for row in of if row.rule not in EDGES]
        parts.append(_table(kind, _RULES, _by_rule(to_train_with, _rule_row)))
    parts.append(_table("walk", _WALKS, {kind: _walk_row(of, results) for kind, of in kinds.items()}))
    plain = [row for row in rows if row.cell.optimiser == "sgd"]
    parts.append(_table("largest rate that trains, sgd", ("cells", "within 2x"), _by_rule(plain, _edge_row)))
    return "\n".join(parts)


def _group_by(rows: Iterable[Any], of: Callable[[Any], str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(of(row), []).append(row)
    return found


def _by_rule(
    rows: Sequence[Judged], line: Callable[[Sequence[Judged]], list[str]]
) -> dict[str, Sequence[str]]:
    grouped = _group_by(rows, lambda row: row.rule)
    return {rule: line(grouped[rule]) for rule in RULES if rule in grouped}


_CELLS = ("cells", "nothing trains", "two seeds within 1.5x")


def _cell_row(cells: Sequence[Cell], results: Results) -> list[str]:
    training = {c: best(results[c].tried) for c in cells if edge(results[c].tried) is not None}
    gaps = [
        abs(training[one] - training[other])  # one place is a factor of 1.41
        for one, other in combinations(training, 2)
        if one.network == other.network
    ]
    return [str(len(cells)), str(len(cells) - len(training)), _share([gap <= 1 for gap in gaps])]


_RULES = ("cells", "within 2x", "regret <= .1", "fails")


def _rule_row(rows: Sequence[Judged]) -> list[str]:
    good, fails = [row.regret <= _GOOD for row in rows], [row.above for row in rows]
    return [str(len(rows)), _within(row.ratio for row in rows), _share(good), _share(fails)]


def _edge_row(rows: Sequence[Judged]) -> list[str]:
    """Return the row of a rule for the largest rate that trains, for gradient descent at both states."""
    return [str(len(rows)), _within(row.edge_ratio for row in rows)]


_WALKS = (
    "rates given", "runs a size", "best over walk, .1", ".5", ".9", "edge over largest that trains, .1", ".5", ".9"
)  # fmt: skip


def _walk_row(rows: Sequence[Judged], results: Results) -> list[str]:
    """Return cost, and the quantiles of factors on searched rates, for `verify.practice.plan.uncertainty`."""
    best_over = [1 / row.ratio for row in rows if row.rule == WALK and row.ratio]
    edges = [1 / row.edge_ratio for row in rows if row.rule == WALK_EDGE and row.edge_ratio]
    cost = float(np.mean([results[row.cell].cost for row in rows]))
    return [str(len(best_over)), f"{cost:.2g}", *_quantiles(best_over), *_quantiles(edges)]


def _quantiles(values: Sequence[float]) -> list[str]:
    return [f"{np.quantile(values, share):.2g}" for share in (0.1, 0.5, 0.9)] if values else ["-"] * 3


def _within(ratios: Iterable[float | None]) -> str:
    """Return the share within a factor of 2; no answer is a miss."""
    # Two places of the grid are a factor of 2, but for rounding.
    return _share([ratio is not None and max(ratio, 1 / ratio) <= 2 + 1e-9 for ratio in ratios])


def _share(yes: Sequence[bool]) -> str:
    return f"{np.mean(yes):.2f}" if yes else "-"


def _table(title: str, head: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    return table([title, *head], ([name, *row] for name, row in rows.items())) + "\n"
