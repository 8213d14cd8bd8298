"""Findings of a run: how closely statements hold, what fails, what is misprinted, and the main ones at a glance."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from tests.verify.page.full_size import full_size
from tests.verify.results.sample_results import sample
from tests.verify.results.sample_rows import point, row
from verify.page.report.findings import glances, paper_findings
from verify.page.report.statements import how_closely, how_far, left_to_a_fuller
from verify.page.report.tables import headline, misprint_table
from verify.results import InventoryRow, Results, Row


def made(name: str, source: str, **changes: Any) -> Row:
    """A reading of granziol2022, which agrees within 0.5 %."""
    told = {
        "source": f"Granziol, Zohren and Roberts (2022), {source}",
        "relative": True,
        "claim": f"granziol2022/{name}",
        "points": [point({"dim": 3}, 2.0, 0.02, 2.004, 0.006)],
    }
    return dataclasses.replace(row(f"granziol2022/{name}"), **{**told, **changes})


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
        dataclasses.replace(wrong, finding=f"As our copy reads, {number} is missing; P says so. More."),
    ]


def run(rows: list[Row], inventory: list[InventoryRow] | None = None) -> Results:
    return dataclasses.replace(sample(), rows=rows, inventory=inventory or [], observations=[])


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
            "a share of 0.98, within 0.19 of 1",
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
         "kept, at least 3 of the bound"),
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
        (one(-1.0, 0.01, 2.5, 0.0), "−1 where 2.5 is measured"),
        ({"relative": False}, "8 where 2 is measured"),
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


# --- paper by paper


def test_theorems_come_first_and_what_is_ours_last_each_in_plain_words() -> None:
    rows = [
        made("e", "eq. (5)", entries=["B1"]),
        made("o", "ours", standing="ours", entries=["B1"]),
        made("t2", "theorem 2", entries=["B3"], says="A sentence."),
        made("t1", "theorem 1; lemma 3", entries=["B2"]),
        made("t1-again", "theorem 1, eq. (7)", entries=["B2"]),
        made("s", "theorem 8", verdict="disagrees", surprise=True, points=WRONG),
    ]
    (found,) = paper_findings(run(rows, [entry("B1"), entry("B2"), entry("B3")]))
    assert [(f.on, f.words) for f in found.holds] == [
        ("Theorem 1", "title of B2"),
        ("Theorem 2", "A sentence."),
        ("Eq. (5)", "title of B1"),
    ]
    assert found.all_hold == 5 and found.holds[0].target == "row/granziol2022/t1" and found.fails == []
    assert paper_findings(run([])) == []


def test_what_is_tried_outside_its_condition_stands_apart_from_what_does_not_hold() -> None:
    told = {"as strong as stated": 1, "outside its range": 5, "ours": 2}
    rows = [failing(f"{standing[0]}{k}", standing, **REAL) for standing, n in told.items() for k in range(n)]
    (found,) = paper_findings(run(rows))
    assert {sort.standing: sort.readings for sort in found.fails} == told
    assert [len(sort.listed) for sort in found.fails] == [1, 3, 2]
    first = found.fails[0].listed[0]
    assert (first.measure, first.where) == ("4 times too large", "one tanh network (data: digits)")


def test_what_does_not_hold_is_counted_by_statements() -> None:
    """Readings of one sentence or numbered statement are one; outside a condition the source has the number."""
    said = {"words": "corrections scale as B-1/4", "place": "Section 8.2.1"}
    rows = [
        failing("a", **said),
        failing("b", **said),
        failing("c", place="Theorem 7, Eq 16", words="the threshold"),
        failing("d", place="Theorem 7, Eq 16", words="the edge"),
        failing("e", words="another sentence", place="Section 8.2.1"),
        failing("h", place="Section 6, before Theorem 7", words="the perturbation"),
        failing("f", "outside its range", **said),
        failing("g", "outside its range", **said),
    ]
    (found,) = paper_findings(run(rows))
    assert [(sort.statements, sort.readings) for sort in found.fails] == [(4, 6), (2, 2)]
    assert headline(rows).failing_statements["as strong as stated"] == 4


@pytest.mark.parametrize(
    ("changes", "basis"),
    [
        ({}, "sampled"),
        ({"kind": "scaling exponent", "model_based": True}, "model-based"),
        (one(0.0, 1e-9, 3e-13, 0.0, kind="identity"), "exact"),
        (one(0.0, 0.04, 0.02, 0.0, kind="identity"), "not sampled"),  # more than rounding
        (one(0.0, 1e-9, 0.0, 0.0, kind="exact property"), "exact"),
    ],
)
def test_every_line_says_what_its_verdict_rests_on(changes: dict[str, Any], basis: str) -> None:
    (found,) = paper_findings(run([made("t1", "theorem 1", **changes)]))
    assert [f.basis for f in found.holds] == [basis]


def test_what_is_open_and_judged_in_part_is_named() -> None:
    listed = [
        entry("B1", status="open", reason="needs a cluster"),
        entry("B2", status="partly judged", reason="squares alone"),
        entry("B3", status="definition"),
        entry("B4", status="observed", reason="no number is claimed", observations=["granziol2022/batches"]),
        entry("B5", status="observed", observations=["granziol2022/maps"]),
    ]
    results = dataclasses.replace(run([made("a", "theorem 1")], listed), observations=sample().observations)
    (found,) = [found for found in paper_findings(results) if found.paper == "granziol2022"]
    assert {why: [(f.on, f.measure) for f in found] for why, found in found.left_open.items()} == {
        "Not judged": [("B1", "needs a cluster")],
        "Reported on networks, not judged": [("B4", "no number is claimed")],
        "Judged in part only": [("B2", "squares alone")],
        "Left to --tier full": [("B5", "")],
    }


@pytest.mark.parametrize(
    ("tier", "left_out", "finished", "named"),
    [
        ("default", {"--tier default": 1}, 12, ["B57"]),
        ("default", {"--tier default": 1, "--claim": 1}, 12, []),
        ("default", {"--tier default": 1}, 11, []),  # stopped before its end
        ("smoke", {"--tier default": 1}, 12, []),
    ],
)
def test_an_entry_whose_claims_are_left_to_the_full_tier_is_named(
    tier: str, left_out: dict[str, int], finished: int, named: list[str]
) -> None:
    results = run([made("a", "theorem 1")], [entry("B57", claims=["granziol2022/adam-rate-in-training"])])
    census = dataclasses.replace(results.suite.census, left_out=left_out, judged=finished)
    told = dataclasses.replace(results.suite, census=census, tier=tier)
    assert [e.id for e in left_to_a_fuller(dataclasses.replace(results, suite=told))] == named


# --- at a glance


def told(rows: list[Row], most: int = 6) -> list[Any]:
    (statements,) = glances(run(rows, [entry("B1"), entry("B2")]), most).values()
    return statements


def there(statement: Any) -> list[str]:
    """Return the words on a statement on networks, each sort of readings after its name."""
    return [f"{found.sort}: " * bool(found.sort) + found.words for found in statement.networks]


def test_a_statement_says_what_it_comes_to_on_its_model_in_our_copy_and_on_networks() -> None:
    rows = [
        failing("t-n", "outside its range", "theorem 4, on networks", **REAL),
        made("fine", "theorem 4, on networks", standing="outside its range", **REAL),
        made("inside", "theorem 4, on networks", **REAL),
        failing("t [as our copy reads]", "misprint", "theorem 4", slip=True),
        made("t", "theorem 4, eq. (9)", standing="corrected", entries=["B2"]),
        failing("f", source="theorem 1", entries=["B1"]),
        made("u", "theorem 2", entries=["B1"], verdict="undecided"),
        failing("l", source="lemma 5, figure 2", **REAL),
    ]
    failed, still_open, theorem, alone = told(rows)
    assert theorem[:3] == ("Theorem 4", "title of B2", "row/granziol2022/t")
    assert (theorem.verdict, theorem.holds, theorem.reads) == ("agrees", "within 0.5 %", "4 times too large")
    assert theorem.slip and there(theorem) == [
        "1 of 1 reading agrees",
        "outside its range: 1 of 2 readings agree, the worst 4 times too large on one tanh network",
    ]
    assert [found.verdict for found in theorem.networks] == ["agrees", "disagrees"]
    assert (failed.verdict, failed.holds) == ("disagrees", "4 times too large")
    assert (still_open.verdict, still_open.holds) == ("undecided", "undecided")
    assert (failed.reads, failed.networks, failed.slip) == ("", [], False)
    worst = "the worst 4 times too large on one tanh network"
    assert (alone.number, alone.holds, there(alone)) == ("Lemma 5", "", [f"0 of 1 reading agrees, {worst}"])


def test_no_two_statements_of_a_paper_share_a_title() -> None:
    for paper, statements in glances(full_size()).items():
        assert len({statement.title for statement in statements}) == len(statements), paper


def test_a_formula_on_networks_and_as_our_copy_reads_is_one_reading_there() -> None:
    """Beside the one that is repaired it would be counted twice; alone it stands for its claim."""
    on = {"claim": "granziol2022/n", "source": "theorem 7, on networks", **REAL}
    printed = failing("n [as our copy reads]", reading="as our copy reads", **on)
    rows = [made("t", "theorem 7"), failing("n", **on), printed]
    (once,) = told(rows)[0].networks
    assert once.words == "0 of 1 reading agrees, the worst 4 times too large on one tanh network"
    assert there(told([rows[0], printed])[0]) == [once.words] and once.there == ["row/granziol2022/n"]
    farther = dataclasses.replace(printed, points=[point({"dim": 3}, 16.0, 0.16, 2.0, 0.01)])
    said = "4 times too large and as our copy reads 8 times too large on one tanh network"
    assert there(told([*rows[:2], farther])[0]) == [f"0 of 1 reading agrees, the worst {said}"]


def test_theorems_stand_with_one_reading_equations_with_two_each_in_the_order_of_the_paper() -> None:
    own = "Granziol, Zohren and Roberts (2022), eq. (7)"
    rows = [
        made("e", "eq. (5)", entries=["B1"]),
        made("e2", "eq. (5)", entries=["B1"]),
        made("rare", "eq. (6)", entries=["B1"]),
        made("t", "theorem 1", entries=["B2"]),
        made("remark", "section 3", entries=["B1"]),
        made("o", "ours", standing="ours", entries=["B1"]),
        # Eq. (7) of a work that the paper rests on is not its own eq. (7)
        *(made(f"k{k}", "", standing="known elsewhere") for k in range(2)),
    ]
    rows[-2:] = [
        dataclasses.replace(r, source=f"Schoenholz et al. (2017), eq. (7), beside {own}") for r in rows[-2:]
    ]
    assert [s.number for s in told(rows)] == ["Eq. (5)", "Theorem 1"]
    assert [s.number for s in told(rows, 1)] == ["Theorem 1"]
    assert glances(run([rows[4]])) == {}


# --- misprints


def test_every_misprint_is_a_line_of_one_table() -> None:
    """Where, as printed and corrected, what the error is, and by how much; in the order of the entries."""
    rows = [row for number in (3, 1, 2) for row in misprinted(number, entries=[f"B{number}"])]
    results = run(rows, [entry(f"B{number}") for number in (1, 2, 3)])
    table = misprint_table(results)
    assert table is not None
    ((paper, found),) = table.papers.items()
    assert paper == "granziol2022" and [m.on for m in found] == ["Theorem 1", "Theorem 2", "Theorem 3"]
    (line,) = found[0].lines
    assert (line.printed, line.corrected) == ("printed 1", "right 1")
    assert (line.words, line.off) == ("1 is missing; P says so.", "4 times too large")
    assert (line.holds, line.target) == ("within 0.5 %", "row/granziol2022/m1 [as our copy reads]")
    (said,) = paper_findings(results)
    assert said.misprints[0].measure == "corrected: within 0.5 %; as our copy reads: 4 times too large"


def test_the_counts_of_misprints_add_up() -> None:
    rows = [row for number in range(1, 5) for row in misprinted(number)]
    rows += misprinted(5, "theorem 4, eq. (9)")
    rows += misprinted(6)[1:]  # nothing is judged beside it
    rows += [made("c", "theorem 7", standing="corrected"), made("d", "theorem 8", standing="corrected")]
    table = misprint_table(run(rows))
    assert table is not None and table[1:] == (6, 7, 8, 7, 5)
    assert misprint_table(run([made("plain", "theorem 1")])) is None


def test_a_misprint_that_is_judged_corrected_only_is_a_line_that_says_so() -> None:
    """Our copy may have no formula: its words are quoted, and nothing says that they fail."""
    alone = made("c", "theorem 7", standing="corrected", statement="right", words="as it reads", place="Eq 5",
                 finding="As our copy reads, a gate is missing. More words.")  # fmt: skip
    table = misprint_table(run([alone]))
    assert table is not None and table[1:] == (0, 1, 1, 1, 0)
    (line,) = table.papers["granziol2022"][0].lines
    assert (line.printed, line.quoted, line.where) == ("", "as it reads", "Eq 5")
    assert (line.words, line.corrected, line.off) == ("a gate is missing.", "right", "")


@pytest.mark.parametrize("results", [sample, full_size])
def test_headline_table_matrix_and_findings_count_the_same_misprints(
    results: Callable[[], Results],
) -> None:
    shown = results()
    counted, table = headline(shown.rows), misprint_table(shown)
    assert table is not None
    lines = [line for paper in table.papers.values() for m in paper for line in m.lines]
    assert len({line.target for line in lines}) == len(lines) == table.formulas
    assert all(line.words for line in lines if line.quoted)
    assert counted.fail.get("misprint", 0) == table.readings
    assert counted.agree.get("corrected", 0) == table.corrected
    numbers = {(paper, m.on) for paper, listed in table.papers.items() for m in listed}
    for name, statements in glances(shown, most=len(shown.rows)).items():
        assert numbers.issuperset((name, s.misprint) for s in statements if s.misprint)
        assert all(s.misprint for s in statements if s.reads or (name, s.number) in numbers)
    by_paper = {found.paper: found.all_misprints for found in paper_findings(shown) if found.all_misprints}
    assert by_paper == {name: len(listed) for name, listed in table.papers.items()}


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
    assert table is not None and table.statements == 5
    assert sorted((m.on, len(m.lines)) for m in table.papers["granziol2022"]) == [
        ("Appendix A.2", 2), ("Appendix C", 1), ("Before eq. (8)", 1), ("Eq. (17)", 2), ("Lemma 11", 1)
    ]  # fmt: skip
    assert {s.number: s.misprint for s in told(rows, 9)}["Theorem 10"] == "Lemma 11"
