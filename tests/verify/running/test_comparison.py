"""Two runs side by side: verdicts that differ, what one of them lacks, and the largest change of an estimate."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.verify.command_line import elsewhere
from tests.verify.results.sample_results import sample
from verify import results
from verify.cli import main
from verify.judging.intervals import mean_interval
from verify.results import PointOutcome, Results, Row
from verify.running.replays import largest_change, standard_error

__all__ = ["elsewhere"]

ALPHA = sample().suite.alpha
NOTHING = "largest of 0 changes of estimates: 0 standard errors, none"


def drawn(seed: int, shift: float = 0.0) -> tuple[PointOutcome, float]:
    """A point with an interval from 256 skewed replicates, and their standard error."""
    values = shift + np.random.default_rng(seed).gamma(9.0, size=256)
    at = mean_interval(values, alpha=ALPHA)
    point = replace(
        sample().rows[0].points[0], measured=at.estimate, lower=at.lower, upper=at.upper,
        statistical=at.statistical, skewness=at.skewness, replicates=256,
    )  # fmt: skip
    return point, float(values.std(ddof=1)) / 16


def run(*points: PointOutcome, **changes: object) -> Results:
    row: Row = replace(sample().rows[0], points=list(points), curves=[], **changes)  # type: ignore[arg-type]
    return replace(sample(), rows=[row], observations=[])


def compared(capsys: pytest.CaptureFixture[str], first: Results, second: Results) -> tuple[int, list[str]]:
    for name, made in (("a.json", first), ("b.json", second)):
        results.save(replace(made, sha256=""), Path(name))
    status = main(["compare", "a.json", "b.json"])
    return status, capsys.readouterr().out.splitlines()


def test_the_change_is_in_standard_errors_of_the_difference() -> None:
    (one, its), (other, error) = drawn(1), drawn(2, shift=0.9)
    assert standard_error(one, ALPHA) == pytest.approx(its)
    change = abs(one.measured - other.measured) / math.hypot(its, error)
    assert f"largest of 1 changes of estimates: {change:.2g} standard errors, " in largest_change(
        run(one), run(other)
    )
    assert largest_change(run(one), run(replace(other, parameters={"dim": 1}))) == NOTHING
    assert largest_change(run(one), run(other, kind="distribution")) == NOTHING
    exact = replace(one, statistical=0.0, replicates=0)
    assert largest_change(run(exact), run(exact)) == NOTHING
    assert largest_change(run(replace(one, statistical=math.inf)), run(one)) == NOTHING


def test_a_paper_of_its_own_family_has_its_own_error() -> None:
    """At a larger error the same half-width is more standard errors."""
    papers = [replace(p, family_error=0.1, intervals_allowed=10) for p in sample().suite.papers]
    pair = run(drawn(1)[0]), run(drawn(2)[0])
    apart = (replace(made, suite=replace(made.suite, papers=papers)) for made in pair)
    alone, own = (float(largest_change(*runs).split()[6]) for runs in (pair, apart))
    assert own < alone


def test_equal_runs_do_not_differ_whatever_their_settings(capsys: pytest.CaptureFixture[str]) -> None:
    other = replace(sample(), suite=replace(sample().suite, seed=7, device="cuda", data="other.npz"))
    status, lines = compared(capsys, sample(), other)
    assert status == 0 and len(lines) == 1
    assert lines[0].startswith("0 verdicts differ or are lacking; largest of ")


def test_a_verdict_that_differs_and_what_is_lacking_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    first, rows = sample(), sample().rows
    changed = replace(rows[0], verdict="undecided")
    second = replace(first, rows=[changed, *rows[2:]], observations=first.observations[1:])
    status, lines = compared(capsys, first, second)
    assert status == 1 and lines[:-1] == [
        f'{rows[0].id}: "agrees" was recorded, now "undecided"',
        f"{rows[1].id}: recorded, now missing",
        f"{first.observations[0].id}: recorded, now missing",
    ]
    assert lines[-1].startswith("3 verdicts differ or are lacking; ")
    assert compared(capsys, second, first)[1][-2].endswith(": not recorded, now there")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("a.json", "losscurv compare: the following arguments are required: RESULTS.JSON"),
        ("a.json nowhere", "losscurv: results file not found: nowhere"),
        ("a.json other.json", "losscurv: results file other.json must have schema 8"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results.save(sample(), Path("a.json"))
    Path("other.json").write_text("{}")
    assert main(["compare", *words.split()]) == 2
    error = capsys.readouterr().err
    assert error.startswith(message) and error.count("\n") == 1


def test_an_edited_file_is_compared_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    results.save(sample(), Path("a.json"))
    Path("b.json").write_text(Path("a.json").read_text().replace('"2.1.0"', '"2.1.1"'))
    assert main(["compare", "a.json", "b.json"]) == 0
    assert "b.json was edited after its run" in capsys.readouterr().err
