"""A run that is killed, whose workers die or whose disk is full loses nothing that was finished."""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from simulate.monte_carlo import BLOCK
from tests.verify.running.fatal_calls import Basket, die, harmless, heard, nap, plain_block
from tests.verify.toy_claims import RIGHT
from verify.model import Claim
from verify.running import pump, workers
from verify.running.engine import Session, Settings
from verify.running.store import FILE
from verify.running.workers import Pool, WorkerLostError, open_workers

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

SECONDS = "0.02"
"""Time that each block takes."""

DRIVER = """
import dataclasses, json, sys, time
from pathlib import Path
import numpy as np
from simulate.monte_carlo import Point, SerialExecutor
from tests.verify.toy_claims import TIGHT
from verify.running.engine import Session
from verify.running.settings import Settings
from verify.running.store import Store

def slow(block, point):
    time.sleep(point.seconds)
    return {"x": np.array([rng.random() for rng in block.streams])}

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
"""


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    path = tmp_path / "driver.py"
    path.write_text(DRIVER, encoding="utf-8")
    return path


def start(driver: Path, folder: Path) -> subprocess.Popen[str]:
    words, pipe = [sys.executable, str(driver), str(folder), SECONDS], subprocess.PIPE
    return subprocess.Popen(
        words, stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT, start_new_session=True
    )


def finish(driver: Path, folder: Path) -> tuple[int, list[Any], str]:
    """Replicates read, verdict with hash, and what stood on stderr."""
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


def test_a_killed_run_is_continued_as_if_it_had_not_been(
    driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, other = tmp_path / "out", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    run = start(driver, folder)
    assert run.stdout.readline() == "read 0\n"
    while not stored(folder):  # the imports are slow, and not the same every time
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    time.sleep(0.2)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    before = len(stored(folder))
    assert 0 < before < 30
    read, end, err = finish(driver, folder)
    assert read == BLOCK * before and err == ""
    monkeypatch.setattr(sys, "argv", [str(driver), str(other), SECONDS])
    runpy.run_path(str(driver))
    assert end == json.loads(capsys.readouterr().out.splitlines()[1]) and end[1] == 480


# --- workers that die


def test_calls_survive_a_worker_that_is_killed(tmp_path: Path) -> None:
    others = set(multiprocessing.active_children())
    with open_workers(2) as executor:
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
    opened = []
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


class Slow(Executor):
    """Finishes what it is given when it is told to."""

    def __init__(self) -> None:
        self.left: list[Any] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = Future()
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
