"""All claims, observations and entries, and the rules they must keep to be let in.

Functions that take `only`, ids of papers, load these papers alone; all papers if it is empty. A plug-in that cannot be
loaded then stops nobody who asks for another paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

from simulate._checks import did_you_mean
from theory.derivations import Derivation
from verify.claims.coverage import covered, entry_of, inventory_row
from verify.claims.glossary import in_statement
from verify.claims.images import needed_images
from verify.judging.admission import intervals, observation_problems, problems
from verify.model import (
    ALPHA,
    FAMILY_SIZE,
    AnyClaim,
    Claim,
    Experiment,
    Identity,
    Tier,
)
from verify.model.inventory import Entry, Paper
from verify.model.observation import Observation
from verify.results import InventoryRow

__all__ = [
    "OWN",
    "Only",
    "admit",
    "admit_observations",
    "alpha",
    "claim_topics",
    "claims",
    "derivations",
    "docs",
    "entries",
    "families",
    "folders",
    "ids",
    "in_order",
    "intervals",
    "inventory",
    "observations",
    "paper_ids",
    "papers",
    "papers_with",
    "require_papers",
    "select",
    "select_observations",
    "symbols",
    "tier_of",
]

GROUP = "losscurv.claims"
"""Entry points: the id of a paper, and the module or package that holds its PAPER, ENTRIES and claims."""

OWN = (
    "vysogorets2024",
    "granziol2022",
    "karakida2019",
    "beyond",
    "edge",
    "catapult",
    "structure",
    "noise_scale",
    "adam_limit",
    "width",
)
_OWN_PLACE = "verify.claims"

TOGETHER = frozenset({"granziol2022", "beyond"})
"""Papers that are loaded together: modules of one hold claims and observations of the other."""


Only = tuple[str, ...]
"""Ids of papers."""


@cache
def claims(only: Only = ()) -> tuple[AnyClaim, ...]:
    """Return every claim as it was written, in the order of the report; `select` admits those that are to be judged."""
    return tuple(claim for module in _modules(only) for claim in getattr(module, "CLAIMS", ()))


@cache
def observations(only: Only = ()) -> tuple[Observation, ...]:
    """Return every observation as it was written, in the order of the report."""
    return tuple(o for module in _modules(only) for o in getattr(module, "OBSERVATIONS", ()))


def _modules(only: Only = ()) -> tuple[ModuleType, ...]:
    """Every module of claims, paper by paper, each in its own order."""
    return tuple(import_module(name) for package in _packages(only).values() for name in _rooms(package))


def _rooms(package: ModuleType) -> list[str]:
    """The paper itself if it is a module; else what its ROOMS name, in this order, then other files of its topics."""
    own = package.__name__
    named = getattr(package, "ROOMS", None)
    if named is None:
        return [own]
    found = (m.name for m in walk_packages(package.__path__, f"{own}.") if not m.ispkg)
    topics = sorted(name for name in found if "." in name.removeprefix(f"{own}."))
    return list(dict.fromkeys([*(f"{own}.{name}" for name in named), *topics]))


@cache
def papers(only: Only = ()) -> tuple[Paper, ...]:
    """Return those of this package in the order of the report, then those of other distributions by name."""
    return tuple(package.PAPER for package in _packages(only).values())


def paper_ids() -> tuple[str, ...]:
    """Return the ids of all papers, none of which is loaded for it."""
    return tuple(_places())


@cache
def _packages(only: Only = ()) -> dict[str, ModuleType]:
    """The module or package of each paper; of `only`, names that no paper has are left out."""
    return {
        name: import_module(f"{_OWN_PLACE}.{name}") if point is None else _loaded(point)
        for name, point in _places().items()
        if not only or name in only
    }


@cache
def _places() -> dict[str, EntryPoint | None]:
    """The entry point of each paper, by the group `GROUP`; None for those of this package."""
    found: dict[str, EntryPoint | None] = dict.fromkeys(OWN)  # also where nothing is installed
    places = {(point.name, point.value): point for point in entry_points(group=GROUP)}
    for (name, value), point in sorted(places.items()):
        if (name, value) not in {(own, f"{_OWN_PLACE}.{own}") for own in OWN}:
            _rule_of_paper(name not in found, name, "have a name of its own", "another has it")
            found[name] = point
    return found


def _loaded(point: EntryPoint) -> ModuleType:
    try:
        package = point.load()
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        rule = f"paper {point.name} must load from {point.value}"
        raise ValueError(f"{rule}, got {cause}; mend it or uninstall it") from error
    paper: Any = getattr(package, "PAPER", None)
    named = isinstance(paper, Paper) and paper.id == point.name
    _rule_of_paper(named, point.name, "have a PAPER of its name", paper)
    declared = 0 < paper.family_error < 1 and paper.family_size >= 1
    _rule_of_paper(declared, point.name, "declare a family_error in (0, 1) and a family_size", paper)
    return package


def _rule_of_paper(holds: bool, name: str, rule: str, got: object) -> None:
    if not holds:
        raise ValueError(f"paper {name} must {rule}, got {got}")


def alpha(claim: AnyClaim) -> float:
    """Error of an interval of this claim: that of the family of its paper."""
    return next((p.alpha for p in papers((claim.paper,)) if p.id == claim.paper and p.family_size), ALPHA)


def folders(only: Only = ()) -> dict[str, Path]:
    """Where the code of each paper lies."""
    return {name: Path(str(package.__file__)).parent for name, package in _packages(only).items()}


@cache
def claim_topics(only: Only = ()) -> dict[str, str]:
    """The topic of each claim: the room of its paper that it stands in, by id; empty for a paper of one module."""
    return {
        claim.id: name.removeprefix(f"{package.__name__}").strip(".").partition(".")[0]
        for package in _packages(only).values()
        for name in _rooms(package)
        for claim in getattr(import_module(name), "CLAIMS", ())
    }


@cache
def _glossary(paper: str) -> dict[str, str]:
    """The letters that a paper lists as `SYMBOLS`, here or in a module of that name, with what they mean."""
    package = _packages((paper,)).get(paper)
    return {} if package is None else dict(_beside(package, "SYMBOLS", {}))


def symbols(claim: AnyClaim) -> dict[str, str]:
    """The letters of a statement, as LaTeX, and what they mean: those that its paper lists, and first its own."""
    return in_statement(claim.statement, {**_glossary(claim.paper), **claim.symbols})


def derivations(only: Only = ()) -> list[Derivation]:
    """What papers of other distributions derive, beside `theory.derivations`."""
    return [
        derive() for package in _packages(only).values() for derive in getattr(package, "DERIVATIONS", ())
    ]


def docs(only: Only = ()) -> dict[str, str]:
    """The page of every paper that brings one as `DOCS`, the path of a Markdown file or its text.

    Raises
    ------
    ValueError
        If one cannot be read.
    """
    found = {name: getattr(package, "DOCS", "") for name, package in _packages(only).items()}
    return {name: _read(name, page) for name, page in found.items() if page}


def _read(name: str, page: Any) -> str:
    try:
        return page.read_text(encoding="utf-8") if isinstance(page, Path) else str(page)
    except (OSError, UnicodeError) as error:
        raise ValueError(f"paper {name} must have DOCS that can be read, got {error}") from None


@cache
def entries(only: Only = ()) -> dict[str, tuple[Entry, ...]]:
    """Every entry of the inventory, by paper."""
    return {name: _entries(package) for name, package in _packages(only).items()}


def _entries(package: ModuleType) -> tuple[Entry, ...]:
    place = package if hasattr(package, "ENTRIES") else import_module(f"{package.__name__}.entries")
    return tuple(place.ENTRIES)


def _beside(package: ModuleType, name: str, absent: Any) -> Any:
    """What a paper names in capitals, or in a module of its own in small letters, if it does."""
    alone = not hasattr(package, "__path__")  # a paper in a single file has no modules beside it
    if alone or hasattr(package, name) or find_spec(f"{package.__name__}.{name.lower()}") is None:
        return getattr(package, name, absent)
    return getattr(import_module(f"{package.__name__}.{name.lower()}"), name)


def inventory(of: Iterable[AnyClaim | Observation] | None = None) -> list[InventoryRow]:
    """Each entry with its status; one that a claim covers is judged, one that only an observation covers observed.

    With `of`, claims and observations, only the entries that they cover; papers that neither they nor these entries
    belong to are not loaded.
    """
    items = None if of is None else tuple(of)
    asked, only = (None, ()) if items is None else (covered(items), _papers_around(items))
    judged, seen = covered(claims(only)), covered(observations(only))
    needs = {claim.id: needed for claim in claims(only) if (needed := needed_images(claim))}
    return [
        inventory_row(paper, entry, judged.get((paper, entry.id), []), seen.get((paper, entry.id), []), needs)
        for paper, listed in entries(only).items()
        for entry in listed
        if asked is None or (paper, entry.id) in asked
    ]


def select(
    tier: Tier = Tier.FULL, *, claim: Sequence[str] = (), paper: Sequence[str] = ()
) -> tuple[AnyClaim, ...]:
    """Admit the claims of a tier, restricted to ids and papers; a claim named by its id is taken from any tier.

    Claims named by their ids are admitted alone, else all of the papers that are asked for.

    Raises
    ------
    ValueError
        If an id or a paper is unknown, or a claim breaks a rule.
    """
    _require_known(claim, paper)
    if claim:
        found = tuple(c for c in claims(papers_with(claim)) if c.id in claim)
        admit(found, _known_to(found))
        return tuple(c for c in found if not paper or c.paper in paper)
    _admit_papers(tuple(paper))
    runs = _up_to(tier)
    return tuple(c for c in claims() if (not paper or c.paper in paper) and tier_of(c) in runs)


@cache
def _admit_papers(only: Only) -> None:
    """Admit every claim of these papers, once: that evaluates all predictions, which takes seconds."""
    admit([c for c in claims() if not only or c.paper in only], entries())


def select_observations(
    tier: Tier = Tier.FULL, *, claim: Sequence[str] = (), paper: Sequence[str] = ()
) -> tuple[Observation, ...]:
    """Admit the observations of a tier, of which the smoke tier has none, restricted as `select` does it.

    Raises
    ------
    ValueError
        If an id or a paper is unknown, or an observation breaks a rule.
    """
    _require_known(claim, paper)
    only, runs = papers_with(claim), _up_to(tier)
    found = observations(only)
    admit_observations(found, claims(only), _known_to(found) if only else entries())
    return tuple(
        o for o in found if (o.id in claim if claim else o.tier in runs) and (not paper or o.paper in paper)
    )


def papers_with(names: Collection[str]) -> Only:
    """Return the papers to load for claims and observations of these ids; empty, for all papers, if there are none.

    Those are the papers that the ids begin with. All are loaded where an id is not found there: it may be unknown, or
    stand in a module of another paper.

    >>> papers_with(["vysogorets2024/softmax-rank", "edge/levels"])
    ('vysogorets2024', 'edge')
    """
    only = in_order({name.partition("/")[0] for name in names})
    return only if only and set(names) <= set(ids(only)) else ()


def in_order(named: Collection[str]) -> Only:
    """Return these papers as the report has them, and what must be loaded with them; names of no paper left out."""
    whole = {*named, *TOGETHER} if TOGETHER.intersection(named) else named
    return tuple(paper for paper in paper_ids() if paper in whole)


def ids(only: Only = ()) -> list[str]:
    """Return the ids of all claims and observations."""
    return [item.id for item in (*claims(only), *observations(only))]


def _known_to(items: Iterable[AnyClaim | Observation]) -> dict[str, tuple[Entry, ...]]:
    """The entries of the papers of these items, and of those whose entries they cover."""
    return entries(_papers_around(tuple(items)))


def _papers_around(items: Sequence[AnyClaim | Observation]) -> Only:
    """The papers to load for these items and for the entries that they cover; empty for all."""
    loaded = papers_with([item.id for item in items])
    return loaded and in_order({*loaded, *(paper for paper, _ in covered(items))})


def families(listed: Sequence[AnyClaim], only: Only = ()) -> list[tuple[str, int, int]]:
    """The papers of this package together, then each with a family of its own: intervals used, and allowed."""
    apart = [paper for paper in papers(only) if paper.family_size]
    own = {paper.id for paper in apart}
    shared = ("this package", intervals(c for c in listed if c.paper not in own), FAMILY_SIZE)
    return [shared, *((p.id, intervals(c for c in listed if c.paper == p.id), p.family_size) for p in apart)]


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
    for paper, used, most in families(listed, in_order({claim.paper for claim in listed})):
        if used > most:
            raise ValueError(f"claims of {paper} must use at most {most} intervals, got {used}")


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
    known_by_id = {o.id: o for o in listed}
    for observation in listed:
        name = observation.id
        small = known_by_id.get(observation.small)
        if observation.small and (small is None or not _draw_alike(small, observation)):
            raise ValueError(
                f"observation {name} must draw and show what {observation.small} does at sizes for a CPU"
            )
        if taken[name] > 1:
            raise ValueError(
                f"observation {name} must have an id of its own, among claims and experiments too"
            )
        for problem in (*_place_problems(observation, known), *observation_problems(observation)):
            raise ValueError(f"observation {name} must {problem}")


def _draw_alike(small: Observation, large: Observation) -> bool:
    """What is only ever run on a GPU is tested by its small form, whose code it must be."""
    alike = (small.simulate, small.columns, small.along) == (large.simulate, large.columns, large.along)
    return alike and small.cost is None


def _admit_statement(claim: AnyClaim, known: dict[str, tuple[Entry, ...]]) -> None:
    for problem in _place_problems(claim, known):
        raise ValueError(f"claim {claim.id} must {problem}")
    _rule(bool(claim.source and claim.statement), claim.id, "name its source and statement")
    if not isinstance(claim, Identity):  # whose rivals are routes, known when they are taken
        _rule(bool(claim.rivals), claim.id, "name a rival formula that it rejects")


def _place_problems(item: AnyClaim | Observation, known: dict[str, tuple[Entry, ...]]) -> Iterator[str]:
    if item.paper not in known:
        yield f"begin with one of {', '.join(known)}"
    if not item.entries:
        yield "cover an entry of the inventory"
    for entry in item.entries:
        paper, name = entry_of(item, entry)
        if name not in {e.id for e in known.get(paper, ())}:
            yield f"cover known entries, not {entry}"


def tier_of(claim: AnyClaim) -> Tier:
    """The lowest tier that judges a claim."""
    return claim.experiment.tier if isinstance(claim, Claim) else claim.tier


def _up_to(tier: Tier) -> Sequence[Tier]:
    """The tiers whose claims and observations one of them runs."""
    tiers = list(Tier)
    return tiers[: tiers.index(tier) + 1]


def _rule(holds: bool, claim: str, rule: str) -> None:
    if not holds:
        raise ValueError(f"claim {claim} must {rule}")


def _require_known(claim: Sequence[str], paper: Sequence[str]) -> None:
    require_papers(paper)
    known = ids(papers_with(claim)) if claim else []
    for name in claim:
        if name not in known:
            near = _near(name, known)
            raise ValueError(f"claim must be one of those that losscurv claims lists, got {name!r}{near}")


def _near(name: str, known: Iterable[str]) -> str:
    """The nearest id; its paper may have been left out."""
    short = {other.partition("/")[2]: other for other in known}
    return did_you_mean(name, [*short.values(), *short], suggest=short)


def require_papers(names: Iterable[str]) -> None:
    """Refuse what is no paper.

    Raises
    ------
    ValueError
        Naming it, and those that there are.
    """
    known = paper_ids()
    for name in names:
        if name not in known:
            raise ValueError(
                f"paper must be one of {', '.join(known)}, got {name!r}{did_you_mean(name, known)}"
            )
