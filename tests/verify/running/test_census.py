"""Runs say how many claims they judged of how many, what left the others out, and what their promise is about."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.verify import toy_claims
from tests.verify.command_line import Planter, elsewhere, judged
from tests.verify.pytest_runs import CLAIMS, Run, everything_loaded, run
from tests.verify.toy_claims import plant
from verify.claims import register
from verify.claims.register import HEAD, added, read
from verify.cli import main
from verify.model import AnyClaim
from verify.results import load

__all__ = ["elsewhere", "everything_loaded", "plant", "run"]

pytest_plugins = ["pytester"]

FAR = replace(toy_claims.RIGHT, id="granziol2022/far", entries=("B13",))
WHOLE = replace(toy_claims.RIGHT, id="beyond/whole", pilot="the margin: first draws were off by a third")
GONE = "beyond/lost-and-gone"
WRONG_NAME = f"registered claims are missing (dropped or renamed): {GONE}"
PROMISE = "of the 20 verdicts decided by sampling, at most 0.1 % (one run in 1000) chance that any is wrong"

Printed = pytest.CaptureFixture[str]


def ledger(*claims: AnyClaim) -> str:
    """Return the text of a ledger that holds these claims."""
    return HEAD + added({}, claims, "2026-01-01")


def last_lines(printed: Printed) -> list[str]:
    return printed.readouterr().out.rstrip().splitlines()[-3:]


def judged_rows(printed: Printed) -> dict[str, Any]:
    assert judged("--json") == 0
    return {row["id"]: row for row in json.loads(printed.readouterr().out)["rows"]}


@pytest.mark.parametrize(
    ("words", "counted"),
    [
        ("", "4 of 4 claims judged"),
        (
            "--paper beyond --claim beyond/right",
            "1 of 1 claims judged; 3 of 4 left out: 2 by --claim, 1 by --paper",
        ),
        ("--tier smoke", "3 of 3 claims judged; 1 of 4 left out: 1 by --tier smoke"),
    ],
)
def test_a_run_counts_its_claims_and_what_left_out_the_others(
    words: str, counted: str, plant: Planter, capsys: Printed
) -> None:
    plant(toy_claims.RIGHT, toy_claims.MISPRINT, toy_claims.EXACT, FAR)

    assert judged(*words.split(), "--report-dir", "out") == 0
    assert last_lines(capsys)[0] == counted
    census = load(Path("out/results.json")).suite.census
    assert census.judged == census.asked == census.known - sum(census.left_out.values())


def test_the_promise_is_on_what_sampling_decided(plant: Planter, capsys: Printed, run: Run) -> None:
    plant(*toy_claims.MANY_RIGHT, toy_claims.TIGHT, toy_claims.EXACT)

    assert judged("--report-dir", "out") == 0
    assert last_lines(capsys)[1] == f"{PROMISE}; 1 undecided"
    (promise,) = load(Path("out/results.json")).suite.promises
    assert (promise.paper, promise.error, promise.decided, promise.undecided) == ("", 1e-3, 20, 1)
    assert judged("--claim", "beyond/exact") == 0
    assert last_lines(capsys)[1] == "no verdict was decided by sampling"
    chosen = run(CLAIMS, "-k", "right or tight")
    assert chosen.ret == pytest.ExitCode.OK
    counted = "21 of 21 claims judged; 1 of 22 left out: 1 by pytest"
    chosen.stdout.fnmatch_lines([counted, f"{PROMISE}; 1 undecided", "20 agrees, *"])


def test_a_registered_claim_that_is_gone_fails_every_run(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, capsys: Printed, run: Run
) -> None:
    """The ledger holds a claim which is there, one that was withdrawn, and one that is gone."""
    others = [replace(toy_claims.RIGHT, id=name) for name in (GONE, "beyond/old")]
    plant(toy_claims.RIGHT, toy_claims.EXACT)
    known = read(ledger(toy_claims.RIGHT, *others) + "2026-01-02,old,withdrawn\n")
    monkeypatch.setattr(register, "ledgers", lambda *_: {"beyond": known, "granziol2022": {}})

    for words in ((), ("--claim", "beyond/exact"), ("--paper", "beyond")):
        assert judged(*words, "--report-dir", "out") == 1
        assert WRONG_NAME in capsys.readouterr().err
    census = load(Path("out/results.json")).suite.census
    assert (census.missing, census.withdrawn) == ([GONE], {"beyond/old": "2026-01-02"})
    assert main(["replay", "out", "--workers", "1"]) == 1
    assert f"missing, dropped or renamed: {GONE}" in capsys.readouterr().out
    by_pytest = run(CLAIMS)
    assert by_pytest.ret == pytest.ExitCode.TESTS_FAILED
    counted = "2 of 2 claims judged; missing, dropped or renamed: *"
    by_pytest.stdout.fnmatch_lines([WRONG_NAME, counted])


def test_a_row_tells_its_history_also_where_that_is_not_registered(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    plant(WHOLE, toy_claims.RIGHT, toy_claims.EXACT, FAR)
    known = ledger(replace(toy_claims.RIGHT, margin=0.7), toy_claims.EXACT).replace("one short", "another")
    monkeypatch.setattr(register, "ledgers", lambda *_: {"beyond": read(known), "granziol2022": {}})

    rows = judged_rows(capsys)
    since = "declared 2026-01-01; not registered: "
    assert {name: row.get("registered", "") for name, row in rows.items()} == {
        "beyond/whole": "not registered",
        "beyond/right": f"{since}margin tightened from 70% to 50%",
        "beyond/exact": f"{since}rivals added: 'one short', rivals gone: 'another'",
        "granziol2022/far": "",
    }
    assert rows["beyond/whole"]["pilot"] == WHOLE.pilot and "pilot" not in rows["beyond/right"]


def test_a_run_that_decides_too_little_fails_pytest_too(
    plant: Planter, run: Run, pytester: pytest.Pytester
) -> None:
    """Also where pytest leaves no report, as in a bare run."""
    plant(toy_claims.TIGHT)
    pytester.makeini(f"[pytest]\ntestpaths = {CLAIMS}\n")

    result = run("--claim", "beyond/tight")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "this run shows nothing" in result.stdout.str()
