"""What a run found, in sentences whose numbers follow from the results."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from markupsafe import Markup

from tests.verify.page.full_size import undrawn
from tests.verify.results.sample_results import sample
from tests.verify.results.sample_rows import point, row
from verify.page import ratios, report
from verify.page.report.queries import headline, how_closely, how_far, paper_findings
from verify.page.summary import screen
from verify.page.wording import numeral
from verify.results import InventoryRow, Results, Row

__all__ = ["undrawn"]

pytestmark = pytest.mark.usefixtures("undrawn")


def page_of(made: Results) -> str:
    """The page of a run, whose cards are left without their figures: what is found stands in words."""
    return report.document(made, lambda _, rows: [Markup() for _ in rows])


AUTHORS = "Granziol, Zohren and Roberts (2022)"


def made(name: str, source: str, **changes: Any) -> Row:
    points = changes.pop("points", [point({"dim": 3}, 2.0, 0.02, 2.004, 0.006)])
    told = {"source": f"{AUTHORS}, {source}", "relative": True, "claim": f"granziol2022/{name}"} | changes
    return dataclasses.replace(row(f"granziol2022/{name}", points=points), **told)


def run(rows: list[Row], inventory: list[InventoryRow] | None = None) -> Results:
    return dataclasses.replace(sample(), rows=rows, inventory=inventory or [], observations=[])


def entry(name: str, **changes: Any) -> InventoryRow:
    told = {
        "paper": "granziol2022",
        "title": f"title of {name}",
        "status": "judged",
        "reason": "",
        "claims": [],
    }
    return InventoryRow(id=name, **{**told, **changes})


WRONG = [point({"dim": 3}, 8.0, 0.08, 2.0, 0.01), point({"dim": 4}, 3.0, 0.03, 2.0, 0.01)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "within 0.5 %"),  # (0.004 + 0.006) / 2
        ({"relative": False}, "within 0.01 of 2"),
        (
            {"relative": False, "kind": "probability", "points": [point({}, 1.0, 0.2, 0.98, 0.17)]},
            "a share of 0.98, within 0.19 of 1",
        ),
        (
            {
                "relative": False,
                "kind": "probability",
                "points": [point({"n": p}, p, 0.2, p, 0.085) for p in (0.0, 1.0)],
            },
            "within 0.085",
        ),
        ({"kind": "identity", "points": [point({}, 0.0, 1e-9, 3e-13, 0.0)]}, "two routes agree to 3 × 10⁻¹³"),
        ({"kind": "identity", "points": [point({}, 0.0, 1e-9, 0.0, 0.0)]}, "two routes agree in every digit"),
        (
            {"kind": "exact property", "points": [point({}, 0.0, 1e-9, 0.0, 0.0)]},
            "no counterexample, to 10⁻⁹",
        ),
        ({"kind": "lower bound on every replicate"}, "in every one of 768 replicates"),
        (
            {"kind": "lower bound on a mean", "points": [point({}, 1, 0.1, 3, 0.1, slack=3.0)]},
            "kept, at least 3 of the bound",
        ),
        ({"kind": "scaling exponent"}, "exponent 2.0040 ± 0.0060, predicted 2"),
        (
            {"kind": "distribution", "points": [point({}, 0.0, 0.1, 0.01, 0.02)]},
            "distribution functions at most 0.03 apart",
        ),
        ({"points": []}, ""),
        ({"points": [point({}, 0.0, 0.1, 0.01, 0.02)]}, ""),  # in percent of nothing
    ],
)
def test_how_closely_a_statement_holds_is_the_largest_deviation_with_its_half_width(
    changes: dict[str, Any], said: str
) -> None:
    shown = dataclasses.replace(made("a", "theorem 1"), **changes)
    assert how_closely(shown).replace("\u00a0", " ").replace("1 × 10", "10") == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "4 times too large"),
        ({"points": WRONG[1:]}, "50 % too large"),
        ({"points": [point({}, 1.0, 0.01, 2.5, 0.01)]}, "2.5 times too small"),
        ({"points": [point({}, -1.0, 0.01, 2.5, 0.01)]}, "−1 where 2.5 is measured"),
        ({"relative": False}, "8 where 2 is measured"),
        (
            {"kind": "upper bound on every replicate", "points": [point({}, 0, 0.01, 0.12, 0.02)]},
            "violated in 12 % of the replicates",
        ),
        ({"kind": "identity", "points": [point({}, 0.0, 1e-9, 0.3, 0.0)]}, "off by 30 %"),
        ({"kind": "identity", "points": [point({}, 0.0, 1e-9, 1.0, 0.0)]}, "fails outright"),
        ({"points": [point({}, 2.0, 0.02, 2.001, 0.001)]}, ""),
    ],
)
def test_how_far_off_a_formula_is_where_it_is_farthest_off(changes: dict[str, Any], said: str) -> None:
    shown = dataclasses.replace(made("a", "theorem 1", points=WRONG), **changes)
    assert how_far(shown) == said


def test_theorems_come_first_and_what_is_ours_last_each_in_plain_words() -> None:
    rows = [
        made("e", "eq. (5)", entries=["B1"]),
        made("o", "ours", standing="ours", entries=["B1"]),
        made("t2", "theorem 2", entries=["B3"], says="A sentence."),
        made("t1", "theorem 1; lemma 3", entries=["B2"]),
        made("t1-again", "theorem 1, eq. (7)", entries=["B2"]),
    ]
    (found,) = paper_findings(run(rows, [entry("B1"), entry("B2"), entry("B3")]))
    assert [(f.on, f.words) for f in found.holds] == [
        ("Theorem 1", "title of B2"),
        ("Theorem 2", "A sentence."),
        ("Eq. (5)", "title of B1"),
    ]
    assert found.all_hold == 5 and found.holds[0].target == "row/granziol2022/t1"


def test_a_misprint_says_what_replaces_it_and_a_surprise_is_no_finding() -> None:
    told = {"claim": "granziol2022/m", "standing": "corrected", "reading": "corrected"}
    rows = [
        made("m", "theorem 1", **told),
        made("m [as our copy reads]", "theorem 1", claim="granziol2022/m", standing="misprint", points=WRONG,
             expected="disagrees", verdict="disagrees", finding="A square is missing."),
        made("s", "theorem 2", verdict="disagrees", surprise=True, points=WRONG),
        made("u", "theorem 3", verdict="undecided"),
    ]  # fmt: skip
    (found,) = paper_findings(run(rows))
    (misprint,) = found.misprints
    assert misprint.words == "A square is missing."
    assert misprint.measure == "corrected: within 0.5 %; as our copy reads: 4 times too large"
    assert [f.target for f in found.holds] == ["row/granziol2022/m"] and found.fails == []


def failing(name: str, standing: str, **changes: Any) -> Row:
    wrong = {"points": WRONG, "expected": "disagrees", "verdict": "disagrees", "finding": f"Words on {name}."}
    return made(name, f"theorem {name}", standing=standing, **{**wrong, **changes})


def test_what_is_tried_outside_its_condition_stands_apart_from_what_does_not_hold() -> None:
    told = {"as strong as stated": 1, "outside its range": 5, "ours": 2}
    rows = [failing(f"{standing[0]}{k}", standing) for standing, n in told.items() for k in range(n)]
    (found,) = paper_findings(run(rows))
    assert {sort.standing: sort.readings for sort in found.fails} == told
    assert [len(sort.listed) for sort in found.fails] == [1, 3, 2]
    html = page_of(run(rows))
    for heading in ("Does not hold as stated", "no error of the paper", "Of our own, and does not hold"):
        assert f"{heading}</h4>" in html
    assert (
        html.index("as stated</h4>") < html.index("Words on a0.") < html.index("no error of the paper</h4>")
    )
    assert html.index("no error of the paper</h4>") < html.index("Words on o0.")


def test_what_does_not_hold_is_counted_by_statements() -> None:
    """Readings of one sentence or numbered statement are one; outside a condition the source has the number."""
    said = {"words": "corrections scale as B-1/4", "place": "Section 8.2.1"}
    rows = [
        failing("a", "as strong as stated", **said),
        failing("b", "as strong as stated", **said),
        failing("c", "as strong as stated", place="Theorem 7, Eq 16", words="the threshold"),
        failing("d", "as strong as stated", place="Theorem 7, Eq 16", words="the edge"),
        failing("e", "as strong as stated", words="another sentence", place="Section 8.2.1"),
        failing("h", "as strong as stated", place="Section 6, before Theorem 7", words="the perturbation"),
        failing("f", "outside its range", **said),
        failing("g", "outside its range", **said),
    ]
    results = run(rows)
    (found,) = paper_findings(results)
    assert [(sort.statements, sort.readings) for sort in found.fails] == [(4, 6), (2, 2)]
    assert headline(results.rows).failing_statements["as strong as stated"] == 4
    html = page_of(results)
    assert ">4</a> statements that do not hold as stated, in 6 readings</li>" in html
    assert ">2</a> statements used outside the range they are stated for</li>" in html
    assert "All 2 of these statements" not in html  # all are listed
    assert "granziol2022: 0 readings hold, 8 fail as foreseen (6 statements)" in screen(results, [], [])


@pytest.mark.parametrize(
    ("changes", "basis"),
    [
        ({}, "sampled"),
        ({"kind": "property"}, "sampled"),
        ({"kind": "scaling exponent", "model_based": True}, "model-based"),
        ({"kind": "identity", "points": [point({}, 0.0, 1e-9, 3e-13, 0.0)]}, "exact"),
        ({"kind": "exact property", "points": [point({}, 0.0, 1e-9, 0.0, 0.0)]}, "exact"),
    ],
)
def test_every_line_says_what_its_verdict_rests_on(changes: dict[str, Any], basis: str) -> None:
    (found,) = paper_findings(run([made("t1", "theorem 1", **changes)]))
    assert [f.basis for f in found.holds] == [basis]
    assert f"</strong> <em>{basis}</em>" in page_of(run([made("t1", "theorem 1", **changes)]))
    (wrong,) = paper_findings(run([failing("w", "misprint", **changes)]))
    assert [f.basis for f in wrong.misprints] == [basis]


def test_routes_that_part_by_more_than_rounding_are_not_called_exact() -> None:
    near = made("t1", "theorem 1", kind="identity", points=[point({}, 0.0, 0.04, 0.02, 0.0)])
    (found,) = paper_findings(run([near]))
    assert [(f.measure, f.basis) for f in found.holds] == [("two routes agree to 0.02", "not sampled")]


def test_what_fails_on_networks_names_the_network_and_the_data_of_its_number() -> None:
    told = {"data": "digits", "replicate": "one tanh network"}
    points = [
        point({"dim": 3, "steps": 10, "network": "LeNet-5"}, 8.0, 0.08, 2.0, 0.01),
        point({"dim": 3, "steps": 40, "network": "LeNet-300"}, 3.0, 0.03, 2.0, 0.01),
    ]
    (found,) = paper_findings(run([failing("n", "as strong as stated", points=points, **told)]))
    (first,) = found.fails[0].listed
    assert first.measure == "4 times too large"
    assert first.where == "one tanh network (data: digits)"
    assert f"</strong>, on {first.where} <em>" in page_of(
        run([failing("n", "as strong as stated", points=points, **told)])
    )


def test_readings_on_networks_are_counted_by_whether_they_are_of_the_paper() -> None:
    real = {"data": "digits", "replicate": "one tanh network"}
    rows = [
        made("t4", "theorem 4, eq. (9)", says="Four."),
        made("t4-n", "theorem 4, eq. (9), on networks", **real),
        failing("4", "outside its range", **real),
        made("t5-n", "theorem 5, on networks", **real),
    ]
    (found,) = paper_findings(run(rows))
    assert [(n.sort, n.verdict, n.words) for n in found.networks] == [
        ("", "agrees", "2 of 2 readings agree"),
        (
            "outside its range",
            "disagrees",
            "0 of 1 reading agrees, the worst 4 times too large on one tanh network",
        ),
    ]
    assert ">2 of 2 readings agree</a>" in page_of(run(rows))


def test_tables_of_networks_say_where_most_ratios_lie_and_the_farthest() -> None:
    table = next(made for made in sample().observations if made.id == "granziol2022/batches")
    (found,) = paper_findings(dataclasses.replace(run([]), rows=[], observations=[table]))
    (line,) = found.tables
    for heading, values in ratios.ratio_columns(table).items():
        said = (
            f"{heading} median {numeral(ratios.median(values), 2)}, worst {numeral(ratios.worst(values), 2)}"
        )
        assert said in line.measure
    assert line.where.startswith(table.replicate) and table.data in line.where and line.basis == "reported"
    assert line.target == "observed/granziol2022/batches"


def test_what_is_open_and_judged_in_part_is_named() -> None:
    listed = [
        entry("B1", status="open", reason="needs a cluster"),
        entry("B2", status="partly judged", reason="squares alone"),
        entry("B3", status="definition"),
        entry("B4", status="observed", reason="no number is claimed", observations=["granziol2022/batches"]),
    ]
    shown = [made for made in sample().observations if made.id == "granziol2022/batches"]
    results = dataclasses.replace(run([made("a", "theorem 1")], listed), observations=shown)
    (found,) = paper_findings(results)
    assert [(f.on, f.measure) for f in found.left_open["Reported on networks, not judged"]] == [
        ("B4", "no number is claimed")
    ]
    html = page_of(results)
    assert "Reported on networks, not judged: <a" in html
    assert [(f.on, f.measure) for f in found.left_open["Not judged"]] == [("B1", "needs a cluster")]
    assert [(f.on, f.target) for f in found.left_open["Judged in part only"]] == [
        ("B2", "entry/granziol2022/B2")
    ]


def test_what_only_a_fuller_run_reports_is_named_as_such() -> None:
    results = run(
        [made("a", "theorem 1")], [entry("B5", status="observed", observations=["granziol2022/maps"])]
    )
    (found,) = paper_findings(results)
    assert {why: [f.on for f in listed] for why, listed in found.left_open.items()} == {
        "Left to --tier full": ["B5"]
    }
    assert "Left to --tier full: <a" in page_of(results)


@pytest.mark.parametrize("left_out", [{"--tier default": 1}, {"--claim": 1}])
def test_an_entry_whose_claims_are_left_to_the_full_tier_is_named(left_out: dict[str, int]) -> None:
    results = run([made("a", "theorem 1")], [entry("B57", claims=["granziol2022/adam-rate-in-training"])])
    census = dataclasses.replace(results.suite.census, left_out=left_out)
    results = dataclasses.replace(results, suite=dataclasses.replace(results.suite, census=census))
    (found,) = paper_findings(results)
    left = found.left_open.get("Left to --tier full", [])
    assert [f.on for f in left] == ["B57"] * ("--tier default" in left_out)
    assert ("The verdicts on 1 of those judged are left to a fuller run" in page_of(results)) == bool(left)


def test_nothing_found_is_no_finding() -> None:
    assert paper_findings(dataclasses.replace(run([]), rows=[])) == []


def test_the_findings_of_the_page_are_drawn_from_the_results_and_change_with_them() -> None:
    exact = made("t1", "theorem 1")
    loose = dataclasses.replace(exact, points=[point({"dim": 3}, 2.0, 0.2, 2.04, 0.06)])
    first, second = (page_of(run([shown])) for shown in (exact, loose))
    assert "<strong>within 0.5\u00a0%</strong>" in first and "<strong>within 5\u00a0%</strong>" in second
