r"""Gamma as a chance that two random pairs of classes meet, and its slope along a ray of temperatures.

===================  ================================================================================
name                 symbol (beside Vysogorets, Dawid and Kempe 2024, Section 4 and Figure 4)
===================  ================================================================================
``e``                a pair of two classes i < j, drawn with the weight :math:`p_i p_j`
``W``                :math:`\sum_{i < j} p_i p_j = \mathrm{Tr}(M) / 2`
`gamma_of_pairs`     :math:`\Gamma_p` from two chances of pairs
`ray_slope`          :math:`d \Gamma_p^{-2} / d\beta` at :math:`\beta = 1/T`
===================  ================================================================================

Both names are offered by `theory.softmax` too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory.softmax._softmax import argmax, where

__all__ = ["gamma_of_pairs", "ray_slope"]

Floats = NDArray[np.float64]


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
    full = _checks.probabilities("p", p)
    _checks.fits("p", 24.0 * full.size * full.shape[-1], full.shape)
    pairs = full[..., :, None] * full[..., None, :]
    pairs[..., np.arange(full.shape[-1]), np.arange(full.shape[-1])] = 0.0
    largest = pairs.max(axis=(-2, -1), keepdims=True, initial=0.0)
    _checks.require(largest > 0, "p", "not one-hot", p)
    pairs /= largest
    total = pairs.sum(axis=(-2, -1)) / 2
    same = np.square(pairs).sum(axis=(-2, -1)) / 2
    meeting = np.square(pairs.sum(axis=-1)).sum(axis=-1) - 2 * same
    return total / np.sqrt(same + meeting / 4)


@np.errstate(over="ignore", under="ignore", invalid="ignore")
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
    logits = _checks.finite("z", z)
    _checks.require(logits.ndim >= 1 and logits.shape[-1] >= 2, "z", "at least two logits (..., K)", z)
    heat = _checks.positive("temperature", temperature)
    leading, heat = _checks.together(z=logits[..., 0], temperature=heat)
    size = logits.shape[-1]
    _checks.fits("z", 64.0 * leading.size * size**2, logits.shape)
    logits = np.broadcast_to(logits, (*leading.shape, size))
    first, second, rest, heads = _by_the_runner_up(logits, heat[..., None])
    lead = np.exp((second - first) / heat[..., None])
    top = 1.0 / (1.0 + lead * rest.sum(axis=-1, keepdims=True))
    i, j = np.triu_indices(size, 1)
    pair, sums = rest[..., i] + rest[..., j], (logits[..., i] - first) + (logits[..., j] - second)
    both, of_the_mode = rest[..., i] * rest[..., j], heads[..., i] | heads[..., j]
    # weights in units of p_1 p_2, the other variable in units of p_2: neither underflows near one-hot
    weights = where(of_the_mode, pair, lead * both)
    others = rest.sum(axis=-1, keepdims=True) - pair
    small = lead * top
    kept = where(
        of_the_mode,
        (top + small * pair) * others + 4 * top * pair,
        pair * (1 - small * pair) + 4 * small * both,
    )
    # between nearly equal probabilities the constant part of the other variable would leave no digit of its changes
    excess, even = _excess((logits - first) / heat[..., None])
    kept = where(
        even, (excess[..., i] + excess[..., j] - (excess[..., i] - excess[..., j]) ** 2) / small, kept
    )
    total = weights.sum(axis=-1, keepdims=True)
    shares = weights / total
    centred = sums - (shares * sums).sum(axis=-1, keepdims=True)
    found = (shares * centred * kept).sum(axis=-1) / (2 * top * total)[..., 0]
    return _checks.representable(found, z=z, temperature=temperature)


def _excess(exponents: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Probabilities minus 1/K without cancellation where exponents differ by less than 1, else 0; and where they do."""
    even = exponents.min(axis=-1, keepdims=True) > -1
    grown = np.expm1(exponents - exponents.mean(axis=-1, keepdims=True))
    mean = grown.mean(axis=-1, keepdims=True)
    return where(even, (grown - mean) / (exponents.shape[-1] * (1 + mean)), np.zeros(())), even


def _by_the_runner_up(logits: Floats, heat: Floats) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """The two largest logits, the probabilities but the largest over the second, and where the mode is."""
    heads = argmax(logits)
    others = np.where(heads, -np.inf, logits)
    second = others.max(axis=-1, keepdims=True)
    return logits.max(axis=-1, keepdims=True), second, np.exp((others - second) / heat), heads
