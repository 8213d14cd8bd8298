"""What every call must obey: a right value, or a message that names an argument, and nothing else touched."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.theory.fuzz.line import Line
from theory import outliers
from theory.activations.gaussian import ConvergenceError

__all__ = ["check", "outcome"]

_LONGEST = 1500  # characters of a message


def check(name: str, line: Line, arguments: Mapping[str, Any]) -> str:
    """Call once, and again with the same numbers in other forms; "value", "refused" or "unsettled" if all is well."""
    before = _state(arguments)
    found = outcome(line, arguments)
    assert _state(arguments) == before, "an argument was changed"
    if isinstance(found, ConvergenceError):
        assert line.unsettled, f"{type(found).__name__}: {found}"
        return "unsettled"
    if isinstance(found, ValueError):
        _names_an_argument(line, arguments, str(found))
        return "refused"
    for numbers in _leaves(found):
        assert not np.isnan(numbers).any(), f"not a number in {found!r}"
        assert line.infinite or np.isfinite(numbers).all(), f"infinite: {found!r}"
    line.holds(arguments, found)
    for argument, form, other in _forms(arguments):
        again = outcome(line, other)
        same = not isinstance(again, Exception) and _same(found, again)
        assert same, f"{name}: {found!r} became {again!r} with {argument} as {form}"
    if not line.pooled:
        _alone_as_beside_another(name, line, arguments, found)
    return "value"


def _alone_as_beside_another(name: str, line: Line, arguments: Mapping[str, Any], found: Any) -> None:
    """Where arrays are taken, a number in one has the result that it has alone."""
    scalars = {
        key: value for key, value in arguments.items() if type(value) in (int, float) and abs(value) < 1e308
    }
    pairs = {key: np.array([value, value], dtype=np.float64) for key, value in scalars.items()}
    if not pairs or any(np.shape(x) for x in _leaves(found)):
        return
    together = outcome(line, {**arguments, **pairs})
    if isinstance(together, ValueError) and re.search(
        "scalar|integer|list|sequence|vector|matri|shape|number", str(together)
    ):
        return
    alone = [np.stack([x, x]) for x in _leaves(found)]
    assert _same(alone, together, within=1e-12), f"{name}: {found!r} became {together!r} in an array"


def outcome(line: Line, arguments: Mapping[str, Any]) -> Any:
    """The value, or the error that the contract knows; warnings and all other errors are raised."""
    named = dict(arguments)
    first = [named.pop("self")] if "self" in named else []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return line.function(*first, **named)
    except (ValueError, ConvergenceError) as error:
        return error


def _names_an_argument(line: Line, arguments: Mapping[str, Any], text: str) -> None:
    known = {*arguments, *line.also} - {"self"}
    if not known:  # a method without arguments answers for those of its object
        known = {*inspect.signature(type(arguments["self"])).parameters}
    subject, must, _ = text.partition(" must ")
    assert must, f"no rule in {text!r}"
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'", "", subject))
    assert words and words[0] in known, f"no argument at the head of {text!r}"
    assert len(text) < _LONGEST, f"{len(text)} characters"


def _leaves(value: Any) -> Iterator[np.ndarray]:
    """The arrays of numbers in a result."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, outliers.Outlier):
        yield from _leaves(list(vars(value).values()))
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from _leaves(value.tolist())
    elif isinstance(value, np.ndarray | np.generic | float):
        yield np.asarray(value)
    elif type(value).__name__ == "mpf":
        yield np.asarray(0.0 if value - value == 0 else math.nan)


def _state(value: Any) -> Any:
    """What a call could change in its arguments."""
    if isinstance(value, np.ndarray) and value.dtype != object and value is not np.ma.masked:
        return value.dtype.str, value.shape, value.flags.writeable, value.tobytes()
    if isinstance(value, Mapping):
        return {key: _state(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [id(item) if isinstance(item, list | tuple) else _state(item) for item in value]
    return id(value)


def _forms(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The same numbers, in other clothes, one argument at a time."""
    for name, value in arguments.items():
        if type(value) is float or type(value) is np.float64:
            forms: dict[str, Any] = {"0-d": np.array(value), "longdouble": np.longdouble(value)}
            with np.errstate(over="ignore"):
                if float(np.float32(value)) == value:
                    forms["float32"] = np.float32(value)
        elif type(value) is int and abs(value) < 2**62:
            forms = {"int64": np.int64(value)}
        elif isinstance(value, list) and value and all(type(x) is float for x in value):
            apart = np.zeros(2 * len(value))
            apart[::2] = value
            forms = {"tuple": tuple(value), "strided": apart[::2], "masked nowhere": np.ma.array(value)}
        elif type(value) is np.ndarray and value.dtype == np.float64 and value.ndim > 1:
            fixed = value.copy()
            fixed.flags.writeable = False
            forms = {
                "Fortran": np.asfortranarray(value),
                "read-only": fixed,
                "reversed": value[::-1].copy()[::-1],
            }
        else:
            continue
        for form, other in forms.items():
            yield name, form, {**arguments, name: other}


def _same(one: Any, other: Any, within: float = 0.0) -> bool:
    """Whether two results hold the same numbers: to the last bit, or `within` a share of them."""
    pairs = list(_leaves(one)), list(_leaves(other))
    return len(pairs[0]) == len(pairs[1]) and all(
        x.shape == y.shape and np.allclose(x, y, rtol=within, atol=1e-300 * (within > 0))
        for x, y in zip(*pairs, strict=True)
    )
