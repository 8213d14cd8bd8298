"""Checked arguments that formulas of the random logit model share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks

__all__ = ["at_least_one", "both_scales"]

Floats = NDArray[np.float64]


def at_least_one(name: str, value: ArrayLike) -> Floats:
    """A Gamma, which rounding may leave just below 1."""
    found = _checks.finite(name, value)
    _checks.require(found >= 1.0 - 1e-12, name, "at least 1", value)
    return found


def both_scales(sigma_c: ArrayLike, sigma_e: ArrayLike) -> tuple[Floats, Floats]:
    """Standard deviations of class means and residuals, broadcast to one shape."""
    c, e = _checks.together(
        sigma_c=_checks.nonnegative("sigma_c", sigma_c), sigma_e=_checks.nonnegative("sigma_e", sigma_e)
    )
    _checks.require((c > 0) | (e > 0), "sigma_c and sigma_e", "not both 0", (sigma_c, sigma_e))
    return c, e
