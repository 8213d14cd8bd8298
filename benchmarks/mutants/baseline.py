"""What a campaign compares with: a report of the unedited code, and the lines that each claim executes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.mutants.child import SEED, Row, five
from benchmarks.mutants.reach import ROOT, Reach, joined
from verify.results import load

__all__ = ["REACH", "baseline", "is_of_this_code", "reach_of"]

REACH = "reach.json"
ENOUGH = 0.9
"""Of the runs of claims, those of which the store must hold a block: some are never stored."""


def baseline(folder: Path, workers: int) -> tuple[dict[str, Row], dict[str, float]]:
    """Rows by id and seconds by claim of the report in a folder, which is made if there is none.

    Raises
    ------
    ValueError
        If the report in the folder is of other code.
    """
    file = folder / "results.json"
    if not file.exists():
        print("a report of the unedited code comes first, some minutes", file=sys.stderr, flush=True)
        words = ["report", "--report-dir", str(folder), "--workers", str(workers), "--seed", str(SEED)]
        subprocess.run([sys.executable, "-m", "verify.cli", *words], cwd=ROOT, check=False)
    if not is_of_this_code(folder):
        raise ValueError(
            f"{folder} must hold a report of this code, got one of other code; name an empty folder"
        )
    rows = load(file).rows
    return {row.id: Row(row.verdict, five(row.points)) for row in rows}, {
        row.claim: row.seconds for row in rows
    }


def is_of_this_code(folder: Path) -> bool:
    """Whether the replicates of a folder are those that the code here would draw."""
    from verify.claims import registry
    from verify.model import Claim
    from verify.running.origin import filed_under
    from verify.running.store import Store

    asked = held = 0
    with Store(folder, lambda _: None) as kept:
        for claim in registry.claims():
            if isinstance(claim, Claim):
                place = claim.experiment
                where = filed_under(place.simulate, place.id, place.points[0], SEED, "cpu")
                asked += 1
                held += where is not None and bool(kept.read(where, 1))
    return held >= ENOUGH * asked


def reach_of(folder: Path, workers: int) -> Reach:
    """From the folder, or made there: what claims execute, line by line."""
    file = folder / REACH
    if not file.exists():
        print("following every claim line by line, some minutes", file=sys.stderr, flush=True)
        parts = [folder / f"reach-{part}-of-{workers}.json" for part in range(workers)]
        words = [sys.executable, "-m", "benchmarks.mutants.reach"]
        running = [
            subprocess.Popen([*words, str(part), str(workers), str(folder), str(place)],
                             cwd=ROOT, stderr=subprocess.DEVNULL)
            for part, place in enumerate(parts) if not place.exists()
        ]  # fmt: skip
        if [run for run in running if run.wait()]:
            raise ValueError(
                f"claims must be followed, got an error: {' '.join(words)} 0 1 {folder} FILE says which"
            )
        rows = json.loads((folder / "results.json").read_text())["rows"]
        readers: dict[str, list[str]] = {}
        for row in rows:
            if row["claim"] not in readers.setdefault(row["experiment"], []):
                readers[row["experiment"]].append(row["claim"])
        costs = {row["claim"]: row["seconds"] for row in rows}
        made = joined([json.loads(place.read_text()) for place in parts], readers, costs)
        file.write_text(json.dumps(made))
    return Reach(json.loads(file.read_text()))
