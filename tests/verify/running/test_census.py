"""Runs say how many claims they judged of how many, what left the others out, and what their promise is about."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.verify import toy_claims
from tests.verify.command_line import Planter, judged
from tests.verify.pytest_runs import CLAIMS, Run, everything_loaded, run
from tests.verify.toy_claims import plant
from verify.claims import register
from verify.claims.register import FILE, HEAD, added, read
from verify.cli import main
from verify.model import AnyClaim, Claim, Tier
from verify.results import load

__all__ = ["everything_loaded", "plant", "run"]

pytest_plugins = ["pytester"]

FAR = replace(toy_claims.RIGHT, id="granziol2022/far", entries=("B13",))
WHOLE = replace(toy_claims.RIGHT, id="beyond/whole", pilot="the margin: first draws were off by a third")
GONE = "beyond/lost-and-gone"
WRONG_NAME = f"claims that are registered are missing, dropped or renamed: {GONE}"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch, plant: Planter) -> None:
    """A ledger that holds a claim which is there, one that was withdrawn, and one that is gone."""
    others = [replace(toy_claims.RIGHT, id=name) for name in (GONE, "beyond/old")]
    text = ledger(toy_claims.RIGHT, *others)
    plant(toy_claims.RIGHT, toy_claims.EXACT)
    known = read(text + "2026-01-02,old,withdrawn\n")
    monkeypatch.setattr(register, "ledgers", lambda *_: {"beyond": known, "granziol2022": {}})


def ledger(*claims: AnyClaim) -> str:
    """That holds these claims."""
    return HEAD + added({}, claims, "2026-01-01")


def last_lines(text: str, count: int = 3) -> list[str]:
    return text.rstrip().splitlines()[-count:]


@pytest.mark.parametrize(
    ("words", "counted"),
    [
        ((), "4 of 4 claims judged"),
        (("--claim", "beyond/exact"), "1 of 1 claims judged; 3 of 4 left out: 3 by --claim"),
        (("--paper", "granziol2022"), "1 of 1 claims judged; 3 of 4 left out: 3 by --paper"),
        (
            ("--paper", "beyond", "--claim", "beyond/right"),
            "1 of 1 claims judged; 3 of 4 left out: 2 by --claim, 1 by --paper",
        ),
        (("--tier", "smoke"), "3 of 3 claims judged; 1 of 4 left out: 1 by --tier smoke"),
    ],
)
def test_a_run_counts_its_claims_and_what_left_out_the_others(
    words: tuple[str, ...], counted: str, plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, toy_claims.MISPRINT, toy_claims.EXACT, FAR)

    assert judged(*words, "--report-dir", "out") == 0
    assert last_lines(capsys.readouterr().out)[0] == counted
    census = load(Path("out/results.json")).suite.census
    assert census.judged == census.asked == census.known - sum(census.left_out.values())


def test_the_promise_is_on_what_sampling_decided(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(*toy_claims.MANY_RIGHT, toy_claims.TIGHT, toy_claims.EXACT)

    assert judged("--json") == 0
    (promise,) = json.loads(capsys.readouterr().out)["suite"]["promises"]
    assert promise == {"paper": "", "error": 1e-3, "decided": 20, "undecided": 1}
    assert judged() == 0
    told = "of the 20 verdicts decided by sampling, at most 0.1 % (one run in 1000) chance that any is wrong"
    assert last_lines(capsys.readouterr().out)[1] == f"{told}; 1 undecided"
    assert judged("--claim", "beyond/exact") == 0
    assert last_lines(capsys.readouterr().out)[1] == "no verdict was decided by sampling"


def test_an_undecided_run_says_so_under_every_flag(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.TIGHT)

    for words in ((), ("--strict-undecided",), ("--json",)):
        assert judged(*words) == 1
        assert "no verdict was decided: this run shows nothing" in capsys.readouterr().err
    assert judged("--strict-undecided") == 1
    lines = last_lines(capsys.readouterr().out)
    assert lines[1:] == [
        "no verdict was decided by sampling; 1 undecided",
        "0 agrees, 0 disagrees (0 expected), 1 undecided",
    ]


def test_identities_and_properties_take_any_number_of_replicates(plant: Planter) -> None:
    """They have none; nor do observations, of which a run may hold fewer."""
    plant(toy_claims.EXACT, toy_claims.SEEN)
    assert judged("--replicates", "1") == 0
    assert judged("--replicates", "1", "--claim", "beyond/seen") == 0
    assert judged("--replicates", "0") == 2
    plant(toy_claims.EXACT, toy_claims.RIGHT)
    assert judged("--replicates", "95") == 2


def test_a_stopped_run_counts_what_it_reached(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.RIGHT, toy_claims.STOPS, toy_claims.EXACT)

    assert judged("--report-dir", "out") == 130
    assert last_lines(capsys.readouterr().out)[0] == "1 of 3 claims judged, the run was stopped"
    assert main(["replay", "out", "--workers", "1"]) == 0
    assert "1 of 1 claims judged; 2 of 3 left out: 2 by --replay" in capsys.readouterr().out


@pytest.mark.usefixtures("lost")
def test_a_registered_claim_that_is_gone_fails_every_run(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((), ("--claim", "beyond/exact"), ("--json",), ("--paper", "beyond")):
        assert judged(*words, "--report-dir", "out") == 1
        assert WRONG_NAME in capsys.readouterr().err
    made = load(Path("out/results.json"))
    assert made.suite.census.missing == [GONE]
    assert made.suite.census.withdrawn == {"beyond/old": "2026-01-02"}
    assert main(["replay", "out", "--workers", "1"]) == 1
    output = capsys.readouterr()
    assert WRONG_NAME in output.err and f"missing, dropped or renamed: {GONE}" in output.out


@pytest.mark.usefixtures("lost")
def test_a_gone_claim_fails_pytest_too(run: Run) -> None:
    result = run(CLAIMS)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([WRONG_NAME, "2 of 2 claims judged; missing, dropped or renamed: *"])


def test_a_row_tells_its_history_also_where_that_is_not_registered(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(WHOLE, toy_claims.RIGHT, toy_claims.EXACT, FAR)
    known = read(ledger(replace(toy_claims.RIGHT, margin=0.7), toy_claims.EXACT))
    monkeypatch.setattr(register, "ledgers", lambda *_: {"beyond": known, "granziol2022": {}})

    assert judged("--json") == 0
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert {name: row.get("registered", "") for name, row in rows.items()} == {
        "beyond/whole": "not registered",
        "beyond/right": "declared 2026-01-01; not registered: margin tightened from 70% to 50%",
        "beyond/exact": "declared 2026-01-01",
        "granziol2022/far": "",
    }
    assert rows["beyond/whole"]["pilot"] == WHOLE.pilot and "pilot" not in rows["beyond/right"]


def test_a_route_that_is_not_registered_is_told(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.EXACT)
    known = read(ledger(toy_claims.EXACT).replace("one short", "another"))
    monkeypatch.setattr(register, "ledgers", lambda *_: {"beyond": known})

    assert judged("--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["registered"].endswith("not registered: rivals added: 'one short', rivals gone: 'another'")


def test_what_is_no_ledger_stops_a_run_before_it_begins(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = register.ledgers.__wrapped__
    plant(toy_claims.RIGHT)
    (tmp_path / FILE).write_text("a,b\n1,2\n")
    monkeypatch.setattr(register.registry, "folders", lambda *_: {"beyond": tmp_path})
    monkeypatch.setattr(register, "ledgers", whole)

    assert judged("--report-dir", "out") == 2
    assert "must be a ledger of claims" in capsys.readouterr().err
    assert not Path("out/results.json").exists()


@pytest.mark.parametrize(
    "claims", [(toy_claims.TIGHT,), (*toy_claims.MANY_RIGHT, toy_claims.TIGHT, toy_claims.STILL)]
)
@pytest.mark.parametrize("named", [True, False], ids=["verify", "bare"])
def test_pytest_and_report_end_alike(
    named: bool, claims: tuple[Claim, ...], plant: Planter, run: Run, pytester: pytest.Pytester
) -> None:
    """Also where pytest leaves no report, as in a bare run."""
    plant(*(replace(c, experiment=replace(c.experiment, tier=Tier.SMOKE)) for c in claims[-2:]), *claims[:-2])
    pytester.makeini(f"[pytest]\ntestpaths = {CLAIMS}\n")

    result = run(CLAIMS) if named else run("--tier", "default", "--claim", "beyond/tight")
    assert judged() == 1
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert re.search(r"this run (shows nothing|decides too little)", result.stdout.str())


def test_pytest_counts_as_report_does(plant: Planter, run: Run) -> None:
    plant(*toy_claims.MANY_RIGHT, toy_claims.TIGHT, toy_claims.EXACT)

    result = run(CLAIMS, "-k", "right or tight")
    assert result.ret == pytest.ExitCode.OK
    told = "of the 20 verdicts decided by sampling, at most 0.1 % (one run in 1000) chance that any is wrong"
    result.stdout.fnmatch_lines(
        ["21 of 21 claims judged; 1 of 22 left out: 1 by pytest", f"{told}; 1 undecided", "20 agrees, *"]
    )
