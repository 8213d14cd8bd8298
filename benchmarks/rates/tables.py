"""Tables of a half: what the cells have shown, and how far each rule is from the best rate and from the edge."""

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
"""Of what training gains: so much may be lost."""


class Judged(NamedTuple):
    """A rule's answer in a cell in which something trains.

    Attributes
    ----------
    cell, rule
        Which.
    ratio
        The rate over the best one, or of a rule for the edge over the largest that trains; None without an answer.
    edge_ratio
        The rate over the largest that trains.
    above
        Whether the run at the rate does not train, and the rate is larger than the best.
    regret
        Loss that it costs, relative to what training gains over the better of start and constant.
    cost
        In runs.
    """

    cell: Cell
    rule: str
    ratio: float | None
    edge_ratio: float | None
    above: bool
    regret: float
    cost: float


def judged(files: Iterable[Records]) -> list[Judged]:
    """All answers in cells in which something trains."""
    return [
        _judged(records, cell, rule, answer)
        for records in files
        for (cell, rule), answer in records.answers.items()
        if cell in records.cells and edge(records.cells[cell].tried) is not None
    ]


def _judged(records: Records, cell: Cell, rule: str, answer: Answer) -> Judged:
    measured = records.cells[cell]
    last = edge(measured.tried)
    if answer.rate is None or last is None:
        return Judged(cell, rule, None, None, False, math.inf, answer.cost)
    least, seen = best(measured.tried), records.outcome(cell, _within(records, cell, answer.rate))
    if seen is None:  # rules for the edge are not followed
        regret, above = math.inf, False
    else:
        regret, above = regretted(measured, seen.loss), not seen.trains and answer.rate > rate(least)
    return Judged(cell, rule, answer.rate / rate(least), answer.rate / rate(last), above, regret, answer.cost)


def _within(records: Records, cell: Cell, wanted: float) -> int:
    """The place of a rate, or the outermost one that was run for rules."""
    run = [k for at, k in records.runs if at == cell] + list(records.cells[cell].tried)
    return min(max(place(wanted), min(run)), max(run))


def regretted(measured: Measured, loss: float) -> float:
    """Loss beyond the best of the grid, in what that gains; below 0 where a rule's run found a better one."""
    least = measured.tried[best(measured.tried)].loss
    return (loss - least) / (measured.reference - least)


# --- tables ------------------------------------------------------------------------------------------------------


def tables(files: Sequence[Records], known: Mapping[tuple[str, str], float] | None = None) -> str:
    """As Markdown: the cells, the rules of each optimiser and state, the edge, and rules times a constant.

    Parameters
    ----------
    files
        Of a half.
    known
        Constants of rules from the design half; those of these files themselves if None.
    """
    rows, parts = judged(files), [_cells(files)]
    groups = _grouped(rows, lambda row: f"{row.cell.optimiser}, {row.cell.state}")
    for title, of in groups.items():
        parts.append(_rules(title, _HEAD, [row for row in of if row.rule not in EDGES], _row))
    head = ("rates given", "best over walk, .1", ".5", ".9", "edge over largest that trains, .1", ".5", ".9")
    parts.append(_table("walk", head, {title: _interval_row(of) for title, of in groups.items()}))
    plain = [row for row in rows if row.cell.optimiser == "sgd"]
    parts.append(_rules("largest rate that trains, sgd", _HEAD[:4], plain, _edge_row))
    parts.append(_levelled(rows, constants(rows) if known is None else known))
    return "\n".join(parts)


def _grouped(rows: Iterable[Any], of: Callable[[Any], str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(of(row), []).append(row)
    return found


def _cells(files: Sequence[Records]) -> str:
    cells = {cell: measured for records in files for cell, measured in records.cells.items()}
    head = (
        "cells",
        "best at an end",
        "nothing trains",
        "edge not reached",
        "edge / best",
        "two seeds within 1.5x",
    )
    kinds = _grouped(cells, lambda cell: f"{cell.optimiser}, {cell.state}, B = {cell.batch_size}")
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
    """Places between the bests of two seeds; one place is a factor of 1.41, two are 2."""
    for one, its in cells.items():
        for other, others in cells.items():
            if one < other and other._replace(seed=one.seed) == one:
                yield best(its.tried) - best(others.tried)


def _rules(
    title: str, head: Sequence[str], rows: Sequence[Judged], cells: Callable[[list[Judged]], list[str]]
) -> str:
    return _table(title, head, {rule: cells(of) for rule, of in _by_rule(rows)})


def _row(rows: Sequence[Judged]) -> list[str]:
    return [
        str(len(rows)),
        *_factors([row.ratio for row in rows]),
        _share([row.above for row in rows]),
        _share([row.regret <= _GOOD for row in rows]),
        f"{np.mean([row.cost for row in rows]):.2g}",
    ]


def _edge_row(rows: Sequence[Judged]) -> list[str]:
    """Of plain descent at both states: who tells the largest rate that trains."""
    return [str(len(rows)), *_factors([row.edge_ratio for row in rows])]


def _interval_row(rows: Sequence[Judged]) -> list[str]:
    """What the walk's rates are to be multiplied by: what `verify.practice.plan.uncertainty` holds."""
    best_over = [1 / row.ratio for row in rows if row.rule == "walk" and row.ratio]
    edges = [1 / row.edge_ratio for row in rows if row.rule == "walk, largest that trains" and row.edge_ratio]
    return [str(len(best_over)), *_quantiles(best_over), *_quantiles(edges)]


def _quantiles(values: Sequence[float]) -> list[str]:
    return [f"{np.quantile(values, share):.2g}" for share in (0.1, 0.5, 0.9)] if values else ["-"] * 3


def constants(rows: Sequence[Judged]) -> dict[tuple[str, str], float]:
    """What each rule is to be multiplied by, by optimiser: the median of best over rule."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.ratio is not None:
            found.setdefault((row.cell.optimiser, row.rule), []).append(row.ratio)
    return {key: float(1 / np.median(ratios)) for key, ratios in found.items()}


def _levelled(rows: Sequence[Judged], known: Mapping[tuple[str, str], float]) -> str:
    """Rules times a constant: how much of the error is the level, and how much the shape."""
    lines: dict[str, list[str]] = {}
    for optimiser, of_it in _grouped(rows, lambda row: row.cell.optimiser).items():
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
    """Shares within 1.5 and 2, and the worst factor; no answer is a miss."""
    off = [math.inf if ratio is None else max(ratio, 1 / ratio) for ratio in ratios]
    given = [value for value in off if math.isfinite(value)]
    missing = f", none in {len(off) - len(given)}" if len(given) < len(off) else ""
    worst = f"{max(given):.2g}" if given else "-"
    return [_share([value <= limit for value in off]) for limit in (1.5, 2.0 + 1e-9)] + [worst + missing]


def _share(yes: Sequence[bool]) -> str:
    return f"{np.mean(yes):.2f}" if yes else "-"


def _table(title: str, head: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    return table([title, *head], ([name, *row] for name, row in rows.items())) + "\n"
