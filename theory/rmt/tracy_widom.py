r"""The Tracy-Widom laws: fluctuation of the largest eigenvalue of a noise matrix at the edge of its bulk.

Four Chebyshev series per law hold :math:`\log F` left of the middle and :math:`\log(1 - F)` right of it, so that
both tails keep their relative accuracy. The outer two are series in :math:`|x|^{-3/2}` for what the growing terms

.. math::

    \log F_\beta(-x) &\sim -\beta x^3/24 - (2 - \beta)\, x^{3/2}/(3\sqrt 2) - \beta \log(x)/16, \\
    \log(1 - F_\beta(x)) &\sim -2 \beta x^{3/2}/3 - 3 \beta \log(x)/4

leave, and reach infinity. The coefficients come from Fredholm determinants of 35 digits and more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike

from theory._checks import Floats, closed_form, integer, quiet, require
from theory.rmt._laws import LARGEST_ORDER, TailLaw, blockwise, line
from theory.rmt._tracy_widom_tables import FAR_LEFT, FAR_RIGHT, SPLIT, TABLES


@dataclass(frozen=True, init=False)
class TracyWidom(TailLaw):
    r"""Limit law of the largest eigenvalue, centred and scaled, of real or complex noise.

    For beta = 1 real symmetric or real Wishart matrices, for beta = 2 complex ones: for a Wigner matrix of
    dimension P and edge :math:`2\sigma` the law of :math:`P^{2/3} (\lambda_{\max} - 2\sigma)/\sigma`. Points x
    may be infinite but not NaN; probabilities lie in [0, 1]; every method broadcasts.

    Parameters
    ----------
    beta
        1 or 2.

    Raises
    ------
    ValueError
        If `beta` is neither 1 nor 2.

    Notes
    -----
    `cdf`, `sf` and `pdf` are accurate to 1e-15, and to 1e-12 of their size wherever doubles can hold them;
    `logpdf` goes on beyond. What a matrix of finite dimension shows is in `theory.finite_size`.

    References
    ----------
    Tracy and Widom (1996), On orthogonal and symplectic matrix ensembles; Bornemann (2010), On the numerical
    evaluation of distributions in random matrix theory.

    Examples
    --------
    >>> law = TracyWidom(beta=1)
    >>> round(law.mean(), 10), round(law.var(), 10)
    (-1.2065335746, 1.6077810346)
    >>> law.cdf([-np.inf, 0.0, np.inf]).round(6)
    array([0.      , 0.831908, 1.      ])
    >>> law.isf([0.05, 1e-3]).round(6)
    array([0.979316, 3.272196])
    >>> float(law.sf(40.0))  # the far tail is not 0
    5.0...e-76
    """

    beta: int

    def __init__(self, *, beta: int) -> None:
        object.__setattr__(self, "beta", integer("beta", beta, least=1))
        require(self.beta in TABLES, "beta", "1 or 2", beta)

    @property
    def edges(self) -> tuple[float, float]:
        """Ends of the law: it reaches infinity on both sides."""
        return -math.inf, math.inf

    def mean(self) -> float:
        """Mean, -1.2065... for beta = 1 and -1.7710... for beta = 2."""
        return self.moment(1)

    def var(self) -> float:
        """Variance, 1.6077... for beta = 1 and 0.8131... for beta = 2."""
        x, mass = point_masses(self.beta)
        return float(mass @ (x - self.mean()) ** 2)

    @closed_form
    def moment(self, k: int) -> float:
        """Moment of order `k` about 0.

        >>> [round(TracyWidom(beta=2).moment(k), 6) for k in (0, 1, 2, 3)]
        [1.0, -1.771087, 3.949943, -9.7118...]
        """
        k = integer("k", k, least=0, most=LARGEST_ORDER)
        if k == 0:
            return 1.0
        x, mass = point_masses(self.beta)
        # by its logarithm: a high power overflows where the mass is tiny
        return float(np.sum(np.sign(x) ** k * np.exp(k * np.log(np.abs(x)) + np.log(mass))))

    def pdf(self, x: ArrayLike) -> Floats:
        """Density; small values keep their relative accuracy."""
        return blockwise(lambda t: np.exp(_log_density(t, self.beta)), line("x", x))

    def logpdf(self, x: ArrayLike) -> Floats:
        """Logarithm of the density, also where that is smaller than any float."""
        return blockwise(lambda t: _log_density(t, self.beta), line("x", x))

    def _tail(self, x: Floats, *, upper: bool) -> Floats:
        log = _log_tail(x, self.beta)
        return np.where((x > SPLIT) == upper, np.exp(log), -np.expm1(log))

    def _quantile(self, u: Floats, v: Floats) -> Floats:
        """The point with probability `u` below it and `v` above, by Newton's method on the logarithm of a tail."""
        left = u <= self._tail(np.array(SPLIT), upper=False)
        tail = np.where(left, u, v)
        log = np.log(np.where(tail > 0, tail, 0.5))
        # linear interpolation, in powers of the logarithm in which the quantile is nearly straight
        near, far = _quantile_tables(self.beta)
        x = np.where(left, np.interp(np.cbrt(-log), *near), np.interp(np.cbrt(log) ** 2, *far))
        for _ in range(2):  # the table is good to 1e-5
            x = x - (_log_tail(x, self.beta) - log) / _log_tail(x, self.beta, 1)
            # a step must not cross the split, beyond which the series is that of the other tail
            x = np.where(left, np.minimum(x, SPLIT), np.maximum(x, _AFTER_SPLIT))
        return np.where(tail > 0, x, np.where(left, -np.inf, np.inf))


_WIDEST = -1e150, 1e206  # the logarithms of the tails overflow before
_AFTER_SPLIT = math.nextafter(SPLIT, math.inf)
_INTERVALS = {
    "far_left": (0.0, (-FAR_LEFT) ** -1.5),
    "left": (FAR_LEFT, SPLIT),
    "right": (SPLIT, FAR_RIGHT),
    "far_right": (0.0, FAR_RIGHT**-1.5),
}


@lru_cache(maxsize=2)
def _quantile_tables(beta: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Points and the powers of the logarithm of their tail, for all tails that doubles can hold."""
    left, right = np.linspace(SPLIT, -30.0, 4097), np.linspace(_AFTER_SPLIT, 120.0, 8193)
    return (np.cbrt(-_log_tail(left, beta)), left), (np.cbrt(_log_tail(right, beta)) ** 2, right)


@lru_cache(maxsize=2)
def point_masses(beta: int) -> tuple[Floats, Floats]:
    """Points of the trapezoidal rule and the mass at each: exact to rounding, the density being entire."""
    x = np.arange(-25, 110, 1 / 32) + 1 / 64  # without 0, which has no logarithm
    mass = np.exp(_log_density(x, beta)) / 32
    return x[mass > 0], mass[mass > 0]


def _log_density(x: Floats, beta: int) -> Floats:
    return _log_tail(x, beta) + np.log(np.abs(_log_tail(x, beta, 1)))


def _log_tail(x: Floats, beta: int, order: int = 0) -> Floats:
    """Logarithm of the cdf up to `SPLIT`, of the sf beyond, or its derivative of `order` 1."""
    x = np.clip(x, *_WIDEST)
    left, far_left, far_right = x <= SPLIT, x < FAR_LEFT, x > FAR_RIGHT
    places = [far_left, left & ~far_left, ~left & ~far_right, far_right]
    pieces = [_far_left, partial(_series, piece="left"), partial(_series, piece="right"), _far_right]
    return np.piecewise(x, places, pieces, beta, order)


@quiet
def _far_left(x: Floats, beta: int, order: int) -> Floats:
    size = -x
    series = _series(size**-1.5, beta, order, "far_left")
    if order:
        line = (2 - beta) * np.sqrt(size / 8)
        return 1.5 * size**-2.5 * series + line + beta * (size**2 / 8 + 1 / size / 16)
    line = (2 - beta) * size**1.5 / (3 * math.sqrt(2))
    return series - line - beta * (size**3 / 24 + np.log(size) / 16)


@quiet
def _far_right(x: Floats, beta: int, order: int) -> Floats:
    series = _series(x**-1.5, beta, order, "far_right")
    if order:
        return -1.5 * x**-2.5 * series - beta * (np.sqrt(x) + 0.75 / x)
    return series - beta * (2 / 3 * x**1.5 + 0.75 * np.log(x))


def _series(x: Floats, beta: int, order: int, piece: str) -> Floats:
    low, high = _INTERVALS[piece]
    y = (2 * x - (low + high)) / (high - low)
    return np.asarray(chebyshev.chebval(y, _coefficients(beta, piece, order)), dtype=np.float64)


@lru_cache(maxsize=16)
def _coefficients(beta: int, piece: str, order: int) -> Floats:
    low, high = _INTERVALS[piece]
    return np.asarray(chebyshev.chebder(TABLES[beta][piece], order, scl=2 / (high - low)), dtype=np.float64)
