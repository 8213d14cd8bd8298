"""The Tracy-Widom laws: fluctuation of the largest eigenvalue of a noise matrix at the edge of its bulk."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import integer, representable, require, within
from theory.rmt._laws import LARGEST_ORDER, blockwise, line
from theory.rmt._tracy_widom import BETAS, log_density, point_masses, quantile, tails

__all__ = ["TracyWidom"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, init=False)
class TracyWidom:
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
        require(self.beta in BETAS, "beta", "1 or 2", beta)

    @property
    def edges(self) -> tuple[float, float]:
        """Ends of the law: it reaches infinity on both sides."""
        return -math.inf, math.inf

    @property
    def atom(self) -> float:
        """Mass at a single point: none."""
        return 0.0

    def support(self) -> tuple[float, float]:
        """Smallest closed interval of full mass, the whole line."""
        return self.edges

    def mean(self) -> float:
        """Mean, -1.2065... for beta = 1 and -1.7710... for beta = 2."""
        return self.moment(1)

    def var(self) -> float:
        """Variance, 1.6077... for beta = 1 and 0.8131... for beta = 2."""
        x, mass = point_masses(self.beta)
        return float(mass @ (x - self.mean()) ** 2)

    def moment(self, k: int) -> float:
        """Moment of order `k` about 0.

        >>> [round(TracyWidom(beta=2).moment(k), 6) for k in (0, 1, 2, 3)]
        [1.0, -1.771087, 3.949943, -9.7118...]
        """
        k = integer("k", k, least=0, most=LARGEST_ORDER)
        if k == 0:
            return 1.0
        x, mass = point_masses(self.beta)
        with np.errstate(over="ignore", invalid="ignore"):
            # by its logarithm: a high power overflows where the mass is tiny
            value = np.sum(np.sign(x) ** k * np.exp(k * np.log(np.abs(x)) + np.log(mass)))
        return float(representable(value, k=k, beta=self.beta))

    def pdf(self, x: ArrayLike) -> Floats:
        """Density; small values keep their relative accuracy."""
        return blockwise(lambda t: np.exp(log_density(t, self.beta)), line("x", x))

    def logpdf(self, x: ArrayLike) -> Floats:
        """Logarithm of the density, also where that is smaller than any float."""
        return blockwise(lambda t: log_density(t, self.beta), line("x", x))

    def cdf(self, x: ArrayLike) -> Floats:
        """Probability of values <= `x`; small values keep their relative accuracy."""
        return blockwise(lambda t: tails(t, self.beta)[0], line("x", x))

    def sf(self, x: ArrayLike) -> Floats:
        """Probability of values > `x`; small values keep their relative accuracy."""
        return blockwise(lambda t: tails(t, self.beta)[1], line("x", x))

    def ppf(self, u: ArrayLike) -> Floats:
        """Quantile: the point below which a share `u` of the law lies.

        >>> TracyWidom(beta=2).ppf([0.0, 0.5, 1.0])
        array([       -inf, -1.8049...,         inf])
        """
        return blockwise(lambda t: quantile(t, 1 - t, self.beta), within("u", u, 0.0, 1.0))

    def isf(self, u: ArrayLike) -> Floats:
        """Inverse of `sf`, for small `u` without loss."""
        return blockwise(lambda t: quantile(1 - t, t, self.beta), within("u", u, 0.0, 1.0))
