from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pytest

from tests.verify.results.sample_results import sample, sample_of_kinds
from tests.verify.results.sample_rows import point, row
from tests.verify.toy_claims import RIGHT
from verify.judging.intervals import FEWEST
from verify.model import Passage, Standing
from verify.page import terminal, wording
from verify.results import InventoryRow, Row

LONG = dataclasses.replace(RIGHT, id="beyond/of-the-largest-of-several-eigenvalues-in-the-mean")


def printed(rows: Sequence[Row], width: int) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        return "\n".join(terminal.table(rows))


def test_tally_counts_verdicts_and_expected_disagreements() -> None:
    direct = "10 agrees, 3 disagrees (2 expected), 1 undecided, 1 broken"

    assert terminal.tally(sample().rows) == f"{direct}; model-based: 1 agrees"
    assert terminal.tally(sample_of_kinds().rows) == (
        "6 agrees, 2 disagrees (2 expected); model-based: 2 agrees, 2 disagrees (2 expected), 2 undecided"
    )


def test_tally_leaves_out_what_did_not_happen() -> None:
    rows = [
        row("a/b"),
        row("a/c", reading="as our copy reads"),
        row("a/d", expected="disagrees", surprise=True),
    ]

    assert terminal.tally(rows) == "2 agrees, 1 disagrees (1 expected)"


@pytest.mark.parametrize("width", [80, 100, 200])
def test_every_row_has_its_line_and_none_is_too_wide(width: int) -> None:
    rows = [*sample().rows, *sample_of_kinds().rows]
    lines = printed(rows, width).splitlines()
    verdicts = [line.split()[1] for line in lines if line[:1] in "●◆○✕"]

    assert max(map(len, lines)) <= width
    assert verdicts == [item.verdict for item in rows]


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_ids_and_numbers_are_whole_at_every_width(width: int) -> None:
    long = "karakida2019/subtracted-growth-at-fixed-samples"
    rows = [*sample().rows, row(long, points=[point({"dim": 30}, 1.5, 0.1, 1.53, 0.1)])]
    lines = printed(rows, width).splitlines()

    assert max(map(len, lines)) <= width
    assert all(any(item.claim in line for line in lines) for item in rows)
    text = " ".join(" ".join(lines).split())
    assert "2.158 ± 0.022" in text and "12.41 ± 0.37" in text and "3/4" in text


def test_statements_keep_ids_whole_and_say_whose_they_are() -> None:
    made = InventoryRow(
        paper="a_paper", id="E1", title="a title of many words, " * 8, status="judged", reason="",
        claims=[LONG.id], observations=[], ours=True,
    )  # fmt: skip
    for standing, whose in ((Standing.KNOWN, "known elsewhere"), (Standing.OURS, "ours")):
        claims = {LONG.id: dataclasses.replace(LONG, passage=Passage(standing, "", ""))}
        lines = terminal.statement_lines([made], claims)
        assert lines[0] == "a_paper" and lines[1].split() == ["entry", "whose", "status", "statement"]
        assert " ".join(lines[2].split()).startswith(f"E1 {whose} judged a title of many words")
        assert lines[-1].strip() == LONG.id and max(map(len, lines)) <= 80
        assert terminal.statement_head([made], claims)[0] == f"1 statement: 1 {whose}."


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_table_fits_and_keeps_its_cells_whole(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    head = ("layer", "parameters of it", "largest eigenvalue", "trace")
    rows = [("a-name", "1300", "1.854e-05", "9.2 exact"), ("b", "", "0.35", "4.7")]
    lines = terminal.fitted_table(head, rows)

    assert max(map(len, lines)) <= width
    words = {word.rstrip(",") for line in lines for word in line.split()}
    assert {part for row in rows for cell in row for part in cell.split()} <= words
    assert {part for name in head for part in name.split()} <= words
    assert (len(lines) == 1 + len(rows)) == (width >= 60)


def test_a_wide_terminal_shows_names_numbers_and_rivals_in_full() -> None:
    text = printed(sample().rows, 200)

    assert "granziol2022/theorem-4" in text and "as our copy reads" in text
    assert "2.158 ± 0.022" in text and "3/4" in text and "∞" in text
    assert text.count("SURPRISE") == 2


def test_surprise_block_has_all_it_takes_to_look_into_it() -> None:
    item = next(item for item in sample().rows if item.id == "vysogorets2024/eq-12")

    block = terminal.surprise_block(item)

    facts = {line[2:14].strip(): line[14:] for line in block.splitlines()[1:] if line[2:14].strip()}
    assert block.startswith("SURPRISE vysogorets2024/eq-12: disagrees, expected agrees\n")
    assert facts["theory"] == "2.4" and facts["measured"] == "2.5501"
    assert facts["half-width"] == "0.0098 (statistical 0.0098)"
    assert facts["deviation"] == "15.3 half-widths, 6.25 margins"
    assert facts["sizes"] == "batch size = 96, dim = 300, sigma = 0.9"
    assert facts["seed"] == "20240501" and facts["replicates"] == "768"
    assert facts["rerun"] == item.rerun


def test_a_broken_check_says_what_broke() -> None:
    item = next(item for item in sample().rows if item.verdict == "broken")

    block = terminal.surprise_block(item)

    assert block.startswith("BROKEN karakida2019/crash") and "ValueError: <nan>" in block


@pytest.mark.parametrize("measured", [math.nan, math.inf])
def test_a_surprise_without_numbers_still_has_a_block(measured: float) -> None:
    odd = point({}, 1.0, 0.0, measured, math.inf, verdict="disagrees", looks=[])
    item = row("a/b", verdict="disagrees", surprise=True, points=[odd], rerun="losscurv report")

    assert "that of the run" in terminal.surprise_block(item)
    assert "none" in terminal.surprise_block(dataclasses.replace(item, points=[]))


def test_model_based_rows_are_marked_in_the_table() -> None:
    rows = sample_of_kinds().rows

    assert printed(rows, 120).count("model-based") == sum(item.model_based for item in rows) == 6


def facts_of(claim: str) -> dict[str, str]:
    """What the block of a row would say if it were a surprise."""
    item = next(item for item in sample_of_kinds().rows if item.id == claim)
    facts: dict[str, list[str]] = {}
    for line in terminal.surprise_block(item).splitlines()[1:]:
        facts.setdefault(line[2:14].strip() or list(facts)[-1], []).append(line[14:])
    return {name: " ".join(text) for name, text in facts.items()}


def test_a_block_says_what_rests_on_a_size_model() -> None:
    facts = facts_of("granziol2022/edge as written")

    assert facts["half-width"] == "0.004 (statistical 0.0016, of the size model 0.0024)"
    assert facts["model-based"] == "rests on the declared powers of the size"
    assert "model-based" not in facts_of("karakida2019/upper")


def test_a_block_names_the_replicates_that_break_a_bound_and_how_to_draw_them() -> None:
    facts = facts_of("karakida2019/always as written")

    assert facts["violations"].startswith("replicate 7 (by 0.013), 30 (by 0.026)")
    assert facts["violations"].endswith("168 (by 0.104)")
    assert facts["draw again"] == f"{facts['rerun']} --replicates 176"
    assert facts["slack"] == "1.1 (measured / bound)"


def test_violations_are_drawn_again_with_their_own_number_of_replicates() -> None:
    """A number given for the run is replaced, and no verdict is tried before 96."""
    item = next(item for item in sample_of_kinds().rows if item.id == "karakida2019/always as written")
    short = dataclasses.replace(item, rerun="losscurv report --replicates 4096 --device cuda")
    early = dataclasses.replace(item.points[0], violations=item.points[0].violations[:1])

    assert wording.redraw(short, item.points[0]) == "losscurv report --device cuda --replicates 176"
    assert wording.redraw(short, early).endswith(f"--replicates {FEWEST}")
