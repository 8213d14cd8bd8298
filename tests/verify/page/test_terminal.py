"""Results on a terminal: tables that fit, blocks of surprises, and the end of a run on one screen."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.verify.results.sample_results import sample, sample_of_kinds
from tests.verify.results.sample_rows import point, row
from tests.verify.toy_claims import RIGHT
from verify.model import Passage, Standing
from verify.page import summary, terminal
from verify.page.counts import run_verdict
from verify.results import InventoryRow, Results

ROWS = {item.id: item for item in (*sample().rows, *sample_of_kinds().rows)}
LONG = replace(RIGHT, id="beyond/of-the-largest-of-several-eigenvalues-in-the-mean")


def test_tally_counts_verdicts_and_expected_disagreements() -> None:
    direct = "10 agrees, 3 disagrees (2 expected), 1 undecided, 1 broken"
    assert terminal.tally(sample().rows) == f"{direct}; model-based: 1 agrees"
    rows = [
        row("a/b"),
        row("a/c", reading="as our copy reads"),
        row("a/d", expected="disagrees", surprise=True),
    ]
    assert terminal.tally(rows) == "2 agrees, 1 disagrees (1 expected)"


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_every_row_has_its_line_and_ids_and_numbers_are_whole(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    long = "karakida2019/subtracted-growth-at-fixed-samples"
    rows = [*ROWS.values(), row(long, points=[point({"dim": 30}, 1.5, 0.1, 1.53, 0.1)])]
    lines = "\n".join(terminal.table(rows)).splitlines()
    text = " ".join(" ".join(lines).split())

    assert max(map(len, lines)) <= width
    assert [line.split()[1] for line in lines if line[:1] in "●◆○✕"] == [item.verdict for item in rows]
    assert all(any(item.claim in line for line in lines) for item in rows)
    for told in ("2.158 ± 0.022", "12.41 ± 0.37", "3/4", "as our copy reads", "∞"):
        assert told in text
    assert text.count("SURPRISE") == 2 and text.count("model-based") == sum(r.model_based for r in rows)


@pytest.mark.parametrize(
    ("standing", "whose"), [(Standing.KNOWN, "known elsewhere"), (Standing.OURS, "ours")]
)
def test_statements_keep_ids_whole_and_say_whose_they_are(
    standing: Standing, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = InventoryRow(
        paper="a_paper", id="E1", title="a title of many words, " * 8, status="judged", reason="",
        claims=[LONG.id], observations=[], ours=True,
    )  # fmt: skip
    claims = {LONG.id: replace(LONG, passage=Passage(standing, "", ""))}
    (line,) = terminal.statement_lines([made], claims)
    assert line.startswith(f"a_paper E1  judged, {whose}  a title of many words") and line.endswith(LONG.id)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    lines = terminal.statement_lines([made], claims)
    assert max(map(len, lines)) <= 80 and lines[-1].split()[-1] == LONG.id
    assert f"1 statements: 0 made by papers, 1 {whose}." in terminal.statements_by_paper([made], claims, [])


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_table_fits_and_keeps_its_cells_whole(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    head = ("layer", "parameters of it", "largest eigenvalue", "trace")
    rows = [("a-name", "1300", "1.854e-05", "9.2 exact"), ("b", "", "0.35", "4.7")]
    lines = terminal.fitted_table(head, rows)

    assert max(map(len, lines)) <= width
    words = {word.rstrip(",") for line in lines for word in line.split()}
    assert {part for cells in (head, *rows) for cell in cells for part in cell.split()} <= words
    assert (len(lines) == 1 + len(rows)) == (width >= 60)


# --- blocks


def facts_of(claim: str) -> dict[str, str]:
    """Return the facts in the block of a row, as if it were a surprise."""
    facts: dict[str, list[str]] = {}
    for line in terminal.surprise_block(ROWS[claim]).splitlines()[1:]:
        facts.setdefault(line[2:14].strip() or list(facts)[-1], []).append(line[14:])
    return {name: " ".join(text) for name, text in facts.items()}


def test_surprise_block_has_all_it_takes_to_look_into_it() -> None:
    item, facts = ROWS["vysogorets2024/eq-12"], facts_of("vysogorets2024/eq-12")
    said = "SURPRISE vysogorets2024/eq-12: disagrees, expected agrees\n"
    assert terminal.surprise_block(item).startswith(said)
    told = ("theory", "measured", "half-width", "deviation", "sizes", "replicates", "rerun")
    assert tuple(facts[name] for name in told) == (
        "2.4", "2.5501", "0.0098 (statistical 0.0098)", "15.3 half-widths, 6.25 margins",
        "batch size = 96, dim = 300, sigma = 0.9", "768", item.rerun,
    )  # fmt: skip
    block = terminal.surprise_block(ROWS["karakida2019/crash"])
    assert block.startswith("BROKEN karakida2019/crash") and "ValueError: <nan>" in block


def test_a_surprise_without_numbers_still_has_a_block() -> None:
    odd = point({}, 1.0, 0.0, math.nan, math.inf, verdict="disagrees", looks=[])
    item = row("a/b", verdict="disagrees", surprise=True, points=[odd], rerun="losscurv report")

    assert "losscurv report" in terminal.surprise_block(item)
    assert "none" in terminal.surprise_block(replace(item, points=[]))


def test_a_block_says_what_rests_on_a_size_model_and_which_replicates_break_a_bound() -> None:
    facts = facts_of("granziol2022/edge as written")
    assert facts["half-width"] == "0.004 (statistical 0.0016, of the size model 0.0024)"
    assert facts["model-based"] == "rests on the declared powers of the size"
    facts = facts_of("karakida2019/always as written")
    assert facts["violations"].startswith("replicate 7 (by 0.013), 30 (by 0.026)")
    assert facts["violations"].endswith("168 (by 0.104)") and "model-based" not in facts
    assert facts["slack"] == "1.1 (measured / bound)"


# --- the end of a run


def surprises(count: int) -> Results:
    points = [point({"dim": 30}, 1, 0.1, 2, 0.1)]
    rows = [row(f"beyond/wrong-{k}", verdict="disagrees", surprise=True, points=points) for k in range(count)]
    right = [row(f"granziol2022/right-{k}") for k in range(40)]
    return replace(sample(), rows=[*right, *rows], observations=[])


def screen(results: Results, **host: object) -> list[str]:
    suite = replace(results.suite, host={**results.suite.host, **host})
    results = replace(results, suite=suite)
    bad = [item for item in results.rows if item.surprise]
    tail = summary.ending(results, ["report: out/report.html"])
    return [*summary.screen(results, summary.to_look_at(results, bad)), *tail]


@pytest.mark.parametrize("count", [0, 1, 3, 50])
def test_it_fits_and_surprises_come_first(count: int) -> None:
    lines = screen(surprises(count))
    blocks = "\n".join(lines).count("SURPRISE ")

    assert len(lines) <= 40 and max(map(len, lines)) <= 120
    assert lines[0].startswith(
        "SURPRISE beyond/wrong-0" if count else f"{len(surprises(0).rows)} of 40 claims hold."
    )
    assert any("report: out/report.html" in line for line in lines)
    assert lines[-1] == terminal.tally(surprises(count).rows)
    assert blocks == count or f"{count - blocks} more, on the page and by --table:" in "\n".join(lines)
    assert 1 <= blocks < 5 or not count


def test_undecided_claims_have_a_block_that_says_why() -> None:
    item = row("beyond/tight", verdict="undecided", may_be_undecided="its tails are heavy", points=[
        point({"dim": 30}, 1, 0.1, 1.05, 0.2, verdict="undecided", reason="budget")])  # fmt: skip
    lines = screen(replace(surprises(0), rows=[item, *surprises(0).rows]))
    assert lines[0] == "UNDECIDED beyond/tight: undecided, expected agrees"
    assert any(line.split()[:1] == ["why"] and "budget" in line for line in lines)
    assert any(line.split() == ["foreseen", "its", "tails", "are", "heavy"] for line in lines)


def test_verdict_and_seconds_are_there() -> None:
    results = replace(sample(), observations=[])
    text = "\n".join(screen(results, wall_seconds=435.2, cpu_seconds=755.4))
    run = run_verdict(results)
    assert run.outcomes[0][1] in text and run.registered in " ".join(text.split())
    assert "judged in 435 s on 2 workers, 755 CPU seconds" in text
    assert "judged in" not in "\n".join(screen(results, cpu_seconds=None))
