"""Gaussian averages in closed form: rectifiers (the arc-cosine kernels) and erf (the arc-sine kernel)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from theory._checks import finite, require, scalar
from theory.activations._kernels import Fluctuations, Kernels, Moments, pair_arguments, share_arguments
from theory.activations._quadrature import NumericalKernels

__all__ = ["Erf", "PiecewiseLinear"]

Floats = NDArray[np.float64]

_STEEPEST = 1e75  # fourth powers of a slope stay in range


@dataclass(frozen=True)
class PiecewiseLinear(Kernels):
    r"""x for x > 0 and `slope` x for x < 0: arc-cosine kernels, written so that no digit cancels.

    With :math:`\cos\theta = b/a`, :math:`\beta = \pi - \theta`, :math:`g(x) = \sin x - x \cos x`,
    :math:`e = (1 - s)^2/4`, :math:`o = (1 + s)^2/4`:
    :math:`I_\phi = (o - e) b + 2 e a\, g(\beta)/\pi`, the gap is :math:`(o + e) d - 2 e a\, g(\theta)/\pi`,
    :math:`I_{\phi'} = o - e + 2 e \beta/\pi`, its gap is :math:`2 e \theta/\pi`.

    References
    ----------
    Karakida, Akaho and Amari (2019), eqs. (5) and (7), evaluated for ReLU (slope 0).

    Examples
    --------
    >>> round(PiecewiseLinear(0.0).value(2.0, 0.0, 2.0).overlap * np.pi, 12)
    1.0
    """

    slope: float

    def __post_init__(self) -> None:
        slope = scalar("slope", finite("slope", self.slope))
        require(abs(slope) <= _STEEPEST, "slope", f"at most {_STEEPEST:g} in size", self.slope)

    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the activation itself."""
        variance, covariance, gap = pair_arguments(variance, covariance, gap)
        o, e = self._parts()
        both = o + e  # a common factor, so that only the results may overflow
        scale = 2 * (e / both) * variance / math.pi
        theta, beta = _angles(variance, covariance, gap)
        overlap = self.slope / both * covariance + scale * _sine_excess(beta)
        difference = gap - scale * _sine_excess(theta)
        return Moments(both * variance, both * overlap, both * max(difference, 0.0))

    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the derivative; at variance 0 the average over the two sides of the kink."""
        variance, covariance, gap = pair_arguments(variance, covariance, gap)
        o, e = self._parts()
        theta, beta = _angles(variance, covariance, gap)
        return Moments(o + e, self.slope + 2 * e * beta / math.pi, 2 * e * theta / math.pi)

    def curvature(self, variance: float, covariance: float, gap: float) -> float:
        """Overlap of the second derivative, a Dirac delta of weight 1 - slope; needs two different inputs."""
        variance, covariance, gap = pair_arguments(variance, covariance, gap)
        _, e = self._parts()
        if e == 0:
            return 0.0
        require(gap > 0, "gap", "positive for an activation with a kink", gap)
        require(
            variance + covariance > 0,
            "covariance",
            "above -variance for an activation with a kink",
            covariance,
        )
        return 2 * e / math.pi / math.sqrt(gap) / math.sqrt(variance + covariance)

    def fluctuations(self, covariance: float, gap: float) -> Fluctuations:
        """Squared conditional variances, averaged; `covariance` >= 0."""
        covariance, gap = share_arguments(covariance, gap)
        if not gap > 0:
            square = 0.5 * (1 + self.slope**4)
            return Fluctuations(0.0, 0.0, 0.0, square, 0.0)
        t, weights = _kink_rule(covariance, gap)
        value, derivative, square, cross = _kinked_moments(t, self.slope)
        rows = np.array([value**2, derivative**2, derivative * square, square**2, cross**2])
        value2, derivative2, mixed, square2, cross2 = (rows @ weights).tolist()
        return Fluctuations(value2 * gap * gap, derivative2, mixed, square2, cross2 * gap)

    def _parts(self) -> tuple[float, float]:
        """Weights o and e of the odd (linear) and the even part of the activation, squared."""
        return (0.5 * (1 + self.slope)) ** 2, (0.5 * (1 - self.slope)) ** 2


def _angles(variance: float, covariance: float, gap: float) -> tuple[float, float]:
    """Angle between the inputs and its supplement, from the smaller one: arccos would lose it."""
    if variance == 0:
        return 0.0, math.pi
    small = 2 * math.asin(math.sqrt(max(min(gap, variance + covariance), 0.0) / variance / 2))
    return (small, math.pi - small) if covariance >= 0 else (math.pi - small, small)


def _sine_excess(x: float) -> float:
    """Difference sin x - x cos x, by its series where the two terms cancel."""
    if x >= 0.2:
        return math.sin(x) - x * math.cos(x)
    y = x * x
    return x * y * (1 / 3 - y * (1 / 30 - y * (1 / 840 - y * (1 / 45360 - y / 3991680))))


def _kink_rule(covariance: float, gap: float, step: float = 0.05) -> tuple[Floats, Floats]:
    """Nodes t = sqrt(b) z / sqrt(d) and weights over z, resolving the kink's scale sqrt(d/b) as well as 1."""
    ratio = min(math.sqrt(covariance) / math.sqrt(gap), 1e150)
    core = min(1.0, 1 / ratio) if ratio > 0 else 1.0
    n = math.ceil(math.asinh(10.0 / core) / step)
    x = step * np.arange(-n, n + 1, dtype=np.float64)
    z = core * np.sinh(x)
    weights = step * core * np.cosh(x) * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    return np.clip(ratio * z, -40.0, 40.0), weights  # beyond 40 all is saturated


def _kinked_moments(t: Floats, slope: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Var phi, Var phi', E phi'^2, Cov(phi, phi') of a leaky ReLU at N(t, 1)."""
    ndtr: Callable[[Floats], Floats] = import_module("scipy.special").ndtr
    p, q, density = ndtr(t), ndtr(-t), np.exp(-0.5 * t**2) / math.sqrt(2 * math.pi)
    jump = 1 - slope
    # relu(u) = u + relu(-u) carries the variance from the negative side, where nothing cancels
    below = -np.abs(t)
    tail = ndtr(below)
    mean = below * tail + density
    variance = (1 + below**2) * tail + below * density - mean**2
    relu = np.where(t > 0, 1 - 2 * q, 0.0) + np.maximum(variance, 0.0)
    value = slope**2 + 2 * slope * jump * p + jump**2 * relu
    rectified: Floats = np.where(t > 0, (t * p + density) * q, mean * q)
    cross = slope * jump * density + jump**2 * rectified
    return value, jump**2 * p * q, p + slope**2 * q, cross


@dataclass(frozen=True)
class Erf(NumericalKernels):
    r"""Closed forms for erf: :math:`I_\phi = \frac 2\pi \arcsin\frac{2b}{1 + 2a}`, as arctangents.

    References
    ----------
    Karakida, Akaho and Amari (2019), eqs. (5) and (7), evaluated for erf.
    """

    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of erf."""
        a, b, gap = pair_arguments(variance, covariance, gap)
        own, cross = _erf_roots(a, b, gap)
        moment, overlap = (2 / math.pi * math.atan2(2 * x, s) for x, s in ((a, own), (b, cross)))
        if b < 0 or a == 0:
            return Moments(moment, overlap, moment - overlap)
        # sine and cosine of the difference of the two arcsines, safe from overflow
        share, top = a / (a + b), 1 + 2 * a
        sine = 2 * gap / (share * cross + (1 - share) * own)
        cosine = (own / top) * (cross / top) + 4 * (a / top) * (b / top)
        return Moments(moment, overlap, 2 / math.pi * math.atan2(sine, cosine))

    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the derivative."""
        variance, covariance, gap = pair_arguments(variance, covariance, gap)
        own, cross = _erf_roots(variance, covariance, gap)
        difference = 4 * (gap / own) * ((variance + covariance) / cross) / (own + cross)
        return Moments(*(4 / math.pi * x for x in (1 / own, 1 / cross, difference)))

    def curvature(self, variance: float, covariance: float, gap: float) -> float:
        """Overlap of the second derivative."""
        variance, covariance, gap = pair_arguments(variance, covariance, gap)
        cross = _erf_roots(variance, covariance, gap)[1]
        return 16 / math.pi * (covariance / cross) / cross / cross


def _erf_roots(a: float, b: float, d: float) -> tuple[float, float]:
    """Roots of (1 + 2a)^2 - 4a^2 and (1 + 2a)^2 - 4b^2."""
    return math.sqrt(1 + 4 * a), math.sqrt(1 + 2 * d) * math.sqrt(1 + 2 * (a + b))
