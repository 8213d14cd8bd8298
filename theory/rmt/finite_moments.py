r"""Moments of the spectra of noise matrices, exact at every dimension; a law of `theory.rmt` is their limit.

============================  ==========================================  =====================================
name                          symbol                                      Granziol, Zohren and Roberts (2022)
============================  ==========================================  =====================================
``sigma``                     sigma                                       elements of deviation sigma/sqrt(P)
``dim``                       P                                           rows
`wigner_second_moment`        (1/P) E tr eps^2                            the scale in Theorem 3
`profiled_fourth_moment`      (1/P) E tr eps^4                            Section 4.2, outside condition (ii)
`sparse_fourth_moment`        (1/P) E tr eps^4                            outside Lindeberg's condition
`low_rank_fourth_moment`      (1/P) E tr eps^4                            Section 4.2, outside condition (i)
`wishart_third_moment`        (1/P) E tr eps^3                            beside Theorem 3
`alternating_moment`          psi(A^2 B^2 A^2 B^2)                        eqs. (34), (35)
============================  ==========================================  =====================================

All but the last two are ours: sums over the elements, and averages over directions drawn from the sphere.

Of matrices of rank one and random directions, what a spectrum of one eigenvalue is, and how much of it a probe sees:

===========================  ======================  ================================================
name                         symbol                  Granziol, Zohren and Roberts (2022)
===========================  ======================  ================================================
``spike``                    lambda, beta sigma^2    the eigenvalue that is not 0
``dim``                      N, P                    rows
`rank_one_stieltjes`         S_A(u)                  eqs. (37), (38)
`rank_one_inverse`           z                       eqs. (46) to (48), the exact root
`rank_one_expansion`         z                       eq. (49), to first order in 1/P
`overlap_cdf`                \|v^T phi\|^2           appendix D
`subspace_share`                                     Section 7.2
===========================  ======================  ================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import (
    Floats,
    closed_form,
    finite,
    nonnegative,
    positive,
    require,
    together,
    whole,
    within,
)
from theory._roots import special
from theory.rmt._laws import plane


@closed_form
def wigner_second_moment(
    *, sigma: ArrayLike, dim: ArrayLike, diagonal: ArrayLike = 1.0, spike: ArrayLike = 0.0
) -> Floats:
    r"""Mean square of the eigenvalues of Wigner noise with a spike: :math:`\sigma^2 (1 + (d - 1)/P) + \theta^2/P`.

    Parameters
    ----------
    sigma
        :math:`\sigma \ge 0`: elements of variance :math:`\sigma^2/P`, edge at :math:`2\sigma`.
    dim
        P, an integer >= 1.
    diagonal
        d >= 0, variance of an element on the diagonal over that of the others: 2 for the Gaussian ensemble.
    spike
        :math:`\theta`, eigenvalue of a matrix of rank one that is added; noise of mean 0 does not know its direction.

    Returns
    -------
    Mean square, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the result is larger than any float.

    References
    ----------
    The scale of Granziol, Zohren and Roberts (2022), Theorem 3: the sum of the variances of all elements over P.

    Examples
    --------
    >>> wigner_second_moment(sigma=2.0, dim=[1, 4], diagonal=2.0)
    array([8., 5.])
    """
    sigma, dim, diagonal, spike = together(
        sigma=(nonnegative, sigma),
        dim=(whole, dim),
        diagonal=(nonnegative, diagonal),
        spike=(finite, spike),
    )
    return sigma**2 * (1 + (diagonal - 1) / dim) + spike**2 / dim


@closed_form
def profiled_fourth_moment(*, sigma: ArrayLike, contrast: ArrayLike, dim: ArrayLike) -> Floats:
    r"""Fourth moment of Gaussian noise of uneven rows: :math:`[2 (1 + c^2) + (1 + c^2)^2/P] \sigma^4`.

    Elements of variance :math:`v_i v_j \sigma^2/P`, on the diagonal too, where v is 1 + c for half of the rows and
    1 - c for the others. Row sums of the variances differ, and the limit is no semicircle.

    Parameters
    ----------
    sigma
        :math:`\sigma \ge 0`, square root of the second moment of the spectrum.
    contrast
        c, from 0 to 1.
    dim
        P, an even integer >= 2.

    Returns
    -------
    :math:`\frac1P \mathrm{E}\,\mathrm{tr}\,\varepsilon^4`, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the result is larger than any float.

    References
    ----------
    Ours, beside Granziol, Zohren and Roberts (2022), Section 4.2, condition (ii): twice the mean square of the row
    sums :math:`v_i \sigma^2`, and what the fourth moment of a Gaussian element adds.

    Examples
    --------
    >>> float(profiled_fourth_moment(sigma=1.0, contrast=0.0, dim=10))
    2.1
    """
    sigma, contrast, dim = together(
        sigma=(nonnegative, sigma),
        contrast=within("contrast", contrast, 0.0, 1.0),
        dim=(whole, dim),
    )
    require(dim % 2 == 0, "dim", "even", dim)
    spread = 1 + contrast**2
    return sigma**4 * (2 * spread + spread**2 / dim)


@closed_form
def sparse_fourth_moment(*, sigma: ArrayLike, per_row: ArrayLike, dim: ArrayLike) -> Floats:
    r"""Fourth moment of noise with few entries in a row: :math:`(2 + 1/k - 2/P) \sigma^4`.

    Entries :math:`\pm\sigma/\sqrt k` at independent random places, k in a row on average, whatever P.

    Parameters
    ----------
    sigma
        :math:`\sigma \ge 0`, square root of the second moment of the spectrum.
    per_row
        k, positive and at most `dim`.
    dim
        P, an integer >= 1.

    Returns
    -------
    :math:`\frac1P \mathrm{E}\,\mathrm{tr}\,\varepsilon^4`, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the result is larger than any float.

    References
    ----------
    Ours, beside Lindeberg's condition in the proof of Granziol, Zohren and Roberts (2022), Theorem 3.

    Examples
    --------
    >>> float(sparse_fourth_moment(sigma=1.0, per_row=10, dim=10).round(9))  # signs everywhere
    1.9
    """
    sigma, per_row, dim = together(sigma=(nonnegative, sigma), per_row=(positive, per_row), dim=(whole, dim))
    require(per_row <= dim, "per_row", "at most dim", per_row)
    return sigma**4 * (2 + 1 / per_row - 2 / dim)


@closed_form
def low_rank_fourth_moment(
    *, rank: ArrayLike, variance: ArrayLike, dim: ArrayLike, batch_size: ArrayLike
) -> Floats:
    r"""Fourth moment of a mean of signed low-rank samples.

    .. math:: m_2^2 \Big[\frac P{Br} + \Big(1 - \frac1{Br}\Big)\Big(2 + \frac3{P+2}\Big)\Big]

    Each of B samples is a sum of r projections :math:`\pm P \tau^2 u u^\top` with u uniform on the sphere;
    :math:`m_2 = P r \tau^4 / B` is the second moment, that of `theory.batch_hessian.low_rank_noise`.

    Parameters
    ----------
    rank
        r, an integer >= 1.
    variance
        :math:`\tau^2 \ge 0`.
    dim
        P, an integer >= 1.
    batch_size
        B, an integer >= 1.

    Returns
    -------
    :math:`\frac1P \mathrm{E}\,\mathrm{tr}\,\varepsilon^4`, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the result is larger than any float.

    References
    ----------
    Ours, beside Granziol, Zohren and Roberts (2022), Section 4.2, condition (i).

    Examples
    --------
    >>> float(low_rank_fourth_moment(rank=1, variance=0.1, dim=10, batch_size=1).round(9))  # one eigenvalue, of 1
    0.1
    """
    rank, variance, dim, batch_size = together(
        rank=(whole, rank),
        variance=(nonnegative, variance),
        dim=(whole, dim),
        batch_size=(whole, batch_size),
    )
    terms = batch_size * rank
    excess = dim / terms + (1 - 1 / terms) * (2 + 3 / (dim + 2))
    return (dim * rank * variance**2 / batch_size) ** 2 * excess


@closed_form
def wishart_third_moment(*, variance: ArrayLike, dim: ArrayLike, batch_size: ArrayLike) -> Floats:
    r"""Third moment of centred Wishart noise: :math:`\sigma^6 (P^2 + 3P + 4)/B^2`, where a semicircle has 0.

    Of :math:`\varepsilon = \frac1B \sum_i g_i g_i^\top - \sigma^2 I` with Gaussian g of variance :math:`\sigma^2`.

    Parameters
    ----------
    variance
        :math:`\sigma^2 \ge 0`.
    dim
        P, an integer >= 1.
    batch_size
        B, an integer >= 1.

    Returns
    -------
    :math:`\frac1P \mathrm{E}\,\mathrm{tr}\,\varepsilon^3`, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the result is larger than any float.

    References
    ----------
    The third central moment of a Wishart matrix, beside Granziol, Zohren and Roberts (2022), Theorem 3.

    Examples
    --------
    >>> float(wishart_third_moment(variance=1.0, dim=1, batch_size=2))  # of half a chi-squared variable, less 1
    2.0
    """
    variance, dim, batch_size = together(
        variance=(nonnegative, variance),
        dim=(whole, dim),
        batch_size=(whole, batch_size),
    )
    # quotients first, since P^2 may overflow
    return variance**3 * (1 + 3 / dim + 4 / dim / dim) * (dim / batch_size) ** 2


@closed_form
def alternating_moment(*, sigma_a: ArrayLike, sigma_b: ArrayLike, dim: ArrayLike) -> Floats:
    r"""Normalised trace of :math:`A^2 B^2 A^2 B^2` for two independent Gaussian matrices; its limit is 3, not 1.

    :math:`\frac1P \mathrm{E}\,\mathrm{tr}\,A^2 B^2 A^2 B^2 = (3 + \frac{15}P + O(P^{-2}))\,\sigma_A^4 \sigma_B^4`, by
    :math:`\mathrm{E} A^2 M A^2 = u\,\mathrm{tr}(M)\,I + v M` for symmetric M.

    Parameters
    ----------
    sigma_a, sigma_b
        Standard deviations of the two semicircles, >= 0: elements of variance :math:`\sigma^2/P`, on the diagonal twice
        that.
    dim
        P, an integer >= 1.

    Returns
    -------
    Moment, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the result is larger than any float.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eqs. (34) and (35), in the limit; the value at finite P is ours.

    Examples
    --------
    >>> float(alternating_moment(sigma_a=1.0, sigma_b=1.0, dim=1))  # (E a^4)^2 of a normal variable of variance 2
    144.0
    >>> round(float(alternating_moment(sigma_a=1.0, sigma_b=1.0, dim=10**6)), 4)
    3.0
    """
    sigma_a, sigma_b, n = together(
        sigma_a=(nonnegative, sigma_a),
        sigma_b=(nonnegative, sigma_b),
        dim=(whole, dim),
    )
    x = 1 / n
    u, v = 1 + 2 * x, 1 + 3 * x + 5 * x**2  # the first in units of x, as the fourth moment is
    squared_trace = (1 + x) ** 2 + 4 * (1 + x) * x**2
    fourth_moment = 2 + 5 * x + 5 * x**2
    return sigma_a**4 * sigma_b**4 * (u * squared_trace + v * fourth_moment)


@closed_form
def rank_one_stieltjes(u: ArrayLike, *, spike: ArrayLike, dim: ArrayLike) -> NDArray[Any]:
    r"""Stieltjes transform of a matrix of rank one, :math:`\frac1u [1 + \frac1N \frac{\lambda/u}{1 - \lambda/u}]`.

    Parameters
    ----------
    u
        Real or complex, neither 0 nor `spike`.
    spike
        :math:`\lambda`, the eigenvalue that is not 0.
    dim
        N, an integer >= 1.

    Returns
    -------
    :math:`\frac1N \mathrm{tr} (u - A)^{-1}`, of the broadcast shape; complex where `u` is.

    Raises
    ------
    ValueError
        If an argument is not finite, `u` is an eigenvalue, or `dim` not an integer >= 1.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eqs. (37) and (38); the factor 1/u before the bracket's second term is
    missing in our copy.

    Examples
    --------
    >>> float(rank_one_stieltjes(2.0, spike=1.0, dim=2))  # the mean of 1/(2 - 1) and 1/2
    0.75
    """
    points = plane("u", u)
    _, spike, dim = together(u=np.real(points), spike=(finite, spike), dim=(whole, dim))
    require((points != 0) & (points != spike), "u", "neither 0 nor the spike", u)
    return (1 + spike / (points - spike) / dim) / points


@closed_form
def rank_one_inverse(s: ArrayLike, *, spike: ArrayLike, dim: ArrayLike) -> Floats:
    r"""Where the transform :math:`\frac1P \mathrm{tr} (A - z)^{-1}` of a matrix of rank one is s, near -1/s.

    A root of :math:`s z^2 + (1 - s\lambda) z - \lambda (1 - 1/P) = 0`.

    Parameters
    ----------
    s
        Not 0, in the sign of the appendix: of its transform, 1/(eigenvalue - z).
    spike
        :math:`\lambda`, the eigenvalue that is not 0.
    dim
        P, an integer >= 1.

    Returns
    -------
    z, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, :math:`s\lambda \le -1`, or the roots are not real.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eqs. (46) to (48).

    Examples
    --------
    >>> float(rank_one_inverse(-0.5, spike=1.0, dim=10**9).round(6))  # -1/s, as of the zero matrix
    2.0
    """
    s, spike, dim = _near_root(s, spike, dim)
    square = (s * spike + 1) ** 2 - 4 * s * spike / dim
    require(square >= 0, "dim", "large enough for a real root", dim)
    # the minus gives the root near -1/s; the other root is near the spike
    return (s * spike - 1 - np.sqrt(square)) / (2 * s)


@closed_form
def rank_one_expansion(s: ArrayLike, *, spike: ArrayLike, dim: ArrayLike) -> Floats:
    r"""`rank_one_inverse` to first order in 1/P: :math:`-\frac1s + \frac{\lambda}{P (s\lambda + 1)}`.

    Parameters
    ----------
    s, spike, dim
        As in `rank_one_inverse`.

    Returns
    -------
    z, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or :math:`s\lambda \le -1`.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eq. (49); our copy has the sign of the correction turned and lacks its 1/P.

    Examples
    --------
    >>> float(rank_one_expansion(-0.5, spike=1.0, dim=10))
    2.2
    """
    s, spike, dim = _near_root(s, spike, dim)
    return -1 / s + spike / (dim * (s * spike + 1))


def overlap_cdf(x: ArrayLike, *, dim: ArrayLike) -> Floats:
    r"""Distribution function of n times the squared overlap of a random direction with a fixed one.

    :math:`|v^\top \phi|^2` of a uniform unit vector follows Beta(1/2, (n - 1)/2): its mean is 1/n, and it is near it
    with no high probability.

    Parameters
    ----------
    x
        Any number; n times the squared overlap.
    dim
        n, an integer >= 2.

    Returns
    -------
    Probability of at most `x`, of the broadcast shape.

    Raises
    ------
    ValueError
        If `x` is not finite, or `dim` not an integer >= 2.

    References
    ----------
    Beside Granziol, Zohren and Roberts (2022), appendix D, which says that it is 1/n with high probability.

    Examples
    --------
    >>> overlap_cdf([0.0, 0.5, 2.0], dim=2).round(6)  # the squared cosine of a uniform angle
    array([0.      , 0.333333, 1.      ])
    """
    x, dim = together(x=(finite, x), dim=(whole, dim))
    require(dim >= 2, "dim", "at least 2", dim)
    return special.betainc(0.5, (dim - 1) / 2, np.clip(x / dim, 0.0, 1.0))


def subspace_share(members: ArrayLike, *, dim: ArrayLike) -> Floats:
    r"""Mean squared overlap of a random direction with a subspace, :math:`k/n`.

    The weight that Lanczos from a random start gives, in the mean, to an eigenvalue of multiplicity k.

    Parameters
    ----------
    members
        k, dimension of the subspace, an integer from 0 to n.
    dim
        n, an integer >= 1.

    Returns
    -------
    Share, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is no integer in its range.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Section 7.2, on the weight at the eigenvalue 0.

    Examples
    --------
    >>> subspace_share([0, 3, 12], dim=12)
    array([0.  , 0.25, 1.  ])
    """
    members, dim = together(members=(nonnegative, members), dim=(whole, dim))
    inside = (members == np.floor(members)) & (members <= dim)
    require(inside, "members", "an integer from 0 to dim", members)
    return members / dim


def _near_root(s: ArrayLike, spike: ArrayLike, dim: ArrayLike) -> tuple[Floats, ...]:
    s, spike, dim = together(s=(finite, s), spike=(finite, spike), dim=(whole, dim))
    require(s != 0, "s", "different from 0", s)
    require(s * spike > -1, "s", "such that 1 + s spike is positive", s)
    return s, spike, dim
