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

Fisher information of wide random networks whose last layer is batch-normalised.

======================  ==================================================================================
name                    symbol (Karakida, Akaho and Amari 2019, Section 3.2)
======================  ==================================================================================
``q1, q2``              :math:`Q_1 = \sum_k \sigma_k^{-2}, Q_2 = \sum_k \sigma_k^{-4}` over the C outputs,
                        :math:`\sigma_k` the standard deviation of output k over the T samples (divisor T)
``c1, c2``              :math:`c_1', c_2'` of eq. (19)
``mean``                :math:`m_\lambda`, all eigenvalues averaged
``lower, upper``        bounds of :math:`\lambda_{max}`, eq. (19)
``share``               of the trace, taken out by differentiating :math:`\sigma_k` as well
======================  ==================================================================================

The other names are those of `theory.fisher`. The Jacobian of normalised outputs is
:math:`A_k J_k` with :math:`A_k = (I - \mathbf 1 \mathbf 1^\top / T) / \sigma_k` if :math:`\sigma_k` counts as a
constant, and exactly :math:`A_k = (I - \mathbf 1 \mathbf 1^\top / T - \bar f_k \bar f_k^\top / T)
/ \sigma_k` with the normalised outputs :math:`\bar f_k` if it does not. No constant is added to the variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import Floats, closed_form, count, finite, positive, quiet, require, together
from theory.fisher._wide import (
    Activations,
    EntryVariances,
    Network,
    Size,
    deviation_overlap,
    entry_variances,
    fluctuating_network,
)


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
    c = np.float64(size.outputs)
    return network.finite(MeanSubtractedStatistics(*map(float, _statistics(network, size, c, c))))


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
    return network.finite(size.gap / size.samples if size.samples > 1 else 0.0)


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
    c = np.float64(count("outputs", outputs))
    return network.finite(FluctuationConstants(*map(float, _constants(network, c, c))))


@quiet
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
    return network.finite(entry_variances(network))


@closed_form
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
    y = finite("targets", targets)
    require(y.ndim == 2 and y.size > 0, "targets", "of shape (T, C), T and C >= 1", targets)
    # divided first, so that the sum does not overflow
    return float(0.5 * np.square((y / len(y)).sum(0)).sum())


_ROUNDING = 1e-9
"""Relative distance by which sums over the same outputs may break an inequality that they keep."""


class BatchNormalisedStatistics(NamedTuple):
    """Mean of the eigenvalues and bounds of the largest one, of the shape of `q1` and `q2`."""

    mean: Floats
    lower: Floats
    upper: Floats


class BatchNormalisedConstants(NamedTuple):
    """The constants of eq. (19), of the shape of `q1` and `q2`."""

    c1: Floats
    c2: Floats


def output_variance(
    activation: Activations,
    *,
    depth: int,
    samples: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> float:
    r"""Variance of an output over T samples, averaged over networks.

    .. math:: E\,\sigma_k^2 = \Big(1 - \frac1T\Big) \sigma_w^2 (\hat q_t^{L-1} - \hat q_{st}^{L-1}).

    For many samples :math:`\sigma_k^2` does not scatter, and :math:`Q_1, Q_2` tend to C over its first and
    second power.

    Parameters
    ----------
    activation, depth, weight_variance, bias_variance, width_ratios
        As in :func:`kappas`.
    samples
        T >= 1.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`kappas`.

    References
    ----------
    Karakida, Akaho and Amari (2019), eqs. (5) and (14); the limit is ours.

    Examples
    --------
    >>> setting = dict(depth=3, weight_variance=2.0, bias_variance=0.0)
    >>> round(output_variance("relu", samples=1000, **setting), 4)
    1.0115
    """
    network = Network(activation, depth, weight_variance, bias_variance, width_ratios)
    return network.finite((1 - 1 / count("samples", samples)) * _limit(network))


@closed_form
def batch_normalised_statistics(
    activation: Activations,
    *,
    depth: int,
    width: int,
    samples: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
    q1: ArrayLike | None = None,
    q2: ArrayLike | None = None,
    finite_width: bool = False,
) -> BatchNormalisedStatistics:
    r"""Mean eigenvalue, and bounds of the largest, with a batch-normalised last layer of fixed deviations.

    .. math::
        m_\lambda = \Big(1 - \frac1T\Big) \frac{Q_1 (\kappa_1 - \kappa_2)}{M}, \qquad
        \rho \alpha \frac{Q_2}{Q_1} (\kappa_1 - \kappa_2) + c_1' \le \lambda_{max}
        \le \sqrt{(Q_2 \alpha^2 \rho (\kappa_1 - \kappa_2)^2 + c_2') M}, \quad \rho = M/T.

    The mean holds for any T, given the deviations of the network, the bounds for T of the order of M. Where the
    deviations are differentiated too, multiply the mean by 1 - :func:`deviation_share`; the bounds stay.

    Parameters
    ----------
    activation, depth, width, samples, outputs, weight_variance, bias_variance, width_ratios
        As in :func:`eigenvalue_statistics`, with at least two samples.
    q1, q2
        :math:`Q_1, Q_2` of the network at hand, or of several, :math:`Q_1^2 / C \le Q_2 \le Q_1^2`; both or
        neither. By default their limits for many samples, C over powers of :func:`output_variance`.
    finite_width
        In the mean only: count the parameters exactly and add the derivatives by the biases.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`kappas`, if the outputs do not vary (`weight_variance` 0), or `q1` and `q2` are no sums over
        the outputs.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (19), without the factor 1 - 1/T.

    Examples
    --------
    >>> setting = dict(depth=3, width=1000, samples=1000, weight_variance=2.0, bias_variance=0.0)
    >>> found = batch_normalised_statistics("relu", outputs=2, **setting)
    >>> [float(x.round(5)) for x in found]
    [0.00229, 3.22513, 121.48117]
    """
    network = fluctuating_network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = Size(network, width, count("samples", samples, 2), outputs, finite_width)
    require((q1 is None) == (q2 is None), "q2", "given if and only if q1 is", q2)
    if q1 is None or q2 is None:
        _require_variation(network)
        inverse = 1 / np.asarray((1 - 1 / size.samples) * _limit(network))
        first, second = size.outputs * inverse, size.outputs * inverse * inverse
        rule = "large enough for the squared inverse of the outputs' variance"
        require(np.isfinite(second), "weight_variance", rule, network.drawn.weight)
    else:
        first, second = _sums(q1, q2, size.outputs)
    return BatchNormalisedStatistics(*_statistics(network, size, first, second))


@closed_form
def batch_normalised_constants(
    activation: Activations,
    *,
    depth: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
    q1: ArrayLike,
    q2: ArrayLike,
) -> BatchNormalisedConstants:
    r"""The constants by which off-diagonal fluctuations enter the bounds of eq. (19).

    .. math::
        c_2' = Q_2 S_{same} + (Q_1^2 - Q_2) S_{diff}, \qquad c_1' = \frac{c_2'}{Q_1 \alpha (\kappa_1 - \kappa_2)},

    with the variances S of :func:`fluctuation_constants`, which are the case of deviations 1.

    Parameters
    ----------
    activation, depth, weight_variance, bias_variance, width_ratios
        As in :func:`kappas`.
    outputs
        C >= 1.
    q1, q2
        As in :func:`batch_normalised_statistics`.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`batch_normalised_statistics`.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (19), where they are left as non-negative constants; ours.

    Examples
    --------
    >>> setting = dict(depth=3, weight_variance=1.0, bias_variance=0.0)
    >>> c1, c2 = batch_normalised_constants("linear", outputs=1, q1=0.5, q2=0.25, **setting)
    >>> float(c1.round(3)), float(c2.round(3))
    (2.333, 3.5)
    """
    network = fluctuating_network(activation, depth, weight_variance, bias_variance, width_ratios)
    first, second = _sums(q1, q2, count("outputs", outputs))
    return BatchNormalisedConstants(*_constants(network, first, second))


@quiet
def deviation_share(
    activation: Activations,
    *,
    depth: int,
    width: int,
    samples: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> float:
    r"""Part of the trace that is lost when the deviations :math:`\sigma_k` are differentiated too.

    The exact Jacobian has the further factor :math:`I - \bar f_k \bar f_k^\top / T`, so that the part is the one of
    the direction :math:`\bar f_k`, in wide networks

    .. math:: \frac{1}{T - 1} \Big(1 + \frac{r}{M} (T - 2)\Big), \qquad
        r = \frac{\lim \mathrm{Cov}(f(s) f(t), K_{st})}
        {\sigma_w^2 (\hat q_t^{L-1} - \hat q_{st}^{L-1})\, \alpha (\kappa_1 - \kappa_2)}, \quad s \ne t,

    both factors of the covariance centred over s and t. Outputs lean to where the Gram matrix is large, since both
    read the same signals: hence r > 0. At T = 2 nothing is left, the part is 1; for 1 << T << M it is 1/T, for T = M
    it is (1 + r)/T. To first order in 1/M it holds for any T in a linear network, whose matrices lean alike in every
    direction of the sample space; in others r gets a factor 1 + O(1/T) from the diagonal of the Gram matrix.

    Parameters
    ----------
    activation, depth, width, samples, weight_variance, bias_variance, width_ratios
        As in :func:`eigenvalue_statistics`, with at least two samples; and at most three layers unless all are
        linear.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`kappas`, if there are more layers, or if the outputs do not vary (`weight_variance` 0).

    References
    ----------
    Karakida, Akaho and Amari (2019), beside eq. (19), whose derivation is in their supplement; ours.

    Examples
    --------
    >>> setting = dict(depth=3, width=1000, weight_variance=2.0, bias_variance=0.0)
    >>> [round(t * deviation_share("relu", samples=t, **setting), 3) for t in (2, 100, 1000)]
    [2.0, 1.102, 1.929]
    """
    network = fluctuating_network(activation, depth, weight_variance, bias_variance, width_ratios)
    m, t = count("width", width), count("samples", samples, 2)
    _require_variation(network)
    # in deeper networks the covariance of the noise is known only if no slope fluctuates
    short = network.depth <= 3 or not any(network.moments.backward_gap)
    require(short, "depth", "at most 3 unless all layers are linear", depth)
    return (1 + network.finite(deviation_overlap(network)) / m * (t - 2)) / (t - 1)


@quiet
def _statistics(network: Network, size: Size, first: Any, second: Any) -> tuple[Any, Any, Any]:
    """Mean eigenvalue and bounds, from sums of the outputs' inverse variances and of their squares.

    Both sums are the number of outputs where the mean is subtracted alone.
    """
    ratio, spike = size.width / size.samples, network.alpha * network.kappas().difference
    c1, c2 = _constants(network, first, second)
    mean = (1 - 1 / size.samples) * first * (size.gap / size.parameters)
    # hypot, since the squares may overflow
    upper = np.hypot(np.sqrt(second) * math.sqrt(ratio) * spike, np.sqrt(c2)) * math.sqrt(size.width)
    return mean, ratio * spike * (second / first) + c1, upper


@quiet
def _constants(network: Network, first: Any, second: Any) -> tuple[Any, Any]:
    difference = network.kappas().difference
    if difference == 0:
        return 0.0 * first, 0.0 * first
    same, other = entry_variances(network)
    # (Q_1^2 - Q_2) / Q_1 without squares of what may be large
    per_first = second / first * same + np.maximum(first - second / first, 0.0) * other
    network.finite((same, other))
    return per_first / network.alpha / difference, first * per_first


def _limit(network: Network) -> float:
    return network.drawn.weight * float(network.moments.forward_gap[-1])


def _sums(q1: ArrayLike, q2: ArrayLike, outputs: int) -> tuple[Floats, Floats]:
    first, second = together(q1=(positive, q1), q2=(positive, q2))
    relative = second / first / first
    within = (1 / outputs * (1 - _ROUNDING) <= relative) & (relative <= 1 + _ROUNDING)
    require(within, "q2", f"between q1^2/{outputs} and q1^2", q2)
    return first, second


def _require_variation(network: Network) -> None:
    varies = _limit(network) > 0
    require(varies, "weight_variance", "such that outputs differ between samples", network.drawn.weight)
