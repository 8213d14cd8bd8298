"""What the laws of `theory.rmt` have in common: their scales, points of the line and of the plane."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import Floats, as_given, finite, positive, quiet, require, scalar, shown, within

SCALE_RANGE = 1e-270, 1e270  # of variances and aspect ratios: what squares and quotients of them can bear
LARGEST_ORDER = 10**6
_COMPLEX = "real or complex numbers"


def scale_parameter(name: str, value: float) -> float:
    """A positive number in `SCALE_RANGE`."""
    number = scalar(name, positive(name, value))
    low, high = SCALE_RANGE
    require(low <= number <= high, name, f"between {low:g} and {high:g}", value)
    return number


def one_scale(sigma: float | None, variance: float | None) -> tuple[float, float]:
    """Standard deviation and variance from exactly one of them."""
    if sigma is not None and variance is None:
        sigma = scalar("sigma", positive("sigma", sigma))
        return sigma, scale_parameter("sigma squared", sigma * sigma)
    if variance is not None and sigma is None:
        variance = scale_parameter("variance", variance)
        return math.sqrt(variance), variance
    raise ValueError(f"sigma or variance must be given, exactly one, got {shown((sigma, variance))}")


def line(name: str, x: ArrayLike) -> Floats:
    """`x` as float64; infinite values are points of the line, NaN is not."""
    return within(name, x, -np.inf, np.inf)


@quiet
def plane(name: str, z: ArrayLike) -> NDArray[Any]:
    """`z` as float64 or complex128, every entry finite."""
    array = as_given(name, z, _COMPLEX)
    require(array.dtype.kind in "uifcO", name, _COMPLEX, z)
    if array.dtype.kind != "c":
        return finite(name, z)
    array = array.astype(np.complex128)
    require(np.isfinite(array), name, "finite", z)
    return array


def between(z: NDArray[Any], low: float, high: float) -> NDArray[np.bool_]:
    """Where `z` is real and strictly between two points."""
    return (np.imag(z) == 0) & (np.real(z) > low) & (np.real(z) < high)


def log(x: Floats) -> Floats:
    """Logarithm of `x` >= 0, -inf at 0."""
    return np.log(x, where=x > 0, out=np.full_like(x, -np.inf))


def blockwise(function: Callable[[Floats], Floats], x: Floats, size: int = 1 << 14) -> Floats:
    """`function` over blocks of `x` small enough that its temporaries stay in the cache."""
    flat = x.ravel()
    out = np.empty_like(flat)
    for start in range(0, flat.size, size):
        out[start : start + size] = function(flat[start : start + size])
    return out.reshape(x.shape)[()]
