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
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory.activations import gaussian_kernels
from theory.fisher._wide import Activations, Network, Size

__all__ = [
    "EntryVariances",
    "FluctuationConstants",
    "MeanSubtractedStatistics",
    "deviation_overlap",
    "entry_variances",
    "fluctuation_constants",
    "mean_subtracted_largest",
    "mean_subtracted_statistics",
    "require_memory",
]

Floats = NDArray[np.float64]


class MeanSubtractedStatistics(NamedTuple):
    """Mean of the eigenvalues and bounds of the largest one."""

    mean: float
    lower: float
    upper: float


class FluctuationConstants(NamedTuple):
    """The constants of Theorem 3.3."""

    c1: float
    c2: float


class EntryVariances(NamedTuple):
    """Variances, per unit of width, of a centred Gram entry of two samples: same and different outputs."""

    same: float
    other: float


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
    require_memory(depth)
    network = Network(activation, depth, weight_variance, bias_variance, width_ratios)
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
    require_memory(depth)
    network = Network(activation, depth, weight_variance, bias_variance, width_ratios)
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


def entry_variances(network: Network) -> EntryVariances:
    """S for the same and for different outputs: the Gram entry as a linear form in fresh noise."""
    forms = _forms(network)
    same = forms.same @ forms.covariance_same @ forms.same
    return EntryVariances(float(same), float(forms.other @ forms.covariance_other @ forms.other))


def deviation_overlap(network: Network) -> float:
    """Covariance, times width, of a centred Gram entry with a product of centred outputs, both over their diagonals.

    Given the hidden layers, the output is a sum over units with the same weights that scale the units in the backward
    pass: hence, beside the covariance of the forms, twice the covariance of a unit's own noise in both. In deeper
    layers that is known only where there is no `backward_gap`.
    """
    forms, last = _forms(network), 2 * network.depth - 2
    own = 2 * forms.same[last] * forms.covariance_same[last - 1, last]
    covariance = float(forms.forward @ forms.covariance_same @ forms.same + own)
    return covariance / float(network.moments.forward_gap[-1]) / network.alpha / network.kappas().difference


class _Forms(NamedTuple):
    """Off-diagonal entries as linear forms in fresh noise, and the covariances of the noise.

    Noise 0 is the input overlap, 2l - 1 the forward and 2l the backward one of hidden layer l.
    """

    forward: Floats  # of the last hidden layer's overlap
    same: Floats  # of the Gram, same and different outputs
    other: Floats
    covariance_same: Floats
    covariance_other: Floats


def _forms(network: Network) -> _Forms:
    m, sw2, depth = network.moments, network.weight_variance, network.depth
    steps = [_layer(network, i) for i in range(depth - 1)]
    forward = [_unit(0, depth)]
    for i, step in enumerate(steps):
        forward.append(sw2 * step.slope * forward[-1] + _unit(2 * i + 1, depth))
    same = other = backward = lone = np.zeros(2 * depth - 1)
    for i in reversed(range(depth)):
        if i < len(steps):
            step = steps[i]
            noise = _unit(2 * i + 2, depth)
            backward = sw2 * step.slope * backward + step.turn * forward[i] + noise
            lone = sw2 * step.slope * lone + noise
        ratio = float(network.ratios[i])
        same = same + ratio * (m.q_tilde_st[i] * forward[i] + m.q_hat_st[i] * backward)
        other = other + ratio * m.q_hat_st[i] * lone
    return _Forms(forward[-1], same, other, *_noise(steps, network))


def _layer(network: Network, i: int) -> _Step:
    m, sw2 = network.moments, network.weight_variance
    kernel = gaussian_kernels(network.activations[i])
    a, b, d = m.variance[i], m.covariance[i], m.gap[i]
    v2, a2, ab, b2, c2 = kernel.fluctuations(b, d)
    shared, excess = m.q_tilde_st[i + 1], m.backward_gap[i + 1]
    rest = 2 * shared * excess * ab + excess * excess * b2
    width = float(network.ratios[i + 1])
    return _Step(
        slope=kernel.derivative(a, b, d).overlap,
        turn=sw2 * sw2 * shared * kernel.curvature(a, b, d),
        forward=v2 / width,
        same=sw2 * sw2 * (3 * shared * shared * a2 + rest) / width,
        other=sw2 * sw2 * (shared * shared * a2 + rest) / width,
        cross=sw2 * shared * c2 / width,
    )


def _noise(steps: Sequence[_Step], network: Network) -> tuple[Floats, Floats]:
    same = np.zeros((2 * network.depth - 1,) * 2)
    same[0, 0] = 1 / network.ratios[0]
    other = same.copy()
    for i, step in enumerate(steps):
        pair = slice(2 * i + 1, 2 * i + 3)
        same[pair, pair] = [[step.forward, step.cross], [step.cross, step.same]]
        other[pair, pair] = [[step.forward, 0.0], [0.0, step.other]]
    return same, other


class _Step(NamedTuple):
    """Response and fresh noise of one hidden layer."""

    slope: float
    turn: float  # response of the backward overlap to the forward one of the layer before
    forward: float
    same: float
    other: float
    cross: float


def require_memory(depth: int) -> None:
    """Refuse a depth beyond memory: the fluctuations take two square matrices and as many vectors.

    Two rows and columns for each layer.
    """
    layers = _checks.layers("depth", depth, least=2)
    _checks.fits("depth", 160 * layers**2, depth)


def _unit(index: int, depth: int) -> Floats:
    unit = np.zeros(2 * depth - 1)
    unit[index] = 1.0
    return unit
