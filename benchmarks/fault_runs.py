"""A run of `losscurv report` that something is done to: its folder, its store, its workers, and what it leaves.

    python -m benchmarks.fault_runs report ...

is `losscurv`, with a note of every block that it sends to a worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "Folder", "Tally", "blocks", "children", "outcome", "page_matches"]

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = ("vysogorets2024/uniform-outliers", "vysogorets2024/bulk", "vysogorets2024/gamma-and-interlacing")
STORE, RESULTS, PAGE = "replicates.sqlite", "results.json", "report.html"
DRAWN = "DRAWN_LOG"
"""Names the file in which a run notes every block that it sends to a worker."""

Blocks = dict[tuple[str, ...], str]


@dataclass
class Tally:
    """What one scenario came to."""

    name: str
    runs: int = 0
    blows: int = 0
    drawn: int = 0
    needed: int = 0
    seconds: float = 0.0
    skipped: str = ""
    faults: list[str] = field(default_factory=list)

    def check(self, good: Any, what: str) -> None:
        """Note what should have been and was not."""
        if not good:
            self.faults.append(what)


class Folder:
    """A report folder, the runs in it, and what its store was seen to hold."""

    def __init__(self, path: Path, tally: Tally, *, seed: int = 2024, executor: str = "") -> None:
        self.path, self.tally, self.seed, self.executor = path, tally, seed, executor
        self.log = path.with_name(f"{path.name}.drawn")
        self.seen: Blocks = {}

    def start(self, **more: Any) -> subprocess.Popen[str]:
        """A run, in a process group of its own."""
        self.tally.runs += 1
        words = ["report", "--workers", "2", "--seed", str(more.pop("seed", self.seed))]
        words += ["--report-dir", str(self.path), *(w for claim in CLAIMS for w in ("--claim", claim))]
        words += ["--executor", self.executor] if self.executor else []
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", DRAWN: str(self.log)}
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.fault_runs", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
            cwd=self.path.parent,
        )

    def finish(self) -> tuple[int, str]:
        """A run that nobody disturbs: its status and what stood on stderr."""
        run = self.start()
        _, err = run.communicate(timeout=600)
        return run.returncode, err

    def look(self, where: str) -> None:
        """The store is in order and has lost nothing since the last look."""
        now, state = blocks(self.path)
        self.tally.check(state == "ok", f"{where}: the store is not in order: {state}")
        lost = {k for k, sha in self.seen.items() if now.get(k) != sha}
        self.tally.check(not lost, f"{where}: {len(lost)} stored blocks lost")
        self.seen = now

    def look_at_report(self, where: str) -> None:
        """The report is whole or absent."""
        page, results = self.path / PAGE, self.path / RESULTS
        if page.exists():
            text = page.read_text(encoding="utf-8").rstrip()
            self.tally.check(text.endswith("</html>"), f"{where}: half a page")
        if results.exists():
            with contextlib.suppress(ValueError):
                json.loads(results.read_text(encoding="utf-8"))
                return
            self.tally.faults.append(f"{where}: half a results file")

    def look_at_end(self, expected: dict[str, Any]) -> None:
        """Rows, verdicts and hashes are those of the undisturbed run; page and results are of one run."""
        self.look("end")
        self.look_at_report("end")
        found = outcome(self.path)
        for part, value in expected.items():
            self.tally.check(found[part] == value, f"end: other {part} than undisturbed")
        self.tally.check(page_matches(self.path), "end: page and results are not of one run")
        sent = Counter(self.log.read_text(encoding="utf-8").split("\n")) if self.log.exists() else Counter()
        sent.pop("", None)
        self.tally.drawn += sent.total()
        self.tally.needed += len(sent)


def blocks(folder: Path) -> tuple[Blocks, str]:
    """The hash of each stored block by its key, and what SQLite says of the file."""
    path = folder / STORE
    if not path.exists():
        return {}, "ok"
    connection = sqlite3.connect(path, timeout=30)
    try:
        ((state,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
        if not connection.execute("SELECT 1 FROM sqlite_master").fetchall():
            return {}, state
        rows = connection.execute(
            "SELECT experiment, point, seed, device, fingerprint, block, blocks.sha256 "
            "FROM blocks JOIN runs ON run = id"
        )
        return {tuple(map(str, row[:-1])): row[-1] for row in rows}, state
    except sqlite3.DatabaseError as error:
        return {}, str(error)
    finally:
        connection.close()


def outcome(folder: Path) -> dict[str, Any]:
    """What must not depend on how the run went."""
    raw = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    for row in raw["rows"] + raw["runs"]:
        del row["seconds"]
    return {"rows": raw["rows"], "runs": raw["runs"], "selection": raw["suite"]["selection"]}


def page_matches(folder: Path) -> bool:
    """Whether the page is the one that the results file beside it draws."""
    from verify import results
    from verify.page import report

    page = (folder / PAGE).read_text(encoding="utf-8")
    return report.document(results.load(folder / RESULTS)) == page


def children(pid: int) -> list[int]:
    """Worker processes of a run: those that Python's multiprocessing has spawned."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if (
                f"\nPPid:\t{pid}\n" in status.read_text()
                and b"spawn_main" in (status.parent / "cmdline").read_bytes()
            ):
                found.append(int(status.parent.name))
    return found


def as_losscurv(words: list[str]) -> int:
    """`losscurv`, with a note of every block that is sent to a worker.

    The planted errors and the derivations are left out: they cost seconds of every run and store nothing.
    """
    from verify.cli import main
    from verify.running import suite
    from verify.running.workers import Calls

    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started in the background ignores it
    suite.PLANTED = ()
    suite._derivations = lambda *_: []

    fly = Calls._fly

    def noted(self: Calls, call: Any) -> None:
        if call.function.__name__ == "drawn":
            name = " ".join(str(call.arguments[part]) for part in ("experiment", "point", "seed", "index"))
            with Path(os.environ[DRAWN]).open("a", encoding="utf-8") as log:
                log.write(f"{name}\n")
        fly(self, call)

    Calls._fly = noted
    return main(words)


if __name__ == "__main__":
    sys.exit(as_losscurv(sys.argv[1:]))
