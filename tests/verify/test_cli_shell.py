"""`losscurv` as a process: pipes, disks, terminals and signals."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.verify.command_line import ROOT, elsewhere

__all__ = ["elsewhere"]

pytestmark = pytest.mark.slow


def shell(command: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """A command as a user types it, with `losscurv` standing for the program."""
    program = f"losscurv() {{ '{sys.executable}' -m verify.cli \"$@\"; }}\nset -o pipefail\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}
    return subprocess.run(
        ["bash", "-c", program + command], capture_output=True, text=True, timeout=60, env=environment
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_pipes_and_disks_that_end_early() -> None:
    run = shell(
        """
        losscurv estimate | head -n 1; echo "status $?"
        losscurv estimate > /dev/full; echo "status $?"
        losscurv claims > /dev/full; echo "status $?"
        """
    )
    first, *lines = run.stdout.splitlines()
    assert first and lines == [f"status {n}" for n in (0, 2, 2)]
    said = "losscurv: the output cannot be written: No space left on device; free some space and run again"
    assert run.stderr.splitlines() == [said, said]


@pytest.mark.parametrize("words", [["estimate"], ["claims", "--json"], ["report", "--help"]], ids=" ".join)
def test_a_reader_that_has_gone_is_no_error(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    program, environment = [sys.executable, "-m", "verify.cli"], {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([*program, *words], stdout=writer, stderr=subprocess.PIPE, env=environment)
    os.close(writer)
    assert (run.returncode, run.stderr) == (0, b"")


def test_a_terminal_without_greek_letters_gets_question_marks() -> None:
    run = shell("losscurv estimate outliers", PYTHONIOENCODING="ascii")

    assert (run.returncode, run.stderr) == (0, "") and "?" in run.stdout


BUSY = """
import multiprocessing, signal, sys, time
from concurrent.futures import wait
from verify.running.workers import open_workers

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with open_workers(2) as executor:
        wait([executor.submit(time.sleep, 0.01) for _ in range(4)])
        heard = executor.submit(signal.getsignal, signal.SIGINT).result()
        print("deaf" if heard is signal.SIG_IGN else "not deaf")
        jobs = [executor.submit(time.sleep, 60) for _ in range(4)]
        print("ready", flush=True)
        wait(jobs)
except KeyboardInterrupt:
    print("children", len(multiprocessing.active_children()))
    sys.exit(130)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interruption_stops_the_workers_at_once_and_quietly(name: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    try:
        assert [process.stdout.readline() for _ in range(2)] == ["deaf\n", "ready\n"]
        time.sleep(0.1)
        if name == "SIGINT":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        else:
            process.terminate()
        out, err = process.communicate(timeout=20)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # a failing test leaves no worker behind
    assert (process.returncode, out, err) == (130, "children 0\n", "")
