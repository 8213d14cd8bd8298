"""Tables over all readings: misprints, the headline, margins and histories."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from verify.judging.power import factor
from verify.model import Standing, Verdict, raised
from verify.page import wording
from verify.page.cards import sensitivity
from verify.page.counts import percent
from verify.page.report.statements import (
    corrections,
    distinct_statements,
    entry_order,
    foremost,
    how_closely,
    how_far,
    mended,
    misprinted,
    place,
    slip_stands,
    upshot,
)
from verify.page.vocabulary import EXACT, STANDINGS
from verify.results import Results, Row

# --- misprints ---------------------------------------------------------------------------------------------------


class Misread(NamedTuple):
    """A formula as our copy reads: where, what is wrong with it, by how much, and what replaces it.

    Formulas are LaTeX; `corrected` and how closely it `holds` are empty where nothing is judged beside it. `target` is
    the row that fails, and `readings` how many have this formula.

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


class Misprint(NamedTuple):
    """A numbered statement that is misprinted: its lines in the table, and the row whose entries it is of."""

    on: str
    row: Row
    lines: list[Misread]


class MisprintTable(NamedTuple):
    """All misprints by paper, and how their counts fit together.

    `readings` fail, of so many `statements` and `formulas`, the lines of the table; `corrected` ones agree, `beside`
    them or where what our copy has is not judged.
    """

    papers: dict[str, list[Misprint]]
    readings: int
    statements: int
    formulas: int
    corrected: int
    beside: int


def misprint_table(results: Results) -> MisprintTable | None:
    """All that our copies misprint, as `misprinted` says, in the order of the entries; None without any.

    Readings of one numbered statement, the one that has the slip, stand together, and of these the ones of one formula
    in a line.
    """
    groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in misprinted(results.rows):
        groups[row.paper, slip_stands(row, results)].append(row)
    if not groups:
        return None
    beside = corrections(results.rows)
    papers: dict[str, list[Misprint]] = {}
    for (paper, on), rows in groups.items():
        formulas: defaultdict[str, list[Row]] = defaultdict(list)
        for row in rows:
            formulas[row.statement].append(row)
        lines = [_misread(of_it, results, beside) for of_it in formulas.values()]
        papers.setdefault(paper, []).append(Misprint(on, foremost(rows, results)[0], lines))
    for listed in papers.values():
        listed.sort(key=lambda found: entry_order(found.row, results))
    claims = [row.claim for rows in groups.values() for row in rows if row.standing == Standing.MISPRINT]
    right = mended(results.rows)
    return MisprintTable(
        papers,
        readings=len(claims),
        statements=len(groups),
        formulas=sum(len(misprint.lines) for listed in papers.values() for misprint in listed),
        corrected=len(right),
        beside=sum(row.claim in claims for row in right),
    )


def _misread(rows: Sequence[Row], results: Results, beside: Mapping[str, Row]) -> Misread:
    row, judged = rows[0], rows[0].standing == Standing.MISPRINT
    instead = beside.get(row.claim) if judged else row
    return Misread(
        where=row.place or place(row, results),
        words=what_is_wrong(row.finding),
        printed=row.statement if judged else "",
        corrected=instead.statement if instead else "",
        holds=how_closely(instead) if instead else "",
        off=how_far(row) if judged else "",
        target=f"row/{row.id}",
        readings=len(rows) if judged else 0,
        quoted="" if judged else row.words,
        slip=row.slip,
    )


def what_is_wrong(finding: str) -> str:
    """The first sentence of a finding; that our copy reads so is said by the heading.

    >>> what_is_wrong("As our copy reads, a square is missing; P says so. More of it.")
    'a square is missing; P says so.'
    """
    return re.sub("^As our copy reads,? ", "", re.split(r"(?<=\.)\s+(?=[A-Z])", finding)[0])


# --- the whole run -----------------------------------------------------------------------------------------------


class Headline(NamedTuple):
    """Counts of rows that agree, fail as foreseen or do neither, and of those that rest on no sample or on a model.

    `agree` and `fail` count by how readings stand to the papers; `failing_statements` counts the statements that the
    readings which fail are of, misprints aside.
    """

    agree: dict[str, int]
    fail: dict[str, int]
    failing_statements: dict[str, int]
    surprises: list[Row]
    undecided: int
    modelled: dict[str, int]
    exact: int
    rows: int


def headline(rows: Sequence[Row]) -> Headline:
    """Rows by what came of them."""
    known: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        known[upshot(row)].append(row)
    modelled = Counter(row.verdict for row in rows if row.model_based)
    failing = known["foreseen"]
    return Headline(
        agree=_standings(known["agrees"]),
        fail=_standings(failing),
        failing_statements={
            standing: distinct_statements(row for row in failing if row.standing == standing)
            for standing in (Standing.AS_STATED, Standing.OUTSIDE)
        },
        surprises=known["surprise"],
        undecided=len(known["undecided"]),
        modelled={verdict: modelled[verdict] for verdict in Verdict if modelled[verdict]},
        exact=sum(row.kind in EXACT for row in rows),
        rows=len(rows),
    )


def _standings(rows: Sequence[Row]) -> dict[str, int]:
    counts = Counter(row.standing for row in rows)
    return {standing: counts[standing] for standing in STANDINGS if counts[standing]}


class Margin(NamedTuple):
    """A row with the width of its margin, how it was declared, and the smallest error that was told apart."""

    row: Row
    width: str
    declared: str
    told: str


def margins(rows: Sequence[Row]) -> list[Margin]:
    """Claims by the width of their margin, widest first."""
    claims = {row.claim: row for row in reversed(rows) if row.points and row.kind not in EXACT}
    listed = sorted(claims.values(), key=lambda row: (-_width(row), row.claim))
    return [Margin(row, *_margin(row), sensitivity(row)) for row in listed]


def _width(row: Row) -> float:
    """The margin as a number: a share of the prediction, of a logarithm what its factor exceeds 1 by, else itself.

    An absolute margin is no share of the prediction: that may be an exponent or a probability, and 0.
    """
    return raised(row.logarithm, row.margin) - 1 if row.logarithm else row.margin


def _margin(row: Row) -> tuple[str, str]:
    """The width in words, and what it is of."""
    if not math.isfinite(_width(row)):
        return "—", "no number"
    if row.logarithm:
        return factor(row.logarithm, row.margin), f"{wording.numeral(row.margin)} in {wording.unit(row)}"
    if row.relative:
        return percent(row.margin), "of the prediction"
    return wording.numeral(row.margin), "in its own unit"


STEP = re.compile(r"; (?=\d{4}-\d\d-\d\d|not registered)")
"""Between two steps of a claim's history."""


def histories(rows: Sequence[Row]) -> list[tuple[Row, list[str]]]:
    """A row of each claim that changed after it was declared, with its history line by line."""
    claims = {row.claim: row for row in reversed(rows) if STEP.search(row.registered)}
    return [(row, STEP.split(row.registered)) for row in reversed(claims.values())]
