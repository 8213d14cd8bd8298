r"""Fisher information of wide random networks whose outputs have their sample mean subtracted.

======================  ====================================================================
name                    symbol (Karakida, Akaho and Amari 2019, Section 3)
======================  ====================================================================
``c1, c2``              :math:`c_1, c_2` of Theorem 3.3
``mean``                :math:`m_\lambda`, all eigenvalues averaged
``lower, upper``        bounds of :math:`\lambda_{max}`, eq. (18)
``difference``          :math:`\kappa_1 - \kappa_2`
======================  ====================================================================

The other names are those of `theory.fisher`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory import _checks
from theory.fisher._fluctuations import EntryVariances, entry_variances, fluctuating_network
from theory.fisher._wide import Activations, Network, Size

__all__ = [
    "EntryVariances",
    "FluctuationConstants",
    "MeanSubtractedStatistics",
    "fluctuation_constants",
    "gram_entry_variances",
    "loss_floor",
    "mean_subtracted_largest",
    "mean_subtracted_statistics",
]


class MeanSubtractedStatistics(NamedTuple):
    """Mean of the eigenvalues and bounds of the largest one."""

    mean: float
    lower: float
    upper: float


class FluctuationConstants(NamedTuple):
    """The constants of Theorem 3.3."""

    c1: float
    c2: float


def mean_subtracted_statistics(
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
) -> MeanSubtractedStatistics:
    r"""Mean eigenvalue, and bounds of the largest, when every output has its sample mean subtracted.

    .. math::
        m_\lambda = \Big(1 - \frac1T\Big) \frac{C (\kappa_1 - \kappa_2)}{M}, \qquad
        \rho \alpha (\kappa_1 - \kappa_2) + c_1 \le \lambda_{max}
        \le \sqrt{(C \alpha^2 \rho (\kappa_1 - \kappa_2)^2 + c_2) M}, \quad \rho = M/T.

    The mean holds for any T, the bounds for T of the order of M. One sample leaves nothing: zeros.

    Parameters
    ----------
    activation, depth, width, samples, outputs, weight_variance, bias_variance, width_ratios
        As in :func:`eigenvalue_statistics`.
    finite_width
        In the mean only: count the parameters exactly and add the derivatives by the biases.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`kappas`.

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 3.3, eqs. (16) and (18); for :math:`c_1, c_2` see
    :func:`fluctuation_constants`.

    Examples
    --------
    >>> setting = dict(depth=3, width=1000, outputs=2, weight_variance=2.0, bias_variance=0.0)
    >>> mean_subtracted_statistics("relu", samples=1, **setting)
    MeanSubtractedStatistics(mean=0.0, lower=0.0, upper=0.0)
    >>> round(mean_subtracted_statistics("relu", samples=1000, **setting).lower, 3)
    3.262
    """
    network = fluctuating_network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = Size(network, width, samples, outputs, finite_width)
    if size.samples == 1:
        return MeanSubtractedStatistics(0.0, 0.0, 0.0)
    t, c, ratio = size.samples, size.outputs, size.width / size.samples
    c1, c2 = _constants(network, c)
    spike = network.alpha * network.kappas().difference
    statistics = MeanSubtractedStatistics(
        mean=(1 - 1 / t) * c * (size.gap / size.parameters),
        lower=ratio * spike + c1,
        upper=math.hypot(math.sqrt(c * ratio) * spike, math.sqrt(c2)) * math.sqrt(size.width),
    )
    network.require_finite(*statistics)
    return statistics


def mean_subtracted_largest(
    activation: Activations,
    *,
    depth: int,
    width: int,
    samples: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
    finite_width: bool = False,
) -> float:
    r"""Largest eigenvalue for a fixed number of samples, when every output has its sample mean subtracted.

    .. math:: \lambda_{max} = \frac{\alpha (\kappa_1 - \kappa_2) M}{T}

    for :math:`T \ge 2`, C (T - 1) times; one sample leaves 0. In a network of finite width it is the mean of the
    C (T - 1) eigenvalues that are not zero. They are split, so that the largest lies above by a relative
    :math:`O(M^{-1/2})`, but for T = 2 and one output, where there is no other.

    Parameters
    ----------
    activation, depth, width, samples, weight_variance, bias_variance, width_ratios
        As in :func:`eigenvalue_statistics`.
    finite_width
        Add the derivatives by the biases.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`kappas`.

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 3.3, eq. (17).

    Examples
    --------
    >>> setting = dict(depth=3, width=1000, weight_variance=2.0, bias_variance=0.0)
    >>> round(mean_subtracted_largest("relu", samples=4, **setting), 2)
    578.57
    """
    network = Network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = Size(network, width, samples, 1, finite_width)
    largest = size.gap / size.samples if size.samples > 1 else 0.0
    network.require_finite(largest)
    return largest


def fluctuation_constants(
    activation: Activations,
    *,
    depth: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> FluctuationConstants:
    r"""The constants by which off-diagonal fluctuations enter the bounds of Theorem 3.3.

    After centring over samples, :math:`T^2 \mathrm{Tr} F^2` is the sum of squares of a matrix whose
    off-diagonal entries fluctuate with variance :math:`M S` (between samples, for the same or for
    different outputs), so that

    .. math::
        c_2 = C S_{same} + C (C - 1) S_{diff}, \qquad c_1 = \frac{c_2}{C \alpha (\kappa_1 - \kappa_2)}.

    To leading order the fluctuations of :math:`\hat q_{st}^l` and :math:`\tilde q_{st}^l` are linear in
    the fluctuation of the input overlap, of variance :math:`1/\alpha_0`, and in fresh ones of variance
    :math:`1/\alpha_l` at every hidden layer; S is the variance of the resulting sum. Weights of the
    backward pass count as independent of those of the forward pass.

    Parameters
    ----------
    activation, depth, weight_variance, bias_variance, width_ratios
        As in :func:`kappas`.
    outputs
        C >= 1.

    Returns
    -------
    c1 and c2, both zero where outputs do not depend on the input (`weight_variance` 0).

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`kappas`.

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 3.3, eq. (18), where they are left as non-negative constants;
    the recursion is our own.

    Examples
    --------
    >>> fluctuation_constants("linear", depth=3, outputs=1, weight_variance=1.0, bias_variance=0.0)
    FluctuationConstants(c1=4.666666666666667, c2=14.0)
    """
    network = fluctuating_network(activation, depth, weight_variance, bias_variance, width_ratios)
    return _constants(network, _checks.count("outputs", outputs))


def _constants(network: Network, outputs: int) -> FluctuationConstants:
    difference = network.kappas().difference
    if difference == 0:
        return FluctuationConstants(0.0, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        same, other = entry_variances(network)
    one = same + (outputs - 1) * other
    constants = FluctuationConstants(one / network.alpha / difference, outputs * one)
    network.require_finite(*constants)
    return constants


def gram_entry_variances(
    activation: Activations,
    *,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> EntryVariances:
    r"""Variances of an off-diagonal Gram entry centred over the samples, per unit of width.

    .. math::
        S_{same} = \lim_{M \to \infty} \frac1M \mathrm{Var}\, K_{kk}(s, t), \qquad
        S_{diff} = \lim_{M \to \infty} \frac1M \mathrm{Var}\, K_{kk'}(s, t), \qquad s \ne t, \; k \ne k',

    over the pairs of samples of one network: what the constants of :func:`fluctuation_constants` are made of.

    Parameters
    ----------
    activation, depth, weight_variance, bias_variance, width_ratios
        As in :func:`kappas`.

    Returns
    -------
    The two variances, `same` and `other`.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`kappas`.

    References
    ----------
    Ours, behind Karakida, Akaho and Amari (2019), Theorem 3.3, eq. (18).

    Examples
    --------
    >>> gram_entry_variances("linear", depth=2, weight_variance=1.0, bias_variance=0.0)
    EntryVariances(same=5.0, other=0.0)
    """
    network = fluctuating_network(activation, depth, weight_variance, bias_variance, width_ratios)
    if network.kappas().difference == 0:  # all samples alike to rounding: their mean leaves nothing
        return EntryVariances(0.0, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        variances = entry_variances(network)
    network.require_finite(*variances)
    return variances


def loss_floor(targets: ArrayLike) -> float:
    r"""Loss below which no network with mean-subtracted outputs can go.

    .. math:: \tfrac12 \lVert \bar y \rVert^2, \qquad \bar y = \frac1T \sum_t y(t),

    since such outputs have no mean over the samples: the loss :math:`\frac1{2T} \sum_t \lVert y - f \rVert^2` is this
    more than it would be for centred targets.

    Parameters
    ----------
    targets
        Shape (T, C).

    Raises
    ------
    ValueError
        If they are no such array, not finite, or so large that the floor overflows.

    References
    ----------
    Ours, beside Karakida, Akaho and Amari (2019), eq. (15).

    Examples
    --------
    >>> loss_floor([[1.0, 0.0], [0.0, 0.0]])
    0.125
    """
    y = _checks.finite("targets", targets)
    _checks.require(y.ndim == 2 and y.size > 0, "targets", "of shape (T, C), T and C >= 1", targets)
    with np.errstate(over="ignore"):
        floor = 0.5 * np.square((y / len(y)).sum(0)).sum()
    return float(_checks.representable(floor, targets=targets))
