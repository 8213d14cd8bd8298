"""All claims and entries, and the rules a claim must keep to be let in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from simulate.monte_carlo import Point
from verify.admission import problems
from verify.estimands import components
from verify.judge import applies, readings
from verify.model import (
    FAMILY_SIZE,
    PAPERS,
    AnyClaim,
    Claim,
    Entry,
    Experiment,
    Kind,
    StatisticalProperty,
    Status,
    Tier,
)
from verify.results import InventoryRow

__all__ = ["admit", "claims", "entries", "intervals", "inventory", "select"]


@cache
def claims() -> tuple[AnyClaim, ...]:
    """Every claim of the suite, admitted, in the order of the report."""
    from verify.claims import (
        granziol2022,
        granziol2022_noise,
        granziol2022_samples,
        karakida2019,
        karakida2019_sizes,
        vysogorets2024,
    )

    granziol = (granziol2022, granziol2022_noise, granziol2022_samples)
    modules = (vysogorets2024, *granziol, karakida2019, karakida2019_sizes)
    listed = tuple(claim for module in modules for claim in module.CLAIMS)
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
        for problem in problems(claim):
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


def _intervals_at(claim: Claim, point: Point) -> int:
    """Model-based claims have none in the family; a settled mean has one for the mean and one for its drift."""
    if claim.kind.model_based:
        return 0
    each = 2 if claim.kind is Kind.SETTLED else 1
    return each * sum(len(_scores_read(claim, at)) for at in components(claim, point))


def _scores_read(claim: Claim, point: Point) -> set[tuple[object, object]]:
    judged = [r for r in readings(claim) if applies(claim, r, point)]
    own = claim.inputs or claim.kind.bounds_every_replicate or claim.kind is Kind.DISTRIBUTION
    return {(r.score, r.predict if own else None) for r in judged}


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
