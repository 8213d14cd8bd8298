"""The correctness report: one self-contained page drawn from the results alone."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from verify import plots, wording
from verify.model import PAPERS
from verify.results import InventoryRow, PointOutcome, Results, Row, save

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

NAMES = {paper.id: f"{paper.authors}: {paper.title}" for paper in PAPERS}
FOLDED = 12
"""Longer tables of points are folded."""

EXACT = ("identity", "exact property")
MATHML = re.compile(r"(?:\{[^}]*\})?(?:math|m[a-z]+|semantics)$")


class Headline(NamedTuple):
    """Verdicts of the rows that are judged alike."""

    rows: int
    counts: dict[str, int]
    expected: int


class Chapter(NamedTuple):
    """The entries of one paper, each with its anchor and its claims with the anchors of their cards."""

    paper: str
    name: str
    entries: list[tuple[InventoryRow, str, list[tuple[str, str | None]]]]

    @property
    def counts(self) -> dict[str, int]:
        """How many entries have which status."""
        return Counter(entry.status for entry, _, _ in self.entries)


@dataclass(frozen=True)
class Reading:
    """A row as the page shows it."""

    row: Row
    anchor: str
    point: PointOutcome | None
    rivals: wording.RivalTally
    figure: Markup | None

    @property
    def exact(self) -> bool:
        """Whether it was judged without statistics."""
        return self.row.kind in EXACT

    @property
    def outcome(self) -> str:
        """What the verdict means for the run, in words."""
        if self.row.verdict == "broken":
            return "the check itself failed: it says nothing about the theory"
        if self.row.surprise:
            return f"surprise: {self.row.expected} was expected"
        return "" if self.row.verdict == "undecided" else "as expected"

    @property
    def replicates(self) -> int:
        """Replicates over all points."""
        return sum(point.replicates for point in self.row.points)

    @property
    def rival_lines(self) -> list[tuple[str, str, bool]]:
        """Name, greatest distance in margins, and whether it is rejected."""
        best: dict[str, float] = {}
        for rival in (rival for point in self.row.points for rival in point.rivals):
            best[rival.name] = np.fmax(best.get(rival.name, math.nan), abs(rival.margins))
        return [
            (name, _margins_away(float(far)), name not in self.rivals.missed) for name, far in best.items()
        ]


@dataclass(frozen=True)
class Card:
    """All readings of one claim."""

    claim: str
    anchor: str
    readings: list[Reading]
    entries: list[tuple[str, str | None]]

    @property
    def first(self) -> Row:
        """The row that speaks for the claim."""
        return self.readings[0].row

    @property
    def urgency(self) -> int:
        """Surprises and broken checks first, then what is undecided, then the rest."""
        rows = [reading.row for reading in self.readings]
        if any(row.surprise or row.verdict == "broken" for row in rows):
            return 0
        return 1 if any(row.verdict == "undecided" for row in rows) else 2

    @property
    def statements(self) -> list[str]:
        """Statements of the readings; one if they have it in common."""
        return list(dict.fromkeys(reading.row.statement for reading in self.readings))


def write(results: Results, folder: Path) -> Path:
    """Write ``report.html`` and ``results.json``; returns the page.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    page = folder / "report.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save(results, folder / "results.json")
        page.write_text(document(results), encoding="utf-8")
    except OSError as error:
        raise ValueError(f"report cannot be written to {folder}: {error.strerror or error}") from None
    return page


def document(results: Results) -> str:
    """The page as HTML."""
    cards = _cards(results)
    environment = Environment(
        loader=PackageLoader("verify"),
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
        duration=_duration,
        percent=_percent,
        span=_span,
        centre=_centre,
    )
    anchors = {reading.row.id: reading.anchor for card in cards for reading in card.readings}
    observed = [card for card in cards if card.first.data]
    return environment.get_template("report.html.j2").render(
        suite=results.suite,
        host=results.suite.host,
        headlines=_headlines(results.rows),
        bound=_chance(results.suite.family_error),
        urgent=[r for card in cards for r in card.readings if r.row.surprise or r.row.verdict == "broken"],
        matrix=_matrix(results.rows, anchors),
        cards=[card for card in cards if not card.first.data],
        observed=observed,
        overview=_themed(plots.overview(results.rows, plots.stamp(results))) if results.rows else None,
        seconds=_themed(plots.seconds_chart(results)) if results.runs else None,
        margins=_margins(results.rows, anchors),
        planted=results.planted,
        derivations=results.derivations,
        inventory=_inventory(results, cards),
        symbols=wording.SYMBOLS,
        light=plots.PALETTE,
        dark=DARK,
        folded=FOLDED,
        differing=wording.differing,
        shared=wording.shared,
    )


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

    try:
        text = convert(latex.strip(), display="block" if display else "inline")
        root = ElementTree.fromstring(text)  # noqa: S314 - made by the converter just now, not fetched
    except Exception:
        return None
    strange = any(not MATHML.match(node.tag) for node in root.iter())
    if strange or any("\\" in (node.text or "") for node in root.iter()):
        return None
    return Markup(text.replace("&#x0007E;", "&#x0223C;"))  # noqa: S704 - parsed and checked above


def _themed(figure: Figure) -> Markup:
    """The figure in the colours of the page, light or dark."""
    svg = plots.to_svg(figure)
    for name, colour in plots.PALETTE.items():
        svg = svg.replace(colour, f"var(--{name})")
    return Markup(svg)  # noqa: S704 - drawn by matplotlib, which escapes its texts


def _cards(results: Results) -> list[Card]:
    """One card per claim, surprises first, then in the order of papers and of the run."""
    groups: dict[str, list[Row]] = {}
    for row in results.rows:
        groups.setdefault(row.claim, []).append(row)
    entries = {(entry.paper, entry.id) for entry in results.inventory}
    ids = _anchors(results)
    mark = plots.stamp(results)
    cards = [
        Card(
            claim=claim,
            anchor=ids[f"claim/{claim}"],
            readings=[_reading(row, ids[f"row/{row.id}"], mark) for row in rows],
            entries=[
                (e, ids[f"entry/{rows[0].paper}/{e}"] if (rows[0].paper, e) in entries else None)
                for e in rows[0].entries
            ],
        )
        for claim, rows in groups.items()
    ]
    return sorted(cards, key=lambda card: (card.urgency, _order(card.first.paper)))


def _reading(row: Row, anchor: str, mark: str) -> Reading:
    return Reading(
        row=row,
        anchor=anchor,
        point=wording.telling(row),
        rivals=wording.rival_tally(row),
        figure=_themed(plots.agreement(row, mark)) if row.points else None,
    )


def _anchors(results: Results) -> dict[str, str]:
    names = [f"claim/{row.claim}" for row in results.rows]
    names += [f"row/{row.id}" for row in results.rows]
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


def _matrix(rows: Sequence[Row], anchors: dict[str, str]) -> list[tuple[str, list[tuple[Row, str, str]]]]:
    """Per paper its rows, each with the short name of its claim and its anchor."""
    papers = sorted({row.paper for row in rows}, key=_order)
    return [
        (NAMES.get(paper, paper), [_cell(row, anchors) for row in rows if row.paper == paper])
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
            _percent(_width(row)) if math.isfinite(_width(row)) else "—",
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


def _inventory(results: Results, cards: Iterable[Card]) -> list[Chapter]:
    claims = {card.claim: card.anchor for card in cards}
    ids = _anchors(results)
    papers = sorted({entry.paper for entry in results.inventory}, key=_order)
    return [
        Chapter(
            paper,
            NAMES.get(paper, paper),
            [
                (
                    entry,
                    ids[f"entry/{paper}/{entry.id}"],
                    [(claim, claims.get(claim)) for claim in entry.claims],
                )
                for entry in results.inventory
                if entry.paper == paper
            ],
        )
        for paper in papers
    ]


def _order(paper: str) -> tuple[int, str]:
    known = list(NAMES)
    return (known.index(paper) if paper in known else len(known), paper)


def _margins_away(far: float) -> str:
    return "no number there" if math.isnan(far) else f"{wording.number(far, 2)} margins"


def _chance(error: float) -> str:
    """A small probability in words.

    >>> _chance(1e-3)
    '0.1 % (one run in 1000)'
    """
    return f"{_percent(error)} (one run in {1 / error:.0f})" if error > 0 else "0"


def _percent(share: float) -> str:
    return f"{wording.number(100 * share, 2)} %"


def _duration(seconds: float) -> str:
    """Seconds, or minutes and seconds.

    >>> _duration(431.2), _duration(9.87)
    ('7 min 11 s', '9.9 s')
    """
    if seconds < 60:
        return f"{wording.number(seconds, 2)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"


def _span(point: PointOutcome) -> str:
    """The interval, to the digits that its width makes meaningful."""
    if math.isnan(point.measured):
        return "none"
    centre = _centre(point)
    decimals = len(centre.partition(".")[2])
    if wording.half_width(point) == math.inf or "×" in centre:
        return f"{wording.number(point.lower)} … {wording.number(point.upper)}"
    return " … ".join(f"{side:.{decimals}f}".replace("-", "−") for side in (point.lower, point.upper))


def _centre(point: PointOutcome) -> str:
    """The measured value, to the digits that the interval makes meaningful."""
    return wording.measurement(point).partition(" ± ")[0]
