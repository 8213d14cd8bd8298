"""Shared by the laws of `theory.rmt`: scales, and points of the line and of the plane."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import Floats, as_given, checked, finite, positive, quiet, require, scalar, shown, within

SCALE_RANGE = 1e-270, 1e270  # of variances and aspect ratios: what squares and quotients of them can bear
LARGEST_ORDER = 10**6
_COMPLEX = "real or complex numbers"


class TailLaw:
    """A law of one scale by either of its tails, `_tail`, and the point between them, `_quantile`."""

    @property
    def edges(self) -> tuple[float, float]:
        """Lower and upper end of the bulk."""
        raise NotImplementedError

    @property
    def atom(self) -> float:
        """Mass at a single point: none."""
        return 0.0

    def support(self) -> tuple[float, float]:
        """Smallest closed interval of full mass."""
        return self.edges

    def cdf(self, x: ArrayLike) -> Floats:
        """Probability of values <= `x`, an atom included; small values keep their relative accuracy."""
        return blockwise(lambda t: self._tail(t, upper=False), line("x", x))

    def sf(self, x: ArrayLike) -> Floats:
        """Probability of values > `x`; small values keep their relative accuracy."""
        return blockwise(lambda t: self._tail(t, upper=True), line("x", x))

    def ppf(self, u: ArrayLike) -> Floats:
        """Quantile: the point below which a share `u` of the law lies.

        >>> from theory.rmt import TracyWidom
        >>> TracyWidom(beta=2).ppf([0.0, 0.5, 1.0])
        array([       -inf, -1.8049...,         inf])
        """
        return blockwise(lambda t: self._quantile(t, 1 - t), within("u", u, 0.0, 1.0))

    def isf(self, u: ArrayLike) -> Floats:
        """Inverse of `sf`, for small `u` without loss."""
        return blockwise(lambda t: self._quantile(1 - t, t), within("u", u, 0.0, 1.0))

    def _tail(self, x: Floats, *, upper: bool) -> Floats:
        """Probability of values > `x` if `upper`, else of values <= `x`."""
        raise NotImplementedError

    def _quantile(self, u: Floats, v: Floats) -> Floats:
        """Where a share `u` lies below and `v` above; the smaller of the two counts."""
        raise NotImplementedError


def scale_parameter(name: str, value: float) -> float:
    """A positive number in `SCALE_RANGE`."""
    number = scalar(name, value, positive)
    low, high = SCALE_RANGE
    require(low <= number <= high, name, f"between {low:g} and {high:g}", value)
    return number


def one_scale(sigma: float | None, variance: float | None) -> tuple[float, float]:
    """Standard deviation and variance from exactly one of them."""
    if sigma is not None and variance is None:
        sigma = scalar("sigma", sigma, positive)
        return sigma, scale_parameter("sigma squared", sigma * sigma)
    if variance is not None and sigma is None:
        variance = scale_parameter("variance", variance)
        return math.sqrt(variance), variance
    raise ValueError(f"sigma or variance must be given, exactly one, got {shown((sigma, variance))}")


def line(name: str, x: ArrayLike) -> Floats:
    """`x` as float64; infinite values are points of the line, NaN is not."""
    return checked(name, x, "in [-inf, inf]", lambda x: x == x)


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


def off_the_cut(z: ArrayLike, edges: tuple[float, float]) -> NDArray[Any]:
    """Points of the plane, none of them real and strictly between the edges."""
    found, (low, high) = plane("z", z), edges
    inside = (np.imag(found) == 0) & (np.real(found) > low) & (np.real(found) < high)
    require(~inside, "z", f"off the cut ({low:g}, {high:g})", found)
    return found


@quiet
def blockwise(function: Callable[[Floats], Floats], x: Floats) -> Floats:
    """Overwrite `x` by `function` of it, in blocks small enough that temporaries stay in the cache."""
    flat, size = x.reshape(-1), 1 << 14
    for start in range(0, flat.size, size):
        flat[start : start + size] = function(flat[start : start + size])
    return x[()]
