"""The page of a paper, from Markdown with formulas in dollars: what it states, entry by entry, with derivations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from verify.page import wording
from verify.page.formulas import formula
from verify.page.markup import template
from verify.results import Results

SHEET = '<div class="sheet" tabindex="0" role="region" aria-label="Table">'
"""A table that is wider than the page can be moved in it."""

WIDE = 30
"""Characters of a formula in line."""


class Heading(NamedTuple):
    """A heading below the title, with its anchor, and the entry that its section is about, if any."""

    level: int
    title: Markup
    anchor: str
    entry: str


class PaperPage(NamedTuple):
    """Title, text as HTML in one piece below each heading, and the headings."""

    title: Markup
    opening: Markup
    sections: list[tuple[Heading, Markup]]

    @property
    def anchors(self) -> dict[str, str]:
        """The anchor of each entry that has a section."""
        return {heading.entry: heading.anchor for heading, _ in self.sections if heading.entry}


class Beside(NamedTuple):
    """A page beside a report: its file and where its sections are, as seen from there, by entry."""

    file: str
    html: str
    sections: dict[str, str]


def beside(
    results: Results, docs: Mapping[str, str], anchors: Mapping[str, str], inventory: str = "report.html"
) -> dict[str, Beside]:
    """The pages, in the Markdown `docs`, of those papers that a report shows anything of.

    `anchors` are those of the report; a section leads back to its entry in the inventory, which is on that page.
    """
    shown = [name for name in docs if any(i.paper == name for i in (*results.rows, *results.observations))]
    files = {name: f"{slug}.html" for name, slug in wording.slugs(shown).items()}
    links = {f"{name}.md": file for name, file in files.items()}
    found: dict[str, Beside] = {}
    for name, file in files.items():
        entries = {entry.id for entry in results.inventory if entry.paper == name}
        page = paper_page(docs[name], entries, links)
        rows = {entry: anchors[f"entry/{name}/{entry}"] for entry in entries}
        html = template("paper.html.j2").render(page=page, name=name, rows=rows, inventory=inventory)
        place = f"claims/{file}"
        found[name] = Beside(place, html, {e: f"{place}#{anchor}" for e, anchor in page.anchors.items()})
    return found


def paper_page(text: str, entries: Collection[str] = (), links: Mapping[str, str] | None = None) -> PaperPage:
    r"""Render a page whose first heading is its title; the section of an entry begins with the id of the entry.

    HTML is shown as text. Of relative links only those in `links` lead anywhere.

    >>> page = paper_page("# Ours\n## W1 Moments\nSee [it](it.md), $a<b$, <b>.", ["W1"], {"it.md": "it.html"})
    >>> page.title, page.anchors
    (Markup('Ours'), {'W1': 'w1'})
    >>> page.sections[0][1].partition(",")[0]
    Markup('<p>See <a href="it.html">it</a>')
    """
    tokens = _parser().parse(text)
    for token in tokens:
        _relink(token.children or [], links or {})
    places = [i for i, token in enumerate(tokens) if token.type == "heading_open" and not token.level]
    titled = bool(places) and tokens[places[0]].tag == "h1"
    title, rest = (_html(tokens[places[0] + 1 : places[0] + 2]), places[1:]) if titled else (Markup(), places)
    ends = [*rest, len(tokens)]
    return PaperPage(
        title,
        _html(tokens[3 * titled + (places[0] if titled else 0) : ends[0]]),
        [
            (heading, _html(tokens[start + 3 : end]))
            for heading, start, end in zip(_headings(tokens, rest, entries), rest, ends[1:], strict=True)
        ],
    )


def _headings(tokens: Sequence[Token], places: Sequence[int], entries: Collection[str]) -> list[Heading]:
    """Return the headings at these places, the highest at level 2, each with its own anchor."""
    highest = min((int(tokens[i].tag[1]) for i in places), default=2)
    found, seen = [], Counter[str]()
    for i in places:
        title = tokens[i + 1].content
        entry = title.partition(" ")[0]
        entry = entry if entry in entries else ""
        seen[entry or title] += 1
        name = f"{entry or title} {seen[entry or title]}" if seen[entry or title] > 1 else entry or title
        found.append(Heading(int(tokens[i].tag[1]) - highest + 2, _html(tokens[i + 1 : i + 2]), name, entry))
    anchors = wording.slugs(heading.anchor for heading in found)
    return [heading._replace(anchor=anchors[heading.anchor].lower()) for heading in found]


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    parser.inline.ruler.before("escape", "mathematics", _mathematics)
    parser.add_render_rule("mathematics", _formula)
    parser.add_render_rule("table_open", lambda *_: f"{SHEET}<table>")
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


def _html(tokens: Sequence[Token]) -> Markup:
    parser = _parser()
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - the parser escapes HTML


def _mathematics(state: StateInline, silent: bool) -> bool:
    """A formula between dollars, or displayed between pairs of them; nothing in it is Markdown."""
    if not state.src.startswith("$", state.pos):
        return False
    mark = "$$" if state.src.startswith("$$", state.pos) else "$"
    start = state.pos + len(mark)
    end = state.src.find(mark, start, state.posMax)
    latex = state.src[start:end]
    if end < 0 or not latex.strip() or (mark == "$" and latex != latex.strip()):
        return False
    if not silent:
        token = state.push("mathematics", "", 0)
        token.content, token.markup = latex, mark
    state.pos = end + len(mark)
    return True


def _formula(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    """A formula that is displayed, or wider than a telephone in line, can be moved in its place."""
    latex, display = tokens[place].content, tokens[place].markup == "$$"
    made = str(formula(latex, display))
    moved = "display" if display else "long" if len(latex) > WIDE else ""
    return f'<span class="{moved}">{made}</span>' if moved else made


def _relink(tokens: Sequence[Token], links: Mapping[str, str]) -> None:
    """Lead relative links where the pages lie; of those that have no page only the words stay."""
    nowhere = False
    for token in tokens:
        if token.type == "link_open":
            target = str(token.attrs["href"])
            nowhere = target not in links and not target.startswith(("#", "https:", "http:", "mailto:"))
            token.attrs["href"] = links.get(target, target)
        token.hidden = nowhere and token.type in ("link_open", "link_close")
