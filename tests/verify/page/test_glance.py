"""The numbered statements at a glance: one line each, whose words follow from the rows that name it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.verify.page.full_size import full_size, undrawn
from tests.verify.page.test_findings import WRONG, entry, made, page_of, run
from tests.verify.results.sample_rows import point
from verify.page.report.queries import Statement, glances, place
from verify.results import Row

__all__ = ["undrawn"]

pytestmark = pytest.mark.usefixtures("undrawn")


WRONG_READING: dict[str, Any] = {"verdict": "disagrees", "expected": "disagrees", "points": WRONG}
FARTHER = WRONG_READING | {"points": [point({"dim": 3}, 16.0, 0.16, 2.0, 0.01)]}
REAL = {"data": "digits", "replicate": "one tanh network"}


def told(rows: list[Row]) -> list[Statement]:
    (statements,) = glances(run(rows, [entry("B1"), entry("B2")])).values()
    return statements


def there(statement: Statement) -> list[str]:
    """What is said of a statement on networks, each sort of readings after its name."""
    return [f"{found.sort}: " * bool(found.sort) + found.words for found in statement.networks]


def test_a_statement_says_what_it_comes_to_on_its_model_in_our_copy_and_on_networks() -> None:
    (theorem,) = told(
        [
            made("t-n", "theorem 4, on networks", standing="outside its range", **WRONG_READING, **REAL),
            made("t [as our copy reads]", "theorem 4", standing="misprint", **WRONG_READING),
            made("t", "theorem 4, eq. (9)", standing="corrected", entries=["B2"]),
        ]
    )
    assert (theorem.number, theorem.title, theorem.target) == (
        "Theorem 4",
        "title of B2",
        "row/granziol2022/t",
    )
    assert (theorem.verdict, theorem.holds) == ("agrees", "within 0.5 %")
    assert theorem.reads == "4 times too large"
    worst = "the worst 4 times too large on one tanh network"
    assert there(theorem) == [f"outside its range: 0 of 1 reading agrees, {worst}"]


def test_statements_of_several_entries_have_the_title_of_the_first_that_they_name() -> None:
    rows = [made("t", "theorem 4", entries=["B2", "B1"]), made("l", "theorem 5", entries=["B1", "B2"])]
    titles = {statement.number: statement.title for statement in told(rows)}
    assert titles == {"Theorem 4": "title of B2", "Theorem 5": "title of B1"}


def test_no_two_statements_of_a_paper_share_a_title() -> None:
    for paper, statements in glances(full_size()).items():
        titles = [statement.title for statement in statements]
        assert len(set(titles)) == len(titles), paper


def test_a_formula_on_networks_and_as_our_copy_reads_is_one_reading_there() -> None:
    """Beside the one that is repaired it would be counted twice; alone it stands for its claim."""
    rows = [
        made("t", "theorem 7"),
        made("n", "theorem 7, on networks", claim="granziol2022/n", **WRONG_READING, **REAL),
        made("n [as our copy reads]", "theorem 7, on networks", claim="granziol2022/n",
             reading="as our copy reads", **WRONG_READING, **REAL),
    ]  # fmt: skip
    (once,) = told(rows)[0].networks
    assert once.words == "0 of 1 reading agrees, the worst 4 times too large on one tanh network"
    assert there(told([rows[0], rows[2]])[0]) == [once.words]
    assert once.there == ["row/granziol2022/n"]

    worse = made("n [as our copy reads]", "theorem 7, on networks", claim="granziol2022/n",
                 reading="as our copy reads", **FARTHER, **REAL)  # fmt: skip
    assert there(told([*rows[:2], worse])[0]) == [
        "0 of 1 reading agrees, the worst 4 times too large and as our copy reads 8 times too large on one tanh network"
    ]


def test_what_fails_or_is_undecided_under_its_own_condition_says_so() -> None:
    failing, open_still = told(
        [
            made("f", "theorem 1", entries=["B1"], **WRONG_READING),
            made("u", "theorem 2", entries=["B2"], verdict="undecided"),
        ]
    )
    assert (failing.verdict, failing.holds) == ("disagrees", "4 times too large")
    assert (open_still.verdict, open_still.holds) == ("undecided", "undecided")
    assert (failing.reads, failing.networks) == ("", [])


def test_a_misprint_that_did_not_fail_is_none_and_a_surprise_stands_as_it_came_out() -> None:
    (theorem,) = told(
        [
            made("t", "theorem 1", entries=["B1"], surprise=True, **{**WRONG_READING, "expected": "agrees"}),
            made("t [as our copy reads]", "theorem 1", standing="misprint"),
        ]
    )
    assert (theorem.verdict, theorem.reads) == ("disagrees", "")


def test_theorems_stand_with_one_reading_equations_with_two_each_in_the_order_of_the_paper() -> None:
    rows = [
        made("e", "eq. (5)", entries=["B1"]),
        made("e2", "eq. (5)", entries=["B1"]),
        made("rare", "eq. (6)", entries=["B1"]),
        made("t", "theorem 1", entries=["B2"]),
        made("remark", "section 3", entries=["B1"]),
        made("o", "ours", standing="ours", entries=["B1"]),
    ]
    assert [s.number for s in told(rows)] == ["Eq. (5)", "Theorem 1"]
    (statements,) = glances(run(rows), most=1).values()
    assert [s.number for s in statements] == ["Theorem 1"]


def test_a_paper_without_numbers_has_no_lines_and_a_page_without_them_no_table() -> None:
    shown = run([made("remark", "section 3")])
    assert glances(shown) == {}
    assert 'id="glance"' not in page_of(shown)


def test_on_the_page_each_line_leads_to_its_card_and_to_all_of_its_readings() -> None:
    html = page_of(run([made("t", "theorem 4", entries=["B1"])], [entry("B1")]))
    assert 'data-query="paper=granziol2022&amp;q=theorem%204">Theorem 4</a>' in html
    assert html.count("on real networks</th>") == 1 == html.count('data-label="on real networks"')
    assert "no misprint found" in html and "not judged there" in html


def test_a_place_is_said_without_the_authors() -> None:
    row = made("t", "theorem 4, eq. (9); section 8")
    assert place(row, run([row])) == "Theorem 4, eq. (9)"
    ours = dataclasses.replace(row, source="ours, beside theorem 4", entries=["B7"])
    assert place(ours, run([ours])) == "B7"


def test_what_is_judged_on_networks_alone_says_nothing_of_a_model() -> None:
    kept = {
        "kind": "upper bound on every replicate",
        "points": [point({}, 0, 0.01, 0.12, 0.02)],
        "relative": False,
    }
    shown = run([made("n", "eq. (6), figure 2", **{**WRONG_READING, **kept, **REAL})])
    ((equation,),) = glances(shown).values()
    assert (equation.number, equation.holds) == ("Eq. (6)", "")
    worst = "violated in 12 % of the replicates on one tanh network"
    assert there(equation) == [f"0 of 1 reading agrees, the worst {worst}"]
    assert "0 of 1 reading agrees, the worst violated in" in page_of(shown)


def test_an_equation_of_others_is_none_of_the_paper() -> None:
    """Eq. (7) of a work that the paper rests on is not its own eq. (7)."""
    own, others = made("o", "eq. (7)"), made("k", "", standing="known elsewhere")
    others = dataclasses.replace(others, source="Schoenholz et al. (2017), eq. (7), beside " + own.source)
    assert [s.target for s in told([own, dataclasses.replace(own, id="granziol2022/o2"), others])] == [
        "row/granziol2022/o"
    ]


def test_readings_outside_the_condition_of_the_paper_are_named_and_counted_apart() -> None:
    rows = [
        made("t", "theorem 4", entries=["B1"]),
        made("inside", "theorem 4, on networks", **REAL),
        made("small", "theorem 4, on networks", standing="outside its range", **WRONG_READING, **REAL),
        made("fine", "theorem 4, on networks", standing="outside its range", **REAL),
    ]
    (theorem,) = told(rows)
    assert there(theorem) == [
        "1 of 1 reading agrees",
        "outside its range: 1 of 2 readings agree, the worst 4 times too large on one tanh network",
    ]
    assert [found.verdict for found in theorem.networks] == ["agrees", "disagrees"]
    html = page_of(run(rows, [entry("B1")]))
    cell = html[html.index('<td data-label="on real networks">') :].partition("</td>")[0]
    assert cell.count('class="mark v-agrees"') == 1 == cell.count('class="mark v-disagrees"')
    assert "outside its range:</span>" in cell and "not judged under its condition" not in cell

    outside = page_of(run([rows[0], rows[2]], [entry("B1")]))
    cell = outside[outside.index('<td data-label="on real networks">') :].partition("</td>")[0]
    assert "not judged under its condition" in cell and "v-agrees" not in cell


def test_where_a_square_is_measured_the_number_is_that_of_the_quantity_of_the_paper() -> None:
    """4 times too large in the square is twice in the norm that the paper has."""
    rows = [
        made("n", "eq. (8)", claim="granziol2022/n", standing="corrected", root=2),
        made(
            "n [as our copy reads]",
            "eq. (8)",
            claim="granziol2022/n",
            standing="misprint",
            root=2,
            **WRONG_READING,
        ),
    ]
    (equation,) = told(rows)
    assert (equation.holds, equation.reads) == ("within 0.25 %", "2 times too large")


def test_a_likely_slip_of_the_conversion_is_marked() -> None:
    rows = [
        made("n", "eq. (8)", claim="granziol2022/n", standing="corrected"),
        made(
            "n [as our copy reads]", "eq. (8)", claim="granziol2022/n", standing="misprint", **WRONG_READING
        ),
    ]
    assert "likely a slip of the conversion" not in page_of(run(rows))
    rows[1] = dataclasses.replace(rows[1], slip=True)
    html = page_of(run(rows))
    assert told(rows)[0].slip
    assert html.count("likely a slip of the conversion") == 2  # at a glance, and in the table of misprints
