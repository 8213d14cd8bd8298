"""The misprints of our copies: a line of one table each, named by the statement that has it, and counted once."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.verify.page.full_size import full_size, undrawn
from tests.verify.page.test_findings import WRONG, entry, made, page_of, run
from tests.verify.results.sample_results import sample
from verify.page.report.queries import glances, headline, misprint_table, paper_findings
from verify.results import Results, Row

__all__ = ["undrawn"]

pytestmark = pytest.mark.usefixtures("undrawn")


def misprinted(number: int, **changes: Any) -> list[Row]:
    """A formula as our copy reads, which fails, and the one that replaces it."""
    claim, source = f"granziol2022/m{number}", changes.pop("source", f"theorem {number}")
    return [
        made(f"m{number}", source, claim=claim, standing="corrected", reading="corrected",
             statement=f"statement {number}", **changes),
        made(f"m{number} [as our copy reads]", source, claim=claim, standing="misprint", points=WRONG,
             statement=f"as printed {number}", expected="disagrees", verdict="disagrees",
             finding=f"As our copy reads, square {number} is missing; P says so. More words.", **changes),
    ]  # fmt: skip


def test_every_misprint_is_a_line_of_one_table() -> None:
    """Where, as printed and corrected, what the error is, and by how much; in the order of the entries."""
    rows = [row for number in (3, 1, 2) for row in misprinted(number, entries=[f"B{number}"])]
    results = run(rows, [entry(f"B{number}") for number in (1, 2, 3)])
    table = misprint_table(results)
    assert table is not None
    ((paper, found),) = table.papers.items()
    assert paper == "granziol2022" and [m.on for m in found] == ["Theorem 1", "Theorem 2", "Theorem 3"]
    (line,) = found[0].lines
    assert (line.printed, line.corrected) == ("as printed 1", "statement 1")
    assert (line.words, line.off) == ("square 1 is missing; P says so.", "4 times too large")
    assert (line.holds, line.target) == ("within 0.5 %", "row/granziol2022/m1 [as our copy reads]")
    html = page_of(results)
    shown = html[html.index('<h3 id="misprints">') :]
    for number in (1, 2, 3):
        link = re.search(rf"square {number} is missing; P says so.*?<a href=\"#([^\"]*)\">4 times", shown)
        assert link and f'id="{link[1]}"' in html
    assert shown[: shown.index("</table>")].count("square 1 is missing") == 1


def test_readings_of_one_formula_share_a_line_and_those_of_one_statement_stand_together() -> None:
    rows = [row for number in (1, 2, 3) for row in misprinted(number, source="eq. (9)")]
    rows[-1] = dataclasses.replace(rows[-1], statement=rows[1].statement)
    table = misprint_table(run(rows))
    assert table is not None
    ((found,),) = table.papers.values()
    assert found.on == "Eq. (9)"
    assert [(line.printed, line.readings) for line in found.lines] == [
        ("as printed 1", 2),
        ("as printed 2", 1),
    ]
    assert (table.statements, table.formulas, table.readings) == (1, 2, 3)


def test_the_counts_of_misprints_add_up() -> None:
    rows = [row for number in range(1, 5) for row in misprinted(number)]
    rows += misprinted(5, source="theorem 4, eq. (9)")
    rows += misprinted(6)[1:]  # nothing is judged beside it
    rows += [made("c", "theorem 7", standing="corrected"), made("d", "theorem 8", standing="corrected")]
    table = misprint_table(run(rows))
    assert table is not None and table[1:] == (6, 7, 8, 7, 5)
    listed = [misprint for paper in table.papers.values() for misprint in paper]
    assert len(listed) == table.statements
    assert sum(line.readings for misprint in listed for line in misprint.lines) == table.readings
    assert misprint_table(run([made("plain", "theorem 1")])) is None
    html = page_of(run(rows))
    (said,) = re.findall("Misprinted\\? .*?</p>", html)
    assert re.sub("<[^>]*>", "", said).startswith(
        "Misprinted? 7 statements in our copy, all in one table: 6 readings as our copy has them fail, "
        "7 corrected agree, 2 of these where what our copy has is not judged."
    )
    assert (
        "7 statements in 8 formulas, tested in 6 readings; of 2 only the corrected formula is judged." in html
    )
    # what "misprints only" leaves
    assert html.count('data-misprint="1"') == 8 and html.count('data-reading="misprint"') == 6
    assert "nothing is judged beside it" in html and 'id="misprints"' not in page_of(
        run([made("plain", "theorem 1")])
    )


def test_a_misprint_that_is_judged_corrected_only_is_a_line_that_says_so() -> None:
    """What our copy has may be no formula: its words are quoted, and nothing says that they fail."""
    alone = made("c", "theorem 7", standing="corrected", statement="right", words="as it reads", place="Eq 5",
                 finding="As our copy reads, a gate is missing. More words.")  # fmt: skip
    table = misprint_table(run([alone]))
    assert table is not None and table[1:] == (0, 1, 1, 1, 0)
    (line,) = table.papers["granziol2022"][0].lines
    assert (line.printed, line.quoted, line.where) == ("", "as it reads", "Eq 5")
    assert (line.words, line.corrected, line.off) == ("a gate is missing.", "right", "")
    html = page_of(run([alone]))
    shown = html[html.index('<h3 id="misprints">') :]
    row = shown[: shown.index("</table>")]
    assert "not judged as our copy reads" in row and "v-disagrees" not in row
    assert "“as it reads”" in row and "no misprint found" not in html
    assert '<a href="#misprints">misprinted</a>, not judged as it reads' in html
    assert '<a href="#misprints">1 statement</a>' in html
    assert "quoted under “the paper”, and not judged" in html


@pytest.mark.parametrize("results", [sample, full_size], ids=["sample", "registry"])
def test_headline_table_matrix_and_findings_count_the_same_misprints(
    results: Callable[[], Results],
) -> None:
    shown = results()
    counted, table = headline(shown.rows), misprint_table(shown)
    assert table is not None
    lines = [line for paper in table.papers.values() for m in paper for line in m.lines]
    assert len({line.target for line in lines}) == len(lines) == table.formulas
    assert counted.fail.get("misprint", 0) == table.readings
    assert counted.agree.get("corrected", 0) == table.corrected
    numbers = {(paper, m.on) for paper, listed in table.papers.items() for m in listed}
    for name, statements in glances(shown, most=len(shown.rows)).items():
        of_it = [(name, s.misprint) for s in statements if s.misprint]
        assert numbers.issuperset(of_it)
        assert all(s.misprint for s in statements if s.reads or (name, s.number) in numbers)
    by_paper = {found.paper: found.all_misprints for found in paper_findings(shown) if found.all_misprints}
    assert by_paper == {name: len(listed) for name, listed in table.papers.items()}


def test_a_misprint_is_named_by_the_statement_that_has_it() -> None:
    """Of a theorem whose lemma has the slip the lemma, also where the two are judged together; a slip counts once."""
    slips = {
        "a": ("theorem 10, eq. (44); lemma 11, eq. (45)", "Lemma 11, Eq 45"),
        "b": ("lemma 5, eq. (10), and appendix A.2", "Appendix A.2"),
        "c": ("eq. (43)", "Appendix A.2"),
        "d": ("eq. (17)", "Eq 17"),
        "e": ("eq. (19)", "Eq 17, which Eq 19 differentiates"),
        "f": ("eq. (40)", "Appendix C, before Eq 41"),
        "g": ("eq. (8)", "before Eq 8"),
    }
    shown = run(
        [
            made(name, where, standing="misprint", verdict="disagrees", expected="disagrees", points=WRONG, place=place,
                 statement=f"x_{name}", finding="As our copy reads, a sign is wrong.")
            for name, (where, place) in slips.items()
        ]
    )  # fmt: skip
    table = misprint_table(shown)
    assert table is not None
    named = [(m.on, len(m.lines)) for m in table.papers["granziol2022"]]
    assert sorted(named) == [
        ("Appendix A.2", 2), ("Appendix C", 1), ("Before eq. (8)", 1), ("Eq. (17)", 2), ("Lemma 11", 1)
    ]  # fmt: skip
    assert table.statements == 5
    told = {s.number: s.misprint for statements in glances(shown, most=9).values() for s in statements}
    assert told["Theorem 10"] == "Lemma 11"
    html = page_of(shown)
    assert "Lemma 11, " in html[html.index('id="glance"') : html.index('id="misprints"')]
    (found,) = paper_findings(shown)
    assert found.all_misprints == 5


def test_every_misprint_that_is_judged_corrected_only_says_what_is_wrong() -> None:
    table = misprint_table(full_size())
    assert table is not None
    lines = [line for paper in table.papers.values() for m in paper for line in m.lines if line.quoted]
    assert {line.target.rpartition("/")[2] for line in lines} == {
        "hessian-split", "path-sum", "path-sum-curvature", "kaniel-paige-saad"
    }  # fmt: skip
    assert all(line.words for line in lines)
