"""pytest as the front door."""

import dataclasses
import sys
from xml.etree import ElementTree

import pytest

from simulate.monte_carlo import Point
from tests.verify import toy_claims
from tests.verify.pytest_runs import CLAIMS, COMMON, FOLDER, Planter, Run, everything_loaded, last_line, run
from tests.verify.toy_claims import plant
from verify import plugin
from verify.model import ExactProperty
from verify.model.domains import Between
from verify.results import load
from verify.running.options import OPTIONS

__all__ = ["everything_loaded", "plant", "run"]

pytest_plugins = ["pytester"]

ANY = ExactProperty(
    id="beyond/any",
    entries=toy_claims.RIGHT.entries,
    source=toy_claims.RIGHT.source,
    statement="0 = 0",
    passage=toy_claims.RIGHT.passage,
    domain={"n": Between(0, 10**9)},
    violation=lambda rng, p: 0.0,
    examples=(Point(n=7),),
    tolerance=1e-9,
    tolerance_reason="a test",
    rivals={},
)


def test_every_verdict_has_its_word_in_progress_and_in_the_last_line(plant: Planter, run: Run) -> None:
    plant(toy_claims.RIGHT, toy_claims.MISPRINT, toy_claims.TIGHT, toy_claims.EXACT)

    result = run(CLAIMS, "-v")
    result.stdout.fnmatch_lines(
        [
            "*test_claim[[]beyond/right[]] AGREES *",
            "*test_claim[[]beyond/misprint[]] AGREES *",
            "*test_claim[[]beyond/misprint [[]as our copy reads[]][]] DISAGREES (expected) *",
            "*test_claim[[]beyond/tight[]] UNDECIDED *",
            "*test_claim[[]beyond/exact[]] AGREES *",
            "3 agrees, 1 disagrees (1 expected), 1 undecided",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED  # one of five is more than may stay undecided
    assert last_line(result).startswith("3 agrees, 1 disagrees (expected), 1 undecided in ")


def test_each_verdict_has_a_letter_of_its_own(plant: Planter, run: Run) -> None:
    plant(toy_claims.RIGHT, toy_claims.MISPRINT, toy_claims.TIGHT, toy_claims.WRONG, toy_claims.BROKEN)

    result = run(CLAIMS, "-q")
    assert result.outlines[0].split()[0] == "..duFB"
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert last_line(result).startswith("2 failed, 2 agrees, 1 disagrees (expected), 1 undecided in ")


def test_a_surprise_shows_its_numbers(plant: Planter, run: Run) -> None:
    plant(toy_claims.WRONG)

    result = run(CLAIMS, "-v", "--seed", "3")
    result.stdout.fnmatch_lines(
        [
            "*DISAGREES (surprise)*",
            "SURPRISE beyond/wrong: disagrees, expected agrees",
            "  theory *2.21",
            "  margin *(a toy)",
            "  measured *",
            "  half-width *(statistical *",
            "  deviation *half-widths*",
            "  sizes *scale = 1.7",
            "  replicates *",
            "  seed *3",
            "  rerun *losscurv report --claim beyond/wrong --seed 3 --tier default",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_broken_looks_different_and_stops_nothing(plant: Planter, run: Run) -> None:
    plant(toy_claims.BROKEN, toy_claims.RIGHT)

    result = run(CLAIMS, "-v")
    result.stdout.fnmatch_lines(
        ["*beyond/broken[]] BROKEN*", "*beyond/right[]] AGREES*", "RuntimeError: the detector is off"]
    )
    result.stdout.fnmatch_lines(["BROKEN beyond/broken*", "1 agrees, 0 disagrees (0 expected), 1 broken"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


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
            "observed, not judged; ratios are predicted over measured, 1 is perfect",
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
    assert last_line(run(CLAIMS, "--claim", "beyond/seen")).startswith("1 observed in ")
    chosen = run(CLAIMS, "-k", "seen", "--junitxml", "junit.xml")
    assert last_line(chosen).startswith("2 deselected, 1 observed in ")
    kept = load(pytester.path / "losscurv-report/results.json")
    assert kept.suite.selection == "all claims: 1 of 3 claims and observations, chosen by pytest"
    assert [made.id for made in kept.observations] == ["beyond/seen"] and kept.rows == []
    (case,) = ElementTree.parse(pytester.path / "junit.xml").findall(".//testcase")
    assert {p.get("name"): p.get("value") for p in case.iter("property")} == {"observed": "3", "seed": "2024"}


def test_what_ends_undecided_against_its_registration_fails(plant: Planter, run: Run) -> None:
    plant(*toy_claims.MANY_RIGHT, toy_claims.UNFORESEEN)

    result = run(CLAIMS, "-v")
    result.stdout.fnmatch_lines(["*beyond/unforeseen[]] UNDECIDED (surprise)*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_undecided_fails_where_asked(plant: Planter, run: Run) -> None:
    plant(*toy_claims.MANY_RIGHT, toy_claims.TIGHT)

    assert run(CLAIMS).ret == pytest.ExitCode.OK
    strict = run(CLAIMS, "--strict-undecided", "-v")
    strict.stdout.fnmatch_lines(["*UNDECIDED (surprise)*"])
    assert strict.ret == pytest.ExitCode.TESTS_FAILED


def test_other_tests_keep_their_words(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile("def test_it(record_property):\n    assert True\ndef test_not():\n    assert False")

    result = run("-v", "-p", "no:warnings")
    result.stdout.fnmatch_lines(["*test_it PASSED*", "*test_not FAILED*"])
    assert last_line(result).startswith("1 failed, 1 passed in ")
    assert "theory against simulation" not in result.stdout.str()


@pytest.mark.parametrize(
    ("words", "tier"),
    [
        ([], "smoke"),
        (["."], "smoke"),
        ([str(FOLDER)], "default"),
        ([str(CLAIMS)], "default"),
        ([f"{CLAIMS}::test_claim"], "default"),
        (["--pyargs", "verify"], "default"),
        (["--pyargs", "verify.test_claims"], "default"),
        (["--pyargs", "verify.test_claims::test_claim"], "default"),
        ([str(CLAIMS), "--tier", "smoke"], "smoke"),
        ([str(CLAIMS), "--tier", "full"], "full"),
        (["--tier", "full"], "full"),
        (["--tier", "default"], "default"),
    ],
    ids=lambda value: " ".join(value).replace(str(FOLDER), "verify") if isinstance(value, list) else value,
)
def test_the_tier_follows_from_what_is_named(
    words: list[str], tier: str, plant: Planter, run: Run, pytester: pytest.Pytester
) -> None:
    plant(toy_claims.RIGHT, toy_claims.WRONG)
    pytester.makeini(f"[pytest]\ntestpaths = {CLAIMS}\n")
    pytester.makepyfile(test_local=CLAIMS.read_text(encoding="utf-8"))

    result = run(*words, "--collect-only", "-q")
    assert result.ret == pytest.ExitCode.OK
    collected = [line for line in result.outlines if "test_claim[" in line]
    assert len(collected) == (1 if tier == "smoke" else 2)
    if words:
        assert f"tier {tier}," in "\n".join(run(*words, "--collect-only").outlines) or words == ["."]


def test_the_verify_folder_may_be_named_from_inside(
    plant: Planter, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(toy_claims.RIGHT, toy_claims.WRONG)
    monkeypatch.chdir(FOLDER)

    result = run("test_claims.py", "--collect-only", "-q")
    assert len([line for line in result.outlines if "test_claim[" in line]) == 2
    assert not (FOLDER / "losscurv-report").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--claim beyond/rihgt", "got 'beyond/rihgt'; did you mean beyond/right?"),
        ("--paper nobody2020", "paper must be one of vysogorets2024,"),
        ("--paper karakida2019", "--paper must leave at least one claim"),
        ("--workers 0", "--workers must be at least 1, got 0"),
        ("--replicates 0", "--replicates must be at least 96, got 0"),
        ("--seed -1", "--seed must be at least 0, got -1"),
        ("--vary-seed --seed 1", "--vary-seed must not stand beside --seed"),
        ("--device tpu", "device must be auto, cpu, cuda or cuda:<index>, got 'tpu'"),
        ("--executor localhost:1", "executor must be dask://host:port, got 'localhost:1'"),
        ("--replay nowhere.json", "file not found: nowhere.json"),
        ("--report-dir file/below", "--report-dir must be a folder that can be written"),
        ("--tier huge", "invalid choice: 'huge'"),
    ],
)
def test_bad_options_are_usage_errors(
    words: str, message: str, plant: Planter, run: Run, pytester: pytest.Pytester
) -> None:
    plant(toy_claims.RIGHT)
    pytester.path.joinpath("file").write_text("", encoding="utf-8")

    result = run(CLAIMS, *words.split())
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_a_varied_seed_is_printed_however_quiet(plant: Planter, run: Run) -> None:
    plant(toy_claims.RIGHT)

    seeds = {
        line.partition("seed ")[2].partition(",")[0]
        for _ in range(2)
        for line in run(CLAIMS, "-q", "--vary-seed").outlines
        if "theory against simulation" in line
    }
    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("given", "option"), [(None, {}), ("7", {"seed": 7}), ("random", {"vary_seed": True})]
)
def test_the_seed_of_hypothesis_is_the_seed_of_the_suite(
    given: str | None, option: dict[str, object]
) -> None:
    """Properties draw their examples from it."""
    assert plugin._seeded(given, {"seed": None, "vary_seed": False}) == option


@pytest.mark.parametrize(
    ("given", "values", "message"),
    [
        ("7", {"seed": 8, "vary_seed": False}, "not stand beside --seed: both"),
        ("7", {"seed": None, "vary_seed": True}, "not stand beside --vary-seed: both"),
        ("x", {"seed": None, "vary_seed": False}, "an integer >= 0 or random, got 'x'"),
    ],
)
def test_a_seed_of_hypothesis_that_cannot_be_followed_is_refused(
    given: str, values: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=f"--hypothesis-seed must (be )?{message}"):
        plugin._seeded(given, values)


def test_a_varied_seed_draws_other_examples(
    plant: Planter, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[set[int]] = []

    def violation(_: object, point: Point) -> float:
        drawn[-1].add(point.n)
        return 0.0

    plant(dataclasses.replace(ANY, violation=violation))
    for words in (["--seed", "1"], ["--seed", "1"], ["--vary-seed"]):
        drawn.append(set())
        run(CLAIMS, *words)
    assert drawn[0] == drawn[1] != drawn[2]
    monkeypatch.setattr(plugin, "_seeded", lambda *_: {"seed": 1})  # as hypothesis' own option does
    drawn.append(set())
    run(CLAIMS)
    assert drawn[3] == drawn[0]


def test_progress_tells_the_time_left(plant: Planter, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(toy_claims.RIGHT, toy_claims.EXACT)
    monkeypatch.setattr(plugin, "EVERY", -1.0)

    run(CLAIMS).stdout.fnmatch_lines(["  0 of 2 claims, * s, about * s left", "  1 of 2 claims, *"])
    assert "s left" not in run(CLAIMS, "-q").stdout.str()


def test_the_table_is_left_out_where_quiet(plant: Planter, run: Run) -> None:
    plant(toy_claims.RIGHT)

    run(CLAIMS).stdout.fnmatch_lines(["*verdict*claim*measured*predicted*", "*agrees*beyond/right*0.85*"])
    assert "predicted" not in run(CLAIMS, "-q").stdout.str()


def test_help_lists_the_options(run: Run) -> None:
    result = run("--help")

    assert result.ret == pytest.ExitCode.OK
    assert all(flag in result.stdout.str() for flag, _ in OPTIONS)


def test_the_checkout_loads_the_plugin_by_itself(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER.parent)
    words = ["-m", "pytest", "--collect-only", "-q", "--claim", "karakida2019/gram"]
    words += ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]  # which takes half of the time to load

    result = pytester.run(sys.executable, *words, "verify/test_claims.py")
    assert result.ret == pytest.ExitCode.OK
    assert "verify/test_claims.py::test_claim[karakida2019/gram]" in result.outlines


def test_it_runs_from_anywhere_as_from_an_installed_package(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    pytester.makeconftest("""
        import pytest

        from tests.verify import toy_claims
        from verify import plugin

        plugin.EVERY = -1.0
        toy_claims.replace_all(pytest.MonkeyPatch(), toy_claims.RIGHT, toy_claims.EXACT)
    """)

    words = ["-m", "pytest", *COMMON, "-p", "verify.plugin", "--pyargs", "verify.test_claims"]
    result = pytester.run(sys.executable, *words)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["  0 of 2 claims, * s, about * s left", "  1 of 2 claims, *"])
    assert last_line(result).startswith("2 agrees in ")
    assert load(pytester.path / "losscurv-report/results.json").suite.tier == "default"
