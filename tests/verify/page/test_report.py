from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.verify.page.full_size import like_figures
from tests.verify.results.sample_results import sample, sample_of_kinds
from tests.verify.results.sample_rows import row
from verify.claims import registry
from verify.model import Kind
from verify.page import report, theme
from verify.page.formulas import formula
from verify.page.report import paper_pages
from verify.page.report.contents import Contents
from verify.page.vocabulary import KINDS
from verify.results import Results, load, save
from verify.running.workers import FEW, open_map

VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}
PARTS = ("rows", "runs", "inventory", "planted", "derivations", "observations")
NOTHING: dict[str, Any] = {name: [] for name in PARTS}
"""What a run may hold, left out."""


class Page(HTMLParser):
    """Collects what the tests ask for, and that every element is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.resources: list[str] = []
        self.tags: Counter[str] = Counter()
        self.headings: list[int] = []
        self.cells: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        self.ids += [values["id"]] if "id" in values else []
        if tag == "a":
            self.links.append(values["href"])
            self.cells.append((values["href"], values.get("aria-label", "")))
        self.resources += [
            v for k, v in values.items() if k in ("src", "srcset", "data", "action", "xlink:href")
        ]
        self.resources += [values["href"]] if tag in ("link", "image", "use") else []
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def results() -> Results:
    return sample()


@pytest.fixture(scope="module")
def html(results: Results) -> str:
    return report.document(results)


@pytest.mark.slow
def test_figures_drawn_by_workers_are_the_same(results: Results) -> None:
    few = dataclasses.replace(results, **NOTHING | {"rows": [row for row in results.rows if row.points][:4]})
    with open_map(FEW + 1, 2) as each:
        drawn = report.document(few, each)
        assert each is not map and drawn == report.document(few) and drawn.count("<svg") >= len(few.rows)
    with open_map(FEW, 2) as each:
        assert each is map


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


@pytest.fixture(scope="module")
def kinds() -> str:
    """The page of what rests on sizes, of bounds, distributions and vector scores; small, for it is drawn anew."""
    shown = {
        "granziol2022/edge",
        "karakida2019/order as guessed",
        "granziol2022/edge of few",
        "karakida2019/upper",
    }
    shown |= {"karakida2019/always", "karakida2019/always as written", "beyond/spectrum"}
    made = sample_of_kinds()
    return report.document(
        dataclasses.replace(made, rows=[r for r in made.rows if r.id in shown], planted=made.rows[-2:])
    )


def reading(html: str, claim: str) -> str:
    """The words on the card of a claim."""
    (section,) = re.findall(
        rf'<section class="reading[^>]*aria-label="{claim}">.*?</section>', html, flags=re.DOTALL
    )
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", section)))


def words(page: Page) -> str:
    return re.sub(r"\s+", " ", "".join(page.text))


def test_every_element_is_closed(page: Page) -> None:
    assert page.open == []


def test_ids_are_unique_and_every_link_leads_to_one(page: Page) -> None:
    assert [name for name, n in Counter(page.ids).items() if n > 1] == []
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)


def test_the_page_needs_neither_network_nor_script(page: Page, html: str) -> None:
    assert [r for r in page.resources if not r.startswith(("#", "data:,"))] == []
    assert page.tags["script"] == 1 and page.tags["img"] == page.tags["iframe"] == 0
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}
    assert set(re.findall(r"https?://[^\"'\s<>]+", html)) <= namespaces
    assert "@import" not in html and not re.search(r"url\((?!#)", html)


def test_every_row_is_shown_once_and_has_its_cell(page: Page, html: str, results: Results) -> None:
    shown = re.findall(r'<section class="reading[^"]*" id="([^"]*)" aria-label="([^"]*)"', html)
    cells = [(href, label) for href, label in page.cells if ": " in label]

    assert sorted(name for _, name in shown) == sorted(r.id for r in results.rows)
    assert {href[1:] for href, _ in cells} == {anchor for anchor, _ in shown} and len(cells) == len(shown)
    assert all(any(label.startswith(f"{r.id}: {r.verdict}") for _, label in cells) for r in results.rows)


def test_readings_of_one_claim_share_a_card(html: str, results: Results) -> None:
    cards = re.findall(r'<article class="card[^>]*id="claim.*?</article>', html, flags=re.DOTALL)

    assert len(cards) == len({r.claim for r in results.rows})
    pair = next(card for card in cards if "granziol2022/theorem-4" in card)
    assert pair.count('class="reading"') == 2 and "corrected" in pair and "as our copy reads" in pair


def test_cards_stand_in_order_of_urgency_and_real_data_apart(html: str) -> None:
    titles = [m.strip() for m in re.findall(r'<h3 id="claim.*?</span> ([^<]*)</h3>', html)]

    assert set(titles[:3]) == {"vysogorets2024/eq-12", "karakida2019/crash", "beyond/planned surprise"}
    assert titles[3] == "vysogorets2024/skewed" and titles[-1] == "granziol2022/digits"
    papers = list(dict.fromkeys(title.partition("/")[0] for title in titles[4:-1]))
    assert papers == ["vysogorets2024", "granziol2022", "karakida2019"]


def test_failed_and_broken_look_different(html: str) -> None:
    failed = next(m for m in re.findall(r'<article class="([^"]*)" id="claim-vysogorets2024-eq-12"', html))
    broken = next(m for m in re.findall(r'<article class="([^"]*)" id="claim-karakida2019-crash"', html))

    assert "has-broken" in broken and "has-broken" not in failed and "urgent" in failed
    judged = html[: html.index('id="observations"')]
    assert judged.count('<details class="error"') == 1 and "ValueError: &lt;nan&gt;" in html


def test_the_headline_tells_what_agrees_from_what_fails_as_foreseen_and_from_surprises(page: Page) -> None:
    text = words(page)

    assert "10 readings agree with experiment" in text and "2 readings fail, as foreseen" in text
    assert re.search(r"4 surprises .*vysogorets2024/eq-12, agrees was expected", text)
    assert "16 readings were judged; 1 undecided" in text and "extrapolated in size: 1 agrees" in text
    promised = (
        "Of the 11 verdicts decided by sampling, at most 0.1 % (one run in 1000) chance that any is wrong"
    )
    assert f"{promised}; 1 undecided." in text and "212 of 1024 intervals" in text
    assert "3 readings are identities and exact properties, without sampling error." in text
    assert "7 min 11 s" in text and "0123456789ab" in text and "20240501" in text


def test_cards_say_what_was_found(page: Page) -> None:
    text = words(page)

    assert "3 of 4 rejected, the nearest at 1.3 margins" in text
    assert "limit instead of finite size: 1.3 margins, not rejected" in text
    assert "2.4001 ± 0.0098 statistical 0.0098" in text
    assert "budget, needs about 1648" in text and "seen to differ, by less than the margin" in text
    assert "outside the calibrated laws: too skewed; what helps: judge its logarithm" in text
    assert re.search(r"an event rarer than 1 in \d+ of the replicates would not be seen", text)
    assert "σc = 0.31, γ = 2.6" in text
    assert "losscurv report --claim granziol2022/theorem-4 --seed 20240501 --tier default" in text


def test_the_text_conversion_is_mentioned_once(html: str) -> None:
    assert html.count("The papers were read from a text conversion") == 1


def test_headings_skip_no_level(page: Page) -> None:
    assert page.headings[0] == 1 and page.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))


def test_texts_of_the_results_are_escaped(html: str) -> None:
    assert "Loss &lt;L&gt; &amp; notation" in html and "<of the spectrum>" not in html


def test_margins_are_listed_widest_first(html: str) -> None:
    table = html[html.index('id="margins"') : html.index('id="limits"')]
    widths = [float(m) for m in re.findall(r'<tr><td class="n">([\d.]+) %', table)]

    assert widths == sorted(widths, reverse=True) and widths[0] == 5.0
    assert "the spread over ten trained networks" in table


def test_inventory_links_entries_and_cards_both_ways(html: str) -> None:
    assert '<a href="#entry-granziol2022-B17">B17</a>' in html and '<tr id="entry-granziol2022-B17">' in html
    assert 'href="#claim-granziol2022-theorem-10">granziol2022/theorem-10</a>' in html
    assert "needs a cluster" in html


def test_formulas_are_mathml_or_their_source() -> None:
    assert "<math" in formula(r"a \quad b") and formula(r"a \quad b").count("<math") == 2
    assert formula(r"\left( a \quad b \right)").count("<math") == 1
    for latex in (r"\frac{", r"\unknowncommand{x}"):
        assert formula(latex) == f'<code class="latex">{latex}</code>'


@pytest.mark.parametrize(
    "latex", [r"<script>x</script>", r"\text{<script>}", r"\frac{<script>", "", r"a & b"]
)
def test_formulas_cannot_bring_elements_of_their_own(latex: str) -> None:
    assert "<script" not in formula(latex)


def test_every_colour_of_the_figures_has_a_dark_one(html: str) -> None:
    assert set(theme.DARK) == set(theme.PALETTE)
    body = html[html.index("<body>") :]
    assert not any(colour in body for colour in theme.PALETTE.values())


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("palette", [theme.PALETTE, theme.DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    "name", ["ink", "muted", "theory", "rival", "agrees", "disagrees", "undecided", "broken"]
)
def test_text_has_the_contrast_that_wcag_asks_for(palette: dict[str, str], name: str) -> None:
    high, low = sorted((luminance(palette[name]), luminance(palette["paper"])), reverse=True)

    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_a_run_without_anything_is_still_a_page() -> None:
    bare = dataclasses.replace(sample(), **NOTHING)
    bare = dataclasses.replace(bare, suite=dataclasses.replace(bare.suite, host={}, replicates=128))

    page = Page(report.document(bare))

    assert page.open == [] and {link[1:] for link in page.links} <= set(page.ids)


def test_a_claim_of_an_unknown_paper_with_a_colliding_name_has_its_own_card() -> None:
    rows = [row("new/a b"), row("new/a-b"), row("new/A b")]

    page = Page(report.document(dataclasses.replace(sample(), **{**NOTHING, "rows": rows})))

    assert len(set(page.ids)) == len(page.ids) and {link[1:] for link in page.links} <= set(page.ids)


def test_the_same_results_give_the_same_page_and_so_do_those_read_from_their_file(
    tmp_path: Path, results: Results, html: str
) -> None:
    save(results, tmp_path / "results.json")

    path = report.write(load(tmp_path / "results.json"), tmp_path / "new" / "folder", like_figures)

    pages = paper_pages.beside(results, registry.docs(), Contents(results, {}).anchors, "about.html")
    for name, text in report.documents(results, like_figures, pages).items():
        assert (path.parent / name).read_text(encoding="utf-8") == text != html
    assert path.with_name("results.json").read_bytes() == (tmp_path / "results.json").read_bytes()
    assert json.loads(path.with_name("results.json").read_text())["schema"] == results.schema


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(ValueError, match=r"report cannot be written to .*file"):
        report.write(sample(), tmp_path / folder)


def test_a_page_that_is_a_folder_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()

    with pytest.raises(ValueError, match="report cannot be written"):
        report.write(dataclasses.replace(sample(), **NOTHING), tmp_path)


def test_every_part_of_a_half_width_is_named_and_a_missing_interval_too(kinds: str) -> None:
    assert "statistical 0.0016, of the size model 0.0024" in reading(kinds, "granziol2022/edge")
    few = reading(kinds, "granziol2022/edge of few")
    assert "2.004 ± ∞ no interval" in few and "undecided size model not trusted" in few


def test_what_rests_on_a_size_model_says_so_on_its_card_and_in_its_cell(kinds: str) -> None:
    made = {r.id: r for r in sample_of_kinds().rows}
    cells = [(label, text) for label, text in re.findall(r'aria-label="([^"]*: [^"]*)">(.*?)</a>', kinds)]

    assert len(cells) == 7
    for label, text in cells:
        name = label.partition(":")[0]
        tagged = (
            '<a class="tag" href="#limits">model-based</a>'
            in kinds.partition(f'aria-label="{name}">')[2][:600]
        )
        assert label.endswith(", model-based") == made[name].model_based == tagged
        assert ("<small>model-based</small>" in text) == made[name].model_based
    assert "with its leading power alone such a fit puts the limit 0.1 % too high" in words(Page(kinds))


def test_bounds_are_called_bounds_and_have_their_slack(kinds: str) -> None:
    card = reading(kinds, "karakida2019/upper")

    assert "upper bound 10 margin 1 %" in card and "slack 0.92 measured / bound" in card
    assert "upper bound ± margin" in card


def test_violations_are_listed_with_the_command_that_draws_them_again(kinds: str) -> None:
    broken, kept = reading(kinds, "karakida2019/always as written"), reading(kinds, "karakida2019/always")

    assert "violations 1.2 % of 192 replicates interval 0.6 % … 1.8 %" in broken
    assert "violated by replicate 7 (by 0.013), 30 (by 0.026)" in broken
    # replicates are drawn in blocks of 16, and the last one listed is number 168
    assert (
        "draw the violations again losscurv report" in broken and "--tier default --replicates 176" in broken
    )
    assert "violations none of 768 replicates interval 0 % … 0.17 %" in kept and "again losscurv" in kept
    assert "twice the bound: violated in 12 % of the replicates" in kept and "draw the violations" not in kept


def test_a_card_says_what_a_replicate_is(kinds: str) -> None:
    assert "replicates 768 at most at a point, each one noise matrix" in reading(kinds, "beyond/spectrum")


def test_every_kind_is_explained(kinds: str) -> None:
    assert {kind.value for kind in Kind} < set(KINDS)
    assert KINDS[Kind.LIMIT] in reading(kinds, "granziol2022/edge")
    planted = kinds[kinds.index('id="planted"') : kinds.index('id="derivations"')]
    assert KINDS[Kind.GROUPS] in planted


def test_what_no_claim_reads_is_named_with_its_reason() -> None:
    made = dataclasses.replace(sample(), unread={"a derivation": "derivations"})
    assert "No claim reads derivations (a derivation)" in words(Page(report.document(made)))
