"""Statements by paper: outcomes as the first page counts them, and the largest deviation under a paper's condition."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.verify.command_line import elsewhere
from tests.verify.page.full_size import full_size
from tests.verify.page.test_findings import FAILS, entry, failing, made
from tests.verify.results.sample_results import sample
from tests.verify.results.sample_rows import point
from verify import results
from verify.claims import registry
from verify.cli import main
from verify.page import report
from verify.page.counts import run_verdict, scorecard
from verify.page.outcomes import MARKS
from verify.results import Results, Row

__all__ = ["elsewhere"]


def of(rows: list[Row]) -> Results:
    entries = sorted({name for row in rows for name in row.entries} | {"B9"})
    return replace(sample(), rows=rows, inventory=[*map(entry, entries)])


def test_outcomes_are_those_of_the_first_page() -> None:
    run = full_size()
    card, total = scorecard(run), Counter[str]()
    for one in card.papers:
        total.update(one.outcomes)
        assert sum(one.outcomes.values()) == sum(e.paper == one.paper and not e.ours for e in run.inventory)
    counts = {kind: int(words.split()[0]) for kind, words in run_verdict(run).outcomes}
    assert counts == {kind: total[MARKS[kind]] for kind in counts} and sum(counts.values()) > 100
    assert total[MARKS["seen"]] == total.total() - sum(counts.values())
    suite = run.suite
    assert [*card.run.values()] == [suite.version, suite.host["commit"], suite.selection]


def test_the_largest_deviation_is_under_the_papers_own_condition() -> None:
    near, farther = ([point({"dim": 3}, 2.0, 0.02, at, 0.001)] for at in (2.01, 2.5))
    told: dict[str, Any] = {"entries": ["B1"], "verdict": "disagrees"}
    rows = [
        made("stated", "theorem 1", entries=["B1"], points=near),
        failing("wrong", entries=["B2"], points=[point({"dim": 3}, 2.1, 0.02, 2.0, 0.001)]),
        *(
            failing(name, name, **told | {"points": farther})
            for name in ("ours", "outside its range", "misprint")
        ),
        made("exact", "theorem 1", **{**FAILS, **told, "kind": "identity", "points": farther}),
        made("undecided", "theorem 1", **told | {"verdict": "undecided", "points": farther}),
    ]
    (one,) = scorecard(of(rows)).papers
    assert (one.claim, one.deviation, round(one.margins)) == ("granziol2022/wrong", "5 % too large", 5)
    (one,) = scorecard(of([rows[0], *rows[2:]])).papers
    assert one.claim == "granziol2022/stated" and one.margins == pytest.approx(0.5)
    (one,) = scorecard(of(rows[2:])).papers
    assert (one.claim, one.margins, one.deviation) == ("", 0.0, "")


def test_without_a_report_the_registered_verdicts_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--scorecard", "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card["run"]["selection"] == "verdicts as registered" and card["run"]["version"]
    stated = Counter(row.paper for row in registry.inventory() if not row.ours)
    assert {one["paper"]: sum(one["outcomes"].values()) for one in card["papers"]} == stated
    assert not any(one["claim"] or one["outcomes"]["undecided"] for one in card["papers"])

    Path("losscurv-report").mkdir()
    results.save(sample(), Path("losscurv-report/results.json"))
    assert main(["claims", "--scorecard"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == "version 0.1.0, commit 0123456789ab, selection all"
    assert main(["claims", "--scorecard", "losscurv-report/results.json"]) == 0
    assert capsys.readouterr().out == printed


def test_the_first_page_has_the_same_table(tmp_path: Path) -> None:
    run = sample()
    page = report.write(run, tmp_path, map).read_text(encoding="utf-8")
    table = page.partition("Statements by paper</summary>")[2].partition("</table>")[0]
    for one in scorecard(run).papers:
        counts = "".join(f"<td>{count}</td>" for count in one.outcomes.values())
        assert f"<td>{one.paper}</td>{counts}" in table and one.claim in table


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--scorecard nowhere", "results file not found: nowhere"),
        ("overlap --scorecard", "--scorecard counts all statements and takes no other option but --json"),
    ],
)
def test_what_cannot_be_counted_is_one_sentence(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["claims", *words.split()]) == 2
    assert capsys.readouterr().err == f"losscurv: {message}\n"
