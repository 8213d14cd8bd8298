"""A line of the table, and what many results obey."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.theory.fuzz.networks import NETWORK, OF_NETWORK, RATIOS
from tests.theory.fuzz.strategies import (
    ANY_SIZE,
    HUGE,
    batches,
    counts,
    datasets,
    dims,
    flags,
    logits,
    mostly,
    orders,
    planes,
    points,
    probabilities,
    shaped,
    shares,
    signed,
    sizes,
    widths,
)

BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    **NETWORK,
    **RATIOS,
    **dict.fromkeys(["dim", "rank"], dims),
    **dict.fromkeys(
        ["samples", "outputs", "inputs", "hidden", "width", "sample_rank", "symmetries", "steps"], counts
    ),
    **dict.fromkeys(
        [
            "replacement",
            "semidefinite",
            "biases",
            "orthogonal",
            "lower",
            "average",
            "finite_width",
            "finite_samples",
        ],
        flags,
    ),
    **dict.fromkeys(
        ["eigenvalue", "coefficient", "skewness", "eigenvalues", "spike", "excess", "trace", "s", "x"], signed
    ),
    **dict.fromkeys(["positive_share", "contrast", "squared_error"], shares),
    **dict.fromkeys(["p", "mean_probability", "prior"], probabilities),
    **dict.fromkeys(["batch_size", "known"], batches),
    **dict.fromkeys(["members", "classes"], mostly(st.integers(2, 12), st.sampled_from(HUGE))),
    **dict.fromkeys(["width_ratio", "input_ratio"], mostly(st.floats(0.5, 2), ANY_SIZE)),
    "dataset_size": datasets,
    "widths": widths,
    "crossover": mostly(sizes, st.just(math.inf)),
    "u": planes,
    "z": logits,
    "value": points,
    "order": orders,
    "gamma": mostly(shaped(st.floats(1, 3))),
    "input_overlap": mostly(st.floats(-1, 1), ANY_SIZE),
    "digits": st.one_of(st.none(), st.none(), mostly(st.integers(1, 30), st.sampled_from(HUGE))),
}
"""What an argument of this name may be, in most functions; sizes where nothing is said."""


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


def lines(
    module: ModuleType,
    names: str,
    holds: Callable[[Any, Any], None] = lambda _, value: None,
    given: Mapping[str, st.SearchStrategy[Any]] | None = None,
    **more: Any,
) -> dict[str, Line]:
    """Lines of several functions of a module whose results obey the same, `given` what differs from `BY_NAME`."""
    found, mine = {}, BY_NAME | dict(given or {})
    for name in names.split():
        function = getattr(module, name)
        arguments = {a: mine.get(a, sizes) for a in inspect.signature(function).parameters}
        network = (
            {"unsettled": True, "also": OF_NETWORK} if {"activation", "activations"} & set(arguments) else {}
        )
        found[f"{module.__name__.removeprefix('theory.')}.{name}"] = Line(
            function, arguments, holds, **network | more
        )
    return found


def between(low: float, high: float) -> Callable[[Any, Any], None]:
    def holds(_: Any, value: Any) -> None:
        assert np.all((np.asarray(value) >= low) & (np.asarray(value) <= high))

    return holds


positive = between(0, math.inf)


def real(_: Any, value: Any) -> None:
    assert np.asarray(value).dtype == np.float64


def below_the_dataset(arguments: Mapping[str, Any], value: Any) -> None:
    assert np.all((value >= 0) & (value <= np.asarray(arguments["dataset_size"], dtype=np.float64)))
