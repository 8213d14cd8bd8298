"""The pages of papers beside a report: every link of it leads somewhere, and no LaTeX is left on them."""

from __future__ import annotations

import dataclasses
import re
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
from markupsafe import Markup

from tests.verify.page.test_report import Page, words
from tests.verify.results.sample_results import sample
from verify.claims import registry
from verify.page import report
from verify.page.report import paper_pages
from verify.page.report.paper_pages import PaperPage, paper_page

PAPERS = ("vysogorets2024", "granziol2022", "karakida2019", "beyond")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small report with the pages of its papers."""
    made = sample()
    shown = {"vysogorets2024/gamma", "granziol2022/theorem-10", "karakida2019/crash"}
    rows = [row for row in made.rows if row.claim in shown or row.paper == "beyond"][:6]
    listed = [row for row in registry.inventory() if row.paper in PAPERS]
    bare = dataclasses.replace(made, rows=rows, inventory=listed, planted=[], derivations=[])
    folder = tmp_path_factory.mktemp("report")
    report.write(bare, folder)
    return folder


def whole(page: PaperPage) -> str:
    return page.title + page.opening + Markup("").join(h.title + body for h, body in page.sections)


def test_every_link_leads_to_a_file_and_an_anchor(folder: Path) -> None:
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    across = 0
    for path, page in pages.items():
        assert page.open == [] and len(set(page.ids)) == len(page.ids)
        for link in page.links:
            if link.startswith("http"):
                continue
            place, _, anchor = link.partition("#")
            target = pages[(path.parent / place).resolve() if place else path]
            assert not anchor or anchor in target.ids, link
            across += bool(place)
    assert len(pages) > 2 and across > 100


def test_a_card_and_its_cell_lead_to_the_sections_of_their_entries(folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    beside = (folder / "cards" / "granziol2022.html").read_text(encoding="utf-8")
    (card,) = re.findall(r'<article [^>]*id="claim-granziol2022-theorem-10".*?</article>', beside, re.DOTALL)
    cells = re.findall(r'<li [^>]*><a href="cards/[^"]*" aria-label="granziol2022/theorem-10.*?</li>', text)
    assert len(cells) == 1 + ("[as our copy reads]" in card)
    assert '<a href="../claims/granziol2022.html#b17">B17</a>' in card
    lines = re.findall(r'<div class="entryline">.*?</div>', text, re.DOTALL)
    (line,) = [line for line in lines if cells[0] in line]
    assert '<a href="claims/granziol2022.html#b17">B17</a>' in line


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_that_is_installed_is_that_of_the_docs(paper: str) -> None:
    written = Path(__file__).parents[3] / "docs" / "claims" / f"{paper}.md"
    assert registry.docs()[paper] == written.read_text(encoding="utf-8")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_entry_has_its_section_and_no_latex_is_left(paper: str) -> None:
    entries = [entry.id for entry in registry.entries()[paper]]
    page = paper_page(registry.docs()[paper], entries)
    assert list(page.anchors) == entries
    html = whole(page)
    text = words(Page(html))
    assert "<math" in html and 'class="latex"' not in html
    assert not re.search(r"\$|\\[a-zA-Z]|\*\*|\]\(", text)
    assert len(html) < 400_000


def test_a_page_needs_neither_network_nor_script(folder: Path) -> None:
    for path in (folder / "claims").iterdir():
        page = Page(path.read_text(encoding="utf-8"))
        assert [r for r in page.resources if not r.startswith("data:,")] == []
        assert page.tags["script"] == page.tags["img"] == 0
        assert all(after - before < 2 for before, after in pairwise(page.headings))


def test_html_and_links_of_a_page_of_others_are_text() -> None:
    page = paper_page(
        "# <b>One</b>\n\n<script>alert(1)</script>\n\n## E1 two $a<b$\n"
        "[x](javascript:alert(1)) [y](other.md) ![z](z.png)"
        " [w](https://example.org) `<i>` $<script>$ costs 5$ and 6$ $\\frac{$ $\\text{<script>}$",
        ["E1"],
    )
    html = whole(page)
    shown = Page(html)
    assert shown.links == ["https://example.org"] and shown.tags["script"] == shown.tags["img"] == 0
    assert not {"b", "i", "script"} & set(shown.tags)
    assert "&lt;script&gt;alert(1)" in html and "costs 5$ and 6$" in html
    assert '<code class="latex">\\frac{</code>' in html


def test_sections_of_one_name_have_anchors_of_their_own_and_skip_no_level() -> None:
    page = paper_page("# Title\n## E1 a\n## E1 b\n## E1-2\n### 名\n## con", ["E1"])
    anchors = [heading.anchor for heading, _ in page.sections]
    assert len(set(anchors)) == 5 and anchors[0] == "e1"
    assert [heading.level for heading, _ in page.sections] == [2, 2, 2, 3, 2]
    assert paper_page("text").sections == [] and paper_page("## a\n# b").title == ""


def test_a_paper_without_a_page_has_no_link() -> None:
    assert paper_pages.beside(sample(), {}, {}) == {}
    assert "claims/granziol2022.html" not in report.document(dataclasses.replace(sample(), rows=[]))


@pytest.mark.parametrize("docs", [Path("absent.md"), Path(__file__).parent])
def test_a_page_that_cannot_be_read_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, docs: Path) -> None:
    package = ModuleType("a_paper")
    vars(package).update(DOCS=docs)
    monkeypatch.setattr(registry, "_packages", lambda *_: {"a_paper": package})
    with pytest.raises(ValueError, match="paper a_paper must have DOCS that can be read, got "):
        registry.docs()
