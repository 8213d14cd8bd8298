"""Outcome of a statement: holds, holds within limits, holds once corrected, does not hold as stated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from verify.claims.records import StatedReading
from verify.model import Standing, Verdict
from verify.results import InventoryRow, Row

HOLDS, LIMITS, CORRECTED, FAILS, SEEN = "holds", "limits", "corrected", "fails", "seen"

SHORT = {
    HOLDS: "holds",
    LIMITS: "within limits",
    CORRECTED: "once corrected",
    FAILS: "does not hold",
    SEEN: "not judged",
}
"""Outcomes in short; each has a mark of its own: circle, triangle up or down, diamond, ring."""

MARKS = {
    **SHORT,
    LIMITS: "holds within limits",
    CORRECTED: "holds once corrected",
    FAILS: "does not hold as stated",
    SEEN: "reported, not judged",
    "undecided": "undecided",
    "broken": "crashed",
}
"""Marks in words; what has no verdict has a square or a cross."""


Judged = Row | StatedReading
"""Reading with the verdict of a run, or with the one registered before it."""


def outcome_of(rows: Iterable[Judged]) -> str:
    """Return the outcome of a statement, or of a claim, from its rows.

    A statement does not hold as stated if a reading under its own condition disagrees. It has limits if a reading
    outside the condition disagrees, or one of ours. It holds once corrected if only a misprint disagrees, or if what is
    judged is a corrected formula. Without rows it was seen and not judged.
    """
    found = SEEN
    for row in rows:
        if row.verdict == Verdict.DISAGREES and row.standing == Standing.AS_STATED:
            return FAILS
        if row.verdict == Verdict.DISAGREES and row.standing != Standing.MISPRINT:
            found = LIMITS
        elif row.standing in (Standing.MISPRINT, Standing.CORRECTED):
            found = LIMITS if found == LIMITS else CORRECTED
        elif found == SEEN:
            found = HOLDS
    return found


def mark_of(rows: Iterable[Judged]) -> str:
    """Return the mark of a claim: its outcome, but for a reading that crashed or is undecided."""
    listed = list(rows)
    for verdict in (Verdict.BROKEN, Verdict.UNDECIDED):
        if any(row.verdict == verdict for row in listed):
            return verdict.value
    return outcome_of(listed)


def reading_mark(row: Row) -> str:
    """Return the mark of a reading by itself: a formula that agrees holds, one of ours that disagrees does not."""
    if row.verdict == Verdict.DISAGREES and row.standing not in (Standing.OUTSIDE, Standing.MISPRINT):
        return FAILS
    return HOLDS if row.verdict == Verdict.AGREES else mark_of([row])


def statement_outcomes(
    inventory: Iterable[InventoryRow], readings: Iterable[Judged]
) -> Mapping[tuple[str, str], str]:
    """Return the outcome of each judged statement of a paper, by paper and entry; our own statements do not count."""
    rows: defaultdict[tuple[str, str], list[Judged]] = defaultdict(list)
    for row in readings:
        for entry in row.entries:
            rows[row.paper, entry].append(row)
    return {
        (entry.paper, entry.id): mark_of(rows[entry.paper, entry.id])
        for entry in inventory
        if not entry.ours and rows[entry.paper, entry.id]
    }
