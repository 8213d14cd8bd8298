"""Mass of the Marchenko-Pastur bulk below an angle, and the angle above a mass."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["bulk_angle", "bulk_share", "bulk_tails"]

Floats = NDArray[np.float64]


def bulk_share(u: Floats, v: Floats, q: float) -> Floats:
    """(u - atom)/(1 - atom) = 1 - q + q u = 1 - q v for u + v = 1, without loss just above the atom."""
    product, error = _two_product(q, np.where(u <= 0.5, u, v))
    return np.where(u <= 0.5, ((1 - q) + product) + error, (1 - product) - error)


def _two_product(a: float, b: Floats) -> tuple[Floats, Floats]:
    """Dekker's product: a b as a rounded value and the exact error of it."""
    product = a * b
    mantissa, exponent = math.frexp(a)  # splitting a large number as it stands would overflow
    a_high, b_high = math.ldexp(_upper_half(mantissa), exponent), _upper_half(b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _upper_half(x: Any) -> Any:
    """The leading 26 bits of `x` (Veltkamp's splitting)."""
    t = (2.0**27 + 1) * x
    return t - (t - x)


def bulk_tails(below: Floats, above: Floats, c: float) -> tuple[Floats, Floats]:
    """Shares of the bulk on the lower and the upper side of points, from their edge distances' roots."""
    near_low = below <= above
    phi = 2 * np.arctan2(np.minimum(below, above), np.maximum(below, above))
    near = np.empty_like(phi)
    near[near_low] = _bulk_mass(phi[near_low], c)
    near[~near_low] = _bulk_mass(phi[~near_low], -c)
    return np.where(near_low, near, 1 - near), np.where(near_low, 1 - near, near)


def _bulk_mass(phi: Floats, c: float) -> Floats:
    """Share of the bulk at angles below `phi`; -1 <= c < 0 counts from the upper edge."""
    mass = _middle_mass(phi, c)
    small = (phi > 0) & (phi < 0.5)
    mass[small] = _tail_mass(phi[small], c)
    return mass


def _middle_mass(phi: Floats, c: float) -> Floats:
    """The share in closed form: (phi + delta - sum_k c^k sin((k + 2) phi)/(k + 2)) / pi."""
    sine, cosine = np.sin(phi), np.cos(phi)
    delta = np.arctan2(c * sine, 1 - c * cosine)
    return (phi + delta - _sine_sum(sine, cosine, delta, c)) / math.pi


def _sine_sum(sine: Floats, cosine: Floats, delta: Floats, c: float) -> Floats:
    """sum_{k >= 0} c^k sin((k + 2) phi)/(k + 2), which is (delta - c sin(phi))/c^2."""
    if abs(c) >= 0.01:
        return (delta - c * sine) / c**2
    terms = 2 + int(-38 / math.log(abs(c)))  # the next power of c is below the rounding error
    twice = 2 * cosine  # Clenshaw's recurrence
    after = np.zeros_like(sine)
    now = np.zeros_like(sine)
    for k in reversed(range(terms)):
        now, after = c**k / (k + 2) + twice * now - after, now
    return sine * (twice * now - after)


def _tail_mass(phi: Floats, c: float) -> Floats:
    """The share at small angles, exact to rounding in the relative sense."""
    nodes, weights = _gauss_legendre(12)
    half = np.tan(phi / 2)
    hard = (1 + c) * half >= 1 - c if c >= 0.3 else np.zeros(phi.shape, dtype=bool)
    mass = np.empty_like(phi)
    smooth = phi[~hard]
    mass[~hard] = smooth * sum(
        w * _angular_density(smooth * x, c) for x, w in zip(nodes, weights, strict=True)
    )
    mass[hard] = _hard_tail(half[hard], c)
    return mass


def _hard_tail(half: Floats, c: float) -> Floats:
    """The share below an angle of tangent `half` at its half, where the bulk nearly touches 0."""
    fast = (1 + c) ** 2 * half - (1 - c) * (1 + c) * np.arctan2((1 + c) * half, 1 - c)
    slow = (1 + c**2) * (half - np.arctan(half)) + 2 * c * half**3 / (1 + half**2)
    return (fast - slow) / (math.pi * c**2)


def _angular_density(phi: Floats, c: float) -> Floats:
    """Derivative of `_bulk_mass`: (2/pi) sin^2(phi) / (1 + c^2 - 2 c cos(phi))."""
    s = np.sin(phi / 2) ** 2
    return 8 / math.pi * s * (1 - s) / ((1 - c) ** 2 + 4 * c * s)


def bulk_angle(share: Floats, c: float) -> Floats:
    """Inverse of `_bulk_mass` for shares in [0, 1/2]: Newton's method inside a cell of a table."""
    table, masses = _angle_table(c)
    cell = np.clip(np.searchsorted(masses, share, side="right"), 1, masses.size - 1)
    low, high = table[cell - 1], table[cell]
    # a share grows like the cube of its angle at a soft edge: interpolate the cube root
    phi = np.interp(np.cbrt(share), np.cbrt(masses), table)
    for _ in range(30):
        usable = phi > 1e-150  # the density of a smaller angle underflows
        slope = np.where(usable, _angular_density(np.where(usable, phi, 1.0), c), 1.0)
        previous = phi
        phi = np.clip(phi - (_bulk_mass(phi, c) - share) / slope, low, high)
        if np.all(np.abs(phi - previous) <= 1e-8 * phi):  # the next step would be its square
            break
    return phi


@functools.lru_cache(maxsize=64)
def _angle_table(c: float) -> tuple[Floats, Floats]:
    """Angles, dense on both scales of the bulk, 1 and 1 - c, and the shares below them."""
    grid = np.linspace(0.0, math.pi, 129)
    fine = 2 * np.arctan2((1 - c) * np.sin(grid / 2), (1 + c) * np.cos(grid / 2))
    angles = np.unique(np.concatenate([grid, fine]))
    return angles, np.maximum.accumulate(_bulk_mass(angles, c))


@functools.lru_cache(maxsize=4)
def _gauss_legendre(n: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1) / 2, weights / 2
