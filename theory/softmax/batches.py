r"""Gamma of the softmax covariances of many samples: of their mean, and of all of them side by side.

================================  ====================================================================
name                              symbol
================================  ====================================================================
``mean``                          :math:`\bar\Gamma = \mathrm{Tr} \bar M / \|\bar M\|_F`
``separate``                      :math:`\Gamma_\oplus = \sum_\mu \mathrm{Tr} M^\mu / (\sum_\mu \|M^\mu\|_F^2)^{1/2}`
``M^\mu``                         :math:`\mathrm{diag}(p^\mu) - p^\mu p^{\mu\top}`, its mean over samples
                                  :math:`\bar M`
================================  ====================================================================

The curvature of a finite sample takes both (`theory.gauss_newton.finite_sample_excess`): gradients that the samples
share see the mean matrix, gradients of their own see the direct sum. All names are offered by `theory.softmax` too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory.softmax._softmax import (
    mean_excess,
    relative_scales,
    split_logits,
    split_probabilities,
    subtractable,
)

__all__ = ["BatchGammas", "batch_gammas", "batch_gammas_from_logits"]

Floats = NDArray[np.float64]


class BatchGammas(NamedTuple):
    r"""Two excesses of one batch, :math:`1 \le` ``mean`` :math:`\le` ``separate``.

    Attributes
    ----------
    mean
        Of the mean matrix, at most :math:`\sqrt{K-1}`.
    separate
        Of the matrices side by side, the direct sum, at most :math:`\sqrt{N(K-1)}`.
    """

    mean: Floats
    separate: Floats


def batch_gammas(p: ArrayLike) -> BatchGammas:
    r"""Gamma of the mean of the softmax covariances of a batch, and of their direct sum.

    O(N K^2) time, O(N K) memory.

    Parameters
    ----------
    p
        Probabilities, shape (..., N, K); members that are one-hot count as zero matrices.

    Returns
    -------
    ``mean`` and ``separate``, shape (...).

    Raises
    ------
    ValueError
        If `p` is not a probability vector along its last axis, is a single vector or an empty batch, or is one-hot
        in every member.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Section 4, for the mean matrix; the direct sum is not in the paper.

    Examples
    --------
    >>> [value.round(12).item() for value in batch_gammas([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])]
    [1.264911064067, 1.414213562373]
    """
    rest, top, at_top = split_probabilities(p)
    _checks.require(rest.ndim >= 2 and rest.shape[-2] > 0, "p", "a batch of shape (..., N, K)", rest.shape)
    scale = rest.max(axis=-1)
    largest = scale.max(axis=-1, keepdims=True)
    _checks.require(largest > 0, "p", "not one-hot in every member of the batch", p)
    ratios = rest / np.where(scale > 0, scale, 1.0)[..., None]
    return BatchGammas(*mean_excess(ratios, top, scale, scale / largest, at_top))


def batch_gammas_from_logits(z: ArrayLike, *, temperature: ArrayLike = 1.0) -> BatchGammas:
    r"""The same at :math:`p^\mu = \mathrm{softmax}(z^\mu / T)`, exact to rounding however saturated.

    Members enter with weights relative to the least confident one, in logarithms: where every `p` rounds to
    one-hot, the member with the smallest gap decides, and no member is lost before it is negligible.

    Parameters
    ----------
    z
        Logits, shape (..., N, K), K >= 2, any finite size.
    temperature
        :math:`T > 0`, one for each batch: broadcast against the axes of `z` before the last two.

    Returns
    -------
    ``mean`` and ``separate``, of the leading shape of `z` broadcast with `temperature`.

    Raises
    ------
    ValueError
        If a logit is not finite, there are fewer than two, `z` is a single vector or an empty batch, or `temperature`
        is not positive.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Eq. (1) and Section 4.

    Examples
    --------
    >>> z = [[0.0, 1.0, 3.0], [2.0, 0.0, 1.5]]
    >>> batch_gammas_from_logits(z, temperature=[1.0, 1e-3, 1e-6]).mean.round(6)
    array([1.314299, 1.      , 1.      ])
    """
    logits = _checks.finite("z", z)
    batch = logits.ndim >= 2 and logits.shape[-2] > 0 and logits.shape[-1] >= 2
    _checks.require(batch, "z", "a batch of shape (..., N, K), K >= 2", logits.shape)
    heat = _checks.positive("temperature", temperature)
    _checks.together(z=logits[..., 0, 0], temperature=heat)
    _checks.fits("z", 96.0 * max(heat.size, 1) * logits.size, logits.shape)
    logits, heat = subtractable(logits, heat[..., None])
    parts = split_logits(logits, heat)
    weights = relative_scales(parts, heat)
    return BatchGammas(*mean_excess(parts.ratios, parts.top, parts.scale, weights, parts.at_top))
