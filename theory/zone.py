r"""Where the Goldilocks zone begins and ends when a homogeneous network is scaled, and how it trains there.

======================  =======================================================  =============================
name                    symbol                                                   Vysogorets, Dawid, Kempe
                                                                                 (2024)
======================  =======================================================  =============================
``alpha``               :math:`\alpha`, factor of all weights                    Section 3
``depth``               L, degree of homogeneity: layers with weights            Section 2
``temperature``         T of the softmax                                         Eq. (1)
`curvature_factors`     of G and :math:`\tilde H`                                Eq. (5)
`reduced_temperature`   :math:`T / \alpha^L`                                     beyond the paper
`matched_rate`          :math:`\eta'`                                            Sections 3 and 5
`lower_edge`            :math:`\alpha_{\rm low}`                                 beyond the paper
`upper_edge`            :math:`\alpha_{\rm high}`                                beyond the paper
`near_tie_weight`       :math:`\mathrm{E}\, p_1 p_2`                             beyond the paper
`largest_base_rate`     :math:`\eta_0`                                           Appendix E
`bulk_outlier`          where a spike of G leaves the bulk of :math:`\tilde H`   Section 3
`spiked_excess`         of such a sum                                            beyond the paper
`homogeneous_factor`    :math:`\alpha^{L-k}/T`                                   Sections 2 and 3
`euler_factor`          :math:`L (L-1) \cdots (L-k+1)`                           beyond the paper
`tanh_correction`       leading deviation of tanh from homogeneity               beside Section 2
`confident_log_trace`   :math:`\log \mathrm{Tr}\, G` of two classes             beyond the paper
======================  =======================================================  =============================

The network has no biases and :math:`f(\alpha\theta) = \alpha^L f(\theta)`. G and :math:`\tilde H` are the two parts of
the Hessian of its cross-entropy; `theory.gauss_newton.hessian_excess` joins their excesses.

Of a low-rank G over the bulk of the H-term, a spike is an eigenvalue of G, the norm of the bulk the spectral norm of
the H-term. Where every sample is torn between its two likeliest classes alone:

========================  ==========================================================================================
name                      symbol (Vysogorets, Dawid and Kempe 2024, Section 3 and Appendix D)
========================  ==========================================================================================
``gaps``                  :math:`\Delta_\mu`, between the two largest logits of the unscaled network
``squared_slopes``        :math:`|\nabla \Delta_\mu|^2`, of that gap by the weights
`confident_log_trace`     :math:`\log \mathrm{Tr}\, G` at large :math:`\alpha`
========================  ==========================================================================================

:math:`f(\alpha\theta) = \alpha^L f(\theta)` for :math:`\alpha > 0` if the activation is, like ReLU, homogeneous of
degree one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory import outliers
from theory._checks import (
    Floats,
    closed_form,
    finite,
    fits,
    instance,
    integer,
    layers,
    nonnegative,
    positive,
    require,
    together,
    whole,
)

__all__ = [
    "CurvatureFactors",
    "bulk_outlier",
    "confident_log_trace",
    "curvature_factors",
    "euler_factor",
    "homogeneous_factor",
    "largest_base_rate",
    "lower_edge",
    "matched_rate",
    "near_tie_weight",
    "reduced_temperature",
    "spiked_excess",
    "tanh_correction",
    "upper_edge",
]


class CurvatureFactors(NamedTuple):
    r"""Factors of the two parts of the Hessian of a scaled network.

    Attributes
    ----------
    gauss_newton
        :math:`\alpha^{2L-2}/T^2`.
    h_term
        :math:`\alpha^{L-2}/T`.
    """

    gauss_newton: Floats
    h_term: Floats


@closed_form
def curvature_factors(alpha: ArrayLike, *, depth: int, temperature: ArrayLike = 1.0) -> CurvatureFactors:
    r"""Factors of G and of the H-term when all weights are scaled, at fixed probabilities.

    :math:`H' = (\alpha^{2L-2}/T^2)\, G(p') + (\alpha^{L-2}/T)\, \tilde H(p')`, with the derivatives of the logits at
    the unscaled weights and :math:`p' = \mathrm{softmax}(\alpha^L z / T)`. As :math:`\alpha \to 0` the
    probabilities turn uniform, and these are the rates of the two norms; a learning rate
    :math:`\eta_0 \alpha^{2-L}` then keeps its product with the sharpness.

    Parameters
    ----------
    alpha
        :math:`\alpha > 0`.
    depth
        Number L >= 1 of layers with weights.
    temperature
        T > 0.

    Returns
    -------
    Both factors, of the broadcast shape.

    Raises
    ------
    ValueError
        If `alpha` or `temperature` is not positive and finite, or `depth` is not a whole number >= 1; if the result
        overflows.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Section 3, Eq. (5).

    Examples
    --------
    >>> [factor.item() for factor in curvature_factors(2.0, depth=3, temperature=4.0)]
    [1.0, 0.5]
    """
    a, heat, power = _scaled(alpha, depth, temperature)
    # squared last: alpha^(2L-2) may overflow where its ratio to T^2 does not
    return CurvatureFactors(np.square(a ** (power - 1) / heat), a ** (power - 2) / heat)


@closed_form
def reduced_temperature(alpha: ArrayLike, *, depth: int, temperature: ArrayLike = 1.0) -> Floats:
    r"""The one number that the curvature depends on, :math:`T/\alpha^L`.

    :math:`H'(\alpha, T) = \alpha^{-2} H(1, T/\alpha^L)`, so that excess and share of positive eigenvalues of a scaled
    network are those of the unscaled one at this temperature. At :math:`T = \alpha^L` nothing changes.

    Parameters
    ----------
    alpha
        :math:`\alpha > 0`.
    depth
        Number L >= 1 of layers with weights.
    temperature
        T > 0 beside the scaled weights.

    Returns
    -------
    Broadcast shape, in the unit of the temperature.

    Raises
    ------
    ValueError
        If `alpha` or `temperature` is not positive and finite, or `depth` is not a whole number >= 1; if the result
        overflows.

    References
    ----------
    Sharper than Vysogorets, Dawid and Kempe (2024), Section 6 and Fig. 1; it follows from Eq. (5).

    Examples
    --------
    >>> reduced_temperature([0.5, 1.0, 2.0], depth=3)
    array([8.   , 1.   , 0.125])
    """
    a, heat, power = _scaled(alpha, depth, temperature)
    return heat * a**-power


@closed_form
def matched_rate(rate: ArrayLike, *, alpha: ArrayLike, depth: int, temperature: ArrayLike = 1.0) -> Floats:
    r"""Learning rate that leads the scaled network along the same path, :math:`\eta\, \alpha^{2-L}\, T`.

    Exact, also with momentum and for any order of batches, where both networks see the same probabilities: by itself
    at :math:`T = \alpha^L`, which gives :math:`\alpha^2 \eta`; at T = 1 only if they are shared.

    Parameters
    ----------
    rate
        :math:`\eta > 0` of the unscaled network at temperature 1.
    alpha
        :math:`\alpha > 0`.
    depth
        Number L >= 1 of layers with weights.
    temperature
        T > 0 beside the scaled weights.

    Returns
    -------
    Broadcast shape, in the unit of `rate`.

    Raises
    ------
    ValueError
        If `rate`, `alpha` or `temperature` is not positive and finite, or `depth` is not a whole number >= 1; if the
        result overflows.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Sections 3 and 5.

    Examples
    --------
    >>> matched_rate(0.5, alpha=2.0, depth=3, temperature=[1.0, 8.0])
    array([0.25, 2.  ])
    """
    a, heat, power = _scaled(alpha, depth, temperature)
    eta, a, heat = together(rate=(positive, rate), alpha=a, temperature=heat)
    return eta * a ** (2 - power) * heat


@closed_form
def lower_edge(gauss_newton_norm: ArrayLike, h_term_norm: ArrayLike, *, depth: int) -> Floats:
    r"""Scale below which the H-term outweighs G, :math:`(\|\tilde H\| / \|G\|)^{1/L}` at uniform probabilities.

    Where the factors of `curvature_factors` make the two norms equal, at T = 1; the derivatives are those of the
    unscaled network, the probabilities uniform, which they are up to :math:`O(\alpha^L)`.

    Parameters
    ----------
    gauss_newton_norm
        :math:`\|G\| > 0` at uniform probabilities.
    h_term_norm
        :math:`\|\tilde H\| > 0` at uniform probabilities, the same norm: spectral for the criterion of Eq. (6).
    depth
        Number L >= 1 of layers with weights.

    Returns
    -------
    Broadcast shape of the norms.

    Raises
    ------
    ValueError
        If a norm is not positive and finite, or `depth` is not a whole number >= 1; if the result overflows.

    References
    ----------
    Follows from Vysogorets, Dawid and Kempe (2024), Eqs. (5) and (6).

    Examples
    --------
    >>> lower_edge(8.0, 1.0, depth=3)
    np.float64(0.5)
    """
    g, h = together(
        gauss_newton_norm=(positive, gauss_newton_norm),
        h_term_norm=(positive, h_term_norm),
    )
    power = layers("depth", depth)
    # root by root, since the quotient may overflow
    return _root(h, power) / _root(g, power)


@closed_form
def upper_edge(samples: ArrayLike, *, gap_density: ArrayLike, depth: int) -> Floats:
    r"""Scale at which the last sample of a finite set becomes confident, :math:`(N f(0))^{1/L}`.

    There one of the N gaps between the two largest logits is on average below :math:`\alpha^{-L}`. Above it G dies
    exponentially; below it G decays like the H-term (`near_tie_weight`): with more data the zone goes on.

    Parameters
    ----------
    samples
        Number N of samples, a whole number >= 1.
    gap_density
        f(0) > 0, density at zero of the gap between the two largest logits of the unscaled network.
    depth
        Number L >= 1 of layers with weights.

    Returns
    -------
    Broadcast shape of both. Of other edges of the zone, which turn on norms, it is the law of growth alone: they lie
    above it by a factor that depends on the criterion.

    Raises
    ------
    ValueError
        If `samples` is not a whole number >= 1, `gap_density` is not positive and finite, or `depth` is not a whole
        number >= 1; if the result overflows.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024), for whom the zone belongs to the initialisation alone.

    Examples
    --------
    >>> upper_edge([100, 10_000], gap_density=0.25, depth=2)
    array([ 5., 50.])
    """
    n, f = together(samples=(whole, samples), gap_density=(positive, gap_density))
    power = layers("depth", depth)
    # root by root, since N f(0) may overflow
    return _root(n, power) * _root(f, power)


@closed_form
def near_tie_weight(
    alpha: ArrayLike, *, gap_density: ArrayLike, depth: int, temperature: ArrayLike = 1.0
) -> Floats:
    r"""Mean of :math:`p_1 p_2` over a population, :math:`f(0)\, T / (2 \alpha^L)` at large scale.

    Half the mean trace of the softmax covariance, and with the factor of G the reason why its population value decays
    as :math:`\alpha^{L-2}`, no faster than the H-term. Gaps of a density f contribute
    :math:`\int_0^\infty f(g)\, p_1 p_2 \,dg` with :math:`p_1 p_2 = 1/(4\cosh^2(\alpha^L g / 2T))`.

    Parameters
    ----------
    alpha
        :math:`\alpha > 0`, large: the error is of relative order :math:`f'(0) T / (f(0) \alpha^L)`.
    gap_density
        f(0) > 0, density at zero of the gap between the two largest logits of the unscaled network.
    depth
        Number L >= 1 of layers with weights.
    temperature
        T > 0.

    Returns
    -------
    Broadcast shape of all arguments.

    Raises
    ------
    ValueError
        If `alpha`, `gap_density` or `temperature` is not positive and finite, or `depth` is not a whole number >= 1;
        if the result overflows.

    References
    ----------
    Not in Vysogorets, Dawid and Kempe (2024).

    Examples
    --------
    >>> near_tie_weight(10.0, gap_density=0.5, depth=2)
    np.float64(0.0025)
    """
    a, heat, power = _scaled(alpha, depth, temperature)
    f, a, heat = together(gap_density=(positive, gap_density), alpha=a, temperature=heat)
    return 0.5 * f * heat * a**-power


@closed_form
def largest_base_rate(alpha: ArrayLike, *, sharpness: ArrayLike, depth: int) -> Floats:
    r"""Largest base learning rate :math:`\eta_0` of the schedule :math:`\eta_0 \alpha^{2-L}`.

    :math:`2 \alpha^{L-2} / \|H\|`: training has to be stable where it ends, at a sharpness that does not depend on the
    initial scale. Linear in :math:`\alpha` for three layers only.

    Parameters
    ----------
    alpha
        :math:`\alpha > 0` of the initial weights.
    sharpness
        :math:`\|H\| > 0` where training ends.
    depth
        Number L >= 1 of layers with weights.

    Returns
    -------
    Broadcast shape, inverse of the unit of `sharpness`.

    Raises
    ------
    ValueError
        If `alpha` or `sharpness` is not positive and finite, or `depth` is not a whole number >= 1; if the result
        overflows.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Appendix E; as our copy reads, proportional to :math:`\alpha`, which is L = 3.

    Examples
    --------
    >>> largest_base_rate([0.5, 1.0], sharpness=4.0, depth=5)
    array([0.0625, 0.5   ])
    """
    a, h = together(alpha=(positive, alpha), sharpness=(positive, sharpness))
    return 2.0 * a ** (layers("depth", depth) - 2.0) / h


def _scaled(alpha: ArrayLike, depth: int, temperature: ArrayLike) -> tuple[Floats, Floats, float]:
    a, heat = together(alpha=(positive, alpha), temperature=(positive, temperature))
    return a, heat, float(layers("depth", depth))


def _root(x: Floats, degree: int) -> Floats:
    # a power with a rounded exponent loses digits of a large x
    return np.sqrt(x) if degree == 2 else np.cbrt(x) if degree == 3 else x ** (1.0 / degree)


def bulk_outlier(spike: ArrayLike, *, bulk_norm: ArrayLike) -> outliers.Outlier:
    r"""Top eigenvalue of a low-rank G over a semicircle bulk of norm h: it separates at h/2, half the norm.

    :math:`\theta + h^2/(4\theta)` if :math:`\theta > h/2`, else h. That is `theory.outliers.additive_wigner` with
    :math:`\sigma = h/2`.

    Parameters
    ----------
    spike
        Eigenvalue :math:`\theta` of the low-rank matrix, either sign.
    bulk_norm
        :math:`h \ge 0`, spectral norm of the bulk, same unit.

    Returns
    -------
    Eigenvalue, squared overlap of the eigenvectors, threshold, edge and whether it is visible, of the broadcast
    shape.

    Raises
    ------
    ValueError
        If an argument is not finite, or `bulk_norm` is negative.

    References
    ----------
    The transition that Vysogorets, Dawid and Kempe (2024), Section 3, name after Baik, Ben Arous and Peche (2005), who
    found it in sample covariances; here of a Wigner matrix (Peche, 2006).

    Examples
    --------
    >>> bulk_outlier([0.5, 1.0, 2.0], bulk_norm=1.0).eigenvalue
    array([1.   , 1.25 , 2.125])
    """
    return outliers.additive_wigner(spike, sigma=nonnegative("bulk_norm", bulk_norm) / 2.0)


def spiked_excess(spike: ArrayLike, *, rank: ArrayLike, bulk_norm: ArrayLike, dim: ArrayLike) -> Floats:
    r"""Excess of k equal spikes over a semicircle bulk, :math:`k\theta / \sqrt{k\theta^2 + n h^2/4}`.

    The bulk has no trace but :math:`n h^2/4` of squared norm, so that in high dimension it hides spikes of any fixed
    height above it: spectral norms decide nothing, Frobenius norms do.

    Parameters
    ----------
    spike
        :math:`\theta > 0`.
    rank
        Number k of spikes, a whole number from 1 to n.
    bulk_norm
        :math:`h \ge 0`, spectral norm of the bulk, same unit as `spike`.
    dim
        Dimension n, a whole number.

    Returns
    -------
    Broadcast shape of all arguments; up to O(1/n), and without the inner product of the two parts.

    Raises
    ------
    ValueError
        If `spike` is not positive and finite, `bulk_norm` is negative or not finite, `rank` or `dim` is not a whole
        number >= 1, or `rank` exceeds `dim`.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Eq. (6), whose figure has 50 dimensions.

    Examples
    --------
    >>> spiked_excess(2.0, rank=9, bulk_norm=1.0, dim=[50, 5000, 266_200]).round(3)
    array([2.585, 0.502, 0.07 ])
    """
    theta, k, h, n = together(
        spike=(positive, spike),
        rank=(whole, rank),
        bulk_norm=(nonnegative, bulk_norm),
        dim=(whole, dim),
    )
    require(k <= n, "rank", "at most dim", rank)
    largest = np.maximum(theta, h)
    theta, h = theta / largest, h / largest
    # roots first: a rank, a dimension and their products may be as large as floats are
    return np.sqrt(k) * (theta / np.hypot(theta, np.sqrt(n / k) * (h / 2.0)))


@closed_form
def confident_log_trace(
    gaps: ArrayLike,
    squared_slopes: ArrayLike,
    *,
    alpha: ArrayLike,
    depth: int,
    temperature: ArrayLike = 1.0,
) -> Floats:
    r"""Logarithm of the trace of G at large scale, where only two classes of each sample count.

    .. math:: \mathrm{Tr}\, G = \frac{\alpha^{2L-2}}{N T^2} \sum_\mu p_1 p_2\, |\nabla \Delta_\mu|^2, \quad
              p_1 p_2 = \frac{1}{4 \cosh^2(\alpha^L \Delta_\mu / 2T)}

    It falls as :math:`e^{-\alpha^L \Delta/T}` with the smallest gap, and never to zero: floats would have it there.

    Parameters
    ----------
    gaps
        :math:`\Delta_\mu \ge 0`, shape (..., N).
    squared_slopes
        :math:`|\nabla \Delta_\mu|^2 \ge 0` by all weights, or by those of one layer for its block of G, not all zero,
        shape (..., N).
    alpha
        :math:`\alpha > 0`, shape (...).
    depth
        Number L >= 1 of layers with weights.
    temperature
        T > 0, shape (...).

    Returns
    -------
    Shape (...). It leaves out all classes but two: of relative order :math:`e^{-\alpha^L \Delta'/T}` with the gap to
    the third.

    Raises
    ------
    ValueError
        If `gaps` or `squared_slopes` is negative or not finite, or the latter all zero, `alpha` or `temperature` is
        not positive and finite, or `depth` is not a whole number >= 1; if the result overflows.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Section 3, on the collapse of G; the law is not in the paper.

    Examples
    --------
    >>> confident_log_trace([0.5, 0.25], [1.0, 3.0], alpha=10.0, depth=3).round(6)
    np.float64(-240.384195)
    """
    both = together(gaps=(nonnegative, gaps), squared_slopes=(nonnegative, squared_slopes))
    gap, slope = map(np.atleast_1d, both)
    require(
        slope.max(axis=-1, initial=0.0) > 0,
        "squared_slopes",
        "not all zero along the last axis",
        squared_slopes,
    )
    power = layers("depth", depth)
    leading, a, heat = together(
        gaps=gap[..., 0],
        alpha=(positive, alpha),
        temperature=(positive, temperature),
    )
    fits("gaps", 96.0 * leading.size * gap.shape[-1], gap.shape)
    steep = gap * (a ** float(power) / heat)[..., None]
    # log of p_1 p_2, which itself vanishes for large u: -u - 2 log(1 + exp(-u))
    logs = np.log(slope) - steep - 2.0 * np.log1p(np.exp(-steep))
    found = np.logaddexp.reduce(logs, axis=-1) - np.log(gap.shape[-1])
    return found + (2.0 * power - 2.0) * np.log(a) - 2.0 * np.log(heat)


_HIGHEST = 1000  # derivative that anybody takes


@closed_form
def homogeneous_factor(
    alpha: ArrayLike, *, depth: int, order: int = 0, temperature: ArrayLike = 1.0
) -> Floats:
    r"""Factor of the k-th derivatives of the heated logits when all weights are scaled, :math:`\alpha^{L-k}/T`.

    At k = 0 that of the logits over T, and of the loss where :math:`\alpha \gg 1`; at k = 1 that of their gradients,
    and of the gradient of the loss at fixed probabilities; at k = 2 that of their Hessians, and of the H-term.

    Parameters
    ----------
    alpha
        :math:`\alpha > 0`.
    depth
        Number L >= 1 of layers with weights.
    order
        Order k >= 0 of the derivative by the weights, at most 1000.
    temperature
        T > 0.

    Returns
    -------
    Broadcast shape of `alpha` and `temperature`.

    Raises
    ------
    ValueError
        If `alpha` or `temperature` is not positive and finite, `depth` is not a whole number >= 1, or `order` not one
        from 0 to 1000; if the result overflows.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Sections 2 and 3.

    Examples
    --------
    >>> [float(homogeneous_factor(2.0, depth=3, order=k)) for k in range(3)]
    [8.0, 4.0, 2.0]
    """
    a, heat, power = _scaled(alpha, depth, temperature)
    return a ** (power - integer("order", order, least=0, most=_HIGHEST)) / heat


def euler_factor(depth: int, *, order: int = 1) -> float:
    r"""Factor of the k-th derivative of the logits along the weights themselves, :math:`L (L-1) \cdots (L-k+1)`.

    Euler's theorem: :math:`\theta \cdot \nabla z = L z` and :math:`\theta^\top \nabla^2 z\, \theta = L (L - 1) z`. The
    derivative of :math:`\alpha^L` at 1; it vanishes from k = L + 1 on.

    Parameters
    ----------
    depth
        Number L >= 1 of layers with weights.
    order
        Order k >= 0, at most 1000.

    Returns
    -------
    A whole number.

    Raises
    ------
    ValueError
        If `depth` is not a whole number >= 1, or `order` not one from 0 to 1000; if the result overflows.

    References
    ----------
    From the homogeneity of Vysogorets, Dawid and Kempe (2024), Section 2.

    Examples
    --------
    >>> euler_factor(3), euler_factor(5, order=2), euler_factor(1, order=2)
    (3.0, 20.0, 0.0)
    """
    degree = layers("depth", depth)
    found = math.perm(degree, integer("order", order, least=0, most=_HIGHEST))
    require(found < 10**308, "order", "such that the result does not overflow", order)
    return float(found)


@closed_form
def tanh_correction(matrices: Sequence[ArrayLike], x: ArrayLike) -> Floats:
    r"""Leading deviation of a scaled-down tanh network from a homogeneous one, over :math:`\alpha^{L+2}`.

    :math:`\alpha^{-L} f_{\tanh}(\alpha\theta) = W_L \cdots W_1 x - \tfrac{\alpha^2}{3} W_L \cdots W_2 (W_1 x)^3 +
    O(\alpha^4)`, the cube elementwise: this is the second term without its :math:`\alpha^2`. Only the first layer has
    a part in it, the signals of the others being smaller by a factor of :math:`\alpha` and more.

    Parameters
    ----------
    matrices
        Weights :math:`W_1, \ldots, W_L` of shape (out, in), L >= 2, in a list or tuple.
    x
        Inputs, shape (..., n).

    Returns
    -------
    Shape (..., K).

    Raises
    ------
    ValueError
        If there are fewer than two matrices, one is not finite or does not fit the one before, or `x` is not finite or
        does not fit the first; if the result overflows.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Section 2, which has activations with f(0) = 0 almost homogeneous. The
    3 is that of :math:`\tanh u = u - u^3/3 + O(u^5)`.

    Examples
    --------
    >>> tanh_correction([[[3.0]], [[2.0]]], [1.0])
    array([-18.])
    """
    given: Any = matrices
    instance("matrices", given, list | tuple, "a list of matrices")
    require(len(given) >= 2, "matrices", "at least two", len(given))
    first, *others = chain = [finite("matrices", matrix) for matrix in given]
    shapes = [m.shape for m in chain]
    require(all(m.ndim == 2 for m in chain), "matrices", "of shape (out, in)", shapes)
    fitting = all(a.shape[0] == b.shape[1] for a, b in itertools.pairwise(chain))
    require(fitting, "matrices", "each with as many columns as the one before has rows", shapes)
    signals = np.atleast_1d(finite("x", x))
    require(signals.shape[-1] == first.shape[1], "x", f"of shape (..., {first.shape[1]})", signals.shape)
    signals = -((signals @ first.T) ** 3) / 3.0
    for matrix in others:
        signals = signals @ matrix.T
    return signals
