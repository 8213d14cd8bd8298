"""Special functions and root finders of scipy, and numbers of mpmath; both are loaded on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np


class Later:
    """A module, untyped, imported when something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


special: Any = Later("scipy.special")
optimize: Any = Later("scipy.optimize")
mpmath: Any = Later("mpmath")


@cache
def unit_legendre(order: int) -> tuple[list[float], list[float]]:
    """Nodes and weights of Gauss and Legendre on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return (0.5 * (1 + nodes)).tolist(), (0.5 * weights).tolist()


def bracketed_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a continuous function of different signs at the two ends vanishes, to rounding: Brent's method.

    Raises
    ------
    ValueError
        If the two ends have the same sign.

    Examples
    --------
    >>> round(bracketed_root(lambda x: x * x - 2, 0.0, 2.0), 12)
    1.414213562373
    """
    scale = max(abs(low), abs(high))  # in its units: products of tiny values would vanish

    within = low / scale, high / scale

    def scaled(x: float) -> float:
        return function(x * scale)

    # Brent's method stops at an absolute tolerance, which at the scale of the ends must be no limit
    return float(optimize.brentq(scaled, *within, xtol=1e-300, rtol=1e-15, maxiter=3000)) * scale
