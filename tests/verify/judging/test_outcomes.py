"""Outcomes: the record of a verdict, and why there is none."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate.monte_carlo import BLOCK
from tests.verify.judging.by_hand import LOOSE, POINT, N, claim, half, outcome_of, scores, verdict_of
from verify.judging.guards import SKEWED
from verify.judging.intervals import FEWEST, Interval
from verify.judging.judge import Judgement, _undecided, outcome, readings
from verify.judging.power import claim_power
from verify.model import Kind, Verdict
from verify.results import RivalOutcome

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
    found = outcome(tested, readings(tested)[0], POINT, judged, later, [], LOOSE)
    assert found == outcome_of(tested, drawn) and found.replicates == N


def judgement(lower: float, upper: float) -> Judgement:
    return Judgement(
        verdict=Verdict.UNDECIDED,
        interval=Interval(estimate=(lower + upper) / 2, lower=lower, upper=upper),
        predicted=3.0,
        margin=0.3,
        replicates=N,
    )


def test_a_rival_is_placed_in_half_widths_on_the_side_where_a_bound_fails() -> None:
    rival = RivalOutcome(name="far", value=3.9, margins=3.0, rejected=True)
    kinds = (Kind.MEAN, Kind.AT_LEAST, Kind.AT_MOST)
    assert_allclose(
        [judgement(2.6, 3.2).half_widths_to(rival, kind) for kind in kinds], [10 / 3, 10 / 3, -10 / 3]
    )


@pytest.mark.parametrize(("kind", "bound"), [(Kind.AT_LEAST, 2.5), (Kind.AT_MOST, 3.5)])
def test_power_of_a_bound_is_the_weakest_stronger_one_that_its_interval_breaks(
    kind: Kind, bound: float
) -> None:
    tested = claim(kind=kind, predict=lambda p: bound, margin=0.3, relative=False)
    found = outcome_of(tested, scores(3.0))
    weakest = found.upper + 0.3 if kind is Kind.AT_LEAST else found.lower - 0.3
    assert_allclose(claim_power(tested, [found]).sensitivity, abs(weakest - bound), rtol=1e-12)


# --- undecided


@pytest.mark.parametrize(
    ("drawn", "reason"),
    [
        ({"x": np.append(np.zeros(N - 1), 768.0)}, SKEWED),
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
    assert abs(found.needed - expected) < BLOCK and found.needed % BLOCK == 0


def test_a_distribution_needs_the_next_doubling() -> None:
    """Gap .1 at a half-width of .3: nine times the replicates, and looks are at doublings of the fewest only."""
    reason, needed = _undecided(claim(kind=Kind.DISTRIBUTION), judgement(2.9, 3.5))
    assert (reason, needed) == ("budget", FEWEST * 2 ** math.ceil(math.log2(9 * N / FEWEST)))


def test_no_number_of_replicates_is_enough_against_the_numerical_bound_or_on_the_edge() -> None:
    assert outcome_of(claim(numerical=0.5), scores()).needed == math.inf
    assert outcome_of(claim(predict=lambda p: 2.0, margin=1.0, relative=False), scores(3.0)).needed > 1e6
