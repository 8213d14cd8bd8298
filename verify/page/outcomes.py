"""Outcome of a statement: holds, holds within limits or once corrected, does not hold as stated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from verify.model import Standing, Verdict
from verify.results import Results, Row

__all__ = [
    "FAILS",
    "HOLDS",
    "LIMITS",
    "MARKS",
    "OUTCOMES",
    "SEEN",
    "limit_of",
    "mark_of",
    "outcome_of",
    "reading_mark",
    "statement_outcomes",
]

HOLDS, LIMITS, FAILS, SEEN = "holds", "limits", "fails", "seen"

OUTCOMES = {
    HOLDS: "holds",
    LIMITS: "holds within limits or once corrected",
    FAILS: "does not hold as stated",
    SEEN: "reported, not judged",
}
"""Outcomes in words; each has a mark of its own: circle, triangle, diamond, ring."""

MARKS = OUTCOMES | {"undecided": "undecided", "broken": "crashed"}
"""Marks in words; what has no verdict has a square or a cross."""


def outcome_of(rows: Iterable[Row]) -> str:
    """Return the outcome of a statement, or of a claim, from its rows.

    A statement does not hold as stated if a reading under its own condition disagrees. It has limits if only a misprint
    disagrees, or a reading outside the condition, or if what is judged is a corrected formula. Without rows it was seen
    and not judged.
    """
    found = SEEN
    for row in rows:
        if row.verdict == Verdict.DISAGREES and row.standing == Standing.AS_STATED:
            return FAILS
        limited = row.verdict == Verdict.DISAGREES or row.standing == Standing.CORRECTED
        found = LIMITS if limited or found == LIMITS else HOLDS
    return found


def limit_of(rows: Iterable[Row]) -> str:
    """Return in what way a statement is limited: to a corrected formula, or to its condition."""
    failing = {row.standing for row in rows if row.verdict == Verdict.DISAGREES}
    return "within limits" if Standing.OUTSIDE in failing else "once corrected"


def mark_of(rows: Iterable[Row]) -> str:
    """Return the mark of a claim: its outcome, but for a reading that crashed or is undecided."""
    listed = list(rows)
    verdicts = {row.verdict for row in listed}
    without = next((verdict for verdict in (Verdict.BROKEN, Verdict.UNDECIDED) if verdict in verdicts), None)
    return without.value if without else outcome_of(listed)


def reading_mark(row: Row) -> str:
    """Return the mark of a reading: a formula that agrees holds, whatever it replaces."""
    return HOLDS if row.verdict == Verdict.AGREES else mark_of([row])


def statement_outcomes(results: Results) -> Mapping[tuple[str, str], str]:
    """Return the outcome of each judged statement of a paper, by paper and entry; our own statements do not count."""
    rows: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in results.rows:
        for entry in row.entries:
            rows[row.paper, entry].append(row)
    return {
        (entry.paper, entry.id): mark_of(rows[entry.paper, entry.id])
        for entry in results.inventory
        if not entry.ours and rows[entry.paper, entry.id]
    }
