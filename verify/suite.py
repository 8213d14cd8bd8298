"""A whole run: a session's rows with the inventory, the planted errors and the host, ready to be saved."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from simulate.monte_carlo import SerialExecutor
from verify import registry
from verify.engine import Session
from verify.model import ALPHA, FAMILY_ERROR, FAMILY_SIZE, Verdict
from verify.options import Plan
from verify.planted import PLANTED
from verify.results import Results, Row, Suite

__all__ = ["collect", "commit", "differences", "failed", "version"]

PACKAGES = ("numpy", "scipy", "sympy", "mpmath", "torch", "matplotlib", "hypothesis", "pytest")


def collect(session: Session, plan: Plan, *, interrupted: bool = False) -> Results:
    """Everything the report is drawn from; after an interruption, as far as the run came."""
    return Results(
        suite=_suite(session, plan, interrupted),
        rows=session.finished_rows(),
        runs=session.records(),
        inventory=registry.inventory(),
        planted=planted_rows(plan),
        derivations=_derivations(),
    )


def planted_rows(plan: Plan) -> list[Row]:
    """One wrong theory per kind of check, judged like any other claim; each must come out *disagrees*."""
    session = Session(PLANTED, plan.settings, SerialExecutor())
    return [row for claim in PLANTED for row in session.rows(claim)]


def failed(row: Row, *, strict_undecided: bool = False) -> bool:
    """Whether the row counts against the run."""
    return row.surprise or (strict_undecided and row.verdict == Verdict.UNDECIDED)


def differences(recorded: Results, repeated: Results) -> list[str]:
    """What a repeated run has otherwise than the recorded one: scores (by hash) and verdicts."""
    again_runs = {(r.experiment, str(r.parameters)): r for r in repeated.runs}
    again_rows = {row.id: row for row in repeated.rows}
    found: list[str] = []
    for run in recorded.runs:
        other = again_runs.get((run.experiment, str(run.parameters)))
        if other is None:
            continue  # not part of this selection
        if (run.replicates, run.sha256) != (other.replicates, other.sha256):
            found.append(f"{run.experiment} at {run.parameters}: {run.replicates} replicates, scores differ")
    found += [
        f"{row.id}: {row.verdict} was recorded, now {again_rows[row.id].verdict}"
        for row in recorded.rows
        if row.id in again_rows and row.verdict != again_rows[row.id].verdict
    ]
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
    root = Path(__file__).parents[1]
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
        intervals=registry.intervals(registry.claims()),
        intervals_allowed=FAMILY_SIZE,
        selection=plan.selection + (" (interrupted)" if interrupted else ""),
        replicates=settings.replicates,
        host=_host(session, plan),
    )


def _host(session: Session, plan: Plan) -> dict[str, Any]:
    return {
        "finished": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "wall_seconds": round(session.progress().elapsed, 1),
        "workers": session.settings.workers,
        "executor": plan.executor or "local",
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
        {"name": d.name, "statement": d.statement, "expression": latex(d.expression), "steps": "\n".join(d.steps)}
        for d in derivations()
    ]
