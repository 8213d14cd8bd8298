"""Verdicts: the rule, the looks, what is read and compared, and what an undecided claim still asks for."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from simulate.monte_carlo import BLOCK
from tests.verify.judging.by_hand import LOOSE, N, claim, half, outcome_of, quick, scores, verdict_of
from verify.judging.intervals import FEWEST, Interval, mean_interval
from verify.judging.judge import (
    decide,
    looks,
)
from verify.model import Kind, Verdict

# --- the rule


@pytest.mark.parametrize(
    ("lower", "upper", "verdict"),
    [
        (0.9, 1.1, Verdict.AGREES),
        (0.8, 1.1, Verdict.UNDECIDED),  # touching the margin is not inside
        (0.9, 1.2, Verdict.UNDECIDED),
        (0.7, 1.3, Verdict.UNDECIDED),
        (1.1, 1.3, Verdict.UNDECIDED),
        (1.2, 1.3, Verdict.UNDECIDED),  # touching it from outside is not outside
        (1.21, 1.3, Verdict.DISAGREES),
        (0.1, 0.79, Verdict.DISAGREES),
        (0.1, 0.8, Verdict.UNDECIDED),
        (-math.inf, math.inf, Verdict.UNDECIDED),
    ],
)
def test_verdict_compares_the_interval_with_the_band(lower: float, upper: float, verdict: Verdict) -> None:
    assert decide(Interval(estimate=1.0, lower=lower, upper=upper), 0.8, 1.2) is verdict
    assert (
        decide(Interval(estimate=1.0, lower=lower, upper=upper, obstacle="x"), 0.8, 1.2) is Verdict.UNDECIDED
    )


# --- looks


@quick
@given(st.integers(1, 10**5), st.integers(0, 5000))
def test_looks_are_whole_blocks_from_the_first_to_the_budget(budget: int, more: int) -> None:
    steps = looks(budget)
    assert all(n % BLOCK == 0 for n in steps)
    assert steps[0] == min(FEWEST, steps[-1]) and budget <= steps[-1] < budget + BLOCK
    for one, after in itertools.pairwise(steps[:-1]):
        assert 1.25 * one <= after < 1.25 * one + BLOCK
    assert steps == sorted(set(steps))
    assert steps[:-1] == looks(budget + more)[: len(steps) - 1]  # a larger budget only appends


# --- kinds


@pytest.mark.parametrize(
    ("mean", "spread", "verdict"),
    [
        (3.0, 0.3, Verdict.AGREES),
        (3.15, 0.3, Verdict.AGREES),
        (3.0, 3.0, Verdict.UNDECIDED),
        (3.3, 0.3, Verdict.UNDECIDED),
        (3.45, 0.3, Verdict.DISAGREES),
        (2.5, 0.3, Verdict.DISAGREES),
    ],
)
def test_a_mean_is_judged_within_its_relative_margin(mean: float, spread: float, verdict: Verdict) -> None:
    judged = verdict_of(claim(), scores(mean, spread))
    assert judged.verdict is verdict and judged.predicted == 3.0 and judged.replicates == N
    assert_allclose(judged.margin, 0.3)
    assert_allclose(judged.interval.half_width, half(spread), rtol=1e-6)


def test_numerical_error_widens_the_interval() -> None:
    found = outcome_of(claim(numerical=0.05), scores())
    assert_allclose(found.upper - found.measured, half(0.3) + 0.05, rtol=1e-6)
    assert_allclose([found.statistical, found.numerical], [half(0.3), 0.05], rtol=1e-6)


def test_a_ratio_is_of_means_not_the_mean_of_ratios() -> None:
    rng = np.random.default_rng(0)
    bottom = rng.gamma(4.0, size=4096)
    drawn = {"top": 3 * bottom * rng.gamma(9.0, 1 / 9, size=4096), "bottom": bottom}
    drawn["top"] += 3.0 * (bottom.mean() - bottom)  # correlated: the mean of ratios is far off
    tested = claim(kind=Kind.RATIO, score=("top", "bottom"))
    judged = verdict_of(tested, drawn)
    assert judged.verdict is Verdict.AGREES
    assert_allclose(judged.interval.estimate, drawn["top"].mean() / bottom.mean())
    assert abs((drawn["top"] / bottom).mean() - 3.0) > 0.3


def test_a_probability_counts_events() -> None:
    tested = claim(kind=Kind.PROPORTION, relative=False, predict=lambda p: 0.25)
    events = {"x": (np.arange(2048) % 4 == 0).astype(float)}
    judged = verdict_of(tested, events)
    assert judged.verdict is Verdict.AGREES and judged.interval.estimate == 0.25
    assert verdict_of(dataclasses.replace(tested, predict=lambda p: 0.5), events).verdict is Verdict.DISAGREES


def test_a_probability_of_what_is_no_event_is_refused() -> None:
    tested = claim(kind=Kind.PROPORTION)
    with pytest.raises(ValueError, match=r"score 'x' must be 0 or 1 to count as an event, got 0.5"):
        verdict_of(tested, {"x": np.repeat([0.0, 0.5, 1.0], 40)})


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [
        (30.0, Verdict.AGREES),
        (3.0, Verdict.AGREES),
        (2.85, Verdict.AGREES),
        (2.7, Verdict.UNDECIDED),
        (2.5, Verdict.DISAGREES),
    ],
)
def test_a_lower_bound_is_violated_only_from_below(mean: float, verdict: Verdict) -> None:
    found = outcome_of(claim(kind=Kind.AT_LEAST), scores(mean))
    assert found.verdict is verdict and not found.offset_resolved


def test_a_rival_bound_is_rejected_only_if_it_is_violated() -> None:
    """A weaker bound holds as well, however far it lies from what was measured."""
    tested = claim(kind=Kind.AT_LEAST, rivals={"stronger": lambda p: 9.0, "weaker": lambda p: 0.1})
    rivals = {r.name: r.rejected for r in outcome_of(tested, scores(5.0)).rivals}
    assert rivals == {"stronger": True, "weaker": False}


def test_measured_inputs_are_subtracted_replicate_by_replicate() -> None:
    """The variation that score and inputs share cancels: without pairing this would be undecided."""
    rng = np.random.default_rng(1)
    y = rng.uniform(1.0, 7.0, N)
    drawn = {"x": 3 * y + 0.1 * scores(0.0)["x"], "y": y}
    tested = claim(
        inputs={"y": 4.0},
        predict=lambda p: p.scale * p.y,
        rivals={"twice": lambda p: 6 * p.y, "itself": lambda p: p.y},
    )
    found = outcome_of(tested, drawn)
    assert found.verdict is Verdict.AGREES
    ratio = drawn["x"] / (3 * y)
    assert_allclose([found.predicted, found.measured], [3 * y.mean(), 3 * y.mean() * ratio.mean()])
    assert_allclose(found.margin, 0.1 * found.predicted)  # relative on every replicate, like the residual
    assert found.inputs == {"y": pytest.approx(y.mean())}
    paired = mean_interval(ratio - 1, alpha=LOOSE).scaled(3 * y.mean()).shifted(3 * y.mean())
    assert_allclose([found.lower, found.upper], [paired.lower, paired.upper])
    assert [(r.name, r.rejected) for r in found.rivals] == [("twice", True), ("itself", True)]
    assert_allclose(found.rivals[0].value, 6 * y.mean())

    unpaired = mean_interval(drawn["x"], alpha=LOOSE)
    assert unpaired.half_width > found.margin


def test_a_numerical_error_counts_most_where_the_prediction_is_smallest() -> None:
    """Of residuals relative to predictions from 1 to 7, an error of the score is largest relative to the smallest."""
    y = np.random.default_rng(1).uniform(1.0, 7.0, N)
    drawn = {"x": y + 0.03 * scores(0.0)["x"], "y": y}
    tested = claim(inputs={"y": 4.0}, predict=lambda p: p.y, numerical=0.02)
    found = outcome_of(tested, drawn)
    assert_allclose(found.numerical, 0.02 / y.min() * y.mean())
    assert found.numerical > 3 * 0.02 / y.max() * y.mean()


def test_an_absolute_margin_judges_the_plain_difference() -> None:
    y = scores(4.0, 0.5)["x"]
    drawn = {"x": 3 * y + scores(0.0, 0.3)["x"][::-1], "y": y}
    tested = claim(inputs={"y": 4.0}, predict=lambda p: 3 * p.y, relative=False, margin=1.2)
    found = outcome_of(tested, drawn)
    assert found.margin == 1.2
    assert_allclose([found.predicted, found.measured], [3 * y.mean(), drawn["x"].mean()])


def test_a_printed_formula_reads_the_measured_inputs_too() -> None:
    y = scores(4.0, 0.5)["x"]
    tested = claim(inputs={"y": 4.0}, predict=lambda p: 3 * p.y, printed=lambda p: p.y**2)
    drawn = {"x": 3 * y + scores(0.0, 0.01)["x"][::-1], "y": y}
    assert [verdict_of(tested, drawn, i).verdict for i in (0, 1)] == [Verdict.AGREES, Verdict.DISAGREES]


# --- predictions that are no number


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1 + 1j, np.complex128(2j)])
@pytest.mark.parametrize("kind", [Kind.MEAN, Kind.RATIO, Kind.PROPORTION])
def test_a_formula_without_a_real_value_disagrees_with_any_measurement(value: complex, kind: Kind) -> None:
    tested = claim(kind=kind, score=("x", "one") if kind is Kind.RATIO else "x", printed=lambda p: value)
    x = np.tile([0.0, 1.0], 128) if kind is Kind.PROPORTION else scores()["x"]
    drawn = {"x": x, "one": scores(1.0, 0.1)["x"][::-1]}
    judged = verdict_of(tested, drawn, 1)
    assert judged.verdict is Verdict.DISAGREES and not math.isfinite(judged.predicted)
    assert math.isfinite(judged.interval.half_width)
    assert (
        verdict_of(tested, {name: column[:32] for name, column in drawn.items()}, 1).verdict
        is Verdict.UNDECIDED
    )


@pytest.mark.parametrize("stray", [math.nan, math.inf, 1j])
def test_a_formula_without_a_value_at_one_measured_input_disagrees(stray: complex) -> None:
    def stumbling(p: SimpleNamespace):
        y = np.atleast_1d(p.y)
        return np.where(y == y.max(), stray, 3.0 * y)

    y = scores(1.0, 0.05)["x"]
    tested = claim(inputs={"y": 1.0}, predict=lambda p: 3 * p.y, printed=stumbling)
    found = outcome_of(tested, {"x": 3 * y + scores(0.0, 0.01)["x"][::-1], "y": y}, 1)
    assert found.verdict is Verdict.DISAGREES and math.isnan(found.predicted)
    assert found.lower < found.measured < found.upper
    assert_allclose(found.measured, 3.0)


def test_a_complex_rival_is_rejected() -> None:
    tested = claim(rivals={"root of a negative number": lambda p: (-p.scale) ** 0.5})
    rival = outcome_of(tested, scores()).rivals[0]
    assert rival.rejected and math.isnan(rival.value) and math.isnan(rival.margins)


# --- what scores must be


def test_a_missing_score_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"score must be one of x, y, got 'z'"):
        verdict_of(claim(score="z"), scores() | {"y": np.ones(N)})
    with pytest.raises(ValueError, match=r"score must be one of x, got 'y'"):
        verdict_of(claim(inputs={"y": 1.0}), scores())


@pytest.mark.parametrize("stray", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_named_with_its_replicate(stray: float) -> None:
    drawn = scores()
    drawn["x"][[17, 40]] = stray
    with pytest.raises(ValueError, match=rf"score 'x' must be finite, got {stray} in replicate 17"):
        verdict_of(claim(), drawn)
    drawn["y"] = np.ones(N)
    assert verdict_of(claim(score="y"), drawn).interval.obstacle == "zero variance"  # others are not touched
