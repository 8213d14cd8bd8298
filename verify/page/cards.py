"""Cards of the report: the readings of one claim, with their numbers in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from verify.judging.power import factor
from verify.model import BOUNDS_EVERY_REPLICATE, Verdict, raised
from verify.page import wording
from verify.page.outcomes import mark_of
from verify.page.vocabulary import EXACT
from verify.page.wording import percent
from verify.results import PointOutcome, Row


class EntryLead(NamedTuple):
    """An entry on a card: id and title, what part is judged if not all, its section on a page, its anchor in a list.

    `section` is a path as the report sees it, `anchor` that of its line in the inventory; either may be empty.
    """

    name: str
    title: str
    part: str
    section: str
    anchor: str


@dataclass(frozen=True)
class ReadRow:
    """A row as the page shows it."""

    row: Row
    anchor: str
    figure: Markup | None = None

    @cached_property
    def point(self) -> PointOutcome | None:
        """The point that the verdict depends on."""
        return wording.telling(self.row)

    @cached_property
    def rivals(self) -> wording.RivalTally:
        """Number of rivals that are rejected."""
        return wording.rival_tally(self.row)

    @property
    def exact(self) -> bool:
        """Whether it was judged without statistics."""
        return self.row.kind in EXACT

    @property
    def terms(self) -> wording.Headings:
        """Names of prediction, measurement and deviation for this kind of claim."""
        return wording.headings(self.row.kind)

    @property
    def counts_violations(self) -> bool:
        """Whether what is judged is a share of replicates that must be 0."""
        return self.row.kind in BOUNDS_EVERY_REPLICATE

    @property
    def unit(self) -> str:
        """The logarithm that its numbers are; empty where they are plain."""
        return wording.unit(self.row)

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """Prediction, measurement and margin at the point shown, with their names."""
        row, p = self.row, self.point
        if p is None:
            return []
        if self.exact:
            return [
                (self.terms.measured, wording.numeral(p.measured, 3)),
                ("tolerance", wording.numeral(p.margin, 2)),
            ]
        if self.counts_violations:
            share = percent(p.measured) if p.measured else "none"
            return [("predicted", "none"), (self.terms.measured, f"{share} of {p.replicates} replicates"),
                    ("would be seen", percent(p.margin))]  # fmt: skip
        return [(self.terms.predicted, wording.numeral(p.predicted, 6)), (self.terms.measured, wording.measurement(p)),
                ("margin", margin_width(row))]  # fmt: skip

    def of(self, value: float) -> str:
        """Format the quantity whose logarithm is judged, at this value of the logarithm."""
        return f"{self.unit} of {wording.numeral(raised(self.row.logarithm, value), 3)}"

    @property
    def outcome(self) -> str:
        """Meaning of the verdict for the run, in words."""
        if self.row.verdict == "broken":
            return "the check itself failed: it says nothing about the theory"
        if self.row.surprise:
            return f"surprise: {self.row.expected} was expected"
        return "" if self.row.verdict == "undecided" else "as expected"

    @property
    def rival_lines(self) -> list[tuple[str, str, bool]]:
        """Name of each rival, its greatest distance from a theory that holds, and whether it is rejected."""
        far: dict[str, float] = {}
        for rival in (rival for point in self.row.points for rival in point.rivals):
            far[rival.name] = float(np.fmax(far.get(rival.name, math.nan), abs(rival.margins)))
        return [
            (name, self._distance(margins), name not in self.rivals.missed) for name, margins in far.items()
        ]

    def _distance(self, margins: float) -> str:
        if self.row.verdict == Verdict.DISAGREES or math.isnan(margins):
            return ""
        if self.counts_violations and self.point:
            return f"violated in {percent(margins * self.point.margin)} of the replicates"
        return f"{wording.numeral(margins, 2)} margins away"


@dataclass(frozen=True)
class Card:
    """All readings of one claim."""

    claim: str
    anchor: str
    readings: list[ReadRow]
    entries: list[EntryLead]

    @property
    def first(self) -> Row:
        """The row that speaks for the claim."""
        return self.readings[0].row

    @property
    def mark(self) -> str:
        """The mark of the claim."""
        return mark_of(reading.row for reading in self.readings)

    @property
    def urgency(self) -> int:
        """Surprises and broken checks first, then what is undecided, then the rest."""
        rows = [reading.row for reading in self.readings]
        if any(row.surprise or row.verdict == "broken" for row in rows):
            return 0
        return 1 if any(row.verdict == "undecided" for row in rows) else 2

    @property
    def symbols(self) -> dict[str, str]:
        """The letters of all its statements, with what they mean."""
        return {letter: words for reading in self.readings for letter, words in reading.row.symbols.items()}

    @property
    def statements(self) -> list[str]:
        """Statements of the readings; one if they have it in common."""
        return list(dict.fromkeys(reading.row.statement for reading in self.readings))


def margin_width(row: Row) -> str:
    """The margin: a share of the prediction, of a logarithm a factor, else in its own unit."""
    if row.logarithm:
        return factor(row.logarithm, row.margin)
    return percent(row.margin) if row.relative else wording.numeral(row.margin)
