"""Wigner's semicircle law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import Floats, closed_form, integer
from theory.rmt._laws import LARGEST_ORDER, TailLaw, blockwise, line, off_the_cut, one_scale, plane


@dataclass(frozen=True, init=False)
class Semicircle(TailLaw):
    r"""Wigner's semicircle: the spectrum of a symmetric matrix of independent centred entries.

    Density :math:`\sqrt{4\sigma^2 - x^2} / (2\pi\sigma^2)` on :math:`[-2\sigma, 2\sigma]`. Points x may be
    infinite but not NaN; probabilities lie in [0, 1]; every method broadcasts.

    Parameters
    ----------
    sigma, variance
        Exactly one: standard deviation or variance of the law; the variance between 1e-270 and 1e270.

    Raises
    ------
    ValueError
        If not exactly one scale is given, or it is not a positive number in that range.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorem 3; eq. (33) for the R-transform; eq. (36) for the Stieltjes
    transform, whose root has either sign there: off the cut it is minus, so that the transform decays like 1/z.

    Examples
    --------
    >>> law = Semicircle(sigma=1.5)
    >>> law.edges
    (-3.0, 3.0)
    >>> law.cdf([-3.0, 0.0, 3.0])
    array([0. , 0.5, 1. ])
    >>> float(law.stieltjes(3.0))  # 1 / sigma at the edge
    0.6666666666666666
    """

    sigma: float

    def __init__(self, *, sigma: float | None = None, variance: float | None = None) -> None:
        object.__setattr__(self, "sigma", one_scale(sigma, variance)[0])

    @property
    def variance(self) -> float:
        """Variance of the law."""
        return self.sigma**2

    @property
    def edges(self) -> tuple[float, float]:
        """Lower and upper end of the bulk."""
        return -2 * self.sigma, 2 * self.sigma

    def mean(self) -> float:
        """Mean, 0."""
        return 0.0

    def var(self) -> float:
        """Variance."""
        return self.variance

    @closed_form
    def moment(self, k: int) -> float:
        """Moment of order `k` about 0: a Catalan number times sigma^k, 0 for odd `k`.

        >>> [Semicircle(sigma=1.0).moment(k) for k in (0, 1, 2, 4, 6)]
        [1.0, 0.0, 1.0, 2.0, 5.0]
        """
        half, odd = divmod(integer("k", k, least=0, most=LARGEST_ORDER), 2)
        value = 1.0
        for j in range(1, half + 1):  # interleaved, so that a small sigma keeps a large k in range
            value *= self.sigma**2 * (4 * j - 2) / (j + 1)
        return 0.0 if odd else value

    def pdf(self, x: ArrayLike) -> Floats:
        """Density, 0 outside the support."""
        low, high = self.edges
        scale = 2 * math.pi * self.variance
        return blockwise(lambda t: np.sqrt(np.maximum((t - low) * (high - t), 0.0)) / scale, line("x", x))

    def logpdf(self, x: ArrayLike) -> Floats:
        """Logarithm of the density, -inf where it is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.pdf(x))

    def _tail(self, x: Floats, *, upper: bool) -> Floats:
        x = np.clip(-x if upper else x, *self.edges)  # the law is even
        y = x / (2 * self.sigma)
        found = 0.5 + (y * np.sqrt((1 - y) * (1 + y)) + np.arcsin(y)) / math.pi
        # near the edge the three terms cancel
        tail = y < _TAIL
        found[tail] = _kepler(4 * np.arcsin(np.sqrt((x[tail] + 2 * self.sigma) / 4 / self.sigma)))
        return found

    def _quantile(self, u: Floats, v: Floats) -> Floats:
        return np.where(u <= v, -2.0, 2.0) * self.sigma * np.cos(_inverse_kepler(np.minimum(u, v)) / 2)

    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        r"""Stieltjes transform :math:`G(z) = \int \rho(x) dx / (z - x)`, the branch that decays like 1/z.

        Parameters
        ----------
        z
            Real and not inside the support (an edge is allowed), or complex and not on the cut.

        Returns
        -------
        float64 for real `z`, complex128 for complex `z`.

        Raises
        ------
        ValueError
            If `z` is not finite or lies on the cut.
        """
        z = off_the_cut(z, self.edges)
        # G is odd: in the right half-plane neither root crosses its cut, whatever the sign of a zero part
        sign = np.where(np.real(z) < 0, -1.0, 1.0)
        half = sign * z / 2
        root = np.sqrt(half - self.sigma) * np.sqrt(half + self.sigma)
        return sign / 4 / (half / 4 + root / 4)  # quarters: the square of a modulus may overflow

    @closed_form
    def r_transform(self, w: ArrayLike) -> NDArray[Any]:
        """R-transform, variance times `w`, real or complex."""
        return self.variance * plane("w", w)


_TAIL = -math.cos(0.25)
"""Point of the law of radius 1 below which `_kepler` sums its series."""


def _kepler(psi: Floats) -> Floats:
    """(psi - sin psi) / (2 pi), without cancellation at small `psi`."""
    # below 0.5 the series, since psi and sin(psi) differ by about psi^3 / 6 only
    t = psi**2
    series = psi**3 / 6 * (1 - t / 20 * (1 - t / 42 * (1 - t / 72 * (1 - t / 110 * (1 - t / 156)))))
    return np.where(psi < 0.5, series, psi - np.sin(psi)) / (2 * math.pi)


def _inverse_kepler(u: Floats) -> Floats:
    """The `psi` in [0, pi] of `_kepler`, for u in [0, 1/2]."""
    psi = np.cbrt(12 * math.pi * u)  # below the solution; from there Newton's method is monotone
    for _ in range(6):
        slope = np.sin(psi / 2) ** 2 / math.pi
        psi = psi + (u - _kepler(psi)) / np.where(u > 0, slope, 1.0)
    return psi
