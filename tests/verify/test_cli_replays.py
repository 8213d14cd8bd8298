"""Runs that are stopped, and runs that are repeated from their results file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.verify import toy_claims
from tests.verify.command_line import Planter, elsewhere, judged
from tests.verify.results.sample_results import sample
from tests.verify.toy_claims import plant
from verify import results
from verify.cli import main
from verify.results import load
from verify.running import suite

__all__ = ["elsewhere", "plant"]


def replayed() -> int:
    return main(["replay", "out", "--workers", "1"])


def test_an_interruption_keeps_what_is_finished(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.RIGHT, toy_claims.STOPS, toy_claims.EXACT)
    assert judged("--report-dir", "out") == 130
    assert "interrupted; finished claims are kept" in capsys.readouterr().err
    kept = load(Path("out/results.json"))
    assert [row.id for row in kept.rows] == ["beyond/right"]
    assert kept.suite.selection == "all claims (interrupted)"
    assert replayed() == 0

    plant(toy_claims.STOPS)  # before anything is finished
    assert judged("--report-dir", "none") == 130
    assert capsys.readouterr().err.splitlines()[-1] == "losscurv: interrupted"
    assert list(Path("none").iterdir()) == []


def test_a_replay_finds_the_same_scores_or_says_which_differ(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, toy_claims.MISPRINT, toy_claims.EXACT)
    assert judged("--report-dir", "out", "--seed", "5", "--replicates", "160") == 0
    file = Path("out/results.json")
    before, recorded = file.read_bytes(), load(file)
    capsys.readouterr()

    assert main(["replay", "out/results.json", "--workers", "1"]) == 0
    output = capsys.readouterr()
    assert "replay: every score and verdict is the same" in output.out and "seed 5" in output.err
    assert main(["report", "--replay", "out", "--workers", "1", "--claim", "beyond/right"]) == 0
    assert file.read_bytes() == before and not Path("losscurv-report").exists()

    results.save(replace(recorded, runs=[replace(run, sha256="0" * 64) for run in recorded.runs]), file)
    assert replayed() == 1
    assert "replay differs: toy/uniform" in capsys.readouterr().out
    assert main(["replay", "out", "--workers", "1", "--json"]) == 1
    output = capsys.readouterr()
    assert "replay differs: toy/uniform" in output.err and json.loads(output.out)["rows"]


def test_a_replay_names_and_skips_claims_that_are_gone(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, toy_claims.EXACT)
    assert judged("--report-dir", "out") == 0
    plant(toy_claims.RIGHT)
    capsys.readouterr()

    assert replayed() == 0
    output = capsys.readouterr()
    assert "this version has no claim beyond/exact: skipped" in output.err
    assert "the same; left out: beyond/exact" in output.out
    for words, told in (
        (["replay", "out", "--claim", "beyond/exact"], "this version has no claim beyond/exact"),
        (["replay", "out", "--claim", "beyond/wrong"], "the results file has no claim beyond/wrong"),
        (["report", "--replay", "out", "--seed", "3"], "--seed cannot be combined with --replay"),
        (["report", "--replay", "out", "--vary-seed"], "--vary-seed cannot be combined with --replay"),
    ):
        assert main(words) == 2 and told in capsys.readouterr().err
    plant(toy_claims.WRONG)
    assert replayed() == 2
    assert "this version has no claim beyond/right, beyond/exact" in capsys.readouterr().err
    results.save(replace(sample(), rows=[], observations=[]), Path("results.json"))
    assert main(["replay", "."]) == 2
    assert "the results file of --replay judges no claim" in capsys.readouterr().err


# --- what a run leaves out


@pytest.mark.parametrize(
    ("words", "last", "status", "derived"),
    [
        ((), toy_claims.EXACT, 0, 1),
        (("--claim", "beyond/right"), toy_claims.EXACT, 0, 0),
        ((), toy_claims.STOPS, 130, 0),
    ],
    ids=["all", "named", "interrupted"],
)
def test_only_whole_runs_check_the_derivations(plant, monkeypatch, words, last, status, derived) -> None:
    asked = []
    plant(toy_claims.RIGHT, last)
    monkeypatch.setattr(suite, "_derivations", lambda *_: asked.append(1) or [])

    assert judged("--report-dir", "out", *words) == status
    assert len(asked) == derived
