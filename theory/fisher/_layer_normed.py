"""A wide random network whose hidden layers are normalised over their units, as one with other activations.

Dividing a wide layer by the root of its variance q makes phi(u) into phi(u/sqrt(q)), a function whose Gaussian
averages are those of phi at variance 1. The mean over the units, which is subtracted as well, vanishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory._initialisation import Initialisation
from theory.activations import Activation, gaussian_kernels
from theory.activations.gaussian import Fluctuations, Kernels, Moments
from theory.fisher._wide import Activations, Network, differentiable

__all__ = [
    "UnitVariance",
    "normalised_network",
    "normalised_outputs",
    "table_of_outputs",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class UnitVariance(Kernels):
    """Averages of phi(u/sqrt(q)), q the variance of u: an activation after normalisation of a wide layer."""

    base: Kernels

    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        return self.base.value(*_correlation(variance, covariance, gap))

    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        found = self.base.derivative(*_correlation(variance, covariance, gap))
        return Moments(*(x / variance for x in found))

    def curvature(self, variance: float, covariance: float, gap: float) -> float:
        return self.base.curvature(*_correlation(variance, covariance, gap)) / variance / variance

    def fluctuations(self, covariance: float, gap: float) -> Fluctuations:
        q = covariance + gap
        value, derivative, mixed, square, cross = self.base.fluctuations(
            *_correlation(q, covariance, gap)[1:]
        )
        return Fluctuations(value, derivative / q / q, mixed / q / q, square / q / q, cross / q)


def _correlation(variance: float, covariance: float, gap: float) -> tuple[float, float, float]:
    rule = "such that every layer has a variance to divide by"
    _checks.require(variance > 0, "weight_variance, bias_variance", rule, variance)
    return 1.0, covariance / variance, gap / variance


def normalised_network(
    activation: Activations,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None,
) -> Network:
    layers = _checks.layers("depth", depth, least=2)
    given = differentiable(activation, layers - 1)
    normalised = {id(a): _normalising(a) for a in {id(a): a for a in given}.values()}
    drawn = Initialisation.checked(weight_variance, bias_variance).over_power_of_two()
    return Network([normalised[id(a)] for a in given], layers, *drawn, width_ratios)


def _normalising(activation: Activation) -> Activation:
    kernels = UnitVariance(gaussian_kernels(activation))
    return Activation(activation.name, activation.function, activation.derivative, kernels=kernels)


def normalised_outputs(preactivations: ArrayLike) -> tuple[Floats, Floats]:
    """Outputs f of variance 1 over the units of each sample, and 1/sigma^2."""
    u = table_of_outputs(preactivations)
    deviation = u - u.mean(axis=1, keepdims=True)
    size = np.abs(deviation).max(axis=1, keepdims=True)  # taken out first: no square of it overflows
    _checks.require(size > 0, "preactivations", "different within each sample", preactivations)
    root = np.sqrt(((deviation / size) ** 2).mean(axis=1, keepdims=True))
    with np.errstate(over="ignore"):
        precision = (1 / root / size) ** 2
    _checks.representable(precision, preactivations=preactivations)
    rule = "of a variance whose inverse does not vanish"
    _checks.require(precision.max() > 0, "preactivations", rule, preactivations)
    return deviation / size / root, precision[:, 0]


def table_of_outputs(preactivations: ArrayLike) -> Floats:
    u = _checks.finite("preactivations", preactivations)
    _checks.require(u.ndim == 2 and u.size > 0, "preactivations", "of shape (samples, outputs)", u.shape)
    _checks.require(np.abs(u) < 1e300, "preactivations", "below 1e300", preactivations)
    _checks.fits("preactivations", 32 * u.shape[1] ** 2, u.shape)
    return u
