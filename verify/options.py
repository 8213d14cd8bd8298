"""The options of a run, the same for pytest and for the command line."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulate.monte_carlo import default_workers, resolve_device
from verify import registry
from verify.engine import Settings
from verify.model import AnyClaim, Tier
from verify.results import Results, load

__all__ = ["OPTIONS", "Plan", "plan"]

SEED = 2024

OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--claim", {"action": "append", "metavar": "ID", "help": "judge this claim only (repeatable)"}),
    ("--paper", {"action": "append", "metavar": "NAME", "help": "judge this paper's claims only (repeatable)"}),
    ("--tier", {"choices": [t.value for t in Tier], "help": "how much to run"}),
    ("--seed", {"type": int, "metavar": "N", "help": f"suite seed (default {SEED})"}),
    ("--vary-seed", {"action": "store_true", "help": "draw a new suite seed and print it"}),
    ("--replicates", {"type": int, "metavar": "N", "help": "most replicates per point, for every experiment"}),
    ("--device", {"default": "cpu", "metavar": "NAME", "help": "cpu (default), cuda, cuda:<index> or auto"}),
    ("--workers", {"type": int, "metavar": "N", "help": "local processes (default: one per core)"}),
    ("--executor", {"metavar": "dask://HOST:PORT", "help": "run on this Dask cluster instead"}),
    ("--report-dir", {"metavar": "FOLDER", "help": "where report.html and results.json go"}),
    ("--replay", {"metavar": "FILE", "help": "repeat the run of a results file and compare every score"}),
    ("--strict-undecided", {"action": "store_true", "help": "an undecided claim counts as a failure"}),
)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run as asked for: what to judge, how, where, and what to compare it with."""

    claims: tuple[AnyClaim, ...]
    settings: Settings
    executor: str | None
    report_dir: Path | None
    replay: Results | None
    strict_undecided: bool
    selection: str


def plan(values: Mapping[str, Any], *, tier: Tier, report_dir: str | None) -> Plan:
    """Check the options and resolve them; `tier` and `report_dir` are what holds where the option is not given.

    Raises
    ------
    ValueError
        Naming the option that cannot be used, and why.
    """
    replay = load(Path(values["replay"])) if values.get("replay") else None
    if values.get("vary_seed") and (values.get("seed") is not None or replay):
        raise ValueError("--vary-seed must stand without --seed and --replay, which fix the seed")
    chosen_tier = Tier(values["tier"]) if values.get("tier") else Tier(replay.suite.tier) if replay else tier
    names = values.get("claim") or (_judged(replay) if replay else [])
    claims = registry.select(chosen_tier, claim=names, paper=values.get("paper") or [])
    if not claims:
        raise ValueError("--claim and --paper must leave at least one claim, got none")
    folder = values.get("report_dir") or report_dir
    workers = default_workers() if values.get("workers") is None else values["workers"]
    return Plan(
        claims=claims,
        settings=Settings(
            seed=_seed(values, replay),
            tier=chosen_tier,
            device=resolve_device(values.get("device") or "cpu"),
            workers=_at_least_one("--workers", workers),
            replicates=_replicates(values, replay),
        ),
        executor=values.get("executor"),
        report_dir=_writable(Path(folder)) if folder else None,
        replay=replay,
        strict_undecided=bool(values.get("strict_undecided")),
        selection=_selection(values, replay),
    )


def _seed(values: Mapping[str, Any], replay: Results | None) -> int:
    if values.get("vary_seed"):
        return secrets.randbits(32)
    if values.get("seed") is not None:
        if values["seed"] < 0:
            raise ValueError(f"--seed must be non-negative, got {values['seed']}")
        return values["seed"]
    return replay.suite.seed if replay else SEED


def _replicates(values: Mapping[str, Any], replay: Results | None) -> int | None:
    if values.get("replicates") is not None:
        return _at_least_one("--replicates", values["replicates"])
    return replay.suite.replicates if replay else None


def _at_least_one(option: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{option} must be at least 1, got {value}")
    return value


def _judged(results: Results) -> list[str]:
    return list(dict.fromkeys(row.claim for row in results.rows))


def _selection(values: Mapping[str, Any], replay: Results | None) -> str:
    parts = [*(values.get("claim") or []), *(values.get("paper") or [])]
    return ", ".join(parts) or (replay.suite.selection if replay else "all claims")


def _writable(folder: Path) -> Path:
    """Fail before the run, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.write_text("", encoding="utf-8")
        probe.unlink()
    except OSError as error:
        raise ValueError(f"--report-dir must be a folder that can be written, {folder}: {error.strerror}") from None
    return folder
