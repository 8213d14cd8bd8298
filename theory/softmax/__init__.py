r"""The covariance of a softmax output: its spectrum, and how close it is to a single direction.

=====================  ===========================================  =====================================
name                   symbol                                       Vysogorets, Dawid and Kempe (2024)
=====================  ===========================================  =====================================
``covariance``         :math:`M = \mathrm{diag}(p) - p p^\top`      Section 3, Eq. (4)
``eigenvalues``        :math:`\tilde\lambda_i`                      Appendix B
``gamma``              :math:`\Gamma_p`                             Section 4, Appendix C, Eq. (10)
``gamma_from_logits``  :math:`\Gamma_{\sigma_T(z)}`                 Eqs. (1) and (10)
``collapse_limit``     :math:`\lim \Gamma_p` as p turns one-hot     Appendix C, Eq. (11)
``ray_slope``          :math:`d\Gamma_p^{-2}/d\beta`                beside Figure 4, right
=====================  ===========================================  =====================================

`p` has shape (..., K) with K >= 2. Its largest entry carries no information near one-hot, so every formula
here reads :math:`1 - p_{\max}` as the sum of the other entries, and nothing else is ever subtracted from
something of its own size: results keep their digits however confident `p` is. The
approach to one-hot and what pairs of classes say stand in `theory.softmax.collapse`; all is offered here.

`batch_gammas` is Gamma of the covariances of many samples: of their mean, and of all of them side by side.

================================  ====================================================================
name                              symbol
================================  ====================================================================
``mean``                          :math:`\bar\Gamma = \mathrm{Tr} \bar M / \|\bar M\|_F`
``separate``                      :math:`\Gamma_\oplus = \sum_\mu \mathrm{Tr} M^\mu / (\sum_\mu \|M^\mu\|_F^2)^{1/2}`
``M^\mu``                         :math:`\mathrm{diag}(p^\mu) - p^\mu p^{\mu\top}`, its mean over samples
                                  :math:`\bar M`
================================  ====================================================================

The curvature of a finite sample takes both (`theory.gauss_newton.finite_sample_excess`): gradients that the samples
share see the mean matrix, gradients of their own see the direct sum.

How often entropy and Gamma order two predictions differently:

=======================  ========================================================================================
name                     symbol (beside Vysogorets, Dawid and Kempe 2024, Figure 4, right)
=======================  ========================================================================================
`entropy_discordance`    :math:`\Pr[(H(p) - H(q)) (\Gamma_p - \Gamma_q) < 0]`, p and q uniform on the simplex
=======================  ========================================================================================

Along a ray of temperatures both fall together; between rays they do not.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import Floats, finite, fits, flag, integer, positive, quiet, require, together
from theory.softmax._softmax import (
    block,
    excess_of_rows,
    heated,
    mean_excess,
    relative_scales,
    split_logits,
    split_probabilities,
    subtractable,
    trace_and_square,
    where,
)
from theory.softmax.collapse import (
    collapse_limit,
    equal_tail_eigenvalues,
    equal_tail_gamma,
    gamma_of_pairs,
    ray_slope,
    rounded_gamma,
)

__all__ = [
    "BatchGammas",
    "batch_gammas",
    "batch_gammas_from_logits",
    "collapse_limit",
    "covariance",
    "eigenvalues",
    "entropy_discordance",
    "equal_tail_eigenvalues",
    "equal_tail_gamma",
    "gamma",
    "gamma_from_logits",
    "gamma_of_pairs",
    "ray_slope",
    "rounded_gamma",
]

_EPS = float(np.finfo(np.float64).eps)


def covariance(p: ArrayLike) -> Floats:
    r"""Covariance of a one-hot label drawn from `p`: :math:`M = \mathrm{diag}(p) - p p^\top`.

    It is also the Hessian of the cross-entropy with respect to the logits. Positive semi-definite, rows
    sum to zero, rank one less than the number of non-zero entries.

    Parameters
    ----------
    p
        Probabilities, shape (..., K).

    Returns
    -------
    Shape (..., K, K); the diagonal is :math:`p_k \sum_{j \ne k} p_j`.

    Raises
    ------
    ValueError
        If `p` is not a probability vector along its last axis, or the matrices do not fit into memory.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Section 3, Eq. (4).

    Examples
    --------
    >>> covariance([0.5, 0.5])
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    rest, top, at_top = split_probabilities(p)
    full = rest + at_top * top[..., None]
    fits("p", 24 * full.size * full.shape[-1], full.shape)
    # 0.0 minus, so that zeros have no sign
    matrix = 0.0 - full[..., :, None] * full[..., None, :]
    k = np.arange(full.shape[-1], dtype=np.intp)
    # 1 - p of the mode is the sum of the others, which keeps its digits near one-hot
    matrix[..., k, k] = full * where(at_top, rest.sum(axis=-1, keepdims=True), 1.0 - rest)
    return matrix


def eigenvalues(p: ArrayLike) -> Floats:
    r"""Eigenvalues of :math:`\mathrm{diag}(p) - p p^\top`, each to full relative accuracy.

    With the entries in descending order they interlace,
    :math:`p_{(i)} \ge \tilde\lambda_i \ge p_{(i+1)}`, and solve
    :math:`\sum_k p_k / (p_k - \tilde\lambda) = 0`; an entry that occurs m times is an eigenvalue m - 1 times,
    and the last one is zero. O(K^2) time, no matrix is formed.

    Parameters
    ----------
    p
        Probabilities, shape (..., K).

    Returns
    -------
    Shape (..., K), descending, the last one exactly 0.

    Raises
    ------
    ValueError
        If `p` is not a probability vector along its last axis.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Appendix B. The iteration is that of Li (1993), "Solving secular
    equations stably and efficiently", safeguarded by bisection.

    Examples
    --------
    >>> eigenvalues([0.25, 0.25, 0.25, 0.25])
    array([0.25, 0.25, 0.25, 0.  ])
    >>> eigenvalues([1.0, 1e-300, 1e-300])
    array([3.e-300, 1.e-300, 0.e+000])
    """
    rest, top, at_top = split_probabilities(p)
    poles = -np.sort(-(rest + at_top * top[..., None]), axis=-1)
    size = poles.shape[-1]
    rows = poles.reshape(-1, size)
    spectrum = np.zeros_like(rows)
    lanes = block(size)
    number = np.arange(rows.shape[0] * (size - 1), dtype=np.intp)
    row, index = number // (size - 1), number % (size - 1)
    for start in range(0, row.size, lanes):
        r, i = row[start : start + lanes], index[start : start + lanes]
        spectrum[r, i] = _secular_roots(rows[r], i)
    return spectrum.reshape(poles.shape)


def gamma(p: ArrayLike, *, average: bool = False) -> Floats:
    r"""Excess :math:`\Gamma_p = \mathrm{Tr} M / \|M\|_F` of the softmax covariance M of `p`.

    The inverse square is the participation of its eigenvalues: :math:`\sqrt{K - 1}` for uniform `p`, 1 if
    exactly two entries are non-zero, always in between. O(K) time and memory.

    Parameters
    ----------
    p
        Probabilities, shape (..., K).
    average
        Take the excess of the mean of the matrices over axis -2, a batch, instead of one value each.
        It is neither the mean of the values nor the value of the mean probability. Needs O(K^2) time per
        member of the batch; members that are one-hot count as zero matrices.

    Returns
    -------
    Shape (...), without axis -2 too if `average`; in :math:`[1, \sqrt{K-1}]` up to rounding.

    Raises
    ------
    ValueError
        If `p` is not a probability vector along its last axis, or is one-hot (M = 0), with `average` in
        every member of a batch; if `average` is not a bool, or asked of a single vector or an empty batch.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Section 4 and Eq. (10), which simplifies to
    :math:`(1-s_2)^2/(s_2 - 2 s_3 + s_2^2)` with :math:`s_n = \sum_k p_k^n`. That form loses all digits near
    one-hot and is not the one computed here.

    Examples
    --------
    >>> gamma([0.2, 0.2, 0.2, 0.2, 0.2]).round(12)
    np.float64(2.0)
    >>> gamma([1.0, 3e-300, 2e-300, 1e-300, 1e-300]).round(12)
    np.float64(1.443989744762)
    """
    if flag("average", average):
        return batch_gammas(p).mean
    rest, top, _ = split_probabilities(p)
    # entries relative to the runner-up: their squares vanish near one-hot
    scale = rest.max(axis=-1)
    require(scale > 0, "p", "not one-hot", p)
    trace, square = trace_and_square(rest / scale[..., None], top, scale)
    return trace / np.sqrt(square)


def gamma_from_logits(z: ArrayLike, *, temperature: ArrayLike = 1.0) -> Floats:
    r"""Excess :math:`\Gamma_p` at :math:`p = \mathrm{softmax}(z / T)`, exact to rounding however saturated.

    Only differences of logits enter, the off-mode ones measured from the runner-up, so the value is right
    where `p` itself rounds to one-hot or its entries underflow.

    Parameters
    ----------
    z
        Logits, shape (..., K), K >= 2, any finite size.
    temperature
        :math:`T > 0`, broadcast against the leading axes of `z`, same unit as the logits.

    Returns
    -------
    Leading shape of `z`, broadcast with `temperature`; in :math:`[1, \sqrt{K-1}]` up to rounding.

    Raises
    ------
    ValueError
        If a logit is not finite, there are fewer than two, or `temperature` is not positive.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Eqs. (1) and (10).

    Examples
    --------
    >>> gamma_from_logits([1e6, 1e6 - 1.0, 1e6 - 2.0]).round(12)
    np.float64(1.256984579372)
    >>> gamma_from_logits([1e6, 0.0, 0.0]).round(12) == collapse_limit([1.0, 1.0]).round(12)
    np.True_
    """
    logits, leading, heat = heated(z, temperature)
    fits("z", 8.0 * leading.size * logits.shape[-1], logits.shape)
    rows = np.broadcast_to(logits, (*leading.shape, logits.shape[-1])).reshape(-1, logits.shape[-1])
    return excess_of_rows(*subtractable(rows, heat.ravel())).reshape(leading.shape)[()]


def _secular_roots(poles: Floats, index: NDArray[np.intp]) -> Floats:
    """Root number `index` of sum_k p_k / (p_k - x), for each row of `poles` (descending).

    A root x is a float strictly between two poles, where every p_k - x and so the sign of the sum is exact
    enough to place x to a few units in the last place; no shift of origin is needed for the root itself.
    """
    lane = np.arange(index.size)
    upper, low = poles[lane, index], poles[lane, index + 1]
    # Each of the index + 1 poles above x adds at least 1, and each one below at least low / (low - x).
    high = np.minimum(upper, low * (poles.shape[-1] / (index + 1.0)) * (1.0 + 4.0 * _EPS))
    root = low + (high - low) / 2.0
    for count in range(100):  # 30 rational steps, then enough halvings for any bracket of floats
        live = np.flatnonzero((low < root) & (root < high))
        if live.size == 0:
            break
        x = root[live]
        value, step = _rational_step(poles[live], x, index[live])
        below, above = np.where(value <= 0, x, low[live]), np.where(value >= 0, x, high[live])
        moved = x + step
        inside = (below <= moved) & (moved <= above) & (count < 30)
        root[live] = np.where(inside, moved, below + (above - below) / 2.0)
        settled = inside & (np.abs(step) <= 4.0 * _EPS * x)
        low[live], high[live] = np.where(settled, root[live], below), np.where(settled, root[live], above)
    return root


@quiet
def _rational_step(poles: Floats, x: Floats, index: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """The secular sum at x, and the step to the root of r + s/(lower - x) + t/(upper - x) fitted to it.

    The two fractions match the value and the slope of the sums over the poles below and above x. Lengths are
    in units of x; a meaningless step (a quotient of zeros) is caught by the bracket.
    """
    gaps = poles - x[:, None]
    terms = poles / gaps
    value = terms.sum(axis=1)
    terms *= np.divide(x[:, None], gaps, out=gaps)
    lane = np.arange(x.size)
    start = lane * terms.shape[1]
    sums = np.add.reduceat(terms.ravel(), np.stack([start, start + index + 1], axis=1).ravel())
    above, below = sums[::2], sums[1::2]  # of the poles on either side
    a = poles[lane, index + 1] / x - 1.0
    b = np.minimum(poles[lane, index], 1e8 * x) / x - 1.0  # a pole that far acts as a constant
    linear = (a + b) * value - a * b * (above + below)
    constant = value - a * below - b * above
    product = a * b * value
    root = np.sqrt(linear * linear - 4.0 * product * constant)
    step = where(linear > 0, 2.0 * product / (linear + root), (linear - root) / (2.0 * constant))
    return value, step * x


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
    require(rest.ndim >= 2 and rest.shape[-2] > 0, "p", "a batch of shape (..., N, K)", rest.shape)
    scale = rest.max(axis=-1)
    largest = scale.max(axis=-1, keepdims=True)
    require(largest > 0, "p", "not one-hot in every member of the batch", p)
    ratios = rest / np.where(scale > 0, scale, 1.0)[..., None]
    return BatchGammas(*mean_excess(ratios, top, scale, scale / largest, at_top))


def batch_gammas_from_logits(z: ArrayLike, *, temperature: ArrayLike = 1.0) -> BatchGammas:
    r"""Gamma of each batch at :math:`p^\mu = \mathrm{softmax}(z^\mu / T)`, exact to rounding however saturated.

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
    logits = finite("z", z)
    batch = logits.ndim >= 2 and logits.shape[-2] > 0 and logits.shape[-1] >= 2
    require(batch, "z", "a batch of shape (..., N, K), K >= 2", logits.shape)
    heat = positive("temperature", temperature)
    together(z=logits[..., 0, 0], temperature=heat)
    fits("z", 96.0 * max(heat.size, 1) * logits.size, logits.shape)
    logits, heat = subtractable(logits, heat[..., None])
    parts = split_logits(logits, heat)
    weights = relative_scales(parts, heat)
    return BatchGammas(*mean_excess(parts.ratios, parts.top, parts.scale, weights, parts.at_top))


_POINTS = 9000  # of the quasi-random sequence; 63,000 change the share by 6e-4
_MOST = 20  # classes; the sequence fills no space of many more dimensions


def entropy_discordance(classes: int) -> float:
    r"""Share of pairs of random predictions that entropy and Gamma order differently.

    Both predictions are uniform on the simplex; an integral without a closed form, by quasi-random points.

    Parameters
    ----------
    classes
        Number K of classes, 3 to 20. Of two classes Gamma is 1 whatever the entropy.

    Returns
    -------
    From 0 to 1, to 6e-4.

    Raises
    ------
    ValueError
        If `classes` is not a whole number from 3 to 20.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Figure 4, right. The points are the additive recurrence of Roberts
    (2018), "The unreasonable effectiveness of quasirandom sequences", the gaps of its sorted coordinates.

    Examples
    --------
    >>> round(entropy_discordance(4), 3), round(entropy_discordance(10), 3)
    (0.128, 0.036)
    """
    return _discordance(integer("classes", classes, least=3, most=_MOST))


@cache
def _discordance(classes: int) -> float:
    # points that fill the simplex evenly
    axes = classes - 1
    root = float(np.roots([1.0, *[0.0] * (axes - 1), -1.0, -1.0]).real.max())
    steps = root ** -np.arange(1.0, classes)
    # sorted uniform points cut [0, 1] into a uniform point of the simplex
    inner = np.sort((0.5 + np.outer(np.arange(1, _POINTS + 1), steps)) % 1.0, axis=1)
    p = np.diff(inner, axis=1, prepend=0.0, append=1.0)
    log_p = np.log(p)
    gammas = excess_of_rows(log_p, np.ones(len(p)))
    before: list[float] = []
    inversions = 0  # pairs of which the larger comes first
    for value in gammas[np.argsort(-(p * log_p).sum(axis=1))].tolist():
        inversions += len(before) - bisect_right(before, value)
        insort(before, value)
    return 2 * inversions / (_POINTS * (_POINTS - 1))
