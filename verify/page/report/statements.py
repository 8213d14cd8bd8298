"""The numbered statements of a paper, as the sources of rows name them, and which come first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from verify.model import Standing, Verdict
from verify.page.vocabulary import EXACT
from verify.results import Results, Row

__all__ = [
    "capitalised",
    "closed",
    "distinct_statements",
    "first",
    "importance",
    "mended",
    "misprinted",
    "numbered",
    "place",
    "statement_of",
]

_LEVELS = (r"theorem|proposition", r"lemma|corollary|algorithm", r"eqs?\.|eq\b")
_NUMBERED = re.compile(r"(theorem|lemma|proposition|eqs?\.?) \(?(\w[\w.]*)", re.IGNORECASE)


def first(rows: Iterable[Row], results: Results, places: Mapping[str, int]) -> list[Row]:
    """Statements of the paper before ours, theorems before equations, in the order of entries, one for each place."""

    def rank(row: Row) -> tuple[bool, int, bool, bool, int]:
        entry = min((places.get(name, len(places)) for name in row.entries), default=len(places))
        exact = not row.points or row.kind in EXACT
        ours = row.standing in (Standing.KNOWN, Standing.OURS) or row.source.startswith("ours")
        return ours, importance(row.source), bool(row.data), exact, entry

    found: dict[str, Row] = {}
    for row in sorted(rows, key=rank):
        found.setdefault(statement_of(row, results), row)
    return list(found.values())


def misprinted(rows: Iterable[Row]) -> list[Row]:
    """A row for whatever our copies misprint, by which every part of a page counts.

    These are the formulas as our copy reads that fail, as foreseen, and corrected ones that agree where no such formula
    fails beside them: what our copy has there may be no formula that could be judged.
    """
    listed = list(rows)
    wrong = [
        row
        for row in listed
        if row.standing == Standing.MISPRINT and row.verdict == row.expected == Verdict.DISAGREES
    ]
    beside = {row.claim for row in wrong}
    alone = {row.id for row in mended(listed) if row.claim not in beside}
    failing = {row.id for row in wrong}
    return [row for row in listed if row.id in failing or row.id in alone]


def mended(rows: Iterable[Row]) -> list[Row]:
    """The readings that replace a misprint and agree, as foreseen."""
    return [
        row
        for row in rows
        if row.standing == Standing.CORRECTED and row.verdict == row.expected == Verdict.AGREES
    ]


def importance(source: str) -> int:
    """How much of a statement it is: 0 a theorem, 1 a lemma, 2 an equation, 3 a remark.

    >>> importance("Theorem 4, eq. (9)"), importance("section 3")
    (0, 3)
    """
    return next((k for k, word in enumerate(_LEVELS) if re.search(word, source, re.IGNORECASE)), len(_LEVELS))


def numbered(place: str) -> str:
    """The first numbered statement that a place names; the place itself where it names none.

    >>> numbered("Theorem 4, eq. (9)"), numbered("Section 3")
    ('theorem 4', 'Section 3')
    """
    found = _NUMBERED.search(place)
    return found.group().lower() if found else place


def statement_of(row: Row, results: Results) -> str:
    """The numbered statement of its paper that a row judges, as `numbered`; a number in the work of others is none."""
    where = place(row, results)
    return where if row.standing == Standing.KNOWN or "beside " in where else numbered(where)


def distinct_statements(rows: Iterable[Row]) -> int:
    """How many statements readings are of: those of one numbered statement, or of one quoted sentence, are one.

    Outside its condition a statement is named by the source: the words quoted there are the condition.
    """
    return len({(row.paper, _spoken(row)) for row in rows})


def _spoken(row: Row) -> str:
    where = (row.place if row.standing != Standing.OUTSIDE else "") or row.source
    number = None if _NEAR.search(where) else _NUMBERED.search(where)
    return f"{number[1].lower().rstrip('s.')} {number[2]}" if number else row.words or where


_NEAR = re.compile(r"\b(before|after) (eq|theorem|lemma)", re.IGNORECASE)
"""A sentence near a numbered statement is another one."""


def closed(number: str) -> str:
    """What `numbered` gives, with the bracket that it leaves open.

    >>> closed("eq. (26"), closed("theorem 4")
    ('eq. (26)', 'theorem 4')
    """
    return f"{number})" if "(" in number and ")" not in number else number


def stands(row: Row, results: Results) -> str:
    """The statement in which a misprint stands, like `numbered`: of a theorem and its lemma the one that has it.

    What stands before or after an equation is none of it: its section is named, if it says which.
    """
    where = (row.place or place(row, results)).partition(", which ")[0].partition(", line ")[0]
    where = _EQUATION.sub(r"eq. (\1)", where)
    section, beside, _ = _BESIDE.split(where, maxsplit=1) if _BESIDE.search(where) else ("", "", "")
    return section.rstrip(", ") or (where if beside else numbered(where))


_EQUATION = re.compile(r"\bEq (\w[\w.]*)")
_BESIDE = re.compile(r"\b(before|after) (?=eq)")


def capitalised(words: str) -> str:
    """With a capital at its head, the rest as it is."""
    return words[:1].upper() + words[1:]


def place(row: Row, results: Results) -> str:
    """Where a statement stands in its paper, without the authors."""
    authors = [paper.authors for paper in results.suite.papers if paper.id == row.paper]
    place = row.source
    for name in authors:
        place = place.replace(f"{name}, ", "").replace(f" of {name}", "")
    place = place.partition(";")[0]
    if place.startswith(("ours", "Ours")) and row.entries:
        return row.entries[0]
    return capitalised(place)
