"""The rates that a cell of the grid tries: outwards until best and edge lie between two of them, then halving."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

__all__ = ["MOST", "Outcome", "at_an_end", "best", "edge", "following", "place", "rate"]

MOST = 8
"""Rates in a cell."""


class Outcome(NamedTuple):
    """How a run at one rate ended: its loss at the end, infinite if lost, and whether it has learned anything."""

    loss: float
    trains: bool


Tried = Mapping[int, Outcome]
"""By the place on the grid: the rate is the square root of 2 to this power."""


def rate(place: int) -> float:
    """Rate at a place of the grid.

    >>> rate(-4), rate(0)
    (0.25, 1.0)
    """
    return 2.0 ** (place / 2)


def place(wanted: float) -> int:
    """The place nearest to a rate, in ratio.

    >>> place(0.25), place(0.3), place(1.6)
    (-4, -3, 1)
    """
    return round(2 * math.log2(wanted))


def best(tried: Tried) -> int:
    """Where the loss is least; the smaller rate of equals."""
    return min(tried, key=lambda k: (tried[k].loss, k))


def edge(tried: Tried) -> int | None:
    """The largest rate that trains; None if none does."""
    return max((k for k, seen in tried.items() if seen.trains), default=None)


def at_an_end(tried: Tried) -> bool:
    """Whether the best is the smallest or the largest of all, so that a better one may lie beyond."""
    return best(tried) in (min(tried), max(tried))


def following(tried: Tried, *, first: int, stride: int) -> int | None:
    """The next place to try; None where best and edge are known to one place.

    Parameters
    ----------
    tried
        So far.
    first, stride
        Where to begin, and how far to step while the best, or the edge, lies at an end.

    Examples
    --------
    A loss that is least at 3 and infinite from 6 on:

    >>> seen: dict[int, Outcome] = {}
    >>> while (k := following(seen, first=0, stride=4)) is not None:
    ...     seen[k] = Outcome(math.inf if k > 5 else abs(k - 3), k <= 5)
    >>> list(seen), best(seen), edge(seen)
    ([0, 4, 8, 6, 2, 3, 5], 3, 5)
    """
    if not tried:
        return first
    low, high, least = min(tried), max(tried), best(tried)
    if least == high and math.isfinite(tried[high].loss):
        return high + stride
    if least == low:
        return low - stride
    if tried[high].trains:
        return high + stride
    return _halved(sorted(tried), least, edge(tried))


def _halved(places: list[int], least: int, last: int | None) -> int | None:
    """The middle of the widest gap at the best, or above the edge."""
    gaps = sorted(_gaps(places, least, last), key=lambda gap: gap[0] - gap[1])
    if not gaps or gaps[0][1] - gaps[0][0] < 2:
        return None
    return sum(gaps[0]) // 2


def _gaps(places: list[int], least: int, last: int | None) -> Iterator[tuple[int, int]]:
    """Those above the best, above the edge, and below the best, in this order where they are as wide."""
    pairs = list(pairwise(places))
    yield from (pair for pair in pairs if pair[0] == least)
    yield from (pair for pair in pairs if pair[0] == last and last != least)
    yield from (pair for pair in pairs if pair[1] == least)
