"""Tables over all readings: misprints, and what does not hold as stated."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from verify.model import Standing
from verify.page.statements import (
    corrections,
    entry_order,
    fails_as_foreseen,
    first_sentence,
    how_far,
    misprinted,
    quoted_place,
    rows_by_paper,
)
from verify.results import Results, Row


class Wrong(NamedTuple):
    """A formula that fails: where, in which statements, what is wrong with it, what replaces it, and how far off it is.

    `stated` and `instead` are LaTeX; `instead` is empty where nothing is judged beside it. `quoted` are the words of
    the paper, `target` the row that fails, and `slip`: a slip of the text conversion is likely. Where what our copy has
    is not judged, `stated` and `off` are empty, and `target` is the row that agrees. `span` counts the lines of one
    statement at its first line, and is 0 at the others.
    """

    where: str
    entries: list[str]
    words: str
    stated: str
    quoted: str
    instead: str
    off: str
    target: str
    slip: bool
    span: int = 1


class WrongTable(NamedTuple):
    """Lines by paper, and how many statements of the papers they are of."""

    papers: dict[str, list[Wrong]]
    statements: int

    @property
    def formulas(self) -> int:
        """Number of lines."""
        return sum(map(len, self.papers.values()))

    def entries(self, paper: str) -> set[str]:
        """The statements of a paper that have a line."""
        return {name for line in self.papers.get(paper, ()) for name in line.entries}


def misprint_table(results: Results) -> WrongTable:
    """All that our copies misprint, in the order of the entries; a formula of a statement is one line."""
    return _table(misprinted(results.rows), results)


def error_table(results: Results) -> WrongTable:
    """All that does not hold as stated, under the paper's own condition, as foreseen."""
    rows = [row for row in results.rows if fails_as_foreseen(row) and row.standing == Standing.AS_STATED]
    return _table(rows, results)


def _table(rows: Sequence[Row], results: Results) -> WrongTable:
    ours = {(entry.paper, entry.id) for entry in results.inventory if entry.ours}
    groups: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        names = [name for name in row.entries if (row.paper, name) not in ours]
        groups[row.paper, *(names or [quoted_place(row, results).partition(",")[0]])].append(row)
    beside = corrections(results.rows)
    places = {key: min(entry_order(row, results) for row in own) for key, own in groups.items()}
    papers: dict[str, list[Wrong]] = {}
    for key in sorted(groups, key=lambda key: places[key]):  # stable: as the run has them, of one entry
        first: dict[str, Row] = {}
        for row in groups[key]:
            first.setdefault(row.id if row.standing == Standing.AS_STATED else row.statement, row)
        lines = [_wrong(row, results, beside, key[1:]) for row in first.values()]
        for _, alike in groupby(lines, lambda line: (line.where, line.stated, line.quoted)):
            head, *others = alike
            papers.setdefault(key[0], []).append(head._replace(span=1 + len(others)))
            papers[key[0]] += [line._replace(span=0) for line in others]
    statements = {(paper, name) for paper, *names in groups for name in names}
    return WrongTable({p: papers[p] for p in rows_by_paper(results) if p in papers}, len(statements))


def _wrong(row: Row, results: Results, beside: Mapping[str, Row], of: Sequence[str]) -> Wrong:
    judged = row.standing != Standing.CORRECTED
    instead = beside.get(row.claim) if judged else row
    # a quotation replaces a statement that repeats it, and is left out where nothing is judged but a formula
    plain = row.standing != Standing.MISPRINT and f"{{{row.words}}}" not in row.statement
    quoted = row.words if plain and not (judged and CONVERTED.search(row.words)) else ""
    repeated = bool(quoted) and row.words[:REPEATED] in row.statement
    return Wrong(
        where=quoted_place(row, results),
        entries=[name for name in of if name in row.entries],
        words=first_sentence(row.finding),
        stated=row.statement if judged and not repeated else "",
        quoted=quoted,
        instead=instead.statement if instead and (instead.statement != row.statement or not judged) else "",
        off=how_far(row) if judged else "",
        target=f"row/{row.id}",
        slip=row.slip,
    )


CONVERTED = re.compile("[=≈∑∂σλφ|]")
"""In quoted words: a formula, as the conversion left it; the formula itself is set beside it."""

REPEATED = 12
"""Letters at the head of a quotation by which a statement in words is told from a formula."""
