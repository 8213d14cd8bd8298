"""A whole run: a session's rows with the inventory, the planted errors and the host, ready to be saved."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import platform
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from typing import Any

from simulate.monte_carlo import SerialExecutor
from verify.claims import register, registry
from verify.claims.places import UNREAD, code_of
from verify.judging.planted import PLANTED
from verify.model import ALPHA, FAMILY_ERROR, FAMILY_SIZE, Verdict
from verify.results import Observed, PaperRow, Results, Row, Suite
from verify.running.beside import beside_the_device
from verify.running.census import census, promises
from verify.running.commits import commit
from verify.running.engine import Session
from verify.running.forecast import Costs, costs_of
from verify.running.options import require_writable
from verify.running.replays import INTERRUPTED
from verify.running.request import Request
from verify.running.store import Store, replicates_read
from verify.running.workers import open_workers

__all__ = [
    "collect",
    "commit",
    "doubts",
    "failed",
    "open_session",
    "planted_rows",
    "version",
]

MOST_UNDECIDED = 0.05
"""Part of what was judged that may stay undecided, whatever was selected."""

PACKAGES = ("numpy", "scipy", "sympy", "mpmath", "torch", "matplotlib", "hypothesis", "pytest")


@contextlib.contextmanager
def open_session(request: Request, say: Callable[[str], None]) -> Iterator[Session]:
    """The session of a run, with its store and its workers: what is missing is known before anything is judged.

    Raises
    ------
    ValueError, OSError
        If the folder of the report cannot be written, the workers cannot be had or a ledger cannot be read.
    """
    register.ledgers(request.papers)
    if request.report_dir is not None:
        require_writable(request.report_dir)
    with (
        _open_store(request, say) as store,
        open_workers(request.settings.workers, request.executor) as executor,
    ):
        session = Session(
            request.claims,
            request.settings,
            executor,
            alpha=registry.alpha,
            store=store,
            observations=request.observations,
            costs=_earlier(request),
        )
        if store is not None and store.replicates:
            say(replicates_read(store.replicates, store.path.parent))
        yield session


def _earlier(request: Request) -> Costs:
    s = request.settings
    return costs_of(request.report_dir, s.tier.value, s.replicates, s.device)


def _open_store(request: Request, say: Callable[[str], None]) -> AbstractContextManager[Store | None]:
    """Where the run keeps its replicates: beside its report, if it leaves one."""
    if request.report_dir is None:
        return contextlib.nullcontext()
    return Store(request.report_dir, say, fresh=request.fresh)


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
        again = session.drawn_again(request.single)
        suite.host["again_on_the_cpu"] = again.line(suite.device)
        suite.host["off_the_cpu"] = again.doubts(suite.device)
    doing("judging the planted errors")
    planted = planted_rows(request)
    derivations: list[dict[str, str]] = []
    if paged and not request.named and not interrupted:  # who has pressed Ctrl-C does not wait for them
        doing("checking the derivations")
        derivations = _derivations({item.paper for item in (*request.claims, *request.observations)})
    doing("collecting the results")
    return Results(
        suite=suite,
        rows=_told(session.finished_rows(), request.papers),
        runs=session.records(),
        inventory=registry.inventory([*request.claims, *request.observations] if request.named else None),
        planted=planted,
        derivations=derivations,
        unread={why: ", ".join(names) for why, names in UNREAD.items()},
        observations=session.finished_observations(),
    )


def _told(rows: Sequence[Row], only: registry.Only) -> list[Row]:
    """With what is known of each claim beside what was judged, and its history.

    The history is of the claim as the registry has it: images in place of the digits change nothing of it.
    """
    listed = {claim.id: claim for claim in registry.claims(only)}
    routes = {
        row.claim: [rival.name for rival in row.points[0].rivals]
        for row in rows
        if row.id == row.claim and row.points
    }
    told = {
        name: {
            "registered": register.registered(listed[name], routes.get(name)),
            "says": listed[name].says,
            "topic": registry.claim_topics(only).get(name, ""),
            "code": code_of(listed[name]),
            "symbols": registry.symbols(listed[name]),
        }
        for name in {row.claim for row in rows} & listed.keys()
    }
    return [replace(row, **told.get(row.claim, {})) for row in rows]


def planted_rows(request: Request) -> list[Row]:
    """One wrong theory per kind of check, judged like any other claim; each must come out *disagrees*.

    They keep their own budget: a run of few replicates would not catch them.
    """
    session = Session(PLANTED, replace(request.settings, replicates=None), SerialExecutor())
    return [row for claim in PLANTED for row in session.rows(claim)]


def failed(row: Row | Observed, *, strict_undecided: bool = False) -> bool:
    """Whether the row counts against the run; an observation does if it crashed, whatever its table says.

    What is undecided and excused counts where `strict_undecided`.
    """
    if isinstance(row, Observed):
        return bool(row.error)
    return row.surprise or (strict_undecided and row.verdict == Verdict.UNDECIDED)


def doubts(results: Results) -> list[str]:
    """What is wrong with a run as a whole: planted errors not caught, claims missing, or too little decided."""
    missed = [row.claim for row in results.planted if row.verdict != Verdict.DISAGREES]
    gone = results.suite.census.missing
    undecided = sum(row.verdict == Verdict.UNDECIDED for row in results.rows)
    decided = sum(row.verdict in (Verdict.AGREES, Verdict.DISAGREES) for row in results.rows)
    found: list[str] = []
    found += [str(line) for line in results.suite.host.get("off_the_cpu") or ()]
    if missed:
        found.append(f"planted errors not caught, this run proves nothing: {', '.join(missed)}")
    if gone:
        found.append(f"claims that are registered are missing, dropped or renamed: {', '.join(gone)}")
    if results.suite.census.asked and not decided:
        found.append("no verdict was decided: this run shows nothing")
    elif undecided > MOST_UNDECIDED * len(results.rows):
        found.append(
            f"{undecided} of {len(results.rows)} verdicts are undecided, more than {MOST_UNDECIDED:.0%}: "
            "this run decides too little"
        )
    return found


@cache
def version() -> str:
    """The installed version of the project."""
    try:
        return importlib.metadata.version("losscurv")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _suite(session: Session, request: Request, interrupted: bool) -> Suite:
    settings = session.settings
    return Suite(
        version=version(),
        seed=settings.seed,
        tier=settings.tier.value,
        device=settings.device,
        draws=settings.drawn_by,
        alpha=ALPHA,
        family_error=FAMILY_ERROR,
        intervals=registry.families(registry.claims(request.papers), request.papers)[0][1],
        intervals_allowed=FAMILY_SIZE,
        selection=request.selection + INTERRUPTED * interrupted,
        replicates=settings.replicates,
        data=settings.data,
        host=_host(session, request),
        papers=_papers(request.papers),
        ledger=register.digest(register.ledgers(request.papers)),
        census=census(
            [claim.id for claim in request.claims],
            request.left_out,
            session.finished_rows(),
            request.papers,
        ),
        promises=promises(session.finished_rows(), request.papers),
    )


def _papers(only: registry.Only) -> list[PaperRow]:
    used = {name: (count, most) for name, count, most in registry.families(registry.claims(only), only)}
    return [
        PaperRow(
            id=paper.id,
            authors=paper.authors,
            title=paper.title,
            family_error=paper.family_error,
            intervals=used.get(paper.id, (0, 0))[0],
            intervals_allowed=paper.family_size,
        )
        for paper in registry.papers(only)
    ]


def _host(session: Session, request: Request) -> dict[str, Any]:
    return {
        "finished": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "wall_seconds": round(session.progress().elapsed, 1),
        **({} if request.executor else {"cpu_seconds": round(session.cpu_seconds(), 1)}),
        "main_seconds": round(session.main_seconds(), 1),
        "workers": session.settings.workers,
        "executor": request.executor or "local",
        "beside_the_device": beside_the_device(session.settings.device, request.claims, request.observations),
        "for_a_gpu": list(request.for_a_gpu),
        "stored_replicates": session.store.replicates if session.store else 0,
        "commit": commit(),
        "platform": platform.platform(terse=True),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def _derivations(papers: Collection[str]) -> list[dict[str, str]]:
    """The symbolic derivations as LaTeX: those of `theory` for papers of this package, of other papers their own."""
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
