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
the Hessian of its cross-entropy; `theory.gauss_newton.hessian_excess` joins their excesses. The last six stand in
`theory.zone.bulk`, `theory.zone.homogeneity` and `theory.zone.confident`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory.zone.bulk import bulk_outlier, spiked_excess
from theory.zone.confident import confident_log_trace
from theory.zone.homogeneity import euler_factor, homogeneous_factor, tanh_correction

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

Floats = NDArray[np.float64]


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


@np.errstate(over="ignore")
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
    found = np.square(a ** (power - 1) / heat), a ** (power - 2) / heat
    named = {"alpha": alpha, "depth": depth, "temperature": temperature}
    return CurvatureFactors(*(_checks.representable(factor, **named) for factor in found))


@np.errstate(over="ignore")
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
    return _checks.representable(heat * a**-power, alpha=alpha, depth=depth, temperature=temperature)


@np.errstate(over="ignore", invalid="ignore")
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
    eta = _checks.positive("rate", rate)
    a, heat, power = _scaled(alpha, depth, temperature)
    eta, a, heat = _checks.together(rate=eta, alpha=a, temperature=heat)
    named = {"rate": rate, "alpha": alpha, "depth": depth, "temperature": temperature}
    return _checks.representable(eta * a ** (2 - power) * heat, **named)


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
    g, h = _checks.together(
        gauss_newton_norm=_checks.positive("gauss_newton_norm", gauss_newton_norm),
        h_term_norm=_checks.positive("h_term_norm", h_term_norm),
    )
    power = _checks.layers("depth", depth, least=1)
    with np.errstate(over="ignore"):
        found = _root(h, power) / _root(g, power)
    return _checks.representable(found, gauss_newton_norm=gauss_newton_norm, h_term_norm=h_term_norm)


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
    n, f = _checks.together(
        samples=_checks.whole("samples", samples), gap_density=_checks.positive("gap_density", gap_density)
    )
    power = _checks.layers("depth", depth, least=1)
    with np.errstate(over="ignore"):
        found = _root(n, power) * _root(f, power)
    return _checks.representable(found, samples=samples, gap_density=gap_density)


@np.errstate(over="ignore", invalid="ignore")
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
    f, a, heat = _checks.together(
        gap_density=_checks.positive("gap_density", gap_density), alpha=a, temperature=heat
    )
    named = {"alpha": alpha, "gap_density": gap_density, "depth": depth, "temperature": temperature}
    return _checks.representable(0.5 * f * heat * a**-power, **named)


@np.errstate(over="ignore")
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
    a, h = _checks.together(
        alpha=_checks.positive("alpha", alpha), sharpness=_checks.positive("sharpness", sharpness)
    )
    power = _checks.layers("depth", depth, least=1)
    found = 2.0 * a ** (power - 2.0) / h
    return _checks.representable(found, alpha=alpha, sharpness=sharpness, depth=depth)


def _scaled(alpha: ArrayLike, depth: int, temperature: ArrayLike) -> tuple[Floats, Floats, float]:
    a, heat = _checks.together(
        alpha=_checks.positive("alpha", alpha), temperature=_checks.positive("temperature", temperature)
    )
    return a, heat, float(_checks.layers("depth", depth, least=1))


def _root(x: Floats, degree: int) -> Floats:
    return np.sqrt(x) if degree == 2 else np.cbrt(x) if degree == 3 else x ** (1.0 / degree)
