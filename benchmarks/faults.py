"""Does a run survive? Kills real runs at random moments, takes their workers, disks and clusters away, and counts.

    python benchmarks/faults.py --kills 50

Every run judges a few cheap claims with `losscurv report` in a folder of its own. After each blow the store must be
in order and hold every block it was seen to hold before, the report must be whole or absent, and what comes out in
the end must have the rows, verdicts and hashes of a run that nobody disturbed.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
            [sys.executable, __file__, "--as-losscurv", *words],
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
    sys.path.insert(0, str(ROOT))
    from verify import report, results

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


# --- scenarios


class Campaign:
    """All scenarios against one undisturbed run."""

    def __init__(self, base: Path, rng: random.Random, kills: int) -> None:
        self.base, self.rng, self.kills = base, rng, kills
        self.count = 0
        tally = Tally("undisturbed")
        folder = self.folder(tally)
        begun = time.perf_counter()
        status, err = folder.finish()
        self.seconds = tally.seconds = time.perf_counter() - begun
        tally.check(status == 0, f"status {status}: {err[-300:]}")
        self.expected = outcome(folder.path)
        folder.look_at_end(self.expected)
        self.tallies = [tally]

    def folder(self, tally: Tally, **more: Any) -> Folder:
        """A new folder for the runs of a scenario."""
        self.count += 1
        path = self.base / f"run{self.count}"
        path.mkdir()
        return Folder(path, tally, **more)

    def run(self, scenario: Callable[[Tally], None], name: str) -> None:
        """Go through a scenario and print what it came to."""
        tally = Tally(name)
        begun = time.perf_counter()
        try:
            scenario(tally)
        except Exception as error:
            tally.faults.append(f"{type(error).__name__}: {error}")
        tally.seconds = time.perf_counter() - begun
        self.tallies.append(tally)
        print_tally(tally)

    def killed(self, tally: Tally) -> None:
        """SIGKILL to the whole group at random moments, again and again, until a run ends by itself."""
        while tally.blows < self.kills:
            folder = self.folder(tally)
            while self._killed_once(folder):
                tally.blows += 1
                folder.look(f"kill {tally.blows}")
                folder.look_at_report(f"kill {tally.blows}")
            folder.look_at_end(self.expected)

    def _killed_once(self, folder: Folder) -> bool:
        run = folder.start()
        end = time.monotonic() + self.rng.uniform(0, self.seconds)
        while time.monotonic() < end and run.poll() is None:
            time.sleep(0.1)
            folder.seen, _ = blocks(folder.path)  # what is seen now must be there after the kill
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            return True
        run.communicate()
        folder.tally.check(run.returncode == 0, f"status {run.returncode} after kills")
        return False

    def interrupted(self, tally: Tally, number: signal.Signals = signal.SIGINT) -> None:
        """Ctrl-C at the terminal, or SIGTERM to the process, while blocks are drawn."""
        for _ in range(3):
            folder = self.folder(tally)
            run = folder.start()
            self._wait_for_blocks(folder, run, self.rng.randrange(5, 60))
            begun = time.monotonic()
            os.killpg(run.pid, number) if number == signal.SIGINT else run.send_signal(number)
            _, err = run.communicate(timeout=120)
            tally.blows += 1
            tally.check(run.returncode == 130, f"status {run.returncode} after {number.name}: {err[-200:]}")
            tally.check("Traceback" not in err, "a traceback on stderr")
            tally.check(time.monotonic() - begun < 30, "slow to stop")
            tally.check(not children(run.pid), "a worker stays behind")
            folder.look(number.name)
            folder.look_at_report(number.name)
            status, err = folder.finish()
            tally.check(status == 0 and "of an earlier run read" in err, f"status {status} when continued")
            folder.look_at_end(self.expected)

    def terminated(self, tally: Tally) -> None:
        """SIGTERM, as a batch system sends it."""
        self.interrupted(tally, signal.SIGTERM)

    def worker_killed(self, tally: Tally) -> None:
        """One of the two workers is killed, three times in one run."""
        for _ in range(2):
            folder = self.folder(tally)
            run = folder.start()
            for least in (8, 50, 90):
                self._wait_for_blocks(folder, run, least)
                workers = children(run.pid)
                tally.check(len(workers) == 2, f"{len(workers)} workers, not 2")
                os.kill(self.rng.choice(workers), signal.SIGKILL)
                tally.blows += 1
            _, err = run.communicate(timeout=300)
            tally.check(run.returncode == 0, f"status {run.returncode}: {err[-300:]}")
            folder.look_at_end(self.expected)

    def dask_worker_killed(self, tally: Tally) -> None:
        """A worker of a LocalCluster is killed twice; its nanny starts another."""
        from distributed import LocalCluster

        options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "protocol": "tcp"}
        with LocalCluster(**options, host="127.0.0.1", dashboard_address=":0") as opened:
            cluster: Any = opened  # typed as if it had to be awaited
            address = cluster.scheduler_address.replace("tcp://", "dask://")
            folder = self.folder(tally, executor=address)
            run = folder.start()
            for least in (8, 60):
                self._wait_for_blocks(folder, run, least)
                os.kill(
                    self.rng.choice([w.process.process.pid for w in cluster.workers.values()]), signal.SIGKILL
                )
                tally.blows += 1
            _, err = run.communicate(timeout=300)
            tally.check(run.returncode == 0, f"status {run.returncode}: {err[-300:]}")
            folder.look_at_end(self.expected)

    def dask_scheduler_killed(self, tally: Tally) -> None:
        """The scheduler is killed: the run must end, say why in a line, and be continued without the cluster."""
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
        address = ""
        with _processes() as started:
            scheduler = started(*command, "--port", "0", "--no-dashboard")
            for line in scheduler.stdout or ():
                if match := re.search(r"tcp://[0-9.]+:[0-9]+", line):
                    address = match.group()
                    break
            started(
                sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "2", "--no-nanny"
            )
            folder = self.folder(tally, executor=address.replace("tcp://", "dask://"))
            run = folder.start()
            self._wait_for_blocks(folder, run, 20)
            scheduler.kill()
            tally.blows += 1
            begun = time.monotonic()
            out, err = run.communicate(timeout=300)
            tally.check(time.monotonic() - begun < 60, "slow to end")
        tally.check(run.returncode == 1, f"status {run.returncode}: {err[-300:]}")
        tally.check("the connection to the Dask scheduler was lost" in out, "the reason is not given")
        tally.check("Traceback" not in out + err, f"a traceback: {(out + err)[-3000:]}")
        folder.look("scheduler lost")
        folder.executor = ""
        status, _ = folder.finish()
        tally.check(status == 0, f"status {status} when continued")
        folder.look_at_end(self.expected)

    def disk_full(self, tally: Tally) -> None:
        """A disk with room for some blocks and no report; then it gets more."""
        with self._disk("size=96k") as path:
            if path is None:
                tally.skipped = "mounting is not allowed here"
                return
            folder = Folder(path, tally)
            status, err = folder.finish()
            tally.blows += 1
            lines = [line for line in err.splitlines() if "tier" not in line and "claims," not in line]
            tally.check(status == 2 and len(lines) == 2, f"status {status}, said {lines}")
            tally.check("the run goes on" in err and "Traceback" not in err, f"said {lines}")
            folder.look("disk full")
            folder.look_at_report("disk full")
            subprocess.run(["mount", "-o", "remount,size=8m", str(path)], check=True)
            tally.check(len(folder.seen) > 0, "nothing stored before")
            status, err = folder.finish()
            tally.check(status == 0 and "of an earlier run read" in err, f"status {status} when continued")
            folder.look_at_end(self.expected)

    def disk_read_only(self, tally: Tally) -> None:
        """The disk becomes read-only after the check at the start; before it, the run is refused."""
        with self._disk("size=8m") as path:
            if path is None:
                tally.skipped = "mounting is not allowed here"
                return
            folder = Folder(path, tally)
            run = folder.start()
            first = run.stderr.readline() if run.stderr else ""
            subprocess.run(["mount", "-o", "remount,ro", str(path)], check=True)
            tally.blows += 1
            _, err = run.communicate(timeout=300)
            lines = [line for line in err.splitlines() if "claims," not in line]
            tally.check("tier" in first and run.returncode == 2 and len(lines) == 2, f"said {lines}")
            status, err = folder.finish()
            tally.check(
                status == 2 and "--report-dir must be a folder that can be written" in err, f"said {err}"
            )
            subprocess.run(["mount", "-o", "remount,rw", str(path)], check=True)
            status, _ = folder.finish()
            tally.check(status == 0, f"status {status} when writable again")
            folder.look_at_end(self.expected)

    def two_at_once(self, tally: Tally) -> None:
        """Two runs of the same seed write to one folder at once."""
        for _ in range(2):
            folder = self.folder(tally)
            self._together(folder, (2024, 2024))
            folder.look_at_end(self.expected)

    def two_seeds_at_once(self, tally: Tally) -> None:
        """Two runs of different seeds write to one folder at once; either may have the last word."""
        for _ in range(2):
            folder = self.folder(tally)
            self._together(folder, (2024, 7))
            folder.look("two seeds")
            folder.look_at_report("two seeds")
            tally.check(page_matches(folder.path), "page and results are not of one run")
            status, err = folder.finish()
            tally.check(status == 0 and "of an earlier run read" in err, f"status {status} when run again")
            folder.look_at_end(self.expected)

    def _together(self, folder: Folder, seeds: tuple[int, int]) -> None:
        runs = [folder.start(seed=seed) for seed in seeds]
        for run in runs:
            _, err = run.communicate(timeout=300)
            folder.tally.check(run.returncode == 0, f"status {run.returncode}: {err[-300:]}")
        folder.tally.blows += 1

    def _wait_for_blocks(self, folder: Folder, run: subprocess.Popen[str], least: int) -> None:
        while len(blocks(folder.path)[0]) < least:
            if run.poll() is not None:
                raise RuntimeError(f"the run ended with {len(blocks(folder.path)[0])} blocks, before {least}")
            time.sleep(0.02)

    @contextlib.contextmanager
    def _disk(self, options: str) -> Iterator[Path | None]:
        path = self.base / f"disk{self.count}{options}"
        self.count += 1
        path.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
        if subprocess.run(words, capture_output=True).returncode:
            yield None
            return
        try:
            yield path
        finally:
            subprocess.run(["umount", str(path)], check=True)


@contextlib.contextmanager
def _processes() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.wait()


def as_losscurv(words: list[str]) -> int:
    """`losscurv`, with a note of every block that is sent to a worker.

    The planted errors and the derivations are left out: they cost seconds of every run and store nothing.
    """
    sys.path.insert(0, str(ROOT))
    from verify import suite
    from verify.cli import main
    from verify.workers import Calls

    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started in the background ignores it
    suite.PLANTED = ()
    suite._derivations = list

    fly = Calls._fly

    def noted(self: Calls, call: Any) -> None:
        if call.function.__name__ == "drawn":
            name = " ".join(str(call.arguments[part]) for part in ("experiment", "point", "seed", "index"))
            with Path(os.environ[DRAWN]).open("a", encoding="utf-8") as log:
                log.write(f"{name}\n")
        fly(self, call)

    Calls._fly = noted
    return main(words)


def print_tally(tally: Tally) -> None:
    """One line of the table, and below it what went wrong."""
    if tally.skipped:
        print(f"| {tally.name} | skipped: {tally.skipped} | | | | |", flush=True)
        return
    again = tally.drawn - tally.needed
    faults = len(tally.faults)
    print(f"| {tally.name} | {tally.runs} | {tally.blows} | {tally.drawn} | {again} | {faults} |", flush=True)
    for fault in tally.faults:
        print(f"    {fault}", flush=True)


def main() -> int:
    """Run the scenarios asked for and say whether all promises were kept."""
    if sys.argv[1:2] == ["--as-losscurv"]:
        return as_losscurv(sys.argv[2:])
    scenarios = {
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--kills", type=int, default=50, metavar="N", help="least number of SIGKILLs (default 50)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random moments (default 0)")
    parser.add_argument("--only", action="append", choices=list(scenarios), help="this scenario (repeatable)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        campaign = Campaign(Path(base), random.Random(options.seed), options.kills)
        print(f"an undisturbed run takes {campaign.seconds:.1f} s\n")
        print("| scenario | runs | blows | blocks drawn | drawn again | faults |")
        print("|---|---|---|---|---|---|")
        print_tally(campaign.tallies[0])
        for name, scenario in scenarios.items():
            if not options.only or name in options.only:
                campaign.run(lambda tally, scenario=scenario: scenario(campaign, tally), name)
    faults = sum(len(tally.faults) for tally in campaign.tallies)
    print(f"\n{faults} broken promises")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
