"""Parameter points: plain values by name, which identify streams and results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np


class Point(Mapping[str, Any]):
    """The parameters of one run of an experiment: immutable, hashable, read as attributes.

    Values are numbers, strings, booleans, or tuples of these, so that a point has one JSON form on every
    machine.

    Raises
    ------
    ValueError
        If a value is anything else, or a name would hide a method (``keys``, ``get``, ...).

    Examples
    --------
    >>> p = Point(dim=200, spike=1.7)
    >>> p.spike, p | {"spike": 2.5}
    (1.7, Point(dim=200, spike=2.5))
    """

    __slots__ = ("_canonical", "_values")
    _values: dict[str, Any]
    _canonical: str

    def __init__(self, **values: Any) -> None:
        for name in values:
            if hasattr(Point, name):
                raise ValueError(f"parameter must not have the name of a method of Point, got {name!r}")
        object.__setattr__(self, "_values", {name: _frozen(name, value) for name, value in values.items()})
        object.__setattr__(self, "_canonical", "")

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "_values")[name]
        except KeyError:
            raise AttributeError(f"no parameter {name!r}; this point has {', '.join(self._values)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a point is immutable; write point | {{{name!r}: value}}")

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __or__(self, other: Mapping[str, Any]) -> Point:
        return Point(**{**self._values, **other})

    def __hash__(self) -> int:
        return hash(self.canonical())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.canonical() == other.canonical()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Point, **self._values), ()

    def __repr__(self) -> str:
        return f"Point({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"

    def canonical(self) -> str:
        """JSON form with sorted keys, which identifies streams and results."""
        if not self._canonical:  # made once: points of runs are looked up at every block, most others never
            object.__setattr__(self, "_canonical", json.dumps(self._values, sort_keys=True))
        return self._canonical


def _frozen(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_frozen(name, v) for v in value)
    # numbers of numpy have no JSON form
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, bool | int | float | str):
        raise ValueError(f"{name} must be a number, a string, a boolean or a tuple of these, got {value!r}")
    return plain
