"""All claims at a glance: a mark for each, stacked by paper at its largest deviation in margins."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from verify.model import Verdict
from verify.page import wording
from verify.page.outcomes import MARKS, mark_of
from verify.page.statements import first_authors, largest_margins, rows_by_paper, rows_of_claims
from verify.results import Results, Row

DECADES = range(-2, 3)
"""Decades of the deviation in margins: 0.01 to 1000."""

GROUPS, BINS = 5, 4
"""Groups of a decade, and columns of a group; on a narrow page a group is one column."""

BEYOND = 1.05
"""Margins at which a reading is drawn that fails although it deviates by less than a margin."""


class Dot(NamedTuple):
    """A claim: its mark, the row that it leads to, and its name with what came of it."""

    mark: str
    target: str
    words: str


class Strip(NamedTuple):
    """Claims of a paper: without deviation, by decade, group and column of their deviation, and beyond all of them."""

    name: str
    claims: int
    exact: list[Dot]
    decades: list[list[list[list[Dot]]]]
    outright: list[Dot]


def strips(results: Results) -> list[Strip]:
    """Return the claims of each paper; of a column those that do not hold come first."""
    names = first_authors(results)
    return [
        _strip(names[paper], rows_of_claims(rows).values()) for paper, rows in rows_by_paper(results).items()
    ]


def _strip(name: str, claims: Collection[Sequence[Row]]) -> Strip:
    exact: list[Dot] = []
    outright: list[Dot] = []
    decades = [[[list[Dot]() for _ in range(BINS)] for _ in range(GROUPS)] for _ in DECADES]
    found = [(mark_of(rows), *_deviation(rows)) for rows in claims]
    for mark, row, margins in sorted(found, key=lambda item: (-[*MARKS].index(item[0]), item[2])):
        dot = Dot(mark, f"row/{row.id}", f"{_name(row)}: {MARKS[mark]}{_told(margins, row)}")
        if margins == 0:
            exact.append(dot)
        elif margins >= 10.0**DECADES.stop:
            outright.append(dot)
        else:
            place = max(0, int((math.log10(margins) - DECADES.start) * GROUPS * BINS))
            decade, column = divmod(place, GROUPS * BINS)
            decades[decade][column // BINS][column % BINS].append(dot)
    return Strip(name, len(claims), exact, decades, outright)


def _deviation(rows: Sequence[Row]) -> tuple[Row, float]:
    """Return the reading that fails, or else the first, and its largest deviation; 0 of a bound that is kept."""
    lead = next((row for row in rows if row.verdict == Verdict.DISAGREES), rows[0])
    margins = largest_margins(lead)
    if lead.verdict == Verdict.DISAGREES:
        return lead, max(margins, BEYOND)
    return lead, 0.0 if margins <= 10.0**DECADES.start else margins


def _name(row: Row) -> str:
    return row.claim.partition("/")[2].replace("-", " ")


def _told(margins: float, row: Row) -> str:
    number = "" if margins in (0.0, BEYOND, math.inf) else f", {wording.numeral(margins, 2)} margins"
    return number + f", a surprise: {row.expected} was expected" * row.surprise
