"""All claims and entries, and the rules a claim must keep to be let in."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations

from simulate.monte_carlo import Point
from verify.judge import SEPARATION, applies, readings, separation
from verify.model import (
    FAMILY_SIZE,
    PAPERS,
    AnyClaim,
    Claim,
    Entry,
    Experiment,
    Identity,
    Kind,
    StatisticalProperty,
    Status,
    Tier,
)
from verify.results import InventoryRow

__all__ = ["admit", "claims", "entries", "intervals", "inventory", "select"]

WIDEST = 0.5
"""No relative margin may exceed this, whatever the reason."""

TELLTALE = (0.0, 0.5, 1.0, 2.0)
"""Parameters at which a formula with a wrong power, factor or sign may still give the right number."""


@cache
def claims() -> tuple[AnyClaim, ...]:
    """Every claim of the suite, admitted, in the order of the report."""
    from verify.claims import granziol2022, karakida2019, vysogorets2024

    listed = (*vysogorets2024.CLAIMS, *granziol2022.CLAIMS, *karakida2019.CLAIMS)
    admit(listed, entries())
    return listed


@cache
def entries() -> dict[str, tuple[Entry, ...]]:
    """Every entry of the inventory, by paper."""
    from verify.claims.entries import beyond, granziol2022, karakida2019, vysogorets2024

    modules = (vysogorets2024, granziol2022, karakida2019, beyond)
    return {paper.id: module.ENTRIES for paper, module in zip(PAPERS, modules, strict=True)}


def inventory() -> list[InventoryRow]:
    """Each entry with its status; an entry that a claim covers is judged."""
    covered: dict[tuple[str, str], list[str]] = {}
    for claim in claims():
        for entry in claim.entries:
            covered.setdefault(_where(claim, entry), []).append(claim.id)
    return [
        InventoryRow(
            paper=paper,
            id=entry.id,
            title=entry.title,
            status=Status.JUDGED.value if (paper, entry.id) in covered else entry.status,
            reason="" if (paper, entry.id) in covered else entry.reason,
            claims=covered.get((paper, entry.id), []),
        )
        for paper, listed in entries().items()
        for entry in listed
    ]


def select(
    tier: Tier = Tier.FULL, *, claim: Sequence[str] = (), paper: Sequence[str] = ()
) -> tuple[AnyClaim, ...]:
    """The claims of a tier, restricted to ids and papers; a claim named by its id is taken from any tier.

    Raises
    ------
    ValueError
        If an id or a paper is unknown.
    """
    known = {c.id for c in claims()}
    papers = [p.id for p in PAPERS]
    for name in claim:
        if name not in known:
            raise ValueError(
                f"claim must be one of those that losscurv claims lists, got {name!r}{_near(name, known)}"
            )
    for name in paper:
        if name not in papers:
            raise ValueError(f"paper must be one of {', '.join(papers)}, got {name!r}")
    if claim:
        return tuple(c for c in claims() if c.id in claim and (not paper or c.paper in paper))
    return tuple(
        c for c in claims() if (not paper or c.paper in paper) and (tier is not Tier.SMOKE or _cheap(c))
    )


def intervals(listed: Iterable[AnyClaim]) -> int:
    """Statistical intervals of these claims; two readings of one score share one, so do a property's examples."""
    return sum(
        sum(_intervals_at(c, point) for point in c.experiment.points)
        if isinstance(c, Claim)
        else int(isinstance(c, StatisticalProperty))
        for c in listed
    )


def admit(listed: Sequence[AnyClaim], known: dict[str, tuple[Entry, ...]]) -> None:
    """Refuse claims that cannot fail, do not say where they come from, or do not fit the family.

    Raises
    ------
    ValueError
        Naming the claim and the rule it breaks.
    """
    for name, count in Counter(c.id for c in listed).items():
        _rule(count == 1, name, "have an id of its own")
    experiments: dict[str, Experiment] = {}
    for claim in listed:
        _admit_statement(claim, known)
        if isinstance(claim, Claim):
            same = experiments.setdefault(claim.experiment.id, claim.experiment)
            _rule(
                same is claim.experiment,
                claim.id,
                f"share one experiment {same.id!r} with the claims that read it",
            )
        for problem in _problems(claim):
            raise ValueError(f"claim {claim.id} must {problem}")
    used = intervals(listed)
    if used > FAMILY_SIZE:
        raise ValueError(f"claims must use at most {FAMILY_SIZE} intervals, got {used}")


def _admit_statement(claim: AnyClaim, known: dict[str, tuple[Entry, ...]]) -> None:
    _rule(claim.paper in known, claim.id, f"begin with one of {', '.join(known)}")
    _rule(bool(claim.entries), claim.id, "cover an entry of the inventory")
    for entry in claim.entries:
        paper, name = _where(claim, entry)
        _rule(name in {e.id for e in known.get(paper, ())}, claim.id, f"cover known entries, not {entry}")
    _rule(bool(claim.source and claim.statement), claim.id, "name its source and statement")
    _rule(bool(claim.rivals), claim.id, "name a rival formula that it rejects")


def _problems(claim: AnyClaim) -> Iterator[str]:
    if isinstance(claim, Claim):
        yield from _claim_problems(claim)
    elif isinstance(claim, StatisticalProperty):
        yield from _margin_problems(claim.margin, claim.relative, claim.margin_reason)
        if not claim.examples:
            yield "have at least one point"
        yield from _rival_problems(claim.claim_at(claim.examples[0]), claim.examples)
    else:
        if not (0 < claim.tolerance < 1 and claim.tolerance_reason):
            yield "have a tolerance in (0, 1), with its reason"
        if not (claim.points if isinstance(claim, Identity) else claim.examples):
            yield "have at least one point"
        if isinstance(claim, Identity) and claim.measured in (claim.theory, claim.printed, *claim.rivals):
            yield "compare routes that differ"
        if isinstance(claim, Identity) and claim.printed and not claim.finding:
            yield "say what is wrong with the formula as our copy reads"


def _claim_problems(claim: Claim) -> Iterator[str]:
    experiment = claim.experiment
    yield from _margin_problems(claim.margin, claim.relative, claim.margin_reason)
    if not experiment.points or len(set(experiment.points)) < len(experiment.points):
        yield "have points, all different"
    yield from _rival_problems(claim, experiment.points)
    if claim.kind is Kind.RATIO and not isinstance(claim.score, tuple):
        yield "name numerator and denominator of its ratio"
    if claim.numerical and claim.kind not in (Kind.MEAN, Kind.AT_LEAST):
        yield "be a mean, if its scores have a numerical error"
    if claim.inputs and claim.kind is not Kind.MEAN:
        yield "be a mean, if it reads measured inputs"
    if claim.axis and any(claim.axis not in p for p in experiment.points):
        yield f"have its axis {claim.axis!r} among the parameters"
    if claim.printed is not None and not claim.finding:
        yield "say what is wrong with the formula as our copy reads"
    if not experiment.special:
        yield from _point_problems(experiment.points)


def _margin_problems(margin: float, relative: bool, reason: str) -> Iterator[str]:
    if not (math.isfinite(margin) and margin > 0) or (relative and margin > WIDEST):
        yield f"have a positive margin, at most {WIDEST:g} if relative"
    if not reason:
        yield "say why its margin is as wide as it is"


def _rival_problems(claim: Claim, points: Sequence[Point]) -> Iterator[str]:
    for point in points:
        if not claim.margin_at(point) > 0:
            yield f"have a margin in its own unit where it predicts 0, at {point}"
    printed = [r.predict for r in readings(claim)[1:] if r.score == claim.score]
    formulas = [*claim.rivals.items(), *(("as our copy reads", formula) for formula in printed)]
    for name, formula in formulas:
        if max(separation(claim, point, formula) for point in points) < SEPARATION:
            yield f"have a point where rival {name!r} is {SEPARATION:g} margins away"


def _point_problems(points: Sequence[Point]) -> Iterator[str]:
    for point in points:
        for name, value in point.items():
            if isinstance(value, float) and value in TELLTALE:
                yield f"keep {name} away from {value:g}, where wrong formulas may be right"
        sizes = [(k, v) for k, v in point.items() if isinstance(v, int) and not isinstance(v, bool)]
        for (a, x), (b, y) in combinations(sizes, 2):
            if x == y:
                yield f"keep {a} and {b} apart, both are {x}"


def _intervals_at(claim: Claim, point: Point) -> int:
    judged = [r for r in readings(claim) if applies(claim, r, point)]
    return len({(r.score, r.predict if claim.inputs else None) for r in judged})


def _where(claim: AnyClaim, entry: str) -> tuple[str, str]:
    """The paper and id of an entry: its own paper's, or ``paper/id``."""
    paper, _, name = entry.rpartition("/")
    return (paper or claim.paper, name)


def _cheap(claim: AnyClaim) -> bool:
    return claim.experiment.smoke if isinstance(claim, Claim) else claim.smoke


def _rule(holds: bool, claim: str, rule: str) -> None:
    if not holds:
        raise ValueError(f"claim {claim} must {rule}")


def _near(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""
