"""Commands and options: what is judged, what is printed, and the status at the end."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.verify import toy_claims
from tests.verify.command_line import ROOT, Planter, elsewhere, judged, words_of
from tests.verify.results.sample_results import sample
from tests.verify.toy_claims import plant
from verify import results
from verify.claims import registry
from verify.claims.registry import count_statements
from verify.cli import main
from verify.heartbeat import Heartbeat
from verify.judging.judge import labels
from verify.model import AnyClaim, Tier
from verify.page import report
from verify.results import load
from verify.running import request, suite
from verify.running.options import OPTIONS, require_writable
from verify.running.request import requested

__all__ = ["elsewhere", "plant"]

COMMANDS = ("report", "claims", "estimate", "plot", "gallery", "replay", "measure", "plan")


def test_as_expected_is_status_0_and_leaves_a_report(
    plant: Planter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, toy_claims.MISPRINT, toy_claims.EXACT, page=True)

    assert judged("--report-dir", "out") == 0
    output = capsys.readouterr()
    assert output.out.splitlines()[-1] == "3 agrees, 1 disagrees (1 expected)"
    assert f"report: {Path('out/report.html')}" in output.out
    assert "tier default, seed 2024, 1 worker, cpu" in output.err
    assert [row.verdict for row in load(tmp_path / "out/results.json").rows].count("agrees") == 3
    page = words_of(tmp_path / "out/report.html")
    assert "3 readings agree with experiment" in page and "1 reading fails, as foreseen" in page
    assert (tmp_path / "out/cards/beyond.html").exists() and (tmp_path / "out/about.html").exists()


def test_one_file_is_the_whole_report(plant: Planter, tmp_path: Path) -> None:
    plant(toy_claims.RIGHT, toy_claims.MISPRINT, page=True)

    assert judged("--report-dir", "out", "--one-file") == 0
    assert not (tmp_path / "out/cards").exists() and not (tmp_path / "out/about.html").exists()
    page = words_of(tmp_path / "out/report.html")
    assert toy_claims.RIGHT.margin_reason in page and "What this suite cannot see" in page
    assert judged("--report-dir", "out") == 0
    assert toy_claims.RIGHT.margin_reason not in words_of(tmp_path / "out/report.html")
    assert main(["plot", "out", "--one-file"]) == 0
    assert toy_claims.RIGHT.margin_reason in words_of(tmp_path / "out/report.html")


def test_whatever_comes_of_a_claim_has_its_place_on_the_page(plant: Planter) -> None:
    everything = (
        *(toy_claims.RIGHT, toy_claims.MISPRINT, toy_claims.WRONG, toy_claims.TIGHT, toy_claims.BROKEN),
        *(toy_claims.EXACT, toy_claims.SEEN, toy_claims.LOST),
    )
    plant(*everything, page=True)

    assert judged("--report-dir", "out") == 1
    first = words_of(Path("out/report.html"))
    page = " ".join(map(words_of, sorted(Path("out").rglob("*.html"))))
    assert all(page.count(made.id) > 1 for made in everything)
    assert "3 readings agree with experiment" in first and "1 reading fails, as foreseen" in first
    assert "3 surprises" in first and "7 readings were judged; 1 undecided" in first


def test_a_surprise_is_status_1_and_a_block_of_numbers(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, toy_claims.WRONG)

    assert judged("--seed", "7") == 1
    text = capsys.readouterr().out
    for word in ("theory", "margin", "measured", "half-width", "deviation", "sizes", "seed        7"):
        assert word in text
    assert "rerun       losscurv report --claim beyond/wrong --seed 7 --tier default" in text


def test_a_broken_check_is_shown_and_the_others_still_run(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.BROKEN, toy_claims.RIGHT)

    assert judged() == 1
    text = capsys.readouterr().out
    assert "RuntimeError: the detector is off" in text
    assert "BROKEN beyond/broken" in text
    assert text.splitlines()[-1] == "1 agrees, 0 disagrees (0 expected), 1 broken"


def test_what_may_be_undecided_passes_unless_strict(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(*toy_claims.MANY_RIGHT, toy_claims.TIGHT)

    assert judged() == 0
    assert capsys.readouterr().out.splitlines()[-1] == "20 agrees, 0 disagrees (0 expected), 1 undecided"
    assert judged("--strict-undecided") == 1


def test_a_run_that_decides_too_little_fails_whatever_is_selected(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(*toy_claims.MANY_RIGHT, toy_claims.TIGHT, replace(toy_claims.TIGHT, id="beyond/tight-too"))

    assert judged() == 1
    assert "2 of 22 verdicts are undecided, more than 5%" in capsys.readouterr().err
    assert judged("--claim", "beyond/tight") == 1
    assert judged("--claim", "beyond/right-3") == 0


@pytest.mark.parametrize(
    ("claim", "why"),
    [(toy_claims.STILL, "zero variance"), (toy_claims.UNFORESEEN, "budget")],
)
def test_what_ends_undecided_against_its_registration_fails_a_run_at_its_own_budget(
    claim: AnyClaim, why: str, plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(*toy_claims.MANY_RIGHT, claim)

    assert judged() == 1
    told = capsys.readouterr().out
    assert f"SURPRISE {claim.id}: undecided, expected agrees" in told and why in told
    assert judged("--replicates", "128") == 0  # one that the caller chose
    assert judged("--replicates", "256") == 1  # as many as it declares


def test_a_run_too_short_for_any_verdict_is_refused(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, toy_claims.EXACT)

    assert judged("--replicates", "95") == 2
    assert "--replicates must be at least 96, got 95" in capsys.readouterr().err
    assert judged("--replicates", "16", "--claim", "beyond/exact") == 0  # it has none


def test_a_planted_error_that_is_missed_fails_the_run(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT)
    monkeypatch.setattr(suite, "PLANTED", (toy_claims.RIGHT,))

    assert judged() == 1
    assert "planted errors not caught, this run proves nothing: beyond/right" in capsys.readouterr().err


def test_json_is_the_results_file(plant: Planter, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.RIGHT, toy_claims.TIGHT)

    assert judged("--json", "--report-dir", "out") == 1
    assert capsys.readouterr().out == (tmp_path / "out/results.json").read_text(encoding="utf-8")


def test_infinity_is_a_string_in_json(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.STILL)

    assert judged("--json") == 1
    point = json.loads(capsys.readouterr().out)["rows"][0]["points"][0]
    assert point["upper"] == "inf"


def test_options_decide_what_is_judged_and_how(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.RIGHT, toy_claims.WRONG, toy_claims.EXACT)

    assert judged("--tier", "smoke", "--json", "--replicates", "96", "--seed", "11") == 0
    smoke = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in smoke["rows"]] == ["beyond/right", "beyond/exact"]
    assert (smoke["suite"]["seed"], smoke["suite"]["replicates"]) == (11, 96)
    assert judged("--claim", "beyond/wrong", "--json", "--tier", "smoke", "--report-dir", "one") == 1
    assert [row["id"] for row in json.loads(capsys.readouterr().out)["rows"]] == ["beyond/wrong"]


def test_a_varied_seed_is_printed_and_can_be_given_again(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT)

    assert judged("--vary-seed", "--json") == 0
    output = capsys.readouterr()
    first = json.loads(output.out)
    assert f"seed {first['suite']['seed']}" in output.err
    assert judged("--seed", str(first["suite"]["seed"]), "--json") == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["sha256"] == first["runs"][0]["sha256"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--claim beyond/rihgt", "got 'beyond/rihgt'; did you mean beyond/right?"),
        ("--paper nobody2020", "paper must be one of vysogorets2024, "),
        ("--paper karakida2019", "--paper must leave at least one claim, got none with --tier default"),
        ("--claim beyond/right --paper karakida2019", "--claim and --paper must leave at least one claim"),
        ("--workers 0", "--workers must be at least 1, got 0"),
        ("--replicates 0", "--replicates must be at least 96, got 0"),
        ("--seed -1", "--seed must be at least 0, got -1"),
        ("--vary-seed --seed 1", "--vary-seed must not stand beside --seed"),
        ("--device tpu", "device must be auto, cpu, cuda or cuda:<index>, got 'tpu'"),
        (
            "--device cuda:99",
            "device must be present on this machine, got 'cuda:99'; use --device cpu or auto",
        ),
        ("--executor localhost:1", "executor must be dask://host:port, got 'localhost:1'"),
        ("--replay nowhere.json", "losscurv: file not found: nowhere.json"),
        ("--data nowhere.npz", "nowhere.npz"),
        ("--report-dir file/below", "--report-dir must be a folder that can be written, got file"),
        ("--report-dir file", "--report-dir must be a folder that can be written, got file"),
        ("--tier huge", "losscurv report: argument --tier: invalid choice: 'huge'"),
        ("--seed x", "losscurv report: argument --seed: invalid int value: 'x'; see losscurv report --help"),
        (
            "--frobnicate",
            "losscurv report: unrecognized arguments: --frobnicate; see losscurv report --help",
        ),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    words: str, message: str, plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT)
    Path("file").write_text("", encoding="utf-8")

    assert main(["report", *words.split()]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    last = output.err.splitlines()[-1]
    assert message in last
    assert last.startswith("losscurv")
    assert len([line for line in output.err.splitlines() if not line.startswith("losscurv: tier ")]) == 1


def test_a_missing_extra_says_how_to_install_it(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT)
    monkeypatch.setitem(sys.modules, "distributed", None)

    assert main(["report", "--executor", "dask://localhost:1"]) == 2
    assert "pip install 'losscurv[cluster]'" in capsys.readouterr().err


def test_a_report_that_cannot_be_written_still_prints_what_was_judged(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "losscurv-report/results.json")

    monkeypatch.setattr(report, "write", full)
    assert judged() == 2
    output = capsys.readouterr()
    assert output.out.splitlines()[-1] == "1 agrees, 0 disagrees (0 expected)"
    expected = (
        "losscurv: losscurv-report/results.json: No space left on device; free some space and run again"
    )
    assert output.err.splitlines()[-1] == expected


def test_claims_lists_every_statement_and_says_what_it_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["claims", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == len(registry.inventory())
    assert {row["whose"] for row in listed} <= {"paper", "known elsewhere", "ours"}
    assert all((row["whose"] == "paper") != row["ours"] for row in listed)
    assert main(["claims"]) == 0
    lines = capsys.readouterr().out.splitlines()
    made = sum(row["whose"] == "paper" for row in listed)
    assert lines[0].startswith(f"{len(listed)} statements: {made} made by papers (")
    claims = registry.claims()
    readings = sum(len(labels(claim)) for claim in claims)
    assert f"They are judged by {len(claims)} claims, in {readings} readings." in lines
    assert [line.split()[:2] for line in lines if line.startswith("A ")] == [
        ["A", word] for word in ("statement", "claim", "reading")
    ]
    assert max(map(len, lines)) <= 80
    words = {word for line in lines for word in line.split()}
    assert set(registry.ids()) <= words


def test_claims_say_whose_a_statement_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--paper", "granziol2022", "--paper", "edge"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if line.endswith("  statement")] == [
        ["entry", "whose", "status", "statement"]
    ] * 2
    assert any(line.split()[:2] == ["E6", "ours"] for line in lines)
    assert any(line.split()[:2] == ["B1", "paper"] for line in lines)
    assert "granziol2022/law-of-the-edge (known elsewhere)" in " ".join(lines)


def test_claims_page_and_readme_count_alike(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    papers = Counter(row["status"] for row in listed if row["whose"] == "paper")
    counts = count_statements(registry.inventory())
    assert counts == papers
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    judged, partly = papers["judged"], papers["partly judged"]
    assert (
        f"Of the {papers.total()} statements of these papers {judged} are judged and {partly} in part"
        in readme
    )
    assert f"{len(listed) - papers.total()} more are ours" in readme
    page = report.document(replace(sample(), inventory=registry.inventory()))
    text = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    told = f"Of the {papers.total()} statements of the papers: judged {judged}, partly judged {partly}"
    assert told in text


def test_claims_can_be_narrowed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--json", "--paper", "karakida2019", "--status", "definition"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {(row["paper"], row["status"]) for row in listed} == {("karakida2019", "definition")}
    both = ["--status", "definition", "--status", "not checkable here"]
    assert main(["claims", "--json", "--paper", "karakida2019", *both]) == 0
    found = {row["status"] for row in json.loads(capsys.readouterr().out)}
    assert found == {"definition", "not checkable here"}
    assert main(["claims", "--paper", "nobody2020"]) == 2
    assert "paper must be one of" in capsys.readouterr().err
    assert main(["claims", "--status", "unheard-of"]) == 2
    assert "invalid choice: 'unheard-of' (choose from 'judged', 'partly judged', " in capsys.readouterr().err


def test_plot_draws_from_the_file_alone(capsys: pytest.CaptureFixture[str]) -> None:
    small = replace(sample(), rows=sample().rows[2:3], planted=[], observations=sample().observations[1:2])
    Path("run").mkdir()
    results.save(small, Path("run/results.json"))

    assert main(["plot", "run", "--output", "drawn"]) == 0
    assert "report: drawn" in capsys.readouterr().out
    assert Path("drawn/report.html").exists()
    assert list(Path("drawn/plots").glob("*.svg"))
    assert not Path("run/plots").exists()
    assert main(["plot", "run/results.json", "--output", "run/results.json/x"]) == 2
    expected = (
        "losscurv: --output must be a folder that can be written, got run/results.json/x: Not a directory\n"
    )
    assert capsys.readouterr().err == expected
    assert main(["plot"]) == 2
    told = "losscurv: no results in losscurv-report: run losscurv report first, or name a results file\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert f"usage: losscurv {command}" in capsys.readouterr().out


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)
    assert main(["report", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(flag in text for flag, _ in OPTIONS)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("losscurv ")
    assert main(["frobnicate"]) == 2
    assert capsys.readouterr().err.endswith("; see losscurv --help\n")


def test_the_command_that_has_become_a_script_says_which(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--network", "tiny"]) == 2
    told = capsys.readouterr().err
    assert (
        "invalid choice: 'bench'" in told and "; it is now python -m benchmarks.products, in a clone" in told
    )


def test_without_a_command_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("usage: losscurv ") and output.err == ""
    assert 'eval "$(register-python-argcomplete losscurv)"' in output.out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("clams", "claims"),
        ("--versoin", "--version"),
        ("claims --papre edge", "--paper"),
        ("claims --paper edeg", "edge"),
        ("claims --status jugded", "judged"),
        ("report --tier smok", "smoke"),
        ("report --paper granziol", "granziol2022"),
        ("report --claim softmax-rank", "vysogorets2024/softmax-rank"),
        ("report --claim granzoil2022/theorem-4", "granziol2022/theorem-4"),
        ("report beyond/right", "--claim beyond/right"),
        ("plot --claim edge/level", "edge/levels"),
        ("measure --modle net.py:build --data digits", "--model"),
        ("plan --model net.py:build --data digits --batch-sizes 16 --optimizer Sdg", "sgd"),
        ("gallery zon", "zone"),
        ("estimate softmax.gama 0.5,0.5", "softmax.gamma"),
        ("estimate stability-limt 2", "learning_rates.stability_limit"),
        ("estimate outlier --list", "outliers"),
    ],
)
def test_a_mistyped_name_is_refused_with_the_one_that_was_meant(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    output = capsys.readouterr()
    assert output.out == "" and re.search(
        rf"; did you mean {re.escape(meant)}(\?| or )", output.err.splitlines()[-1]
    )


def test_missing_images_are_told_before_any_claim_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr(registry, "select", never)
    assert main(["report", "--claim", "nope", "--data", "nofile.npz"]) == 2
    told = capsys.readouterr().err
    assert "file not found: nofile.npz; check the path or save it with numpy.savez" in told


def test_progress_tells_the_time_left(
    plant: Planter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.RIGHT, toy_claims.EXACT)
    monkeypatch.setattr(Heartbeat, "EVERY", 0.001)

    assert judged() == 0
    assert " of 2 claims, " in (text := capsys.readouterr().err)
    assert " s left" in text


def test_a_writable_folder_is_left_as_it_was(tmp_path: Path) -> None:
    require_writable(tmp_path / "a/b")

    assert list((tmp_path / "a/b").iterdir()) == []


def test_workers_are_not_started_for_seconds_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "default_workers", lambda *_: 7)

    def workers(**values: Any) -> int:
        return requested(values, tier=Tier.DEFAULT, report_dir=None).settings.workers

    assert workers(claim=["vysogorets2024/softmax-rank"]) == 1
    assert workers(claim=["vysogorets2024/softmax-rank"], workers=3) == 3
    assert workers(paper=["karakida2019"]) == 7


def test_a_plan_speaks_of_what_it_runs(plant: Planter) -> None:
    plant(toy_claims.RIGHT)
    made = requested({"workers": 3, "seed": 4}, tier=Tier.FULL, report_dir=None)
    assert str(made) == "tier full, seed 4, 3 workers, cpu"
    far = requested({"workers": 3, "executor": "dask://host:8786"}, tier=Tier.SMOKE, report_dir="x")
    assert str(far) == "tier smoke, seed 2024, dask://host:8786, cpu"
    assert far.report_dir == Path("x")
