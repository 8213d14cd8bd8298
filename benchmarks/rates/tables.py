"""Tables of a half: results of the cells, and the distance of each rule from the best rate and from the edge."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rates.cells import Answer, Cell, Measured, Records, at_an_end, best, edge, place, rate
from benchmarks.rates.rules import EDGES, LOOKS
from benchmarks.timing import table

_HEAD = ("cells", "within 1.5x", "within 2x", "worst", "above the edge", "regret <= .1", "runs a size")
_GOOD = 0.1
"""Share of the gain of training that a good rate may lose."""


class Judged(NamedTuple):
    """Answer of a rule in a cell in which some rate trains.

    Attributes
    ----------
    cell, rule
        Cell and rule.
    ratio
        Rate over the best rate; None without an answer.
    edge_ratio
        Rate over the largest rate that trains; None without an answer.
    above
        Whether the run at the rate does not train, and the rate is larger than the best.
    regret
        Loss above the best, relative to the gain of training over the better of start and constant output.
    cost
        Cost in runs.
    """

    cell: Cell
    rule: str
    ratio: float | None
    edge_ratio: float | None
    above: bool
    regret: float
    cost: float


def judged(files: Iterable[Records]) -> list[Judged]:
    """Return all answers in cells in which some rate trains."""
    return [
        _judge_answer(records, cell, rule, answer)
        for records in files
        for (cell, rule), answer in records.answers.items()
        if cell in records.cells and edge(records.cells[cell].tried) is not None
    ]


def _judge_answer(records: Records, cell: Cell, rule: str, answer: Answer) -> Judged:
    measured = records.cells[cell]
    last = edge(measured.tried)
    if answer.rate is None or last is None:
        return Judged(cell, rule, None, None, False, math.inf, answer.cost)
    least, seen = best(measured.tried), records.outcome(cell, _nearest_run(records, cell, answer.rate))
    if seen is None:  # rates of rules for the edge are not run
        regret, above = math.inf, False
    else:
        regret, above = regretted(measured, seen.loss), not seen.trains and answer.rate > rate(least)
    return Judged(cell, rule, answer.rate / rate(least), answer.rate / rate(last), above, regret, answer.cost)


def _nearest_run(records: Records, cell: Cell, wanted: float) -> int:
    """Return the place of a rate, or the outermost place that was run."""
    run = [k for at, k in records.runs if at == cell] + list(records.cells[cell].tried)
    return min(max(place(wanted), min(run)), max(run))


def regretted(measured: Measured, loss: float) -> float:
    """Return the loss above the best of the grid, over the gain of the best; negative if a rule's run is better."""
    least = measured.tried[best(measured.tried)].loss
    return (loss - least) / (measured.reference - least)


# --- tables ------------------------------------------------------------------------------------------------------


def tables(files: Sequence[Records], known: Mapping[tuple[str, str], float] | None = None) -> str:
    """Return the tables as Markdown: cells, rules of each optimiser and state, the edge, and rules times a constant.

    Parameters
    ----------
    files
        Records of a half.
    known
        Constants of rules from the design half; from these files if None.
    """
    rows, parts = judged(files), [_cells_table(files)]
    groups = _group_by(rows, lambda row: f"{row.cell.optimiser}, {row.cell.state}")
    for title, of in groups.items():
        parts.append(_rules_table(title, _HEAD, [row for row in of if row.rule not in EDGES], _rule_row))
    head = ("rates given", "best over walk, .1", ".5", ".9", "edge over largest that trains, .1", ".5", ".9")
    parts.append(_table("walk", head, {title: _interval_row(of) for title, of in groups.items()}))
    plain = [row for row in rows if row.cell.optimiser == "sgd"]
    parts.append(_rules_table("largest rate that trains, sgd", _HEAD[:4], plain, _edge_row))
    parts.append(_constants_table(rows, constants(rows) if known is None else known))
    return "\n".join(parts)


def _group_by(rows: Iterable[Any], of: Callable[[Any], str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(of(row), []).append(row)
    return found


def _cells_table(files: Sequence[Records]) -> str:
    cells = {cell: measured for records in files for cell, measured in records.cells.items()}
    head = (
        "cells",
        "best at an end",
        "nothing trains",
        "edge not reached",
        "edge / best",
        "two seeds within 1.5x",
    )
    kinds = _group_by(cells, lambda cell: f"{cell.optimiser}, {cell.state}, B = {cell.batch_size}")
    return _table(
        "cells of", head, {kind: _cell_row({c: cells[c] for c in of}) for kind, of in kinds.items()}
    )


def _cell_row(cells: Mapping[Cell, Measured]) -> list[str]:
    training = {c: m for c, m in cells.items() if edge(m.tried) is not None}
    ratios = [rate((edge(m.tried) or 0) - best(m.tried)) for m in training.values()]
    return [
        str(len(cells)),
        str(sum(at_an_end(m.tried) for m in cells.values())),
        str(len(cells) - len(training)),
        str(sum(edge(m.tried) == max(m.tried) for m in training.values())),
        f"{np.median(ratios):.2g} ({min(ratios):.2g} to {max(ratios):.2g})" if ratios else "-",
        _share([abs(k) <= 1 for k in _seed_gaps(training)]),
    ]


def _seed_gaps(cells: Mapping[Cell, Measured]) -> Iterator[int]:
    """Yield the places between the best rates of two seeds; one place is a factor of 1.41."""
    for one, its in cells.items():
        for other, others in cells.items():
            if one < other and other._replace(seed=one.seed) == one:
                yield best(its.tried) - best(others.tried)


def _rules_table(
    title: str, head: Sequence[str], rows: Sequence[Judged], cells: Callable[[list[Judged]], list[str]]
) -> str:
    return _table(title, head, {rule: cells(of) for rule, of in _by_rule(rows)})


def _rule_row(rows: Sequence[Judged]) -> list[str]:
    return [
        str(len(rows)),
        *_factors([row.ratio for row in rows]),
        _share([row.above for row in rows]),
        _share([row.regret <= _GOOD for row in rows]),
        f"{np.mean([row.cost for row in rows]):.2g}",
    ]


def _edge_row(rows: Sequence[Judged]) -> list[str]:
    """Return the row of a rule for the largest rate that trains, for gradient descent at both states."""
    return [str(len(rows)), *_factors([row.edge_ratio for row in rows])]


def _interval_row(rows: Sequence[Judged]) -> list[str]:
    """Return the quantiles of factors on searched rates, for `verify.practice.plan.uncertainty`."""
    best_over = [1 / row.ratio for row in rows if row.rule == "walk" and row.ratio]
    edges = [1 / row.edge_ratio for row in rows if row.rule == "walk, largest that trains" and row.edge_ratio]
    return [str(len(best_over)), *_quantiles(best_over), *_quantiles(edges)]


def _quantiles(values: Sequence[float]) -> list[str]:
    return [f"{np.quantile(values, share):.2g}" for share in (0.1, 0.5, 0.9)] if values else ["-"] * 3


def constants(rows: Sequence[Judged]) -> dict[tuple[str, str], float]:
    """Return the factor for each rule, by optimiser: the median of best rate over the rule's rate."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.ratio is not None:
            found.setdefault((row.cell.optimiser, row.rule), []).append(row.ratio)
    return {key: float(1 / np.median(ratios)) for key, ratios in found.items()}


def _constants_table(rows: Sequence[Judged], known: Mapping[tuple[str, str], float]) -> str:
    """Return the table of rules times a constant, which separates errors of level and of shape."""
    lines: dict[str, list[str]] = {}
    for optimiser, of_it in _group_by(rows, lambda row: row.cell.optimiser).items():
        for rule, of in _by_rule(of_it):
            if rule not in EDGES and (optimiser, rule) in known:
                factor = known[optimiser, rule]
                ratios = [None if row.ratio is None else factor * row.ratio for row in of]
                lines[f"{optimiser}: {rule}"] = [f"{factor:.2g}", *_factors(ratios)]
    return _table("times a constant", ("constant", *_HEAD[1:4]), lines)


def _by_rule(rows: Sequence[Judged]) -> Iterator[tuple[str, list[Judged]]]:
    for name in (name for look in LOOKS for name in look.names):
        found = [row for row in rows if row.rule == name]
        if found:
            yield name, found


def _factors(ratios: Sequence[float | None]) -> list[str]:
    """Return the shares within 1.5 and 2, and the worst factor; no answer is a miss."""
    off = [math.inf if ratio is None else max(ratio, 1 / ratio) for ratio in ratios]
    given = [value for value in off if math.isfinite(value)]
    missing = f", none in {len(off) - len(given)}" if len(given) < len(off) else ""
    worst = f"{max(given):.2g}" if given else "-"
    return [_share([value <= limit for value in off]) for limit in (1.5, 2.0 + 1e-9)] + [worst + missing]


def _share(yes: Sequence[bool]) -> str:
    return f"{np.mean(yes):.2f}" if yes else "-"


def _table(title: str, head: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    return table([title, *head], ([name, *row] for name, row in rows.items())) + "\n"
