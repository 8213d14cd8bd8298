r"""Fisher information of wide random networks whose layers are all normalised over their units.

======================  =======================================================================================
name                    symbol (Karakida, Akaho and Amari 2019, Section 4)
======================  =======================================================================================
``preactivations``      :math:`u^L_k(t)`, outputs before the last normalisation, shape (T, C)
``eta1, eta2, eta3``    :math:`\eta_1, \eta_2, \eta_3`, averages of :math:`1/\sigma(t)^2` and its products, below
``kappa1, kappa2``      :math:`\kappa_1', \kappa_2'`
``mean``                :math:`m_\lambda`, all eigenvalues averaged
``second_moment``       :math:`s_\lambda`, their squares averaged
``lower, upper``        bounds of :math:`\lambda_{max}`, eq. (26)
======================  =======================================================================================

The other names are those of `theory.fisher`. With :math:`\sigma(t)^2` the (biased) variance of the C outputs
of sample t and f(t) the normalised outputs, the last layer multiplies the derivatives of sample t by
:math:`P(t)/\sigma(t)`, :math:`P = I - 1 1^\top/C - f f^\top/C` of rank C - 2. In a wide network

.. math::
    K_{st} = \alpha M \kappa'_{st} \frac{P(s) P(t)}{\sigma(s)\,\sigma(t)}, \qquad
    \mathrm{Tr}\,P(s) P(t) = C - 3 + r_{st}^2, \quad r_{st} = f(s) \cdot f(t) / C,

so that the traces of F and of its square need only

.. math::
    \eta_1 = \frac1T \sum_t \frac{1}{\sigma(t)^2}, \quad
    \eta_2 = \frac1T \sum_t \frac{1}{\sigma(t)^4}, \quad
    \eta_3^2 = \frac{1}{T^2} \sum_{s, t} \frac{r_{st}^2}{\sigma(s)^2 \sigma(t)^2}.

Our copy leaves their definitions, and those of the kappas, to a supplement that it lacks, and calls the etas
constants independent of M. So are their laws: at fixed C they scatter from network to network whatever M and T,
and :math:`1/\sigma^2` has a tail of index (C - 1)/2.

A network whose hidden layers are normalised over their units is one with other activations: dividing a wide layer by
the root of its variance q makes phi(u) into phi(u/sqrt(q)), a function whose Gaussian averages are those of phi at
variance 1. The mean over the units, which is subtracted as well, vanishes.

The averages that layer normalisation makes of the variances of the outputs:

======================  =======================================================================================
name                    symbol (Karakida, Akaho and Amari 2019, Section 4)
======================  =======================================================================================
``preactivations``      :math:`u^L_k(t)`, outputs before the last normalisation, shape (T, C)
``eta1, eta2, eta3``    :math:`\eta_1, \eta_2, \eta_3` as defined above
======================  =======================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import (
    Floats,
    closed_form,
    count,
    finite,
    fits,
    layers,
    nonnegative,
    positive,
    quiet,
    representable,
    require,
    together,
    within,
)
from theory._roots import bracketed_root, special
from theory.activations import Activation, gaussian_kernels
from theory.activations.gaussian import Kernels, Moments
from theory.fisher._wide import Activations, Kappas, Network, Size, differentiable
from theory.order_parameters import Initialisation


class LayerNormStatistics(NamedTuple):
    """Mean and mean square of the eigenvalues, and bounds of the largest one, of the shape of the etas."""

    mean: Floats
    second_moment: Floats
    lower: Floats
    upper: Floats


def layer_norm_kappas(
    activation: Activations,
    *,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> Kappas:
    r"""Constants of the Fisher information of a wide network normalised over the units of every layer.

    A wide hidden layer is divided by :math:`\sqrt{q_t^l}`: its activations are averaged over Gaussians of
    variance 1 and covariance :math:`q_{st}^l/q_t^l`, and its backward factor is divided by :math:`q_t^l`. The
    sums are those of :func:`theory.fisher.kappas`, the last layer's derivatives taken before it is normalised.

    Parameters
    ----------
    activation, depth, width_ratios
        As in :func:`theory.fisher.kappas`.
    weight_variance, bias_variance
        Scalars >= 0, not both 0. Only their ratio matters.

    Raises
    ------
    ValueError
        If an argument is out of its domain, a second derivative is missing, or a layer has no variance.
    ConvergenceError
        If the averages of a user's activation do not settle (not smooth).

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 4.1; the recursion is our own.

    Examples
    --------
    >>> layer_norm_kappas("relu", depth=3, weight_variance=2.0, bias_variance=0.0).kappa1
    0.75
    >>> layer_norm_kappas("erf", depth=3, weight_variance=2e200, bias_variance=0.0).kappa2
    0.0
    """
    return _normalised_network(activation, depth, weight_variance, bias_variance, width_ratios).kappas()


@closed_form
def layer_norm_statistics(
    activation: Activations,
    *,
    depth: int,
    width: int,
    samples: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
    eta1: ArrayLike,
    eta2: ArrayLike,
    eta3: ArrayLike,
    finite_width: bool = False,
) -> LayerNormStatistics:
    r"""Mean, second moment and bounds of the Fisher information with layer normalisation everywhere.

    .. math::
        m_\lambda = (C - 2)\, \eta_1 \frac{\kappa_1'}{M}, \qquad
        s_\lambda = \alpha \Big[\big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2
        + (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2)\Big], \qquad
        \frac{M s_\lambda}{m_\lambda} \le \lambda_{max} \le M \sqrt{\alpha s_\lambda},

    for any number of samples. With one or two outputs nothing is left of the derivatives: zeros.

    Parameters
    ----------
    activation, depth, width, samples, outputs, width_ratios
        As in :func:`theory.fisher.eigenvalue_statistics`.
    weight_variance, bias_variance
        As in :func:`layer_norm_kappas`.
    eta1, eta2, eta3
        Positive, broadcast; those of a network by :func:`realised_etas`. They are no constants: for C = 3 the first
        has no expectation, for C <= 5 the second has none (:func:`expected_etas`).
    finite_width
        As in :func:`theory.fisher.eigenvalue_statistics`.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`layer_norm_kappas`.

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 4.1, eqs. (26) and (27).

    Examples
    --------
    >>> setting = dict(depth=3, width=1000, samples=100, weight_variance=2.0, bias_variance=0.0)
    >>> etas = dict(eta1=1.2, eta2=1.9, eta3=0.8)
    >>> float(layer_norm_statistics("relu", outputs=10, **setting, **etas).mean)
    0.0072
    >>> float(layer_norm_statistics("relu", outputs=2, **setting, **etas).upper)
    0.0
    """
    network = _normalised_network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = Size(network, width, samples, outputs, finite_width)
    etas = Etas(*together(eta1=(positive, eta1), eta2=(positive, eta2), eta3=(positive, eta3)))
    if size.outputs <= 2:
        return LayerNormStatistics(*(np.zeros(etas.eta1.shape) for _ in range(4)))
    trace = (size.outputs - 2) * etas.eta1 * size.own
    c, gap = size.outputs, math.sqrt(size.gap) * math.sqrt(size.own + size.shared)
    pairs = np.hypot(math.sqrt(c - 3) * etas.eta1 * size.shared, etas.eta3 * size.shared)
    root = np.hypot(pairs, np.sqrt((c - 2) * (etas.eta2 / size.samples)) * gap)
    lower = root * (root / trace) if size.own else np.zeros_like(root)
    return LayerNormStatistics(trace / size.parameters, root * (root / size.parameters), lower, root)


@closed_form
def layer_norm_largest(
    activation: Activations,
    preactivations: ArrayLike,
    *,
    depth: int,
    width: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> float:
    r"""Largest eigenvalue of the Fisher information with layer normalisation, given the outputs.

    The matrix of blocks :math:`\kappa'_{st} P(s) P(t) / \sigma(s) \sigma(t)` is block-diagonal plus rank C: its
    largest eigenvalue is the largest root of

    .. math::
        \kappa_2' \lambda_{max}\Big(\sum_t \frac{P(t)}{\lambda \sigma(t)^2 - (\kappa_1' - \kappa_2')}\Big) = 1,

    and the one of F is :math:`\alpha M \lambda / T`. Where :math:`\kappa_2' = 0` there is no such root, and it is
    :math:`\kappa_1' \max_t \sigma(t)^{-2}`. For many samples it tends to
    :math:`\alpha M \kappa_2' \lambda_{max}(\langle P(t)/\sigma(t)^2 \rangle)`, one of C - 1 outliers. The excess
    at finite width is O(1/M).

    Parameters
    ----------
    activation, depth, width, weight_variance, bias_variance, width_ratios
        As in :func:`layer_norm_statistics`.
    preactivations
        Outputs before the last normalisation, shape (T, C), the C of each sample not all equal.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`layer_norm_kappas`.

    References
    ----------
    Own result, beside the bounds of Karakida, Akaho and Amari (2019), eq. (26).

    Examples
    --------
    >>> u = [[0.3, -1.2, 0.4, 1.1], [-0.8, 0.2, 0.9, 0.1], [1.5, 0.6, -0.4, -0.7]]
    >>> round(layer_norm_largest("relu", u, depth=3, width=100, weight_variance=2.0, bias_variance=0.0), 6)
    150.662817
    """
    network = _normalised_network(activation, depth, weight_variance, bias_variance, width_ratios)
    width = count("width", width)
    k = network.kappas()
    if _table_of_outputs(preactivations).shape[1] <= 2:
        return 0.0
    f, precision = _normalised_outputs(preactivations)
    return k.alpha * width * _largest_root(f, precision, k.kappa2, k.difference) / len(f)


@closed_form
def layer_norm_rayleigh(
    activation: Activations,
    *,
    depth: int,
    width: int,
    samples: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
    eta1: ArrayLike,
    overlap: ArrayLike,
    finite_width: bool = False,
) -> Floats:
    r"""Rayleigh quotients of the Fisher information at equal weights of all samples, summed over the outputs.

    Linear in K, so without the excess that the second moment has at finite width:

    .. math::
        \frac{1}{T^2} \sum_k 1^\top K_{kk} 1 = \alpha M \Big[(C - 2) \frac{\eta_1}{T} \kappa_1' + o\, \kappa_2'\Big],
        \qquad o = \frac{1}{T^2} \sum_{s \ne t} \frac{\mathrm{Tr}\,P(s) P(t)}{\sigma(s)\,\sigma(t)}.

    Parameters
    ----------
    activation, depth, width, samples, outputs, weight_variance, bias_variance, width_ratios, eta1, finite_width
        As in :func:`layer_norm_statistics`.
    overlap
        The average o above, >= 0, broadcast with `eta1`.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`layer_norm_kappas`.

    References
    ----------
    Own result, beside Karakida, Akaho and Amari (2019), Theorem 4.1.

    Examples
    --------
    >>> setting = dict(depth=3, samples=100, outputs=10, weight_variance=2.0, bias_variance=0.0)
    >>> round(float(layer_norm_rayleigh("relu", width=1000, **setting, eta1=1.2, overlap=7.6)), 3)
    2749.693
    """
    network = _normalised_network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = Size(network, width, samples, outputs, finite_width)
    one, pairs = together(eta1=(positive, eta1), overlap=(nonnegative, overlap))
    if size.outputs <= 2:
        return np.zeros(one.shape)
    return (size.outputs - 2) * one / size.samples * size.own + pairs * size.shared


def layer_norm_rank(outputs: int) -> int:
    r"""Rank of the Gram block of one sample after a layer normalisation of the outputs, :math:`\max(C - 2, 0)`.

    The factor :math:`I - 1 1^\top/C - f f^\top/C` takes out two directions: the outputs can neither move together nor
    stretch.

    Parameters
    ----------
    outputs
        C >= 1.

    Raises
    ------
    ValueError
        If `outputs` is no integer >= 1.

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 4.1 and eq. (24); at C = 2 nothing is left.

    Examples
    --------
    >>> [layer_norm_rank(c) for c in (1, 2, 3, 10)]
    [0, 0, 1, 8]
    """
    return max(count("outputs", outputs) - 2, 0)


# --- sums over samples and outputs ---------------------------------------------------------------------------


def _largest_root(f: Floats, precision: Floats, shared: float, gap: float) -> float:
    """Largest eigenvalue of the blocks; in y = (lambda / max_t 1/sigma^2 - gap) / shared nothing cancels."""
    top = float(precision.max())
    share, ratio = precision / top, gap / shared if shared > gap * 1e-300 else math.inf
    if math.isinf(ratio):
        return top * gap

    def excess(y: float) -> float:
        return 1 / _largest_of_sum(f, share / (y + ratio * (1 - share))) - 1

    # widened by rounding, since the root may lie at an end
    bounds = (1 - 1e-12, (1 + 1e-12) * _largest_of_sum(f, share))
    return top * (gap + shared * bracketed_root(excess, *bounds))


def _largest_of_sum(f: Floats, weights: Floats) -> float:
    """Largest eigenvalue of the weighted sum of the projectors of all samples."""
    c, total = f.shape[1], weights.sum()
    matrix = total * (np.eye(c) - 1 / c) - (f * weights[:, None]).T @ f / c
    return float(np.linalg.eigvalsh(matrix)[-1])


@dataclass(frozen=True)
class _UnitVariance(Kernels):
    """Averages of phi(u/sqrt(q)), q the variance of u: an activation after normalisation of a wide layer."""

    base: Kernels

    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        return self.base.value(*_correlation(variance, covariance, gap))

    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        found = self.base.derivative(*_correlation(variance, covariance, gap))
        return Moments(*(x / variance for x in found))


def _correlation(variance: float, covariance: float, gap: float) -> tuple[float, float, float]:
    rule = "such that every layer has a variance to divide by"
    require(variance > 0, "weight_variance, bias_variance", rule, variance)
    return 1.0, covariance / variance, gap / variance


def _normalised_network(
    activation: Activations,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None,
) -> Network:
    depth = layers("depth", depth, least=2)
    activations = differentiable(activation, depth - 1)
    normalised = {
        id(a): Activation(a.name, a.function, a.derivative, kernels=_UnitVariance(gaussian_kernels(a)))
        for a in {id(a): a for a in activations}.values()
    }
    drawn = Initialisation.checked(weight_variance, bias_variance)
    # what is normalised depends on their ratio alone; dividing by a power of two does not round
    exponent = math.frexp(max(drawn))[1]
    weight, bias = (math.ldexp(variance, -exponent) for variance in drawn)
    return Network([normalised[id(a)] for a in activations], depth, weight, bias, width_ratios)


@quiet
def _normalised_outputs(preactivations: ArrayLike) -> tuple[Floats, Floats]:
    """Outputs f of variance 1 over the units of each sample, and 1/sigma^2."""
    u = _table_of_outputs(preactivations)
    deviation = u - u.mean(axis=1, keepdims=True)
    size = np.abs(deviation).max(axis=1, keepdims=True)  # taken out first: no square of it overflows
    require(size > 0, "preactivations", "different within each sample", preactivations)
    root = np.sqrt(((deviation / size) ** 2).mean(axis=1, keepdims=True))
    precision = (1 / root / size) ** 2
    representable(precision, preactivations=preactivations)
    rule = "small enough for 1/variance not to vanish"
    require(precision.max() > 0, "preactivations", rule, preactivations)
    return deviation / size / root, precision[:, 0]


def _table_of_outputs(preactivations: ArrayLike) -> Floats:
    u = finite("preactivations", preactivations)
    require(u.ndim == 2 and u.size > 0, "preactivations", "of shape (samples, outputs)", u.shape)
    require(np.abs(u) < 1e300, "preactivations", "below 1e300", preactivations)
    fits("preactivations", 32 * u.shape[1] ** 2, u.shape)
    return u


_STEP = 0.03


class Etas(NamedTuple):
    """The averages over samples that Theorem 4.1 reads."""

    eta1: Floats
    eta2: Floats
    eta3: Floats


class ExpectedEtas(NamedTuple):
    """Expectations over networks; the second moment needs those of the squares of the first and the third."""

    eta1: float
    eta2: float
    eta1_squared: float
    eta3_squared: float


@closed_form
def realised_etas(preactivations: ArrayLike) -> Etas:
    r"""The etas of one network from its outputs before the last normalisation.

    They obey :math:`\eta_1^2 \le \eta_2 \le T \eta_1^2` and :math:`\eta_2/T \le \eta_3^2 \le \eta_1^2`.

    Parameters
    ----------
    preactivations
        As in :func:`theory.fisher.layer_norm_largest`.

    Raises
    ------
    ValueError
        If the outputs are not finite, or those of one sample are all equal.

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 4.1; the definitions are our own.

    Examples
    --------
    >>> etas = realised_etas([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0]])
    >>> [round(float(eta), 12) for eta in etas]
    [0.9375, 1.1953125, 0.9375]
    """
    f, precision = _normalised_outputs(preactivations)
    # r_st^2 by the C x C matrix of second moments: no T x T matrix
    moments = (f * precision[:, None]).T @ f / f.shape[1]
    return Etas(
        precision.mean(),
        (precision**2).mean(),
        np.asarray(np.linalg.norm(moments) / len(f), dtype=np.float64),
    )


def expected_etas(
    activation: Activations,
    *,
    depth: int,
    samples: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
) -> ExpectedEtas:
    r"""Expectations of the etas over wide networks.

    The C outputs of a wide network are independent Gaussians of variance q and covariance q_st between two
    samples, so that :math:`C \sigma^2/q` is chi-square with C - 1 degrees of freedom. With
    :math:`a = (C - 1)/2`, :math:`x = (q_{st}/q)^2` and hypergeometric functions F = 2F1,

    .. math::
        E\,\eta_1 = \frac{C}{(C - 3)\, q}, \quad
        E\,\eta_2 = \frac{C^2}{(C - 3)(C - 5)\, q^2}, \quad
        E \frac{1}{\sigma(s)^2 \sigma(t)^2} = (E\,\eta_1)^2 F(1, 1; a; x), \quad
        E \frac{r_{st}^2}{\sigma(s)^2 \sigma(t)^2} = (E\,\eta_1)^2 \frac1a \Big[\tfrac12 F(1, 1; a + 1; x)
        + \frac{a^2 - \frac52 a + 2}{a + 1}\, x F(2, 2; a + 2; x)\Big].

    For many samples :math:`\eta_1` keeps the relative variance F(1, 1; a; x) - 1: it is no constant.

    Parameters
    ----------
    activation, depth
        As in :func:`theory.order_parameters.order_parameters`, two layers at least.
    samples, outputs
        T and C, each >= 1.
    weight_variance, bias_variance
        As in :func:`theory.fisher.layer_norm_kappas`.

    Returns
    -------
    Infinite where the tail of :math:`1/\sigma^2`, of index (C - 1)/2, is too heavy: the first for C <= 3,
    the others for C <= 5.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`theory.fisher.layer_norm_kappas`.

    References
    ----------
    Own result; Karakida, Akaho and Amari (2019), Theorem 4.1, call the etas constants independent of M.

    Examples
    --------
    >>> setting = dict(depth=3, samples=100, weight_variance=2.0, bias_variance=0.0)
    >>> found = expected_etas("relu", outputs=10, **setting)
    >>> round(found.eta1, 6), round(found.eta1_squared / found.eta1**2 - 1, 3)
    (1.428571, 0.063)
    >>> expected_etas("relu", outputs=3, **setting).eta1
    inf
    """
    t, c = count("samples", samples), count("outputs", outputs)
    variance, gap = _output_moments(activation, depth, weight_variance, bias_variance)
    if c <= 3:
        return ExpectedEtas(*(math.inf for _ in range(4)))
    one = float(representable(np.float64(c / (c - 3) / variance), weight_variance=weight_variance))
    if c <= 5:
        return ExpectedEtas(one, math.inf, math.inf, math.inf)
    own = one * one * ((c - 3) / (c - 5))
    pairs = [one * one * factor for factor in _pair_factors(0.5 * (c - 1), gap)]
    squares = [own / t + (t - 1) / t * pair for pair in pairs]
    values = representable(np.array([one, own, *squares]), weight_variance=weight_variance)
    return ExpectedEtas(*values.tolist())


@quiet
def inverse_variance_cdf(
    value: ArrayLike,
    activation: Activations,
    *,
    depth: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
) -> Floats:
    r"""Distribution function of :math:`1/\sigma^2` of one sample over wide networks.

    .. math::
        P(1/\sigma^2 \le y) = Q\Big(\frac{C - 1}{2}, \frac{C}{2 q y}\Big) \approx 1 - \mathrm{const}\, y^{-(C - 1)/2},

    Q the regularised upper incomplete gamma function and q the variance of an output.

    Parameters
    ----------
    value
        y, infinities included; any shape.
    activation, depth, weight_variance, bias_variance
        As in :func:`expected_etas`.
    outputs
        C >= 2.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`theory.fisher.layer_norm_kappas`.

    References
    ----------
    Own result, beside Karakida, Akaho and Amari (2019), Theorem 4.1.

    Examples
    --------
    >>> setting = dict(depth=3, outputs=3, weight_variance=2.0, bias_variance=0.0)
    >>> [round(float(1 - inverse_variance_cdf(y, "relu", **setting)), 6) for y in (1e2, 1e3, 1e4)]
    [0.014888, 0.001499, 0.00015]
    """
    y = np.maximum(within("value", value, -math.inf, math.inf), 0.0)
    c = count("outputs", outputs, 2)
    variance, _ = _output_moments(activation, depth, weight_variance, bias_variance)
    return special.gammaincc(0.5 * (c - 1), 0.5 * c / (variance * y))


# --- expectations --------------------------------------------------------------------------------------------


def _output_moments(
    activation: Activations, depth: int, weight_variance: ArrayLike, bias_variance: ArrayLike
) -> tuple[float, float]:
    """Variance of an output before its normalisation; one less its squared correlation between two samples."""
    network = _normalised_network(activation, depth, weight_variance, bias_variance, None)
    drawn = Initialisation.checked(weight_variance, bias_variance)
    own, gap = network.moments.q_hat_t[-1], network.moments.forward_gap[-1]
    variance = network.finite(drawn.weight * own + drawn.bias)
    rule = "such that the variance of an output does not vanish"
    require(variance > 0, "weight_variance, bias_variance", rule, tuple(drawn))
    w, b = network.drawn
    part = w * gap / (w * own + b)
    # 1 - r^2 as (1 - r)(1 + r), which keeps the digits of a small gap
    return variance, part * (2 - part)


def _pair_factors(a: float, gap: float) -> tuple[float, float]:
    """Expectations for two samples over those of independent ones, without and with the squared overlap.

    Both series in x = 1 - gap are integrals of w^(a - 2) and w^(a - 1) over [0, 1]; in s = -(a - 1) log w they
    have an exponential weight, for which a double exponential substitution converges to rounding.
    """
    t = _STEP * np.arange(-130, 190)
    s = np.exp(t - np.exp(-t))
    weights = _STEP * s * (1 + np.exp(-t)) * np.exp(-s)
    # 1 - w would cancel for many outputs
    w, rest = np.exp(-s / (a - 1)), -np.expm1(-s / (a - 1))
    x, denominator = 1 - gap, gap + (1 - gap) * w
    slope = ((a - 1.25) ** 2 + 0.4375) * x  # a^2 - 5a/2 + 2
    overlaps = w / (a - 1) * (0.5 / denominator + slope * rest / denominator**2)
    return float(weights @ (1 / denominator)), float(weights @ overlaps)
