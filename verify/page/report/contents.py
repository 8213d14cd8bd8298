"""Contents of the pages of a report: rows, tables and entries with their anchors, links, cards and the index."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from markupsafe import Markup

from verify.claims.registry import entry_of
from verify.model import Standing
from verify.model.inventory import Status
from verify.page import plots, wording
from verify.page.cards import Card, EntryLead, ReadRow
from verify.page.main import PLOTS
from verify.page.markup import themed
from verify.page.report import paper_pages
from verify.page.report.findings import CHOSEN
from verify.page.statements import entry_order, rows_of_claims
from verify.results import InventoryRow, Observed, Results, Row

REPORT, ABOUT, CARDS = "report.html", "about.html", "cards"
"""The first page, what is known of the whole run, and the folder of the pages of cards, as seen from the report."""

CHANGED = re.compile(r"; (?=\d{4}-\d\d-\d\d|not registered)")
"""Between two steps of a claim's history."""

Pages = Mapping[str, paper_pages.Beside]
NO_PAGES: Pages = MappingProxyType({})

Each = Callable[[Callable[[Row], Markup], Sequence[Row]], Iterable[Markup]]
"""``map``, or one that shares the calls among processes."""


class Links(NamedTuple):
    """Links from one page, at `here`, to anchors, whose files are known; all paths are as the report sees them."""

    here: str
    files: Mapping[str, str]

    def to(self, anchor: str) -> str:
        """To an anchor; on this page if it stands in no file of its own.

        >>> Links("cards/a.html", {"x": "cards/b.html", "y": "about.html"}).to("x")
        'b.html#x'
        """
        file = self.files.get(anchor, self.here)
        return f"#{anchor}" if file == self.here else f"{self.beside(file)}#{anchor}"

    def beside(self, path: str) -> str:
        """To a file beside the report, or a place in it.

        >>> Links("cards/a.html", {}).beside("claims/b.html#c"), Links("report.html", {}).beside("cards/a.html")
        ('../claims/b.html#c', 'cards/a.html')
        """
        folder = self.here.rpartition("/")[0]
        if folder and path.startswith(f"{folder}/"):
            return path.removeprefix(f"{folder}/")
        return f"{'../' * bool(folder)}{path}"


class Sight(NamedTuple):
    """An observation with its anchor, its entries with where they lead, and its figure if it has one."""

    made: Observed
    anchor: str
    entries: list[EntryLead]
    figure: Markup | None


def topic_of(item: Row | Observed) -> str:
    """The topic of a row; observations are all of networks."""
    return item.topic if isinstance(item, Row) else "networks"


def topic_name(topic: str) -> str:
    """A topic in words.

    >>> topic_name("batch_norm"), topic_name("")
    ('batch norm', 'all claims')
    """
    return topic.replace("_", " ") or "all claims"


@dataclass(frozen=True)
class Contents:
    """The contents of a report, from results whose texts can be shown, and the pages of papers beside it."""

    results: Results
    pages: Pages

    @property
    def items(self) -> list[Row | Observed]:
        """Rows and observations."""
        return [*self.results.rows, *self.results.observations]

    @cached_property
    def anchors(self) -> dict[str, str]:
        """Anchors of claims, rows, observations and entries, which do not depend on the page."""
        names = [f"claim/{row.claim}" for row in self.results.rows]
        names += [f"row/{row.id}" for row in self.results.rows]
        names += [f"observed/{made.id}" for made in self.results.observations]
        return wording.slugs(names + [f"entry/{e.paper}/{e.id}" for e in self.results.inventory])

    @cached_property
    def names(self) -> dict[str, str]:
        """Authors and title of each paper."""
        return {paper.id: f"{paper.authors}: {paper.title}" for paper in self.results.suite.papers}

    def paper_place(self, paper: str) -> tuple[int, str]:
        """Papers as the run knew them, others behind."""
        places = {known.id: place for place, known in enumerate(self.results.suite.papers)}
        return places.get(paper, len(places)), paper

    @cached_property
    def _listed(self) -> dict[tuple[str, str], InventoryRow]:
        return {(e.paper, e.id): e for e in self.results.inventory}

    def entries(self, item: Row | Observed) -> list[EntryLead]:
        """Its entries: title, what part is judged, section on a paper's page, and anchor in the inventory."""
        found: list[EntryLead] = []
        for written in item.entries:
            paper, name = entry_of(item, written)
            entry = self._listed.get((paper, name))
            section = self.pages[paper].sections.get(name, "") if paper in self.pages else ""
            row = self.anchors.get(f"entry/{paper}/{name}", "")
            part = entry.reason if entry and entry.status == Status.PARTLY else ""
            found.append(EntryLead(written, entry.title if entry else "", part, section, row))
        return found

    def cards(self, each: Each) -> list[Card]:
        """One card per claim, by paper and topic: surprises first, then main statements, then by entry."""
        groups = rows_of_claims(self.results.rows)
        main = {*CHOSEN, *(plot.target for plot in PLOTS)}
        topics = {(row.paper, row.topic): k for k, row in reversed(list(enumerate(self.results.rows)))}
        measured = [row for row in self.results.rows if row.points]
        figures = dict(zip((row.id for row in measured), each(_figure, measured), strict=True))
        cards = [
            Card(
                claim=claim,
                anchor=self.anchors[f"claim/{claim}"],
                readings=[ReadRow(row, self.anchors[f"row/{row.id}"], figures.get(row.id)) for row in rows],
                entries=self.entries(rows[0]),
            )
            for claim, rows in groups.items()
        ]

        def order(card: Card) -> tuple[int, tuple[int, str], int, bool, int]:
            row, topic = card.first, topics[card.first.paper, card.first.topic]
            return (
                card.urgency, self.paper_place(row.paper), topic, card.claim not in main,
                entry_order(row, self.results),
            )  # fmt: skip

        return sorted(cards, key=order)

    def sights(self) -> list[Sight]:
        """Observations in the order of the run, those that crashed first."""
        found = sorted(self.results.observations, key=lambda made: not made.error)
        return [
            Sight(
                made,
                self.anchors[f"observed/{made.id}"],
                self.entries(made),
                themed(figure) if (figure := plots.observation(made)) else None,
            )
            for made in found
        ]

    @cached_property
    def papers(self) -> list[str]:
        """Papers with an entry, a row or an observation, in their order."""
        return sorted({item.paper for item in (*self.items, *self.results.inventory)}, key=self.paper_place)

    def about(self, entry: InventoryRow) -> list[tuple[str, str | None]]:
        """Claims and observations of an entry, with the anchors of their cards."""
        named = [(name, f"claim/{name}") for name in entry.claims]
        named += [(name, f"observed/{name}") for name in entry.observations]
        return [(name, self.anchors.get(key)) for name, key in named]

    def topics(self, paper: str) -> dict[str, list[Row | Observed]]:
        """Rows and observations of a paper by topic, in each in the order of the inventory."""
        own = [item for item in self.items if item.paper == paper]
        topics: dict[str, list[Row | Observed]] = {topic_of(item): [] for item in own}
        for item in sorted(own, key=lambda item: entry_order(item, self.results)):
            topics[topic_of(item)].append(item)
        return topics

    def silent(self, paper: str) -> list[InventoryRow]:
        """The entries of a paper that have no claim and no table in this run."""
        named = {entry_of(item, name) for item in self.items for name in item.entries}
        return [e for e in self.results.inventory if e.paper == paper and (paper, e.id) not in named]

    def tags(self, row: Row) -> list[str]:
        """What distinguishes a reading in the index."""
        tags = [wording.standing_name(row)] * (row.standing != Standing.AS_STATED or row.id != row.claim)
        tags += ["real data"] * bool(row.data) + ["model-based"] * row.model_based
        tags += ["changed after it was declared"] * bool(CHANGED.search(row.registered))
        return tags + ["surprise"] * row.surprise + ["after pilot draws"] * bool(row.pilot)


def _figure(row: Row) -> Markup:
    return themed(plots.agreement(row, heading=False))
