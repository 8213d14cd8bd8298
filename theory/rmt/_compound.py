r"""Solver of the compound free Poisson law, in the variable v = 1/G and the unit of its largest jump.

With G = 1/v the equation z = 1/G + R(G) reads z = v + m + sum_j c_j^2/(v - a_j), where m is the mean and
c_j^2 = rate p_j a_j^2. Everything follows from g(v) = sum_j c_j^2/(v - a_j)^2, for dz/dv = 1 - g: off the
support v is real with g < 1, the ends of a bulk have g = 1, inside v is the one solution in the upper half
plane, and G dz = (1 - g) dv/v integrates in closed form.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CompoundSpectrum", "compound_spectrum"]

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

_CLOSED = 1e-12  # a gap with g above 1 less than this is closed: its width is less than rounding


@dataclass(frozen=True, kw_only=True)
class CompoundSpectrum:
    """The law in the unit of its largest jump.

    Parameters
    ----------
    rate
        Number of directions over the dimension.
    poles
        Jumps, ascending.
    weights
        Share of the directions with each jump.
    spikes
        v at the ends of the bulks, ascending.
    ends
        z at the ends of the bulks: lower, upper, lower, ...
    """

    rate: float
    poles: Floats
    weights: Floats
    spikes: Floats
    ends: Floats

    @property
    def mean(self) -> float:
        """The rate times the mean jump."""
        return self.rate * float(self.weights @ self.poles)

    @property
    def strengths(self) -> Floats:
        """c_j^2; their sum is the variance."""
        return self.rate * self.weights * self.poles**2

    @property
    def reach(self) -> float:
        """A length beyond the spectrum, at least 1."""
        return max(1.0, float(np.abs(self.ends).max()))

    def inverse(
        self, z: NDArray[Any], *, distance: NDArray[Any], nearest: NDArray[np.intp], real: NDArray[np.bool_]
    ) -> Complexes:
        """The root v(z) on the physical branch, closed upper half plane to itself.

        Parameters
        ----------
        z
            Flat, real or complex, not below the axis.
        distance
            z from ``ends[nearest]``, which may be known better than to the rounding of z.
        nearest
            Index of the nearest end of a bulk.
        real
            Whether v is real: z is, and not inside a bulk.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            v = self._refined(z, distance, nearest)
        if self.rate < 1:
            v = self._near_atom(v, z)
        v = np.where(real, np.real(v) + 0j, v)
        return np.where((z == 0) & (self.rate <= 1), 0.0, v)  # there G is infinite

    def tail(self, v: Complexes) -> Floats:
        """Mass above z(v): Im of the integral of G from there to infinity, over pi."""
        total = np.angle(v)
        for pole, weight in zip(self.poles.tolist(), self.weights.tolist(), strict=True):
            total = total + self.rate * weight * _excess(v, pole)
        return np.clip(total / math.pi, 0.0, 1.0)

    def moments(self, k: int) -> Floats:
        """Moments up to order `k` over powers of the reach: M = 1 + rate sum p (U - 1), U = 1 + a x M U."""
        jumps = self.poles / self.reach
        moments, trees = np.zeros(k + 1), np.zeros((jumps.size, k + 1))
        moments[0], trees[:, 0] = 1.0, 1.0
        for n in range(1, k + 1):
            trees[:, n] = jumps * (trees[:, n - 1 :: -1] @ moments[:n])
            moments[n] = self.rate * (self.weights @ trees[:, n])
        return moments

    def _refined(self, z: NDArray[Any], distance: NDArray[Any], nearest: NDArray[np.intp]) -> Complexes:
        """The root v from its end of the bulk: z - e = (v - v_e)^2 K(v), a root without cancellation."""
        corner = self.spikes[nearest]
        offset = corner[:, None] - self.poles
        squares = self.strengths / offset**2
        k0, k1 = np.sum(squares / offset, axis=1), np.sum(squares / offset**2, axis=1)
        delta: Complexes = np.sqrt(distance / k0 + 0j)
        delta = np.where((delta.imag < 0) | ((delta.imag == 0) & (k0 < 0)), -delta, delta)
        far = ~(np.abs(delta) * k1 < 0.05 * np.abs(k0))
        if far.any():
            delta[far] = self._eigenvalue(z[far]) - corner[far]
        for _ in range(4):
            delta = delta - _newton_step(delta, distance, offset, squares)
        return (corner + delta.real) + 1j * np.abs(delta.imag)

    def _near_atom(self, v: Complexes, z: NDArray[Any]) -> Complexes:
        """Small v from z = v h(v), h = 1 - rate + rate sum p v/(v - a), exact in the relative sense."""
        near = np.abs(v) < 0.1 * np.abs(self.spikes).min()
        found, z = np.where(near, v, 0.0), np.where(near, z, 0.0)
        for _ in range(3):
            inverse = 1 / (found[:, None] - self.poles)
            h = 1 - self.rate + found * np.sum(self.rate * self.weights * inverse, axis=1)
            slope = 1 - np.sum(self.strengths * inverse**2, axis=1)
            found = found - np.divide(
                found * h - z, slope, out=np.zeros_like(found), where=near & (slope != 0)
            )
        return np.where(near, found, v)

    def _eigenvalue(self, z: NDArray[Any]) -> Complexes:
        """The physical one of the n + 1 roots v, eigenvalues of an arrowhead matrix with one row for z."""
        n, root = self.poles.size, np.sqrt(self.strengths)
        arrow = np.zeros((z.size, n + 1, n + 1), dtype=z.dtype)
        arrow[:, 0, 0] = z - self.mean
        arrow[:, 0, 1:], arrow[:, 1:, 0] = root, -root
        arrow[:, range(1, n + 1), range(1, n + 1)] = self.poles
        found: Complexes = np.linalg.eigvals(arrow).astype(np.complex128)
        with np.errstate(divide="ignore", over="ignore"):
            slope: Floats = np.sum(self.strengths / np.abs(found[:, :, None] - self.poles) ** 2, axis=2)
        # one root only, up to its mirror image, has sum c^2/|v - a|^2 <= 1
        best = found[np.arange(z.size), np.argmin(slope, axis=1)]
        return np.real(best) + 1j * np.abs(np.imag(best))


@functools.lru_cache(maxsize=256)
def compound_spectrum(rate: float, poles: tuple[float, ...], weights: tuple[float, ...]) -> CompoundSpectrum:
    """The law with the ends of its bulks; `poles` are ascending, the largest of size 1."""
    strengths = [rate * p * a * a for a, p in zip(poles, weights, strict=True)]

    def excess(v: float) -> float:
        return math.fsum(c / (v - a) ** 2 for a, c in zip(poles, strengths, strict=True)) - 1

    def fall(v: float) -> float:
        return -math.fsum(c / (v - a) ** 3 for a, c in zip(poles, strengths, strict=True))

    far = 2 * math.sqrt(math.fsum(strengths))
    spikes = [_bisect(excess, poles[0] - far, poles[0])]
    for low, high in pairwise(poles):
        middle = _bisect(fall, low, high)
        if middle not in (low, high) and excess(middle) < -_CLOSED:
            spikes += [_bisect(lambda v: -excess(v), low, middle), _bisect(excess, middle, high)]
    spikes.append(_bisect(lambda v: -excess(v), poles[-1], poles[-1] + far))
    if rate == 1:  # then g(0) = 1: an end of the bulk is 0, exactly
        spikes = [0.0 if abs(v) < 1e-13 else v for v in spikes]
    ends = [_position(v, rate, poles, weights) for v in spikes]
    return CompoundSpectrum(
        rate=rate,
        poles=np.array(poles),
        weights=np.array(weights),
        spikes=np.array(spikes),
        ends=np.array(ends),
    )


def _position(v: float, rate: float, poles: tuple[float, ...], weights: tuple[float, ...]) -> float:
    """z(v), in that of two forms which cancels less."""
    jumps = list(zip(poles, weights, strict=True))
    if abs(v) < 1:
        return v * (1 + rate * math.fsum(p * a / (v - a) for a, p in jumps))
    mean = rate * math.fsum(p * a for a, p in jumps)
    return math.fsum([v, mean, *(rate * p * a * a / (v - a) for a, p in jumps)])


def _bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function changes its sign, to the last digit; it is not evaluated at the ends."""
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return middle


def _newton_step(delta: Complexes, distance: NDArray[Any], offset: Floats, squares: Floats) -> Complexes:
    """One step towards delta^2 K(delta) = distance, K = sum c^2/((v_e - a)^2 (v - a))."""
    inverse = 1 / (offset + delta[:, None])
    k, slope = np.sum(squares * inverse, axis=1), np.sum(squares * inverse**2, axis=1)
    change = delta * (2 * k - delta * slope)
    return np.where(change == 0, 0, (delta**2 * k - distance) / np.where(change == 0, 1, change))


def _excess(v: Complexes, pole: float) -> Floats:
    """Im(t - log(1 + t)) for t = a/(v - a), so 1 + t = v/(v - a); no cancellation for small t."""
    t = pole / (v - pole)
    small = np.abs(t) < 0.1
    s = np.where(small, t, 0.0)
    series = np.zeros_like(s)
    for k in range(18, 1, -1):
        series = (-1) ** k / k + s * series
    direct = np.imag(t) - (np.angle(v) - np.angle(v - pole))
    return np.where(small, np.imag(s * s * series), direct)
