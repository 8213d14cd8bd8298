"""What stands on the cards and tables of a report: rows, observations and entries with their anchors and links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import NamedTuple

from markupsafe import Markup

from verify.model.inventory import Status
from verify.page import plots, wording
from verify.page.cards import Card, EntryLead, ReadRow, replicates_drawn
from verify.page.markup import themed
from verify.page.report import paper_pages
from verify.page.report.statements import misprinted
from verify.results import InventoryRow, Observed, Results, Row

__all__ = ["NO_PAGES", "Chapter", "Contents", "Each", "Pages", "Sight"]

Pages = Mapping[str, paper_pages.Beside]
NO_PAGES: Pages = MappingProxyType({})

Each = Callable[[Callable[[Row], Markup], Sequence[Row]], Iterable[Markup]]
"""``map``, or one that shares the calls among processes."""


class Sight(NamedTuple):
    """An observation with its anchor, its entries with where they lead, and its figure if it has one."""

    made: Observed
    anchor: str
    entries: list[EntryLead]
    figure: Markup | None


class Chapter(NamedTuple):
    """The entries of one paper, each with its anchor, its claims and observations, and the anchors of their cards."""

    paper: str
    name: str
    entries: list[tuple[InventoryRow, str, list[tuple[str, str | None]]]]

    @property
    def counts(self) -> list[tuple[str, dict[str, int]]]:
        """How many entries have which status: those of the paper, then those of our own."""
        whose = (
            ("stated by the paper", [e.status for e, _, _ in self.entries if not e.ours]),
            ("ours", [e.status for e, _, _ in self.entries if e.ours]),
        )
        return [(name, Counter(found)) for name, found in whose if found]


@dataclass(frozen=True)
class Contents:
    """The contents of a report, from results whose texts can be shown, and the pages of papers beside it."""

    results: Results
    pages: Pages

    @cached_property
    def anchors(self) -> dict[str, str]:
        """Of claims, rows, observations and entries; the same whatever page they stand on."""
        names = [f"claim/{row.claim}" for row in self.results.rows]
        names += [f"row/{row.id}" for row in self.results.rows]
        names += [f"observed/{made.id}" for made in self.results.observations]
        return wording.slugs(names + [f"entry/{e.paper}/{e.id}" for e in self.results.inventory])

    @cached_property
    def names(self) -> dict[str, str]:
        """Authors and title of each paper."""
        return {paper.id: f"{paper.authors}: {paper.title}" for paper in self.results.suite.papers}

    @cached_property
    def misprinted(self) -> set[str]:
        """Ids of the rows with a line in the table of misprints: the formula as our copy reads, or what is right."""
        return {row.id for row in misprinted(self.results.rows)}

    def paper_place(self, paper: str) -> tuple[int, str]:
        """Papers as the run knew them, others behind."""
        places = {known.id: place for place, known in enumerate(self.results.suite.papers)}
        return places.get(paper, len(places)), paper

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        return {(e.paper, e.id): place for place, e in enumerate(self.results.inventory)}

    def entry_place(self, item: Row | Observed) -> int:
        """Where the first of its entries stands in the inventory."""
        found = (self._places.get(_entry(item, name)) for name in item.entries[:1])
        return next((place for place in found if place is not None), len(self._places))

    @cached_property
    def _listed(self) -> dict[tuple[str, str], InventoryRow]:
        return {(e.paper, e.id): e for e in self.results.inventory}

    def entries(self, item: Row | Observed) -> list[EntryLead]:
        """Its entries: title, what part is judged, section on a paper's page, and anchor in the inventory."""
        found: list[EntryLead] = []
        for written in item.entries:
            paper, name = _entry(item, written)
            entry = self._listed.get((paper, name))
            section = self.pages[paper].sections.get(name, "") if paper in self.pages else ""
            row = self.anchors.get(f"entry/{paper}/{name}", "")
            part = entry.reason if entry is not None and entry.status == Status.PARTLY else ""
            found.append(EntryLead(written, entry.title if entry is not None else "", part, section, row))
        return found

    def cards(self, each: Each) -> list[Card]:
        """One card per claim, surprises first, then in the order of papers and topics and of the entries there."""
        groups: dict[str, list[Row]] = {}
        for row in self.results.rows:
            groups.setdefault(row.claim, []).append(row)
        topics = {(row.paper, row.topic): k for k, row in reversed(list(enumerate(self.results.rows)))}
        measured = [row for row in self.results.rows if row.points]
        drawn = each(partial(_drawn, plots.stamp(self.results)), measured)
        figures = dict(zip((row.id for row in measured), drawn, strict=True))
        cards = [
            Card(
                claim=claim,
                anchor=self.anchors[f"claim/{claim}"],
                readings=[self._reading(row, figures) for row in rows],
                entries=self.entries(rows[0]),
            )
            for claim, rows in groups.items()
        ]

        def place(card: Card) -> tuple[int, tuple[int, str], int, int]:
            row = card.first
            return (
                card.urgency,
                self.paper_place(row.paper),
                topics[row.paper, row.topic],
                self.entry_place(row),
            )

        return sorted(cards, key=place)

    def _reading(self, row: Row, figures: Mapping[str, Markup]) -> ReadRow:
        return ReadRow(
            row=row,
            anchor=self.anchors[f"row/{row.id}"],
            point=wording.telling(row),
            rivals=wording.rival_tally(row),
            figure=figures.get(row.id),
            replicates=replicates_drawn(row, self.results.runs),
        )

    def sights(self) -> list[Sight]:
        """Observations in the order of the run, those that crashed first."""
        mark, found = plots.stamp(self.results), list[Sight]()
        for made in sorted(self.results.observations, key=lambda made: not made.error):
            figure = plots.observation(made, mark)
            anchor = self.anchors[f"observed/{made.id}"]
            found.append(Sight(made, anchor, self.entries(made), themed(figure) if figure else None))
        return found

    def inventory(self) -> list[Chapter]:
        """The entries of all papers, with the anchors of what judges or shows them."""
        papers = sorted({entry.paper for entry in self.results.inventory}, key=self.paper_place)
        return [
            Chapter(
                paper,
                self.names.get(paper, paper),
                [
                    (
                        entry,
                        self.anchors[f"entry/{paper}/{entry.id}"],
                        [(name, self.anchors.get(f"claim/{name}")) for name in entry.claims]
                        + [(name, self.anchors.get(f"observed/{name}")) for name in entry.observations],
                    )
                    for entry in self.results.inventory
                    if entry.paper == paper
                ],
            )
            for paper in papers
        ]


def _drawn(mark: str, row: Row) -> Markup:
    return themed(plots.agreement(row, mark))


def _entry(item: Row | Observed, written: str) -> tuple[str, str]:
    """Paper and id of an entry as an item names it."""
    paper, _, name = written.rpartition("/")
    return paper or item.paper, name
