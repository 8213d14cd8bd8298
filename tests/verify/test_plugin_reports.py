"""pytest as the front door: the report it leaves, interruptions and replays."""

from dataclasses import replace
from typing import Any

import pytest

from tests.verify import toy_claims
from tests.verify.pytest_runs import CLAIMS, COMMON, FOLDER, Planter, Run, everything_loaded, run
from tests.verify.toy_claims import plant
from verify import results
from verify.page import report
from verify.results import load

__all__ = ["everything_loaded", "plant", "run"]

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("words", [[str(CLAIMS)], ["--report-dir", "out"]], ids=["verify", "--report-dir"])
def test_a_report_is_not_made_by_processes_side_by_side(
    words: list[str], plant: Planter, run: Run, pytester: pytest.Pytester
) -> None:
    pytest.importorskip("xdist")
    plant(toy_claims.RIGHT)
    pytester.makeini(f"[pytest]\ntestpaths = {CLAIMS}\n")

    result = run("-n", "2", *words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "a report must be made by one process of pytest" in result.stderr.str()
    assert not list(pytester.path.glob("*/results.json"))


def test_a_named_run_leaves_a_report_where_told(plant: Planter, run: Run, pytester: pytest.Pytester) -> None:
    plant(toy_claims.RIGHT, toy_claims.EXACT)

    run(CLAIMS).stdout.fnmatch_lines(["report: losscurv-report/report.html"])
    kept = load(pytester.path / "losscurv-report/results.json")
    assert [row.verdict for row in kept.rows] == ["agrees", "agrees"]
    assert (kept.suite.tier, kept.suite.selection) == ("default", "all claims")
    run(CLAIMS, "--report-dir", "there/deep", "--claim", "beyond/exact")
    assert load(pytester.path / "there/deep/results.json").suite.selection == "beyond/exact"


def test_a_bare_run_and_a_mere_collection_leave_nothing(
    plant: Planter, run: Run, pytester: pytest.Pytester
) -> None:
    plant(toy_claims.RIGHT)
    pytester.makeini(f"[pytest]\ntestpaths = {CLAIMS}\n")

    assert run().ret == pytest.ExitCode.OK
    assert run(CLAIMS, "--collect-only").ret == pytest.ExitCode.OK
    assert run(FOLDER / "judging" / "intervals.py", "--doctest-modules").ret == pytest.ExitCode.OK
    assert not list(pytester.path.glob("losscurv-report*"))


def test_a_run_that_stops_early_says_so(plant: Planter, run: Run, pytester: pytest.Pytester) -> None:
    plant(toy_claims.WRONG, toy_claims.RIGHT)

    assert run(CLAIMS, "-x").ret == pytest.ExitCode.TESTS_FAILED
    kept = load(pytester.path / "losscurv-report/results.json")
    assert [row.id for row in kept.rows] == ["beyond/wrong"]
    assert kept.suite.selection == "all claims (interrupted)"


def test_an_interruption_keeps_what_is_finished(
    plant: Planter, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, toy_claims.STOPS)

    result = pytester.inline_run(*COMMON, str(CLAIMS), no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert [row.id for row in load(pytester.path / "losscurv-report/results.json").rows] == ["beyond/right"]
    assert "1 agrees, 0 disagrees (0 expected)" in capsys.readouterr().out


def test_a_replay_compares_and_leaves_no_report(plant: Planter, run: Run, pytester: pytest.Pytester) -> None:
    plant(toy_claims.RIGHT, toy_claims.EXACT)
    run(CLAIMS, "--seed", "9", "--report-dir", "old")
    file = pytester.path / "old/results.json"
    recorded = load(file)

    same = run(CLAIMS, "--replay", "old")
    same.stdout.fnmatch_lines(["*seed 9*", "replay: every score and verdict is the same"])
    assert same.ret == pytest.ExitCode.OK
    results.save(replace(recorded, runs=[replace(r, sha256="0" * 64) for r in recorded.runs]), file)
    other = run(CLAIMS, "--replay", file)
    other.stdout.fnmatch_lines(["replay differs: toy/uniform*scores differ"])
    assert other.ret == pytest.ExitCode.TESTS_FAILED
    assert not list(pytester.path.glob("losscurv-report*"))


def test_a_report_that_cannot_be_written_is_said_after_the_table(
    plant: Planter, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(toy_claims.RIGHT)

    def full(*_: Any, **__: Any) -> None:
        raise ValueError("report cannot be written to losscurv-report: No space left on device")

    monkeypatch.setattr(report, "write", full)
    result = run(CLAIMS)
    result.stdout.fnmatch_lines(["*agrees*beyond/right*", "report not written: *No space left on device"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
