r"""Fisher information of wide random networks under the cross-entropy loss.

===========================  ===========================================================================
name                         symbol
===========================  ===========================================================================
``probabilities``            :math:`g(t)`, T by C: the softmax of the outputs at each sample
``mean``, ``second_moment``  :math:`m_\lambda, s_\lambda`: all eigenvalues, and their squares, averaged
``largest``                  :math:`\lambda_{max}`
===========================  ===========================================================================

With :math:`Q(t) = \mathrm{diag}(g) - g g^\top` the matrix is
:math:`F = \frac1T \sum_t J(t)^\top Q(t) J(t)`. Its non-zero eigenvalues are those of the blocks
:math:`Q(s)^{1/2} K_{st} Q(t)^{1/2}/T`, and :math:`K_{st}` tends to :math:`\alpha M \kappa_{st}` times the identity of C
outputs: :math:`\kappa_1` for s = t, else :math:`\kappa_2`. The other names are those of `theory.fisher`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks, softmax
from theory._roots import bracketed_root
from theory.fisher._wide import Activations, Network, Size

__all__ = ["CrossEntropyStatistics", "cross_entropy_outliers", "cross_entropy_statistics"]

Floats = NDArray[np.float64]


class CrossEntropyStatistics(NamedTuple):
    """Mean, mean square and largest of the eigenvalues."""

    mean: float
    second_moment: float
    largest: float


def cross_entropy_statistics(
    activation: Activations,
    *,
    depth: int,
    width: int,
    probabilities: ArrayLike,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
    finite_width: bool = False,
) -> CrossEntropyStatistics:
    r"""Eigenvalues of the Fisher information under the cross-entropy, for given outputs.

    The mean is :math:`\frac{\alpha M \kappa_1}{P} \langle 1 - \sum_k g_k^2 \rangle`, averaged over the samples. The
    largest is that of the CT by CT matrix with the blocks
    :math:`\frac{\alpha M}{T} \kappa_{st} Q(s)^{1/2} Q(t)^{1/2}`. It is the largest :math:`\lambda` for which

    .. math::
        \frac{\alpha M \kappa_2}T \sum_t Q(t)
        \Big(\lambda - \frac{\alpha M}T (\kappa_1 - \kappa_2) Q(t)\Big)^{-1}

    has the eigenvalue 1, a matrix of C by C. It is of the order of the width, as without the softmax.

    Parameters
    ----------
    activation, depth, width, weight_variance, bias_variance, width_ratios, finite_width
        As in :func:`theory.fisher.eigenvalue_statistics`.
    probabilities
        Shape (T, C), one distribution over C >= 2 outputs for each of T samples.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`theory.fisher.eigenvalue_statistics`; if the probabilities are no such array.

    References
    ----------
    Karakida, Akaho and Amari (2021), Pathological spectra of the Fisher information metric and its variants in deep
    neural networks, arXiv 1910.05992, for mean and second moment; the condition on the largest is ours.

    Examples
    --------
    >>> g = [[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]]
    >>> setting = dict(depth=3, width=100, weight_variance=2.0, bias_variance=0.0)
    >>> round(cross_entropy_statistics("relu", probabilities=g, **setting).largest, 2)
    69.55
    """
    q = _covariances(probabilities)
    samples, outputs = q.shape[:2]
    network = Network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = Size(network, width, samples, outputs, finite_width)
    own, shared, gap = (x / samples for x in (size.own, size.shared, size.gap))
    total, squares = q.sum(0), float((q * q).sum())
    across = float((total * total).sum())  # of Tr Q(s) Q(t) over all pairs
    statistics = CrossEntropyStatistics(
        mean=own / size.parameters * float(np.trace(total)),
        second_moment=(shared / size.parameters) * shared * across
        + (gap / size.parameters) * (own + shared) * squares,
        largest=_largest(q, shared, gap),
    )
    network.require_finite(*statistics)
    return statistics


def cross_entropy_outliers(
    activation: Activations,
    *,
    depth: int,
    width: int,
    probabilities: ArrayLike,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
    finite_width: bool = False,
) -> Floats:
    r"""Eigenvalues of the Fisher information under the cross-entropy that grow with the width.

    .. math::
        \lambda_j = \alpha M \kappa_2\, \lambda_j\big(\langle Q \rangle\big), \qquad j = 1, \dots, C - 1,

    for many samples, whose average is taken over the rows of `probabilities`.

    Parameters
    ----------
    activation, depth, width, probabilities, weight_variance, bias_variance, width_ratios, finite_width
        As in :func:`cross_entropy_statistics`.

    Returns
    -------
    Shape (C - 1,), descending.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`cross_entropy_statistics`.

    References
    ----------
    Ours, beside Karakida, Akaho and Amari (2019), Theorem 2.2: without the softmax there are C.

    Examples
    --------
    >>> setting = dict(depth=3, width=100, weight_variance=2.0, bias_variance=0.0)
    >>> cross_entropy_outliers("relu", probabilities=[[0.25, 0.25, 0.5]], **setting).round(2)
    array([25.71, 17.14])
    """
    q = _covariances(probabilities)
    samples, outputs = q.shape[:2]
    network = Network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = Size(network, width, samples, outputs, finite_width)
    network.require_finite(size.shared)
    return size.shared * np.maximum(np.linalg.eigvalsh(q.mean(0))[:0:-1], 0.0)


def _covariances(probabilities: ArrayLike) -> Floats:
    """Q(t), shape (T, C, C)."""
    p = _checks.probabilities("probabilities", probabilities)
    _checks.require(p.ndim == 2 and len(p) > 0, "probabilities", "of shape (T, C), T >= 1", probabilities)
    _checks.fits("probabilities", 64 * p.size * p.shape[1], p.shape)
    return softmax.covariance(p)


def _largest(q: Floats, shared: float, gap: float) -> float:
    """Where the largest eigenvalue of the matrix of the docstring falls through 1."""
    weights, vectors = np.linalg.eigh(q)
    weights = np.maximum(weights, 0.0)
    highest = float(weights.max())
    # distances from the pole gap * highest: of the blocks of one sample, and of both parts together
    top = shared * float(np.linalg.eigvalsh(q.sum(0))[-1])
    low, high = max(shared * highest, top - gap * highest), top
    if not 0 < low < high < math.inf:
        return gap * highest + high

    def excess(distance: float) -> float:
        share = shared * weights / (distance + gap * (highest - weights))
        return float(np.linalg.eigvalsh(np.einsum("tik,tk,tjk->ij", vectors, share, vectors))[-1]) - 1.0

    if excess(low) <= 0 or excess(high) >= 0:  # equal up to rounding
        return gap * highest + (low if excess(low) <= 0 else high)
    return gap * highest + bracketed_root(excess, low, high)
