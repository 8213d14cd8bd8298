"""Commands and options: what is judged, what is printed, and the status at the end."""

import json
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.verify import toy_claims
from tests.verify.command_line import Planter, elsewhere, judged, words_of
from tests.verify.results.sample_results import sample
from tests.verify.toy_claims import plant
from verify import results
from verify.claims import registry
from verify.claims.registry import count_statements
from verify.cli import main
from verify.judging.judge import labels
from verify.model import Tier
from verify.page import report
from verify.results import load
from verify.running import request, suite
from verify.running.options import OPTIONS
from verify.running.request import requested

__all__ = ["elsewhere", "plant"]

COMMANDS = ("report", "claims", "estimate", "compare", "plot", "gallery", "replay", "measure", "plan")

Printed = pytest.CaptureFixture[str]


def printed_json(capsys: Printed) -> Any:
    return json.loads(capsys.readouterr().out)


# --- a run


def test_as_expected_is_status_0_and_leaves_a_report(plant: Planter, capsys: Printed) -> None:
    plant(toy_claims.RIGHT, toy_claims.MISPRINT, toy_claims.EXACT, page=True)

    assert judged("--report-dir", "out") == 0
    output = capsys.readouterr()
    assert output.out.splitlines()[-1] == "3 agrees, 1 disagrees (1 expected)"
    assert f"report: {Path('out/report.html')}" in output.out
    assert "tier default, seed 2024, 1 worker, cpu" in output.err
    assert [row.verdict for row in load(Path("out/results.json")).rows].count("agrees") == 3
    assert Path("out/cards/beyond.html").exists() and Path("out/about.html").exists()
    assert toy_claims.RIGHT.margin_reason not in words_of(Path("out/report.html"))
    assert main(["plot", "out", "--one-file"]) == 0
    assert toy_claims.RIGHT.margin_reason in words_of(Path("out/report.html"))


def test_whatever_comes_of_a_claim_has_its_place_on_the_page(plant: Planter, capsys: Printed) -> None:
    judgements = (
        toy_claims.RIGHT,
        toy_claims.MISPRINT,
        toy_claims.WRONG,
        toy_claims.TIGHT,
        toy_claims.BROKEN,
    )
    everything = (*judgements, toy_claims.EXACT, toy_claims.SEEN, toy_claims.LOST)
    plant(*everything, page=True)

    assert judged("--report-dir", "out", "--seed", "7") == 1
    page = " ".join(map(words_of, sorted(Path("out").rglob("*.html"))))
    assert all(page.count(made.id) > 1 for made in everything)
    text = capsys.readouterr().out
    assert "BROKEN beyond/broken" in text and "RuntimeError: the detector is off" in text
    assert (
        text.splitlines()[-1]
        == "3 agrees, 2 disagrees (1 expected), 1 undecided, 1 broken, 2 observed (1 broken)"
    )


def test_what_may_be_undecided_passes_unless_strict_or_too_much(plant: Planter, capsys: Printed) -> None:
    plant(*toy_claims.MANY_RIGHT, toy_claims.TIGHT)
    assert judged() == 0
    assert capsys.readouterr().out.splitlines()[-1] == "20 agrees, 0 disagrees (0 expected), 1 undecided"
    assert judged("--strict-undecided") == 1

    plant(*toy_claims.MANY_RIGHT, toy_claims.TIGHT, replace(toy_claims.TIGHT, id="beyond/tight-too"))
    assert judged() == 1
    assert "2 of 22 verdicts are undecided, more than 5%" in capsys.readouterr().err
    assert judged("--claim", "beyond/tight") == 1
    assert judged("--claim", "beyond/right-3") == 0


def test_a_run_too_short_for_any_verdict_is_refused(plant: Planter) -> None:
    plant(toy_claims.RIGHT, toy_claims.EXACT, toy_claims.SEEN)

    assert judged("--replicates", "95") == 2
    for name, count, status in (
        ("exact", "1", 0),
        ("seen", "1", 0),
        ("exact", "0", 2),
    ):  # these have no verdict
        assert judged("--replicates", count, "--claim", f"beyond/{name}") == status


def test_a_planted_error_that_is_missed_fails_the_run(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    plant(toy_claims.RIGHT)
    monkeypatch.setattr(suite, "PLANTED", (toy_claims.RIGHT,))

    assert judged() == 1
    assert (
        "planted errors were not caught, so this run proves nothing: beyond/right" in capsys.readouterr().err
    )


def test_options_decide_what_is_judged_and_json_is_the_results_file(plant: Planter, capsys: Printed) -> None:
    plant(toy_claims.RIGHT, toy_claims.WRONG, toy_claims.EXACT)

    assert (
        judged("--tier", "smoke", "--json", "--replicates", "96", "--seed", "11", "--report-dir", "out") == 0
    )
    text = capsys.readouterr().out
    assert text == Path("out/results.json").read_text(encoding="utf-8")
    smoke = json.loads(text)
    assert [row["id"] for row in smoke["rows"]] == ["beyond/right", "beyond/exact"]
    assert (smoke["suite"]["seed"], smoke["suite"]["replicates"]) == (11, 96)
    assert judged("--claim", "beyond/wrong", "--json", "--tier", "smoke") == 1
    assert [row["id"] for row in printed_json(capsys)["rows"]] == ["beyond/wrong"]


def test_a_varied_seed_is_printed_and_can_be_given_again(plant: Planter, capsys: Printed) -> None:
    plant(toy_claims.RIGHT)

    assert judged("--vary-seed", "--json") == 0
    output = capsys.readouterr()
    first = json.loads(output.out)
    assert f"seed {first['suite']['seed']}" in output.err
    assert judged("--seed", str(first["suite"]["seed"]), "--json") == 0
    assert printed_json(capsys)["runs"][0]["sha256"] == first["runs"][0]["sha256"]


def test_a_missing_extra_says_how_to_install_it(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    plant(toy_claims.RIGHT)
    monkeypatch.setitem(sys.modules, "distributed", None)

    assert main(["report", "--executor", "dask://localhost:1"]) == 2
    assert "pip install 'losscurv[cluster]'" in capsys.readouterr().err


def test_a_report_that_cannot_be_written_still_prints_what_was_judged(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    plant(toy_claims.RIGHT)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "a/results.json")

    monkeypatch.setattr(report, "write", full)
    assert judged() == 2
    output = capsys.readouterr()
    assert output.out.splitlines()[-1] == "1 agrees, 0 disagrees (0 expected)"
    expected = "losscurv: a/results.json: No space left on device; free some space and run again"
    assert output.err.splitlines()[-1] == expected


def test_missing_images_are_told_before_any_claim_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    monkeypatch.delattr(registry, "select")
    assert main(["report", "--claim", "nope", "--data", "nofile.npz"]) == 2
    assert "file not found: nofile.npz; check the path or save it" in capsys.readouterr().err


def test_a_request_speaks_of_what_it_runs(plant: Planter, monkeypatch: pytest.MonkeyPatch) -> None:
    """And starts no workers for seconds of work."""
    monkeypatch.setattr(request, "default_workers", lambda *_: 7)
    softmax = {"claim": ["vysogorets2024/softmax-rank"]}
    for values, workers in ((softmax, 1), (softmax | {"workers": 3}, 3), ({"paper": ["karakida2019"]}, 7)):
        assert requested(values, tier=Tier.DEFAULT, report_dir=None).settings.workers == workers
    plant(toy_claims.RIGHT)
    far = requested({"workers": 3, "executor": "dask://host:8786"}, tier=Tier.SMOKE, report_dir="x")
    assert str(far) == "tier smoke, seed 2024, dask://host:8786, cpu" and far.report_dir == Path("x")


# --- the inventory


def test_claims_lists_every_statement_and_says_what_it_counts(capsys: Printed) -> None:
    assert main(["claims", "--json"]) == 0
    listed = printed_json(capsys)
    assert len(listed) == len(registry.inventory())
    assert {row["whose"] for row in listed} == {"paper", "known elsewhere", "ours"}
    assert all((row["whose"] == "paper") != row["ours"] for row in listed)
    papers = Counter(row["status"] for row in listed if row["whose"] == "paper")
    assert count_statements(registry.inventory()) == papers
    assert main(["claims"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"{len(listed)} statements: {papers.total()} made by papers, " in "\n".join(lines)
    claims = registry.claims()
    readings = sum(len(labels(claim)) for claim in claims)
    assert f"They are judged by {len(claims)} claims, in {readings} readings." in lines
    assert max(map(len, lines)) <= 80 and len(lines) <= 24
    assert [line.split()[0] for line in lines[1 : 1 + len(registry.papers())]] == [*registry.paper_ids()]


def test_claims_can_be_narrowed(capsys: Printed) -> None:
    assert main(["claims", "--json", "--paper", "karakida2019", "not checkable here"]) == 0
    found = {(row["paper"], row["status"]) for row in printed_json(capsys)}
    assert found == {("karakida2019", "not checkable here")}
    assert main(["claims", "--paper", "granziol2022", "--paper", "edge"]) == 0
    lines = [tuple(line.split()[:2]) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ("granziol2022", "B1") and lines[-1] == ("edge", "E13")
    assert main(["claims", "B13", "--paper", "granziol2022"]) == 0
    assert capsys.readouterr().out.startswith("granziol2022 B13 ")


def test_every_word_is_searched_for_and_each_statement_is_a_line_with_whole_ids(capsys: Printed) -> None:
    assert main(["claims", "judged"]) == 0
    ids = {word.strip(",:") for word in capsys.readouterr().out.split()}
    assert {claim.id for claim in registry.claims()} <= ids
    found = list[str]()
    for words in (["OVERLAP"], ["overlap", "granziol2022"], ["overlap", "nowhere"]):
        assert main(["claims", *words]) == 0
        found.append(capsys.readouterr().out)
    assert "granziol2022/theorem-10" in found[1] and 2 < found[1].count("\n") < found[0].count("\n")
    assert found[2] == "no statement has all of these; for the papers, see losscurv claims\n"


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("eq. (8)", "vysogorets2024/eq-8"),
        ("κ₂", "karakida2019/not-centred"),
        ("Normalization", "normalisation"),
        ("normali", "normalisation"),
        ("(", "no statement has all of these"),
        ("goldilox", "no statement has all of these; did you mean goldilocks?"),
    ],
)
def test_words_are_found_in_any_spelling(word: str, found: str, capsys: Printed) -> None:
    assert main(["claims", word]) == 0
    assert found in capsys.readouterr().out


# --- other commands


def test_plot_draws_from_the_file_alone(capsys: Printed) -> None:
    small = replace(sample(), rows=sample().rows[2:3], planted=[], observations=sample().observations[1:2])
    Path("run").mkdir()
    results.save(small, Path("run/results.json"))

    assert main(["plot", "run", "--output", "drawn"]) == 0
    assert "report: drawn" in capsys.readouterr().out
    assert Path("drawn/report.html").exists() and not Path("run/report.html").exists()
    assert main(["plot", "run/results.json", "--output", "run/results.json/x"]) == 2
    told = "--output: cannot write to folder run/results.json/x: Not a directory"
    assert capsys.readouterr().err == f"losscurv: {told}\n"
    assert main(["plot"]) == 2
    assert "no results in losscurv-report: run losscurv report first" in capsys.readouterr().err


def test_help_and_version(capsys: Printed) -> None:
    for command in COMMANDS:
        assert main([command, "--help"]) == 0
        text = capsys.readouterr().out
        assert f"usage: losscurv {command}" in text
        assert command != "report" or all(flag in text for flag, _ in OPTIONS)
    for words in ([], ["--help"]):
        assert main(words) == 0
        text = capsys.readouterr().out
        assert text.startswith("usage: losscurv ") and all(command in text for command in COMMANDS)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("losscurv ")
    assert main(["frobnicate"]) == 2
    assert capsys.readouterr().err.endswith("; see losscurv --help\n")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("clams", "claims"),
        ("--versoin", "--version"),
        ("claims --paper edeg", "edge"),
        ("report --tier smok", "smoke"),
        ("report --claim softmax-rank", "vysogorets2024/softmax-rank"),
        ("report --claim granzoil2022/theorem-4", "granziol2022/theorem-4"),
        ("report beyond/right", "--claim beyond/right"),
        ("plot --claim edge/level", "edge/levels"),
        ("measure --modle net.py:build --data digits", "--model"),
        ("gallery netwrok", "network"),
        ("estimate softmax.gama 0.5,0.5", "softmax.gamma"),
        ("estimate outlier --list", "outliers"),
    ],
)
def test_a_mistyped_name_is_refused_with_the_one_that_was_meant(
    words: str, meant: str, capsys: Printed
) -> None:
    assert main(words.split()) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert re.search(rf"; did you mean {re.escape(meant)}(\?| or )", output.err.splitlines()[-1])


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_closed_stream_changes_no_status(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has None for a stream that was closed before it started."""
    monkeypatch.setattr(sys, name, None)
    assert main(["estimate"]) == 0
    getattr(sys, name).close()
