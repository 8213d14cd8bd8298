r"""A softmax one class of which leaves the others behind: the spectrum and Gamma of equal and unequal rests.

=====================  ============================================================================
name                   symbol (Vysogorets, Dawid and Kempe 2024, Appendix C)
=====================  ============================================================================
``members``            S, the number of non-zero entries of `p`
``tail``               :math:`\varepsilon`, the S - 1 equal entries; the mode is :math:`1 - (S-1)\varepsilon`
``classes``            K, all entries
``weights``            :math:`w_i`, proportions of unequal entries beside the mode
=====================  ============================================================================

All names are offered by `theory.softmax` too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks

__all__ = ["collapse_limit", "equal_tail_eigenvalues", "equal_tail_gamma", "rounded_gamma"]

Floats = NDArray[np.float64]


def collapse_limit(weights: ArrayLike) -> Floats:
    r"""Limit of :math:`\Gamma_p` as `p` turns one-hot while the other entries keep fixed proportions.

    :math:`2 / \sqrt{1 + 3h}` with :math:`h = \sum_i w_i^2 / (\sum_i w_i)^2`: there is no common limit. One
    survivor gives 1, S - 1 equal weights give :math:`\sqrt{4(S-1)/(S+2)}`, and it stays below 2.

    Parameters
    ----------
    weights
        Proportions of the entries off the mode, non-negative, not all zero, any scale, shape (..., n).

    Returns
    -------
    Shape (...), in [1, 2).

    Raises
    ------
    ValueError
        If a weight is negative or not finite, or all are zero.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Appendix C; Eq. (11) is the case of equal weights.

    Examples
    --------
    >>> collapse_limit([1.0, 1.0]) ** 2, collapse_limit([1.0, 0.0])
    (np.float64(1.6), np.float64(1.0))
    """
    w = np.ascontiguousarray(_checks.nonnegative("weights", weights))
    largest = w.max(axis=-1, keepdims=True, initial=0.0)
    _checks.require(largest > 0, "weights", "not all zero along the last axis", weights)
    shares = w / largest
    concentration = np.square(shares).sum(axis=-1) / np.square(shares.sum(axis=-1))
    return 2.0 / np.sqrt(1.0 + 3.0 * concentration)


def equal_tail_gamma(tail: ArrayLike, *, members: int) -> Floats:
    r"""Gamma of a mode and S - 1 equal entries, for any size of them.

    With the mode :math:`x = 1 - (S-1)\varepsilon` it is :math:`(Sx + S - 2)/\sqrt{S^2x^2 + S - 2}`:
    :math:`\sqrt{S-1}` at :math:`\varepsilon = 1/S`, :math:`2\sqrt{(S-1)/(S+2)}` as :math:`\varepsilon \to 0`, and 1
    for every :math:`\varepsilon` if S = 2.

    Parameters
    ----------
    tail
        :math:`\varepsilon`, from 0 (the limit) to 1/(S - 1).
    members
        Number S >= 2 of entries that are not zero.

    Returns
    -------
    Shape of `tail`.

    Raises
    ------
    ValueError
        If `members` is not a whole number >= 2, or `tail` is negative, above 1/(S - 1), or 1 with S = 2 (one-hot).

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Appendix C, Eq. (11), before the expansion:
    :math:`\Gamma^2 = (S-1)(2-S\varepsilon)^2/(S+2-2S^2\varepsilon+S^2(S-1)\varepsilon^2)`.

    Examples
    --------
    >>> equal_tail_gamma([0.0, 0.2], members=5).round(6)
    array([1.511858, 2.      ])
    """
    s, mode, _ = _equal(tail, members)
    _checks.require((mode > 0) | (s > 2), "tail", "below 1 for two members", tail)
    return (s * mode + (s - 2)) / np.hypot(s * mode, np.sqrt(s - 2.0))


def equal_tail_eigenvalues(tail: ArrayLike, *, members: int, classes: int) -> Floats:
    r"""Spectrum of the softmax covariance of a mode and S - 1 equal entries, in closed form.

    :math:`S\varepsilon(1 - (S-1)\varepsilon)` once, :math:`\varepsilon` S - 2 times, and exact zeros.

    Parameters
    ----------
    tail
        :math:`\varepsilon`, from 0 to 1/(S - 1).
    members
        Number S >= 2 of entries that are not zero.
    classes
        Number K >= S of all entries.

    Returns
    -------
    Shape of `tail` and K, descending.

    Raises
    ------
    ValueError
        If `members` or `classes` is not a whole number as above, `tail` is negative or above 1/(S - 1), or the result
        does not fit into memory.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Appendix C. Eq. (12) is S = 2, up to terms of second order; with them the one
    eigenvalue is :math:`2\varepsilon(1-\varepsilon)` and the others stay 0.

    Examples
    --------
    >>> equal_tail_eigenvalues(0.125, members=3, classes=5)
    array([0.28125, 0.125  , 0.     , 0.     , 0.     ])
    """
    s, mode, eps = _equal(tail, members)
    k = _checks.integer("classes", classes, least=s)
    _checks.fits("classes", 32 * max(eps.size, 1) * k, k)
    found = np.zeros((*eps.shape, k))
    found[..., : s - 2] = eps[..., None]
    found[..., s - 2] = s * (eps * mode)
    return -np.sort(-found, axis=-1)


def rounded_gamma(members: int) -> float:
    r"""Gamma of a mode and S - 1 equal entries once the mode has rounded to 1, :math:`\sqrt{(S - 1)/3}`.

    What :math:`\mathrm{diag}(p) - p p^\top` has in floats below their last digit: the diagonal entry
    :math:`p_1 - p_1^2` of the mode is lost, and with it half of the trace. Below the true bound 1 for S < 4;
    `equal_tail_gamma` is what it should be.

    Parameters
    ----------
    members
        Number S >= 2 of entries that are not zero.

    Returns
    -------
    A number that is no Gamma.

    Raises
    ------
    ValueError
        If `members` is not a whole number >= 2.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Section 4: a measured Gamma of 0 or below 1 is rounding.

    Examples
    --------
    >>> rounded_gamma(4), round(rounded_gamma(2), 6)
    (1.0, 0.57735)
    """
    s = _checks.count("members", members)
    _checks.require(s >= 2, "members", "at least 2", members)
    return float(np.sqrt((s - 1) / 3.0))


def _equal(tail: ArrayLike, members: int) -> tuple[int, Floats, Floats]:
    """S, the mode and the entries; a mode that only rounding makes negative is 0."""
    s = _checks.count("members", members)
    _checks.require(s >= 2, "members", "at least 2", members)
    eps = _checks.nonnegative("tail", tail)
    with np.errstate(over="ignore"):
        mode = 1.0 - (s - 1) * eps
    _checks.require(mode >= -1e-12, "tail", f"at most 1/{s - 1}", tail)
    return s, np.maximum(mode, 0.0), eps
