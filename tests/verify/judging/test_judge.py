"""Verdicts: the rule, the looks, what is read and compared, and what an undecided claim still asks for."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from simulate.monte_carlo import BLOCK, Point
from verify.judging import judge as judging
from verify.judging.intervals import FEWEST, Interval, mean_interval, multiplier
from verify.judging.judge import (
    PRINTED,
    Judgement,
    applies,
    decide,
    judge,
    labels,
    looks,
    outcome,
    passage,
    readings,
    separation,
    standing,
)
from verify.model import OURS, Claim, Experiment, Kind, Passage, Standing, Verdict

quick = settings(deadline=None, max_examples=50, derandomize=True)
POINT = Point(scale=3.0)
ALPHA = 1e-4
N = 256


def never(block, point):
    raise AssertionError("nothing is simulated here")


def claim(**changes) -> Claim:
    plain = {
        "id": "paper/claim",
        "entries": ("A1",),
        "source": "a paper",
        "statement": "x = 3",
        "experiment": Experiment(id="paper/x", replicate="one x", simulate=never, points=(POINT,)),
        "score": "x",
        "predict": lambda p: p.scale,
        "margin": 0.1,
        "margin_reason": "a test",
    }
    return Claim(**{**plain, **changes})


def scores(mean: float = 3.0, spread: float = 0.3, n: int = N) -> dict[str, np.ndarray]:
    """Symmetric replicates of exactly this mean: the verdict follows from the numbers alone."""
    z = np.linspace(-1.0, 1.0, n)
    return {"x": mean + spread * z / z.std(ddof=1)}


def verdict_of(tested: Claim, drawn: dict[str, np.ndarray], index: int = 0) -> Judgement:
    return judge(tested, readings(tested)[index], POINT, drawn, ALPHA)


def outcome_of(tested: Claim, drawn: dict[str, np.ndarray], index: int = 0):
    judged = verdict_of(tested, drawn, index)
    return outcome(tested, readings(tested)[index], POINT, judged, drawn, [], ALPHA)


def half(spread: float, n: int = N) -> float:
    return multiplier(n, ALPHA) * spread / math.sqrt(n)


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


numbers = st.floats(-10, 10)


@quick
@given(numbers, numbers, numbers, numbers)
def test_verdict_is_the_set_relation_and_turns_with_the_sign(a: float, b: float, c: float, d: float) -> None:
    (lower, upper), (low, high) = sorted((a, b)), sorted((c, d))
    found = decide(Interval(estimate=lower, lower=lower, upper=upper), low, high)
    assert (found is Verdict.AGREES) == (low < lower and upper < high)
    assert (found is Verdict.DISAGREES) == (upper < low or high < lower)
    assert decide(Interval(estimate=-lower, lower=-upper, upper=-lower), -high, -low) is found


# --- looks


@quick
@given(st.integers(1, 10**5))
def test_looks_are_whole_blocks_from_sixty_four_to_the_budget(budget: int) -> None:
    steps = looks(budget)
    assert all(n % BLOCK == 0 for n in steps)
    assert steps[0] == min(FEWEST, steps[-1]) and budget <= steps[-1] < budget + BLOCK
    for one, after in itertools.pairwise(steps[:-1]):
        assert 1.25 * one <= after < 1.25 * one + BLOCK
    assert steps == sorted(set(steps))


@quick
@given(st.integers(1, 5000), st.integers(0, 5000))
def test_a_larger_budget_only_appends_looks(budget: int, more: int) -> None:
    assert looks(budget)[:-1] == looks(budget + more)[: len(looks(budget)) - 1]


# --- readings


def test_a_claim_without_a_printed_formula_has_one_reading() -> None:
    plain = claim(expected=Verdict.DISAGREES)
    assert readings(plain) == (("theory", plain.predict, "x", Verdict.DISAGREES),)


def test_a_printed_formula_is_a_second_reading_expected_to_disagree() -> None:
    def printed(p):
        return 2 * p.scale

    tested = claim(printed=printed)
    assert readings(tested) == (
        ("corrected", tested.predict, "x", Verdict.AGREES),
        (PRINTED, printed, "x", Verdict.DISAGREES),
    )
    assert verdict_of(tested, scores(), 0).verdict is Verdict.AGREES
    assert verdict_of(tested, scores(), 1).verdict is Verdict.DISAGREES


def test_a_printed_score_is_judged_against_the_same_prediction() -> None:
    tested = claim(printed="as_read")
    assert readings(tested)[1] == (PRINTED, tested.predict, "as_read", Verdict.DISAGREES)
    both = scores() | {"as_read": scores(4.0)["x"]}
    assert verdict_of(tested, both, 0).interval.estimate == pytest.approx(3.0)
    assert verdict_of(tested, both, 1).interval.estimate == pytest.approx(4.0)
    assert verdict_of(tested, both, 1).verdict is Verdict.DISAGREES
    assert applies(tested, readings(tested)[1], POINT)


@pytest.mark.parametrize(
    ("told", "names", "standings"),
    [
        (Standing.MISPRINT, ("corrected", PRINTED), (Standing.CORRECTED, Standing.MISPRINT)),
        (Standing.OUTSIDE, ("theory", PRINTED), (Standing.OURS, Standing.OUTSIDE)),
        (Standing.AS_STATED, ("theory", PRINTED), (Standing.OURS, Standing.AS_STATED)),
    ],
)
def test_only_what_stands_beside_a_misprint_is_called_corrected(
    told: Standing, names: tuple[str, str], standings: tuple[Standing, Standing]
) -> None:
    tested = claim(printed=lambda p: 0.0, finding="wrong", passage=Passage(told, "if wide", "Section 1"))
    assert labels(tested) == names == tuple(reading.label for reading in readings(tested))
    assert tuple(standing(tested, name) for name in names) == standings
    assert passage(tested, PRINTED) == tested.passage and not passage(tested, names[0]).words


def test_a_misprint_without_a_form_to_be_judged_leaves_the_corrected_one_with_the_words() -> None:
    words = Passage(Standing.MISPRINT, "if wide", "Section 1")
    tested = claim(passage=words)
    assert labels(tested) == ("corrected",) == tuple(reading.label for reading in readings(tested))
    assert standing(tested, "corrected") is Standing.CORRECTED
    assert passage(tested, "corrected") == words._replace(standing=Standing.CORRECTED)
    itself = claim(passage=words, expected=Verdict.DISAGREES, finding="wrong")
    assert labels(itself) == ("theory",) and passage(itself, "theory") == words


@pytest.mark.parametrize("told", [None, OURS])
def test_a_claim_with_one_reading_stands_as_its_passage_says(told: Passage | None) -> None:
    tested = claim(passage=told)
    assert labels(tested) == ("theory",)
    assert standing(tested, "theory") is (Standing.OURS if told else Standing.AS_STATED)


def test_a_reading_that_coincides_with_the_theory_is_not_judged_there() -> None:
    tested = claim(printed=lambda p: p.scale if p.scale < 5 else 2 * p.scale)
    corrected, printed = readings(tested)
    assert [applies(tested, printed, Point(scale=s)) for s in (3.0, 6.0)] == [False, True]
    assert [applies(tested, corrected, Point(scale=s)) for s in (3.0, 6.0)] == [True, True]


def test_separation_counts_margins() -> None:
    tested = claim()
    assert_allclose(separation(tested, POINT, lambda p: 3.9), 3.0)
    assert_allclose(separation(claim(relative=False), POINT, lambda p: 3.9), 9.0)
    assert separation(tested, POINT, tested.predict) == 0.0
    for no_number in (math.inf, math.nan, 1j, np.complex128(1j)):
        assert separation(tested, POINT, lambda p, v=no_number: v) == math.inf


def test_separation_reads_measured_inputs_at_their_typical_values() -> None:
    tested = claim(inputs={"y": 2.0}, predict=lambda p: p.scale * p.y)
    assert tested.prediction(POINT) == 6.0 and tested.margin_at(POINT) == pytest.approx(0.6)
    assert_allclose(separation(tested, POINT, lambda p: p.scale + p.y), 1 / 0.6)


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


def test_an_absolute_margin_is_in_the_unit_of_the_prediction() -> None:
    assert_allclose(verdict_of(claim(relative=False), scores()).margin, 0.1)


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
    paired = mean_interval(ratio - 1, alpha=ALPHA).scaled(3 * y.mean()).shifted(3 * y.mean())
    assert_allclose([found.lower, found.upper], [paired.lower, paired.upper])
    assert [(r.name, r.rejected) for r in found.rivals] == [("twice", True), ("itself", True)]
    assert_allclose(found.rivals[0].value, 6 * y.mean())

    unpaired = mean_interval(drawn["x"], alpha=ALPHA)
    assert unpaired.half_width > found.margin


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


# --- outcomes


def test_an_offset_inside_the_margin_is_resolved() -> None:
    assert outcome_of(claim(), scores(3.2)).offset_resolved
    assert not outcome_of(claim(), scores(3.01)).offset_resolved
    assert not outcome_of(claim(), scores(4.0)).offset_resolved


def test_rivals_are_placed_in_margins_and_rejected_by_the_interval() -> None:
    tested = claim(
        rivals={"far": lambda p: 3.9, "near": lambda p: 3.02},
        printed=lambda p: 6.0,
    )
    far, near = outcome_of(tested, scores()).rivals
    assert (far.name, far.value, far.rejected) == ("far", 3.9, True)
    assert_allclose([far.margins, near.margins], [3.0, 0.02 / 0.3])
    assert not near.rejected
    assert outcome_of(tested, scores(), 1).rivals == []


def test_no_rival_is_rejected_without_an_interval() -> None:
    found = outcome_of(claim(rivals={"far": lambda p: 1e9}), scores(n=32))
    assert found.reason == "too few replicates" and not found.rivals[0].rejected


def test_an_outcome_uses_the_replicates_of_its_verdict_and_no_later_ones() -> None:
    tested = claim(inputs={"y": 1.0}, predict=lambda p: 3 * p.y, rivals={"y": lambda p: p.y})
    y = scores(1.0, 0.05)["x"]
    drawn = {"x": 3 * y + scores(0.0, 0.01)["x"][::-1], "y": y}
    judged = verdict_of(tested, drawn)
    later = {name: np.append(column, np.full(64, 1e6)) for name, column in drawn.items()}
    found = outcome(tested, readings(tested)[0], POINT, judged, later, [], ALPHA)
    assert found == outcome_of(tested, drawn) and found.replicates == N


# --- undecided


@pytest.mark.parametrize(
    ("drawn", "reason"),
    [
        (scores(n=32), "too few replicates"),
        ({"x": np.full(N, 3.0)}, "zero variance"),
        ({"x": np.append(np.zeros(N - 1), 768.0)}, "too skewed"),
        (scores(3.3), "budget"),
    ],
)
def test_undecided_says_why(drawn: dict[str, np.ndarray], reason: str) -> None:
    found = outcome_of(claim(), drawn)
    assert found.verdict is Verdict.UNDECIDED and found.reason == reason
    assert (found.needed is None) == (reason != "budget")


@pytest.mark.parametrize(
    ("kind", "mean", "gap"),
    [
        (Kind.MEAN, 3.0, 0.3),
        (Kind.MEAN, 3.2, 0.1),
        (Kind.MEAN, 3.5, 0.2),
        (Kind.MEAN, 2.6, 0.1),
        (Kind.AT_LEAST, 3.2, 0.5),  # only the lower edge of the band counts
        (Kind.AT_LEAST, 2.6, 0.1),
    ],
)
@pytest.mark.parametrize("numerical", [0.0, 0.04])
def test_needed_replicates_shrink_the_statistical_part_to_the_distance_from_the_band(
    kind: Kind, mean: float, gap: float, numerical: float
) -> None:
    found = outcome_of(claim(kind=kind, numerical=numerical), scores(mean, 4.0))
    assert found.reason == "budget"
    expected = N * (half(4.0) / (gap - numerical)) ** 2
    assert found.needed is not None and abs(found.needed - expected) < BLOCK and found.needed % BLOCK == 0


def test_no_number_of_replicates_is_enough_against_the_numerical_bound_or_on_the_edge() -> None:
    assert outcome_of(claim(numerical=0.5), scores()).needed == math.inf
    assert outcome_of(claim(predict=lambda p: 2.0, margin=1.0, relative=False), scores(3.0)).needed > 1e6


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


def test_public_names_exist() -> None:
    assert all(hasattr(judging, name) for name in judging.__all__)
