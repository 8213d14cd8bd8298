r"""Excess of positive curvature: of a spectrum, its largest value, and of the two parts of a Hessian together.

====================  =====================================================  ====================================
name                  symbol                                                 Vysogorets, Dawid and Kempe (2024)
====================  =====================================================  ====================================
`spectrum_excess`     :math:`\mathrm{Tr}(H) / \|H\|_F`                       Eq. (2)
`largest_excess`      :math:`\sqrt{\mathrm{rank}\,H}`                         beyond the paper
`excess_ceiling`      of the expected G, for every dimension                 beside Figure 4, left
`hessian_excess`      of :math:`H = G + \tilde H`                            beyond the paper
====================  =====================================================  ====================================

All names are offered by `theory.gauss_newton` too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory.gauss_newton._scales import at_least_one, both_scales

__all__ = ["excess_ceiling", "hessian_excess", "largest_excess", "spectrum_excess"]

Floats = NDArray[np.float64]


def spectrum_excess(eigenvalues: ArrayLike) -> Floats:
    r"""Excess of positive curvature from all eigenvalues, :math:`\sum_i \lambda_i / (\sum_i \lambda_i^2)^{1/2}`.

    It is not the share of positive eigenvalues: a few large negative ones turn its sign.

    Parameters
    ----------
    eigenvalues
        All of them with their multiplicities, any order, not all zero, shape (..., P).

    Returns
    -------
    Shape (...), at most the root of the number of eigenvalues that are not zero.

    Raises
    ------
    ValueError
        If an eigenvalue is not finite, or all along the last axis are zero.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Section 2, Eq. (2).

    Examples
    --------
    >>> spectrum_excess([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, -3.0]])
    array([2., 0.])
    """
    values = np.atleast_1d(_checks.finite("eigenvalues", eigenvalues))
    largest = np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    _checks.require(largest > 0, "eigenvalues", "not all zero along the last axis", eigenvalues)
    shares = values / largest
    return shares.sum(axis=-1) / np.sqrt(np.square(shares).sum(axis=-1))


def largest_excess(rank: ArrayLike) -> Floats:
    r"""Largest excess of a symmetric matrix of a given rank, :math:`\sqrt{\mathrm{rank}}`, where all are equal.

    By the inequality of Cauchy and Schwarz. For the softmax covariance it is :math:`\Gamma_p \le \sqrt{K - 1}`.

    Parameters
    ----------
    rank
        Number of eigenvalues that are not zero, a whole number >= 1.

    Returns
    -------
    Shape of `rank`.

    Raises
    ------
    ValueError
        If `rank` is not a whole number >= 1.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Eq. (2).

    Examples
    --------
    >>> largest_excess([1, 9])
    array([1., 3.])
    """
    return np.sqrt(_checks.whole("rank", rank))


@np.errstate(over="ignore", divide="ignore")
def excess_ceiling(gamma: ArrayLike, *, dim: ArrayLike, sigma_c: ArrayLike, sigma_e: ArrayLike) -> Floats:
    r"""What the excess of the expected G cannot exceed, :math:`\min(\Gamma (1 + \sigma_e^2/\sigma_c^2), \sqrt d)`.

    `theory.gauss_newton.expected_excess` grows with d towards the first, and no matrix of d dimensions has more than
    the second.

    Parameters
    ----------
    gamma
        :math:`\Gamma \ge 1` of the softmax covariance; of its mean matrix for a batch.
    dim
        Number of parameters d, a whole number >= 1.
    sigma_c, sigma_e
        Standard deviations per component, >= 0 and not both 0. Only their ratio matters.

    Returns
    -------
    Broadcast shape of all arguments.

    Raises
    ------
    ValueError
        If `gamma` is below 1 or not finite, `dim` is not a whole number >= 1, a scale is negative or not
        finite, or both are 0.

    References
    ----------
    The limit of Vysogorets, Dawid and Kempe (2024), Eq. (8), as d grows; beside Figure 4, left.

    Examples
    --------
    >>> excess_ceiling(2.0, dim=[9, 400], sigma_c=1.0, sigma_e=2.0)
    array([ 3., 10.])
    """
    g = at_least_one("gamma", gamma)
    c, e = both_scales(sigma_c, sigma_e)
    g, d, c, e = _checks.together(gamma=g, dim=_checks.whole("dim", dim), sigma_c=c, sigma_e=e)
    return np.minimum(g * (1.0 + np.square(e / c)), np.sqrt(d))


def hessian_excess(gauss_newton_excess: ArrayLike, *, frobenius_ratio: ArrayLike) -> Floats:
    r"""Excess of the Hessian :math:`H = G + \tilde H` from that of its Gauss-Newton part G.

    :math:`\mathrm{exc}(G) / \sqrt{1 + \rho^2}` with :math:`\rho = \|\tilde H\|_F / \|G\|_F`. For a bias-free
    ReLU network in its full parameter space, where :math:`\mathrm{Tr}\,\tilde H = 0`; it neglects the inner
    product of the two parts, :math:`\mathrm{Tr}(G \tilde H)`, and nothing else.

    Parameters
    ----------
    gauss_newton_excess
        :math:`\mathrm{Tr}(G) / \|G\|_F`, >= 0.
    frobenius_ratio
        :math:`\rho \ge 0`, the ratio of Frobenius, not spectral norms.

    Returns
    -------
    Broadcast shape of both.

    Raises
    ------
    ValueError
        If an argument is negative or not finite.

    References
    ----------
    A sharper form of Vysogorets, Dawid and Kempe (2024), Eq. (6), which compares spectral norms; the two
    criteria differ by the stable rank of :math:`\tilde H`.

    Examples
    --------
    >>> hessian_excess(5.0, frobenius_ratio=0.75)
    np.float64(4.0)
    """
    excess, ratio = _checks.together(
        gauss_newton_excess=_checks.nonnegative("gauss_newton_excess", gauss_newton_excess),
        frobenius_ratio=_checks.nonnegative("frobenius_ratio", frobenius_ratio),
    )
    return excess / np.hypot(1.0, ratio)
