r"""Extreme eigenvalues of matrices of finite dimension: their mean position and their scatter.

==========================  ======================  =========================================================
name                        symbol                  meaning
==========================  ======================  =========================================================
``dim``                     P, p                    dimension of the matrix whose eigenvalues are asked for
``samples``                 n                       columns of the rectangular noise; q = p/n
``mean``, ``sd``                                    of the extreme eigenvalue, over draws of the noise
`wigner_edge`               Tracy-Widom, beta = 1   noise only: scatter :math:`P^{-2/3}`, shift of that size
`wishart_edge`              Tracy-Widom, beta = 1   the same of :math:`X X^\top / n`
`additive_wigner_sd`, ...   Gaussian                a visible outlier of `theory.outliers`: scatter P^{-1/2}
`axis_wigner_sd`            not Gaussian            the same where the spike lies along one coordinate
==========================  ======================  =========================================================

Everything is for real noise with Gaussian entries, or any entries of the same variance and fourth moment on a
direction that is spread over many coordinates. An outlier is Gaussian about its limit, with a shift of O(1/P), where
the spike is beyond its threshold by several :math:`P^{-1/3}` of the threshold; nearer it passes into the edge.

For noise that has no preferred direction the outlier z of a spike :math:`\theta` solves
:math:`1/\theta = u^\top (z - W)^{-1} u`. The right-hand side scatters about G(z) with variance
:math:`-\frac{2}{P} (G' + G^2)`, and with the squared overlap
:math:`o = dz/d\theta = -1/(\theta^2 G')` the variance of z is :math:`\frac{2}{P} \theta^2 o (1 - o)`.

Extreme eigenvalues of noise are those of the Tracy-Widom law with centre and scale to second order.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory import outliers
from theory._checks import Floats, closed_form, finite, flag, nonnegative, require, together, whole
from theory.outliers import Outlier
from theory.rmt.tracy_widom import TracyWidom, point_masses

__all__ = [
    "EdgeFluctuation",
    "additive_wigner_sd",
    "additive_wishart_sd",
    "axis_wigner_sd",
    "information_plus_noise_sd",
    "spiked_covariance_sd",
    "wigner_edge",
    "wishart_edge",
]


def additive_wigner_sd(spike: ArrayLike, *, sigma: ArrayLike, dim: ArrayLike) -> Floats:
    r"""Scatter of the outlier of a low-rank matrix plus Wigner noise.

    :math:`\sigma \sqrt{2 (1 - \sigma^2/\theta^2) / P}` for the spike :math:`\theta`.

    Parameters
    ----------
    spike
        Eigenvalue of the low-rank matrix, beyond `sigma` in size.
    sigma
        Standard deviation of the semicircle, >= 0, in the unit of the spike.
    dim
        P, an integer >= 1.

    Returns
    -------
    Standard deviation of the outlier, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or `spike` is not beyond the threshold.

    References
    ----------
    Capitaine, Donati-Martin and Feral (2012), Central limit theorems for eigenvalues of deformations of Wigner
    matrices, for eigenvectors that are spread out.

    Examples
    --------
    >>> float(additive_wigner_sd(2.0, sigma=1.0, dim=150).round(6))
    0.1
    """
    spike, sigma, dim = together(spike=(finite, spike), sigma=(nonnegative, sigma), dim=(whole, dim))
    overlap = _visible(spike, outliers.additive_wigner(spike, sigma=sigma)).overlap
    return sigma * np.sqrt(2 * overlap / dim)


@closed_form
def axis_wigner_sd(
    spike: ArrayLike,
    *,
    sigma: ArrayLike,
    dim: ArrayLike,
    diagonal: ArrayLike = 2.0,
    fourth_cumulant: ArrayLike = 0.0,
) -> Floats:
    r"""Scatter of the outlier where the spike lies along one coordinate, and knows the law of the elements.

    :math:`\mathrm{Var} = \frac{\sigma^2}{P} (1 - m)^2 (d + \kappa_4 m + \frac{2m}{1 - m})` with
    :math:`m = \sigma^2/\theta^2`; for Gaussian noise, d = 2, that of `additive_wigner_sd`.

    Parameters
    ----------
    spike, sigma, dim
        As in `additive_wigner_sd`.
    diagonal
        d >= 0, variance of an element on the diagonal in units of :math:`\sigma^2/P`; 1 for noise of signs.
    fourth_cumulant
        :math:`\kappa_4 \ge -2` of an element off the diagonal in units of :math:`\sigma^4/P^2`; -2 for signs.

    Returns
    -------
    Standard deviation of the outlier, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or `spike` is not beyond the threshold.

    References
    ----------
    Capitaine, Donati-Martin and Feral (2009), The largest eigenvalues of finite rank deformation of large Wigner
    matrices: convergence and nonuniversality of the fluctuations, theorem 2.2.

    Examples
    --------
    >>> float(axis_wigner_sd(2.0, sigma=1.0, dim=150).round(6))
    0.1
    """
    spike, sigma, dim, diagonal, fourth = together(
        spike=(finite, spike),
        sigma=(nonnegative, sigma),
        dim=(whole, dim),
        diagonal=(nonnegative, diagonal),
        fourth_cumulant=(finite, fourth_cumulant),
    )
    require(fourth >= -2, "fourth_cumulant", "at least -2", fourth_cumulant)
    overlap = _visible(spike, outliers.additive_wigner(spike, sigma=sigma)).overlap  # 1 - m
    m = 1 - overlap
    variance = overlap * (overlap * (diagonal + fourth * m) + 2 * m) / dim
    return sigma * np.sqrt(variance)


def additive_wishart_sd(
    spike: ArrayLike, *, dim: ArrayLike, samples: ArrayLike, variance: ArrayLike
) -> Floats:
    r"""Scatter of the outlier of a low-rank matrix plus an independent Wishart matrix.

    :math:`\sigma^2 \frac{\theta}{\theta - q \sigma^2} \sqrt{2 o / n}` with the squared overlap o.

    Parameters
    ----------
    spike
        Eigenvalue of the low-rank matrix, beyond the threshold of `theory.outliers.additive_wishart`.
    dim, samples
        p rows and n columns of X, integers >= 1.
    variance
        Variance of an entry of X, >= 0, in the unit of the spike.

    Returns
    -------
    Standard deviation of the outlier, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or `spike` is not beyond the threshold.

    Examples
    --------
    >>> float(additive_wishart_sd(2.0, dim=120, samples=300, variance=0.8).round(4))
    0.0742
    """
    spike, q, variance, n = _rectangular(spike, dim, samples, variance)
    outlier = _visible(spike, outliers.additive_wishart(spike, q=q, variance=variance))
    strength = (spike - outlier.threshold) + np.sqrt(q) * variance  # spike - q variance
    return variance * (spike / strength) * np.sqrt(2 * outlier.overlap / n)


@closed_form
def information_plus_noise_sd(
    spike: ArrayLike, *, dim: ArrayLike, samples: ArrayLike, variance: ArrayLike
) -> Floats:
    r"""Scatter of the outlier of :math:`(J + E)(J + E)^\top` for a fixed low-rank J.

    :math:`\sigma \sqrt{2 (2\theta + (1 + q)\sigma^2) (1 - q \sigma^4/\theta^2) / n}`, from the scatter of
    :math:`u^\top G u`, :math:`v^\top \tilde G v` and :math:`u^\top G E v`, which are independent to this order.

    Parameters
    ----------
    spike
        Eigenvalue of :math:`J J^\top`, beyond the threshold of `theory.outliers.information_plus_noise`.
    dim, samples
        p rows and n columns of J and E, integers >= 1.
    variance
        n times the variance of an entry of E, >= 0, in the unit of the spike.

    Returns
    -------
    Standard deviation of the outlier, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or `spike` is not beyond the threshold.

    Examples
    --------
    >>> float(information_plus_noise_sd(2.0, dim=120, samples=300, variance=0.8).round(4))
    0.1599
    """
    spike, q, variance, n = _rectangular(spike, dim, samples, variance)
    steep = _slope(spike, q, variance)
    both = np.where(variance > 0, 2 * spike + (1 + q) * variance, 0.0)
    return np.sqrt(variance) * np.sqrt(2 * steep / n * both)


@closed_form
def spiked_covariance_sd(
    spike: ArrayLike, *, dim: ArrayLike, samples: ArrayLike, variance: ArrayLike
) -> Floats:
    r"""Scatter of the outlier of the covariance of n samples from :math:`N(0, \sigma^2 I + \theta u u^\top)`.

    :math:`(\theta + \sigma^2) \sqrt{2 (1 - q \sigma^4/\theta^2) / n}`. It is larger than
    `information_plus_noise_sd`: the samples' own variance along u scatters too.

    Parameters
    ----------
    spike
        Excess variance along u, beyond the threshold of `theory.outliers.spiked_covariance`.
    dim, samples
        p variables and n samples, integers >= 1.
    variance
        Variance in every other direction, >= 0.

    Returns
    -------
    Standard deviation of the outlier, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or `spike` is not beyond the threshold.

    References
    ----------
    Paul (2007), Asymptotics of sample eigenstructure for a large dimensional spiked covariance model, theorem 3, for
    p < n; Bai and Yao (2008), Central limit theorems for eigenvalues in a spiked population model.

    Examples
    --------
    >>> float(spiked_covariance_sd(2.0, dim=120, samples=300, variance=0.8).round(4))
    0.2212
    """
    spike, q, variance, n = _rectangular(spike, dim, samples, variance)
    return (spike + variance) * np.sqrt(2 * _slope(spike, q, variance) / n)


def _rectangular(
    spike: ArrayLike, dim: ArrayLike, samples: ArrayLike, variance: ArrayLike
) -> tuple[Floats, ...]:
    """Spike, aspect ratio, variance and samples, checked and broadcast."""
    spike, p, n, variance = together(
        spike=(nonnegative, spike),
        dim=(whole, dim),
        samples=(whole, samples),
        variance=(nonnegative, variance),
    )
    return spike, p / n, variance, n


def _visible(spike: Floats, outlier: Outlier) -> Outlier:
    require(outlier.visible, "spike", f"beyond the threshold {outlier.threshold}", spike)
    return outlier


def _slope(spike: Floats, q: Floats, variance: Floats) -> Floats:
    """Slope of the outlier over the spike, 1 - q variance^2 / spike^2, of information plus noise."""
    threshold = _visible(spike, outliers.information_plus_noise(spike, q=q, variance=variance)).threshold
    # in factors: 1 - threshold^2 / spike^2 would cancel near the threshold
    return (spike - threshold) / spike * ((spike + threshold) / spike)


class EdgeFluctuation(NamedTuple):
    """Mean and standard deviation of an extreme eigenvalue of noise, of the same shape."""

    mean: Floats
    sd: Floats


@closed_form
def wigner_edge(dim: ArrayLike, *, sigma: ArrayLike, lower: bool = False) -> EdgeFluctuation:
    r"""Largest eigenvalue of a Wigner matrix, below its limit by about 1.2 of :math:`\sigma P^{-2/3}`.

    The limit is :math:`2\sigma`. Centre :math:`2 \sigma \sqrt{(P - 1/2)/P}` and scale
    :math:`\sigma P^{-1/2} (P - 1/2)^{-1/6}` of the Tracy-Widom law for beta = 1. The 1/2 takes the error of the
    mean from O(1/P) to O(P^(-4/3)).

    Parameters
    ----------
    dim
        P, an integer >= 1.
    sigma
        Standard deviation of the semicircle, >= 0: entries of standard deviation :math:`\sigma/\sqrt P`, on the
        diagonal :math:`\sigma \sqrt{2/P}`.
    lower
        Of the smallest eigenvalue instead, the mirror image.

    Returns
    -------
    Mean and standard deviation, in the unit of `sigma`, of the broadcast shape.

    Raises
    ------
    ValueError
        If `dim` is not a whole number >= 1, `sigma` is negative or not finite, or `lower` is no bool.

    References
    ----------
    Johnstone and Ma (2012), Fast approach to the Tracy-Widom law at the edge of GOE and GUE.

    Examples
    --------
    >>> edge = wigner_edge([10, 100, 1000], sigma=1.0)
    >>> edge.mean.round(3), edge.sd.round(3)
    (array([1.687, 1.939, 1.987]), array([0.276, 0.059, 0.013]))
    """
    dim, sigma = together(dim=(whole, dim), sigma=(nonnegative, sigma))
    lower = flag("lower", lower)
    # the 1/2 takes the error of the mean from O(1/P) to O(P^(-4/3))
    center = 2 * sigma * np.sqrt((dim - 0.5) / dim)
    mean, sd = _tracy_widom(center, sigma / np.sqrt(dim) * (dim - 0.5) ** (-1 / 6))
    return EdgeFluctuation(-mean if lower else mean, sd)


@closed_form
def wishart_edge(
    dim: ArrayLike, samples: ArrayLike, *, variance: ArrayLike, lower: bool = False
) -> EdgeFluctuation:
    r"""Largest eigenvalue of :math:`X X^\top / n`, or the smallest that is not 0.

    With :math:`a = \sqrt{n - 1/2}` and :math:`b = \sqrt{p - 1/2}`, the centre :math:`(a + b)^2` and the scale
    :math:`(a + b) (1/a + 1/b)^{1/3}` of the Tracy-Widom law for beta = 1, over n. At the lower edge, with minus
    signs for :math:`b < a`, it is the logarithm of the eigenvalue that follows the (mirrored) law.

    For ten rows and columns or more the mean is right to 2 %, the standard deviation to 10 %; for fewer both are rough,
    and for a 1 x 1 matrix wrong.

    Parameters
    ----------
    dim, samples
        p rows and n columns of X, integers >= 1.
    variance
        Variance of an entry of X, >= 0.
    lower
        Of the smallest eigenvalue instead, for p > n of the smallest of the n that are not 0. A soft edge: p and
        n must differ, and by so much that :math:`(a - b)^2` is well above its own scale. Of 100 rows and
        160 columns the standard deviation comes out 4 % too large, of 110 columns a quarter.

    Returns
    -------
    Mean and standard deviation, in the unit of `variance`, of the broadcast shape.

    Raises
    ------
    ValueError
        If a size is not a whole number >= 1, `variance` is negative or not finite, or the lower edge of a square
        matrix is asked for, which is hard.

    References
    ----------
    Johnstone (2001), On the distribution of the largest eigenvalue in principal components analysis; Ma (2012),
    Accuracy of the Tracy-Widom limits for the extreme eigenvalues in white Wishart matrices.

    Examples
    --------
    >>> edge = wishart_edge([10, 100], [25, 250], variance=1.0)  # the limit is 2.665
    >>> edge.mean.round(3), edge.sd.round(3)
    (array([2.267, 2.588]), array([0.329, 0.071]))
    """
    p, n, variance = together(dim=(whole, dim), samples=(whole, samples), variance=(nonnegative, variance))
    unit = variance / n
    a, b = np.sqrt(np.maximum(p, n) - 0.5), np.sqrt(np.minimum(p, n) - 0.5)
    if not flag("lower", lower):
        mean, sd = _tracy_widom((a + b) ** 2, (a + b) * np.cbrt(1 / a + 1 / b))
        return EdgeFluctuation(unit * mean, unit * sd)
    require(p != n, "dim", "different from samples at the lower edge", dim)
    # not a - b, which cancels where p is near n
    gap = (np.maximum(p, n) - np.minimum(p, n)) / (a + b)  # a - b
    width = np.cbrt(gap / a / b) / gap
    center = unit * (gap * np.exp(width**2 / 16)) ** 2
    changes = np.array([_change(t) for t in width.ravel()]).reshape(*width.shape, 2)
    mean, sd = 1 + changes[..., 0], changes[..., 1]
    return EdgeFluctuation(center * mean, center * sd)


def _tracy_widom(center: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of a Tracy-Widom variable (beta = 1) with this centre and scale."""
    mean, sd = _unit()
    return center + scale * mean, scale * sd


@functools.cache
def _unit() -> tuple[float, float]:
    law = TracyWidom(beta=1)
    return law.mean(), law.var() ** 0.5


def _change(t: float) -> tuple[float, float]:
    """Mean and standard deviation of exp(-t W) - 1, which may be small."""
    x, mass = point_masses(1)
    # exp(-t x) - 1 would cancel for the small widths of large matrices
    change = np.expm1(-t * x)
    mean = float(mass @ change)
    return mean, float(mass @ (change - mean) ** 2) ** 0.5
