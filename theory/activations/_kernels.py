"""Gaussian averages of one activation: the record of moments, the interface, and the checks of a pair's arguments."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from theory._checks import finite, nonnegative, require, scalar

__all__ = [
    "ConvergenceError",
    "Fluctuations",
    "KeptKernels",
    "Kernels",
    "Moments",
    "pair_arguments",
    "share_arguments",
]


class ConvergenceError(ArithmeticError):
    """A tolerance was not reached; `estimate` is the best value found (None if there is none).

    >>> ConvergenceError("no", estimate=0.5).estimate
    0.5
    """

    def __init__(self, message: str, *, estimate: Any = None) -> None:
        super().__init__(message)
        self.estimate = estimate


class Moments(NamedTuple):
    """Second moments of one function of a Gaussian pair."""

    moment: Any
    overlap: Any
    gap: Any


class Fluctuations(NamedTuple):
    """Averages of V^2, A^2, A B, B^2, C^2: V = Var phi, A = Var phi', B = E phi'^2, C = Cov(phi, phi').

    These are taken over zeta, given z.
    """

    value: float
    derivative: float
    mixed: float
    square: float
    cross: float


class Kernels(ABC):
    """Gaussian averages of one activation; abs(`covariance`) <= `variance`, `gap` is their difference.

    All kernels of this package refuse other numbers with a ``ValueError``; averages larger than any float are
    infinite.
    """

    @abstractmethod
    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the activation itself."""

    @abstractmethod
    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of its derivative."""

    @abstractmethod
    def curvature(self, variance: float, covariance: float, gap: float) -> float:
        """Overlap of the second derivative (in the sense of distributions at a kink)."""

    @abstractmethod
    def fluctuations(self, covariance: float, gap: float) -> Fluctuations:
        """Squared conditional variances, averaged; `covariance` >= 0."""


@dataclass(frozen=True)
class KeptKernels(Kernels):
    """Averages of an activation whose values never change: one that was asked for is not averaged again.

    A curve over widths, samples or layers asks for the same ones at every point.
    """

    of: Kernels

    def value(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of the activation itself."""
        return _kept(self.of.value, variance, covariance, gap)

    def derivative(self, variance: float, covariance: float, gap: float) -> Moments:
        """Moments of its derivative."""
        return _kept(self.of.derivative, variance, covariance, gap)

    def curvature(self, variance: float, covariance: float, gap: float) -> float:
        """Overlap of the second derivative."""
        return _kept(self.of.curvature, variance, covariance, gap)

    def fluctuations(self, covariance: float, gap: float) -> Fluctuations:
        """Squared conditional variances, averaged."""
        return _kept(self.of.fluctuations, covariance, gap)


def _kept(average: Callable[..., Any], *arguments: Any) -> Any:
    plain = all(
        isinstance(number, float) for number in arguments
    )  # others cannot be told apart, or are refused
    return _remembered(average, *arguments) if plain else average(*arguments)


@lru_cache(maxsize=1 << 14)
def _remembered(average: Callable[..., Any], *arguments: float) -> Any:
    return average(*arguments)


def pair_arguments(variance: Any, covariance: Any, gap: Any) -> tuple[float, float, float]:
    """The arguments as floats that belong together, up to the rounding of a long recursion."""
    a = _number("variance", variance)
    b = (
        covariance + 0.0
        if isinstance(covariance, float)
        else scalar("covariance", finite("covariance", covariance))
    )
    d = _number("gap", gap)
    slack = 1e-8 * a + 1e-320
    require(abs(b) <= a + slack, "covariance", "between -variance and variance", covariance)
    require(abs((a - b) - d) <= slack, "gap", "variance - covariance", gap)
    return a, min(max(b, -a), a), min(d, 2 * a)


def share_arguments(covariance: Any, gap: Any) -> tuple[float, float]:
    """The shared and the own part of a variance, as floats."""
    return _number("covariance", covariance), _number("gap", gap)


def _number(name: str, value: Any) -> float:
    """One number >= 0 whose small multiples do not overflow."""
    number = value + 0.0 if isinstance(value, float) else scalar(name, nonnegative(name, value))  # no -0.0
    require(number >= 0 and 8 * number < math.inf, name, "non-negative, finite and below 2e307", value)
    return number
