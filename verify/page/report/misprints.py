"""What our copies of the papers misprint, in one table: as they read, corrected, and how far off, from the results."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from verify.model import Standing
from verify.page.report.findings import corrections, how_closely, how_far
from verify.page.report.statements import (
    capitalised,
    closed,
    first,
    mended,
    misprinted,
    place,
    stands,
)
from verify.results import Results, Row

__all__ = ["MisprintTable", "PaperMisprints", "misprint_table"]


class Misread(NamedTuple):
    """A formula as our copy reads: where, what is wrong with it, by how much, and what replaces it.

    Formulas are LaTeX; `corrected` and how closely it `holds` are empty where nothing is judged beside it. `target` is
    the row that fails, `readings` how many have this formula, and `ids` those that fail and those that agree instead.

    `slip`: of the text conversion, is likely. Where what our copy has is not judged, no reading fails: `printed` and
    `off` are empty, `quoted` has its own words, and `target` is the row that agrees.
    """

    where: str
    words: str
    printed: str
    corrected: str
    holds: str
    off: str
    target: str
    readings: int
    quoted: str
    slip: bool
    ids: list[str]


class Misprint(NamedTuple):
    """A numbered statement that is misprinted: its lines in the table, and the row whose entries it is of."""

    on: str
    row: Row
    lines: list[Misread]


class PaperMisprints(NamedTuple):
    """The misprints of one paper, in the order of its entries."""

    paper: str
    misprints: list[Misprint]


class MisprintTable(NamedTuple):
    """All misprints, and how their counts fit together.

    `readings` fail, of so many `statements` and `formulas`, the lines of the table; `corrected` ones agree, `beside`
    them or where what our copy has is not judged.
    """

    papers: list[PaperMisprints]
    readings: int
    statements: int
    formulas: int
    corrected: int
    beside: int


def misprint_table(results: Results) -> MisprintTable | None:
    """All that our copies misprint, as `misprinted` says; None without any.

    Readings of one numbered statement, the one that has the slip, stand together, and of these the ones of one formula
    in a line.
    """
    groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in misprinted(results.rows):
        groups[row.paper, stands(row, results)].append(row)
    if not groups:
        return None
    beside, places = corrections(results.rows), {(e.paper, e.id): k for k, e in enumerate(results.inventory)}
    papers = [
        PaperMisprints(
            paper,
            sorted(
                (_misprint(rows, results, beside, places) for (of, _), rows in groups.items() if of == paper),
                key=lambda found: _entry_place(found.row, places),
            ),
        )
        for paper in dict.fromkeys(paper for paper, _ in groups)
    ]
    wrong = [row for rows in groups.values() for row in rows if row.standing == Standing.MISPRINT]
    right = mended(results.rows)
    claims = {row.claim for row in wrong}
    return MisprintTable(
        papers,
        readings=len(wrong),
        statements=len(groups),
        formulas=sum(len(misprint.lines) for paper in papers for misprint in paper.misprints),
        corrected=len(right),
        beside=sum(row.claim in claims for row in right),
    )


def _misprint(
    rows: Sequence[Row],
    results: Results,
    beside: Mapping[str, Row],
    places: Mapping[tuple[str, str], int],
) -> Misprint:
    lead, *_ = first(
        rows, results, {name: k for (paper, name), k in places.items() if paper == rows[0].paper}
    )
    formulas: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        formulas[row.statement].append(row)
    judged = {row.id for row in rows if row.standing == Standing.MISPRINT}
    lines = [
        (_line if of_it[0].id in judged else _unread)(of_it, results, beside) for of_it in formulas.values()
    ]
    return Misprint(capitalised(closed(stands(lead, results))), lead, lines)


def _line(rows: Sequence[Row], results: Results, beside: Mapping[str, Row]) -> Misread:
    row = rows[0]
    instead = beside.get(row.claim)
    return Misread(
        where=row.place or place(row, results),
        words=what_is_wrong(row.finding),
        printed=row.statement,
        corrected=instead.statement if instead else "",
        holds=how_closely(instead) if instead else "",
        off=how_far(row),
        target=f"row/{row.id}",
        readings=len(rows),
        quoted="",
        slip=row.slip,
        ids=[row.id for row in rows] + [beside[row.claim].id for row in rows if row.claim in beside],
    )


def _unread(rows: Sequence[Row], results: Results, _: Mapping[str, Row]) -> Misread:
    """A line of corrected readings alone."""
    row = rows[0]
    return Misread(
        where=row.place or place(row, results),
        words=what_is_wrong(row.finding),
        printed="",
        corrected=row.statement,
        holds=how_closely(row),
        off="",
        target=f"row/{row.id}",
        readings=0,
        quoted=row.words,
        slip=row.slip,
        ids=[row.id for row in rows],
    )


def what_is_wrong(finding: str) -> str:
    """The first sentence of a finding; that our copy reads so is said by the heading.

    >>> what_is_wrong("As our copy reads, a square is missing; P says so. More of it.")
    'a square is missing; P says so.'
    """
    return _AS_READ.sub("", re.split(r"(?<=\.)\s+(?=[A-Z])", finding)[0])


_AS_READ = re.compile(r"^As our copy reads,? ")


def _entry_place(row: Row, places: Mapping[tuple[str, str], int]) -> int:
    return min(
        (places[row.paper, name] for name in row.entries if (row.paper, name) in places), default=len(places)
    )
