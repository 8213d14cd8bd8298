"""Any options end as asked, or in one line that says what to do: at the command line and through pytest."""

import contextlib
import io
import json
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.verify import toy_claims
from verify import results
from verify.cli import main
from verify.page import report
from verify.running import request
from verify.running.options import LARGEST_SEED, MOST_REPLICATES, OPTIONS

CLAIMS = (toy_claims.RIGHT, toy_claims.MISPRINT, toy_claims.EXACT, toy_claims.WRONG)
FAST = 5.0
"""Seconds within which anything must end here, a hundred times what it takes."""

WORDS = ["", "x", "-", "--", "é\u202e✕", "a\0b", "\udcff", "a\nb\x1b[31m", "'$(id)' %s %n {}", "a" * 20_000]
INTEGERS = [
    "0", "-1", "007", "1_0", "١٢", "1.5", "nan", "1e3", str(10**18), "9" * 400, "-" + "9" * 400, "9" * 5000,
]  # fmt: skip
PATHS = [
    "nowhere", "folder", "file", "file/below", "good", "good/results.json", "set.npz", "/dev/null", "/dev/zero",
    "/dev/full", "pipe", "/proc/none", ".", "b\udcff", "../" * 40 + "nowhere", "/".join(["d"] * 3000),
]  # fmt: skip
SENSIBLE = {
    "--claim": ["beyond/right", "beyond/exact", "beyond/wrong"],
    "--paper": ["beyond", "karakida2019"],
    "--tier": ["smoke", "default", "full", "SMOKE"],
    "--seed": ["0", "7", str(LARGEST_SEED), str(LARGEST_SEED + 1)],
    "--replicates": ["1", "17", "80", str(MOST_REPLICATES + 1)],
    "--workers": ["1", "1", "1000000000"],
    "--device": ["cpu", "cuda:99", "cuda:-1", "tpu", "cpu:0"],
    "--executor": ["dask://", "dask://x", "dask://:1", "tcp://x:1", "dask://a b:1"],
}
"""What an option is made for, beside what no option takes; an address where someone might answer is left out."""

FLAGS = {name: keywords.get("action") == "store_true" for name, keywords in OPTIONS}
FLAGS |= {"--json": True, "--list": True, "--schema": True}


def of_option(name: str) -> st.SearchStrategy[list[str]]:
    if FLAGS.get(name):
        return st.just([name])
    values = st.sampled_from([*SENSIBLE.get(name, PATHS), *SENSIBLE.get(name, PATHS), *WORDS, *INTEGERS])
    return st.one_of(values.map(lambda v: [name, v]), values.map(lambda v: [f"{name}={v}"]), st.just([name]))


OWN = {
    "report": [*(name for name, _ in OPTIONS), "--json"],
    "replay": [*(name for name, _ in OPTIONS), "--json"],
    "plot": ["--output"],
    "claims": ["--paper", "--scorecard", "--json", "--schema"],
    "compare": [],
}
"""Options by command."""


def command_lines() -> st.SearchStrategy[list[str]]:
    def line(command: str) -> st.SearchStrategy[list[str]]:
        some = st.lists(st.sampled_from(OWN[command] or ["--json"]).flatmap(of_option), max_size=4)
        most = {"plot": 1, "replay": 1, "claims": 2, "compare": 3}.get(command, 0)
        names = [*PATHS, "good", "good", "", "a\0b"]
        named = st.lists(st.sampled_from(names), min_size=command == "replay", max_size=most)
        return st.tuples(some, named).map(lambda made: [command, *made[1], *(w for o in made[0] for w in o)])

    return st.sampled_from(["report", *OWN]).flatmap(line)


@pytest.fixture(scope="module", autouse=True)
def _place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder with everything a path may be, the toy claims, and a report without drawings."""
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "100")
        toy_claims.replace_all(patch, *CLAIMS)
        patch.setattr(request, "default_workers", lambda *_: 1)
        patch.setattr(request, "WORKERS_PER_CORE", 1)  # "007" would start seven processes for four claims
        patch.setattr(report, "write", _written)
        Path("file").touch()
        Path("folder").mkdir()
        os.mkfifo("pipe")
        pixels = np.random.default_rng(0).random((70, 8, 8))
        np.savez("set.npz", x_train=pixels, y_train=np.arange(70) % 10)
        assert (
            run("report", "--report-dir", "good", "--claim", "beyond/right", "--claim", "beyond/exact").status
            == 0
        )
        yield


def _written(made: results.Results, folder: Path, each: object, *, one_file: bool) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    results.save(made, folder / "results.json")
    return folder / "report.html"


def run(*words: str) -> SimpleNamespace:
    """A command in this process: its status, what it printed and its complaint."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    started = time.perf_counter()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(words))
    printed, told = (_text(stream) for stream in (out, err))
    notes = [line for line in told if line.startswith(("losscurv: tier ", "losscurv: replicates "))]
    complaints = [line for line in told if line not in notes]
    return SimpleNamespace(
        status=status, out=printed, err=complaints, seconds=time.perf_counter() - started, words=words
    )


def _text(stream: io.TextIOWrapper) -> list[str]:
    stream.flush()
    stream.buffer.seek(0)
    return stream.buffer.read().decode("utf-8").split("\n")[:-1]


def check(done: SimpleNamespace, *said: str) -> None:
    """The rule that everything here is about; with what is `said`, it was refused with that."""
    assert done.seconds < FAST, done.words
    assert done.status in ((2,) if said else (0, 1, 2)), done.words
    assert not any("Traceback" in line for line in (*done.err, *done.out)), done.words
    if done.status == 2:
        assert len(done.err) == 1, (done.words, done.err)
        assert done.err[0].startswith("losscurv") and done.err[0].isprintable()
        assert 30 < len(done.err[0]) < 1200, done.err
        assert all(word in done.err[0] for word in said)
    assert not (said and done.out)


@pytest.mark.slow
@settings(deadline=None, max_examples=120, derandomize=True)
@given(command_lines())
def test_any_command_line_is_done_or_refused_in_one_line(words: list[str]) -> None:
    check(run(*words))


# --- each option, each value


@pytest.mark.parametrize("name", [name for name, keywords in OPTIONS if not FLAGS[name]])
def test_no_option_takes_an_empty_value_a_nul_or_a_mere_dash(name: str) -> None:
    """Empty is not left out: a script whose variable is unset must not judge everything."""
    for words in ([name, ""], [name, "a\0b"], [f"{name}=--"]):
        check(run("report", *words), "")


LONG = "9" * 400
FOLDER = ": cannot write to folder file"
PLAIN = "pipe must be a plain file, got a pipe or a device"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("report --claim beyond/right --claim ''", "--claim needs a value, got ''"),
        (
            "report --paper karakida2019",
            "no claim is left to judge with --paper and --tier default",
        ),
        (
            "report --claim beyond/right --paper karakida2019",
            "no claim is left to judge with --claim and --paper",
        ),
        ("report --workers 0", "--workers must be at least 1, got 0"),
        ("report --replicates 0", "--replicates must be at least 96, got 0"),
        (
            f"report --replicates {10**18}",
            f"--replicates must be at most {MOST_REPLICATES}, got a larger number",
        ),
        ("report --seed -1", "--seed must be at least 0, got -1"),
        ("report --seed x", "report: argument --seed: invalid int value: 'x'; see losscurv report --help"),
        (
            f"report --seed {LONG * 13}",
            "report: argument --seed: invalid int value: '999",
        ),  # cut in the middle
        ("report --vary-seed --seed 1", "--vary-seed cannot be combined with --seed"),
        ("report --device tpu", "device must be auto, cpu, cuda or cuda:<index>, got 'tpu'"),
        ("report --executor localhost:1", "executor must be dask://host:port, got 'localhost:1'"),
        ("report --data pipe", PLAIN),
        (f"report --data {'x' * 300}", "File name too long"),
        ("report --report-dir file", f"--report-dir{FOLDER}"),
        ("report --frobnicate", "unrecognized arguments: --frobnicate; see losscurv report --help"),
        ("replay ''", "RESULTS.JSON needs a value"),
        ("replay /dev/zero", "results file /dev/zero must be a plain file"),
        ("plot good --output ''", "--output needs a value"),
        ("plot pipe", PLAIN),
        ("report --tier ''", "unknown value ''; choose from 'smoke', 'default', 'full'"),
        ("claims --paper nobody2020", "paper must be one of"),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(words: str, said: str) -> None:
    check(run(*shlex.split(words)), said)


def test_a_value_cannot_write_to_the_terminal() -> None:
    for words in (["--executor", "dask://a\nb\x1b[2J:1"], ["--claim", "a\nb\x1b[2J"]):
        check(run("report", *words), r"a\nb\x1b[2J")


def test_the_largest_seed_is_taken_and_the_last_one_counts() -> None:
    for words in (["--seed", str(LARGEST_SEED)], ["--seed", "1", "--seed", str(LARGEST_SEED)]):
        done = run("report", "--claim", "beyond/right", "--json", *words)
        assert json.loads("\n".join(done.out))["suite"]["seed"] == LARGEST_SEED


# --- a results file is no more trusted than an option


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("tier", "huge", "--tier must be one of smoke, default, full, got 'huge'"),
        ("seed", -1, "results.suite.seed must be at least 0 and below 2**128"),
        ("replicates", 0, "--replicates must be at least 96, got 0"),
        ("data", "/dev/zero", "data /dev/zero must be a plain file"),
        ("data", "a\0b", "file not found: a"),
    ],
)
def test_a_replay_checks_what_the_file_asks_for(field: str, value: Any, message: str) -> None:
    check(run("replay", edited("suite", field, value)), message)


def test_a_replay_cannot_write_to_the_terminal() -> None:
    done = run("replay", edited("rows", 0, "points", 0, "parameters", "scale\n\x1b[2J", "owned\u202e"))
    assert done.status == 1 and all(line.isprintable() for line in done.out)
    assert any("owned\\u202e" in line for line in done.out)


def test_an_edited_file_is_told_by_replay_and_plot() -> None:
    file, line = edited("rows", 0, "finding", "something else"), "(its sha256 does not match)"
    done = run("replay", file)
    assert done.status == 1 and any(told.endswith(line) for told in done.out)
    for _ in range(2):  # to draw it does not make it a file of a run
        done = run("plot", file)
        told = f"losscurv: results file {file} was edited after its run {line}"
        assert (done.status, done.err) == (0, [told])
        file = "."
    done = run("plot", "good")
    assert (done.status, done.err) == (0, [])


def edited(*place: Any) -> str:
    """A copy of the good file with the last of these where the others lead."""
    raw = json.loads(Path("good/results.json").read_text())
    *way, name, value = place
    inside = raw
    for step in way:
        inside = inside[step]
    inside[name] = value
    Path("results.json").write_text(json.dumps(raw))
    return "results.json"
