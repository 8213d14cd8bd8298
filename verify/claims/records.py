"""Statements as records for other programs: formulas, when they hold, sources, registered verdicts and code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from verify.claims import registry
from verify.claims.places import functions_read, modules
from verify.judging.judge import PRINTED, labels, passage
from verify.model import AnyClaim, Claim, Identity, Standing, Verdict
from verify.results import InventoryRow


@dataclass(frozen=True, kw_only=True)
class StatedReading:
    """Formula of a claim, as the suite holds it or as our copy of the paper reads, with what was registered for it.

    Attributes
    ----------
    claim, reading
        Id of the claim, and "theory", "corrected" or "as our copy reads".
    paper, entries
        Paper of the claim, and the statements that it judges.
    formula, symbols
        LaTeX, and the meaning of its letters as far as the paper lists them.
    source
        Paper and place of the formula.
    standing, words, place
        Relation to the paper, and the paper's own words on when it holds, with their place; empty if it has none.
    domain
        Values of each parameter at which it is judged; of a property the range, see `verify.model.domains`.
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
    symbols: dict[str, str]
    source: str
    standing: Standing
    words: str
    place: str
    domain: dict[str, Any]
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
    return [_reading(claim, label) for label in labels(claim)]


def _reading(claim: AnyClaim, label: str) -> StatedReading:
    printed, (standing, words, place, *_) = label == PRINTED, passage(claim, label)
    return StatedReading(
        claim=claim.id,
        reading=label,
        paper=claim.paper,
        entries=list(claim.entries),
        formula=(printed and claim.reads) or claim.statement,
        symbols=registry.symbols(claim),
        source=claim.source,
        standing=standing,
        words=words,
        place=place,
        domain=_domain(claim),
        verdict=Verdict.DISAGREES if printed else claim.expected,
        theory=_theory_read(claim),
        module=modules()[claim.id],
    )


def readers_of_theory() -> dict[str, dict[str, str]]:
    """Return the claims that read each function of theory, by module:function, with their registered verdicts."""
    found: dict[str, dict[str, str]] = {}
    for claim in registry.claims():
        for function in _theory_read(claim):
            found.setdefault(function, {})[claim.id] = claim.expected
    return found


def _theory_read(claim: AnyClaim) -> list[str]:
    return [_code_path(name) for name in functions_read(claim)]


def _code_path(name: str) -> str:
    module = name
    while module not in sys.modules:
        module = module.rpartition(".")[0]
    return f"{module}:{name.removeprefix(module)[1:]}"


def _domain(claim: AnyClaim) -> dict[str, Any]:
    if not isinstance(claim, Claim | Identity):
        return {name: _range(of) for name, of in claim.domain.items()}
    points = (claim.experiment if isinstance(claim, Claim) else claim).points
    return {name: list({p[name]: 0 for p in points if name in p}) for at in points for name in at}


def _range(of: Any) -> Any:
    """Return a range as its kind with its parts; conditions on lists, which are code, are left out."""
    if not type(of).__module__.endswith("domains"):
        return of
    parts = getattr(of, "parts", of)
    return {type(of).__name__: [_range(part) for part in parts if part is not None and not callable(part)]}
