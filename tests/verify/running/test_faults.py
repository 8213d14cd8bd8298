"""What a run promises when it is killed, its workers die, or its disk is full: nothing that was finished is lost."""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulate.monte_carlo import BLOCK, BlockResult, DaskExecutor, SerialExecutor
from tests.verify.running.fatal_calls import die, fatal, harmless, heard, nap, plain_block
from tests.verify.toy_claims import RIGHT
from verify.model import Claim
from verify.results import Row
from verify.running import pump, workers
from verify.running.engine import Session, Settings
from verify.running.store import FILE, Store
from verify.running.workers import Call, Calls, Landed, Pool, WorkerLostError, open_workers

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

DRIVER = textwrap.dedent("""
    import dataclasses, json, sys, time
    from pathlib import Path
    import numpy as np
    from simulate.monte_carlo import BLOCK, BlockResult, Point, SerialExecutor, stream
    from tests.verify.toy_claims import TIGHT
    from verify.running import pump
    from verify.running.engine import Session
    from verify.running.settings import Settings
    from verify.running.store import Store

    def slow(block, point):
        "A name only: `drawn` stands in for what would call it."

    def drawn(simulate, *, experiment, point, seed, index, device, counted):
        # without the threads of torch, which takes seconds to load
        time.sleep(point.seconds)
        x = [stream(seed, experiment, point, BLOCK * index + i).random() for i in range(BLOCK)]
        return BlockResult({"x": np.array(x)}, 0.01)

    pump.run_block = drawn

    def main(folder, seconds):
        experiment = dataclasses.replace(
            TIGHT.experiment, simulate=slow, points=(Point(seconds=float(seconds), scale=1.0),), budget=480
        )
        claim = dataclasses.replace(TIGHT, experiment=experiment)
        with Store(Path(folder), lambda line: print(line, file=sys.stderr)) as store:
            session = Session([claim], Settings(), SerialExecutor(), store=store)
            print("read", store.replicates, flush=True)
            (row,) = session.rows(claim)
            (record,) = session.records()
            print(json.dumps([row.verdict, record.replicates, record.sha256]))

    main(*sys.argv[1:])
""")


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    path = tmp_path / "driver.py"
    path.write_text(DRIVER, encoding="utf-8")
    return path


def start(driver: Path, folder: Path) -> subprocess.Popen[str]:
    words, pipe = [sys.executable, str(driver), str(folder), "0.02"], subprocess.PIPE
    return subprocess.Popen(
        words, stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT, start_new_session=True
    )


def finish(driver: Path, folder: Path) -> tuple[int, list[Any], str]:
    """Replicates read, verdict with hash, and what stood on stderr."""
    folder.mkdir(exist_ok=True)
    out, err = start(driver, folder).communicate(timeout=60)
    first, last = out.splitlines()
    return int(first.split()[1]), json.loads(last), err


def stored(folder: Path) -> set[tuple[int, str]]:
    """The blocks in the file, which must be in order."""
    import sqlite3

    if not (folder / FILE).exists():
        return set()
    connection = sqlite3.connect(folder / FILE)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        with contextlib.suppress(sqlite3.OperationalError):  # killed before there was a table
            return set(connection.execute("SELECT block, sha256 FROM blocks"))
        return set()
    finally:
        connection.close()


# --- killed


def test_a_killed_run_is_continued_as_if_it_had_not_been(driver: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    before: set[tuple[int, str]] = set()
    for wait in (0.15, 0.3):
        run = start(driver, folder)
        assert run.stdout is not None and run.stdout.readline() == f"read {BLOCK * len(before)}\n"
        while len(stored(folder)) == len(before):  # the imports are slow, and not the same every time
            assert run.poll() is None, run.communicate()
            time.sleep(0.01)
        time.sleep(wait)
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        after = stored(folder)
        assert before < after and len(after) < 30
        before = after
    read, end, err = finish(driver, folder)
    assert read == BLOCK * len(before) and err == ""
    assert end == finish(driver, tmp_path / "other")[1] and end[1] == 480


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 200 kB, where this machine lets us have one."""
    folder = tmp_path / "small"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    if not hasattr(os, "geteuid") or os.geteuid() or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("needs the right to mount a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def uniform_block(**arguments: Any) -> BlockResult:
    rng = np.random.default_rng(arguments["index"])
    return BlockResult({"x": rng.random(BLOCK), "more": rng.random((BLOCK, 20))}, 0.001)


def judged(store: Store | None) -> tuple[list[Row], list[str]]:
    experiment = dataclasses.replace(RIGHT.experiment, budget=2048)
    claim = dataclasses.replace(RIGHT, margin=1e-4, experiment=experiment, predict=lambda p: 0.5)
    session = Session([claim], Settings(), SerialExecutor(), store=store)
    rows = [dataclasses.replace(row, seconds=0.0) for row in session.rows(claim)]
    return rows, [record.sha256 for record in session.records()]


def test_a_disk_that_fills_up_stops_nothing(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "run_block", uniform_block)
    expected = judged(None)
    lines: list[str] = []
    with Store(small_disk, lines.append) as store:
        assert judged(store) == expected
    (line,) = lines
    assert "database or disk is full; the run goes on" in line or "disk I/O error; the run goes on" in line
    kept = stored(small_disk)
    assert len(kept) >= 5 and {index for index, _ in kept} == set(range(len(kept)))
    remount(small_disk, "size=4m")
    with Store(small_disk, lines.append) as store:
        assert judged(store) == expected and store.replicates == BLOCK * len(kept)
    assert {index for index, _ in stored(small_disk)} == set(range(128)) and len(lines) == 1


def test_a_disk_that_becomes_read_only_stops_nothing(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump, "run_block", uniform_block)
    lines: list[str] = []
    remount(small_disk, "ro")
    with Store(small_disk, lines.append) as store:
        assert judged(store) == judged(None)
    (line,) = lines
    assert "unable to open database file; the run goes on" in line


def remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True)


# --- workers that die


class Basket:
    """Futures as they come."""

    def __init__(self, executor: Executor, count: int = 2) -> None:
        self.calls, self.found = Calls(executor, count), {}

    def send(self, name: str, function: Any, **arguments: Any) -> None:
        call = Call(lambda future: self.found.__setitem__(name, future), function, arguments)
        self.take(self.calls.turn([call], wait_for_one=False))

    def take(self, landed: Landed) -> None:
        for call, future in landed:
            call.deliver(future)

    def all(self, count: int) -> dict[str, Future[Any]]:
        deadline = time.monotonic() + 30
        while len(self.found) < count and time.monotonic() < deadline:
            self.take(self.calls.turn())
        return self.found


def test_calls_survive_a_worker_that_is_killed(tmp_path: Path) -> None:
    others = set(multiprocessing.active_children())
    with open_workers(2) as executor:
        assert isinstance(executor, Pool)
        basket = Basket(executor)
        for i in range(4):
            basket.send(f"nap {i}", nap, seconds=0.05)
        basket.send("die once", die, here=tmp_path / "died")
        found = basket.all(5)
        assert all(future.result() > 0 for future in found.values()) and len(found) == 5
        assert executor.submit(heard).result() is False  # the new ones are deaf to Ctrl-C too
        assert len(set(multiprocessing.active_children()) - others) == 2
    assert set(multiprocessing.active_children()) <= others


def test_a_call_that_kills_three_workers_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    monkeypatch.setattr(Pool, "start", lambda self: opened.append(self.workers))
    with open_workers(2) as executor:
        basket = Basket(executor)
        basket.send("dies", die)
        basket.send("neighbour", nap, seconds=0.3)
        found = basket.all(2)
        assert found["neighbour"].result() > 0
        with pytest.raises(WorkerLostError, match="its worker died 3 times, perhaps for want of memory"):
            found["dies"].result()
        assert len(opened) <= 4
        basket.send("after", nap, seconds=0)
        assert basket.all(3)["after"].result() > 0


def claim_on(simulate: Any) -> Claim:
    experiment = dataclasses.replace(RIGHT.experiment, id=f"toy/{simulate.__name__}", simulate=simulate)
    return dataclasses.replace(
        RIGHT, id=f"beyond/{simulate.__name__}", experiment=experiment, predict=lambda p: 0.5
    )


def test_an_experiment_that_kills_its_workers_breaks_its_claims_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "run_block", plain_block)
    monkeypatch.setattr(Pool, "start", lambda self: None)
    claims = [claim_on(fatal), claim_on(harmless)]
    with open_workers(2) as executor:
        session = Session(claims, Settings(workers=2), executor)
        bad, good = [row for claim in claims for row in session.rows(claim)]
    assert bad.verdict == "broken"
    assert bad.error == "its worker died 3 times, perhaps for want of memory\n"
    assert good.verdict == "agrees"


class Slow(Executor):
    """Finishes what it is given when it is told to."""

    def __init__(self) -> None:
        self.left: list[Any] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.left.append(lambda: future.set_result(fn(*args, **kwargs)))
        return future


def test_progress_goes_on_while_nothing_finishes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PATIENCE", 0.01)
    monkeypatch.setattr(pump, "run_block", plain_block)
    claim, slow, ticks = claim_on(harmless), Slow(), list[int]()

    def listen() -> None:
        ticks.append(1)
        while len(ticks) % 5 == 0 and slow.left:
            slow.left.pop()()

    session = Session([claim], Settings(workers=2), slow)
    session.pump.listener = listen
    assert session.rows(claim)[0].verdict == "agrees" and len(ticks) > 5


# --- a cluster


class Client:
    """As much of a Dask client as is asked for, on no cluster."""

    def __init__(self, cores: int = 3) -> None:
        self.status, self.cores, self.scheduler = "running", cores, self
        self.sent: list[Any] = []

    def ncores(self) -> dict[str, int]:
        return {"tcp://one": 1, "tcp://rest": self.cores - 1}

    def sync(self, call: Any, callback_timeout: float) -> Any:
        if self.cores < 0:
            raise TimeoutError
        return call()

    def submit(self, fn: Any, *args: Any, pure: bool, **kwargs: Any) -> Any:
        self.sent.append(remote := Remote(lambda: fn(*args, **kwargs)))
        return remote


class Remote:
    def __init__(self, result: Any) -> None:
        self.result = result

    def add_done_callback(self, callback: Any) -> None:
        self.done = lambda: callback(self)


def failing(error: BaseException) -> Any:
    def call() -> None:
        raise error

    return call


def test_a_cluster_is_kept_as_busy_as_it_has_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(cores=5)
    executor = DaskExecutor(client)
    calls = Calls(executor, 2)
    assert (calls.workers, calls.room) == (5, 10)
    client.cores = 9
    assert calls.room == 10  # not asked every time
    monkeypatch.setattr(DaskExecutor, "CORES_FOR", -1.0)
    assert calls.room == 18
    client.cores = -1
    assert calls.workers == 9


def test_results_and_errors_come_back_and_a_lost_cluster_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "PATIENCE", 0.01)
    client = Client()
    basket = Basket(DaskExecutor(client))
    basket.send("good", nap, seconds=0)
    killed, lost = distributed.KilledWorker("key", None, 3), "the connection to the Dask scheduler was lost"
    failures = {
        "bad": (ArithmeticError("planted"), ArithmeticError, "planted"),
        "killed": (killed, WorkerLostError, "its worker died 4 times"),
        "cancelled": (CancelledError(), WorkerLostError, "the Dask scheduler has dropped the call"),
        "never": (killed, WorkerLostError, lost),
        "after": (killed, WorkerLostError, lost),
    }

    def arrived(name: str, count: int) -> None:
        with pytest.raises(failures[name][1], match=failures[name][2]):
            basket.all(count)[name].result()

    for name in ("bad", "killed", "cancelled", "never"):
        basket.send(name, failing(failures[name][0]))
    for remote in client.sent[:4]:
        remote.done()
    for name in ("bad", "killed", "cancelled"):
        arrived(name, 4)
    assert basket.found["good"].result() == os.getpid()
    client.status = "closed"
    arrived("never", 5)
    basket.send("after", nap, seconds=0)
    arrived("after", 6)
    assert len(client.sent) == 5
