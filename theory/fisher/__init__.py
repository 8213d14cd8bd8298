r"""Eigenvalues of the Fisher information matrix of wide random networks.

==========================  ============================================================================
name                        symbol (Karakida, Akaho and Amari 2019)
==========================  ============================================================================
``depth``, ``width``        :math:`L`, :math:`M`
``samples``, ``outputs``    :math:`T`, :math:`C`
``width_ratios``            :math:`\alpha_0, \dots, \alpha_{L-1}`: layer l has :math:`\alpha_l M` units
``alpha``                   :math:`\alpha = \sum_{l=1}^{L-1} \alpha_l \alpha_{l-1}`
``kappa1, kappa2``          :math:`\kappa_1, \kappa_2`, eq. (11)
``difference``              :math:`\kappa_1 - \kappa_2`
``mean``                    :math:`m_\lambda`, all eigenvalues averaged
``second_moment``           :math:`s_\lambda`, their squares averaged
``largest``                 :math:`\lambda_{max}`
``bias1, bias2``            :math:`\sum_l \tilde q_t^l, \sum_l \tilde q_{st}^l`: from the bias parameters
``c1, c2``                  :math:`c_1, c_2` of Theorem 3.3
==========================  ============================================================================

Everything follows from the matrix :math:`K = J J^\top` (J: derivatives of the CT outputs), which has the
non-zero eigenvalues of T times the Fisher information. For wide layers each of its C diagonal blocks is
:math:`(\alpha M \kappa_1 + \mathrm{bias1})` on the diagonal and :math:`(\alpha M \kappa_2 + \mathrm{bias2})`
off it. The paper keeps the leading order in M; the input width has to grow along, as :math:`\alpha_0 M`.
A batch-normalised last layer is a topic of `theory.fisher.mean_subtraction`. Normalised hidden layers are
the topic of `theory.fisher.middle_normalisation`, layers normalised over their units of
`theory.fisher.layer_normalisation`.

Under the cross-entropy loss:

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
outputs: :math:`\kappa_1` for s = t, else :math:`\kappa_2`.

In the neural tangent parameterisation:

===========================  ===========================================================================
name                         symbol
===========================  ===========================================================================
``kappa1, kappa2``           :math:`\kappa_1^N = \sum_{l=1}^L \tilde q_t^l q_t^l`,
                             :math:`\kappa_2^N = \sum_{l=1}^L \tilde q_{st}^l q_{st}^l`
``difference``               :math:`\kappa_1^N - \kappa_2^N`
``mean``, ``second_moment``  :math:`m_\lambda, s_\lambda`: all eigenvalues, and their squares, averaged
``largest``                  :math:`\lambda_{max}`
===========================  ===========================================================================

The parameters are standard normal numbers w and :math:`\beta`, with
:math:`W^l = \sigma_w w^l/\sqrt{M_{l-1}}` and :math:`b^l = \sigma_b \beta^l`. The outputs and the order parameters of
`theory.order_parameters` stay as they are, the gradients by the weights lose a factor
:math:`\sqrt{M_{l-1}}/\sigma_w` and those by the biases a factor :math:`1/\sigma_b`: every layer adds
:math:`\tilde q^l (\sigma_w^2 \hat q^{l-1} + \sigma_b^2) = \tilde q^l q^l` to the Gram matrix. No width is left in it,
and the biases count in full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory import softmax
from theory._checks import Floats, count, fits, layers, probabilities, require
from theory._roots import bracketed_root
from theory.fisher._wide import (
    Activations,
    Kappas,
    Network,
    Size,
    differentiable,
    kernel_sums,
    parameter_count,
    rank_bound,
)
from theory.fisher.layer_normalisation import (
    Etas,
    ExpectedEtas,
    LayerNormStatistics,
    expected_etas,
    inverse_variance_cdf,
    layer_norm_kappas,
    layer_norm_largest,
    layer_norm_rank,
    layer_norm_rayleigh,
    layer_norm_statistics,
    realised_etas,
)
from theory.fisher.mean_subtraction import (
    BatchNormalisedConstants,
    BatchNormalisedStatistics,
    EntryVariances,
    FluctuationConstants,
    MeanSubtractedStatistics,
    batch_normalised_constants,
    batch_normalised_statistics,
    deviation_share,
    fluctuation_constants,
    gram_entry_variances,
    loss_floor,
    mean_subtracted_largest,
    mean_subtracted_statistics,
    output_variance,
)
from theory.fisher.middle_normalisation import (
    BatchNormMoments,
    batch_norm_bound,
    batch_norm_largest,
    batch_norm_largest_odd,
    batch_norm_moments,
)
from theory.order_parameters import Initialisation, propagate

__all__ = [
    "BatchNormMoments",
    "BatchNormalisedConstants",
    "BatchNormalisedStatistics",
    "CrossEntropyStatistics",
    "EntryVariances",
    "Etas",
    "ExpectedEtas",
    "FisherStatistics",
    "FluctuationConstants",
    "Kappas",
    "LayerNormStatistics",
    "MeanSubtractedStatistics",
    "TangentKernel",
    "TangentKernelStatistics",
    "batch_norm_bound",
    "batch_norm_largest",
    "batch_norm_largest_odd",
    "batch_norm_moments",
    "batch_normalised_constants",
    "batch_normalised_statistics",
    "cross_entropy_outliers",
    "cross_entropy_statistics",
    "deviation_share",
    "eigenvalue_statistics",
    "expected_etas",
    "fluctuation_constants",
    "gram_entry_variances",
    "inverse_variance_cdf",
    "kappas",
    "layer_norm_kappas",
    "layer_norm_largest",
    "layer_norm_rank",
    "layer_norm_rayleigh",
    "layer_norm_statistics",
    "loss_floor",
    "mean_subtracted_largest",
    "mean_subtracted_statistics",
    "output_variance",
    "parameter_count",
    "rank_bound",
    "realised_etas",
    "tangent_kernel",
    "tangent_kernel_statistics",
]


class FisherStatistics(NamedTuple):
    """Mean, mean square and largest of the eigenvalues."""

    mean: float
    second_moment: float
    largest: float


def kappas(
    activation: Activations,
    *,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> Kappas:
    r"""Constants of the Fisher information of a wide network.

    .. math::
        \kappa_1 = \sum_{l=1}^L \frac{\alpha_{l-1}}{\alpha} \tilde q_t^l \hat q_t^{l-1}, \qquad
        \kappa_2 = \sum_{l=1}^L \frac{\alpha_{l-1}}{\alpha} \tilde q_{st}^l \hat q_{st}^{l-1}.

    Parameters
    ----------
    activation
        An :class:`~theory.activations.Activation` (with second derivative unless closed forms are known),
        its name, or one of these per hidden layer.
    depth
        L from 2 to 100000: without a hidden layer :math:`\alpha = 0`.
    weight_variance, bias_variance
        Scalars >= 0.
    width_ratios
        L positive numbers, all 1 if None.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or a second derivative is missing.
    ConvergenceError
        If the averages of a user's activation do not settle (not smooth), or a pre-activation has a variance
        beyond about 1e8 and the activation no closed form.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (11), which in our copy reads :math:`\hat q^l \hat q^{l-1}` where
    the trace of the Fisher information has :math:`\tilde q^l \hat q^{l-1}`; very likely a lost tilde.

    Examples
    --------
    >>> kappas("relu", depth=3, weight_variance=2.0, bias_variance=0.0).kappa1
    1.5
    >>> f"{kappas('erf', depth=100, weight_variance=0.3, bias_variance=1.0).difference:.2e}"
    '4.13e-79'
    """
    return Network(activation, depth, weight_variance, bias_variance, width_ratios).kappas()


def eigenvalue_statistics(
    activation: Activations,
    *,
    depth: int,
    width: int,
    samples: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
    finite_width: bool = False,
) -> FisherStatistics:
    r"""Mean, second moment and largest eigenvalue of the Fisher information, any number of samples.

    .. math::
        m_\lambda = \frac{C \kappa_1}{M}, \quad
        s_\lambda = \alpha C \Big(\frac{T-1}{T} \kappa_2^2 + \frac{\kappa_1^2}{T}\Big), \quad
        \lambda_{max} = \alpha M \Big(\frac{T-1}{T} \kappa_2 + \frac{\kappa_1}{T}\Big),

    the last one C times (on average: the C are split by :math:`O(\sqrt M)`). In a centred network
    (:math:`\kappa_2 = 0`) with T of the order of M the last expression is not the largest eigenvalue.

    Parameters
    ----------
    activation, depth, weight_variance, bias_variance, width_ratios
        As in :func:`kappas`.
    width, samples, outputs
        M, T and C, each >= 1.
    finite_width
        Count the parameters exactly (:func:`parameter_count` in place of :math:`\alpha M^2`) and add the
        derivatives by the biases. The mean is then unbiased in practice at widths of some hundred; the
        other two keep an O(1/M) excess.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`kappas`.

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 2.2, eqs. (10) and (11). The second moment is not printed
    there; it is the trace of the squared block matrix above.

    Examples
    --------
    >>> setting = dict(depth=3, samples=100, outputs=2, weight_variance=2.0, bias_variance=0.0)
    >>> eigenvalue_statistics("relu", width=1000, **setting).mean
    0.003
    """
    network = Network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = Size(network, width, samples, outputs, finite_width)
    own, shared, t, c = size.own, size.shared, size.samples, size.outputs
    # quotients first, since squares of the entries may overflow
    mean_square = (t - 1) / t * shared * (shared / size.parameters) + own * (own / size.parameters) / t
    return network.finite(
        FisherStatistics(
            mean=c * (own / size.parameters),
            second_moment=c * mean_square,
            largest=(t - 1) / t * shared + own / t,
        )
    )


class CrossEntropyStatistics(FisherStatistics):
    """Mean, mean square and largest of the eigenvalues."""


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
    return network.finite(
        CrossEntropyStatistics(
            mean=own / size.parameters * float(np.trace(total)),
            second_moment=(shared / size.parameters) * shared * across
            + (gap / size.parameters) * (own + shared) * squares,
            largest=_largest(q, shared, gap),
        )
    )


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
    network.finite(size.shared)
    # the smallest eigenvalue of a softmax covariance is 0 and is left out; others may round below 0
    return size.shared * np.maximum(np.linalg.eigvalsh(q.mean(0))[:0:-1], 0.0)


def _covariances(given: ArrayLike) -> Floats:
    """Q(t), shape (T, C, C)."""
    p = probabilities("probabilities", given)
    require(p.ndim == 2 and len(p) > 0, "probabilities", "of shape (T, C), T >= 1", given)
    fits("probabilities", 64 * p.size * p.shape[1], p.shape)
    return softmax.covariance(p)


def _largest(q: Floats, shared: float, gap: float) -> float:
    """Where the largest eigenvalue of the matrix of the docstring falls through 1."""
    weights, vectors = np.linalg.eigh(q)
    # a covariance has no negative eigenvalues but for rounding
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


class TangentKernel(NamedTuple):
    """Kernel of one input and of two, and their difference to full relative accuracy."""

    kappa1: float
    kappa2: float
    difference: float


class TangentKernelStatistics(FisherStatistics):
    """Mean, mean square and largest of the eigenvalues."""


def tangent_kernel(
    activation: Activations,
    *,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    input_overlap: ArrayLike = 0.0,
) -> TangentKernel:
    r"""Neural tangent kernel of an infinitely wide network, for one input and for two.

    .. math::
        \kappa_1^N = \sum_{l=1}^L \tilde q_t^l q_t^l, \qquad
        \kappa_2^N = \sum_{l=1}^L \tilde q_{st}^l q_{st}^l.

    Parameters
    ----------
    activation
        An :class:`~theory.activations.Activation` (with second derivative unless closed forms are known),
        its name, or one of these per hidden layer.
    depth
        L from 1 to 100000.
    weight_variance, bias_variance
        Scalars >= 0.
    input_overlap
        Scalar in [-1, 1]: inner product of the two inputs per input unit, each of norm 1 per unit.

    Raises
    ------
    ValueError
        If an argument is out of its domain, a second derivative is missing, or the kernel overflows.
    ConvergenceError
        As in :func:`theory.order_parameters.order_parameters`.

    References
    ----------
    Ours, from the order parameters of Karakida, Akaho and Amari (2019), eqs. (5)-(7); the kernel is that of
    Jacot, Gabriel and Hongler (2018).

    Examples
    --------
    >>> tangent_kernel("relu", depth=3, weight_variance=2.0, bias_variance=0.5).kappa1
    9.0
    >>> tangent_kernel("linear", depth=1, weight_variance=2.0, bias_variance=0.5, input_overlap=0.25)
    TangentKernel(kappa1=2.5, kappa2=1.0, difference=1.5)
    """
    depth = layers("depth", depth)
    activations = differentiable(activation, depth - 1)
    drawn = Initialisation.checked(weight_variance, bias_variance)
    moments = propagate(
        activations, weight_variance=drawn.weight, bias_variance=drawn.bias, input_overlap=input_overlap
    )
    forward = map(drawn.through, moments.q_hat_t, moments.q_hat_st, moments.forward_gap)
    kernel = TangentKernel(*kernel_sums(moments, forward, [1.0] * depth))
    drawn.require_moderate(np.isfinite(kernel))
    return kernel


def tangent_kernel_statistics(
    activation: Activations,
    *,
    depth: int,
    width: int,
    samples: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> TangentKernelStatistics:
    r"""Eigenvalues of the Fisher information in the neural tangent parameterisation.

    .. math::
        m_\lambda = \frac{C \kappa_1^N}{P}, \quad
        s_\lambda = \frac C P \Big(\frac{T-1}{T} (\kappa_2^N)^2 + \frac{(\kappa_1^N)^2}{T}\Big), \quad
        \lambda_{max} = \frac{T-1}{T} \kappa_2^N + \frac{\kappa_1^N}{T},

    the last one C times. The widths enter through the number P of parameters alone, which is counted exactly.

    Parameters
    ----------
    activation, depth, weight_variance, bias_variance
        As in :func:`tangent_kernel`.
    width, samples, outputs
        M, T and C, each >= 1.
    width_ratios
        L positive numbers, all 1 if None; layer widths, input included, must come out whole.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`tangent_kernel`.

    References
    ----------
    Ours, beside Karakida, Akaho and Amari (2019), Theorem 2.2.

    Examples
    --------
    >>> sizes = dict(depth=3, width=1000, samples=100, outputs=2)
    >>> found = tangent_kernel_statistics("relu", **sizes, weight_variance=2.0, bias_variance=0.5)
    >>> round(found.largest, 3)
    3.666
    """
    kernel = tangent_kernel(
        activation, depth=depth, weight_variance=weight_variance, bias_variance=bias_variance
    )
    t, c = count("samples", samples), count("outputs", outputs)
    share = c / parameter_count(depth=depth, width=width, outputs=c, width_ratios=width_ratios)
    own, shared = kernel.kappa1, kernel.kappa2
    statistics = TangentKernelStatistics(
        mean=share * own,
        second_moment=(t - 1) / t * (share * shared) * shared + (share * own) * own / t,
        largest=(t - 1) / t * shared + own / t,
    )
    Initialisation.checked(weight_variance, bias_variance).require_moderate(np.isfinite(statistics))
    return statistics
