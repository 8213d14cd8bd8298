"""Argument checks: the validated value as float64, or a ``ValueError`` that says what was expected."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["finite", "integer", "nonnegative", "positive", "probabilities", "require", "within"]

Floats = NDArray[np.float64]


def require(condition: Any, name: str, rule: str, value: object) -> None:
    """Raise ``ValueError("<name> must be <rule>, got <value>")`` unless `condition` holds everywhere.

    >>> require(False, "sigma", "positive", -1.0)
    Traceback (most recent call last):
    ...
    ValueError: sigma must be positive, got -1.0
    """
    if not np.all(condition):
        raise ValueError(f"{name} must be {rule}, got {value!r}")


def finite(name: str, value: ArrayLike) -> Floats:
    """`value` as float64, every entry finite."""
    return _checked(name, value, "finite", lambda x: np.isfinite(x))


def positive(name: str, value: ArrayLike, *, infinite: bool = False) -> Floats:
    """`value` as float64, every entry > 0; infinity only where `infinite` says so."""
    rule = "positive" if infinite else "positive and finite"
    return _checked(name, value, rule, lambda x: (x > 0) & (infinite | np.isfinite(x)))


def nonnegative(name: str, value: ArrayLike) -> Floats:
    """`value` as float64, every entry finite and >= 0."""
    return _checked(name, value, "non-negative and finite", lambda x: (x >= 0) & np.isfinite(x))


def within(name: str, value: ArrayLike, low: float, high: float) -> Floats:
    """`value` as float64, every entry in the closed interval [low, high]."""
    return _checked(name, value, f"in [{low:g}, {high:g}]", lambda x: (x >= low) & (x <= high))


def integer(name: str, value: object, *, least: int) -> int:
    """`value` as an int, at least `least`; a float with a whole value is accepted, a bool is not.

    >>> integer("depth", 3.0, least=1)
    3
    """
    rule = f"an integer >= {least}"
    require(not isinstance(value, bool | np.bool_), name, rule, value)
    try:
        whole = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{name} must be {rule}, got {value!r}") from None
    require(whole >= least, name, rule, value)
    return whole


def probabilities(name: str, value: ArrayLike) -> Floats:
    """`value` as float64, contiguous, each vector along the last axis a distribution over K >= 2 outcomes."""
    p = finite(name, value)
    tolerance = 1e-5 if np.asarray(value).dtype.name in ("float16", "float32") else 1e-8
    rule = f"a probability vector along its last axis (at least 2 entries, >= 0, sum 1 within {tolerance:g})"
    require(p.ndim >= 1 and p.shape[-1] >= 2 and np.all(p >= 0), name, rule, value)
    p = np.ascontiguousarray(p)
    require(np.abs(p.sum(axis=-1) - 1.0) <= tolerance, name, rule, value)
    return p


def _checked(name: str, value: ArrayLike, rule: str, holds: Callable[[Floats], Any]) -> Floats:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "buif":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be real numbers, got {value!r}") from None
    require(holds(array), name, rule, value)
    return array
