"""Does a run survive? Kills real runs at random moments, takes their workers, disks and clusters away, and counts.

    python -m benchmarks.faults --kills 50

Every run judges a few cheap claims with `losscurv report` in a folder of its own. After each blow the store must be
in order and hold every block it was seen to hold before, the report must be whole or absent, and what comes out in
the end must have the rows, verdicts and hashes of a run that nobody disturbed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.fault_runs import ROOT, Folder, Tally, blocks, children, outcome, page_matches


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
