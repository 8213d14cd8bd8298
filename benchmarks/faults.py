"""Does a run survive? Kills real runs at random moments, takes their workers, disks and clusters away, and counts.

    python -m benchmarks.faults --kills 50

Every run judges a few cheap claims with `losscurv report` in a folder of its own. After each blow the store must be
in order and hold every block it was seen to hold before, the report must be whole or absent, and what comes out in
the end must have the rows, verdicts and hashes of a run that nobody disturbed. What is run,
`benchmarks.faults report`, is `losscurv report` with a note of every block that it sends to a worker.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = ("vysogorets2024/uniform-outliers", "vysogorets2024/bulk", "vysogorets2024/gamma-and-interlacing")
RESULTS, PAGE = "results.json", "report.html"
DRAWN = "DRAWN_LOG"
"""Names the file in which a run notes every block that it sends to a worker."""

Blocks = dict[tuple[str, ...], str]


@dataclass
class Tally:
    """Counts of one scenario: runs, kills and broken promises."""

    name: str
    runs: int = 0
    blows: int = 0
    drawn: int = 0
    needed: int = 0
    faults: list[str] = field(default_factory=list)

    def check(self, good: Any, what: str) -> None:
        """Note what should have been and was not."""
        if not good:
            self.faults.append(what)

    def __str__(self) -> str:
        numbers = (self.runs, self.blows, self.drawn, self.drawn - self.needed, len(self.faults))
        return "\n    ".join([f"| {self.name} | {' | '.join(map(str, numbers))} |", *self.faults])


# --- a run that something is done to


class Folder:
    """A report folder, the runs in it, and what its store was seen to hold."""

    def __init__(self, path: Path, tally: Tally, executor: str = "") -> None:
        self.path, self.tally, self.executor = path, tally, executor
        self.log = path.with_name(f"{path.name}.drawn")
        self.seen: Blocks = {}

    def start(self, seed: int = 2024) -> subprocess.Popen[str]:
        """A run, in a process group of its own."""
        self.tally.runs += 1
        words = ["report", "--workers", "2", "--seed", str(seed), "--report-dir", str(self.path)]
        words += [word for claim in CLAIMS for word in ("--claim", claim)]
        words += ["--executor", self.executor] if self.executor else []
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", DRAWN: str(self.log)}
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.faults", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=environment, start_new_session=True, cwd=self.path.parent,
        )  # fmt: skip

    def ends(
        self, run: subprocess.Popen[str], status: int = 0, *said: str, without: str = "Traceback"
    ) -> str:
        """Wait for a run, which has to end so and say so; what stood on stderr."""
        out, err = run.communicate(timeout=600)
        self.tally.check(run.returncode == status, f"status {run.returncode}, not {status}: {err[-300:]}")
        self.tally.check(without not in out + err, f"a traceback: {(out + err)[-3000:]}")
        for text in said:
            self.tally.check(text in out + err, f"{text!r} was not said: {err[-300:]}")
        return err

    def strike(self, number: int, run: subprocess.Popen[str]) -> None:
        """A signal to the whole group of a run."""
        os.killpg(run.pid, number)
        self.tally.blows += 1

    def wait_for_blocks(self, run: subprocess.Popen[str], least: int) -> None:
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
        sent = Counter(self.log.read_text(encoding="utf-8").split()) if self.log.exists() else Counter()
        self.tally.drawn += sent.total()
        self.tally.needed += len(sent)


def blocks(folder: Path) -> tuple[Blocks, str]:
    """The hash of each stored block by its key, and what SQLite says of the file."""
    path = folder / "replicates.sqlite"
    if not path.exists():
        return {}, "ok"
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as connection:
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
        with contextlib.suppress(OSError):
            ours = f"\nPPid:\t{pid}\n" in status.read_text()
            if ours and b"spawn_main" in (status.parent / "cmdline").read_bytes():
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
        if call.function.__name__ == "draw_here":
            parts = [str(call.arguments[part]) for part in ("experiment", "point", "seed", "index")]
            with Path(os.environ[DRAWN]).open("a", encoding="utf-8") as log:
                log.write(f"{'/'.join(parts).replace(' ', '')}\n")
        fly(self, call)

    Calls._fly = noted
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
        print("| scenario | runs | blows | blocks drawn | drawn again | faults |\n|---|---|---|---|---|---|")
        print(tally, flush=True)

    def folder(self, tally: Tally, executor: str = "") -> Folder:
        """A new folder for the runs of a scenario."""
        self.count += 1
        path = self.base / f"run{self.count}"
        path.mkdir()
        return Folder(path, tally, executor)

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
                    folder.strike(signal.SIGKILL, run)
                    run.communicate()
                    folder.look(f"kill {tally.blows}")
                else:
                    folder.ends(run)
                    break
            folder.look_at_end(self.expected)

    def interrupted(self, tally: Tally, number: signal.Signals = signal.SIGINT) -> None:
        """Ctrl-C at the terminal, or SIGTERM to the process, while blocks are drawn."""
        for _ in range(3):
            folder = self.folder(tally)
            run = folder.start()
            folder.wait_for_blocks(run, self.rng.randrange(5, 60))
            begun = time.monotonic()
            if number == signal.SIGINT:
                folder.strike(number, run)
            else:
                run.send_signal(number)
                tally.blows += 1
            folder.ends(run, 130)
            tally.check(time.monotonic() - begun < 30, "slow to stop")
            tally.check(not children(run.pid), "a worker stays behind")
            folder.look(number.name)
            self.continued(folder, "of an earlier run read")

    def terminated(self, tally: Tally) -> None:
        """SIGTERM, as a batch system sends it."""
        self.interrupted(tally, signal.SIGTERM)

    def worker_killed(self, tally: Tally) -> None:
        """One of the two workers is killed, three times in one run."""
        for _ in range(2):
            folder = self.folder(tally)
            run = folder.start()
            for least in (8, 50, 90):
                folder.wait_for_blocks(run, least)
                workers = children(run.pid)
                tally.check(len(workers) == 2, f"{len(workers)} workers, not 2")
                os.kill(self.rng.choice(workers), signal.SIGKILL)
                tally.blows += 1
            folder.ends(run)
            folder.look_at_end(self.expected)

    def dask_worker_killed(self, tally: Tally) -> None:
        """A worker of a LocalCluster is killed twice; its nanny starts another."""
        from distributed import LocalCluster

        options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "protocol": "tcp"}
        with LocalCluster(**options, host="127.0.0.1", dashboard_address=":0") as opened:
            cluster: Any = opened  # typed as if it had to be awaited
            folder = self.folder(tally, cluster.scheduler_address.replace("tcp://", "dask://"))
            run = folder.start()
            for least in (8, 60):
                folder.wait_for_blocks(run, least)
                workers = [w.process.process.pid for w in cluster.workers.values()]
                os.kill(self.rng.choice(workers), signal.SIGKILL)
                tally.blows += 1
            folder.ends(run)
            folder.look_at_end(self.expected)

    def dask_scheduler_killed(self, tally: Tally) -> None:
        """The scheduler is killed: the run must end, say why in a line, and be continued without the cluster."""
        with contextlib.ExitStack() as started:

            def start(module: str, *words: str) -> subprocess.Popen[str]:
                process = subprocess.Popen(
                    [sys.executable, "-m", f"distributed.cli.{module}", *words], stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
                )  # fmt: skip
                started.callback(process.wait)
                started.callback(process.kill)
                return process

            scheduler = start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
            told = (re.search(r"tcp://[0-9.]+:[0-9]+", line) for line in scheduler.stdout or ())
            address = next(match.group() for match in told if match)
            start("dask_worker", address, "--nthreads", "2", "--no-nanny")
            folder = self.folder(tally, address.replace("tcp://", "dask://"))
            run = folder.start()
            folder.wait_for_blocks(run, 20)
            scheduler.kill()
            tally.blows += 1
            begun = time.monotonic()
            folder.ends(run, 1, "the connection to the Dask scheduler was lost")
            tally.check(time.monotonic() - begun < 60, "slow to end")
        folder.look("scheduler lost")
        folder.executor = ""
        self.continued(folder)

    def disk_full(self, tally: Tally) -> None:
        """A disk with room for some blocks and no report; then it gets more."""
        with self._disk("size=96k") as path:
            folder = Folder(path, tally)
            err = folder.ends(folder.start(), 2, "the run goes on")
            tally.blows += 1
            lines = [line for line in err.splitlines() if "tier" not in line and "claims," not in line]
            tally.check(len(lines) == 2, f"said {lines}")
            folder.look("disk full")
            tally.check(len(folder.seen) > 0, "nothing stored before")
            subprocess.run(["mount", "-o", "remount,size=8m", str(path)], check=True)
            self.continued(folder, "of an earlier run read")

    def disk_read_only(self, tally: Tally) -> None:
        """The disk becomes read-only after the check at the start; before it, the run is refused."""
        with self._disk("size=8m") as path:
            folder = Folder(path, tally)
            run = folder.start()
            first = run.stderr.readline() if run.stderr else ""
            subprocess.run(["mount", "-o", "remount,ro", str(path)], check=True)
            tally.blows += 1
            lines = [line for line in folder.ends(run, 2).splitlines() if "claims," not in line]
            tally.check("tier" in first and len(lines) == 2, f"said {lines}")
            folder.ends(folder.start(), 2, "--report-dir: cannot write to folder")
            subprocess.run(["mount", "-o", "remount,rw", str(path)], check=True)
            self.continued(folder)

    def two_at_once(self, tally: Tally, second: int = 2024) -> None:
        """Two runs of the same seed write to one folder at once."""
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

    def two_seeds_at_once(self, tally: Tally) -> None:
        """Two runs of different seeds write to one folder at once; either may have the last word."""
        self.two_at_once(tally, 7)

    @contextlib.contextmanager
    def _disk(self, options: str) -> Iterator[Path]:
        self.count += 1
        path = self.base / f"disk{self.count}"
        path.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
        if subprocess.run(words, capture_output=True).returncode:
            raise PermissionError("mounting is not allowed here")
        try:
            yield path
        finally:
            subprocess.run(["umount", str(path)], check=True)


SCENARIOS = {
    "killed": Campaign.killed,
    "ctrl-c": Campaign.interrupted,
    "sigterm": Campaign.terminated,
    "worker killed": Campaign.worker_killed,
    "dask worker killed": Campaign.dask_worker_killed,
    "dask scheduler killed": Campaign.dask_scheduler_killed,
    "disk full": Campaign.disk_full,
    "disk read-only": Campaign.disk_read_only,
    "two runs at once, same seed": Campaign.two_at_once,
    "two runs at once, two seeds": Campaign.two_seeds_at_once,
}


def main() -> int:
    """Run the scenarios asked for and say whether all promises were kept."""
    if sys.argv[1:2] == ["report"]:
        return as_losscurv(sys.argv[1:])
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--kills", type=int, default=50, metavar="N", help="least number of SIGKILLs (default 50)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random moments (default 0)")
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="this scenario (repeatable)")
    options = parser.parse_args()
    faults = 0
    with tempfile.TemporaryDirectory() as base:
        campaign = Campaign(Path(base), random.Random(options.seed), options.kills)
        for name in options.only or SCENARIOS:
            tally = Tally(name)
            try:
                SCENARIOS[name](campaign, tally)
            except PermissionError as error:
                print(f"| {name} | skipped: {error} | | | | |", flush=True)
                continue
            except Exception as error:
                tally.faults.append(f"{type(error).__name__}: {error}")
            faults += len(tally.faults)
            print(tally, flush=True)
    print(f"\n{faults} broken promises")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
