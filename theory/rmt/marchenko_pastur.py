"""The Marchenko-Pastur law, by the mass of its bulk below an angle."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike, NDArray

from theory._checks import Floats, closed_form, integer, representable, require, within
from theory._roots import unit_legendre
from theory.rmt._laws import (
    LARGEST_ORDER,
    SCALE_RANGE,
    TailLaw,
    blockwise,
    line,
    off_the_cut,
    one_scale,
    plane,
    scale_parameter,
)


@dataclass(frozen=True, init=False)
class MarchenkoPastur(TailLaw):
    r"""The Marchenko-Pastur law: the spectrum of :math:`X X^\top / n`, X p x n with independent entries.

    Density :math:`\sqrt{(x_+ - x)(x - x_-)} / (2\pi q \sigma^2 x)` between
    :math:`x_\pm = \sigma^2 (1 \pm \sqrt q)^2`, and for q > 1 an atom of mass :math:`1 - 1/q` at 0, the null
    space of X^T. `cdf` counts the atom, `pdf` does not; the density is infinite at 0 for q = 1.

    Parameters
    ----------
    q
        Aspect ratio p / n, positive.
    sigma, variance
        Exactly one: standard deviation or variance of an entry of X, positive. The variance, `q` and their
        product lie between 1e-270 and 1e270.

    Raises
    ------
    ValueError
        If `q` or the scale is not a positive number in that range, or not exactly one scale is given.

    Notes
    -----
    With c = min(sqrt(q), 1/sqrt(q)) and x proportional to 1 + c^2 - 2 c cos(phi), the bulk holds
    :math:`\frac{2}{\pi} \int_0^\phi \sin^2 t / (1 + c^2 - 2 c \cos t) \, dt` of its mass below phi. The law
    of 1/q is the same bulk with less weight, and seen from the upper edge c changes its sign.

    References
    ----------
    Granziol, Zohren and Roberts (2022), appendix B, eqs. (50)-(52). In our copy (51) and (52) carry
    z + sigma^2 (1 - beta) where z - sigma^2 (1 - beta) is needed, and (52) lacks 1/pi and the atom.

    Examples
    --------
    >>> law = MarchenkoPastur(q=4.0, variance=1.0)
    >>> law.edges, law.atom, law.support()
    ((1.0, 9.0), 0.75, (0.0, 9.0))
    >>> law.cdf([-1.0, 0.0, 1.0, 9.0])
    array([0.  , 0.75, 0.75, 1.  ])
    """

    q: float
    variance: float

    def __init__(self, *, q: float, sigma: float | None = None, variance: float | None = None) -> None:
        object.__setattr__(self, "q", scale_parameter("q", q))
        object.__setattr__(self, "variance", one_scale(sigma, variance)[1])
        require(
            self._scale <= SCALE_RANGE[1],
            "q times variance",
            f"at most {SCALE_RANGE[1]:g}",
            (q, self.variance),
        )

    @property
    def sigma(self) -> float:
        """Standard deviation of an entry of X."""
        return math.sqrt(self.variance)

    @property
    def edges(self) -> tuple[float, float]:
        """Lower and upper end of the bulk."""
        low, width = self._shape()
        return self._scale * low, self._scale * (low + width)

    @property
    def atom(self) -> float:
        """Mass at 0."""
        return 1 - self._weight

    def support(self) -> tuple[float, float]:
        """Smallest closed interval of full mass; it begins at 0 where there is an atom."""
        low, high = self.edges
        return (0.0 if self.q > 1 else low), high

    def mean(self) -> float:
        """Mean: the variance of an entry."""
        return self.variance

    def var(self) -> float:
        """Variance, q times the mean squared."""
        return float(
            representable(np.float64(self.variance * self.q * self.variance), variance=self.variance)
        )

    @closed_form
    def moment(self, k: int) -> float:
        """Moment of order `k` about 0, the atom included: a Narayana polynomial in q times variance^k.

        >>> [MarchenkoPastur(q=2.0, variance=1.0).moment(k) for k in (0, 1, 2, 3)]
        [1.0, 1.0, 3.0, 11.0]
        """
        k = integer("k", k, least=0, most=LARGEST_ORDER)
        term = total = 1.0
        for r in range(k - 1):
            term *= self.q * (k - r) * (k - 1 - r) / ((r + 1) * (r + 2))
            total += term
        power = k * math.log(self.variance)
        plain = total < math.inf and abs(power) < 600
        return total * self.variance**k if plain else self._large_moment(k, power)

    def _large_moment(self, k: int, power: float) -> float:
        """The moment by the logarithm of its Narayana polynomial in q, which may be larger than any float."""
        r = np.arange(1, k, dtype=np.float64)
        steps = math.log(self.q) + np.log((k - r + 1) / r) + np.log((k - r) / (r + 1))
        logs = np.concatenate([np.zeros(1), np.cumsum(steps)])
        x = float(logs.max() + np.log(np.exp(logs - logs.max()).sum())) + power
        return math.exp(x) if x < 709.7 else math.inf

    def pdf(self, x: ArrayLike) -> Floats:
        """Density of the bulk: 0 outside it and on the atom, inf at x = 0 for q = 1."""
        factor = self._weight / (2 * math.pi * self._c) / self._scale / self._c
        density = blockwise(lambda t: self._profile(t, factor), line("x", x))
        # the profile is at most 1e17, but for q = 1, where it is infinite at the hard edge
        if factor < 1e280 or self.q == 1:
            return density
        return representable(density, x=x, q=self.q, variance=self.variance)

    def logpdf(self, x: ArrayLike) -> Floats:
        """Logarithm of `pdf`."""
        constant = (
            math.log(self._weight / (2 * math.pi * self._c)) - math.log(self._scale) - math.log(self._c)
        )
        return blockwise(lambda t: np.log(self._profile(t, 1.0)) + constant, line("x", x))

    def _profile(self, x: Floats, factor: float) -> Floats:
        """`factor` times sqrt((x_+ - x)(x - x_-)) / x, 0 outside the bulk."""
        if self.q == 1:  # root by root, since x / scale may underflow
            profile = np.sqrt(4 - x / self._scale) * (math.sqrt(self._scale) / np.sqrt(x))
        else:
            below, above = self._offsets(x)
            profile = np.sqrt(np.multiply(below, -above, out=below), out=below)
            profile /= x / self._scale
        profile *= factor
        return np.fmax(profile, 0.0, out=profile)  # outside, the root is not real: NaN

    def ppf(self, u: ArrayLike) -> Floats:
        """Quantile: the smallest x with cdf(x) >= `u`, and the start of the support at u = 0.

        >>> MarchenkoPastur(q=4.0, variance=1.0).ppf([0.0, 0.5, 0.75, 1.0])
        array([0., 0., 0., 9.])
        """
        u = within("u", u, 0.0, 1.0)
        return blockwise(lambda t: np.where(t <= self.atom, self.support()[0], self._quantile(t, 1 - t)), u)

    def isf(self, u: ArrayLike) -> Floats:
        """Inverse of `sf`: the smallest x of the support with sf(x) <= `u`."""
        u = within("u", u, 0.0, 1.0)
        return blockwise(
            lambda t: np.where(t >= self._weight, self.support()[0], self._quantile(1 - t, t)), u
        )

    @closed_form
    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        r"""Stieltjes transform :math:`G(z) = \int \rho(x) dx / (z - x)`, the atom included.

        Parameters
        ----------
        z
            Real and not inside the bulk (an edge is allowed), or complex and not on the cut.

        Returns
        -------
        float64 for real `z`, complex128 for complex `z`.

        Raises
        ------
        ValueError
            If `z` is not finite, lies on the cut, or is 0 where q >= 1.

        References
        ----------
        Granziol, Zohren and Roberts (2022), eq. (51), with z - sigma^2 (1 - beta).
        """
        z, (low, high) = off_the_cut(z, self.edges), self.edges
        require((self.q < 1) | (z != 0), "z", "non-zero for q >= 1", z)
        far, near = np.abs(z) > 1e18 * high, (np.abs(z) < 1e-40 * self._scale) & (self.q == 1)
        near |= np.abs(z) < 1e-18 * low * self.atom
        middle = self._quadratic_root(np.where(far | near, self._scale * 1e2, z), low, high)
        small = np.where(near, z, -1.0)  # where the atom, or the hard edge at q = 1, outweighs all else
        by_atom = self.atom / small if self.q > 1 else -1 / np.sqrt(-small) / math.sqrt(self._scale)
        ends = np.where(far, 0.25 / (np.where(far, z, 1.0) / 4), by_atom)
        return np.where(far | near, ends, middle)

    def _quadratic_root(self, z: NDArray[Any], low: float, high: float) -> NDArray[Any]:
        """Stieltjes transform from its quadratic equation."""
        y = z / self._scale
        below, above = self._offsets(z)
        below, above = np.where(z == low, 0.0, below), np.where(z == high, 0.0, above)
        if np.iscomplexobj(below):  # two roots, each with its own cut
            root = np.sqrt(below) * np.sqrt(above) / 2
        else:
            root = np.copysign(np.sqrt(np.abs(below)) * np.sqrt(np.abs(above)), above) / 2
        c2 = self._c**2
        middle = (y + 1 - c2 if self.q > 1 else (z - self._scale) / self._scale + c2) / 2
        # the two roots of the quadratic multiply to 1/(q sigma^2 z): take the form without cancellation
        add = np.abs(middle + root) >= np.abs(middle - root)
        plain = 1 / np.where(add, middle + root, 1.0)
        other = np.where(add, 0.0, middle - root) / np.where(add, 1.0, y) / min(self.q, 1.0)
        return np.where(add, plain, other) / self._scale

    @closed_form
    def r_transform(self, w: ArrayLike) -> NDArray[Any]:
        """R-transform, variance / (1 - q variance `w`), real or complex; its pole is refused.

        References
        ----------
        Granziol, Zohren and Roberts (2022), eq. (50), there in the convention of the opposite sign.
        """
        w = plane("w", w)
        denominator = 1 - self.q * self.variance * w
        require(denominator != 0, "w", "different from 1 / (q variance)", w)
        far = ~np.isfinite(denominator)
        limit = -1 / self.q / np.where(far, w, 1.0)
        return np.where(far, limit, self.variance / np.where(far, 1.0, denominator))

    @property
    def _c(self) -> float:
        return math.sqrt(min(self.q, 1 / self.q))

    @property
    def _scale(self) -> float:
        return self.variance * max(self.q, 1.0)

    @property
    def _weight(self) -> float:
        """Mass of the bulk."""
        return min(1.0, 1 / self.q)

    @property
    def _gap(self) -> float:
        """1 - c, also where c rounds to 1."""
        return abs(1 - self.q) / max(self.q, 1.0) / (1 + self._c)

    def _shape(self) -> tuple[float, float]:
        """Lower edge and width of the bulk over the scale."""
        return self._gap**2, 4 * self._c

    def _offsets(self, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Signed distances of `x` from the lower and from the upper edge, over the scale."""
        c = self._c
        if c > 0.5:  # the lower edge may be near 0 and `x` with it
            y = x / self._scale
            low, width = self._shape()
            return y - low, y - (low + width)
        deviation = (x - self._scale) / self._scale  # exact near the centre of a narrow bulk
        return deviation - (c - 2) * c, deviation - (c + 2) * c

    def _tail(self, x: Floats, *, upper: bool) -> Floats:
        (low, high), (below, above), c = self.edges, self._offsets(x), self._c
        # for q = 1 below = x / scale, which may underflow
        root = np.sqrt(x) / math.sqrt(self._scale) if self.q == 1 else np.sqrt(np.maximum(below, 0.0))
        # of half the angle
        sine, cosine = root / math.sqrt(4 * c), np.sqrt(np.maximum(-above, 0.0) / (4 * c))
        share = _share_below(cosine, sine, -c, 1 + c) if upper else _share_below(sine, cosine, c, self._gap)
        share[x <= low] = upper
        share[x >= high] = not upper  # last: a bulk narrower than the spacing of floats has but one edge
        share *= self._weight
        share += 0.0 if upper else self.atom
        share[x < 0] = upper
        return share

    def _quantile(self, u: Floats, v: Floats) -> Floats:
        """The point of the bulk with probability `u` below it and `v` above."""
        upper = np.clip(v / self._weight, 0.0, 1.0)
        lower = np.clip(_without_atom(u, v, self.q), 0.0, 1.0) if self.q > 1 else u
        near_low = lower <= upper
        low, width = self._shape()
        rise = width * np.sin(_bulk_angle(np.where(near_low, lower, 0.0), self._c, self._gap) / 2) ** 2
        fall = width * np.sin(_bulk_angle(np.where(near_low, 0.0, upper), -self._c, 1 + self._c) / 2) ** 2
        return self._scale * np.where(near_low, low + rise, low + width - fall)


def _without_atom(u: Floats, v: Floats, q: float) -> Floats:
    """(u - atom)/(1 - atom) = 1 - q + q u = 1 - q v for u + v = 1, without loss just above the atom."""
    small = np.where(u <= 0.5, u, v)
    # Dekker's product: q times it as a rounded value and the exact error of that
    product, (mantissa, exponent) = q * small, math.frexp(q)
    high, b_high = (
        math.ldexp(_upper_half(mantissa), exponent),
        _upper_half(small),
    )  # q itself may be too large to split
    low, b_low = q - high, small - b_high
    error: Floats = ((high * b_high - product) + high * b_low + low * b_high) + low * b_low
    return np.where(u <= 0.5, ((1 - q) + product) + error, (1 - product) - error)


def _upper_half(x: Any) -> Any:
    """The leading 26 bits of `x` (Veltkamp's splitting)."""
    t = (2.0**27 + 1) * x
    return t - (t - x)


def _share_below(s: Floats, k: Floats, c: float, gap: float) -> Floats:
    """Share of the bulk at angles below one, by the sine and the cosine of its half.

    -1 <= c < 0 counts from the upper edge; `gap` is 1 - c.
    """
    share, product, square = 2 / math.pi * np.arctan2(s, k), s * k, s * s
    if abs(c) < 0.02:
        share += product * polyval(1 - 2 * square, 2 / math.pi * _sine_series(c))
    else:
        sign, rest = math.copysign(1.0, c), gap / abs(2 * c)
        delta = np.arctan2(product, rest + square if c > 0 else rest - square)
        share += sign * (1 - 1 / c**2) / math.pi * delta + 2 / math.pi / c * product
    tail = s < 0.25  # there the terms cancel
    share[tail] = _tail_share(s[tail], k[tail], c, gap)
    return share


@functools.lru_cache(maxsize=64)
def _sine_series(c: float) -> Floats:
    """Coefficients, in powers of cos(phi), of (pi share - phi) / sin(phi) as a series in powers of c."""
    twice = Polynomial([0.0, 2.0])  # the cosine in Clenshaw's recurrence
    now = after = Polynomial([0.0])
    for m in range(2 + int(-38 / math.log(abs(c))), 1, -1):  # the next power of c is below the rounding error
        now, after = twice * now - after + c ** (m - 2) * (c * c - 1) / m, now
    return np.asarray((twice * now - after + c).coef, dtype=np.float64)


def _tail_share(s: Floats, k: Floats, c: float, gap: float) -> Floats:
    """The share at small angles, exact to rounding in the relative sense."""
    nodes, weights = unit_legendre(12)
    smooth = s * (_density_of_sine(np.multiply.outer(s, nodes), c, gap) @ weights)
    half = s / k
    fast = (1 + c) ** 2 * half - gap * (1 + c) * np.arctan2((1 + c) * half, gap)
    slow = (1 + c**2) * (half - np.arctan(half)) + 2 * c * half**3 / (1 + half**2)
    # where the bulk nearly touches 0 the density turns too fast for a quadrature
    hard = (c >= 0.3) & ((1 + c) * half >= gap)
    return np.where(hard, (fast - slow) / (math.pi * c**2), smooth)


def _density_of_sine(s: Floats, c: float, gap: float) -> Floats:
    """Derivative of the share by the sine of half the angle."""
    return 16 / math.pi * s**2 * np.sqrt(1 - s**2) / (gap**2 + 4 * c * s**2)


def _bulk_angle(share: Floats, c: float, gap: float) -> Floats:
    """Inverse of the share at angles, for shares in [0, 1/2]: Newton's method inside a cell of a table."""
    table, masses = _angle_table(c, gap)
    cell = np.clip(np.searchsorted(masses, share, side="right"), 1, masses.size - 1)
    low, high = table[cell - 1], table[cell]
    # a share grows like the cube of its angle at a soft edge: interpolate the cube root
    phi = np.interp(np.cbrt(share), np.cbrt(masses), table)
    for _ in range(30):
        s, k = np.sin(phi / 2), np.cos(phi / 2)
        slope = _density_of_sine(s, c, gap) * k / 2
        step = np.where(phi > 1e-150, (_share_below(s, k, c, gap) - share) / slope, 0.0)
        previous = phi
        phi = np.clip(phi - step, low, high)
        if np.all(np.abs(phi - previous) <= 1e-8 * phi):  # the next step would be its square
            break
    return phi


@functools.lru_cache(maxsize=64)
def _angle_table(c: float, gap: float) -> tuple[Floats, Floats]:
    """Angles, dense on both scales of the bulk, 1 and 1 - c, and the shares below them."""
    grid = np.linspace(0.0, math.pi, 129)
    fine = 2 * np.arctan2(gap * np.sin(grid / 2), (1 + c) * np.cos(grid / 2))
    angles = np.unique(np.concatenate([grid, fine]))
    return angles, np.maximum.accumulate(_share_below(np.sin(angles / 2), np.cos(angles / 2), c, gap))
