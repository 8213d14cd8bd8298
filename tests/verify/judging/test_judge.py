"""Verdicts: the rule, the looks, what is read and compared, and what an undecided claim still asks for."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate.monte_carlo import BLOCK
from tests.refusals import refusal
from tests.verify.judging.by_hand import LOOSE, N, claim, half, outcome_of, scores, verdict_of
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
        (0.81, 1.19, Verdict.AGREES),
        (0.8, 1.1, Verdict.UNDECIDED),  # touching the margin is not inside
        (0.9, 1.2, Verdict.UNDECIDED),
        (0.7, 1.3, Verdict.UNDECIDED),
        (1.2, 1.3, Verdict.UNDECIDED),  # touching it from outside is not outside
        (0.1, 0.8, Verdict.UNDECIDED),
        (1.21, 1.3, Verdict.DISAGREES),
        (0.1, 0.79, Verdict.DISAGREES),
    ],
)
def test_verdict_compares_the_interval_with_the_band(lower: float, upper: float, verdict: Verdict) -> None:
    interval = Interval(estimate=1.0, lower=lower, upper=upper)
    assert decide(interval, 0.8, 1.2) is verdict
    assert decide(replace(interval, obstacle="x"), 0.8, 1.2) is Verdict.UNDECIDED


# --- looks


@pytest.mark.parametrize("budget", [1, 95, 96, 97, 200, 5000, 10**5])
def test_looks_are_whole_blocks_from_the_first_to_the_budget(budget: int) -> None:
    steps = looks(budget)
    assert all(n % BLOCK == 0 for n in steps)
    assert steps[0] == min(FEWEST, steps[-1]) and budget <= steps[-1] < budget + BLOCK
    for one, after in itertools.pairwise(steps[:-1]):
        assert 1.25 * one <= after < 1.25 * one + BLOCK
    assert steps == sorted(set(steps))
    assert steps[:-1] == looks(2 * budget)[: len(steps) - 1]  # a larger budget only appends


# --- kinds


@pytest.mark.parametrize(
    ("mean", "spread", "verdict"),
    [
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


def test_a_ratio_is_of_means_not_the_mean_of_ratios() -> None:
    bottom = np.random.default_rng(0).gamma(4.0, size=4096)
    top = 3 * bottom + 3.0 * (bottom.mean() - bottom)  # correlated: the mean of ratios is far off
    judged = verdict_of(claim(kind=Kind.RATIO, score=("top", "bottom")), {"top": top, "bottom": bottom})
    assert judged.verdict is Verdict.AGREES and abs((top / bottom).mean() - 3.0) > 0.3
    assert_allclose(judged.interval.estimate, top.mean() / bottom.mean())


def test_a_probability_counts_events() -> None:
    tested = claim(kind=Kind.PROPORTION, relative=False, predict=lambda p: 0.25)
    events = {"x": (np.arange(2048) % 4 == 0).astype(float)}
    judged = verdict_of(tested, events)
    assert judged.verdict is Verdict.AGREES and judged.interval.estimate == 0.25
    assert verdict_of(replace(tested, predict=lambda p: 0.5), events).verdict is Verdict.DISAGREES
    with refusal(r"score 'x' must be 0 or 1 to count as an event, got 0.5"):
        verdict_of(tested, {"x": np.repeat([0.0, 0.5, 1.0], 40)})


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(30.0, "agrees"), (3.0, "agrees"), (2.85, "agrees"), (2.7, "undecided"), (2.5, "disagrees")],
)
@pytest.mark.parametrize("kind", [Kind.AT_LEAST, Kind.AT_MOST])
def test_a_bound_is_violated_from_one_side_only_and_so_are_its_rivals(
    kind: Kind, mean: float, verdict: str
) -> None:
    """A weaker bound holds as well, however far it lies from what was measured."""
    sign = 1 if kind is Kind.AT_LEAST else -1
    rivals = {"stronger": lambda p: 29.0 * sign, "weaker": lambda p: -70.0 * sign}
    tested = claim(kind=kind, predict=lambda p: 3.0 * sign, rivals=rivals)
    found = outcome_of(tested, scores(mean * sign))
    assert found.verdict == verdict and not found.offset_resolved
    assert {r.name: r.rejected for r in found.rivals} == {"stronger": mean < 29, "weaker": False}
    assert found.slack == pytest.approx(mean / 3)


def test_measured_inputs_are_subtracted_replicate_by_replicate() -> None:
    """The variation that score and inputs share cancels: without pairing this would be undecided.

    An error of the score is largest relative to the smallest prediction.
    """
    y = np.random.default_rng(1).uniform(1.0, 7.0, N)
    drawn = {"x": 3 * y + 0.1 * scores(0.0)["x"], "y": y}
    tested = claim(
        inputs={"y": 4.0},
        predict=lambda p: p.scale * p.y,
        rivals={"twice": lambda p: 6 * p.y, "itself": lambda p: p.y},
        numerical=0.02,
    )
    found = outcome_of(tested, drawn)
    ratio, mean = drawn["x"] / (3 * y), y.mean()
    paired = (
        mean_interval(ratio - 1, alpha=LOOSE, numerical=0.02 / (3 * y.min()))
        .scaled(3 * mean)
        .shifted(3 * mean)
    )
    assert found.verdict is Verdict.AGREES
    assert_allclose(
        [found.predicted, found.measured, found.margin], [3 * mean, 3 * mean * ratio.mean(), 0.3 * mean]
    )
    assert_allclose([found.lower, found.upper], [paired.lower, paired.upper])
    assert_allclose(found.numerical, 0.02 / y.min() * mean)
    assert_allclose([*found.inputs.values(), found.rivals[0].value], [mean, 6 * mean])
    assert [(r.name, r.rejected) for r in found.rivals] == [("twice", True), ("itself", True)]
    assert mean_interval(drawn["x"], alpha=LOOSE).half_width > found.margin


def test_an_absolute_margin_judges_the_plain_difference() -> None:
    y = scores(4.0, 0.5)["x"]
    x = 3 * y + scores(0.0, 0.3)["x"][::-1]
    tested = claim(inputs={"y": 4.0}, predict=lambda p: 3 * p.y, relative=False, margin=1.2)
    found = outcome_of(tested, {"x": x, "y": y})
    assert_allclose([found.margin, found.predicted, found.measured], [1.2, 3 * y.mean(), x.mean()])


# --- predictions that are no number


@pytest.mark.parametrize("value", [math.inf, math.nan, 1 + 1j, np.complex128(2j)])
@pytest.mark.parametrize("kind", [Kind.MEAN, Kind.RATIO, Kind.PROPORTION])
def test_a_formula_without_a_real_value_disagrees_with_any_measurement(value: complex, kind: Kind) -> None:
    tested = claim(kind=kind, score=("x", "one") if kind is Kind.RATIO else "x", printed=lambda p: value)
    x = np.tile([0.0, 1.0], 128) if kind is Kind.PROPORTION else scores()["x"]
    one = scores(1.0, 0.1)["x"][::-1]
    judged = verdict_of(tested, {"x": x, "one": one}, 1)
    assert judged.verdict is Verdict.DISAGREES and not math.isfinite(judged.predicted)
    assert math.isfinite(judged.interval.half_width)
    assert verdict_of(tested, {"x": x[:32], "one": one[:32]}, 1).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("stray", [math.nan, 1j])
def test_a_formula_without_a_value_at_one_measured_input_disagrees(stray: complex) -> None:
    def stumbling(p: SimpleNamespace):
        return np.where(p.y == np.max(p.y), stray, 3.0 * p.y)

    y = scores(1.0, 0.05)["x"]
    tested = claim(inputs={"y": 1.0}, predict=lambda p: 3 * p.y, printed=stumbling)
    found = outcome_of(tested, {"x": 3 * y + scores(0.0, 0.01)["x"][::-1], "y": y}, 1)
    assert found.verdict is Verdict.DISAGREES and math.isnan(found.predicted)
    assert found.lower < found.measured < found.upper


def test_a_complex_rival_is_rejected() -> None:
    tested = claim(rivals={"root of a negative number": lambda p: (-p.scale) ** 0.5})
    rival = outcome_of(tested, scores()).rivals[0]
    assert rival.rejected and math.isnan(rival.value) and math.isnan(rival.margins)


# --- what scores must be


def test_a_missing_score_names_those_there_are() -> None:
    with refusal(r"score must be one of x, y, got 'z'"):
        verdict_of(claim(score="z"), scores() | {"y": np.ones(N)})
    with refusal(r"score must be one of x, got 'y'"):
        verdict_of(claim(inputs={"y": 1.0}), scores())


@pytest.mark.parametrize("stray", [math.nan, -math.inf])
def test_a_score_that_is_no_number_is_named_with_its_replicate(stray: float) -> None:
    drawn = scores()
    drawn["x"][[17, 40]] = stray
    with refusal(rf"score 'x' must be finite, got {stray} in replicate 17"):
        verdict_of(claim(), drawn)
    assert verdict_of(claim(score="y"), drawn | {"y": np.ones(N)}).interval.obstacle == "zero variance"
