"""Laws of every page of a report: closed, linked, sealed, without network; and how pages are written."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import pytest
from markupsafe import Markup

from tests.refusals import refusal
from tests.verify.page.full_size import full_size, like_figures
from tests.verify.results.sample_results import sample, sample_of_kinds
from tests.verify.results.sample_rows import row
from verify.claims import registry
from verify.model import Kind
from verify.page import report, theme
from verify.page.formulas import formula
from verify.page.report import paper_pages
from verify.page.report.contents import Contents
from verify.page.report.paper_pages import PaperPage, paper_page
from verify.page.report.sealing import classed
from verify.page.vocabulary import KINDS
from verify.results import Results, load, save
from verify.running import workers
from verify.running.workers import FEW, open_map

FIRST, LARGEST, ELEMENTS = 700_000, 3_000_000, 20_000
ACTIVE = {"script", "iframe", "object", "embed", "img", "base", "form", "foreignobject", "animate"}
VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}
LOADING = {"src", "srcset", "data", "action", "xlink:href"}
NOTHING: dict[str, Any] = {
    part: [] for part in ("rows", "runs", "inventory", "planted", "derivations", "observations")
}
"""What a run may hold, left out."""


class Page(HTMLParser):
    """Collects what the tests ask for, and that every element is closed in its turn.

    What could act on a page are scripts, handlers and links that do not match the pattern.
    """

    def __init__(self, text: str, within: str = "#.*|data:,") -> None:
        super().__init__(convert_charrefs=True)
        self.within, self.acting = within, list[str]()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.resources: list[str] = []
        self.tags: Counter[str] = Counter()
        self.headings: list[int] = []
        self.text = ""
        self.feed(str(text))  # markup would be escaped anew, piece by piece
        self.close()
        assert self.open == [] and len(set(self.ids)) == len(self.ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        self.acting += [tag] * (tag in ACTIVE)
        for name, value in attrs:
            leaves = name.endswith("href") and not re.fullmatch(self.within, value or "", re.DOTALL)
            self.acting += [f"{tag} {name}={value}"] * (leaves or name.startswith("on"))
        self.ids += [values["id"]] if "id" in values else []
        self.links += [(values["href"], values.get("aria-label", ""))] if tag == "a" else []
        at = {*LOADING, "href" * (tag in ("link", "image", "use"))}
        self.resources += [values[name] for name in values if name in at]
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        self.open += [tag] * (tag not in VOID)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        self.text += data

    def updatepos(self, i: int, j: int) -> int:
        """Count no lines, which takes as long as to read them."""
        return j


def several(made: Results) -> dict[str, str]:
    beside = paper_pages.beside(made, registry.docs(), Contents(made, {}).anchors, "about.html")
    pages = {page.file: page.html for page in beside.values()}
    return {**report.documents(made, like_figures, beside), **pages}


def alone(**changes: Any) -> dict[str, str]:
    return {"report.html": report.document(replace(sample(), **changes), like_figures)}


SITES: dict[str, Callable[[], dict[str, str]]] = {
    "sample": alone,
    "kinds": lambda: {"report.html": report.document(sample_of_kinds())},
    "nothing": lambda: alone(**NOTHING, suite=replace(sample().suite, host={}, replicates=128)),
    "names that collide": lambda: alone(
        **NOTHING | {"rows": [row("new/a b"), row("new/a-b"), row("new/A b")]}
    ),
    "pages": lambda: several(replace(sample(), inventory=registry.inventory())),
    "registry": lambda: several(full_size()),
}
WHOLE = pytest.param("registry", marks=pytest.mark.slow)
every_site = pytest.mark.parametrize("site", [*list(SITES)[:-1], WHOLE])
large_sites = pytest.mark.parametrize("site", ["pages", WHOLE])


@cache
def pages_of(site: str) -> Mapping[str, str]:
    return SITES[site]()


@cache
def read(site: str) -> Mapping[str, Page]:
    """But for what is drawn or set on the pages of cards: one figure throughout, and formulas as on other pages."""

    def plain(name: str, text: str) -> str:
        if name.startswith("cards/"):
            text = re.sub(r"(<(svg|math)\b[^>]*>).*?(</\2>)", r"\1\3", text, flags=re.DOTALL)
        return text

    return {name: Page(plain(name, text)) for name, text in pages_of(site).items()}


# --- every page


@every_site
def test_every_element_is_closed_and_every_link_leads_to_a_page_and_an_anchor(site: str) -> None:
    pages = read(site)
    for name, page in pages.items():
        for link, _ in page.links:
            path, _, anchor = link.partition("#")
            if link.startswith("https:"):
                assert name.startswith("claims/")
                continue
            target = _there(name, path)
            assert target in pages and (not anchor or anchor in pages[target].ids), (name, link)


def _there(name: str, path: str) -> str:
    if not path:
        return name
    parts: list[str] = []
    for part in (PurePosixPath(name).parent / path).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


@every_site
def test_no_page_needs_a_network_or_skips_a_heading(site: str) -> None:
    for name, page in read(site).items():
        text = pages_of(site)[name]
        ours = ("#", "data:,") if name == "report.html" else ("#", "data:,", "../report.html", "report.html")
        assert [r for r in page.resources if not r.startswith(ours)] == []
        assert page.tags["script"] == (name == "report.html") and page.tags["img"] == page.tags["iframe"] == 0
        if not name.startswith("claims/"):
            spaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}
            assert set(re.findall(r"https?://[^\"'\s<>]+", text)) <= spaces
        assert "@import" not in text and not re.search(r"url\((?!#)", text)
        assert page.headings[0] == 1 and page.headings.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(page.headings))


@every_site
def test_the_policy_names_what_is_on_the_page_and_no_more(site: str) -> None:
    for name, text in pages_of(site).items():
        if name.startswith("claims/"):
            continue
        (said,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
        (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        directives = dict(part.split(" ", 1) for part in unescape(said).split("; "))
        assert directives["default-src"] == "'none'" and directives["img-src"] == "data:"
        assert directives["style-src"] == _hash(style) and "unsafe" not in said
        assert [directives.get("script-src")] == ([_hash(s) for s in scripts] or [None])
        bare = text.replace(scripts[0] if scripts else "", "")
        assert not re.search(r'<[a-z][^<>]* (style|on[a-z]+)="', bare)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@large_sites
def test_every_row_has_its_card_and_is_in_the_index_and_every_claim_in_the_chart(site: str) -> None:
    results = (full_size if site == "registry" else sample)()
    first = pages_of(site)["report.html"]
    cards = "".join(text for name, text in pages_of(site).items() if not name.startswith("claims/"))
    shown = dict(re.findall(r'<section class="reading" id="(row-[^"]*)" aria-label="([^"]*)">', cards))
    assert sorted(map(unescape, shown.values())) == sorted(r.id for r in results.rows)
    index = re.findall(r'<li data-words.*?href="[^"#]*#(row-[^"]*)"', first)
    chart = re.findall(r'<a class="m-.*?href="[^"#]*#(row-[^"]*)"', first)
    claims = {r.claim for r in results.rows}
    assert sorted(index) == sorted(shown) and {*chart} <= {*index}
    assert len(chart) == len(re.findall(r'<article class="card[^>]*id="claim', cards)) == len(claims)


# --- several pages


@pytest.mark.slow
def test_the_first_page_is_small_and_no_page_is_large() -> None:
    pages = pages_of("registry")
    sizes = {name: len(text.encode()) for name, text in pages.items()}
    assert sizes["report.html"] <= FIRST and max(sizes.values()) <= LARGEST
    assert read("registry")["report.html"].tags.total() <= ELEMENTS
    assert sum(name.startswith("cards/") for name in pages) > 17


@pytest.mark.slow
def test_main_plots_are_links_with_a_formula_a_mark_and_a_text_alternative() -> None:
    panels = re.findall(
        r'<a class="panel" href="cards/[^"]*">.*?</a>', pages_of("registry")["report.html"], re.DOTALL
    )
    assert len(panels) >= 6
    for panel in panels:
        assert "<math" in panel and len(re.findall(r'<svg [^>]*role="img" aria-label="[^"]{3,}"', panel)) >= 1
        assert re.search(r'class="m-[a-z]+">[a-z ]{5,} <svg', panel)
        assert panel.count('role="img"') == 1 and re.search(r'class="caption">[^<]{20,}', panel)


@pytest.mark.slow
def test_no_latex_is_left_on_a_page() -> None:
    for name, text in pages_of("registry").items():
        assert 'class="latex"' not in text, name
        shown = re.sub(r"<(style|script|code|pre)>.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)
        assert not re.search(r"\\(big|left|right|frac|sum|lvert|langle|text|mathrm)\b", shown), name


def test_styles_that_begin_alike_keep_classes_of_their_own() -> None:
    made, sheet = classed("".join(f'<g style="x: {k}"/>' for k in range(2000)))
    names = re.findall(r'class="(\w+)"', made)
    assert len(set(names)) == 2000
    assert all(f".{name}{{x: {k}}}\n" in sheet for k, name in enumerate(names))


# --- what stands on a page


def test_cards_stand_in_order_of_urgency_and_real_data_apart() -> None:
    html = pages_of("sample")["report.html"]
    titles = [m.strip() for m in re.findall(r'<h3 id="claim.*?</svg> ([^<]*)</h3>', html)]

    assert set(titles[:3]) == {"vysogorets2024/eq-12", "karakida2019/crash", "beyond/planned surprise"}
    assert titles[3] == "vysogorets2024/skewed" and titles[-1] == "granziol2022/digits"
    papers = list(dict.fromkeys(title.partition("/")[0] for title in titles[4:-1]))
    assert papers == ["vysogorets2024", "granziol2022", "karakida2019"]
    assert "Loss &lt;L&gt; &amp; notation" in html and "ValueError: &lt;nan&gt;" in html
    assert "<of the spectrum>" not in html


@pytest.mark.parametrize(
    ("site", "claim", "told"),
    [
        ("sample", "granziol2022/theorem-10",
         ("3 of 4 rejected", "limit instead of finite size: 1.3 margins away, not rejected",
          "seen to differ, by less than the margin")),
        ("sample", "vysogorets2024/skewed",
         ("budget, needs about 1648", "outside the calibrated laws: too skewed; what helps: judge its logarithm")),
        ("kinds", "granziol2022/edge",
         ("statistical 0.0016, of the size model 0.0024", "model-based", KINDS[Kind.LIMIT])),
        ("kinds", "karakida2019/upper",
         ("upper bound 10 measured 9.2", "margin 1 %", "slack 0.92 measured / bound", "upper bound ± margin")),
        ("kinds", "karakida2019/always as written",
         ("violations 1.2 % of 192 replicates", "interval 0.6 % … 1.8 %",
          "violated by replicate 7 (by 0.013), 30 (by")),
        ("kinds", "karakida2019/always",
         ("violations none of 768 replicates", "interval 0 % … 0.17 %", "an event rarer than 1 in",
          "twice the bound: violated in 12 % of the replicates")),
    ],
)  # fmt: skip
def test_a_card_says_what_was_found(site: str, claim: str, told: tuple[str, ...]) -> None:
    html = pages_of(site)["report.html"]
    (section,) = re.findall(
        rf'<section class="reading[^>]*aria-label="{claim}">.*?</section>', html, re.DOTALL
    )
    text = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", section)))
    assert [words for words in told if words not in text] == []


def test_every_kind_is_explained() -> None:
    assert {kind.value for kind in Kind} < set(KINDS)


def test_formulas_are_mathml_or_their_source() -> None:
    assert (
        formula(r"a \quad b").count("<math") == 2 and formula(r"\left( a \quad b \right)").count("<math") == 1
    )
    for latex in (r"\frac{", r"\unknowncommand{x}"):
        assert formula(latex) == f'<code class="latex">{latex}</code>'


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("palette", [theme.PALETTE, theme.DARK], ids=["light", "dark"])
def test_text_has_the_contrast_that_wcag_asks_for(palette: dict[str, str]) -> None:
    texts = ("ink", "muted", "theory", "nets", "agrees", "limits", "disagrees", "undecided", "broken")
    for name, least in (*((text, 4.5) for text in texts), ("rival", 3.0)):  # a rival is a line
        high, low = sorted((luminance(palette[name]), luminance(palette["paper"])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= least, name


def test_every_colour_of_the_figures_has_a_dark_one() -> None:
    assert set(theme.DARK) == set(theme.PALETTE)
    _, _, body = pages_of("sample")["report.html"].partition("<body>")
    assert not any(colour in body for colour in theme.PALETTE.values())


# --- writing


def bare(*claims: str) -> Results:
    return replace(sample(), **NOTHING | {"rows": [r for r in sample().rows if r.claim in claims]})


@pytest.mark.slow
def test_figures_drawn_by_workers_are_the_same(
    monkeypatch: pytest.MonkeyPatch, two_workers: Executor
) -> None:
    few = replace(sample(), **NOTHING | {"rows": [row for row in sample().rows if row.points][:4]})
    monkeypatch.setattr(workers, "open_workers", {2: nullcontext(two_workers)}.__getitem__)
    with open_map(FEW + 1, 2) as each:
        drawn = report.document(few, each)
        assert each is not map and drawn == report.document(few) and drawn.count("<svg") >= len(few.rows)
    with open_map(FEW, 2) as each:
        assert each is map


def test_the_same_results_give_the_same_pages_and_so_do_those_read_from_their_file(tmp_path: Path) -> None:
    results = sample()
    save(results, tmp_path / "results.json")
    path = report.write(load(tmp_path / "results.json"), tmp_path / "new" / "folder", like_figures)

    pages = paper_pages.beside(results, registry.docs(), Contents(results, {}).anchors, "about.html")
    several = report.documents(results, like_figures, pages)
    for name, text in several.items():
        assert (path.parent / name).read_text(encoding="utf-8") == text
    assert path.with_name("results.json").read_bytes() == (tmp_path / "results.json").read_bytes()
    one = Page(report.document(results, like_figures, pages))
    assert {name for text in several.values() for name in Page(text).ids} <= {*one.ids}


def test_pages_of_an_earlier_run_go_and_files_of_others_stay(tmp_path: Path) -> None:
    made = bare("granziol2022/theorem-10", "vysogorets2024/eq-12")
    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "mine.html").write_text("<p>not ours</p>")
    report.write(made, tmp_path, like_figures)
    before = {path.name for path in cards.iterdir()}
    report.write(bare("granziol2022/theorem-10"), tmp_path, like_figures)
    after = {path.name for path in cards.iterdir()}
    assert after < before and "mine.html" in after and len(after) == 2
    report.write(made, tmp_path, like_figures, one_file=True)
    assert {path.name for path in cards.iterdir()} == {"mine.html"}
    assert not (tmp_path / "about.html").exists() and (tmp_path / "claims").exists()


@pytest.mark.parametrize("folder", ["file", "file/below", "taken"])
def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "taken" / "report.html").mkdir(parents=True)

    with refusal(rf"report cannot be written to .*{folder[:4]}"):
        report.write(bare(), tmp_path / folder)


# --- pages of papers


def whole(page: PaperPage) -> str:
    return page.title + page.opening + Markup("").join(h.title + body for h, body in page.sections)


@pytest.mark.parametrize("paper", ["vysogorets2024", "granziol2022", "karakida2019", "beyond"])
def test_every_entry_has_its_section_and_no_latex_is_left(paper: str) -> None:
    written = Path(__file__).parents[3] / "docs" / "claims" / f"{paper}.md"
    assert registry.docs()[paper] == written.read_text(encoding="utf-8")
    entries = [entry.id for entry in registry.entries()[paper]]
    page = paper_page(registry.docs()[paper], entries)
    assert list(page.anchors) == entries
    html = whole(page)
    assert "<math" in html and 'class="latex"' not in html and len(html) < 400_000
    assert not re.search(r"\$|\\[a-zA-Z]|\*\*|\]\(", Page(html).text)


def test_html_and_links_of_a_page_of_others_are_text() -> None:
    page = paper_page(
        "# <b>One</b>\n\n<script>alert(1)</script>\n\n## E1 two $a<b$\n"
        "[x](javascript:alert(1)) [y](other.md) ![z](z.png)"
        " [w](https://example.org) `<i>` $<script>$ costs 5$ and 6$ $\\frac{$ $\\text{<script>}$",
        ["E1"],
    )
    html = whole(page)
    shown = Page(html)
    assert shown.links == [("https://example.org", "")] and not {"b", "i", "script", "img"} & set(shown.tags)
    assert "&lt;script&gt;alert(1)" in html and "costs 5$ and 6$" in html
    assert '<code class="latex">\\frac{</code>' in html


def test_sections_of_one_name_have_anchors_of_their_own_and_skip_no_level() -> None:
    page = paper_page("# Title\n## E1 a\n## E1 b\n## E1-2\n### 名\n## con", ["E1"])
    anchors = [heading.anchor for heading, _ in page.sections]
    assert len(set(anchors)) == 5 and anchors[0] == "e1"
    assert [heading.level for heading, _ in page.sections] == [2, 2, 2, 3, 2]
    assert paper_page("text").sections == [] and paper_page("## a\n# b").title == ""
    assert paper_pages.beside(sample(), {}, {}) == {}


@pytest.mark.parametrize("docs", [Path("absent.md"), Path(__file__).parent])
def test_a_page_that_cannot_be_read_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, docs: Path) -> None:
    package = ModuleType("a_paper")
    vars(package).update(DOCS=docs)
    monkeypatch.setattr(registry, "_packages", lambda *_: {"a_paper": package})
    with refusal("paper a_paper must have DOCS that can be read, got "):
        registry.docs()
