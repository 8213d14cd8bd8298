"""A low-rank G over the bulk of the H-term: where it separates, and what excess is left of it.

Sizes are those of Vysogorets, Dawid and Kempe (2024), Section 3: a spike is an eigenvalue of G, the norm of the bulk
the spectral norm of the H-term. Both names are offered by `theory.zone` too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks, outliers

__all__ = ["bulk_outlier", "spiked_excess"]

Floats = NDArray[np.float64]


def bulk_outlier(spike: ArrayLike, *, bulk_norm: ArrayLike) -> outliers.Outlier:
    r"""Top eigenvalue of a low-rank G over a semicircle bulk of norm h: it separates at h/2, half the norm.

    :math:`\theta + h^2/(4\theta)` if :math:`\theta > h/2`, else h. That is `theory.outliers.additive_wigner` with
    :math:`\sigma = h/2`.

    Parameters
    ----------
    spike
        Eigenvalue :math:`\theta` of the low-rank matrix, either sign.
    bulk_norm
        :math:`h \ge 0`, spectral norm of the bulk, same unit.

    Returns
    -------
    Eigenvalue, squared overlap of the eigenvectors, threshold, edge and whether it is visible, of the broadcast
    shape.

    Raises
    ------
    ValueError
        If an argument is not finite, or `bulk_norm` is negative.

    References
    ----------
    The transition that Vysogorets, Dawid and Kempe (2024), Section 3, name after Baik, Ben Arous and Peche (2005), who
    found it in sample covariances; here of a Wigner matrix (Peche, 2006).

    Examples
    --------
    >>> bulk_outlier([0.5, 1.0, 2.0], bulk_norm=1.0).eigenvalue
    array([1.   , 1.25 , 2.125])
    """
    return outliers.additive_wigner(spike, sigma=_checks.nonnegative("bulk_norm", bulk_norm) / 2.0)


def spiked_excess(spike: ArrayLike, *, rank: ArrayLike, bulk_norm: ArrayLike, dim: ArrayLike) -> Floats:
    r"""Excess of k equal spikes over a semicircle bulk, :math:`k\theta / \sqrt{k\theta^2 + n h^2/4}`.

    The bulk has no trace but :math:`n h^2/4` of squared norm, so that in high dimension it hides spikes of any fixed
    height above it: spectral norms decide nothing, Frobenius norms do.

    Parameters
    ----------
    spike
        :math:`\theta > 0`.
    rank
        Number k of spikes, a whole number from 1 to n.
    bulk_norm
        :math:`h \ge 0`, spectral norm of the bulk, same unit as `spike`.
    dim
        Dimension n, a whole number.

    Returns
    -------
    Broadcast shape of all arguments; up to O(1/n), and without the inner product of the two parts.

    Raises
    ------
    ValueError
        If `spike` is not positive and finite, `bulk_norm` is negative or not finite, `rank` or `dim` is not a whole
        number >= 1, or `rank` exceeds `dim`.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Eq. (6), whose figure has 50 dimensions.

    Examples
    --------
    >>> spiked_excess(2.0, rank=9, bulk_norm=1.0, dim=[50, 5000, 266_200]).round(3)
    array([2.585, 0.502, 0.07 ])
    """
    theta, k, h, n = _checks.together(
        spike=_checks.positive("spike", spike),
        rank=_checks.whole("rank", rank),
        bulk_norm=_checks.nonnegative("bulk_norm", bulk_norm),
        dim=_checks.whole("dim", dim),
    )
    _checks.require(k <= n, "rank", "at most dim", rank)
    largest = np.maximum(theta, h)
    theta, h = theta / largest, h / largest
    # roots first: a rank, a dimension and their products may be as large as floats are
    return np.sqrt(k) * (theta / np.hypot(theta, np.sqrt(n / k) * (h / 2.0)))
