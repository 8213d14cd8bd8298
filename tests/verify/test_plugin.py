"""pytest as the front door."""

import pytest

from tests.verify import toy_claims
from tests.verify.pytest_runs import CLAIMS, COMMON, FOLDER, Planter, Run, everything_loaded, last_line, run
from tests.verify.toy_claims import plant
from verify import plugin
from verify.results import load

__all__ = ["everything_loaded", "plant", "run"]

pytest_plugins = ["pytester"]


def test_every_verdict_has_its_word_and_its_letter(plant: Planter, run: Run) -> None:
    plant(toy_claims.RIGHT, toy_claims.MISPRINT, toy_claims.TIGHT, toy_claims.WRONG, toy_claims.BROKEN)

    quiet = run(CLAIMS, "-q")
    assert quiet.outlines[0].split()[0] == "..duFB" and "s left" not in quiet.stdout.str()
    assert last_line(quiet).startswith("2 failed, 2 agrees, 1 disagrees (expected), 1 undecided in ")
    result = run(CLAIMS, "-v", "--seed", "3")
    result.stdout.fnmatch_lines(
        [
            "*test_claim[[]beyond/right[]] AGREES *",
            "*test_claim[[]beyond/misprint[]] AGREES *",
            "*test_claim[[]beyond/misprint [[]as our copy reads[]][]] DISAGREES (expected) *",
            "*test_claim[[]beyond/tight[]] UNDECIDED *",
            "*test_claim[[]beyond/wrong[]] DISAGREES (surprise)*",
            "*test_claim[[]beyond/broken[]] BROKEN*",
            "SURPRISE beyond/wrong: disagrees, expected agrees",
            "  rerun *losscurv report --claim beyond/wrong --seed 3 --tier default",
            "RuntimeError: the detector is off",
            "2 agrees, 2 disagrees (1 expected), 1 undecided, 1 broken",
        ]
    )
    assert quiet.ret == result.ret == pytest.ExitCode.TESTS_FAILED


def test_an_observation_has_a_test_that_only_a_crash_fails(
    plant: Planter, run: Run, pytester: pytest.Pytester
) -> None:
    plant(toy_claims.EXACT, toy_claims.SEEN, toy_claims.LOST)

    result = run(CLAIMS, "-v")
    result.stdout.fnmatch_lines(
        [
            "*test_observation[[]beyond/seen[]] OBSERVED *",
            "*test_observation[[]beyond/lost[]] BROKEN *",
            "BROKEN beyond/lost: observation",
            "observed, not judged; the page has their tables: beyond/seen, beyond/lost",
            "1 agrees, 0 disagrees (0 expected), 2 observed (1 broken)",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert last_line(result).startswith("1 failed, 1 agrees, 1 observed in ")
    assert len(load(pytester.path / "losscurv-report/results.json").observations) == 2


def test_observations_may_be_all_there_is_or_none(
    plant: Planter, run: Run, pytester: pytest.Pytester
) -> None:
    plant(toy_claims.EXACT, toy_claims.SEEN, toy_claims.HALTS)

    assert last_line(run(CLAIMS, "--tier", "smoke")).startswith("1 agrees in ")
    chosen = run(CLAIMS, "-k", "seen")
    assert last_line(chosen).startswith("2 deselected, 1 observed in ")
    kept = load(pytester.path / "losscurv-report/results.json")
    assert kept.suite.selection == "all claims: 1 of 3 claims and observations, chosen by pytest"
    assert [made.id for made in kept.observations] == ["beyond/seen"] and kept.rows == []


def test_what_is_undecided_fails_where_asked_or_against_its_registration(plant: Planter, run: Run) -> None:
    plant(*toy_claims.MANY_RIGHT, toy_claims.TIGHT)
    assert run(CLAIMS).ret == pytest.ExitCode.OK
    strict = run(CLAIMS, "--strict-undecided", "-v")
    plant(*toy_claims.MANY_RIGHT, toy_claims.UNFORESEEN)
    for result in (strict, run(CLAIMS, "-v")):
        result.stdout.fnmatch_lines(["*UNDECIDED (surprise)*"])
        assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_other_tests_keep_their_words(plant: Planter, pytester: pytest.Pytester, run: Run) -> None:
    plant(toy_claims.RIGHT)
    pytester.makepyfile("def test_it(record_property):\n    assert True\ndef test_not():\n    assert False")

    result = run("-v", "-p", "no:warnings")
    result.stdout.fnmatch_lines(["*test_it PASSED*", "*test_not FAILED*"])
    assert last_line(result).startswith("1 failed, 1 passed in ")
    assert "theory against simulation" not in result.stdout.str()


@pytest.mark.parametrize(
    ("words", "tier"),
    [
        ("", "smoke"),
        (".", "smoke"),
        ("VERIFY --ignore-glob=VERIFY/*/*", "default"),
        ("VERIFY/test_claims.py::test_claim", "default"),
        ("--pyargs verify.test_claims::test_claim", "default"),
        ("VERIFY/test_claims.py --tier smoke", "smoke"),
        ("--tier full", "full"),
    ],
)
def test_the_tier_follows_from_what_is_named(
    words: str, tier: str, plant: Planter, run: Run, pytester: pytest.Pytester
) -> None:
    plant(toy_claims.RIGHT, toy_claims.WRONG)
    pytester.makeini(f"[pytest]\ntestpaths = {CLAIMS}\n")
    pytester.makepyfile(test_local=CLAIMS.read_text(encoding="utf-8"))

    result = run(*words.replace("VERIFY", str(FOLDER)).split(), "--collect-only")
    assert result.ret == pytest.ExitCode.OK
    text = result.stdout.str()
    assert text.count("<Function test_claim[") == (1 if tier == "smoke" else 2)
    assert f"tier {tier}," in text or words == "."


def test_bad_options_are_usage_errors(plant: Planter, run: Run, pytester: pytest.Pytester) -> None:
    plant(toy_claims.RIGHT)
    pytester.path.joinpath("file").write_text("", encoding="utf-8")

    for words, message in (
        (["--claim", "beyond/rihgt"], "got 'beyond/rihgt'; did you mean beyond/right?"),
        (["--report-dir", "file/below"], "--report-dir: cannot write to folder"),
        (["--tier", "huge"], "invalid choice: 'huge'"),
        (["--workers", "9" * 400], "--workers must be at most"),
        (["--data", ""], "--data needs a value"),
    ):
        result = run(CLAIMS, *words)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert message in result.stderr.str()
        assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_progress_tells_the_time_left_but_where_quiet(
    plant: Planter, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(toy_claims.RIGHT, toy_claims.EXACT)
    monkeypatch.setattr(plugin, "EVERY", -1.0)

    progress = ["  0 of 2 claims *, * s, about * s left", "  1 of 2 claims *"]
    table = ["*verdict*claim*measured*predicted*", "*agrees*beyond/right*0.85*"]
    run(CLAIMS).stdout.fnmatch_lines([*progress, *table])
    quiet = run(CLAIMS, "-q").stdout.str()
    assert "s left" not in quiet and "predicted" not in quiet


def test_it_runs_from_anywhere_and_a_checkout_loads_it_by_itself(
    plant: Planter, run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER.parent)
    words = ["--collect-only", "-q", "--claim", "karakida2019/gram", "verify/test_claims.py", *COMMON[2:]]
    listed = pytester.runpytest_inprocess(*words).outlines
    assert "verify/test_claims.py::test_claim[karakida2019/gram]" in listed
    monkeypatch.chdir(pytester.path)
    plant(toy_claims.RIGHT, toy_claims.EXACT)

    assert last_line(run("--pyargs", "verify.test_claims")).startswith("2 agrees in ")
    assert load(pytester.path / "losscurv-report/results.json").suite.tier == "default"
