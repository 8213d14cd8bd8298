from __future__ import annotations

import dataclasses
import io
import math

import pytest
from rich.console import Console

from tests.verify.sample_results import point, row, sample
from verify import terminal


def printed(table: object, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(table)
    return out.getvalue()


def test_tally_counts_verdicts_and_expected_disagreements() -> None:
    assert terminal.tally(sample().rows) == "11 agrees, 3 disagrees (2 expected), 1 undecided, 1 broken"


def test_tally_leaves_out_what_did_not_happen() -> None:
    rows = [
        row("a/b"),
        row("a/c", reading="as our copy reads"),
        row("a/d", expected="disagrees", surprise=True),
    ]

    assert terminal.tally(rows) == "2 agrees, 1 disagrees (1 expected)"


@pytest.mark.parametrize("width", [80, 100, 200])
def test_every_row_has_its_line_and_none_is_too_wide(width: int) -> None:
    rows = sample().rows
    lines = printed(terminal.table(rows), width).splitlines()
    verdicts = [line.split()[1] for line in lines if line[:1] in "●◆○✕"]

    assert max(map(len, lines)) <= width
    assert verdicts == [item.verdict for item in rows]


def test_the_whole_of_a_run_and_its_rows_give_the_same_table() -> None:
    results = sample()

    assert printed(terminal.table(results), 90) == printed(terminal.table(results.rows), 90)


def test_a_wide_terminal_shows_names_numbers_and_rivals_in_full() -> None:
    text = printed(terminal.table(sample()), 200)

    assert "granziol2022/theorem-4" in text and "as our copy reads" in text
    assert "2.158 ± 0.022" in text and "3/4" in text and "∞" in text
    assert text.count("SURPRISE") == 2


def test_markup_in_a_name_is_text() -> None:
    assert "a/[red]b" in printed(terminal.table([row("a/[red]b")]), 120)


def test_surprise_block_has_all_it_takes_to_look_into_it() -> None:
    item = next(item for item in sample().rows if item.id == "vysogorets2024/eq-12")

    block = terminal.surprise_block(item)

    facts = {line[2:14].strip(): line[14:] for line in block.splitlines()[1:] if line[2:14].strip()}
    assert block.startswith("SURPRISE vysogorets2024/eq-12: disagrees, expected agrees\n")
    assert facts["theory"] == "2.4" and facts["measured"] == "2.5501"
    assert facts["half-width"] == "0.0098 (statistical 0.0098, numerical 0)"
    assert facts["deviation"] == "15.3 half-widths, 6.25 margins"
    assert facts["sizes"] == "batch_size = 96, dim = 300, sigma = 0.9"
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
