r"""A softmax one class of which leaves the others behind: the spectrum and Gamma of equal and unequal rests.

=====================  ============================================================================
name                   symbol (Vysogorets, Dawid and Kempe 2024, Appendix C)
=====================  ============================================================================
``members``            S, the number of non-zero entries of `p`
``tail``               :math:`\varepsilon`, the S - 1 equal entries; the mode is :math:`1 - (S-1)\varepsilon`
``classes``            K, all entries
``weights``            :math:`w_i`, proportions of unequal entries beside the mode
=====================  ============================================================================

Gamma is a chance that two random pairs of classes meet, too, and has a slope along a ray of temperatures:

===================  ================================================================================
name                 symbol (beside Vysogorets, Dawid and Kempe 2024, Section 4 and Figure 4)
===================  ================================================================================
``e``                a pair of two classes i < j, drawn with the weight :math:`p_i p_j`
``W``                :math:`\sum_{i < j} p_i p_j = \mathrm{Tr}(M) / 2`
`gamma_of_pairs`     :math:`\Gamma_p` from two chances of pairs
`ray_slope`          :math:`d \Gamma_p^{-2} / d\beta` at :math:`\beta = 1/T`
===================  ================================================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import (
    Floats,
    closed_form,
    count,
    fits,
    integer,
    nonnegative,
    probabilities,
    quiet,
    require,
)
from theory.softmax._softmax import heated, split_logits, where


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
    w = np.ascontiguousarray(nonnegative("weights", weights))
    largest = w.max(axis=-1, keepdims=True, initial=0.0)
    require(largest > 0, "weights", "not all zero along the last axis", weights)
    # relative to the largest, so that squares neither overflow nor vanish
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
    require((mode > 0) | (s > 2), "tail", "below 1 for two members", tail)
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
    k = integer("classes", classes, least=s)
    fits("classes", 32 * max(eps.size, 1) * k, k)
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
    return float(np.sqrt((count("members", members, 2) - 1) / 3.0))


@quiet
def _equal(tail: ArrayLike, members: int) -> tuple[int, Floats, Floats]:
    """S, the mode and the entries; a mode that only rounding makes negative is 0."""
    s = count("members", members, 2)
    eps = nonnegative("tail", tail)
    mode = 1.0 - (s - 1) * eps
    require(mode >= -1e-12, "tail", f"at most 1/{s - 1}", tail)
    return s, np.maximum(mode, 0.0), eps


def gamma_of_pairs(p: ArrayLike) -> Floats:
    r"""Gamma from pairs of classes, :math:`\Gamma_p^{-2} = \Pr(e = e') + \tfrac14 \Pr(|e \cap e'| = 1)`.

    M is the Laplacian of the complete graph with the weights :math:`p_i p_j`: its trace counts every pair twice, its
    squared norm the pairs of pairs that share a class. `theory.softmax.gamma` takes O(K) in place of O(K^2).

    Parameters
    ----------
    p
        Probabilities, shape (..., K).

    Returns
    -------
    Shape (...), in :math:`[1, \sqrt{K-1}]` up to rounding.

    Raises
    ------
    ValueError
        If `p` is not a probability vector along its last axis, or is one-hot, or the pairs do not fit into memory.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024); a form of its Eq. (10).

    Examples
    --------
    >>> (gamma_of_pairs([0.25, 0.25, 0.25, 0.25]) ** 2).round(12)
    np.float64(3.0)
    """
    full = probabilities("p", p)
    fits("p", 24.0 * full.size * full.shape[-1], full.shape)
    pairs = full[..., :, None] * full[..., None, :]
    pairs[..., np.arange(full.shape[-1]), np.arange(full.shape[-1])] = 0.0
    largest = pairs.max(axis=(-2, -1), keepdims=True, initial=0.0)
    require(largest > 0, "p", "not one-hot", p)
    # products of small entries, squared below, vanish near one-hot
    pairs /= largest
    total = pairs.sum(axis=(-2, -1)) / 2
    same = np.square(pairs).sum(axis=(-2, -1)) / 2
    meeting = np.square(pairs.sum(axis=-1)).sum(axis=-1) - 2 * same
    return total / np.sqrt(same + meeting / 4)


@closed_form
def ray_slope(z: ArrayLike, *, temperature: ArrayLike = 1.0) -> Floats:
    r"""Slope of :math:`\Gamma_p^{-2}` in the inverse temperature: a covariance over pairs of classes.

    .. math:: \frac{d}{d\beta} \Gamma_p^{-2} = \frac{1}{2W}\, \mathrm{Cov}_e\big(z_i + z_j,
              p_i + p_j - (p_i - p_j)^2\big), \quad p = \mathrm{softmax}(\beta z)

    It is never negative: along a ray Gamma falls with the temperature, from :math:`\sqrt{K-1}` to its limit.

    Parameters
    ----------
    z
        Logits, shape (..., K), K >= 2.
    temperature
        :math:`T = 1/\beta > 0`, shape (...), same unit as the logits.

    Returns
    -------
    Shape (...), in the unit of the logits.

    Raises
    ------
    ValueError
        If a logit is not finite, there are fewer than two, or `temperature` is not positive; if the pairs do not fit
        into memory or the result overflows.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024), whose Figure 4, right, shows rays.

    Examples
    --------
    >>> ray_slope([1.0, 0.0, -1.0]).round(6), ray_slope([1.0, 0.0]).round(6)
    (np.float64(0.211156), np.float64(0.0))
    """
    logits, leading, heat = heated(z, temperature)
    size = logits.shape[-1]
    fits("z", 64.0 * leading.size * size**2, logits.shape)
    logits = np.broadcast_to(logits, (*leading.shape, size))
    parts = split_logits(logits, heat)  # the ratios are in units of the runner-up
    rest, heads, first = parts.ratios, parts.at_top, logits.max(axis=-1, keepdims=True)
    second = np.where(heads, -np.inf, logits).max(axis=-1, keepdims=True)
    lead, top, small = (x[..., None] for x in (np.exp(parts.gap / heat), parts.top, parts.scale))
    i, j = np.triu_indices(size, 1)
    pair, sums = rest[..., i] + rest[..., j], (logits[..., i] - first) + (logits[..., j] - second)
    both, of_the_mode = rest[..., i] * rest[..., j], heads[..., i] | heads[..., j]
    # weights in units of p_1 p_2, the other variable in units of p_2: neither underflows near one-hot
    weights = where(of_the_mode, pair, lead * both)
    others = rest.sum(axis=-1, keepdims=True) - pair
    slopes = where(
        of_the_mode,
        (top + small * pair) * others + 4 * top * pair,
        pair * (1 - small * pair) + 4 * small * both,
    )
    # between nearly equal probabilities the constant part of the other variable would leave no digit of its changes
    exponents = (logits - first) / heat[..., None]
    even = exponents.min(axis=-1, keepdims=True) > -1
    grown = np.expm1(exponents - exponents.mean(axis=-1, keepdims=True))
    mean = grown.mean(axis=-1, keepdims=True)
    excess = where(even, (grown - mean) / (size * (1 + mean)), np.zeros(()))
    slopes = where(
        even, (excess[..., i] + excess[..., j] - (excess[..., i] - excess[..., j]) ** 2) / small, slopes
    )
    total = weights.sum(axis=-1, keepdims=True)
    shares = weights / total
    centred = sums - (shares * sums).sum(axis=-1, keepdims=True)
    return (shares * centred * slopes).sum(axis=-1) / (2 * top * total)[..., 0]
