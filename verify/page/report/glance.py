"""The numbered statements of the papers at a glance: a line for each, on its model, as our copy reads, on networks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from verify.model import Standing, Verdict
from verify.page.report.findings import OnNetworks, how_closely, how_far, on_real_networks
from verify.page.report.statements import (
    capitalised,
    closed,
    first,
    importance,
    misprinted,
    place,
    stands,
    statement_of,
)
from verify.results import Results, Row

__all__ = ["PaperGlance", "Statement", "glances"]

MOST = 6
"""Statements of a paper that are shown."""

FEWEST = 2
"""Readings of an equation below which it is no main statement, unless it is judged on networks."""


class Statement(NamedTuple):
    """A numbered statement: what it is about, and in words what came of its readings.

    `holds` is how it does on its own model, corrected where our copy is misprinted; `misprint` what the table of
    misprints has of it, itself or what stands with it, `reads` how far off that is as our copy reads, if it is judged,
    by the row `read`, and `slip` whether a slip of the text conversion is likely there; `networks` what it comes to on
    real data, under its own condition and elsewhere. What is not judged is empty. `target` is the row that the verdict
    is of, `query` finds all readings.
    """

    number: str
    query: str
    title: str
    target: str
    verdict: str
    holds: str
    misprint: str
    reads: str
    read: str
    slip: bool
    networks: list[OnNetworks]
    readings: int


class PaperGlance(NamedTuple):
    """The main statements of one paper, in their order there."""

    paper: str
    statements: list[Statement]


def glances(results: Results, most: int = MOST) -> list[PaperGlance]:
    """The main statements, paper by paper, of those papers that number them."""
    papers = dict.fromkeys(
        [*(paper.id for paper in results.suite.papers), *(row.paper for row in results.rows)]
    )
    found = [PaperGlance(paper, _of_paper(results, paper, most)) for paper in papers]
    return [glance for glance in found if glance.statements]


def _of_paper(results: Results, paper: str, most: int) -> list[Statement]:
    entries = [entry for entry in results.inventory if entry.paper == paper]
    titles, places = {e.id: e.title for e in entries}, {e.id: k for k, e in enumerate(entries)}
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in results.rows:
        number = statement_of(row, results)
        if row.paper == paper and number != place(row, results):
            groups[number].append(row)
    wrong = {row.id for row in misprinted(results.rows)}
    main = {name: rows for name, rows in groups.items() if _is_main(name, rows)}
    ranked = sorted(main, key=lambda name: _rank(name, main[name], wrong))[:most]
    told = [(_entry_place(groups[name], places), name) for name in ranked]
    return [_statement(name, groups[name], results, titles, places, wrong) for _, name in sorted(told)]


def _is_main(name: str, rows: Sequence[Row]) -> bool:
    return importance(name) == 0 or len(rows) >= FEWEST or any(row.data for row in rows)


def _rank(name: str, rows: Sequence[Row], wrong: Collection[str]) -> tuple[int, bool, bool, int, str]:
    """Theorems first, then what is judged on networks, what our copy misprints, and what has the most readings."""
    has_misprint = any(row.id in wrong for row in rows)
    return importance(name), not any(row.data for row in rows), not has_misprint, -len(rows), name


def _statement(
    name: str,
    rows: Sequence[Row],
    results: Results,
    titles: Mapping[str, str],
    places: Mapping[str, int],
    wrong: Collection[str],
) -> Statement:
    stated = [
        row for row in rows if row.standing in (Standing.AS_STATED, Standing.CORRECTED) and not row.data
    ]
    lead = first(stated or rows, results, places)[0]
    about = next((entry for entry in lead.entries if entry in titles), "")
    misprints = [row for row in rows if row.id in wrong]
    judged = next((row for row in misprints if row.standing == Standing.MISPRINT), None)
    return Statement(
        number=capitalised(closed(name)),
        query=closed(name),
        title=titles.get(about, lead.quantity),
        target=f"row/{lead.id}",
        verdict=lead.verdict,
        holds="" if lead.data else _outcome(lead),
        misprint=capitalised(closed(stands(judged or misprints[0], results))) if misprints else "",
        reads=how_far(judged) if judged else "",
        read=f"row/{judged.id}" if judged else "",
        slip=any(row.slip for row in misprints),
        networks=on_real_networks(rows),
        readings=len(rows),
    )


def _entry_place(rows: Sequence[Row], places: Mapping[str, int]) -> int:
    return min(
        (places[entry] for row in rows for entry in row.entries if entry in places), default=len(places)
    )


def _outcome(row: Row) -> str:
    if row.verdict == Verdict.AGREES:
        return how_closely(row) or "holds"
    return how_far(row) if row.verdict == Verdict.DISAGREES else row.verdict
