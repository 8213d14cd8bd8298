r"""The compound free Poisson law: many random directions, few of them for the dimension, of any sizes.

=====================  ==================  ==================================================================
name                   symbol              meaning
=====================  ==================  ==================================================================
``rate``               rho                 random directions over the dimension
``jumps``              a_j                 eigenvalue that one direction adds
``weights``            p_j                 share of the directions with that eigenvalue
=====================  ==================  ==================================================================

In place of the semicircle where a mini-batch sums few per-sample Hessians of low rank: Granziol, Zohren and
Roberts (2022), Theorem 3, asks of its noise what such sums do not have.

It is solved in the variable v = 1/G and the unit of its largest jump.

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
from numpy.typing import ArrayLike, NDArray

from theory._checks import Floats, closed_form, finite, integer, nonnegative, positive, quiet, require, scalar
from theory.rmt._laws import line, plane

_RATES = 1e-6, 1e12  # of each jump: beyond, a bulk is narrower than rounding, or the law its own limit
_SIZES = 1e-100, 1e100
_LARGEST_RATIO = 1e6  # of two jumps
_MOST_JUMPS = 64
_LARGEST_ORDER = 4000
_BLOCK = 1 << 17  # entries of the matrices solved at once


@dataclass(frozen=True, init=False)
class CompoundFreePoisson:
    r"""Free compound Poisson law of R-transform :math:`\rho \sum_j p_j a_j / (1 - a_j w)`.

    The spectrum of :math:`\sum_k a_k g_k g_k^\top` for k up to :math:`\rho P` independent vectors of P entries of
    variance 1/P, where a share p_j of the directions has a_k = a_j. For :math:`\rho < 1` there is an atom of mass
    :math:`1 - \rho` at 0, which `cdf` counts and `pdf` does not. The bulk may have gaps.

    Parameters
    ----------
    rate
        :math:`\rho > 0`, number of directions over the dimension.
    jumps
        :math:`a_j \ne 0` of either sign, at most 64; one number or a vector. Equal ones are merged. Their sizes
        lie between 1e-100 and 1e100, and no two differ by more than 1e6 times.
    weights
        :math:`p_j`, a probability vector as long as `jumps`; equal if left out. Jumps of weight 0 are dropped,
        else the rate times the weight lies between 1e-6 and 1e12.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Notes
    -----
    `cdf` and `sf` are closed forms in v = 1/G and exact to 1e-13 in the absolute sense (times 1/gap where a gap
    is nearly closed). Of the density near an end of the bulk nothing is lost but the rounding of the point.

    References
    ----------
    Marchenko and Pastur (1967); Silverstein and Choi (1995), Analysis of the limiting spectral distribution of
    large dimensional random matrices, for the support; Nica and Speicher (2006), Lectures on the combinatorics
    of free probability, lecture 12.

    Examples
    --------
    >>> law = CompoundFreePoisson(rate=0.25, jumps=[1.0, -1.0])
    >>> law.mean(), law.var(), law.atom
    (0.0, 0.25, 0.75)
    >>> law.cdf([-3.0, -0.1, 0.0, 3.0]).round(12)
    array([0.   , 0.125, 0.875, 1.   ])
    """

    rate: float
    jumps: tuple[float, ...]
    weights: tuple[float, ...]

    def __init__(self, *, rate: float, jumps: ArrayLike, weights: ArrayLike | None = None) -> None:
        rate = scalar("rate", rate, positive)
        sizes = _sizes(jumps)
        weight_of = _shares(weights, sizes.size)
        found = np.unique(sizes[weight_of > 0])
        sizes, shares = found, np.array([weight_of[sizes == size].sum() for size in found])
        low, high = _RATES
        rule = f"between {low:g} and {high:g} for every jump"
        require((rate * shares >= low) & (rate * shares <= high), "rate times weights", rule, rate * shares)
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "jumps", tuple(sizes.tolist()))
        object.__setattr__(self, "weights", tuple(shares.tolist()))

    @property
    def atom(self) -> float:
        """Mass at 0."""
        return max(0.0, 1 - self.rate)

    @property
    def bulks(self) -> tuple[tuple[float, float], ...]:
        """Intervals of positive density, ascending; a gap between two of them may hold the atom.

        >>> [(round(a, 3), round(b, 3)) for a, b in CompoundFreePoisson(rate=0.1, jumps=[1.0, -1.0]).bulks]
        [(-1.47, -0.581), (0.581, 1.47)]
        """
        ends: list[float] = (self._unit * self._spectrum.ends).tolist()
        return tuple(zip(ends[::2], ends[1::2], strict=True))

    @property
    def edges(self) -> tuple[float, float]:
        """Lower end of the lowest bulk and upper end of the highest."""
        return self.bulks[0][0], self.bulks[-1][1]

    def support(self) -> tuple[float, float]:
        """Smallest closed interval of full mass, with 0 where there is an atom."""
        low, high = self.edges
        return (min(low, 0.0), max(high, 0.0)) if self.rate < 1 else (low, high)

    def mean(self) -> float:
        """Mean, the rate times the mean jump."""
        return self._unit * self._spectrum.mean

    def var(self) -> float:
        """Variance, the rate times the mean square of a jump."""
        return self._unit**2 * float(self._spectrum.strengths.sum())

    @closed_form
    def moment(self, k: int) -> float:
        """Moment of order `k` about 0, the atom included, from the free cumulants rate E[jump^k].

        >>> [CompoundFreePoisson(rate=1.0, jumps=1.0).moment(k) for k in range(5)]
        [1.0, 1.0, 2.0, 5.0, 14.0]
        """
        k = integer("k", k, least=0, most=_LARGEST_ORDER)
        reach = self._unit * self._spectrum.reach
        value = self._spectrum.moments(k)[k]
        return float(value * np.float64(reach) ** k if value else value)

    def pdf(self, x: ArrayLike) -> Floats:
        """Density of the bulk: 0 outside it and on the atom; inf at x = 0 where the law ends or peaks there."""
        x = self._clipped(x)
        v = self._inverse(x)
        size = np.where(v == 0, 1.0, np.abs(v))
        # two quotients, since |v|^2 may vanish
        value = np.where(self._inside(x), np.imag(v) / size / size / np.pi / self._unit, 0.0)
        return np.where((x == 0) & (self.rate == 1), np.inf, value)[()]

    def cdf(self, x: ArrayLike) -> Floats:
        """Probability of values <= `x`, the atom included."""
        return 1 - self.sf(x)

    def sf(self, x: ArrayLike) -> Floats:
        """Probability of values > `x`."""
        return self._spectrum.tail(self._inverse(self._clipped(x)))[()]

    @closed_form
    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        r"""Stieltjes transform :math:`G(z) = \int \rho(x) dx / (z - x)`, the atom included.

        Parameters
        ----------
        z
            Real and not inside a bulk (an end is allowed, a gap too), or complex and not on the cut.

        Returns
        -------
        float64 for real `z`, complex128 for complex `z`.

        Raises
        ------
        ValueError
            If `z` is not finite, lies on the cut, or is 0 where G is infinite.
        """
        z = plane("z", z)
        require(~((np.imag(z) == 0) & self._inside(np.real(z))), "z", f"off the cut {self.bulks}", z)
        far = np.abs(z) > 1e18 * self._unit * self._spectrum.reach  # where G is 1/z to rounding
        v = self._inverse(np.where(far, 2 * self._spectrum.reach * self._unit, z))
        require(v != 0, "z", "away from 0 where the law has an atom or an end there", z)
        value = 1 / (v if np.iscomplexobj(z) else np.real(v)) / self._unit
        return np.where(far, 1 / np.where(far, z, 1.0), value)

    @closed_form
    def r_transform(self, w: ArrayLike) -> NDArray[Any]:
        """R-transform, real or complex; its poles 1/jump are refused."""
        w = plane("w", w)
        value = np.zeros_like(w)
        for jump, weight in zip(self.jumps, self.weights, strict=True):
            value = value + self.rate * weight * _geometric(w, jump)
        return value

    @property
    def _unit(self) -> float:
        """The largest size of a jump."""
        return max(abs(self.jumps[0]), abs(self.jumps[-1]))

    @property
    def _spectrum(self) -> _Spectrum:
        """The law in that unit."""
        return _spectrum_of(self.rate, tuple(a / self._unit for a in self.jumps), self.weights)

    def _inside(self, x: Floats) -> NDArray[np.bool_]:
        """Whether real points lie strictly inside a bulk."""
        return np.logical_or.reduce([(x > low) & (x < high) for low, high in self.bulks])

    def _clipped(self, x: ArrayLike) -> Floats:
        """Points of the line, drawn in to where the law has long ended."""
        low, high = self.support()
        return np.clip(line("x", x), low - self._unit, high + self._unit)

    def _inverse(self, z: NDArray[Any]) -> NDArray[np.complex128]:
        """1/G in units, real points taken from above."""
        flat = z.ravel()
        step = max(1, _BLOCK // (len(self.jumps) + 1) ** 2)
        parts = [self._inverse_of(flat[start : start + step]) for start in range(0, flat.size, step)]
        return np.concatenate(parts or [np.empty(0, dtype=np.complex128)]).reshape(z.shape)

    @quiet
    def _inverse_of(self, z: NDArray[Any]) -> NDArray[np.complex128]:
        spectrum, lower = self._spectrum, np.imag(z) < 0
        # G of the conjugate is the conjugate of G, so the upper half plane is enough
        z = np.where(lower, np.conj(z), z)
        edges = np.ravel(self.bulks)  # not the ends in units: they may differ by rounding
        nearest = np.argmin(np.abs(z[:, None] - edges), axis=1)
        scaled = z / self._unit
        v = spectrum.root(scaled, (z - edges[nearest]) / self._unit, nearest)
        if self.rate < 1:
            v = spectrum.near_atom(v, scaled)
        v = np.where((np.imag(z) == 0) & ~self._inside(np.real(z)), np.real(v) + 0j, v)
        v = np.where((scaled == 0) & (self.rate <= 1), 0.0, v)  # there G is infinite
        return np.where(lower, np.conj(v), v)


@quiet
def _geometric(w: NDArray[Any], jump: float) -> NDArray[Any]:
    """One jump's share of R, a / (1 - a w)."""
    product = jump * w
    far = ~(np.abs(product) < 1e150)
    require(far | (product != 1), "w", "different from 1 / jump", w)
    return np.where(far, -1 / np.where(far, w, 1.0), jump / np.where(far, 1.0, 1 - product))


def _sizes(jumps: ArrayLike) -> Floats:
    sizes = np.atleast_1d(finite("jumps", jumps))
    low, high = _SIZES
    size = np.abs(sizes)
    rule = f"one to {_MOST_JUMPS} numbers of sizes between {low:g} and {high:g}"
    require(sizes.ndim == 1 and 1 <= sizes.size <= _MOST_JUMPS, "jumps", rule, jumps)
    require((size >= low) & (size <= high), "jumps", rule, jumps)
    require(
        size.max() <= _LARGEST_RATIO * size.min(), "jumps", f"within {_LARGEST_RATIO:g} of each other", jumps
    )
    return sizes


def _shares(weights: ArrayLike | None, jumps: int) -> Floats:
    shares = np.full(jumps, 1 / jumps) if weights is None else np.atleast_1d(nonnegative("weights", weights))
    require(shares.shape == (jumps,), "weights", "as many as jumps", weights)
    require(abs(shares.sum() - 1) <= 1e-8, "weights", "a probability vector (sum 1 within 1e-8)", weights)
    return shares / shares.sum()


Complexes = NDArray[np.complex128]

_CLOSED = 1e-12  # a gap with g above 1 less than this is closed: its width is less than rounding


@dataclass(frozen=True, kw_only=True)
class _Spectrum:
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

    def tail(self, v: Complexes) -> Floats:
        """Mass above z(v): Im of the integral of G from there to infinity, over pi."""
        total = np.angle(v)
        for pole, weight in zip(self.poles.tolist(), self.weights.tolist(), strict=True):
            t = pole / (v - pole)
            small = np.abs(t) < 0.1
            s = np.where(small, t, 0.0)
            series = np.zeros_like(s)
            # for |t| < 0.1 the next term is below rounding
            for k in range(18, 1, -1):
                series = (-1) ** k / k + s * series
            # Im(t - log(1 + t)), 1 + t = v/(v - a), without cancellation for small t
            direct = np.imag(t) - (np.angle(v) - np.angle(v - pole))
            total = total + self.rate * weight * np.where(small, np.imag(s * s * series), direct)
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

    def root(self, z: NDArray[Any], distance: NDArray[Any], nearest: NDArray[np.intp]) -> Complexes:
        """The root v(z) on the physical branch, closed upper half plane to itself.

        From its end of the bulk: z - e = (v - v_e)^2 K(v), a root without cancellation.

        Parameters
        ----------
        z
            Flat, real or complex, not below the axis.
        distance
            z from ``ends[nearest]``, which may be known better than to the rounding of z.
        nearest
            Index of the nearest end of a bulk.
        """
        corner = self.spikes[nearest]
        offset = corner[:, None] - self.poles
        squares = self.strengths / offset**2
        k0, k1 = np.sum(squares / offset, axis=1), np.sum(squares / offset**2, axis=1)
        delta: Complexes = np.sqrt(distance / k0 + 0j)
        delta = np.where((delta.imag < 0) | ((delta.imag == 0) & (k0 < 0)), -delta, delta)
        far = ~(np.abs(delta) * k1 < 0.05 * np.abs(k0))
        if far.any():
            delta[far] = self._eigenvalue(z[far]) - corner[far]
        for _ in range(
            4
        ):  # Newton's steps towards delta^2 K(delta) = distance, K = sum c^2/((v_e - a)^2 (v - a))
            inverse = 1 / (offset + delta[:, None])
            k, slope = np.sum(squares * inverse, axis=1), np.sum(squares * inverse**2, axis=1)
            change = delta * (2 * k - delta * slope)
            delta = delta - np.where(
                change == 0, 0, (delta**2 * k - distance) / np.where(change == 0, 1, change)
            )
        return (corner + delta.real) + 1j * np.abs(delta.imag)

    def near_atom(self, v: Complexes, z: NDArray[Any]) -> Complexes:
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

    @quiet
    def _eigenvalue(self, z: NDArray[Any]) -> Complexes:
        """The physical one of the n + 1 roots v, eigenvalues of an arrowhead matrix with one row for z."""
        n, root = self.poles.size, np.sqrt(self.strengths)
        arrow = np.zeros((z.size, n + 1, n + 1), dtype=z.dtype)
        arrow[:, 0, 0] = z - self.mean
        arrow[:, 0, 1:], arrow[:, 1:, 0] = root, -root
        arrow[:, range(1, n + 1), range(1, n + 1)] = self.poles
        found: Complexes = np.linalg.eigvals(arrow).astype(np.complex128)
        slope: Floats = np.sum(self.strengths / np.abs(found[:, :, None] - self.poles) ** 2, axis=2)
        # one root only, up to its mirror image, has sum c^2/|v - a|^2 <= 1
        best = found[np.arange(z.size), np.argmin(slope, axis=1)]
        return np.real(best) + 1j * np.abs(np.imag(best))


@functools.lru_cache(maxsize=256)
def _spectrum_of(rate: float, poles: tuple[float, ...], weights: tuple[float, ...]) -> _Spectrum:
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
    jumps = list(zip(poles, weights, strict=True))
    mean = rate * math.fsum(p * a for a, p in jumps)
    ends = [
        v * (1 + rate * math.fsum(p * a / (v - a) for a, p in jumps))
        if abs(v) < 1
        else math.fsum([v, mean, *(rate * p * a * a / (v - a) for a, p in jumps)])
        for v in spikes
    ]  # z(v), in that of two forms which cancels less
    return _Spectrum(
        rate=rate,
        poles=np.array(poles),
        weights=np.array(weights),
        spikes=np.array(spikes),
        ends=np.array(ends),
    )


def _bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function changes its sign, to the last digit; it is not evaluated at the ends."""
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return middle
