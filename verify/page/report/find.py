"""The index of the first page: every row, table and entry by paper, topic and entry, with what a search looks at."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from verify.model import Standing, Verdict
from verify.model.inventory import Status
from verify.page import wording
from verify.page.cards import EntryLead
from verify.page.report.contents import Contents
from verify.page.report.findings import left_to_a_fuller
from verify.results import InventoryRow, Observed, Row

__all__ = [
    "OUTCOMES",
    "Hit",
    "PaperShelf",
    "Shelf",
    "TopicShelf",
    "shelves",
    "topic_name",
    "topic_of",
    "upshot",
]

OUTCOMES = {
    "agrees": "agrees",
    "foreseen": "fails as foreseen",
    "surprise": "surprise",
    "undecided": "undecided",
    "observed": "reported, not judged",
    "none": "not judged",
}
"""What came of a row, as a filter calls it."""

NETWORKS = "networks"
"""The topic of what is observed on real networks."""


class Hit(NamedTuple):
    """One line of the index: a row, a table, or an entry that nothing judges."""

    name: str
    anchor: str
    outcome: str
    reading: str
    tags: list[str]
    others: list[EntryLead]
    words: str
    real: bool
    weak: float
    seconds: float
    row: Row | None
    misprint: bool = False


class Shelf(NamedTuple):
    """What judges or shows one entry, under its first."""

    entry: EntryLead
    hits: list[Hit]


class TopicShelf(NamedTuple):
    """A topic of a paper, its entries in order, and the anchor of its first card."""

    topic: str
    name: str
    shelves: list[Shelf]


class PaperShelf(NamedTuple):
    """A paper, its topics, and its entries that no row and no table is about."""

    paper: str
    name: str
    topics: list[TopicShelf]
    silent: list[Hit]


def shelves(contents: Contents) -> list[PaperShelf]:
    """The index, paper by paper; topics in the order of the run, in each the entries in the order of the inventory."""
    results = contents.results
    items = (*results.rows, *results.observations)
    papers = {item.paper for item in items} | {entry.paper for entry in results.inventory}
    shown = {item.paper for item in (*items, *left_to_a_fuller(results))}
    return [
        PaperShelf(
            paper,
            contents.names.get(paper, paper),
            _topics(contents, [item for item in items if item.paper == paper]),
            _silent(contents, paper, items),
        )
        for paper in sorted(papers, key=contents.paper_place)
        if paper in shown
    ]


def topic_of(item: Row | Observed) -> str:
    """The topic of a row; observations are all of networks."""
    return item.topic if isinstance(item, Row) else NETWORKS


def topic_name(topic: str) -> str:
    """A topic in words.

    >>> topic_name("batch_norm"), topic_name("")
    ('batch norm', 'all claims')
    """
    return topic.replace("_", " ") or "all claims"


def upshot(row: Row) -> str:
    """What came of a row, one of `OUTCOMES`: a crash is a surprise too."""
    if row.surprise or row.verdict == Verdict.BROKEN:
        return "surprise"
    return "foreseen" if row.verdict == Verdict.DISAGREES else row.verdict


def _topics(contents: Contents, items: Sequence[Row | Observed]) -> list[TopicShelf]:
    found: dict[str, dict[str, Shelf]] = {topic_of(item): {} for item in items}
    for item in sorted(items, key=lambda item: contents.entry_place(item)):
        entries = contents.entries(item)
        first = entries[0] if entries else EntryLead("", "", "", "", "")
        shelf = found.setdefault(topic_of(item), {}).setdefault(first.name, Shelf(first, []))
        made = (
            _row_hit(contents, item, entries)
            if isinstance(item, Row)
            else _table_hit(contents, item, entries)
        )
        shelf.hits.append(made)
    return [TopicShelf(topic, topic_name(topic), list(listed.values())) for topic, listed in found.items()]


def _row_hit(contents: Contents, row: Row, entries: list[EntryLead]) -> Hit:
    tags = (
        [wording.standing_name(row)]
        if row.id != row.claim or row.standing in (Standing.KNOWN, Standing.OURS)
        else []
    )
    tags += (
        ["real data"] * bool(row.data)
        + ["model-based"] * row.model_based
        + ["after pilot draws"] * bool(row.pilot)
    )
    said = (
        row.claim,
        row.claim.replace("-", " "),
        row.source,
        row.says,
        row.quantity,
        row.finding,
        row.kind,
        row.topic,
        *tags,
    )
    return Hit(
        name=row.claim.removeprefix(f"{row.paper}/"),
        anchor=contents.anchors[f"row/{row.id}"],
        outcome=upshot(row),
        reading=row.standing,
        tags=tags,
        others=entries[1:],
        words=_sought([*said, *_entry_words(entries)]),
        real=bool(row.data),
        weak=_weakness(row),
        seconds=row.seconds,
        row=row,
        misprint=row.id in contents.misprinted,
    )


def _table_hit(contents: Contents, made: Observed, entries: list[EntryLead]) -> Hit:
    headings = [column.heading for column in made.columns]
    return Hit(
        name=made.title,
        anchor=contents.anchors[f"observed/{made.id}"],
        outcome="surprise" if made.error else "observed",
        reading="",
        tags=["table"],
        others=entries[1:],
        words=_sought([made.id, made.title, made.source, *headings, "observation", *_entry_words(entries)]),
        real=True,
        weak=-1.0,
        seconds=made.seconds,
        row=None,
    )


def _silent(contents: Contents, paper: str, items: Iterable[Row | Observed]) -> list[Hit]:
    """The entries of a paper that stand on no shelf, with their reasons."""
    named = {(item.paper, name) for item in items for name in item.entries}
    named |= {tuple(name.split("/", 1)) for _, name in named if "/" in name}
    return [
        Hit(
            name=f"{entry.id} {entry.title}",
            anchor=contents.anchors[f"entry/{paper}/{entry.id}"],
            outcome="none",
            reading="",
            tags=[_why(entry)],
            others=[],
            words=_sought([entry.id, entry.title, entry.status, entry.reason]),
            real=False,
            weak=-1.0,
            seconds=0.0,
            row=None,
        )
        for entry in contents.results.inventory
        if entry.paper == paper and (paper, entry.id) not in named
    ]


def _why(entry: InventoryRow) -> str:
    judged = entry.status in (Status.JUDGED, Status.PARTLY, Status.OBSERVED)
    return "not in this run" if judged else entry.status


def _entry_words(entries: Iterable[EntryLead]) -> list[str]:
    return [f"{entry.name} {entry.title}" for entry in entries]


def _sought(parts: Iterable[str]) -> str:
    """What a search looks at, in small letters, each word group once."""
    known = dict.fromkeys(part.lower() for part in parts if part)
    return re.sub(r"\s+", " ", " ".join(known)).strip()


def _weakness(row: Row) -> float:
    """The smallest error of the theory that was sure to be told apart; -1 where nothing says, or where it failed."""
    known = row.sensitivity if row.verdict == Verdict.AGREES else None
    return known if known is not None and math.isfinite(known) else -1.0
