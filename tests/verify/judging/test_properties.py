"""Property claims: counterexamples are found, shrunk and believed only after four times the replicates."""

import importlib
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate.monte_carlo import Block, Point, SerialExecutor, fixture, stream
from tests.verify.judging import by_hand
from tests.verify.results.sample_results import outcome
from tests.verify.running.engine_runs import judge_claim
from verify.judging.properties import SHRINKS, Explored, explore_exact, explore_statistical
from verify.model import ALPHA, Claim, ExactProperty, StatisticalProperty, Tier, Verdict
from verify.model.domains import Between, OneOf
from verify.page.terminal import surprise_block
from verify.results import PointOutcome, Row
from verify.running.engine import Session, Settings
from verify.running.explored import examples_drawn

BARE = {"examples": (), "rivals": {}}
WHOLE_NUMBERS = {"n": Between(0, 1000), "flag": OneOf(False, True)}


def violated_from(bound: int):
    """By numbers of numpy, which make plain records."""
    return lambda rng, point: np.float64(point.n >= bound)


def exact(violation, **changes) -> ExactProperty:
    return by_hand.exact(**{"violation": violation, "domain": WHOLE_NUMBERS, **BARE, **changes})


def gaussians(block: Block, point: Point) -> dict[str, np.ndarray]:
    """Mean of four normals of mean `n`, or one more past 300."""
    mean = point.n + 1.0 * (point.n >= 300)
    return {"x": np.array([rng.normal(mean, 0.4, 4).mean() for rng in block.streams])}


def statistical(**changes) -> StatisticalProperty:
    plain = {"simulate": gaussians, "predict": lambda p: p.n, "margin": 0.3, "relative": False, "budget": 512}
    return by_hand.statistical(**{"domain": WHOLE_NUMBERS, **BARE, **plain, **changes})


class Script:
    """A judge that says what it is told, and remembers what it was asked."""

    def __init__(self, verdict) -> None:
        self.verdict, self.asked = verdict, []

    def __call__(self, claim: Claim, replicates: int | None, alpha: float) -> PointOutcome:
        (point,) = claim.experiment.points
        self.asked.append((point, replicates, alpha))
        verdict = self.verdict(point, replicates)
        return outcome(parameters=dict(point), verdict=verdict, replicates=replicates or 80)


def explore(verdict, *, examples: tuple[Point, ...] = (), count: int = 10) -> tuple[Explored, Script]:
    script = Script(verdict)
    return explore_statistical(statistical(examples=examples), script, 1, count, ALPHA), script


def row_of(tested: ExactProperty | StatisticalProperty) -> Row:
    (row,) = Session((tested,), Settings(seed=1), SerialExecutor()).rows(tested)
    return row


# --- finding and shrinking


@pytest.mark.parametrize("bound", [3, 17, 500])
def test_a_planted_counterexample_is_found_and_shrunk(bound: int) -> None:
    found = explore_exact(exact(violated_from(bound)), 1, 100)
    assert found.failing.parameters == {"n": bound, "flag": False}
    assert found.failing in found.outcomes and repr(found.failing.measured) == "1.0"

    assert found.seconds > 0
    row = row_of(exact(violated_from(bound)))
    assert row.verdict == "disagrees" and row.surprise and row.points[-1] == found.failing


def test_shrinking_is_bounded() -> None:
    """Each further example may cost a full set of replicates."""
    found = explore_exact(exact(violated_from(1)), 1, 10_000)
    first = next(i for i, o in enumerate(found.outcomes) if o.verdict == Verdict.DISAGREES)
    assert len(found.outcomes) <= first + 1 + SHRINKS
    assert found.failing in found.outcomes


@pytest.mark.parametrize(
    ("violation", "agrees"), [(0.0, True), (1e-9, True), (1.1e-9, False), (math.nan, False)]
)
def test_a_violation_is_one_beyond_rounding(violation: float, agrees: bool) -> None:
    found = explore_exact(exact(lambda rng, p: violation), 1, 10)
    assert (found.failing is None) == agrees
    if agrees:
        assert len({str(o.parameters) for o in found.outcomes}) == len(found.outcomes) >= 9


def test_a_crash_is_not_taken_for_a_counterexample() -> None:
    def crashing(rng: np.random.Generator, point: Point) -> float:
        raise ZeroDivisionError("planted crash")

    with pytest.raises(ZeroDivisionError, match="planted crash"):
        explore_exact(exact(crashing), 1, 5)


# --- explicit examples


def test_explicit_examples_come_first_and_stop_the_search_when_one_fails() -> None:
    points = (Point(n=7, flag=True), Point(n=900, flag=True), Point(n=8, flag=False))
    found = explore_exact(exact(violated_from(500), examples=points), 1, 50)
    assert [o.parameters for o in found.outcomes] == [dict(p) for p in points]
    assert found.failing == found.outcomes[1]

    passed = explore_exact(exact(violated_from(2000), examples=points), 1, 20)
    assert [o.parameters for o in passed.outcomes[:3]] == [dict(p) for p in points]
    assert len(passed.outcomes) > 3


def test_rivals_are_tried_at_the_explicit_examples_and_must_fail_at_one() -> None:
    points = (Point(n=7, flag=True), Point(n=9, flag=True))
    rival = {"above 8": violated_from(8)}
    found = explore_exact(exact(violated_from(2000), examples=points, rivals=rival), 1, 5)
    assert repr([[r.rejected for r in o.rivals] for o in found.outcomes[:2]]) == "[[False], [True]]"
    assert all(o.rivals == [] for o in found.outcomes[2:])

    assert row_of(exact(violated_from(2000), examples=points, rivals=rival)).verdict == "agrees"
    row = row_of(exact(violated_from(2000), examples=points, rivals={"above 10": violated_from(10)}))
    assert row.verdict == "broken" and "rival 'above 10' must differ by two tolerances" in row.error


# --- statistics


def test_a_failing_example_is_believed_only_after_four_times_the_replicates() -> None:
    point = Point(n=4, flag=True)

    def fluke(p: Point, replicates: int | None) -> Verdict:
        return Verdict.AGREES if replicates else Verdict.DISAGREES

    found, script = explore(fluke, examples=(point,), count=10)
    assert script.asked[:2] == [(point, None, ALPHA / 11), (point, 4 * 80, ALPHA / 11)]
    assert {alpha for _, _, alpha in script.asked} == {ALPHA / 11}
    assert found.failing is None and all(o.verdict == Verdict.AGREES for o in found.outcomes)

    found, script = explore(lambda p, replicates: Verdict.DISAGREES, examples=(point,))
    assert len(script.asked) == 2
    assert found.failing.replicates == 4 * 80


def test_a_real_failing_example_has_its_own_stream_continued() -> None:
    """Four times the replicates of the first decision, the first of them the same."""
    point = Point(n=400, flag=False)
    row = row_of(statistical(examples=(point,)))
    (told,) = row.points
    tested = statistical().claim_at(point)
    first = judge_claim(tested, Settings(seed=1), alpha=ALPHA / 11)[0]
    assert (row.verdict, first.verdict, told.verdict) == ("disagrees", "disagrees", "disagrees")
    assert told.replicates == 4 * first.replicates == told.looks[0].replicates

    streams = [stream(1, "paper/statistical", point, i) for i in range(told.replicates)]
    means = np.array([rng.normal(401.0, 0.4, 4).mean() for rng in streams])
    assert_allclose(told.measured, means.mean(), rtol=1e-14)
    assert_allclose(first.measured, means[: first.replicates].mean(), rtol=1e-14)


def test_a_planted_statistical_counterexample_is_found_and_shrunk() -> None:
    row = row_of(statistical())
    assert row.verdict == "disagrees" and row.surprise
    assert row.points[-1].parameters == {"n": 300, "flag": False}


# --- streams


def test_streams_differ_between_examples_and_do_not_hang_on_the_global_generator() -> None:
    """hypothesis seeds numpy's global generator anew for each example; nothing here may read it."""
    seen = {}
    legacy = []

    def violation(rng: np.random.Generator, point: Point) -> float:
        seen[point] = rng.random()
        legacy.append(np.random.random())  # noqa: NPY002 - the generator that hypothesis resets
        return 0.0

    explore_exact(exact(violation), 1, 50)
    assert len(seen) > 40 and len(set(seen.values())) == len(seen)
    assert len(set(legacy)) == 1  # the trap is there

    first = dict(seen)
    np.random.seed(5)  # noqa: NPY002 - another state of the generator that nothing may read
    explore_exact(exact(violation), 1, 50)
    assert seen == first
    point = next(iter(first))
    assert first[point] == fixture(1, f"paper/exact\n{point.canonical()}").random()


def test_the_seed_chooses_the_examples_and_nothing_else_does() -> None:
    def points(seed: int, name: str = "paper/exact") -> list[dict]:
        found = explore_exact(exact(lambda rng, p: 0.0, id=name), seed, 20)
        return [o.parameters for o in found.outcomes]

    assert points(1) == points(1)
    assert points(1)[2:] != points(2)[2:] and points(1)[2:] != points(1, "paper/other")[2:]


def test_examples_do_not_depend_on_what_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis by itself draws numbers that stand in the source of local modules."""

    def points() -> list[dict]:
        return [o.parameters for o in explore_exact(exact(lambda rng, p: 0.0), 1, 60).outcomes]

    before = points()
    numbers = ", ".join(str(n) for n in range(7, 1000, 13))
    (tmp_path / "full_of_numbers.py").write_text(f"NUMBERS = [{numbers}]\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("full_of_numbers")

    assert points() == before


# --- the rule of nine in ten


def outcomes(*verdicts: str) -> list[PointOutcome]:
    return [outcome(parameters={"n": i}, verdict=verdict) for i, verdict in enumerate(verdicts)]


@pytest.mark.parametrize(
    ("agrees", "undecided", "verdict"),
    [(9, 1, "agrees"), (8, 1, "undecided"), (18, 2, "agrees"), (17, 2, "undecided"), (0, 0, "undecided")],
)
def test_nine_in_ten_examples_must_agree(agrees: int, undecided: int, verdict: str, monkeypatch) -> None:
    made = outcomes(*["agrees"] * agrees, *["undecided"] * undecided)
    monkeypatch.setattr("verify.running.explored.explore_statistical", lambda *_: Explored(made, None, 0.0))
    assert row_of(statistical()).verdict == verdict


@pytest.mark.parametrize(("undecided", "verdict"), [(1, "undecided"), (2, "agrees")])
def test_every_named_example_must_agree(
    undecided: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = outcomes(*("undecided" if i == undecided else "agrees" for i in range(20)))
    monkeypatch.setattr("verify.running.explored.explore_statistical", lambda *_: Explored(made, None, 0.0))
    assert row_of(statistical(examples=(Point(n=0), Point(n=1)))).verdict == verdict


def test_one_disagreeing_example_is_enough_and_stands_last(monkeypatch: pytest.MonkeyPatch) -> None:
    made = outcomes(*["agrees"] * 30, "disagrees", "agrees")
    monkeypatch.setattr(
        "verify.running.explored.explore_statistical", lambda *_: Explored(made, made[30], 0.0)
    )
    row = row_of(statistical())
    assert row.verdict == "disagrees" and row.points[-1] is made[30] and len(row.points) == 32


# --- how many examples are drawn, and what is made of those that failed


@pytest.mark.parametrize(
    ("seconds", "tier", "count"),
    [
        (0.11, Tier.SMOKE, 100),
        (0.12, Tier.DEFAULT, 10),  # ten milliseconds for each of ten drawn and two named ones
        (1.0, Tier.FULL, 100),
    ],
)
def test_a_hundred_examples_are_drawn_where_one_costs_less_than_ten_milliseconds(
    seconds: float, tier: Tier, count: int
) -> None:
    """By what is declared, not by a clock: the same on every machine."""
    named = (Point(n=1, flag=True), Point(n=2, flag=True))
    tested = exact(lambda rng, p: 0.0, seconds=seconds, examples=named)
    assert examples_drawn(tested, tier) == count


@pytest.mark.parametrize("again", [True, False])
def test_what_failed_once_is_judged_in_addition_and_never_counted(again: bool) -> None:
    point = Point(n=77, flag=True)
    tested = exact(
        lambda rng, p: float(again and p.n == 77), failed=(point,), domain={"n": Between(100, 900)}
    )
    row = row_of(tested)
    assert row.verdict == "agrees" and dict(point) not in [o.parameters for o in row.points]
    assert f"n 77, flag True: {'disagrees' if again else 'agrees'}." in row.power

    script = Script(lambda p, replicates: Verdict.AGREES)
    found = explore_statistical(statistical(failed=(point,)), script, 1, 3, ALPHA)
    assert [o.parameters for o in found.again] == [dict(point)]
    assert all(o.parameters != dict(point) for o in found.outcomes)


def test_the_shrunk_example_is_told_with_the_lines_that_reproduce_and_keep_it() -> None:
    row = row_of(exact(violated_from(17)))
    told = surprise_block(row)
    assert f"rerun       {row.rerun}" in told and "--claim paper/exact --seed 1" in row.rerun
    kept = next(line.split(maxsplit=1)[1] for line in told.splitlines() if line.startswith("  keep"))
    assert eval(kept.removeprefix("failed="), {"Point": Point}) == (Point(n=17, flag=False),)
