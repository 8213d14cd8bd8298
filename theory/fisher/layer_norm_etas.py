r"""Variances of the outputs of wide networks over their units: the averages that layer normalisation makes of them.

======================  =======================================================================================
name                    symbol (Karakida, Akaho and Amari 2019, Section 4)
======================  =======================================================================================
``preactivations``      :math:`u^L_k(t)`, outputs before the last normalisation, shape (T, C)
``eta1, eta2, eta3``    :math:`\eta_1, \eta_2, \eta_3` as `theory.fisher.layer_normalisation` defines them
======================  =======================================================================================

The other names are those of `theory.fisher`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory._initialisation import Initialisation
from theory.fisher._layer_normed import normalised_network, normalised_outputs
from theory.fisher._wide import Activations, Network

__all__ = [
    "Etas",
    "ExpectedEtas",
    "expected_etas",
    "inverse_variance_cdf",
    "realised_etas",
]

Floats = NDArray[np.float64]

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
    f, precision = normalised_outputs(preactivations)
    # r_st^2 by the C x C matrix of second moments: no T x T matrix
    moments = (f * precision[:, None]).T @ f / f.shape[1]
    with np.errstate(over="ignore"):
        etas = precision.mean(), (precision**2).mean(), np.linalg.norm(moments) / len(f)
    return Etas(*(_checks.representable(np.asarray(x), preactivations=preactivations) for x in etas))


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
    network = normalised_network(activation, depth, weight_variance, bias_variance, None)
    t, c = _checks.count("samples", samples), _checks.count("outputs", outputs)
    variance, gap = _output_moments(network, Initialisation.checked(weight_variance, bias_variance))
    if c <= 3:
        return ExpectedEtas(*(math.inf for _ in range(4)))
    one = float(_checks.representable(np.float64(c / (c - 3) / variance), weight_variance=weight_variance))
    if c <= 5:
        return ExpectedEtas(one, math.inf, math.inf, math.inf)
    own = one * one * ((c - 3) / (c - 5))
    pairs = [one * one * factor for factor in _pair_factors(0.5 * (c - 1), gap)]
    squares = [own / t + (t - 1) / t * pair for pair in pairs]
    values = _checks.representable(np.array([one, own, *squares]), weight_variance=weight_variance)
    return ExpectedEtas(*values.tolist())


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
    y = np.maximum(_checks.within("value", value, -math.inf, math.inf), 0.0)
    c = _checks.integer("outputs", outputs, least=2, most=2**63 - 1)
    network = normalised_network(activation, depth, weight_variance, bias_variance, None)
    variance, _ = _output_moments(network, Initialisation.checked(weight_variance, bias_variance))
    gammaincc: Callable[..., Floats] = import_module("scipy.special").gammaincc
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return gammaincc(0.5 * (c - 1), 0.5 * c / (variance * y))


# --- expectations --------------------------------------------------------------------------------------------


def _output_moments(network: Network, drawn: Initialisation) -> tuple[float, float]:
    """Variance of an output before its normalisation; one less its squared correlation between two samples."""
    own, gap = network.moments.q_hat_t[-1], network.moments.forward_gap[-1]
    variance = drawn.weight * own + drawn.bias
    network.require_finite(variance)
    rule = "such that the variance of an output does not vanish"
    _checks.require(variance > 0, "weight_variance, bias_variance", rule, tuple(drawn))
    w, b = network.drawn
    part = w * gap / (w * own + b)
    return variance, part * (2 - part)


def _pair_factors(a: float, gap: float) -> tuple[float, float]:
    """Expectations for two samples over those of independent ones, without and with the squared overlap.

    Both series in x = 1 - gap are integrals of w^(a - 2) and w^(a - 1) over [0, 1]; in s = -(a - 1) log w they
    have an exponential weight, for which a double exponential substitution converges to rounding.
    """
    t = _STEP * np.arange(-130, 190)
    s = np.exp(t - np.exp(-t))
    weights = _STEP * s * (1 + np.exp(-t)) * np.exp(-s)
    w, rest = np.exp(-s / (a - 1)), -np.expm1(-s / (a - 1))
    x, denominator = 1 - gap, gap + (1 - gap) * w
    slope = ((a - 1.25) ** 2 + 0.4375) * x  # a^2 - 5a/2 + 2
    overlaps = w / (a - 1) * (0.5 / denominator + slope * rest / denominator**2)
    return float(weights @ (1 / denominator)), float(weights @ overlaps)
