"""The search over rates: where it goes, what it calls trained, and when it gives no rate."""

import math
from collections.abc import Callable, Collection, Iterator

import pytest

from verify.practice.plan import halving
from verify.practice.plan.halving import Answer, Halving

Law = Callable[[int, int], float]
"""Loss by place and number of steps."""


def search(
    law: Law, *, near: bool = True, first: float = 1.0, constant: float = 1.0, stop: int = 99
) -> Halving:
    """Return a search that has ended, at the latest after `stop` runs."""
    runs = 0

    def losses(places: Collection[int], steps: int) -> Iterator[tuple[int, float]]:
        nonlocal runs
        for place in places:
            runs += 1
            if runs > stop:
                raise TimeoutError
            yield place, law(place, steps)

    made = Halving(losses, first=first, constant=constant, horizon=200, near=near)
    try:
        made.go()
    except TimeoutError:
        assert runs > stop
    return made


def valley(best: int, edge: int) -> Law:
    """Lowest at one place, diverging from another on."""
    return lambda place, _: math.inf if place >= edge else min(0.1 + 0.1 * abs(place - best), 0.95)


@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("best", [-6, -3, -1, 0, 1, 2, 3, 7])
def test_the_best_rate_is_found_from_anywhere(best: int, near: bool) -> None:
    assert search(valley(best, best + 1), near=near).found() == Answer(best, trains=best, fails=best + 1)
    wide = search(valley(best, best + 9), near=near).found()
    assert (wide.start, wide.fails) == (best, None) and wide.trains > best


def test_the_best_two_are_taken_further_and_may_change_places() -> None:
    """After half of the steps the larger rate leads, later the smaller one."""
    found = search(lambda place, steps: 0.5 + 0.1 * abs(place - (1 if steps < 200 else 0)))
    assert found.found().start == 0
    assert sorted(place for place, losses in found.seen.items() if 200 in losses) == [0, 1]


each_late = pytest.mark.parametrize("late", [100, 200])


@each_late
def test_larger_rates_are_added_in_later_stages(late: int) -> None:
    """Short runs favour small rates: in longer ones, larger rates are better than all that went on."""
    found = search(lambda place, steps: 0.5 + 0.1 * abs(place - (0 if steps < late else 3)))
    assert found.found().start == 3
    assert search(lambda place, steps: 0.5 + 0.1 * abs(place + 3 * (steps >= late))).found().start == (
        -3 if late == 100 else -1
    )


def test_a_loss_that_rises_first_may_come_back() -> None:
    found = search(lambda place, steps: 5.0 + abs(place) if steps < 200 else 0.5 + 0.1 * abs(place))
    assert found.found().start == 0


def test_a_dead_network_never_counts_as_trained() -> None:
    """Its loss stays where it fell: below the start of 3, at that of a constant output."""
    found = search(lambda place, _: 1.0 if place > 1 else 0.3 + 0.1 * abs(place - 1), first=3.0)
    assert found.found() == Answer(start=1, trains=1, fails=2)
    assert not found.trained(2)


def test_where_nothing_beats_a_constant_there_is_no_rate() -> None:
    found = search(lambda place, _: 0.995 + 0.001 * abs(place - 2), first=2.0).found()
    assert found == Answer(None, None, None)


@each_late
def test_where_all_that_went_on_diverge_there_is_no_rate(late: int) -> None:
    """Smaller rates trained in the first stage, and were not tried longer."""
    found = search(
        lambda place, steps: math.inf if steps >= late else 0.5 - 0.1 * place * (place < 2), near=False
    )
    assert found.found() == Answer(None, None, None)
    assert found.trained(min(found.seen)) == (late == 200)


def test_a_negative_loss_is_compared_by_its_size() -> None:
    law: Law = lambda place, _: -5 + abs(place - 1) if place < 4 else math.inf  # noqa: E731
    assert search(law, first=-1.0, constant=math.inf).found().start == 1
    assert search(law, first=-4.97, constant=math.inf).found().start is None


def test_below_rates_that_do_not_move_the_loss_nothing_is_tried() -> None:
    found = search(lambda place, _: 1.0 + 2.0**place)
    assert found.found().start is None
    assert 3 < -min(found.seen) <= 1 + 2 * halving._MOST


@pytest.mark.parametrize("end", [0.9995, 1.0, 1.0005])
def test_a_loss_that_came_back_to_the_start_is_searched_below(end: float) -> None:
    """A single rate may end where it began; the network trains at smaller ones."""
    found = search(
        lambda place, _: math.inf if place > -1 else end if place == -1 else 0.5 - 0.1 * (place == -3)
    )
    assert found.found() == Answer(start=-3, trains=-2, fails=-1)


def test_a_plateau_is_left_by_longer_runs() -> None:
    """Nothing trains in an eighth of the steps, and the largest rates diverge later."""

    def law(place: int, steps: int) -> float:
        later = 0.5 - 0.1 * place if place < 3 else math.inf
        return 1.0 - 0.001 * place if steps < 100 else later

    assert search(law).found() == Answer(start=2, trains=2, fails=3)


@pytest.mark.parametrize("stop", range(9))
def test_a_search_that_is_stopped_answers_from_its_runs(stop: int) -> None:
    made = search(valley(1, 4), stop=stop)
    found = made.found()
    assert (found.start is None) == (stop == 0)
    assert found.start in (None, *made.seen)
