"""The pages of a report: the same templates in one file, or in pages of which none is large."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Template
from markupsafe import Markup

from verify.claims.registry import count_statements
from verify.judging.campaign import campaigns
from verify.model import Verdict
from verify.page import outcomes, ratios, statements, wording
from verify.page.cards import Card
from verify.page.counts import census_line, run_verdict, scorecard
from verify.page.formulas import formula, in_cell, lettered
from verify.page.main import MainRun, main_plots
from verify.page.markup import template, themed
from verify.page.report import glance, tables
from verify.page.report.contents import (
    ABOUT,
    CARDS,
    REPORT,
    Contents,
    Each,
    Links,
    Sight,
    topic_name,
    topic_of,
)  # fmt: skip
from verify.page.report.findings import findings
from verify.page.report.sealing import classed, policy
from verify.page.vocabulary import EXACT, KINDS
from verify.page.wording import duration, percent

SECTIONS = ("registered", "limits", "planted", "campaign", "derivations", "inventory")
"""Parts of the page on the whole run, and their anchors."""

TITLE = "Correctness report"

_SCRIPT = files("verify.page").joinpath("templates", "report", "find.js")


def one_page(contents: Contents, each: Each, changed: bool) -> str:
    """Everything on one page."""
    links = Links(REPORT, {})
    cards, sights = contents.cards(each), contents.sights()
    body = [
        _first(contents, links, changed),
        _claims(contents, links, [*cards, *sights]),
        _part("about", contents, links),
    ]
    return _page(contents, links, TITLE, "all", Markup("\n").join(body))


def several_pages(contents: Contents, each: Each, changed: bool) -> dict[str, str]:
    """A first page, one on the whole run, and pages of cards by paper and topic."""
    rooms: dict[tuple[str, str], list[Card | Sight]] = {
        (paper, topic): [] for paper in contents.papers for topic in contents.topics(paper)
    }
    for item in (*contents.cards(each), *contents.sights()):
        told = item.first if isinstance(item, Card) else item.made
        rooms[told.paper, topic_of(told)].append(item)
    slugs = wording.slugs("\n".join(room) for room in rooms)  # no text that is shown has a line's end
    listed = [(f"{CARDS}/{slugs[chr(10).join(room)]}.html", room) for room in rooms]
    known = dict.fromkeys(SECTIONS, ABOUT) | {"find": REPORT}
    known |= {contents.anchors[f"entry/{e.paper}/{e.id}"]: ABOUT for e in contents.results.inventory}
    for file, room in listed:
        for item in rooms[room]:
            readings = item.readings if isinstance(item, Card) else []
            known |= dict.fromkeys([item.anchor, *(reading.anchor for reading in readings)], file)
    first, about = Links(REPORT, known), Links(ABOUT, known)
    made = {
        REPORT: _page(contents, first, TITLE, "first", _first(contents, first, changed)),
        ABOUT: _page(contents, about, "Details of the run", "about", _part("about", contents, about)),
    }
    authors = {paper.id: paper.authors for paper in contents.results.suite.papers}
    for file, (paper, topic) in listed:
        links = Links(file, known)
        title = f"{authors.get(paper, paper)}: {topic_name(topic)}"
        body = _claims(contents, links, rooms[paper, topic])
        made[file] = _page(contents, links, title, "cards", body, paper)
    return made


def _first(contents: Contents, links: Links, changed: bool) -> Markup:
    """The first page: verdict, main plots, all claims, findings, what is wrong, and what is folded below."""
    results, suite = contents.results, contents.results.suite
    modelled = Counter(row.verdict for row in results.rows if row.model_based)
    run = MainRun(results)
    return _part(
        "first",
        contents,
        links,
        edited=changed,
        run=run_verdict(results),
        scores=scorecard(results).papers,
        cells=[
            (plot, plot.outcome(run), themed(figure), plot.caption(run))
            for plot, figure in main_plots(results).items()
        ],
        crashed=[made for made in results.observations if made.error],
        strips=glance.strips(results),
        found=findings(results),
        misprints=tables.misprint_table(results),
        errors=tables.error_table(results),
        coverage=count_statements(results.inventory),
        census=census_line(suite.census),
        pilots=len({row.claim for row in results.rows if row.pilot}),
        exact=sum(row.kind in EXACT for row in results.rows),
        modelled={verdict: modelled[verdict] for verdict in Verdict if modelled[verdict]},
        host=suite.host,
    )


def _claims(contents: Contents, links: Links, items: Sequence[Card | Sight]) -> Markup:
    """Cards, cards on real data, and tables."""
    cards = [item for item in items if isinstance(item, Card)]
    return _part(
        "claims",
        contents,
        links,
        cards=[card for card in cards if not card.first.data],
        observed=[card for card in cards if card.first.data],
        observations=[item for item in items if isinstance(item, Sight)],
    )


def _page(contents: Contents, links: Links, title: str, kind: str, body: Markup, paper: str = "") -> str:
    """A whole page, with the policy that lets its own style sheet and script be used and no other."""
    body, sheet = classed(body)
    style = _template("report.css").render() + sheet
    script = _SCRIPT.read_text(encoding="utf-8") if kind in ("all", "first") else ""
    return _part(
        "shell",
        contents,
        links,
        policy=policy(style, script),
        style=Markup(style),  # noqa: S704 - of the templates and of matplotlib
        script=Markup(script),  # noqa: S704 - of this package
        title=title,
        kind=kind,
        body=body,
        paper=paper,
    )


def _part(name: str, contents: Contents, links: Links, **values: Any) -> Markup:
    """A template filled in, with what every template may ask for."""
    shared: Mapping[str, Any] = {
        "contents": contents,
        "links": links,
        "campaigns": campaigns(),
        "results": contents.results,
        "suite": contents.results.suite,
        "anchors": contents.anchors,
        "kinds": KINDS,
        "marks": outcomes.MARKS,
        "short": outcomes.SHORT,
        "differing": wording.differing,
        "shared": wording.common_parameters,
    }
    return Markup(_template(name).render(**shared, **values))  # noqa: S704 - the templates escape


def _template(name: str) -> Template:
    ending = ".j2" if "." in name else ".html.j2"
    return template(f"report/{name}{ending}", **_FILTERS)


_FILTERS: dict[str, Any] = {
    "formula": formula,
    "cell": in_cell,
    "letters": lettered,
    "parameters": wording.parameters,
    "measurement": wording.measurement,
    "prediction": wording.prediction,
    "half_parts": wording.half_parts,
    "violations": wording.listed_violations,
    "undecided": wording.undecided,
    "unseen": wording.unseen,
    "finite": math.isfinite,
    "level": ratios.level,
    "triangles": ratios.mark,
    "duration": duration,
    "percent": percent,
    "standing": wording.standing_name,
    "mark": outcomes.reading_mark,
    "topic": topic_name,
    "place": statements.place,
}
