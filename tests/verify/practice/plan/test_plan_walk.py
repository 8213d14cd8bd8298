"""The walk over rates: where it goes, what it calls trained, and when it refuses."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from verify.practice.plan.walk import Ladder, Walked, walked

LADDER = Ladder(200)
Law = Callable[[float, int], float]


@dataclass
class Toy:
    """A run whose loss is a function of rate and steps; lost where it is infinite."""

    rate: float
    law: Law
    steps: int = 0
    lost: bool = field(default=False)
    first: float = 1.0

    def until(self, steps: int) -> None:
        self.steps = max(steps, self.steps)
        self.lost = self.lost or math.isinf(self.law(self.rate, self.steps))

    def final(self) -> float:
        return math.inf if self.lost else self.law(self.rate, self.steps)

    def largest_change(self) -> float:
        return max(abs(self.law(self.rate, step) - self.first) for step in range(1, self.steps + 1))


def go(law: Law, *, rate: float = 0.1, stride: int = 1, constant: float = 1.0, start: float = 1.0) -> Walked:
    return walked(
        lambda at: Toy(at, law, first=start),
        lambda _: start,
        rate=rate,
        constant=constant,
        ladder=LADDER,
        stride=stride,
    )


def valley(best: float, edge: float) -> Law:
    """Lowest at one rate, lost from another on."""
    return lambda rate, _: math.inf if rate >= edge else min(0.1 + 0.1 * abs(math.log2(rate / best)), 0.95)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("steps_away", [-6, -3, -1, 0, 1, 2, 3, 7])
def test_the_best_rung_is_found_from_anywhere(steps_away: int, stride: int) -> None:
    best = 0.1 * 2.0**steps_away
    found = go(valley(best, 5 * best), stride=stride)
    assert found.start.rate == found.best.rate == pytest.approx(best)
    assert (found.largest.rate, found.failed.rate) == (pytest.approx(4 * best), pytest.approx(8 * best))
    assert found.failed.loss is None


def test_strides_of_four_are_filled_in() -> None:
    """The best is a factor of 2 below the best of those."""
    losses = {-4: 0.6, -3: 0.55, -2: 0.5, -1: 0.2, 0: 0.3, 1: 0.6, 2: 0.7}
    found = go(lambda rate, _: losses.get(round(math.log2(rate / 0.1)), math.inf), stride=2)
    assert found.start.rate == pytest.approx(0.05)


def test_a_rung_below_a_failed_one_is_stepped_back_from() -> None:
    found = go(valley(0.4, 0.5))
    assert found.best.rate == pytest.approx(0.4)
    assert found.start.rate == pytest.approx(0.2)
    assert found.start.steps == found.best.steps
    assert found.largest.rate == pytest.approx(0.4)
    assert found.failed.rate == pytest.approx(0.8)


def test_the_best_two_are_taken_further_and_may_change_places() -> None:
    """After a rung the higher rate leads, later the lower one."""
    found = go(
        lambda rate, steps: min(
            0.5 + 0.1 * abs(math.log2(rate / (0.4 if steps <= LADDER.rung else 0.2))), 0.9
        )
    )
    assert found.start.rate == pytest.approx(0.2)
    assert [r.rate for r in found.rungs if r.steps >= LADDER.longer] == pytest.approx([0.2, 0.4])


@pytest.mark.parametrize(("behind", "rate"), [(0.02, 0.4), (0.03, 0.2)])
def test_of_two_that_hardly_differ_the_higher_is_taken(behind: float, rate: float) -> None:
    """A gain of 0.5 and a twentieth of it: 0.025."""
    losses = {0.1: 0.8, 0.2: 0.5, 0.4: 0.5 + behind, 0.8: 0.9}
    found = go(lambda at, _: losses.get(round(at, 3), 0.95))
    assert found.start.rate == pytest.approx(rate)


def test_a_dead_network_never_counts_as_trained() -> None:
    """Its loss stays where it fell: below the start of 3, at that of a constant."""
    found = go(lambda rate, _: 1.0 if rate > 0.5 else 0.3 + 0.1 * abs(math.log2(rate / 0.4)), start=3.0)
    assert found.failed.rate == pytest.approx(0.8)
    assert found.failed.loss == 1.0 and not found.failed.trains
    assert found.start.rate == pytest.approx(0.2)


def test_where_nothing_beats_a_constant_there_is_no_rate() -> None:
    found = go(lambda rate, _: 0.995 + 0.001 * abs(math.log2(rate / 0.4)), start=2.0)
    assert found.start is None and found.largest is None and found.failed is None
    assert found.best.steps == LADDER.longest
    assert not any(rung.trains for rung in found.rungs)


def test_a_second_valley_on_the_way_to_the_edge_is_taken() -> None:
    """Large rates from trained parameters raise the loss at first, and are better after that."""

    def law(rate: float, steps: int) -> float:
        if rate > 3:
            return math.inf
        late = 0.2 + 0.1 * abs(math.log2(rate / 0.8))
        return min(
            0.7 + 0.05 * abs(math.log2(rate / 0.05)), late + 0.3 * (steps <= 60) if rate > 0.3 else 1.0
        )

    found = go(law)
    assert found.best.rate == pytest.approx(0.8)
    assert found.start.rate == pytest.approx(0.8)
    assert found.failed.rate == pytest.approx(3.2)


def test_below_rates_that_do_not_move_the_loss_nothing_is_tried() -> None:
    found = go(lambda rate, _: 1.0 + 10 * rate)
    assert found.start is None
    assert 1e-5 < min(rung.rate for rung in found.rungs) < 1e-4


@pytest.mark.parametrize("end", [0.9995, 1.0, 1.0005])
def test_a_loss_that_rose_and_came_back_has_moved(end: float) -> None:
    """Rates at which the loss rises and comes back are too high: the network trains below them."""

    def law(rate: float, steps: int) -> float:
        if rate > 0.03:
            return end if steps > LADDER.rung // 2 else 2.0
        return 0.5 + 0.1 * abs(math.log2(rate / 0.025))

    found = go(law)
    assert found.best.trains and found.best.rate == pytest.approx(0.025)


def test_on_a_plateau_runs_go_on_until_it_ends() -> None:
    """A high rate leads on the plateau and is lost after it; a low one comes late."""

    def law(rate: float, steps: int) -> float:
        if steps <= LADDER.longer:
            return 0.98 - 0.01 * math.log2(rate) / 10
        return math.inf if rate > 0.3 else 0.3 + abs(math.log2(rate / 0.05)) / 10

    found = go(law)
    assert found.start.rate == pytest.approx(0.05)
    assert found.start.steps > LADDER.longer
    assert found.failed.rate == pytest.approx(0.4)


def test_a_rung_that_ends_above_the_start_has_failed() -> None:
    found = go(lambda rate, _: 0.9 if rate > 0.3 else 0.2, start=0.8)
    assert found.failed.rate == pytest.approx(0.4)
    assert found.failed.fate() == "loss 0.9 after 120 steps"
