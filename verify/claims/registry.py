"""All claims, observations and entries, and the rules by which they are admitted.

Functions with an argument `only` load the papers of these ids; all papers if it is empty. A plug-in that cannot be
loaded then stops nobody who asks for another paper.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from verify.claims import shipped
from verify.claims.images import needed_images
from verify.judging.admission import intervals, observation_problems, problems
from verify.model import (
    ALPHA,
    FAMILY_SIZE,
    AnyClaim,
    Claim,
    Experiment,
    Identity,
    Standing,
    Tier,
)
from verify.model.inventory import Entry, Paper, Status
from verify.model.observation import Observation
from verify.results import InventoryRow, Observed, Row

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
    "warm_up",
    "central_flows",
    "steepest",
)

TOGETHER = frozenset({"granziol2022", "beyond"})
"""Papers that are loaded together: modules of one hold claims and observations of the other."""


Only = tuple[str, ...]
"""Ids of papers."""


WORDS = re.compile(r"\\(text|mathrm|operatorname|mathbb|mathcal)\s*(\{[^{}]*\}|\w)")
"""Pieces of a formula whose letters are no symbols."""

SIZES = re.compile(r"\\[bB]igg?[lrm]?(?![A-Za-z])")
"""Opening brackets: a name before one is a function."""

DERIVATIVE = re.compile(r"\\frac\{d(?=[ }\\])(.*?)\}\{d(?=[ \\])")
"""A derivative, whose d is none of the letters."""


PAPER, KNOWN, OURS = "paper", "known elsewhere", "ours"
"""Origins of a statement: a paper states it, others have shown it, or neither."""


# --- what there is


@cache
def claims(only: Only = ()) -> tuple[AnyClaim, ...]:
    """Return every claim as it was written, in the order of the report; `select` admits those that are to be judged."""
    return tuple(claim for _, module in rooms(only) for claim in getattr(module, "CLAIMS", ()))


@cache
def observations(only: Only = ()) -> tuple[Observation, ...]:
    """Return every observation as it was written, in the order of the report."""
    return tuple(o for _, module in rooms(only) for o in getattr(module, "OBSERVATIONS", ()))


@cache
def claim_topics(only: Only = ()) -> dict[str, str]:
    """Return the topic of each claim by id: the module that holds it; empty for a paper of one module."""
    return {claim.id: topic for topic, module in rooms(only) for claim in getattr(module, "CLAIMS", ())}


@cache
def rooms(only: Only = ()) -> tuple[tuple[str, ModuleType], ...]:
    """Return every module of claims with its topic, paper by paper, each in its own order.

    A paper is a module, or a package: then the modules that its ROOMS name, in this order, then others of its topics.
    """
    found: list[tuple[str, ModuleType]] = []
    for package in _packages(only).values():
        own = f"{package.__name__}."
        if not hasattr(package, "ROOMS"):
            found.append(("", package))
            continue
        modules = (m.name.removeprefix(own) for m in walk_packages(package.__path__, own) if not m.ispkg)
        topics = sorted(name for name in modules if "." in name)
        found += [
            (name.partition(".")[0], import_module(own + name))
            for name in dict.fromkeys([*package.ROOMS, *topics])
        ]
    return tuple(found)


@cache
def papers(only: Only = ()) -> tuple[Paper, ...]:
    """Return those of this package in the order of the report, then those of other distributions by name."""
    return tuple(package.PAPER for package in _packages(only).values())


def paper_ids() -> tuple[str, ...]:
    """Return the ids of all papers without loading them."""
    return tuple(_places())


@cache
def _packages(only: Only = ()) -> dict[str, ModuleType]:
    """Import the module or package of each paper; names in `only` that no paper has are left out."""
    return {
        name: import_module(f"verify.claims.{name}") if point is None else _loaded(point)
        for name, point in _places().items()
        if not only or name in only
    }


@cache
def _places() -> dict[str, EntryPoint | None]:
    """The entry point of each paper, by the group `GROUP`; None for those of this package."""
    found: dict[str, EntryPoint | None] = dict.fromkeys(OWN)  # also where nothing is installed
    # A distribution that is twice on the path lists its entry points twice.
    places = {(point.name, point.value): point for point in entry_points(group=GROUP)}
    # Sorted: the order of the report must not depend on the order of installation.
    for (name, value), point in sorted(places.items()):
        if (name, value) not in {(own, f"verify.claims.{own}") for own in OWN}:
            _rule(name not in found, f"paper {name}", "have a name of its own, got another that has it")
            found[name] = point
    return found


def _loaded(point: EntryPoint) -> ModuleType:
    what = f"paper {point.name}"
    try:
        package = point.load()
    # A paper of another distribution may fail in any way: say which one it is.
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{what} must load from {point.value}, got {cause}; mend it or uninstall it"
        ) from error
    paper: Any = getattr(package, "PAPER", None)
    _rule(isinstance(paper, Paper) and paper.id == point.name, what, f"have a PAPER of its name, got {paper}")
    declared = 0 < paper.family_error < 1 and paper.family_size >= 1
    _rule(declared, what, f"declare a family_error in (0, 1) and a family_size, got {paper}")
    return package


def alpha(claim: AnyClaim) -> float:
    """Error of an interval of this claim: that of the family of its paper."""
    return next((p.alpha for p in papers((claim.paper,)) if p.id == claim.paper and p.family_size), ALPHA)


def folders(only: Only = ()) -> dict[str, Path]:
    """Folder of the code of each paper."""
    return {name: Path(str(package.__file__)).parent for name, package in _packages(only).items()}


@cache
def _glossary(paper: str) -> dict[str, str]:
    """Return the letters that a paper lists as `SYMBOLS`, here or in a module of that name, with what they mean."""
    package = _packages((paper,)).get(paper)
    return {} if package is None else dict(_attribute_of_paper(package, "SYMBOLS", {}))


def symbols(claim: AnyClaim) -> dict[str, str]:
    """Return the letters of a statement, as LaTeX, and their meanings: its own, else those that its paper lists."""
    return in_statement(claim.statement, {**_glossary(claim.paper), **claim.symbols})


def in_statement(latex: str, listed: Mapping[str, str]) -> dict[str, str]:
    r"""Return the listed letters of a statement in its order; the longest are read first.

    Letters in words, in indices and before a bracket, where they stand for something else, are left out.

    >>> in_statement(r"\sigma_e^2 + \sigma + P(x)", {r"\sigma": "a deviation", r"\sigma_e": "that of e", "P": "a size"})
    {'\\sigma_e': 'that of e', '\\sigma': 'a deviation'}
    >>> in_statement(r"\frac{d \log P}{d \log N} + P\big(x\big)", {"d": "a number", "N": "another", "P": "a third"})
    {'P': 'a third', 'N': 'another'}
    """
    left, found = WORDS.sub(lambda match: " " * len(match.group()), SIZES.sub("", latex)), dict[str, int]()
    left = DERIVATIVE.sub(r"\\frac{ \1}{ ", left)
    for name in sorted(listed, key=len, reverse=True):
        before = r"(?<!_)" if name.startswith("\\") else r"(?<![A-Za-z\\_])"
        pattern = before + re.escape(name) + r"(?![A-Za-z0-9_(])" * name[-1].isalnum()
        if match := re.search(pattern, left):
            found[name] = match.start()
            left = re.sub(pattern, lambda m: " " * len(m.group()), left)
    return {name: listed[name] for name in sorted(found, key=found.__getitem__)}


def derivations(only: Only = ()) -> list[Derivation]:
    """Derivations that papers of other distributions bring, in addition to `theory.derivations`."""
    return [
        derive() for package in _packages(only).values() for derive in getattr(package, "DERIVATIONS", ())
    ]


def docs(only: Only = ()) -> dict[str, str]:
    """Return the page of every paper: a file of this package, or `DOCS`, the path of a Markdown file or its text.

    Raises
    ------
    ValueError
        If one cannot be read.
    """
    found = {
        name: shipped.page(name) if name in OWN else getattr(package, "DOCS", "")
        for name, package in _packages(only).items()
    }
    return {name: _read(name, page) for name, page in found.items() if page}


def _read(name: str, page: Any) -> str:
    try:
        return page.read_text(encoding="utf-8") if isinstance(page, Path) else str(page)
    except (OSError, UnicodeError) as error:
        raise ValueError(f"paper {name} must have DOCS that can be read, got {error}") from None


@cache
def entries(only: Only = ()) -> dict[str, tuple[Entry, ...]]:
    """Return every entry of the inventory, by paper."""
    return {
        name: tuple(_attribute_of_paper(package, "ENTRIES", ())) for name, package in _packages(only).items()
    }


def _attribute_of_paper(package: ModuleType, name: str, absent: Any) -> Any:
    """Return an attribute of a paper, from its package or from a module of that name in small letters."""
    alone = not hasattr(package, "__path__")  # a paper in a single file has no further modules
    if alone or hasattr(package, name) or find_spec(f"{package.__name__}.{name.lower()}") is None:
        return getattr(package, name, absent)
    return getattr(import_module(f"{package.__name__}.{name.lower()}"), name)


# --- the inventory


def inventory(of: Iterable[AnyClaim | Observation] | None = None) -> list[InventoryRow]:
    """Return each entry with its status: judged if a claim covers it, observed if only an observation does.

    With `of`, claims and observations, return only the entries that they cover. Papers to which neither these items
    nor these entries belong are not loaded.
    """
    items = None if of is None else tuple(of)
    wanted, only = (None, ()) if items is None else (covered(items), _papers_around(items))
    judged, observed = covered(claims(only)), covered(observations(only))
    needs = {claim.id: needed for claim in claims(only) if (needed := needed_images(claim))}
    return [
        _inventory_row(
            paper, entry, judged.get((paper, entry.id), []), observed.get((paper, entry.id), []), needs
        )
        for paper, listed in entries(only).items()
        for entry in listed
        if wanted is None or (paper, entry.id) in wanted
    ]


def _inventory_row(
    paper: str, entry: Entry, judged: list[str], observed: list[str], needs: Mapping[str, str]
) -> InventoryRow:
    """Return an entry with its status; `needs` are the images that claims require, by id."""
    status, reason = entry.status, entry.reason
    if judged:
        status, reason = (Status.PARTLY if entry.scope else Status.JUDGED).value, entry.scope
    elif observed:
        status, reason = Status.OBSERVED.value, ""
    waiting: dict[str, list[str]] = {}
    for name in judged:
        if name in needs:
            waiting.setdefault(needs[name], []).append(name)
    limits = [f"on {needed} alone: {', '.join(names)}" for needed, names in waiting.items()]
    return InventoryRow(
        paper=paper,
        id=entry.id,
        title=entry.title,
        status=status,
        reason="; ".join(filter(None, [reason, *limits])),
        claims=judged,
        observations=observed,
        ours=entry.ours or paper == "beyond",
    )


def covered(items: Iterable[AnyClaim | Observation]) -> dict[tuple[str, str], list[str]]:
    """Return the ids of the items that cover each entry, by its paper and id, in the order of the items."""
    found: dict[tuple[str, str], list[str]] = {}
    for item in items:
        for entry in item.entries:
            found.setdefault(entry_of(item, entry), []).append(item.id)
    return found


def entry_of(item: AnyClaim | Observation | Row | Observed, entry: str) -> tuple[str, str]:
    """Return paper and id of an entry, given as ``id`` in the item's own paper or as ``paper/id``."""
    paper, _, name = entry.rpartition("/")
    return (paper or item.paper, name)


def count_statements(inventory: Sequence[InventoryRow]) -> dict[str, int]:
    """Return how many statements of papers have which status; those that no paper makes are not counted.

    The command line, the page and the README all give these numbers.
    """
    counts = Counter(entry.status for entry in inventory if not entry.ours)
    return {status.value: counts[status] for status in Status if counts[status]}


def whose_claim(claim: AnyClaim) -> str:
    """Return the origin of a claim's statement, as its passage says: `PAPER`, `KNOWN` or `OURS`."""
    others = {Standing.KNOWN: KNOWN, Standing.OURS: OURS}
    return others.get(claim.passage.standing, PAPER) if claim.passage else PAPER


def whose(entry: InventoryRow, claims: Mapping[str, AnyClaim]) -> str:
    """Return the origin of a statement; `claims`, by id, include those that judge it."""
    if not entry.ours:
        return PAPER
    known = {whose_claim(claims[name]) == KNOWN for name in entry.claims}
    return KNOWN if known == {True} else OURS


# --- what is asked for


def select(
    tier: Tier = Tier.FULL, *, claim: Sequence[str] = (), paper: Sequence[str] = ()
) -> tuple[AnyClaim, ...]:
    """Admit the claims of a tier, restricted to ids and papers; a claim named by its id is taken from any tier.

    Without ids all claims of the papers are admitted, else only those that are named.

    Raises
    ------
    ValueError
        If an id or a paper is unknown, or a claim breaks a rule.
    """
    _require_known(claim, paper)
    if claim:
        # Only the papers of these claims are loaded: a plug-in that fails stops no other paper.
        found = tuple(c for c in claims(papers_with(claim)) if c.id in claim)
        admit(found, _known_to(found))
        return tuple(c for c in found if not paper or c.paper in paper)
    # All claims whatever the tier, since the limit on intervals is that of the whole family.
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
        o.in_tier(tier)
        for o in found
        if (o.id in claim if claim else o.tier in runs) and (not paper or o.paper in paper)
    )


def papers_with(names: Collection[str]) -> Only:
    """Return the papers to load for claims and observations of these ids; empty, for all papers, if there are none.

    The ids begin with these papers. All papers are loaded where an id is not found in them: it may be unknown, or in a
    module of another paper.

    >>> papers_with(["vysogorets2024/softmax-rank", "edge/levels"])
    ('vysogorets2024', 'edge')
    """
    only = in_order({name.partition("/")[0] for name in names})
    return only if only and set(names) <= set(ids(only)) else ()


def in_order(named: Collection[str]) -> Only:
    """Return these papers in the report's order, and those that must be loaded with them; other names are left out."""
    whole = {*named, *TOGETHER} if TOGETHER.intersection(named) else named
    return tuple(paper for paper in paper_ids() if paper in whole)


def ids(only: Only = ()) -> list[str]:
    """Return the ids of all claims and observations."""
    return [item.id for item in (*claims(only), *observations(only))]


def _known_to(items: Sequence[AnyClaim | Observation]) -> dict[str, tuple[Entry, ...]]:
    """Return the entries of the papers of these items, and of papers whose entries they cover."""
    return entries(_papers_around(items)) if items else {}


def _papers_around(items: Sequence[AnyClaim | Observation]) -> Only:
    """Return the papers to load for these items and for the entries that they cover; empty for all."""
    loaded = papers_with([item.id for item in items])
    return loaded and in_order({*loaded, *(paper for paper, _ in covered(items))})


# --- admission


def families(listed: Sequence[AnyClaim], only: Only = ()) -> list[tuple[str, int, int]]:
    """Return intervals used and allowed: of the papers of this package together, then of each other paper."""
    apart = [paper for paper in papers(only) if paper.family_size]
    own = {paper.id for paper in apart}
    shared = ("this package", intervals(c for c in listed if c.paper not in own), FAMILY_SIZE)
    return [shared, *((p.id, intervals(c for c in listed if c.paper == p.id), p.family_size) for p in apart)]


def admit(listed: Sequence[AnyClaim], known: dict[str, tuple[Entry, ...]]) -> None:
    """Check that claims can fail, name their source, and fit the family.

    Raises
    ------
    ValueError
        Naming the claim and the rule it breaks.
    """
    for name, count in Counter(c.id for c in listed).items():
        _rule(count == 1, f"claim {name}", "have an id of its own")
    experiments: dict[str, Experiment] = {}
    for claim in listed:
        for problem in _claim_problems(claim, known, experiments):
            raise ValueError(f"claim {claim.id} must {problem}")
    for paper, used, most in families(listed, in_order({claim.paper for claim in listed})):
        _rule(used <= most, f"claims of {paper}", f"use at most {most} intervals, got {used}")


def _claim_problems(
    claim: AnyClaim, known: dict[str, tuple[Entry, ...]], experiments: dict[str, Experiment]
) -> Iterator[str]:
    yield from _place_problems(claim, known)
    if not (claim.source and claim.statement):
        yield "name its source and statement"
    # rivals of an identity are routes, known only when they are computed
    if not (isinstance(claim, Identity) or claim.rivals):
        yield "name a rival formula that it rejects"
    if isinstance(claim, Claim):
        same = experiments.setdefault(claim.experiment.id, claim.experiment)
        # Random streams are filed under this id, so two experiments of one id would share them.
        if same is not claim.experiment:
            yield f"share one experiment {same.id!r} with the claims that read it"
    yield from problems(claim)


def admit_observations(
    listed: Sequence[Observation], judged: Sequence[AnyClaim], known: dict[str, tuple[Entry, ...]]
) -> None:
    """Check that observations say what they show and have streams of their own.

    Raises
    ------
    ValueError
        Naming the observation and the rule it breaks.
    """
    taken = Counter(o.id for o in listed)
    taken.update({name for c in judged for name in (c.id, c.experiment.id if isinstance(c, Claim) else c.id)})
    known_by_id = {o.id: o for o in listed}
    for observation in listed:
        what, small = f"observation {observation.id}", known_by_id.get(observation.small)
        if observation.small:
            rule = f"draw and show what {observation.small} does at sizes for a CPU"
            _rule(small is not None and _same_experiment(small, observation), what, rule)
        _rule(taken[observation.id] == 1, what, "have an id of its own, among claims and experiments too")
        for problem in (*_place_problems(observation, known), *observation_problems(observation)):
            raise ValueError(f"{what} must {problem}")


def _same_experiment(small: Observation, large: Observation) -> bool:
    """Whether two observations run the same code: the small one is what tests of the large one run on a CPU."""
    alike = (small.simulate, small.columns, small.along) == (large.simulate, large.columns, large.along)
    return alike and small.cost is None


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


def _rule(holds: bool, what: str, rule: str) -> None:
    if not holds:
        raise ValueError(f"{what} must {rule}")


def _require_known(claim: Sequence[str], paper: Sequence[str]) -> None:
    require_papers(paper)
    known = ids(papers_with(claim)) if claim else []
    short = {name.partition("/")[2]: name for name in known}  # its paper may have been left out
    for name in claim:
        if name not in known:
            stated = [claim for row in inventory() if row.id.lower() == name.lower() for claim in row.claims]
            near = did_you_mean(name, [*known, *short], suggest=short)
            find = f"; to find claims by a word: losscurv claims {name}" * ("/" not in name)
            advice = f"; the claims of {name} are {', '.join(stated)}" if stated else near + find
            raise ValueError(f"claim must be an id such as {known[0]}, got {name!r}{advice}")


def require_papers(names: Iterable[str]) -> None:
    """Check that papers exist.

    Raises
    ------
    ValueError
        If one does not; the message lists the papers.
    """
    known = paper_ids()
    for name in names:
        if name not in known:
            raise ValueError(
                f"paper must be one of {', '.join(known)}, got {name!r}{did_you_mean(name, known)}"
            )
