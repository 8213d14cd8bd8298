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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory.activations import Activation, gaussian_kernels, resolve
from theory.order_parameters import Propagation, propagate

__all__ = [
    "FisherStatistics",
    "FluctuationConstants",
    "Kappas",
    "MeanSubtractedStatistics",
    "eigenvalue_statistics",
    "fluctuation_constants",
    "kappas",
    "mean_subtracted_statistics",
    "parameter_count",
]

Floats = NDArray[np.float64]
Activations = str | Activation | Sequence[str | Activation]


class Kappas(NamedTuple):
    """Constants of Theorem 2.2; `difference` is kappa1 - kappa2 to full relative accuracy."""

    alpha: float
    kappa1: float
    kappa2: float
    difference: float


class FisherStatistics(NamedTuple):
    """Mean, mean square and largest of the eigenvalues."""

    mean: float
    second_moment: float
    largest: float


class MeanSubtractedStatistics(NamedTuple):
    """Mean of the eigenvalues and bounds of the largest one."""

    mean: float
    lower: float
    upper: float


class FluctuationConstants(NamedTuple):
    """The constants of Theorem 3.3."""

    c1: float
    c2: float


def parameter_count(
    *, depth: int, width: int, outputs: int, width_ratios: Sequence[float] | None = None
) -> int:
    r"""Number of weights and biases, :math:`P = \sum_{l=1}^L (M_l M_{l-1} + M_l)`.

    Parameters
    ----------
    depth, width, outputs
        L, M and C, each >= 1; at most 100000 layers.
    width_ratios
        L positive ratios (all 1 if None); layer widths, input included, must come out whole.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Karakida, Akaho and Amari (2019), Section 2.1.

    Examples
    --------
    >>> parameter_count(depth=2, width=3, outputs=1)
    16
    """
    depth = _checks.layers("depth", depth, least=1)
    width, outputs = _checks.count("width", width), _checks.count("outputs", outputs)
    exact = [width * Fraction(ratio) for ratio in _ratios(width_ratios, depth).tolist()]
    units = [*map(round, exact), outputs]
    whole = all(n >= 1 and abs(x - n) <= x * 1e-9 for n, x in zip(units, exact, strict=False))
    _checks.require(whole, "width_ratios", f"such that width {width} gives whole layer widths", width_ratios)
    return sum(after * (before + 1) for before, after in pairwise(units))


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
    the trace of the Fisher information has :math:`\tilde q^l \hat q^{l-1}`.

    Examples
    --------
    >>> kappas("relu", depth=3, weight_variance=2.0, bias_variance=0.0).kappa1
    1.5
    >>> f"{kappas('erf', depth=100, weight_variance=0.3, bias_variance=1.0).difference:.2e}"
    '4.13e-79'
    """
    network = _Network(activation, depth, weight_variance, bias_variance, width_ratios)
    return network.kappas()


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
    network = _Network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = _Size(network, width, samples, outputs, finite_width)
    own, shared, t, c = size.own, size.shared, size.samples, size.outputs
    mean_square = (t - 1) / t * shared * (shared / size.parameters) + own * (own / size.parameters) / t
    statistics = FisherStatistics(
        mean=c * (own / size.parameters),
        second_moment=c * mean_square,
        largest=(t - 1) / t * shared + own / t,
    )
    network.require_finite(*statistics)
    return statistics


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
    _require_memory(depth)
    network = _Network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = _Size(network, width, samples, outputs, finite_width)
    if size.samples == 1:
        return MeanSubtractedStatistics(0.0, 0.0, 0.0)
    t, c, ratio = size.samples, size.outputs, size.width / size.samples
    c1, c2 = network.fluctuation_constants(c)
    spike = network.alpha * network.kappas().difference
    statistics = MeanSubtractedStatistics(
        mean=(1 - 1 / t) * c * (size.gap / size.parameters),
        lower=ratio * spike + c1,
        upper=math.hypot(math.sqrt(c * ratio) * spike, math.sqrt(c2)) * math.sqrt(size.width),
    )
    network.require_finite(*statistics)
    return statistics


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
    Karakida, Akaho and Amari (2019), Theorem 3.3, eq. (18), where they are left as positive constants;
    the recursion is our own.

    Examples
    --------
    >>> fluctuation_constants("linear", depth=3, outputs=1, weight_variance=1.0, bias_variance=0.0)
    FluctuationConstants(c1=4.666666666666667, c2=14.0)
    """
    _require_memory(depth)
    network = _Network(activation, depth, weight_variance, bias_variance, width_ratios)
    return network.fluctuation_constants(_checks.count("outputs", outputs))


class _Network:
    """Propagated moments of one setting and the sums over its layers."""

    def __init__(
        self,
        activation: Activations,
        depth: int,
        weight_variance: ArrayLike,
        bias_variance: ArrayLike,
        width_ratios: Sequence[float] | None,
    ) -> None:
        self.depth = _checks.layers("depth", depth, least=2)
        self.ratios = _ratios(width_ratios, self.depth)
        with np.errstate(over="ignore"):
            self.alpha = float(self.ratios[1:] @ self.ratios[:-1])
        rule = "such that alpha neither overflows nor vanishes"
        _checks.require(0 < self.alpha < math.inf, "width_ratios", rule, width_ratios)
        self.activations = resolve(activation, self.depth - 1)
        for a in self.activations:
            _require_second_derivative(a)
        self.moments: Propagation = propagate(
            self.activations, weight_variance=weight_variance, bias_variance=bias_variance
        )
        self.weight_variance = float(_checks.nonnegative("weight_variance", weight_variance))

    def kappas(self) -> Kappas:
        m = self.moments
        weights = (self.ratios / self.alpha).tolist()
        rows = zip(
            weights,
            m.q_tilde_t,
            m.q_tilde_st,
            m.backward_gap,
            m.q_hat_t,
            m.q_hat_st,
            m.forward_gap,
            strict=True,
        )
        # w (t h - t' h') = w [t (h - h') + (t - t') h']: nothing is subtracted
        terms = [(w * t * h, w * ts * hs, w * (t * dh + e * hs)) for w, t, ts, e, h, hs, dh in rows]
        kappa1, kappa2, difference = (float(sum(x)) for x in zip(*terms, strict=True))
        self.require_finite(kappa1, kappa2, difference)
        return Kappas(self.alpha, kappa1, kappa2, difference)

    def require_finite(self, *values: float) -> None:
        rule = "small enough not to overflow"
        _checks.require(all(map(math.isfinite, values)), "weight_variance", rule, self.weight_variance)

    def fluctuation_constants(self, outputs: int) -> FluctuationConstants:
        difference = self.kappas().difference
        if difference == 0:
            return FluctuationConstants(0.0, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            same, other = self._entry_variances()
        one = same + (outputs - 1) * other
        constants = FluctuationConstants(one / self.alpha / difference, outputs * one)
        self.require_finite(*constants)
        return constants

    def _entry_variances(self) -> tuple[float, float]:
        """S for the same and for different outputs: the Gram entry as a linear form in fresh noise.

        Noise 0 is the input overlap, 2l - 1 the forward and 2l the backward one of hidden layer l.
        """
        m, sw2 = self.moments, self.weight_variance
        steps = [self._layer(i) for i in range(self.depth - 1)]
        forward = [_unit(0, self.depth)]
        for i, step in enumerate(steps):
            forward.append(sw2 * step.slope * forward[-1] + _unit(2 * i + 1, self.depth))
        same = other = backward = lone = np.zeros(2 * self.depth - 1)
        for i in reversed(range(self.depth)):
            if i < len(steps):
                step = steps[i]
                noise = _unit(2 * i + 2, self.depth)
                backward = sw2 * step.slope * backward + step.turn * forward[i] + noise
                lone = sw2 * step.slope * lone + noise
            ratio = float(self.ratios[i])
            same = same + ratio * (m.q_tilde_st[i] * forward[i] + m.q_hat_st[i] * backward)
            other = other + ratio * m.q_hat_st[i] * lone
        covariance_same, covariance_other = self._noise(steps)
        return float(same @ covariance_same @ same), float(other @ covariance_other @ other)

    def _layer(self, i: int) -> _Step:
        m, sw2 = self.moments, self.weight_variance
        kernel = gaussian_kernels(self.activations[i])
        a, b, d = m.variance[i], m.covariance[i], m.gap[i]
        v2, a2, ab, b2, c2 = kernel.fluctuations(b, d)
        shared, excess = m.q_tilde_st[i + 1], m.backward_gap[i + 1]
        rest = 2 * shared * excess * ab + excess * excess * b2
        width = float(self.ratios[i + 1])
        return _Step(
            slope=kernel.derivative(a, b, d).overlap,
            turn=sw2 * sw2 * shared * kernel.curvature(a, b, d),
            forward=v2 / width,
            same=sw2 * sw2 * (3 * shared * shared * a2 + rest) / width,
            other=sw2 * sw2 * (shared * shared * a2 + rest) / width,
            cross=sw2 * shared * c2 / width,
        )

    def _noise(self, steps: Sequence[_Step]) -> tuple[Floats, Floats]:
        same = np.zeros((2 * self.depth - 1,) * 2)
        same[0, 0] = 1 / self.ratios[0]
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


class _Size:
    """Entries of K for given M, T, C: to leading order, or with the biases and all parameters counted."""

    def __init__(self, network: _Network, width: int, samples: int, outputs: int, finite_width: bool) -> None:
        self.width, self.samples = _checks.count("width", width), _checks.count("samples", samples)
        self.outputs = _checks.count("outputs", outputs)
        k, m = network.kappas(), network.moments
        scale = k.alpha * self.width
        self.own, self.shared, self.gap = scale * k.kappa1, scale * k.kappa2, scale * k.difference
        self.parameters = scale * self.width
        if _checks.flag("finite_width", finite_width):
            self.own += math.fsum(m.q_tilde_t)
            self.shared += math.fsum(m.q_tilde_st)
            self.gap += math.fsum(m.backward_gap)
            self.parameters = parameter_count(
                depth=network.depth,
                width=self.width,
                outputs=self.outputs,
                width_ratios=network.ratios.tolist(),
            )


def _require_memory(depth: int) -> None:
    """The fluctuations take two square matrices, two rows and columns per layer, and as many vectors."""
    layers = _checks.layers("depth", depth, least=2)
    _checks.fits("depth", 160 * layers**2, depth)


def _unit(index: int, depth: int) -> Floats:
    unit = np.zeros(2 * depth - 1)
    unit[index] = 1.0
    return unit


def _ratios(width_ratios: Sequence[float] | None, depth: int) -> Floats:
    ratios = np.ones(depth) if width_ratios is None else _checks.positive("width_ratios", width_ratios)
    _checks.require(ratios.shape == (depth,), "width_ratios", f"a sequence of {depth} numbers", width_ratios)
    return ratios


def _require_second_derivative(activation: Activation) -> None:
    if activation.second_derivative is None and activation.kernels is None:
        raise ValueError(f"second_derivative must be given for activation {activation.name!r} here, got None")
