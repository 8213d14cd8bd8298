r"""Matrices of rank one and random directions: what a spectrum of one eigenvalue is, and how much of it a probe sees.

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

from theory._checks import finite, nonnegative, representable, require, together
from theory.rmt._laws import plane

__all__ = [
    "overlap_cdf",
    "rank_one_expansion",
    "rank_one_inverse",
    "rank_one_stieltjes",
    "subspace_share",
]

Floats = NDArray[np.float64]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
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
    _, spike, dim = together(u=np.real(points), spike=finite("spike", spike), dim=_whole("dim", dim))
    require((points != 0) & (points != spike), "u", "no eigenvalue", u)
    return representable((1 + spike / (points - spike) / dim) / points, u=u, spike=spike)


@np.errstate(over="ignore", invalid="ignore")
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
    require(square >= 0, "dim", "so large that a root is real", dim)
    return representable((s * spike - 1 - np.sqrt(square)) / (2 * s), s=s, spike=spike)


@np.errstate(over="ignore", invalid="ignore")
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
    return representable(-1 / s + spike / (dim * (s * spike + 1)), s=s, spike=spike)


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
    from scipy import special  # pyright: ignore[reportMissingTypeStubs]

    x, dim = together(x=finite("x", x), dim=_whole("dim", dim))
    require(dim >= 2, "dim", "at least 2", dim)
    beta: Any = special.betainc
    return np.asarray(beta(0.5, (dim - 1) / 2, np.clip(x / dim, 0.0, 1.0)), dtype=np.float64)[()]


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
    members, dim = together(members=nonnegative("members", members), dim=_whole("dim", dim))
    inside = (members == np.floor(members)) & (members <= dim)
    require(inside, "members", "an integer from 0 to dim", members)
    return (members / dim)[()]


def _near_root(s: ArrayLike, spike: ArrayLike, dim: ArrayLike) -> tuple[Floats, ...]:
    s, spike, dim = together(s=finite("s", s), spike=finite("spike", spike), dim=_whole("dim", dim))
    require(s != 0, "s", "different from 0", s)
    with np.errstate(over="ignore"):
        require(s * spike > -1, "s", "such that 1 + s spike is positive", s)
    return s, spike, dim


def _whole(name: str, value: ArrayLike) -> Floats:
    number = finite(name, value)
    require((number >= 1) & (number == np.floor(number)), name, "an integer >= 1", value)
    return number
