"""Domains of the parameters of a property: a range for each name, which hypothesis draws from when it is asked.

| range | drawn |
|---|---|
| `Between` | a number, a whole one if both ends are |
| `OneOf` | one of some values |
| `Either` | what one of some ranges holds |
| `Many` | numbers from one range, of some length |
| `Each` | an element from each range, and of `Many` all of them |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class Between(NamedTuple):
    """Range of numbers from `low` to `high`, both included."""

    low: float
    high: float


class _Several:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.parts!r}"


class OneOf(_Several):
    """Choice of one of some values."""


class Either(_Several):
    """Draw from one of some ranges."""


class Each(_Several):
    """Tuple with an element from each of the ranges."""


class Many(NamedTuple):
    """List of `least` to `most` elements of one range, those lists for which `where` holds."""

    of: Range
    least: int
    most: int
    where: Callable[[Any], bool] | None = None


Range = Between | OneOf | Either | Each | Many
Domain = Mapping[str, Range]


def strategy(domain: Range) -> SearchStrategy[Any]:
    """Return the strategy by which hypothesis draws from a range."""
    from hypothesis import strategies as st

    match domain:
        # First, for the next pattern matches whole numbers too.
        case Between(int(low), int(high)):
            return st.integers(low, high)
        case Between(low, high):
            return st.floats(low, high)
        case Many(of, least, most, where):
            found = st.lists(strategy(of), min_size=least, max_size=most)
            return found.filter(where) if where else found
        case OneOf(parts=(False, True)):
            return st.booleans()
        case OneOf(parts=parts):
            return st.sampled_from(parts)
        case Either(parts=parts):
            return st.one_of(*map(strategy, parts))
        case Each(parts=parts):
            found = st.tuples(*map(strategy, parts))
            return found.map(_flat) if any(isinstance(part, Many) for part in parts) else found


def _flat(row: tuple[Any, ...]) -> list[Any]:
    return list(chain.from_iterable(part if isinstance(part, list) else (part,) for part in row))
