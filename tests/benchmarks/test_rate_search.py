"""The search for the best rate and the edge: on losses that are known at every place of the grid."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from benchmarks.rates.cells import MOST, Outcome, best, edge, following, place, rate


def searched(seen: Callable[[int], Outcome], first: int, stride: int, most: int = MOST) -> dict[int, Outcome]:
    tried: dict[int, Outcome] = {}
    while len(tried) < most and (at := following(tried, first=first, stride=stride)) is not None:
        assert at not in tried
        tried[at] = seen(at)
    return tried


def lopsided(least: int, last: int) -> Callable[[int], Outcome]:
    """Least at one place, lost beyond another, and nothing learned far below."""
    return lambda k: Outcome(math.inf if k > last else 0.1 * abs(k - least), least - 12 < k <= last)


@pytest.mark.parametrize("first", [-3, 0, 2, 5])
@pytest.mark.parametrize("stride", [2, 4])
@pytest.mark.parametrize("last", [3, 4, 7])
def test_best_and_edge_are_found_to_one_place(first: int, stride: int, last: int) -> None:
    tried = searched(lopsided(3, last), first, stride, most=20)
    assert best(tried) == 3
    assert edge(tried) == last
    assert {2, 4, last + 1} <= set(tried)


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_eight_rates_do_from_nearby(first: int) -> None:
    assert len(searched(lopsided(3, 5), first, 2, most=99)) <= MOST


def test_a_search_that_runs_out_of_rates_ends_at_the_largest() -> None:
    rising = searched(lambda k: Outcome(100.0 - k, True), 0, 4)
    assert best(rising) == max(rising)
    assert len(rising) == MOST


def test_where_nothing_but_losses_are_seen_it_looks_below() -> None:
    tried = searched(lambda k: Outcome(math.inf, False), 0, 4)
    assert sorted(tried) == list(range(-28, 1, 4))
    assert edge(tried) is None


def test_places_are_rates_in_steps_of_the_square_root_of_two() -> None:
    assert [place(rate(k)) for k in range(-9, 9)] == list(range(-9, 9))
    assert rate(2) / rate(1) == pytest.approx(math.sqrt(2))
