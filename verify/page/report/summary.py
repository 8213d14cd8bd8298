"""What a report says of the whole run: counts, standings, margins by width, families and their chance of an error."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from verify.judging.power import factor
from verify.model import Standing, Verdict, raised
from verify.page import wording
from verify.page.cards import sensitivity
from verify.page.counts import chance, percent
from verify.page.report.find import upshot
from verify.page.report.statements import distinct_statements
from verify.page.vocabulary import EXACT, STANDINGS
from verify.results import PaperRow, Row, Suite

__all__ = [
    "Headline",
    "Margin",
    "after_pilots",
    "duration",
    "error_of_one",
    "headline",
    "histories",
    "margins",
    "own_families",
    "reading_theory",
    "sentence",
]

STEP = re.compile(r"; (?=\d{4}-\d\d-\d\d|not registered)")
"""Between two steps of a claim's history."""


class Headline(NamedTuple):
    """What came of all rows: what agrees, fails as foreseen, and the rest; what no sample decides, or a model.

    `failing_statements` counts the statements of papers that the readings which fail are of, misprints aside.
    """

    agree: dict[str, int]
    fail: dict[str, int]
    failing_statements: dict[str, int]
    surprises: list[Row]
    undecided: int
    modelled: dict[str, int]
    exact: int
    rows: int

    @property
    def agreeing(self) -> int:
        """How many agree."""
        return sum(self.agree.values())

    @property
    def failing(self) -> int:
        """How many fail as foreseen."""
        return sum(self.fail.values())


class Margin(NamedTuple):
    """A row with the width of its margin, how it was declared, and the smallest error that was told apart."""

    row: Row
    width: str
    declared: str
    told: str


def headline(rows: Sequence[Row]) -> Headline:
    """Rows by what came of them, those that agree and those that fail as foreseen by how they stand to the papers."""
    known = [(upshot(row), row) for row in rows]
    modelled = Counter(row.verdict for row in rows if row.model_based)
    return Headline(
        agree=_standings([row for what, row in known if what == "agrees"]),
        fail=_standings(failing := [row for what, row in known if what == "foreseen"]),
        failing_statements={
            standing: distinct_statements(row for row in failing if row.standing == standing)
            for standing in (Standing.AS_STATED, Standing.OUTSIDE)
        },
        surprises=[row for what, row in known if what == "surprise"],
        undecided=sum(what == "undecided" for what, _ in known),
        modelled={verdict: modelled[verdict] for verdict in Verdict if modelled[verdict]},
        exact=sum(row.kind in EXACT for row in rows),
        rows=len(rows),
    )


def _standings(rows: Sequence[Row]) -> dict[str, int]:
    counts = Counter(row.standing for row in rows)
    return {standing: counts[standing] for standing in STANDINGS if counts[standing]}


def margins(rows: Sequence[Row]) -> list[Margin]:
    """Claims by the width of their margin, widest first."""
    claims = {row.claim: row for row in reversed(rows) if row.points and row.kind not in EXACT}
    return [
        Margin(
            row,
            *_margin(row),
            sensitivity(row),
        )
        for row in sorted(claims.values(), key=lambda row: (-_width(row), row.claim))
    ]


def _width(row: Row) -> float:
    """The margin as a number: a share of the prediction, of a logarithm what its factor exceeds 1 by, else itself.

    An absolute margin is no share of the prediction: that may be an exponent or a probability, and 0.
    """
    return raised(row.logarithm, row.margin) - 1 if row.logarithm else row.margin


def _margin(row: Row) -> tuple[str, str]:
    """The width in words, and what it is of."""
    if not math.isfinite(_width(row)):
        return "—", "no number"
    if row.logarithm:
        return factor(row.logarithm, row.margin), f"{wording.numeral(row.margin)} in {wording.unit(row)}"
    return (
        (percent(row.margin), "of the prediction")
        if row.relative
        else (
            wording.numeral(row.margin),
            "in its own unit",
        )
    )


def own_families(suite: Suite) -> list[tuple[str, str, PaperRow]]:
    """Papers with a family of their own, each with its chance of a wrong verdict, and what all add up to so far."""
    total, found = suite.family_error, []
    for paper in suite.papers:
        if paper.family_error:
            total += paper.family_error
            found.append((chance(paper.family_error), percent(total), paper))
    return found


def error_of_one(suite: Suite) -> float:
    """The largest error of an interval of a paper with a family of its own; 0 without one."""
    own = [paper for paper in suite.papers if paper.intervals_allowed]
    return max((paper.family_error / paper.intervals_allowed for paper in own), default=0.0)


def reading_theory(rows: Sequence[Row]) -> tuple[int, dict[str, int]]:
    """How many claims read theory, and how many do not, by their reason."""
    reasons = Counter({row.claim: row.no_theory for row in rows}.values())
    reads = reasons.pop("", 0)
    return reads, dict(reasons)


def after_pilots(rows: Sequence[Row]) -> list[Row]:
    """A row of each claim whose bound or margin pilot draws set."""
    claims = {row.claim: row for row in reversed(rows) if row.pilot}
    return list(reversed(claims.values()))


def histories(rows: Sequence[Row]) -> list[tuple[Row, list[str]]]:
    """A row of each claim that changed after it was declared, with its history line by line."""
    claims = {row.claim: row for row in reversed(rows) if STEP.search(row.registered)}
    return [(row, STEP.split(row.registered)) for row in reversed(claims.values())]


def sentence(line: str) -> str:
    """A line with a capital and a full stop.

    >>> sentence("one undecided")
    'One undecided.'
    """
    return f"{line[:1].upper()}{line[1:]}."


def duration(seconds: float) -> str:
    """Seconds, or minutes and seconds.

    >>> duration(431.2), duration(9.87)
    ('7 min 11 s', '9.9 s')
    """
    if not 60 <= seconds < math.inf:
        return f"{wording.numeral(seconds, 2)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"
