"""Findings of a run: its verdict, how closely statements hold, what fails or is misprinted, all claims at a glance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from markupsafe import Markup

from tests.verify.page.full_size import full_size
from tests.verify.results.sample_results import sample
from tests.verify.results.sample_rows import point, row
from verify.claims import registry
from verify.page.counts import run_verdict
from verify.page.outcomes import outcome_of, reading_mark
from verify.page.report.findings import CHOSEN, Finding, findings
from verify.page.report.glance import BINS, GROUPS, strips
from verify.page.report.tables import error_table, misprint_table
from verify.page.statements import how_closely, how_far
from verify.results import InventoryRow, Results, Row


def made(name: str, source: str, **changes: Any) -> Row:
    """A reading of granziol2022, which agrees within 0.5 %."""
    told = {
        "source": f"Granziol, Zohren and Roberts (2022), {source}",
        "relative": True,
        "claim": f"granziol2022/{name}",
        "points": [point({"dim": 3}, 2.0, 0.02, 2.004, 0.006)],
    }
    return replace(row(f"granziol2022/{name}"), **{**told, **changes})


WRONG = [point({"dim": 3}, 8.0, 0.08, 2.0, 0.01), point({"dim": 4}, 3.0, 0.03, 2.0, 0.01)]
FAILS: dict[str, Any] = {"verdict": "disagrees", "expected": "disagrees", "points": WRONG}
REAL = {"data": "digits", "replicate": "one tanh network"}


def failing(name: str, standing: str = "as strong as stated", source: str = "", **changes: Any) -> Row:
    """One that is 4 times too large, as foreseen."""
    source = source or f"theorem {name}"
    return made(name, source, standing=standing, finding=f"Words on {name}.", **{**FAILS, **changes})


def misprinted(number: int, source: str = "", **changes: Any) -> list[Row]:
    """A formula as our copy reads, which fails, and the one that replaces it."""
    told: dict[str, Any] = {"claim": f"granziol2022/m{number}", **changes}
    source = source or f"theorem {number}"
    right = made(
        f"m{number}", source, standing="corrected", reading="corrected", statement=f"right {number}", **told
    )
    wrong = failing(
        f"m{number} [as our copy reads]", "misprint", source, statement=f"printed {number}", **told
    )
    return [
        right,
        replace(wrong, finding=f"As our copy reads, {number} is missing; P says so. More."),
    ]


def run(rows: list[Row], inventory: list[InventoryRow] | None = None) -> Results:
    return replace(sample(), rows=rows, inventory=inventory or [], observations=[])


def entry(name: str, **changes: Any) -> InventoryRow:
    told = {"paper": "granziol2022", "title": f"title of {name}", "status": "judged", "reason": ""}
    return InventoryRow(id=name, **{**told, "claims": [], **changes})


def one(*numbers: float, **more: Any) -> dict[str, Any]:
    """One point: predicted, margin, measured, half-width."""
    return {"points": [point({}, *numbers)], **more}


# --- how closely, how far


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "within 0.5 %"),  # (0.004 + 0.006) / 2
        ({"relative": False}, "within 0.01 of 2"),
        ({"root": 2}, "within 0.25 %"),
        (
            one(1.0, 0.2, 0.98, 0.17, kind="probability", relative=False),
            "largest eigenvalue: 0.98, within 0.19 of 1",
        ),
        (
            {"relative": False, "points": [point({"n": p}, p, 0.2, p, 0.085) for p in (0.0, 1.0)]},
            "within 0.085",
        ),
        (one(0.0, 1e-9, 3e-13, 0.0, kind="identity"), "two routes agree to 3 × 10⁻¹³"),
        (one(0.0, 1e-9, 0.0, 0.0, kind="identity"), "two routes agree in every digit"),
        (one(0.0, 1e-9, 0.0, 0.0, kind="exact property"), "no counterexample, to 10⁻⁹"),
        ({"kind": "lower bound on every replicate"}, "in every one of 768 replicates"),
        ({"kind": "lower bound on a mean", "points": [point({}, 1, 0.1, s, 0.1, slack=s) for s in (3.0, 4.0)]},
         "kept, at least 3 times the bound"),
        ({"kind": "scaling exponent"}, "exponent 2.0040 ± 0.0060, predicted 2"),
        (one(0.0, 1e-9, 0.01, 0.02, kind="distribution"), "distribution functions at most 0.03 apart"),
        ({"points": []}, ""),
        (one(0.0, 1e-9, 0.01, 0.0), ""),  # in percent of nothing
    ],
)  # fmt: skip
def test_how_closely_a_statement_holds_is_the_largest_deviation_with_its_half_width(
    changes: dict[str, Any], said: str
) -> None:
    shown = how_closely(made("a", "theorem 1", **changes))
    assert shown.replace("\u00a0", " ").replace("1 × 10", "10") == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "4 times too large"),
        ({"root": 2}, "2 times too large"),  # 4 in the square that is measured
        ({"points": WRONG[1:]}, "50 % too large"),
        (one(1.0, 0.01, 2.5, 0.0), "2.5 times too small"),
        (one(-1.0, 0.01, 2.5, 0.0), "largest eigenvalue: −1, measured 2.5"),
        ({"relative": False}, "largest eigenvalue: 8, measured 2"),
        (
            one(0.0, 0.01, 0.12, 0.02, kind="upper bound on every replicate"),
            "violated in 12 % of the replicates",
        ),
        (one(0.0, 1e-9, 0.3, 0.0, kind="identity"), "off by 30 %"),
        (one(0.0, 1e-9, 1.0, 0.0, kind="identity"), "fails outright"),
        (one(2.0, 0.02, 2.001, 0.001), ""),
    ],
)
def test_how_far_off_a_formula_is_where_it_is_farthest_off(changes: dict[str, Any], said: str) -> None:
    assert how_far(failing("a", **changes)) == said


# --- findings


def told(rows: list[Row]) -> list[Finding]:
    (listed,) = findings(run(rows)).values()
    return listed


def test_a_finding_is_a_sentence_with_its_formula_and_one_number() -> None:
    """A failing claim shows the first sentence of its finding, any other claim its own sentence."""
    rows = [
        made("theorem-4", "theorem 4", says="It holds.", statement="x"),
        failing("theorem-4-on-networks", "outside its range", words="for large P"),
    ]
    fails, holds = told(rows)
    number = Markup("within <b>0.5 %</b>")
    assert holds == Finding("limits", "It holds.", "x", "", "", "row/granziol2022/theorem-4", number)
    assert (fails.mark, fails.words, fails.qualifier) == (
        "limits",
        "Words on theorem-4-on-networks.",
        "for large P",
    )
    assert fails.measure == "<b>4</b> times too large"


def test_chosen_claims_come_first_then_two_that_hold_and_four_that_fail_misprints_left_out() -> None:
    holding = [made(f"h{k}", f"theorem {k}") for k in range(4)]
    failing_ = [failing(f"f{k}") for k in range(6)]
    printed = failing("p [as our copy reads]", "misprint", claim="granziol2022/p")
    shown = [f.mark for f in told([*holding, *failing_, printed])]
    assert shown == ["holds"] * 2 + ["fails"] * 4
    assert len(told(holding)) == 4
    chosen = made("theorem-4", "theorem 4")
    assert [f.target for f in told([*holding, *failing_, chosen])] == ["row/granziol2022/theorem-4"]
    surprise = replace(failing("s"), expected="agrees", surprise=True)
    assert findings(run([surprise])) == {} == findings(run([]))


def test_the_number_is_what_was_measured() -> None:
    quantity = "local exponent of the rate in the batch size"
    wrong = failing("a", quantity=quantity, **one(0.0, 0.01, 2.5, 0.0, relative=False))
    (found,) = told([wrong])
    assert found.measure == "exponent in the batch size: 0, measured\u00a0<b>2.5</b>"


def test_chosen_claims_are_registered() -> None:
    assert {*CHOSEN} <= {*registry.ids()}


# --- verdict of the run


@pytest.mark.parametrize(
    ("changes", "title", "registered"),
    [
        ([], ["0 of 0 claims hold"], "No claim was judged"),
        ([{}], ["1 of 1 claim holds"], "1 claim was judged, it came out as registered before the run"),
        ([{}, {}, FAILS], ["2 of 3 claims hold", "1 does not"],
         "3 claims were judged, each came out as registered before the run"),
        ([{}, {"verdict": "undecided"}], ["1 of 2 claims holds", "1 undecided"],
         "2 claims were judged, each came out as registered before the run, or is undecided"),
        ([{}, {**FAILS, "surprise": True}], ["1 of 2 claims holds", "1 does not"],
         "1 of 2 claims did not come out as registered before the run"),
        ([{"verdict": "broken"}, {"verdict": "undecided"}, {}], ["1 of 3 claims holds", "1 undecided", "1 crashed"],
         "1 of 3 claims did not come out as registered before the run"),
    ],
)  # fmt: skip
def test_the_verdict_of_a_run_counts_what_came_out_otherwise(
    changes: list[dict[str, Any]], title: list[str], registered: str
) -> None:
    found = run_verdict(run([made(f"c{k}", "theorem 1", **told) for k, told in enumerate(changes)]))
    assert [words for _, words in found.outcomes] == title
    assert (found.registered, found.claims) == (registered, len(changes))


def test_statements_are_counted_once_and_claims_where_there_are_none() -> None:
    rows = [
        made("a", "theorem 1", entries=["B1", "B2"]),
        failing("b", entries=["B2"]),
        made("c", "theorem 3", standing="corrected", entries=["B3"]),
    ]
    listed = [entry("B1"), entry("B2"), entry("B3"), entry("B4"), entry("D1", ours=True)]
    corrected = ("corrected", "1 once corrected")
    for inventory, holding in (listed, "1 of 3 statements holds"), ([], "1 of 3 claims holds"):
        found = run_verdict(run(rows, inventory))
        assert found.outcomes == [("holds", holding), corrected, ("fails", "1 does not")]


@pytest.mark.parametrize(
    ("standing", "statement", "reading"),
    [
        ("as strong as stated", "fails", "fails"),
        ("outside its range", "limits", "limits"),
        ("misprint", "corrected", "corrected"),
        ("ours", "limits", "fails"),
    ],
)
def test_what_a_reading_that_disagrees_says_of_its_statement(
    standing: str, statement: str, reading: str
) -> None:
    wrong = failing("a", standing)
    assert (outcome_of([made("b", "theorem 1"), wrong]), reading_mark(wrong)) == (statement, reading)
    assert outcome_of([wrong, made("c", "theorem 1", standing="corrected")]) == statement


def test_a_quoted_formula_is_left_out_beside_the_formula_itself() -> None:
    garbled = {"words": "if λ1 > σ2(1 + P b )"}
    results = run([failing("a", **garbled), made("b", "eq. (2)", standing="corrected", **garbled)])
    (error,), (misprint,) = (table(results).papers["granziol2022"] for table in (error_table, misprint_table))
    assert (error.quoted, misprint.quoted) == ("", garbled["words"]) and error.stated


def test_errors_are_the_statements_that_are_counted_as_failing() -> None:
    """Also where one reading is of two statements, and two of one; ours are not counted."""
    rows = [
        failing("a", entries=["B1", "B2", "B9"], source="section 7, before eq. (3)"),
        failing("b", entries=["B3"], source="section 7"),
        failing("c", entries=["B3"], source="section 7, after eq. (4)"),
    ]
    results = run(rows, [*map(entry, ("B1", "B2", "B3")), entry("B9", ours=True)])
    table = error_table(results)
    assert [line.entries for line in table.papers["granziol2022"]] == [["B1", "B2"], ["B3"], ["B3"]]
    assert ("fails", f"{table.statements} do not") in run_verdict(results).outcomes
    assert table.entries("granziol2022") == {"B1", "B2", "B3"} and table.entries("karakida2019") == set()


# --- all claims at a glance


def test_every_claim_has_one_mark_at_its_largest_deviation() -> None:
    rows = [
        made(
            "half",
            "theorem 1",
            points=[point({}, 2.0, 0.02, 2.01, 0.006), point({}, 2.0, 0.02, 2.002, 0.006)],
        ),
        made("exact", "theorem 2", **one(0.0, 1e-9, 1e-13, 0.0, kind="identity")),
        made("bound", "theorem 3", **one(1.0, 0.01, 30.0, 0.0, kind="lower bound on a mean")),
        failing("near", points=[point({}, 2.0, 0.02, 2.02, 0.0, verdict="disagrees")]),
        failing("far", points=[point({}, 2.0, 1e-6, 8.0, 0.0, verdict="disagrees")]),
        made("crash", "theorem 6", verdict="broken", expected="agrees", surprise=True, points=[]),
    ]
    (strip,) = strips(run(rows))
    assert (strip.name, strip.claims) == ("Granziol 2022", 6)
    assert [dot.words.partition(":")[0] for dot in strip.exact] == ["exact", "bound"]
    assert [dot.mark for dot in strip.outright] == ["broken", "fails"]
    within, beyond = (
        [dot.words for group in strip.decades[decade] for column in group for dot in column]
        for decade in (1, 2)
    )
    assert within == ["half: holds, 0.5 margins"] and beyond == ["near: does not hold as stated"]
    places = [k for k, column in enumerate(itertools.chain(*strip.decades[1])) if column]
    assert places == [int((math.log10(0.5) + 1) * GROUPS * BINS)]


# --- misprints


def test_every_misprint_is_a_line_of_one_table() -> None:
    """Where, as printed and corrected, what the error is, and by how much; in the order of the entries."""
    rows = [row for number in (3, 1, 2) for row in misprinted(number, entries=[f"B{number}"])]
    results = run(rows, [entry(f"B{number}") for number in (1, 2, 3)])
    table = misprint_table(results)
    ((paper, found),) = table.papers.items()
    assert paper == "granziol2022" and [line.where for line in found] == [
        "Theorem 1",
        "Theorem 2",
        "Theorem 3",
    ]
    assert (found[0].stated, found[0].instead) == ("printed 1", "right 1")
    assert (found[0].words, found[0].off) == ("1 is missing; P says so.", "4 times too large")
    assert found[0].target == "row/granziol2022/m1 [as our copy reads]"


def test_misprints_are_counted_by_formula_and_by_statement() -> None:
    rows = [row for number in range(1, 5) for row in misprinted(number)]
    rows += misprinted(5, "theorem 4, eq. (9)")
    rows += misprinted(6)[1:]  # nothing is judged beside it
    rows += [made("c", "theorem 7", standing="corrected"), made("d", "theorem 8", standing="corrected")]
    table = misprint_table(run(rows))
    assert (table.formulas, table.statements) == (8, 7)
    assert misprint_table(run([made("plain", "theorem 1")])).papers == {}


def test_a_misprint_that_is_judged_corrected_only_is_a_line_that_says_so() -> None:
    """Our copy may have no formula: its words are quoted, and nothing says that they fail."""
    alone = made("c", "theorem 7", standing="corrected", statement="right", words="as it reads", place="Eq 5",
                 finding="As our copy reads, a gate is missing. More words.")  # fmt: skip
    ((line,),) = misprint_table(run([alone])).papers.values()
    assert (line.stated, line.quoted, line.where) == ("", "as it reads", "Eq. (5)")
    assert (line.words, line.instead, line.off) == ("A gate is missing.", "right", "")


def test_errors_have_the_words_of_the_paper_and_share_a_cell_where_they_are_of_one_statement() -> None:
    said = {"words": "corrections scale as B^-1/4", "place": "Section 8.2.1", "statement": "sd = B^{-1/4}"}
    rows = [
        failing("a", **said),
        failing("b", **said),
        failing("c", place="Theorem 7, Eq 16", words="the threshold", statement=r"\text{the threshold}"),
        failing("d", "outside its range", **said),
    ]
    table = error_table(run(rows))
    ((first, second, third),) = table.papers.values()
    assert (table.formulas, table.statements) == (3, 2)
    assert (first.span, second.span, third.span) == (2, 0, 1)
    assert (first.stated, first.quoted) == ("sd = B^{-1/4}", "corrections scale as B^-1/4")
    assert (third.where, third.stated, third.quoted) == ("Theorem 7, eq. (16)", r"\text{the threshold}", "")


@pytest.mark.parametrize("results", [sample, full_size])
def test_every_reading_that_fails_is_in_one_table_or_outside_its_condition(
    results: Callable[[], Results],
) -> None:
    shown = results()
    tables = [misprint_table(shown), error_table(shown)]
    lines = [line for table in tables for listed in table.papers.values() for line in listed]
    assert len({line.target for line in lines}) == len(lines) and all(
        line.words for line in lines if line.quoted
    )
    statements = {r.statement for r in shown.rows if r.standing in ("misprint", "as strong as stated")
                  and r.verdict == r.expected == "disagrees"}  # fmt: skip
    assert len(lines) >= len(statements)


def test_a_misprint_is_named_by_the_statement_that_has_it() -> None:
    """A slip in the lemma of a theorem names the lemma, also if both are judged together; a slip counts once."""
    slips = [
        ("theorem 10, eq. (44); lemma 11, eq. (45)", "Lemma 11, Eq 45"),
        ("lemma 5, eq. (10), and appendix A.2", "Appendix A.2"),
        ("eq. (43)", "Appendix A.2"),
        ("eq. (17)", "Eq 17"),
        ("eq. (19)", "Eq 17, which Eq 19 differentiates"),
        ("eq. (40)", "Appendix C, before Eq 41"),
        ("eq. (8)", "before Eq 8"),
    ]
    rows = [failing(f"s{k}", "misprint", where, place=place, statement=f"x_{k}")
            for k, (where, place) in enumerate(slips)]  # fmt: skip
    table = misprint_table(run(rows))
    assert table.statements == 5
    assert sorted(line.where for line in table.papers["granziol2022"]) == [
        "Appendix A.2", "Appendix A.2", "Appendix C, before eq. (41)", "Before eq. (8)", "Eq. (17)",
        "Eq. (17), which eq. (19) differentiates", "Lemma 11, eq. (45)",
    ]  # fmt: skip
