"""Whatever the code of others does, `measure` and `plan` end in their results or in one line, with status 0 or 2.

Each case is a process of its own, forked off one that has loaded the libraries.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from tests.interpreters import LOADED
from tests.verify import toy_claims
from verify import cli, signals
from verify.claims import registry
from verify.page import report
from verify.practice import measure
from verify.practice.loading import foreign, problem
from verify.practice.measure import pages as measure_pages
from verify.practice.plan import pages as plan_pages

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]

SOURCE = """
import os, sys
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.calls = 0

    def forward(self, x):
        return self.layer(x)

def then(act):
    def build():
        act()
        return Net()
    return build

def in_forward(act, calls):
    class Acts(Net):
        def forward(self, x):
            self.calls += 1
            if self.calls >= calls:
                act()
            return super().forward(x)
    return Acts

def raised(error):
    def act():
        raise error
    return act

def deep():
    return deep()

def printed():
    print("printed")
    sys.stdout.buffer.write(b"bytes")
    os.write(1, b"written")
    os.system("echo by a child")

exits = lambda: sys.exit(0)
"""

PLAIN = {
    "prints": "then(printed)",
    "prints in forward": "in_forward(printed, 1)",
}
"""What harms nothing."""

ENDS = {
    "exits": ("then(exits)", "cannot be built: exit(): 0 (net.py, line "),
    "exits in forward": ("in_forward(exits, 20)", "cannot run on all samples: exit(): 0 (net.py"),
    "interrupts in forward": (
        "in_forward(raised(KeyboardInterrupt), 20)",
        "cannot run on all samples: KeyboardInterrupt (net.py",
    ),
    "recursion": ("in_forward(deep, 20)", "cannot run on all samples: RecursionError"),
    "exit on import": ("sys.exit(0)", "cannot be imported: exit(): 0 (net.py"),
    "meta": ("lambda: Net().to('meta')", "got 'layer.weight' on the meta device"),
}
"""What no results can come of, and the line."""


def load() -> None:
    """Load what commands use late, and leave out what takes longer than all else: pages, figures, claims."""
    measure.VARIANCE_PROBES = 2
    measure_pages.measurement_page = plan_pages.plan_page = lambda found: "a page"
    plan_pages.plots.save_figure = lambda *words: []
    report.documents = lambda *words: {"report.html": "a page"}
    report.paper_pages.beside = lambda *words: {}
    importlib.import_module("scipy.optimize")
    registry.inventory()  # loads all claims, of which a report tells; to judge one takes milliseconds
    toy_claims.replace_all(pytest.MonkeyPatch(), toy_claims.RIGHT)
    gc.freeze()  # or each child would look through all that there is as it ends


def status_of(folder: Path, words: list[str], err: str) -> int:
    """Run a command in a child."""
    process = os.fork()
    if process == 0:
        try:
            run(folder, words, err)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def run(folder: Path, words: list[str], err: str) -> None:
    signal.alarm(300)
    os.chdir(folder)
    read, unheard = os.pipe()
    os.close(read)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open("out", os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(unheard if err == "pipe" else os.open(err, os.O_WRONLY | os.O_CREAT), 2)
    os.close(unheard)
    # as a new interpreter has them: messages are written line by line
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", 1, closefd=False)
    sys.argv = ["losscurv", *words]
    status = cli.main()
    if err != "err":
        ctypes.pythonapi.Py_Exit(status)  # as sys.exit goes on: takes the interpreter apart
    atexit._run_exitfuncs()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(status)  # without that, which takes longer than all else


class Ended(NamedTuple):
    status: int
    out: str
    err: list[str]


Losscurv = Callable[..., int]


@pytest.fixture(scope="module")
def losscurv() -> Iterator[Losscurv]:
    """A command in a folder, forked off one process: its status; messages go to `err`, a file or a closed pipe."""
    with ProcessPoolExecutor(1, LOADED, load) as one:
        yield lambda folder, words, err="err": one.submit(status_of, folder, words, err).result()


def ended(losscurv: Losscurv, folder: Path, builds: dict[str, str], words: list[str]) -> dict[str, Ended]:
    """Run a command for each of these models and return how each run ended."""
    found = {}
    for name, build in builds.items():
        place = folder / name.replace(" ", "-")
        place.mkdir()
        (place / "net.py").write_text(f"{SOURCE}\nbuild = {build}\n")
        np.savez(place / "data.npz", x=np.eye(6, 3) + 1, y=np.arange(6) % 2)
        status = losscurv(place, [*words, "--model", "net.py:build", "--data", "data.npz", "--json"])
        found[name] = Ended(
            status,
            (place / "out").read_text(),
            [line for line in (place / "err").read_text().splitlines() if " s left" not in line],
        )
    return found


@pytest.fixture(scope="module")
def measured(losscurv: Losscurv, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    builds = {**PLAIN, **{name: build for name, (build, _) in ENDS.items()}}
    return ended(losscurv, tmp_path_factory.mktemp("measured"), builds, ["measure", "--top", "1"])


@pytest.mark.parametrize("name", PLAIN)
def test_standard_output_is_json_and_nothing_else(measured: dict[str, Ended], name: str) -> None:
    status, out, err = measured[name]

    assert status == 0, err
    assert json.loads(out)["samples"] == 6
    assert "printed" not in out
    if name == "prints":
        words = ["printed", "bytes", "written", "by a child"]  # in the order in which buffers are emptied
        assert sorted("".join(err)) == sorted("".join(words))


@pytest.mark.parametrize("name", ENDS)
def test_an_end_of_others_is_one_line_and_status_2(measured: dict[str, Ended], name: str) -> None:
    status, out, err = measured[name]

    assert (status, out, len(err)) == (2, "", 1), err
    assert err[0].startswith("losscurv: ") and ENDS[name][1] in err[0]


def test_a_plan_keeps_the_same_rules(losscurv: Losscurv, tmp_path: Path) -> None:
    builds = {"prints": PLAIN["prints in forward"], "exits": ENDS["exits in forward"][0]}

    found = ended(losscurv, tmp_path, builds, ["plan", "--batch-sizes", "2", "--steps", "10"])

    assert found["prints"].status == 0 and json.loads(found["prints"].out)["samples"] == 6
    assert (
        found["exits"].status == 2
        and "cannot train on batches of 2 samples: exit()" in found["exits"].err[-1]
    )


def test_results_are_whole_even_if_something_prints_to_the_last(
    net: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a thread of the model may."""

    def page(_: Any) -> str:
        print("late")
        os.write(1, b"late")
        return "a page"

    monkeypatch.setattr(measure_pages, "measurement_page", page)
    assert cli.main(["measure", *net, "--json", "--top", "1"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["samples"] == 8
    assert "late" in err


# --- what a signal does is another matter


def test_an_interruption_from_outside_is_none_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(number: signal.Signals) -> Callable[..., Any]:
        def run(*_: Any) -> int:
            with foreign.calling("model", "build"):
                signal.raise_signal(number)
            return 0

        return run

    for number in (signal.SIGINT, signal.SIGTERM):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cli, "_run", stopped(number))
            assert cli.main([]) == 130
        assert capsys.readouterr().err == "losscurv: interrupted\n"
    assert signal.getsignal(signal.SIGINT) is not signals.interrupt


# --- our own defects


def test_a_defect_of_ours_is_one_line_and_status_2(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    error = TypeError("no such\nthing")

    def run(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(cli, "_run", run)
    expected = "losscurv: stopped by a defect, TypeError: no such thing; LOSSCURV_TRACEBACK=1 losscurv ... shows where"

    assert cli.main(["claims"]) == 2
    assert capsys.readouterr().err.splitlines() == [expected]
    monkeypatch.setenv("LOSSCURV_TRACEBACK", "1")
    assert cli.main(["claims"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "Traceback (most recent call last):" and told[-1] == expected
    error = MemoryError()  # is no defect
    monkeypatch.delenv("LOSSCURV_TRACEBACK")
    assert cli.main([]) == 2 and capsys.readouterr().err.startswith("losscurv: memory must suffice")


def test_a_defect_in_the_middle_of_a_measurement_is_not_laid_to_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = problem(nn.Linear(1, 1), (torch.ones(2, 1), torch.ones(2, 1)))
    monkeypatch.setattr(measure, "_Pair", measure._rate)

    with pytest.raises(TypeError, match="takes 1 positional argument"):
        measure.measure_problem(line)


@pytest.mark.parametrize("where", ["err", "/dev/full", "pipe"])
def test_who_does_not_listen_to_messages_still_gets_results(
    where: str, losscurv: Losscurv, tmp_path: Path
) -> None:
    """A report of one claim runs to the end of its interpreter."""
    words = ["report", "--workers", "1", "--report-dir", "out-dir"]

    assert losscurv(tmp_path, words, err=where) == 0
    assert "1 agrees" in Path("out").read_text() and Path("out-dir/report.html").exists()
    assert where != "err" or "1 worker, cpu" in Path("err").read_text()
