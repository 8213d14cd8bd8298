"""The pages of a report of the whole registry: their sizes, links, policies, and what a search finds."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from collections.abc import Mapping
from html import unescape
from itertools import pairwise
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import pytest

from tests.verify.page.full_size import full_size, like_figures
from tests.verify.page.test_report import NOTHING, Page
from tests.verify.results.sample_results import sample
from verify.claims import registry
from verify.page import report
from verify.page.report import paper_pages
from verify.page.report.contents import OUTCOMES, Contents
from verify.page.report.sealing import classed, policy
from verify.results import Results

FIRST, LARGEST = 1_500_000, 3_000_000
ELEMENTS = 15_000


@pytest.fixture(scope="module")
def pages() -> Mapping[str, str]:
    made = full_size()
    beside = paper_pages.beside(made, registry.docs(), Contents(made, {}).anchors, "about.html")
    return {
        **report.documents(made, like_figures, beside),
        **{page.file: page.html for page in beside.values()},
    }


@pytest.fixture(scope="module")
def read(pages: Mapping[str, str]) -> Mapping[str, Page]:
    """But for what is drawn on the pages of cards, one figure throughout."""
    return {n: Page(_without_drawings(text) if n.startswith("cards/") else text) for n, text in pages.items()}


def _without_drawings(text: str) -> str:
    return re.sub(r"(<svg\b[^>]*>).*?(</svg>)", r"\1\2", text, flags=re.DOTALL)


@pytest.mark.slow
def test_the_first_page_is_small_and_no_page_is_large(
    pages: Mapping[str, str], read: Mapping[str, Page]
) -> None:
    assert len(pages["report.html"].encode()) <= FIRST
    assert read["report.html"].tags.total() <= ELEMENTS
    assert {name: len(text.encode()) for name, text in pages.items() if len(text.encode()) > LARGEST} == {}
    assert sum(name.startswith("cards/") for name in pages) > 17


def test_every_link_leads_to_a_page_and_an_anchor(read: Mapping[str, Page]) -> None:
    for name, page in read.items():
        assert page.open == [] and len(set(page.ids)) == len(page.ids), name
        for link in page.links:
            path, _, anchor = link.partition("#")
            if link.startswith("https:"):
                assert name.startswith("claims/")
                continue
            target = _there(name, path)
            assert target in read and (not anchor or anchor in read[target].ids), (name, link)


def _there(name: str, path: str) -> str:
    if not path:
        return name
    parts: list[str] = []
    for part in (PurePosixPath(name).parent / path).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def test_every_row_has_its_card_and_is_in_the_index(
    read: Mapping[str, Page], pages: Mapping[str, str]
) -> None:
    labels = {label.rpartition(": ")[0] for _, label in read["report.html"].cells if ": " in label}
    rows = {row.id for row in full_size().rows}
    cards = "".join(text for name, text in pages.items() if name.startswith("cards/"))
    shown = re.findall(r'<section class="reading[^"]*" id="[^"]*" aria-label="([^"]*)"', cards)
    assert labels == rows == {unescape(name) for name in shown} and len(shown) == len(rows)


def test_the_index_holds_each_entry_with_its_title(pages: Mapping[str, str]) -> None:
    lines = [unescape(words) for words in re.findall(r'data-words="([^"]*)"', pages["report.html"])]
    for entry in registry.inventory():
        sought = f"{entry.id} {entry.title}".lower()
        assert any(" ".join(sought.split()) in line for line in lines), sought


@pytest.mark.parametrize("one_file", [False, True])
def test_the_policy_names_what_is_on_the_page_and_no_more(pages: Mapping[str, str], one_file: bool) -> None:
    known = {"report.html": report.document(sample(), like_figures)} if one_file else pages
    for name, text in known.items():
        if name.startswith("claims/"):
            continue
        (said,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
        (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        directives = dict(part.split(" ", 1) for part in unescape(said).split("; "))
        assert directives["default-src"] == "'none'" and directives["img-src"] == "data:"
        assert directives["style-src"] == _hash(style)
        assert [directives.get("script-src")] == ([_hash(s) for s in scripts] or [None])
        assert len(scripts) == (name == "report.html")
        assert not re.search(
            r'<[a-z][^<>]* (style|on[a-z]+)="', text.replace(scripts[0] if scripts else "", "")
        )
        assert "unsafe" not in said


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_a_page_without_a_script_may_run_none() -> None:
    assert "script-src" not in policy("a{}") and "script-src" in policy("a{}", "f()")


def test_styles_that_begin_alike_keep_classes_of_their_own() -> None:
    made, sheet = classed("".join(f'<g style="x: {k}"/>' for k in range(2000)))
    names = re.findall(r'class="(\w+)"', made)
    assert len(set(names)) == 2000
    assert all(f".{name}{{x: {k}}}\n" in sheet for k, name in enumerate(names))


def test_one_file_has_everything_in_it() -> None:
    made = sample()
    one = Page(report.document(made, like_figures))
    several = {name: Page(text) for name, text in report.documents(made, like_figures).items()}
    assert all(link.startswith("#") for link in one.links)
    anchors = {name for page in several.values() for name in page.ids}
    assert anchors - set(one.ids) == set()


def test_pages_lead_on_and_back(pages: Mapping[str, str], read: Mapping[str, Page]) -> None:
    cards = [name for name in pages if name.startswith("cards/")]
    for before, after in pairwise(cards):
        assert PurePosixPath(after).name in read[before].links
        assert PurePosixPath(before).name in read[after].links
    for name in cards:
        assert "../report.html" in read[name].links
        assert '<form action="../report.html" method="get" role="search">' in pages[name]


def test_links_of_the_first_page_to_a_search_ask_for_what_there_is(pages: Mapping[str, str]) -> None:
    text = pages["report.html"]
    asked = {unescape(query) for query in re.findall(r'data-query="([^"]*)"', text)}
    assert asked
    for query in asked:
        for part in query.split("&"):
            name, _, value = part.partition("=")
            if name == "networks":
                continue
            if name == "only":  # rows that have a line
                places = set(
                    re.findall(r'<li class="hit[^>]*>(?:(?!</li>).)*?href="[^"#]*#([^"]*)"', text, re.DOTALL)
                )
                assert {*unquote(value).split("+")} <= places, query
                continue
            if name == "q":  # words that the reader could have typed, and that find something
                words = unquote(value)
                assert re.search(rf'data-words="[^"]*{re.escape(words)}', text), query
                continue
            (options,) = re.findall(rf'<select name="{name}">(.*?)</select>', text)
            assert f'<option value="{value.replace("%20", " ")}">' in options, query
    assert {option for option in OUTCOMES if option not in text} == set()


def test_a_number_leads_to_as_many_lines_as_it_says(pages: Mapping[str, str]) -> None:
    leads = re.findall(r'data-query="only=([^"]*)">(?:\d+ of )?(\d+) reading', pages["report.html"])
    assert len(leads) > 3
    for rows, number in leads:
        assert len(rows.split("+")) == int(number), rows


def test_no_latex_is_left_on_a_page(pages: Mapping[str, str]) -> None:
    for name, text in pages.items():
        assert 'class="latex"' not in text, name
        shown = re.sub(r"<(style|script|code|pre)>.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)
        assert not re.search(r"\\(big|left|right|frac|sum|lvert|langle|text|mathrm)\b", shown), name


def test_pages_of_an_earlier_run_go_and_files_of_others_stay(tmp_path: Path) -> None:
    made = _bare(sample())
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards" / "mine.html").write_text("<p>not ours</p>")
    report.write(made, tmp_path)
    before = {path.name for path in (tmp_path / "cards").iterdir()}
    report.write(
        dataclasses.replace(made, rows=[r for r in made.rows if r.paper == "granziol2022"]), tmp_path
    )
    after = {path.name for path in (tmp_path / "cards").iterdir()}
    assert after < before and "mine.html" in after and len(after) == 2
    report.write(made, tmp_path, one_file=True)
    assert {path.name for path in (tmp_path / "cards").iterdir()} == {"mine.html"}
    assert not (tmp_path / "about.html").exists() and (tmp_path / "claims").exists()


def _bare(made: Results) -> Results:
    few = [row for row in made.rows if row.claim in ("granziol2022/theorem-10", "vysogorets2024/eq-12")]
    return dataclasses.replace(made, **{**NOTHING, "rows": few})
