"""The end of a run on one screen."""

from __future__ import annotations

import dataclasses

import pytest

from tests.verify.page.test_terminal import printed
from tests.verify.results.sample_results import sample
from tests.verify.results.sample_rows import point, row
from verify.page import summary, terminal
from verify.results import Results


def surprises(count: int) -> Results:
    rows = [row(f"beyond/wrong-{k}", verdict="disagrees", surprise=True, points=[point({"dim": 30}, 1, 0.1, 2, 0.1)])
            for k in range(count)]  # fmt: skip
    right = [row(f"granziol2022/right-{k}") for k in range(40)]
    return dataclasses.replace(sample(), rows=[*right, *rows], observations=[])


def screen(results: Results, **host: object) -> list[str]:
    suite = dataclasses.replace(results.suite, host={**results.suite.host, **host})
    results = dataclasses.replace(results, suite=suite)
    bad = [item for item in results.rows if item.surprise]
    tail = summary.ending(results, ["report: out/report.html"])
    return [*summary.screen(results, summary.to_look_at(results, bad), tail), *tail]


@pytest.mark.parametrize("count", [0, 1, 3, 50])
def test_it_fits_and_surprises_come_first(count: int) -> None:
    lines = screen(surprises(count))

    assert len(lines) <= summary.SCREEN and max(map(len, lines)) <= 120
    assert lines[0].startswith("SURPRISE beyond/wrong-0" if count else "granziol2022: 40")
    assert any("report: out/report.html" in line for line in lines)
    assert lines[-1] == terminal.tally(surprises(count).rows)


def test_what_has_no_room_is_named_and_counted() -> None:
    text = "\n".join(screen(surprises(50)))

    blocks = text.count("SURPRISE ")
    assert 1 <= blocks < 5 and f"{50 - blocks} more, on the page and by --table:" in text


def test_undecided_claims_have_a_block_that_says_why() -> None:
    item = row("beyond/tight", verdict="undecided", may_be_undecided="its tails are heavy", points=[
        point({"dim": 30}, 1, 0.1, 1.05, 0.2, verdict="undecided", reason="budget")])  # fmt: skip
    results = dataclasses.replace(surprises(0), rows=[item, *surprises(0).rows])

    lines = screen(results)
    assert lines[0] == "UNDECIDED beyond/tight: undecided, expected agrees"
    assert any(line.split()[:1] == ["why"] and "budget" in line for line in lines)
    assert any(line.split() == ["foreseen", "its", "tails", "are", "heavy"] for line in lines)


def test_findings_of_every_paper_are_there() -> None:
    results = dataclasses.replace(sample(), observations=[])
    text = "\n".join(screen(results))

    assert all(f"\n{paper}: " in text for paper in {item.paper for item in results.rows})


def test_seconds_of_processors_stand_beside_those_of_the_clock() -> None:
    lines = screen(surprises(0), wall_seconds=435.2, cpu_seconds=755.4, workers=2)

    assert "judged in 435 s on 2 workers, 755 CPU seconds" in lines
    told = screen(surprises(0), wall_seconds=435.2, cpu_seconds=755.4, main_seconds=40.3, workers=2)
    assert "judged in 435 s on 2 workers, 755 CPU seconds, 40 of them in the main process" in told
    assert not any(line.startswith("judged in") for line in screen(surprises(0), cpu_seconds=None))


def test_the_table_is_printed_where_it_is_short_asked_for_or_of_named_claims() -> None:
    long, short = surprises(0), dataclasses.replace(sample(), rows=sample().rows[: summary.FEW])
    named = dataclasses.replace(long.suite.census, left_out={"--claim": 400})

    assert summary.tabled(short, asked=False) and summary.tabled(long, asked=True)
    assert not summary.tabled(long, asked=False)
    assert summary.tabled(
        dataclasses.replace(long, suite=dataclasses.replace(long.suite, census=named)), asked=False
    )


def test_the_time_of_an_experiment_stands_once() -> None:
    rows = [
        row("granziol2022/a", experiment="granziol2022/draws", seconds=12.5),
        row("granziol2022/a", reading="as our copy reads", experiment="granziol2022/draws", seconds=12.5),
        row("granziol2022/b", experiment="granziol2022/draws", seconds=12.5),
        row("granziol2022/c", experiment="granziol2022/others", seconds=3.5),
    ]
    text = printed(rows, 140)

    assert text.count("12.5") == 1 and text.count("3.5") == 1
    assert text.count("as above") == 1 and text.count("with a") == 1
