"""Does a run survive? Kills and interrupts real runs at random moments, and counts what is lost.

    python -m benchmarks.faults --kills 50      # SIGKILLs at least; --seed chooses the moments, --only a scenario

Every run judges a few cheap claims with `losscurv report` in a folder of its own. After each blow the store must be
in order and hold every block it was seen to hold before, the report must be whole or absent, and what comes out in
the end must have the rows, verdicts and hashes of a run that nobody disturbed. What is run,
`benchmarks.faults report`, is `losscurv report` without planted errors and derivations: they cost seconds of every run
and store nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.timing import command

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = ("vysogorets2024/uniform-outliers", "vysogorets2024/bulk", "vysogorets2024/gamma-and-interlacing")
RESULTS, PAGE = "results.json", "report.html"

Blocks = dict[tuple[str, ...], str]
Run = subprocess.Popen[str]


@dataclass
class Tally:
    """Counts of one scenario: runs, kills and broken promises."""

    name: str
    runs: int = 0
    blows: int = 0
    faults: list[str] = field(default_factory=list)

    def check(self, good: Any, what: str) -> None:
        """Note what should have been and was not."""
        if not good:
            self.faults.append(what)

    def __str__(self) -> str:
        row = f"| {self.name} | {self.runs} | {self.blows} | {len(self.faults)} |"
        return "\n    ".join([row, *self.faults])


# --- a run that something is done to


class Folder:
    """A report folder, the runs in it, and what its store was seen to hold."""

    def __init__(self, path: Path, tally: Tally) -> None:
        self.path, self.tally = path, tally
        self.seen: Blocks = {}

    def start(self, seed: int = 2024) -> Run:
        """A run, in a process group of its own."""
        self.tally.runs += 1
        words = ["report", "--workers", "2", "--seed", str(seed), "--report-dir", str(self.path)]
        words += [word for claim in CLAIMS for word in ("--claim", claim)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        # In a group of its own, or a kill of the group would reach this process.
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.faults", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=environment, start_new_session=True, cwd=self.path.parent,
        )  # fmt: skip

    def ends(self, run: Run, status: int = 0, *said: str) -> str:
        """Wait for a run, which has to end so and say so; what stood on stderr."""
        out, err = run.communicate(timeout=600)
        self.tally.check(run.returncode == status, f"status {run.returncode}, not {status}: {err[-300:]}")
        self.tally.check("Traceback" not in out + err, f"a traceback: {(out + err)[-3000:]}")
        for text in said:
            self.tally.check(text in out + err, f"{text!r} was not said: {err[-300:]}")
        return err

    def wait_for_blocks(self, run: Run, least: int) -> None:
        """Until the store holds so many."""
        while len(blocks(self.path)[0]) < least:
            if run.poll() is not None:
                raise RuntimeError(f"the run ended before it had {least} blocks")
            time.sleep(0.02)

    def look(self, where: str) -> None:
        """The store is in order and has lost nothing since the last look; the report is whole or absent."""
        now, state = blocks(self.path)
        self.tally.check(state == "ok", f"{where}: the store is not in order: {state}")
        lost = {k for k, sha in self.seen.items() if now.get(k) != sha}
        self.tally.check(not lost, f"{where}: {len(lost)} stored blocks lost")
        self.seen = now
        page, results = self.path / PAGE, self.path / RESULTS
        if page.exists():
            whole = page.read_text(encoding="utf-8").rstrip().endswith("</html>")
            self.tally.check(whole, f"{where}: half a page")
        if results.exists():
            try:
                json.loads(results.read_text(encoding="utf-8"))
            except ValueError:
                self.tally.faults.append(f"{where}: half a results file")

    def look_at_end(self, expected: dict[str, Any]) -> None:
        """Rows, verdicts and hashes are those of the undisturbed run; page and results are of one run."""
        self.look("end")
        found = outcome(self.path)
        for part, value in expected.items():
            self.tally.check(found[part] == value, f"end: other {part} than undisturbed")
        self.tally.check(page_matches(self.path), "end: page and results are not of one run")


def blocks(folder: Path) -> tuple[Blocks, str]:
    """The hash of each stored block by its key, and what SQLite says of the file."""
    path = folder / "replicates.sqlite"
    if not path.exists():
        return {}, "ok"
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as connection:
        try:
            ((state,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
            # A run that was killed before it made the tables leaves an empty file.
            if not connection.execute("SELECT 1 FROM sqlite_master").fetchall():
                return {}, state
            rows = connection.execute(
                "SELECT experiment, point, seed, device, fingerprint, block, blocks.sha256 "
                "FROM blocks JOIN runs ON run = id"
            )
            return {tuple(map(str, row[:-1])): row[-1] for row in rows}, state
        except sqlite3.DatabaseError as error:
            return {}, str(error)


def outcome(folder: Path) -> dict[str, Any]:
    """Return the rows and runs of a results file without their times: an interruption must not change them."""
    raw = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    for row in raw["rows"] + raw["runs"]:
        del row["seconds"]
    return {"rows": raw["rows"], "runs": raw["runs"], "selection": raw["suite"]["selection"]}


def page_matches(folder: Path) -> bool:
    """Whether the page is the one that the results file beside it draws."""
    from verify import results
    from verify.page import report

    with tempfile.TemporaryDirectory() as other:
        again = report.write(results.load(folder / RESULTS), Path(other))
        return again.read_bytes() == (folder / PAGE).read_bytes()


def children(pid: int) -> list[int]:
    """Worker processes of a run: those that Python's multiprocessing has spawned."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        # The process may have ended since the folder was listed.
        with contextlib.suppress(OSError):
            ours = f"\nPPid:\t{pid}\n" in status.read_text()
            if ours and b"spawn_main" in (status.parent / "cmdline").read_bytes():
                found.append(int(status.parent.name))
    return found


def as_losscurv(words: list[str]) -> int:
    """`losscurv` without planted errors and derivations."""
    from verify.cli import main
    from verify.running import suite

    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started in the background ignores it
    suite.PLANTED = ()
    suite._derivations = lambda *_: []
    return main(words)


# --- what is done to it


class Campaign:
    """All scenarios against one undisturbed run; each is a method, its first line says what happens."""

    def __init__(self, base: Path, rng: random.Random, kills: int) -> None:
        self.base, self.rng, self.kills, self.count = base, rng, kills, 0
        tally, begun = Tally("undisturbed"), time.perf_counter()
        folder = self.folder(tally)
        folder.ends(folder.start())
        self.seconds, self.expected = time.perf_counter() - begun, outcome(folder.path)
        folder.look_at_end(self.expected)
        print(f"an undisturbed run takes {self.seconds:.1f} s\n")
        print("| scenario | runs | blows | faults |\n|---|---|---|---|")
        print(tally, flush=True)

    def folder(self, tally: Tally) -> Folder:
        """A new folder for the runs of a scenario."""
        self.count += 1
        path = self.base / f"run{self.count}"
        path.mkdir()
        return Folder(path, tally)

    def continued(self, folder: Folder, *said: str) -> None:
        """A run that nobody disturbs, to the end that it has to have."""
        folder.ends(folder.start(), 0, *said)
        folder.look_at_end(self.expected)

    def killed(self, tally: Tally) -> None:
        """SIGKILL to the whole group at random moments, again and again, until a run ends by itself."""
        while tally.blows < self.kills:
            folder, run = self.folder(tally), None
            while run is None or run.returncode != 0:
                run, end = folder.start(), time.monotonic() + self.rng.uniform(0, self.seconds)
                while time.monotonic() < end and run.poll() is None:
                    time.sleep(0.1)
                    folder.seen, _ = blocks(folder.path)  # what is seen now must be there after the kill
                if run.poll() is None:
                    os.killpg(run.pid, signal.SIGKILL)
                    tally.blows += 1
                    run.communicate()
                    folder.look(f"kill {tally.blows}")
                else:
                    folder.ends(run)
                    break
            folder.look_at_end(self.expected)

    def interrupted(self, tally: Tally, strike: Callable[[int, int], None], number: int) -> None:
        """Ctrl-C at the terminal, or SIGTERM to the process as a batch system sends it, while blocks are drawn."""
        for _ in range(3):
            folder = self.folder(tally)
            run = folder.start()
            folder.wait_for_blocks(run, self.rng.randrange(5, 60))
            begun = time.monotonic()
            strike(run.pid, number)
            tally.blows += 1
            folder.ends(run, 130)
            tally.check(time.monotonic() - begun < 30, "slow to stop")
            tally.check(not children(run.pid), "a worker stays behind")
            folder.look("interrupted")
            self.continued(folder, "of an earlier run read")

    def two_at_once(self, tally: Tally, second: int) -> None:
        """Two runs write to one folder at once; of two seeds either may have the last word."""
        for _ in range(2):
            folder = self.folder(tally)
            for run in [folder.start(seed) for seed in (2024, second)]:
                folder.ends(run)
            tally.blows += 1
            if second == 2024:
                folder.look_at_end(self.expected)
                continue
            folder.look("two seeds")
            tally.check(page_matches(folder.path), "page and results are not of one run")
            self.continued(folder, "of an earlier run read")


SCENARIOS = {
    "killed": Campaign.killed,
    "ctrl-c": partial(Campaign.interrupted, strike=os.killpg, number=signal.SIGINT),
    "sigterm": partial(Campaign.interrupted, strike=os.kill, number=signal.SIGTERM),
    "two runs at once, same seed": partial(Campaign.two_at_once, second=2024),
    "two runs at once, two seeds": partial(Campaign.two_at_once, second=7),
}


def main() -> int:
    """Run the scenarios asked for and say whether all promises were kept."""
    if sys.argv[1:2] == ["report"]:
        return as_losscurv(sys.argv[1:])
    parser = command("benchmarks.faults", __doc__, kills=50, seed=0)
    parser.add_argument("--only", action="append", choices=SCENARIOS)
    options = parser.parse_args()
    faults = 0
    with tempfile.TemporaryDirectory() as base:
        campaign = Campaign(Path(base), random.Random(options.seed), options.kills)
        for name in options.only or SCENARIOS:
            tally = Tally(name)
            try:
                SCENARIOS[name](campaign, tally)
            except Exception as error:
                tally.faults.append(f"{type(error).__name__}: {error}")
            faults += len(tally.faults)
            print(tally, flush=True)
    print(f"\n{faults} broken promises")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
