"""A whole run: a session's rows with the inventory, the planted errors and the host, ready to be saved."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from simulate.monte_carlo import SerialExecutor
from verify.claims import registry
from verify.judging.planted import PLANTED
from verify.model import ALPHA, FAMILY_ERROR, FAMILY_SIZE, Verdict
from verify.results import Observed, PaperRow, Results, Row, Suite
from verify.running.engine import Session
from verify.running.options import ALL_CLAIMS, Plan
from verify.running.replays import INTERRUPTED
from verify.running.store import Store

__all__ = ["collect", "commit", "doubts", "failed", "open_store", "version"]

MOST_UNDECIDED = 0.05
"""Part of a run of all claims that may stay undecided; one always may."""

PACKAGES = ("numpy", "scipy", "sympy", "mpmath", "torch", "matplotlib", "hypothesis", "pytest")


def open_store(plan: Plan, say: Callable[[str], None]) -> AbstractContextManager[Store | None]:
    """Where the run keeps its replicates: beside its report, if it leaves one."""
    return nullcontext() if plan.report_dir is None else Store(plan.report_dir, say, fresh=plan.fresh)


def collect(session: Session, plan: Plan, *, interrupted: bool = False) -> Results:
    """Everything the report is drawn from; after an interruption, as far as the run came."""
    return Results(
        suite=_suite(session, plan, interrupted),
        rows=session.finished_rows(),
        runs=session.records(),
        inventory=registry.inventory(),
        planted=planted_rows(plan),
        derivations=_derivations(),
        observations=session.finished_observations(),
    )


def planted_rows(plan: Plan) -> list[Row]:
    """One wrong theory per kind of check, judged like any other claim; each must come out *disagrees*.

    They keep their own budget: a run of few replicates would not catch them.
    """
    session = Session(PLANTED, replace(plan.settings, replicates=None), SerialExecutor())
    return [row for claim in PLANTED for row in session.rows(claim)]


def failed(row: Row | Observed, *, strict_undecided: bool = False) -> bool:
    """Whether the row counts against the run; an observation does if it crashed, whatever its table says."""
    if isinstance(row, Observed):
        return bool(row.error)
    return row.surprise or (strict_undecided and row.verdict == Verdict.UNDECIDED)


def doubts(results: Results) -> list[str]:
    """What is wrong with a run as a whole: planted errors not caught, or too little decided in a run of everything."""
    missed = [row.claim for row in results.planted if row.verdict != Verdict.DISAGREES]
    undecided = sum(row.verdict == Verdict.UNDECIDED for row in results.rows)
    whole = results.suite.selection == ALL_CLAIMS and results.suite.replicates is None
    found: list[str] = []
    if missed:
        found.append(f"planted errors not caught, this run proves nothing: {', '.join(missed)}")
    if whole and undecided > max(1, MOST_UNDECIDED * len(results.rows)):
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


@cache
def commit() -> str:
    """The short commit of a source checkout, with a plus sign if it has changes; empty where there is none."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        head = _git(root, "rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(root: Path, *words: str) -> str:
    run = subprocess.run(  # noqa: S603 - fixed words, no shell
        ["git", "-C", str(root), *words],  # noqa: S607 - the user's own git
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return run.stdout.strip()


def _suite(session: Session, plan: Plan, interrupted: bool) -> Suite:
    settings = session.settings
    return Suite(
        version=version(),
        seed=settings.seed,
        tier=settings.tier.value,
        device=settings.device,
        alpha=ALPHA,
        family_error=FAMILY_ERROR,
        intervals=registry.families(registry.claims())[0][1],
        intervals_allowed=FAMILY_SIZE,
        selection=plan.selection + INTERRUPTED * interrupted,
        replicates=settings.replicates,
        data=settings.data,
        host=_host(session, plan),
        papers=_papers(),
    )


def _papers() -> list[PaperRow]:
    used = {name: (count, most) for name, count, most in registry.families(registry.claims())}
    return [
        PaperRow(
            id=paper.id,
            authors=paper.authors,
            title=paper.title,
            family_error=paper.family_error,
            intervals=used.get(paper.id, (0, 0))[0],
            intervals_allowed=paper.family_size,
        )
        for paper in registry.papers()
    ]


def _host(session: Session, plan: Plan) -> dict[str, Any]:
    return {
        "finished": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "wall_seconds": round(session.progress().elapsed, 1),
        "workers": session.settings.workers,
        "executor": plan.executor or "local",
        "stored_replicates": session.store.replicates if session.store else 0,
        "commit": commit(),
        "platform": platform.platform(terse=True),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def _derivations() -> list[dict[str, str]]:
    """The symbolic derivations as LaTeX."""
    from sympy import latex

    from theory.derivations import derivations

    return [
        {
            "name": d.name,
            "statement": d.statement,
            "expression": latex(d.expression),
            "steps": "\n".join(d.steps),
        }
        for d in (*derivations(), *registry.derivations())
    ]
