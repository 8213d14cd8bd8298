"""Points and replicates of a check: what the user's functions are called with, and what they return.

| name | what it does |
|---|---|
| `Place` | one point: parameters as given, and the name that its random streams are filed under |
| `require_call` | refuse a function that cannot be called with a point |
| `returned_numbers` | what a function returned, as an array of float64 |
| `Replicates` | the draws of one point, which only grow |

Replicate i depends on the seed, the point and i, and on nothing else. With ``vectorised=True`` the unit is a block of
sixteen: one generator and one call draw all of it, so that a block never depends on the budget.
"""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate._checks import did_you_mean
from simulate.monte_carlo import BLOCK, Point, one_thread, stream
from verify.page.wording import numeral

Floats = NDArray[np.float64]

LONGEST = 40
"""Characters of a value of a parameter that are shown."""


class Place:
    """One point of a check.

    Parameters
    ----------
    parameters
        By name: numbers, strings, None, or arrays, lists and mappings of these.

    Raises
    ------
    ValueError
        If a parameter is anything else: it could not name a random stream.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        for name in parameters:
            if not isinstance(name, str):
                raise TypeError(f"points must be mappings from names of parameters, got the name {name!r}")
        self.parameters = dict(parameters)
        # Names in order: the stream must not depend on the order in which a point is written.
        self.stream = Point(point=json.dumps(self.parameters, sort_keys=True, default=_listed))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.stream == other.stream

    def __hash__(self) -> int:
        return hash(self.stream)

    def __str__(self) -> str:
        """The parameters as text, long values cut.

        >>> str(Place({"n": 10, "scale": 0.5}))
        'n = 10, scale = 0.5'
        """
        return ", ".join(f"{name} = {_shorten(value)}" for name, value in self.parameters.items())

    @cached_property
    def at(self) -> str:
        """Where something went wrong, as the end of a sentence."""
        return f" at {self}" if self.parameters else ""


class Replicates:
    """The replicates of one point, drawn as they are asked for.

    Parameters
    ----------
    executor, workers
        Who draws: this process if there is one worker.
    events
        Whether each must be 0 or 1.
    """

    def __init__(
        self,
        simulate: Callable[..., Any],
        place: Place,
        seed: int,
        executor: Executor,
        *,
        workers: int,
        vectorised: bool,
        events: bool,
    ) -> None:
        # Alone, a simulation may use all cores.
        draw = _draw if workers == 1 else _draw_in_process
        self._draw = partial(draw, simulate, place, seed, vectorised, events)
        self._place, self._executor, self._workers = place, executor, workers
        self._vectorised = vectorised
        self.values: Floats = np.empty(0)

    def up_to(self, n: int) -> Floats:
        """The first `n` replicates (a multiple of sixteen), stacked along the first axis."""
        have = len(self.values)
        blocks = range(have, n, BLOCK)
        share = max(1, -(-len(blocks) // self._workers))
        starts = [blocks[i] for i in range(0, len(blocks), share)]
        try:
            ends = [*starts[1:], n]
            futures = [self._executor.submit(self._draw, *ab) for ab in zip(starts, ends, strict=True)]
            parts = [future.result() for future in futures]
        except BrokenProcessPool as error:
            raise RuntimeError(
                f"a worker process crashed or could not load simulate: {IMPORTABLE}"
            ) from error
        for start, part in zip(starts, parts, strict=True):
            first = self.values if have else parts[0]
            _require_shape(part.shape[1:], first.shape[1:], self._place, start)
        self.values = np.concatenate([self.values, *parts] if have else parts)
        if self._vectorised and not have:
            self._require_own_draws()
        return self.values

    def _require_own_draws(self) -> None:
        """Refuse blocks that are all the same: replicates of a generator that is made anew in each call."""
        blocks = self.values.reshape(-1, BLOCK, *self.values.shape[1:])
        # Replicates that do not vary at all have an error of their own.
        if len(blocks) > 1 and (blocks == blocks[0]).all() and (blocks[0] != blocks[0][0]).any():
            raise ValueError(
                f"simulate must draw from rng, got the same {BLOCK} replicates for each rng{self._place.at}"
            )


IMPORTABLE = (
    "other processes must be able to import simulate: define it at the top level of a module and call check under "
    "if __name__ == '__main__' there, or leave workers at 1"
)


def require_processes(simulate: Callable[..., Any], workers: int) -> None:
    """Refuse a simulate that no other process could load."""
    try:
        # Another process has no file to load the function from.
        if simulate.__module__ == "__main__" and not hasattr(sys.modules["__main__"], "__file__"):
            raise AttributeError("it was typed in")
        pickle.dumps(simulate)
    except Exception as error:  # pickle raises whatever the object does
        raise ValueError(f"workers={workers} got {function_name(simulate)}, but {IMPORTABLE}") from error


def require_call(function: Any, what: str, place: Place, *leading: str) -> None:
    """Refuse what is no function, or cannot be called with these arguments and the parameters of a point.

    Examples
    --------
    >>> require_call(lambda m: m, "predict", Place({"n": 10}))
    Traceback (most recent call last):
        ...
    TypeError: predict(m) cannot be called as predict(n=10): missing a required argument: 'm'
    """
    if not callable(function):
        raise TypeError(f"{what} must be a function of the parameters of a point, got {function!r}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C do not say what they take
        return
    try:
        signature.bind(*leading, **place.parameters)
    except TypeError as error:
        unknown = [name for name in place.parameters if name not in signature.parameters]
        meant = "".join(did_you_mean(name, signature.parameters) for name in unknown)
        if not unknown and what in ("predict", "simulate"):  # perhaps swapped, or without a generator
            meant = "; check takes predict(**point) first, then simulate(rng, **point), rng a numpy Generator"
        arguments = ", ".join([*leading, *(f"{k}={_shorten(v)}" for k, v in place.parameters.items())])
        plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        takes = signature.replace(parameters=plain, return_annotation=signature.empty)
        raise TypeError(f"{what}{takes} cannot be called as {what}({arguments}): {error}{meant}") from None


def call_function(
    function: Callable[..., Any], what: str, at: str, parameters: Mapping[str, Any], *leading: Any
) -> Any:
    """Return what a function returns; an exception of it becomes the cause of one that says where it was raised."""
    # what it changes in a list or an array must not reach the next call
    own = copy.deepcopy(dict(parameters))
    try:
        return function(*leading, **own)
    except Exception as error:
        raise RuntimeError(f"{what} failed{at}: {type(error).__name__}: {error}") from error


def returned_numbers(value: Any, what: str, at: str) -> Floats:
    """Return the result of a function, of numpy or torch, as float64.

    Examples
    --------
    >>> returned_numbers([1, 2.5], "predict", " at n = 10")
    array([1. , 2.5])
    >>> returned_numbers(None, "predict", " at n = 10")
    Traceback (most recent call last):
        ...
    ValueError: predict must return real numbers, got None at n = 10
    """
    given = value
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.double() if value.is_floating_point() else value  # numpy has no bfloat16
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:  # rows of different lengths
        raise ValueError(f"{what} must return real numbers, got {_shorten(given)}{at}") from error
    if array.dtype.kind not in "buif" or not array.size:
        raise ValueError(f"{what} must return real numbers, got {_shorten(given)}{at}")
    return array.astype(np.float64)


def _draw(
    simulate: Callable[..., Any],
    place: Place,
    seed: int,
    vectorised: bool,
    events: bool,
    start: int,
    stop: int,
) -> Floats:
    """Replicates `start` to `stop` - 1, whole blocks."""
    size, rows = BLOCK if vectorised else 1, list[Floats]()
    leading = (BLOCK,) if vectorised else ()
    for i in range(start, stop, size):
        rng = stream(seed, "check", place.stream, i)
        at = f"{place.at}, replicate{f's {i} to {i + size - 1}' if vectorised else f' {i}'}"
        value = call_function(simulate, "simulate", at, place.parameters, rng, *leading)
        row = returned_numbers(value, "simulate", at)
        if vectorised and row.shape[:1] != (BLOCK,):
            raise ValueError(
                f"simulate must return {BLOCK} replicates along the first axis when size is {BLOCK}, got shape "
                f"{row.shape}{place.at}"
            )
        if rows:
            _require_shape(row.shape, rows[0].shape, place, i)
        rows.append(row)
    values = np.concatenate(rows) if vectorised else np.stack(rows)
    wrong = ~np.isin(values, (0.0, 1.0)) if events else ~np.isfinite(values)
    if wrong.any():
        rule = "0 or 1 for a probability" if events else "finite numbers"
        where = tuple(np.argwhere(wrong)[0])
        found = numeral(float(values[where]), plain=True)
        raise ValueError(f"simulate must return {rule}, got {found}{place.at}, replicate {start + where[0]}")
    return values


def _draw_in_process(*arguments: Any) -> Floats:
    """Draw on one thread, since there is one worker for each core."""
    with one_thread():
        return _draw(*arguments)


def _require_shape(shape: tuple[int, ...], first: tuple[int, ...], place: Place, replicate: int) -> None:
    if shape != first:
        raise ValueError(
            f"simulate must return replicates of one shape, got {first} and then {shape}{place.at}, "
            f"replicate {replicate}"
        )


def function_name(function: Any, otherwise: str = "") -> str:
    """Return the name of a function, or the name that is given; of a lambda or what has none `otherwise`, if any."""
    name = function if isinstance(function, str) else getattr(function, "__name__", "<")
    return name if "<" not in name else otherwise or repr(function)


def _shorten(value: Any) -> str:
    """Return a value as one line, cut if it is long."""
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    # in quotes if it is a string: '100' is not 100
    text = " ".join(repr(value.tolist() if hasattr(value, "tolist") else value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _listed(value: Any) -> Any:
    """Return arrays, tensors and numbers of numpy as lists and plain numbers, for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ValueError(
        "points must hold numbers, strings, None, and arrays, lists and mappings of these, which name the random "
        f"streams; got {_shorten(value)}. Pass a name instead"
    )
