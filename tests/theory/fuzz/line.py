"""A line of the table, and what many results obey."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st


@dataclasses.dataclass(frozen=True)
class Line:
    """How a public name is called, what its arguments may be, and what its results obey."""

    function: Callable[..., Any]
    arguments: Mapping[str, st.SearchStrategy[Any]] | st.SearchStrategy[dict[str, Any]]
    holds: Callable[[Any, Any], None] = lambda _, value: None
    infinite: bool = False  # the docstring promises infinities
    unsettled: bool = False  # the docstring promises a ConvergenceError
    pooled: bool = False  # an array is one thing, not several
    also: tuple[str, ...] = ()  # names that a message may use in place of the argument's

    def strategy(self) -> st.SearchStrategy[dict[str, Any]]:
        return (
            st.fixed_dictionaries(dict(self.arguments))
            if isinstance(self.arguments, Mapping)
            else self.arguments
        )


def between(low: float, high: float) -> Callable[[Any, Any], None]:
    def holds(_: Any, value: Any) -> None:
        assert np.all((np.asarray(value) >= low) & (np.asarray(value) <= high))

    return holds


def real(_: Any, value: Any) -> None:
    assert np.asarray(value).dtype == np.float64


def below_the_dataset(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all((value >= 0) & (value <= np.asarray(arguments["dataset_size"], dtype=np.float64)))
