r"""Where noise moves the extreme eigenvalue of a low-rank matrix, and what is left of its direction.

========================  =========================  =======================================================
name                      symbol                     Granziol, Zohren and Roberts (2022)
========================  =========================  =======================================================
``spike``                 lambda_1, lambda_P         extreme eigenvalue before the noise, there of H_emp
``eigenvalue``            lambda_1', lambda_P'       the same of the noisy matrix
``overlap``               |phi_1'^T phi_1|^2         squared scalar product of the two eigenvectors
``threshold``                                        a weaker spike drowns in the bulk
``edge``                                             end of the bulk on the spike's side
``q``                     beta                       rows / columns of the noise, p / n
`additive_wigner`         eqs. (9), (10), (44)       Theorem 4, Lemma 5, Theorem 10
`additive_wishart`        eq. (16)                   Theorem 7, threshold and edge corrected
`information_plus_noise`  eq. (14)                   the model Theorem 7 starts from
========================  =========================  =======================================================

With R and G of the noise (`theory.rmt`) a visible outlier z solves spike G(z) = 1, so z = spike + R(1/spike),
and the overlap is dz/dspike. In each closed form here z = edge + gap^2 / strength, with
gap = |spike| - threshold: the outlier leaves the bulk with slope zero, and the noiseless limit is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import (
    Floats,
    closed_form,
    finite,
    nonnegative,
    positive,
    representable,
    require,
    together,
)

__all__ = [
    "Outlier",
    "additive",
    "additive_wigner",
    "additive_wishart",
    "information_plus_noise",
    "spiked_covariance",
]


class Law(Protocol):
    """A noise spectrum: `theory.rmt.Semicircle`, `theory.rmt.MarchenkoPastur`, or one's own."""

    @property
    def edges(self) -> tuple[float, float]:
        """Ends of the bulk."""
        ...

    def stieltjes(self, z: ArrayLike, /) -> NDArray[Any]:
        """G(z), real for real z."""
        ...

    def r_transform(self, w: ArrayLike, /) -> NDArray[Any]:
        """R(w), analytic, real or complex."""
        ...


@dataclass(frozen=True, kw_only=True)
class Outlier:
    """Extreme eigenvalue of a spiked matrix; all fields have the same shape.

    Parameters
    ----------
    eigenvalue
        Limit of the extreme eigenvalue on the spike's side: the outlier if visible, else the edge.
    overlap
        Squared scalar product of its eigenvector with the spike's; 0 if not visible.
    threshold
        Spike at which the outlier meets the edge.
    edge
        End of the bulk on the spike's side.
    visible
        Whether the spike lies strictly beyond the threshold.
    """

    eigenvalue: Floats
    overlap: Floats
    threshold: Floats
    edge: Floats
    visible: NDArray[np.bool_]


@closed_form
def additive_wigner(spike: ArrayLike, *, sigma: ArrayLike) -> Outlier:
    r"""Extreme eigenvalue of a low-rank matrix plus Wigner noise, as the dimension grows.

    The spike leaves the semicircle of edge :math:`\pm 2\sigma` only if it is stronger than the noise:
    :math:`\theta + \sigma^2/\theta` if :math:`|\theta| > \sigma`, else the edge on its side.

    Parameters
    ----------
    spike
        Eigenvalue of the low-rank matrix, either sign; any shape. A spike of 0 looks at the upper edge.
    sigma
        :math:`\sigma \ge 0`, semicircle of variance :math:`\sigma^2`; broadcast against `spike`, same unit.

    Returns
    -------
    Eigenvalue, squared overlap of the eigenvectors, threshold, edge and whether it is visible,
    all of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is not finite, or `sigma` is negative.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Lemma 5, eq. (10) and Theorem 10, eq. (44);
    the threshold of Lemma 11, eq. (45), reads 2 sigma in our copy.

    Examples
    --------
    >>> additive_wigner([0.5, 1.0, 2.0, -2.0], sigma=1.0).eigenvalue
    array([ 2. ,  2. ,  2.5, -2.5])
    """
    spike, sigma = together(spike=(finite, spike), sigma=(nonnegative, sigma))
    size = np.abs(spike)
    return _outlier(size, threshold=sigma, edge=2 * sigma, strength=size, radius=sigma, negative=spike < 0)


@closed_form
def additive_wishart(spike: ArrayLike, *, q: ArrayLike, variance: ArrayLike) -> Outlier:
    r"""Top eigenvalue of a low-rank matrix plus an independent Wishart matrix, as the dimension grows.

    The noise is :math:`X X^\top / n`, X p x n with entries of variance :math:`\sigma^2`, free from the spike:
    :math:`\theta + \sigma^2 \theta / (\theta - q \sigma^2)` if
    :math:`\theta > \sigma^2 \sqrt q (1 + \sqrt q)`, else the edge :math:`\sigma^2 (1 + \sqrt q)^2`.

    Parameters
    ----------
    spike
        Eigenvalue of the low-rank matrix, >= 0.
    q
        Aspect ratio p / n, positive.
    variance
        Variance of an entry of X, >= 0, in the unit of the spike.

    Returns
    -------
    Eigenvalue, squared overlap, threshold, edge and whether it is visible, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is not finite, `spike` or `variance` is negative, or `q` is not positive.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorem 7, eq. (16). In our copy threshold and edge read
    sigma^2 (1 + q) and 2 sigma^2 (1 + q), which holds at q = 1 only. The overlap, which the paper does not
    give, is the derivative of the eigenvalue.

    Examples
    --------
    >>> top = additive_wishart([4.0, 6.0, 8.0], q=4.0, variance=1.0)
    >>> top.eigenvalue, top.overlap
    (array([ 9.,  9., 10.]), array([0.  , 0.  , 0.75]))
    """
    spike, q, variance, root, edge = _rectangular(spike, q, variance)
    radius = root * variance  # the bulk seen from the mean, half its width
    threshold = radius * (1 + root)
    strength = (spike - threshold) + radius  # spike - q variance
    return _outlier(spike, threshold=threshold, edge=edge, strength=strength, radius=radius)


@closed_form
def information_plus_noise(spike: ArrayLike, *, q: ArrayLike, variance: ArrayLike) -> Outlier:
    r"""Top eigenvalue of :math:`(J + E)(J + E)^\top` for a low-rank J, as the dimension grows.

    E is p x n with entries of variance :math:`\sigma^2 / n`; the spike :math:`\theta` is an eigenvalue of
    :math:`J J^\top`. The outlier :math:`(\theta + \sigma^2)(\theta + q \sigma^2) / \theta` is visible if
    :math:`\theta > \sigma^2 \sqrt q`. The cross terms of J and E make this larger than `additive_wishart`.

    Parameters
    ----------
    spike
        Eigenvalue of :math:`J J^\top`, >= 0.
    q
        Aspect ratio p / n, positive.
    variance
        n times the variance of an entry of E, >= 0, in the unit of the spike.

    Returns
    -------
    Eigenvalue, squared overlap of the left singular vectors (dimension p), threshold, edge and whether it is
    visible, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is not finite, `spike` or `variance` is negative, or `q` is not positive.

    References
    ----------
    Benaych-Georges and Nadakuditi (2012), The singular values and vectors of low rank perturbations of large
    rectangular random matrices, section 3.1. Granziol, Zohren and Roberts (2022), eqs. (14), (15), keep the
    expectation only.

    Examples
    --------
    >>> information_plus_noise([1.0, 2.0, 6.0], q=4.0, variance=1.0).eigenvalue
    array([ 9.        ,  9.        , 11.66666667])
    """
    spike, q, variance, root, edge = _rectangular(spike, q, variance)
    threshold = root * variance
    return _outlier(spike, threshold=threshold, edge=edge, strength=spike, radius=threshold, other=root)


def spiked_covariance(spike: ArrayLike, *, q: ArrayLike, variance: ArrayLike) -> Outlier:
    r"""Top eigenvalue of the covariance of n samples from :math:`N(0, \sigma^2 I + \theta u u^\top)`.

    A random J of rank one: the limits are those of `information_plus_noise`.

    Parameters
    ----------
    spike
        Excess variance :math:`\theta` along u, >= 0.
    q
        Dimension over number of samples, p / n, positive.
    variance
        Variance :math:`\sigma^2` in every other direction, >= 0.

    Returns
    -------
    Eigenvalue, squared overlap with u, threshold, edge and whether it is visible, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is not finite, `spike` or `variance` is negative, or `q` is not positive.

    References
    ----------
    Baik and Silverstein (2006), Eigenvalues of large sample covariance matrices of spiked population models,
    theorem 1.1; Paul (2007), Asymptotics of sample eigenstructure, theorem 4.

    Examples
    --------
    >>> float(spiked_covariance(1.0, q=0.25, variance=1.0).eigenvalue)
    2.5
    """
    return information_plus_noise(spike, q=q, variance=variance)


@closed_form
def additive(spike: ArrayLike, law: Law) -> Outlier:
    r"""Extreme eigenvalue of a low-rank matrix plus free noise of any spectrum.

    The outlier :math:`\theta + R(1/\theta)` is visible beyond :math:`\theta = 1/G(\mathrm{edge})`; its
    overlap is :math:`1 - R'(1/\theta)/\theta^2`.

    Parameters
    ----------
    spike
        Eigenvalue of the low-rank matrix; a negative one looks at the lower edge, 0 at the upper one.
    law
        Spectrum of the noise, with `edges`, `stieltjes` and `r_transform` as in `theory.rmt`. Where it has an
        `atom` at 0 below its bulk, the spectrum begins there; where G is infinite the threshold is 0.

    Returns
    -------
    Eigenvalue, squared overlap, threshold, edge and whether it is visible, of the shape of `spike`.

    Raises
    ------
    ValueError
        If `spike` is not finite, or `law` has not what is asked of it.

    References
    ----------
    Granziol, Zohren and Roberts (2022), appendix A.2, eqs. (36)-(43); Benaych-Georges and Nadakuditi (2011),
    The eigenvalues and eigenvectors of finite, low rank perturbations of large random matrices, section 2.

    Examples
    --------
    >>> from theory.rmt import Semicircle
    >>> additive([0.5, 2.0, -2.0], Semicircle(sigma=1.0)).eigenvalue
    array([ 2. ,  2.5, -2.5])
    """
    spike = finite("spike", spike)
    needed = ("edges", "stieltjes", "r_transform")
    require(all(hasattr(law, name) for name in needed), "law", f"a spectrum with {', '.join(needed)}", law)
    low, high = law.edges
    if getattr(law, "atom", 0.0) > 0:  # it ends the spectrum like any other eigenvalue
        low, high = min(low, 0.0), max(high, 0.0)
    negative = spike < 0
    edge = np.where(negative, low, high)
    below, above = _threshold(law, low), _threshold(law, high)
    threshold = np.where(negative, below, above)
    visible = np.where(negative, spike < threshold, spike > threshold)
    # where it is not visible 1/spike may be a pole of R
    strong = 2 * (abs(below) + abs(above)) + (high - low)
    w = 1 / np.where(visible, spike, np.where(negative, -1.0, 1.0) * strong)
    position = spike + law.r_transform(representable(w, spike=spike))
    # R is analytic: the imaginary part along a tiny imaginary step is its derivative, exact to rounding
    decay = w * np.imag(law.r_transform(w + 1e-20j * w)) / 1e-20
    outermost = np.where(negative, np.minimum(position, edge), np.maximum(position, edge))
    return Outlier(
        eigenvalue=np.where(visible, outermost, edge),
        overlap=np.where(visible, np.clip(1 - decay, 0.0, 1.0), 0.0),
        threshold=threshold,
        edge=edge,
        visible=visible,
    )


def _rectangular(spike: ArrayLike, q: ArrayLike, variance: ArrayLike) -> tuple[Floats, ...]:
    """The arguments of the models with rectangular noise, checked and broadcast."""
    spike, q, variance = together(
        spike=(nonnegative, spike), q=(positive, q), variance=(nonnegative, variance)
    )
    root = np.sqrt(q)
    return spike, q, variance, root, (1 + root) * variance * (1 + root)


def _threshold(law: Law, end: float) -> float:
    """Return 1 / G(end), 0 where G is infinite."""
    try:
        return float(1 / law.stieltjes(end))
    # the law refuses an atom and a hard edge, where G is infinite
    except ValueError:
        return 0.0


def _outlier(
    size: Floats,
    *,
    threshold: Floats,
    edge: Floats,
    strength: Floats,
    radius: Floats,
    other: Floats | float = 0.0,
    negative: Any = False,
) -> Outlier:
    """The record of an outlier at edge + gap^2 / strength, mirrored where `negative`.

    Its overlap is 1 - radius^2 / strength^2, where strength - radius is the gap, over 1 + other radius / strength.
    """
    gap = size - threshold
    visible = gap > 0
    gap, strength = np.where(visible, gap, 0.0), np.where(visible, strength, 1.0)
    # noise only adds: rounding must not take the outlier below the spike
    eigenvalue = np.maximum(edge + gap * (gap / strength), np.where(visible, size, edge))
    return Outlier(
        eigenvalue=np.where(negative, -eigenvalue, eigenvalue),
        # in factors: a difference would cancel near the threshold
        overlap=gap / strength * ((strength + radius) / strength) / (1 + other * (radius / strength)),
        threshold=np.where(negative, -threshold, threshold),
        edge=np.where(negative, -edge, edge),
        visible=visible,
    )
