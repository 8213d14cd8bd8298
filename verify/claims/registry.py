"""All claims, observations and entries, and the rules they must keep to be let in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType

from simulate.monte_carlo import Point
from verify.claims.images import needed_images
from verify.judging.admission import observation_problems, problems
from verify.judging.estimands import components
from verify.judging.judge import applies, readings
from verify.model import (
    FAMILY_SIZE,
    AnyClaim,
    Claim,
    Experiment,
    Kind,
    StatisticalProperty,
    Tier,
)
from verify.model.inventory import PAPERS, Entry, Status
from verify.model.observation import Observation
from verify.results import InventoryRow

__all__ = [
    "admit",
    "admit_observations",
    "claims",
    "entries",
    "intervals",
    "inventory",
    "observations",
    "require_papers",
    "select",
    "select_observations",
]


@cache
def claims() -> tuple[AnyClaim, ...]:
    """Every claim of the suite, admitted, in the order of the report."""
    admit(_listed(), entries())
    return _listed()


@cache
def observations() -> tuple[Observation, ...]:
    """Every observation of the suite, admitted, in the order of the report."""
    admit_observations(_seen(), claims(), entries())
    return _seen()


@cache
def _listed() -> tuple[AnyClaim, ...]:
    """Every claim as it was written: admission evaluates all predictions, which takes seconds."""
    return tuple(claim for module in _modules() for claim in getattr(module, "CLAIMS", ()))


@cache
def _seen() -> tuple[Observation, ...]:
    return tuple(o for module in _modules() for o in getattr(module, "OBSERVATIONS", ()))


def _modules() -> tuple[ModuleType, ...]:
    """Every module of claims, paper by paper, each in its own order."""
    found = (import_module(f"verify.claims.{paper.id}") for paper in PAPERS)
    return tuple(import_module(f"{paper.__name__}.{room}") for paper in found for room in paper.ROOMS)


@cache
def entries() -> dict[str, tuple[Entry, ...]]:
    """Every entry of the inventory, by paper."""
    return {paper.id: import_module(f"verify.claims.{paper.id}.entries").ENTRIES for paper in PAPERS}


def inventory() -> list[InventoryRow]:
    """Each entry with its status; one that a claim covers is judged, one that only an observation covers observed."""
    judged, seen = _covered(_listed()), _covered(_seen())
    needs = {claim.id: needed for claim in _listed() if (needed := needed_images(claim))}
    return [
        _inventory_row(
            paper, entry, judged.get((paper, entry.id), []), seen.get((paper, entry.id), []), needs
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
    _require_known(claim, paper)
    if claim:
        return tuple(c for c in claims() if c.id in claim and (not paper or c.paper in paper))
    return tuple(
        c for c in claims() if (not paper or c.paper in paper) and (tier is not Tier.SMOKE or _cheap(c))
    )


def select_observations(
    tier: Tier = Tier.FULL, *, claim: Sequence[str] = (), paper: Sequence[str] = ()
) -> tuple[Observation, ...]:
    """The observations of a tier, of which the smoke tier has none, restricted as `select` does it.

    Raises
    ------
    ValueError
        If an id or a paper is unknown.
    """
    _require_known(claim, paper)
    runs = {Tier.SMOKE: (), Tier.DEFAULT: (Tier.DEFAULT,), Tier.FULL: (Tier.DEFAULT, Tier.FULL)}[tier]
    return tuple(
        o
        for o in observations()
        if (o.id in claim if claim else o.tier in runs) and (not paper or o.paper in paper)
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


def admit_observations(
    listed: Sequence[Observation], beside: Sequence[AnyClaim], known: dict[str, tuple[Entry, ...]]
) -> None:
    """Refuse observations that do not say what they show, or whose streams another has.

    Raises
    ------
    ValueError
        Naming the observation and the rule it breaks.
    """
    taken = Counter(o.id for o in listed)
    taken.update({name for c in beside for name in (c.id, c.experiment.id if isinstance(c, Claim) else c.id)})
    for observation in listed:
        name = observation.id
        if taken[name] > 1:
            raise ValueError(
                f"observation {name} must have an id of its own, among claims and experiments too"
            )
        for problem in (*_place_problems(observation, known), *observation_problems(observation)):
            raise ValueError(f"observation {name} must {problem}")


def _admit_statement(claim: AnyClaim, known: dict[str, tuple[Entry, ...]]) -> None:
    for problem in _place_problems(claim, known):
        raise ValueError(f"claim {claim.id} must {problem}")
    _rule(bool(claim.source and claim.statement), claim.id, "name its source and statement")
    _rule(bool(claim.rivals), claim.id, "name a rival formula that it rejects")


def _place_problems(item: AnyClaim | Observation, known: dict[str, tuple[Entry, ...]]) -> Iterator[str]:
    if item.paper not in known:
        yield f"begin with one of {', '.join(known)}"
    if not item.entries:
        yield "cover an entry of the inventory"
    for entry in item.entries:
        paper, name = _where(item, entry)
        if name not in {e.id for e in known.get(paper, ())}:
            yield f"cover known entries, not {entry}"


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


def _covered(items: Iterable[AnyClaim | Observation]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for item in items:
        for entry in item.entries:
            found.setdefault(_where(item, entry), []).append(item.id)
    return found


def _inventory_row(
    paper: str, entry: Entry, judged: list[str], seen: list[str], needs: Mapping[str, str]
) -> InventoryRow:
    status = _status(entry, bool(judged), bool(seen))
    reason = entry.scope if judged else "" if seen else entry.reason
    waiting = {
        needs[name]: [n for n in judged if needs.get(n) == needs[name]] for name in judged if name in needs
    }
    told = [f"on {needed} alone: {', '.join(names)}" for needed, names in waiting.items()]
    return InventoryRow(
        paper=paper,
        id=entry.id,
        title=entry.title,
        status=status,
        reason="; ".join(filter(None, [reason, *told])),
        claims=judged,
        observations=seen,
        ours=entry.ours or paper == "beyond",
    )


def _status(entry: Entry, judged: bool, seen: bool) -> str:
    if judged:
        return (Status.PARTLY if entry.scope else Status.JUDGED).value
    return Status.OBSERVED.value if seen else entry.status


def _where(item: AnyClaim | Observation, entry: str) -> tuple[str, str]:
    """The paper and id of an entry: its own paper's, or ``paper/id``."""
    paper, _, name = entry.rpartition("/")
    return (paper or item.paper, name)


def _cheap(claim: AnyClaim) -> bool:
    return claim.experiment.smoke if isinstance(claim, Claim) else claim.smoke


def _rule(holds: bool, claim: str, rule: str) -> None:
    if not holds:
        raise ValueError(f"claim {claim} must {rule}")


def _require_known(claim: Sequence[str], paper: Sequence[str]) -> None:
    known = {c.id for c in claims()} | {o.id for o in observations()}
    for name in claim:
        if name not in known:
            raise ValueError(
                f"claim must be one of those that losscurv claims lists, got {name!r}{_near(name, known)}"
            )
    require_papers(paper)


def require_papers(names: Iterable[str]) -> None:
    """Refuse what is no paper.

    Raises
    ------
    ValueError
        Naming it, and those that there are.
    """
    papers = [p.id for p in PAPERS]
    for name in names:
        if name not in papers:
            raise ValueError(f"paper must be one of {', '.join(papers)}, got {name!r}")


def _near(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""
