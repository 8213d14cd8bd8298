"""The correctness report: one self-contained page drawn from the results alone."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
from matplotlib.figure import Figure

from verify.files import replace_files
from verify.page import plots, ratios, wording
from verify.page.cards import EXACT, Card, Reading, centre, percent, replicates_of, span
from verify.results import InventoryRow, Observed, PaperRow, Results, Row, RunRecord, Suite, dumps, edited
from verify.running.store import exclusive

__all__ = ["document", "formula", "write"]

DARK = {
    "paper": "#191d23",
    "ink": "#e4e7eb",
    "muted": "#9da7b4",
    "rule": "#343b45",
    "band": "#22364f",
    "theory": "#7fb0f0",
    "rival": "#c9a468",
    "agrees": "#4fc6b4",
    "disagrees": "#f78a55",
    "undecided": "#dfb04a",
    "broken": "#c994ff",
}
"""The palette of the figures on a dark page."""

FOLDED = 12
"""Longer tables of points are folded."""

MATHML = re.compile(r"(?:\{[^}]*\})?(?:math|m[a-z]+|semantics)$")
ACTIVE = re.compile(r"href|src|style|class|id|on.*")
"""Attributes with which a formula could leave its place on the page, or do something there."""

Each = Callable[[Callable[[Row], Markup], Sequence[Row]], Iterable[Markup]]
"""``map``, or one that shares the calls among processes."""

LONGEST_FORMULA = 5000
"""Characters; beyond, the conversion takes seconds."""


class Headline(NamedTuple):
    """Verdicts of the rows that are judged alike."""

    rows: int
    counts: dict[str, int]
    expected: int


class Sight(NamedTuple):
    """An observation with its anchor, its entries with theirs, and its figure if it has one."""

    made: Observed
    anchor: str
    entries: list[tuple[str, str | None]]
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


def write(results: Results, folder: Path, each: Each = map) -> Path:
    """Write ``report.html`` and ``results.json``, both or none of them; returns the page.

    Of two runs that end in one folder at once, both files are those of the one that was later. The figures are drawn
    by `each`, a ``map`` that may share them among processes.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    page = folder / "report.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        texts = {folder / "results.json": dumps(results), page: document(results, each)}
        with exclusive(folder):
            replace_files(texts)
    except OSError as error:
        raise ValueError(f"report cannot be written to {folder}: {error.strerror or error}") from None
    return page


def document(results: Results, each: Each = map) -> str:
    """The page as HTML, its figures drawn by `each`."""
    changed, results = edited(results), wording.legible(results)
    cards = _cards(results, each)
    sights = _sights(results)
    anchors = {reading.row.id: reading.anchor for card in cards for reading in card.readings}
    observed = [card for card in cards if card.first.data]
    return _template().render(
        edited=changed,
        suite=results.suite,
        host=results.suite.host,
        headlines=_headlines(results.rows),
        standings=_standings(results.rows),
        bound=_chance(results.suite.family_error),
        families=_families(results.suite),
        urgent=[r for card in cards for r in card.readings if r.row.surprise or r.row.verdict == "broken"],
        matrix=_matrix(results, anchors),
        cards=[card for card in cards if not card.first.data],
        observed=observed,
        observations=sights,
        overview=_themed(plots.overview(results.rows, plots.stamp(results))) if results.rows else None,
        seconds=_themed(plots.seconds_chart(results)) if results.runs else None,
        margins=_margins(results.rows, anchors),
        planted=results.planted,
        derivations=results.derivations,
        inventory=_inventory(results, cards, sights),
        symbols=wording.SYMBOLS,
        kinds=wording.KINDS,
        light=plots.PALETTE,
        dark=DARK,
        folded=FOLDED,
        differing=wording.differing,
        shared=wording.shared,
    )


@cache
def _template() -> Template:
    """The page to be filled in; compiling it takes longer than many a page."""
    environment = Environment(
        loader=PackageLoader("verify.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        formula=formula,
        number=wording.number,
        parameters=wording.parameters,
        measurement=wording.measurement,
        prediction=wording.prediction,
        half_parts=wording.half_parts,
        violations=wording.violations,
        half_width=wording.half_width,
        finite=math.isfinite,
        constant=ratios.constant,
        level=ratios.level,
        triangles=ratios.mark,
        duration=_duration,
        percent=percent,
        span=span,
        centre=centre,
        standing=wording.standing,
    )
    return environment.get_template("report.html.j2")


def formula(latex: str, display: bool = True) -> Markup:
    r"""LaTeX as MathML, in pieces that may break at its ``\quad``; as it stands where it cannot be converted.

    >>> formula(r"\frac{")
    Markup('<code class="latex">\\frac{</code>')
    """
    pieces = [_mathml(piece, display) for piece in _pieces(latex)]
    if any(piece is None for piece in pieces):
        return Markup('<code class="latex">{}</code>').format(latex)
    return Markup(" ").join(piece for piece in pieces if piece is not None)


def _pieces(latex: str) -> list[str]:
    """Split at spaces of a quad or more that stand outside of all braces and environments."""
    pieces, depth, start = [], 0, 0
    for match in re.finditer(r"\\begin\b|\\end\b|\\left\b|\\right\b|\\q?quad\b|\\.|[{}]", latex):
        token = match.group()
        depth += (token in ("{", "\\begin", "\\left")) - (token in ("}", "\\end", "\\right"))
        if token in ("\\quad", "\\qquad") and depth == 0:
            pieces.append(latex[start : match.start()])
            start = match.end()
    return [piece for piece in (*pieces, latex[start:]) if piece.strip()]


def _mathml(latex: str, display: bool) -> Markup | None:
    from latex2mathml.converter import convert

    if len(latex) > LONGEST_FORMULA:
        return None
    try:
        text = convert(latex.strip(), display="block" if display else "inline")
        root = ElementTree.fromstring(text)  # noqa: S314 - made by the converter just now, not fetched
    except Exception:
        return None
    strange = any(
        not MATHML.match(node.tag) or any(map(ACTIVE.fullmatch, node.attrib)) for node in root.iter()
    )
    if strange or any("\\" in (node.text or "") for node in root.iter()):
        return None
    return Markup(text.replace("&#x0007E;", "&#x0223C;"))  # noqa: S704 - parsed and checked above


def _themed(figure: Figure) -> Markup:
    """The figure in the colours of the page, light or dark."""
    svg = plots.to_svg(figure)
    for name, colour in plots.PALETTE.items():
        svg = svg.replace(colour, f"var(--{name})")
    return Markup(svg)  # noqa: S704 - drawn by matplotlib, which escapes its texts


def _cards(results: Results, each: Each) -> list[Card]:
    """One card per claim, surprises first, then in the order of papers and of the run."""
    groups: dict[str, list[Row]] = {}
    for row in results.rows:
        groups.setdefault(row.claim, []).append(row)
    ids = _anchors(results)
    measured = [row for row in results.rows if row.points]
    drawn = each(partial(_drawn, plots.stamp(results)), measured)
    figures = dict(zip((row.id for row in measured), drawn, strict=True))
    cards = [
        Card(
            claim=claim,
            anchor=ids[f"claim/{claim}"],
            readings=[_reading(row, ids[f"row/{row.id}"], figures, results.runs) for row in rows],
            entries=[(e, ids.get(f"entry/{rows[0].paper}/{e}")) for e in rows[0].entries],
        )
        for claim, rows in groups.items()
    ]
    order = _order(results)
    return sorted(cards, key=lambda card: (card.urgency, order(card.first.paper)))


def _sights(results: Results) -> list[Sight]:
    """Observations in the order of the run, those that crashed first."""
    ids, mark, found = _anchors(results), plots.stamp(results), []
    for made in sorted(results.observations, key=lambda made: not made.error):
        figure = plots.observation(made, mark)
        entries = [(e, ids.get(f"entry/{made.paper}/{e}")) for e in made.entries]
        found.append(Sight(made, ids[f"observed/{made.id}"], entries, _themed(figure) if figure else None))
    return found


def _drawn(mark: str, row: Row) -> Markup:
    return _themed(plots.agreement(row, mark))


def _reading(row: Row, anchor: str, figures: Mapping[str, Markup], runs: Sequence[RunRecord]) -> Reading:
    return Reading(
        row=row,
        anchor=anchor,
        point=wording.telling(row),
        rivals=wording.rival_tally(row),
        figure=figures.get(row.id),
        replicates=replicates_of(row, runs),
    )


def _anchors(results: Results) -> dict[str, str]:
    names = [f"claim/{row.claim}" for row in results.rows]
    names += [f"row/{row.id}" for row in results.rows]
    names += [f"observed/{made.id}" for made in results.observations]
    return wording.slugs(names + [f"entry/{entry.paper}/{entry.id}" for entry in results.inventory])


def _headlines(rows: Sequence[Row]) -> dict[str, Headline]:
    """Directly judged and model-based rows are never counted together: only the first have the promise."""
    return {
        name: _headline([row for row in rows if row.model_based is model_based])
        for name, model_based in (("Directly judged", False), ("Model-based", True))
    }


def _headline(rows: Sequence[Row]) -> Headline:
    counts = Counter(row.verdict for row in rows)
    expected = sum(row.verdict == row.expected == "disagrees" for row in rows)
    return Headline(len(rows), {verdict: counts[verdict] for verdict in wording.SYMBOLS}, expected)


def _standings(rows: Sequence[Row]) -> list[tuple[str, str, dict[str, int]]]:
    """Verdicts by how the readings stand to the papers."""
    counts = {s: Counter(row.verdict for row in rows if row.standing == s) for s in wording.STANDINGS}
    return [(s, meaning, counts[s]) for s, meaning in wording.STANDINGS.items() if counts[s]]


def _matrix(results: Results, anchors: dict[str, str]) -> list[tuple[str, list[tuple[Row, str, str]]]]:
    """Per paper its rows, each with the short name of its claim and its anchor."""
    papers, names = sorted({row.paper for row in results.rows}, key=_order(results)), _names(results)
    return [
        (names.get(paper, paper), [_cell(row, anchors) for row in results.rows if row.paper == paper])
        for paper in papers
    ]


def _cell(row: Row, anchors: dict[str, str]) -> tuple[Row, str, str]:
    return row, row.claim.removeprefix(f"{row.paper}/"), anchors[row.id]


def _margins(rows: Sequence[Row], anchors: dict[str, str]) -> list[tuple[Row, str, str, str]]:
    """Claims by the width of their margin relative to what they predict, widest first."""
    claims = {row.claim: row for row in reversed(rows) if row.points and row.kind not in EXACT}
    return [
        (
            row,
            anchors[row.id],
            percent(_width(row)) if math.isfinite(_width(row)) else "—",
            "of the prediction" if row.relative else f"{wording.number(row.margin)} in its own unit",
        )
        for row in sorted(claims.values(), key=lambda row: (-_width(row), row.claim))
    ]


def _width(row: Row) -> float:
    """The margin as a share of the prediction; of the smallest one where the margin is absolute."""
    smallest = min((abs(p.predicted) for p in row.points if math.isfinite(p.predicted)), default=0.0)
    if row.relative:
        return row.margin
    return row.margin / smallest if smallest else math.inf


def _inventory(results: Results, cards: Iterable[Card], sights: Iterable[Sight]) -> list[Chapter]:
    shown = {card.claim: card.anchor for card in cards} | {s.made.id: s.anchor for s in sights}
    ids = _anchors(results)
    papers, names = sorted({entry.paper for entry in results.inventory}, key=_order(results)), _names(results)
    return [
        Chapter(
            paper,
            names.get(paper, paper),
            [
                (
                    entry,
                    ids[f"entry/{paper}/{entry.id}"],
                    [(name, shown.get(name)) for name in (*entry.claims, *entry.observations)],
                )
                for entry in results.inventory
                if entry.paper == paper
            ],
        )
        for paper in papers
    ]


def _names(results: Results) -> dict[str, str]:
    return {paper.id: f"{paper.authors}: {paper.title}" for paper in results.suite.papers}


def _order(results: Results) -> Callable[[str], tuple[int, str]]:
    """Papers as the run knew them, others behind."""
    places = {paper.id: place for place, paper in enumerate(results.suite.papers)}
    return lambda paper: (places.get(paper, len(places)), paper)


def _families(suite: Suite) -> list[tuple[str, str, PaperRow]]:
    """Papers with a family of their own, each with its chance of a wrong verdict, and what all add up to so far."""
    total, found = suite.family_error, []
    for paper in suite.papers:
        if paper.family_error:
            total += paper.family_error
            found.append((_chance(paper.family_error), percent(total), paper))
    return found


def _chance(error: float) -> str:
    """A small probability in words.

    >>> _chance(1e-3)
    '0.1 % (one run in 1000)'
    """
    return f"{percent(error)} (one run in {1 / error:.0f})" if error > 0 else "0"


def _duration(seconds: float) -> str:
    """Seconds, or minutes and seconds.

    >>> _duration(431.2), _duration(9.87)
    ('7 min 11 s', '9.9 s')
    """
    if not 60 <= seconds < math.inf:
        return f"{wording.number(seconds, 2)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"
