"""Runs that are stopped, and runs that are repeated from their results file."""

from __future__ import annotations

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
from verify.model import AnyClaim
from verify.results import load
from verify.running import suite

__all__ = ["elsewhere", "plant"]


def test_an_interruption_keeps_what_is_finished(
    plant: Planter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, toy_claims.STOPS, toy_claims.EXACT)

    assert judged("--report-dir", "out") == 130
    output = capsys.readouterr()
    assert "interrupted, keeping what is finished" in output.err
    kept = load(tmp_path / "out/results.json")
    assert [row.id for row in kept.rows] == ["beyond/right"]
    assert kept.suite.selection == "all claims (interrupted)"
    assert main(["replay", "out", "--workers", "1"]) == 0


def test_an_interruption_before_anything_is_finished_leaves_nothing(
    plant: Planter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.STOPS)

    assert judged("--report-dir", "out") == 130
    assert capsys.readouterr().err.splitlines()[-1] == "losscurv: interrupted"
    assert list((tmp_path / "out").iterdir()) == []


def test_a_replay_finds_the_same_scores(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.RIGHT, toy_claims.MISPRINT, toy_claims.EXACT)
    assert judged("--report-dir", "out", "--seed", "5", "--replicates", "160") == 0
    before = Path("out/results.json").read_bytes()
    capsys.readouterr()

    assert main(["replay", "out/results.json", "--workers", "1"]) == 0
    output = capsys.readouterr()
    assert "replay: every score and verdict is the same" in output.out
    assert "seed 5" in output.err
    assert main(["report", "--replay", "out", "--workers", "1", "--claim", "beyond/right", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["suite"]["replicates"] == 160
    assert Path("out/results.json").read_bytes() == before
    assert not Path("losscurv-report").exists()


def test_a_replay_that_differs_is_status_1(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.RIGHT)
    assert judged("--report-dir", "out") == 0
    recorded = load(Path("out/results.json"))
    other = replace(recorded, runs=[replace(run, sha256="0" * 64) for run in recorded.runs])
    results.save(other, Path("out/results.json"))

    assert main(["replay", "out", "--workers", "1"]) == 1
    assert "replay differs: toy/uniform" in capsys.readouterr().out
    assert main(["replay", "out", "--workers", "1", "--json"]) == 1
    output = capsys.readouterr()
    assert "replay differs: toy/uniform" in output.err
    assert json.loads(output.out)["rows"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is corrupt: not JSON; run losscurv report again"),
        ("[]", "must have schema"),
        ('{"schema": 99}', "must have schema"),
        ('{"schema": 7}', "is corrupt"),
        ("\0\xff", "is corrupt"),
    ],
)
@pytest.mark.parametrize("command", ["replay", "plot"])
def test_a_corrupt_file_is_refused(
    command: str, content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("results.json").write_text(content, encoding="latin-1")

    assert main([command, "results.json"]) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert output.err.count("\n") == 1


def test_a_truncated_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("results.json").write_text(results.dumps(sample())[:4000], encoding="utf-8")

    assert main(["replay", "results.json"]) == 2
    assert "is corrupt" in capsys.readouterr().err


def test_a_replay_names_and_skips_claims_that_are_gone(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, toy_claims.EXACT)
    assert judged("--report-dir", "out") == 0
    plant(toy_claims.RIGHT)
    capsys.readouterr()

    assert main(["replay", "out", "--workers", "1"]) == 0
    output = capsys.readouterr()
    assert "this version has no claim beyond/exact: skipped" in output.err
    assert "the same; left out: beyond/exact" in output.out
    assert main(["replay", "out", "--workers", "1", "--claim", "beyond/right"]) == 0
    assert main(["replay", "out", "--claim", "beyond/exact"]) == 2
    assert "this version has no claim beyond/exact" in capsys.readouterr().err
    assert main(["replay", "out", "--claim", "beyond/wrong"]) == 2
    assert "--claim must name what the results file judges" in capsys.readouterr().err
    for extra in (["--seed", "3"], ["--tier", "full"], ["--replicates", "32"], ["--vary-seed"]):
        assert main(["report", "--replay", "out", *extra]) == 2
        assert f"{extra[0]} must not stand beside --replay" in capsys.readouterr().err


def test_a_replay_of_claims_that_are_all_gone_is_refused(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.EXACT)
    assert judged("--report-dir", "out") == 0
    plant(toy_claims.RIGHT)

    assert main(["replay", "out", "--workers", "1"]) == 2
    assert "this version has no claim beyond/exact" in capsys.readouterr().err


def test_a_replay_of_nothing_is_refused(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.RIGHT)
    results.save(replace(sample(), rows=[], observations=[]), Path("results.json"))

    assert main(["replay", "."]) == 2
    assert "--replay must name a run that judged at least one claim" in capsys.readouterr().err


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
def test_only_whole_runs_check_the_derivations(
    plant: Planter,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    last: AnyClaim,
    status: int,
    derived: int,
) -> None:
    asked: list[int] = []
    plant(toy_claims.RIGHT, last)
    monkeypatch.setattr(suite, "_derivations", lambda *_: asked.append(1) or [])

    assert judged("--report-dir", "out", *words) == status
    assert len(asked) == derived
