"""A whole run: a session's rows with the inventory, the planted errors and the host, and what counts against it."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import platform
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from simulate.monte_carlo import SerialExecutor
from verify.claims import register, registry
from verify.claims.images import DIGITS
from verify.claims.places import UNREAD, code_of
from verify.judging.planted import PLANTED
from verify.model import (
    ALPHA,
    FAMILY_ERROR,
    FAMILY_SIZE,
    AnyClaim,
    Claim,
    ExactProperty,
    Identity,
    Verdict,
)
from verify.model.observation import Observation
from verify.results import JudgedCounts, Observed, PaperRow, Promise, Results, Row, Suite
from verify.running.commits import commit
from verify.running.engine import Session
from verify.running.options import require_writable
from verify.running.replays import CLOSE, INTERRUPTED, replay_differences
from verify.running.request import Request
from verify.running.settings import Settings
from verify.running.store import Store
from verify.running.workers import open_workers

MOST_UNDECIDED = 0.05
"""Largest share of undecided verdicts in a run, whatever was selected."""

PACKAGES = ("numpy", "scipy", "sympy", "mpmath", "torch", "matplotlib", "hypothesis", "pytest")

UNSAMPLED = ("identity", "exact property", "check")
"""Kinds of rows that no interval decides."""


@contextlib.contextmanager
def open_session(request: Request, say: Callable[[str], None]) -> Iterator[Session]:
    """The session of a run, with its store and its workers: what is missing is known before anything is judged.

    Raises
    ------
    ValueError, OSError
        If the folder of the report cannot be written, the workers cannot be had or a ledger cannot be read.
    """
    # A ledger that cannot be read ends the run before anything is drawn.
    register.ledgers(request.papers)
    folder = request.report_dir
    if folder is not None:
        require_writable(folder)
    # A replay that read stored replicates would compare the recorded run with itself.
    fresh = request.options.fresh or request.replay is not None
    with (
        contextlib.nullcontext() if folder is None else Store(folder, say, fresh=fresh) as store,
        open_workers(request.settings.workers, request.options.executor) as executor,
    ):
        session = Session(
            request.claims,
            request.settings,
            executor,
            alpha=registry.alpha,
            store=store,
            observations=request.observations,
            registered=request.settings.data == DIGITS,
        )
        if store is not None and store.replicates:
            read = f"{store.replicates} replicates of an earlier run read from {folder}"
            say(f"{read}; properties read theirs as they run")
        yield session


def collect(
    session: Session,
    request: Request,
    *,
    interrupted: bool = False,
    paged: bool = True,
    doing: Callable[[str], None] = lambda _: None,
) -> Results:
    """Everything the report is drawn from; after an interruption, as far as the run came.

    The derivations, which take longer than most claims and stand on the page alone, are left out where it is not
    `paged`, where claims are named one by one and after an interruption; else those of the papers that were asked for
    are checked. What is being done is told to `doing`.
    """
    suite = _suite(session, request, interrupted)  # first: what follows is none of the time of the run
    if session.settings.device != "cpu" and not interrupted:
        doing("drawing some blocks again on the CPU")
        again = session.drawn_again()
        suite.host["again_on_the_cpu"] = again.line(suite.device)
        suite.host["off_the_cpu"] = again.doubts(suite.device)
    doing("judging the planted errors")
    planted = planted_rows(request.settings)
    derivations: list[dict[str, str]] = []
    items, named = [*request.claims, *request.observations], bool(request.options.claim)
    if paged and not named and not interrupted:  # who has pressed Ctrl-C does not wait for them
        doing("checking the derivations")
        derivations = _derivations({item.paper for item in items})
    doing("collecting the results")
    return Results(
        suite=suite,
        rows=_with_claim_facts(session.finished_rows(), request.papers),
        runs=session.records(),
        inventory=registry.inventory(items if named else None),
        planted=planted,
        derivations=derivations,
        unread={why: ", ".join(names) for why, names in UNREAD.items()},
        observations=session.finished_observations(),
    )


def _with_claim_facts(rows: Sequence[Row], only: registry.Only) -> list[Row]:
    """Return the rows with what the registry says of each claim, and its history.

    The history is of the claim as the registry has it: images in place of the digits change nothing of it.
    """
    listed, topics = {claim.id: claim for claim in registry.claims(only)}, registry.claim_topics(only)
    routes = {
        row.claim: [rival.name for rival in row.points[0].rivals]
        for row in rows
        if row.id == row.claim and row.points
    }
    facts = {
        name: {
            "registered": register.registered(claim, routes.get(name)),
            "says": claim.says,
            "topic": topics.get(name, ""),
            "code": code_of(claim),
            "symbols": registry.symbols(claim),
        }
        for name in {row.claim for row in rows}
        if (claim := listed.get(name))
    }
    return [replace(row, **facts.get(row.claim, {})) for row in rows]


def planted_rows(settings: Settings) -> list[Row]:
    """One wrong theory per kind of check, judged like any other claim; each must come out *disagrees*.

    They keep their own budget.
    """
    # A run of few replicates would not catch them.
    session = Session(PLANTED, replace(settings, replicates=None), SerialExecutor())
    return [row for claim in PLANTED for row in session.rows(claim)]


def replayed(results: Results, request: Request) -> tuple[list[str], list[str]]:
    """Return the line on a replay and its differences from the recorded run; both empty without a replay."""
    if request.replay is None:
        return [], []
    one, other, left_out = request.replay.suite.device, results.suite.device, ", ".join(request.not_drawn)
    changed = replay_differences(
        request.replay, results, request.asked, request.not_drawn, request.single, request.rounding
    )
    how = f"replay: recorded on {one}, repeated on {other}: numbers are compared to {CLOSE:g}, hashes of scores are not"
    same = "replay: every score and verdict is the same" + f"; left out: {left_out}" * bool(left_out)
    return [how] * (one != other) + ([f"replay differs: {line}" for line in changed] or [same]), changed


def failed(row: Row | Observed, *, strict_undecided: bool = False) -> bool:
    """Whether the row counts against the run; an observation does if it crashed, whatever its table says.

    What may be undecided or is excused counts where `strict_undecided`.
    """
    if isinstance(row, Observed):
        return bool(row.error)
    return row.surprise or (strict_undecided and row.verdict == Verdict.UNDECIDED)


def doubts(results: Results) -> list[str]:
    """Return what is wrong with the run: planted errors not caught, claims missing, or too few verdicts."""
    missed = [row.claim for row in results.planted if row.verdict != Verdict.DISAGREES]
    gone = results.suite.census.missing
    undecided = sum(row.verdict == Verdict.UNDECIDED for row in results.rows)
    decided = sum(row.verdict in (Verdict.AGREES, Verdict.DISAGREES) for row in results.rows)
    found = [str(line) for line in results.suite.host.get("off_the_cpu") or ()]
    if missed:
        found.append(f"planted errors were not caught, so this run proves nothing: {', '.join(missed)}")
    if gone:
        found.append(f"registered claims are missing (dropped or renamed): {', '.join(gone)}")
    if results.suite.census.asked and not decided:
        found.append("no verdict was decided: this run shows nothing")
    elif undecided > MOST_UNDECIDED * len(results.rows):
        share = f"{undecided} of {len(results.rows)} verdicts are undecided, more than {MOST_UNDECIDED:.0%}"
        found.append(f"{share}: this run decides too little")
    return found


@cache
def version() -> str:
    """The installed version of the project."""
    try:
        return importlib.metadata.version("losscurv")
    # A checkout that was never installed has no version.
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _suite(session: Session, request: Request, interrupted: bool) -> Suite:
    settings, only, rows = session.settings, request.papers, session.finished_rows()
    used = {name: count for name, count, _ in registry.families(registry.claims(only), only)}
    return Suite(
        version=version(),
        seed=settings.seed,
        tier=settings.tier.value,
        device=settings.device,
        draws=settings.drawn_by,
        alpha=ALPHA,
        family_error=FAMILY_ERROR,
        intervals=next(iter(used.values())),
        intervals_allowed=FAMILY_SIZE,
        selection=request.selection + INTERRUPTED * interrupted,
        replicates=settings.replicates,
        data=settings.data,
        host=_host(session, request),
        papers=[
            PaperRow(
                id=paper.id,
                authors=paper.authors,
                title=paper.title,
                family_error=paper.family_error,
                intervals=used.get(paper.id, 0),
                intervals_allowed=paper.family_size,
            )
            for paper in registry.papers(only)
        ],
        ledger=register.digest(register.ledgers(only)),
        census=JudgedCounts(
            known=len(registry.claims(only)),
            asked=len(request.claims),
            judged=len({row.claim for row in rows}),
            left_out=dict(request.left_out),
            missing=register.missing(only),
            withdrawn=register.withdrawn(only),
        ),
        promises=_promises(rows, only),
    )


def _promises(rows: Sequence[Row], only: registry.Only) -> list[Promise]:
    """One for the papers of this package, then one for each paper with a family of its own that was judged."""
    errors = {paper.id: paper.family_error for paper in registry.papers(only) if paper.family_size}
    families: dict[str, list[Row]] = {name: [] for name in ("", *errors)}
    for row in rows:
        families[row.paper if row.paper in errors else ""].append(row)
    return [
        Promise(
            paper=paper,
            error=errors.get(paper, FAMILY_ERROR),
            decided=sum(_by_sampling(row) and row.verdict != Verdict.UNDECIDED for row in own),
            undecided=sum(_by_sampling(row) and row.verdict == Verdict.UNDECIDED for row in own),
        )
        for paper, own in families.items()
        if own
    ]


def _by_sampling(row: Row) -> bool:
    """Whether an interval decides it: what rests on a model of the size has no promise."""
    return row.kind not in UNSAMPLED and not row.model_based


def _host(session: Session, request: Request) -> dict[str, Any]:
    executor, device = request.options.executor, session.settings.device
    return {
        "finished": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "wall_seconds": round(session.progress().elapsed, 1),
        # Processor time of a cluster's workers cannot be seen from here.
        **({} if executor else {"cpu_seconds": round(session.cpu_seconds(), 1)}),
        "workers": session.settings.workers,
        "executor": executor or "local",
        "beside_the_device": {}
        if device == "cpu"
        else _computed_on_cpu([*request.claims, *request.observations]),
        "for_a_gpu": list(request.for_a_gpu),
        "stored_replicates": session.store.replicates if session.store else 0,
        "commit": commit(),
        "platform": platform.platform(terse=True),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def _computed_on_cpu(items: Sequence[AnyClaim | Observation]) -> dict[str, str]:
    """Experiments that compute on the CPU although the run uses a GPU, by name."""
    drawn = [c.experiment if isinstance(c, Claim) else c for c in items]
    found = {
        each.id: each.on_host
        for each in drawn
        if not isinstance(each, Identity | ExactProperty) and each.on_host
    }
    if any(isinstance(each, Identity | ExactProperty) for each in drawn):
        found["identities and exact properties"] = "all of them"
    return found


def _derivations(papers: Collection[str]) -> list[dict[str, str]]:
    """The symbolic derivations as LaTeX: those of `theory` for papers of this package, of other papers their own."""
    # Imported here, for a run without derivations does not need sympy.
    from sympy import latex

    from theory.derivations import every_derivation

    ours = () if set(registry.OWN).isdisjoint(papers) else every_derivation()
    return [
        {
            "name": d.name,
            "statement": d.statement,
            "expression": latex(d.expression),
            "steps": "\n".join(d.steps),
        }
        for d in (*ours, *registry.derivations(tuple(papers)))
    ]
