"""A root between two points of different sign; the optimiser is loaded where one is needed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


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

    def scaled(x: float) -> float:
        return function(x * scale)

    brentq: Any = import_module("scipy.optimize").brentq
    return float(brentq(scaled, low / scale, high / scale, xtol=1e-300, rtol=1e-15, maxiter=3000)) * scale
