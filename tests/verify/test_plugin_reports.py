"""pytest as the front door: the report it leaves, interruptions and replays."""

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.verify import toy_claims
from tests.verify.pytest_runs import CLAIMS, COMMON, FOLDER, Planter, Run, everything_loaded, run
from tests.verify.toy_claims import plant
from verify import results
from verify.judging.intervals import FEWEST
from verify.page import report
from verify.results import load
from verify.running import suite

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


def test_what_pytest_deselects_is_not_run(plant: Planter, run: Run, pytester: pytest.Pytester) -> None:
    plant(toy_claims.STOPS, toy_claims.RIGHT, toy_claims.EXACT)

    result = run(CLAIMS, "-k", "right or exact")
    assert result.ret == pytest.ExitCode.OK
    kept = load(pytester.path / "losscurv-report/results.json")
    assert [row.id for row in kept.rows] == ["beyond/right", "beyond/exact"]
    assert kept.suite.selection == "all claims: 2 of 3 claims, chosen by pytest"
    assert [run.experiment for run in kept.runs] == ["toy/uniform"]


def test_a_long_run_ends_on_one_screen_and_the_table_comes_where_asked(plant: Planter, run: Run) -> None:
    plant(*toy_claims.MANY_RIGHT, toy_claims.TIGHT)

    short, long = run(CLAIMS).outlines, run(CLAIMS, "--table").outlines
    assert "UNDECIDED beyond/tight: undecided, expected agrees" in short
    assert any(line.startswith("beyond: 20 readings hold") for line in short)
    assert not any("predicted" in line and "rivals" in line for line in short)
    assert any("predicted" in line and "rivals" in line for line in long)


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
    file.write_text(file.read_text(encoding="utf-8")[:300], encoding="utf-8")
    broken = run(CLAIMS, "--replay", file)
    assert broken.ret == pytest.ExitCode.USAGE_ERROR
    assert "is corrupt" in broken.stderr.str()


def test_planted_errors_that_are_missed_fail_the_run(
    plant: Planter, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(toy_claims.RIGHT)
    monkeypatch.setattr(suite, "PLANTED", (toy_claims.RIGHT,))

    result = run(CLAIMS)
    result.stdout.fnmatch_lines(["planted errors not caught, this run proves nothing: beyond/right"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


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


def test_junit_carries_verdicts_and_numbers(plant: Planter, run: Run, pytester: pytest.Pytester) -> None:
    plant(toy_claims.RIGHT, toy_claims.WRONG)

    run(CLAIMS, "--junitxml", "junit.xml")
    cases = ElementTree.parse(pytester.path / "junit.xml").findall(".//testcase")
    told = [{p.attrib["name"]: p.attrib["value"] for p in case.iter("property")} for case in cases]
    assert [case.get("name") for case in cases] == ["test_claim[beyond/right]", "test_claim[beyond/wrong]"]
    assert [(one["verdict"], one["expected"]) for one in told] == [
        ("agrees", "agrees"),
        ("disagrees", "agrees"),
    ]
    assert (told[0]["seed"], float(told[0]["predicted[0]"])) == ("2024", 0.85)
    assert float(told[0]["lower[0]"]) < float(told[0]["measured[0]"]) < float(told[0]["upper[0]"])
    assert int(told[0]["replicates[0]"]) >= FEWEST
    (failure,) = cases[1].iter("failure")
    assert "SURPRISE beyond/wrong" in failure.attrib["message"]
