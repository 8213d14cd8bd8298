"""Statements as records for other programs: formulas, when they hold, sources, registered verdicts and code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from verify.claims import registry
from verify.claims.places import functions_read, modules
from verify.judging.judge import PRINTED, labels, passage
from verify.model import AnyClaim, Claim, Identity, Standing, Verdict
from verify.results import InventoryRow

_CODE = r", where=(None|<function .*? at \w+>)"


@dataclass(frozen=True, kw_only=True)
class StatedReading:
    """Formula of a claim, as the suite holds it or as our copy of the paper reads, with what was registered for it.

    Attributes
    ----------
    claim, reading
        Id of the claim, and "theory", "corrected" or "as our copy reads".
    paper, entries
        Paper of the claim, and the statements that it judges.
    formula
        LaTeX.
    source
        Paper and place of the formula.
    standing, words, place
        Relation to the paper, and the paper's own words on when it holds, with their place; empty if it has none.
    domain
        Parameters of each point at which it is judged; of a property their ranges, as `verify.model.domains` has them.
    verdict
        The verdict registered before any run; a run may find another one.
    theory
        Functions of theory that the claim reads, as module:function.
    module
        Python module that declares the claim.
    """

    claim: str
    reading: str
    paper: str
    entries: list[str]
    formula: str
    source: str
    standing: Standing
    words: str
    place: str
    domain: list[dict[str, Any]]
    verdict: Verdict
    theory: list[str]
    module: str


@dataclass(frozen=True, kw_only=True)
class Statement(InventoryRow):
    """Statement of a paper or of ours, with its status, its origin, and the formulas of the claims that judge it."""

    whose: str
    readings: list[StatedReading]


def statement_record(row: InventoryRow, claims: Mapping[str, AnyClaim]) -> Statement:
    """Return a statement with its formulas; `claims`, by id, include those that judge it."""
    readings = [reading for name in row.claims for reading in stated_readings(claims[name])]
    return Statement(**asdict(row), whose=registry.whose(row, claims), readings=readings)


def stated_readings(claim: AnyClaim) -> list[StatedReading]:
    """Return the readings of a claim, that which the suite holds true first.

    >>> claim = next(each for each in registry.claims() if each.id == "vysogorets2024/softmax-rank")
    >>> [(each.reading, each.verdict.value) for each in stated_readings(claim)]
    [('theory', 'agrees'), ('as our copy reads', 'disagrees')]
    """
    return [
        StatedReading(
            claim=claim.id,
            reading=label,
            paper=claim.paper,
            entries=list(claim.entries),
            formula=(label == PRINTED and claim.reads) or claim.statement,
            source=claim.source,
            standing=of_paper.standing,
            words=of_paper.words,
            place=of_paper.place,
            domain=_domain(claim),
            verdict=Verdict.DISAGREES if label == PRINTED else claim.expected,
            theory=functions_read(claim),
            module=modules()[claim.id],
        )
        for label in labels(claim)
        for of_paper in [passage(claim, label)]
    ]


def readers_of_theory() -> dict[str, dict[str, str]]:
    """Return the claims that read each function of theory, by module:function, with their registered verdicts."""
    found: dict[str, dict[str, str]] = {}
    for claim in registry.claims():
        for function in functions_read(claim):
            found.setdefault(function, {})[claim.id] = claim.expected
    return found


def _domain(claim: AnyClaim) -> list[dict[str, Any]]:
    if isinstance(claim, Claim | Identity):
        return [dict(point) for point in (claim.experiment if isinstance(claim, Claim) else claim).points]
    # conditions on lists are code
    return [{name: re.sub(_CODE, "", repr(of)) for name, of in claim.domain.items()}]
