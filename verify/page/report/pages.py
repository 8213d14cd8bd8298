"""The pages of a report: the same templates in one file, or in pages of which none is large."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Template
from markupsafe import Markup

from verify.claims.coverage import count_statements
from verify.judging.campaign import campaigns
from verify.page import plots, ratios, wording
from verify.page.cards import Card, centre, span
from verify.page.counts import census_line, percent, promise_lines
from verify.page.formulas import formula, lettered
from verify.page.markup import template, themed
from verify.page.report import find, findings, glance, summary
from verify.page.report.balance import stands_left
from verify.page.report.contents import Contents, Each, Sight
from verify.page.report.links import ABOUT, CARDS, REPORT, Links
from verify.page.report.misprints import misprint_table
from verify.page.report.sealing import classed, policy
from verify.page.report.sources import repository, source_link
from verify.page.vocabulary import KINDS, STANDINGS, SYMBOLS

__all__ = ["one_page", "several_pages"]

FOLDED = 12
"""Longer tables of points are folded."""

_READINGS = [(name, name) for name in STANDINGS]

FEW = 3
"""More cards on a page than these are listed at its head."""

LARGEST_PART = 2_400_000
"""Bytes of the cards on one page, which has its style sheet and its head beside them."""

SECTIONS = (
    "overview",
    "margins",
    "registered",
    "pilots",
    "limits",
    "planted",
    "campaign",
    "derivations",
    "inventory",
)
"""Parts of the page on the whole run, and their anchors."""


_PARTS = {"cards": "claims", "observed": "observed", "observations": "observations"}
"""Anchors of the cards, of those on real data and of the tables."""


class Shown(NamedTuple):
    """A card or a table as it stands on its page."""

    item: Card | Sight
    html: Markup

    @property
    def paper(self) -> str:
        """The paper it is of."""
        return self.item.first.paper if isinstance(self.item, Card) else self.item.made.paper

    @property
    def topic(self) -> str:
        """The topic it stands in."""
        return find.topic_of(self.item.first if isinstance(self.item, Card) else self.item.made)

    @property
    def title(self) -> tuple[str, str]:
        """Its name with its anchor."""
        name = self.item.claim.partition("/")[2] if isinstance(self.item, Card) else self.item.made.title
        return name, self.item.anchor

    @property
    def anchors(self) -> list[str]:
        """Of the card and of its readings."""
        readings = [r.anchor for r in self.item.readings] if isinstance(self.item, Card) else []
        return [self.item.anchor, *readings]


class Room(NamedTuple):
    """A page of cards."""

    file: str
    title: str
    paper: str
    shown: list[Shown]


def one_page(contents: Contents, each: Each, changed: bool) -> str:
    """Everything on one page."""
    links = Links(REPORT, {})
    shown = _shown(contents, each, links)
    kinds = _kinds(shown)
    parts = [part for name, part in _PARTS.items() if kinds[name]]
    body = Markup("\n").join(
        [
            _first(contents, links, changed),
            _part("claims", contents, links, **kinds, listed=[]),
            _about(contents, links),
        ]
    )
    return _page(contents, links, "Theory against simulation", "all", body, parts=parts)


def several_pages(contents: Contents, each: Each, changed: bool) -> dict[str, str]:
    """A first page, one on the whole run, and pages of cards."""
    known = dict.fromkeys(SECTIONS, ABOUT)
    known |= {contents.anchors[f"entry/{e.paper}/{e.id}"]: ABOUT for e in contents.results.inventory}
    rooms = _rooms(contents, _shown(contents, each, Links(f"{CARDS}/", known)))
    known |= {anchor: room.file for room in rooms for shown in room.shown for anchor in shown.anchors}
    first, about = Links(REPORT, known), Links(ABOUT, known)
    made = {
        REPORT: _page(
            contents, first, "Theory against simulation", "first", _first(contents, first, changed)
        ),
        ABOUT: _page(contents, about, "The whole run", "about", _about(contents, about)),
    }
    for before, room, after in zip([None, *rooms], rooms, [*rooms[1:], None], strict=False):
        links = Links(room.file, known)
        listed = [shown.title for shown in room.shown if len(room.shown) > FEW]
        body = _part("claims", contents, links, **_kinds(room.shown), listed=listed)
        made[room.file] = _page(
            contents, links, room.title, "cards", body, before=before, after=after, paper=room.paper
        )
    return made


def _rooms(contents: Contents, shown: Sequence[Shown]) -> list[Room]:
    """The pages of cards, by paper and topic in the order of the index, a topic in parts where it is large."""
    topics = [(shelf.paper, topic.topic) for shelf in find.shelves(contents) for topic in shelf.topics]
    slugs = wording.slugs(map(_slugged, topics))
    rooms: list[Room] = []
    for paper, topic in topics:
        parts = _parts([s for s in shown if (s.paper, s.topic) == (paper, topic)])
        stem = f"{CARDS}/{slugs[_slugged((paper, topic))]}"
        for k, part in enumerate(parts):
            number = f", part {k + 1} of {len(parts)}" if len(parts) > 1 else ""
            title = f"{_authors(contents, paper)}: {find.topic_name(topic)}{number}"
            rooms.append(Room(f"{stem}.part{k + 1}.html" if k else f"{stem}.html", title, paper, part))
    return rooms


def _slugged(place: tuple[str, str]) -> str:
    return "\n".join(place)  # no text that is shown has a line's end


def _parts(shown: Sequence[Shown]) -> list[list[Shown]]:
    """In order, as few as keep each below the largest size."""
    parts: list[list[Shown]] = [[]]
    size = 0
    for one in shown:
        length = len(one.html.encode())
        if parts[-1] and size + length > LARGEST_PART:
            parts.append([])
            size = 0
        parts[-1].append(one)
        size += length
    return parts


def _authors(contents: Contents, paper: str) -> str:
    return next((p.authors for p in contents.results.suite.papers if p.id == paper), paper)


def _shown(contents: Contents, each: Each, links: Links) -> list[Shown]:
    """Every card and table; from a page of cards all links lead the same way, whichever it is."""
    shared = _shared(contents, links)

    def filled(name: str, **item: Any) -> Markup:
        return Markup(_template(name).render(**item, **shared))  # noqa: S704 - the template escapes

    cards = [Shown(card, filled("card", c=card)) for card in contents.cards(each)]
    return cards + [Shown(sight, filled("observed", s=sight)) for sight in contents.sights()]


def _kinds(shown: Iterable[Shown]) -> dict[str, list[Markup]]:
    """Cards, cards on real data, and tables."""
    found: dict[str, list[Markup]] = {"cards": [], "observed": [], "observations": []}
    for one in shown:
        real = isinstance(one.item, Card) and one.item.first.data
        found["observed" if real else "cards" if isinstance(one.item, Card) else "observations"].append(
            one.html
        )
    return found


def _first(contents: Contents, links: Links, changed: bool) -> Markup:
    """Headline, findings and index."""
    results = contents.results
    suite, misprinted = results.suite, misprint_table(results)
    told = _part(
        "headline",
        contents,
        links,
        edited=changed,
        headline=summary.headline(results.rows),
        misprints=misprinted,
        crashed=[made for made in results.observations if made.error],
        observations=len(results.observations),
        theory=summary.reading_theory(results.rows),
        coverage=count_statements(results.inventory),
        fuller=[entry for entry in findings.left_to_a_fuller(results) if not entry.ours],
        census=census_line(suite.census),
        promises=[summary.sentence(line) for line in promise_lines(suite.promises)],
        pilots=len(summary.after_pilots(results.rows)),
        families=summary.own_families(suite),
        decided={promise.paper for promise in suite.promises if promise.decided},
        single=summary.error_of_one(suite),
        host=suite.host,
    )
    found = _part(
        "findings",
        contents,
        links,
        glances=glance.glances(results),
        found=findings.paper_findings(results),
        misprints=misprinted,
        entries=contents.entries,
        names=contents.names,
    )
    index = _part(
        "find", contents, links, shelves=find.shelves(contents), outcomes=find.OUTCOMES, readings=_READINGS
    )
    return Markup("\n").join([told, found, index])


def _about(contents: Contents, links: Links) -> Markup:
    """What is known of the whole run."""
    results, mark, anchors = contents.results, plots.stamp(contents.results), contents.anchors
    return _part(
        "about",
        contents,
        links,
        overview=themed(plots.overview(results.rows, mark)) if results.rows else None,
        margins=summary.margins(results.rows),
        pilots=[
            (row.claim, anchors[f"row/{row.id}"], row.pilot) for row in summary.after_pilots(results.rows)
        ],
        changed=[
            (row.claim, anchors[f"row/{row.id}"], told) for row, told in summary.histories(results.rows)
        ],
        unread=results.unread,
        planted=results.planted,
        derivations=results.derivations,
        inventory=contents.inventory(),
        pages=contents.pages,
    )


def _page(contents: Contents, links: Links, title: str, kind: str, body: Markup, **more: Any) -> str:
    """A whole page, with the policy that lets its own style sheet and script be used and no other."""
    body, sheet = classed(body)
    style = _template("report.css").render() + sheet
    script = _script() if kind in ("all", "first") else ""
    named = {"before": None, "after": None, "paper": "", "parts": ()} | more
    shared = _shared(contents, links)
    return _template("shell").render(
        policy=policy(style, script),
        style=Markup(style),  # noqa: S704 - of the templates and of matplotlib
        script=Markup(script),  # noqa: S704 - of this package
        title=title,
        kind=kind,
        body=body,
        papers=contents.pages,
        **shared,
        **named,
    )


def _part(name: str, contents: Contents, links: Links, **values: Any) -> Markup:
    return Markup(_template(name).render(**_shared(contents, links), **values))  # noqa: S704 - the templates escape


def _shared(contents: Contents, links: Links) -> Mapping[str, Any]:
    """What every template may ask for."""
    return {
        "links": links,
        "campaigns": campaigns(),
        "suite": contents.results.suite,
        "anchors": contents.anchors,
        "folded": FOLDED,
        "symbols": SYMBOLS,
        "kinds": KINDS,
        "standings": STANDINGS,
        "differing": wording.differing,
        "source": partial(source_link, repository(), str(contents.results.suite.host.get("commit", ""))),
        "shared": wording.common_parameters,
    }


@cache
def _script() -> str:
    return files("verify.page").joinpath("templates", "report", "find.js").read_text(encoding="utf-8")


@cache
def _template(name: str) -> Template:
    """A template to be filled in; compiling it takes longer than many a page."""
    ending = ".j2" if "." in name else ".html.j2"
    return template(f"report/{name}{ending}", **_FILTERS)


_FILTERS: dict[str, Callable[..., Any]] = {
    "formula": formula,
    "letters": lettered,
    "stands_left": stands_left,
    "parameters": wording.parameters,
    "measurement": wording.measurement,
    "prediction": wording.prediction,
    "half_parts": wording.half_parts,
    "violations": wording.listed_violations,
    "half_width": wording.half_width,
    "undecided": wording.undecided,
    "unseen": wording.unseen,
    "finite": math.isfinite,
    "constant": ratios.constant,
    "level": ratios.level,
    "triangles": ratios.mark,
    "duration": summary.duration,
    "percent": percent,
    "span": span,
    "centre": centre,
    "standing": wording.standing_name,
    "outcome": find.upshot,
}
