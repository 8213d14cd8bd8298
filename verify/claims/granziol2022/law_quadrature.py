"""Transforms of spectra by quadrature: from the density of a law alone, none of its closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Point
from theory.rmt import MarchenkoPastur, Semicircle

__all__ = ["QUADRATURE", "inverse", "law_at", "masses", "root", "root_above", "transform"]

Array = NDArray[Any]

Law = Semicircle | MarchenkoPastur

STEPS = 4000

QUADRATURE = "trapezoids in the angle, which converge geometrically off the spectrum; a root to rounding"
"""The reason for a tolerance on what is found here."""


def law_at(p: Point) -> Law:
    """The semicircle, or the law of Wishart noise where the point has a ratio."""
    return (
        MarchenkoPastur(q=p.ratio, variance=p.variance) if "ratio" in p else Semicircle(variance=p.variance)
    )


def masses(law: Law) -> tuple[Array, Array]:
    """Points of the spectrum with their masses; an atom at 0 is the last of them."""
    low, high = law.edges
    angle = (np.arange(STEPS) + 0.5) * np.pi / STEPS
    x = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    mass = law.pdf(x) * (high - low) / 2 * np.sin(angle) * np.pi / STEPS
    return np.append(x, 0.0), np.append(mass, law.atom)


def transform(law: Law, z: Any, power: int = 1) -> Any:
    """Integral of rho(x) / (z - x)^power, of the shape of z."""
    x, mass = masses(law)
    return (mass / (np.asarray(z)[..., None] - x) ** power).sum(axis=-1)


def inverse(law: Law, values: Any) -> Array:
    """Where above the spectrum the transform takes these values."""
    return np.array([root_above(law, lambda z, at=at: transform(law, z) - at) for at in values])


def root_above(law: Law, function: Callable[[float], float]) -> float:
    """Where a function changes sign above the spectrum."""
    edge = law.edges[1]
    return root(function, edge * (1 + 1e-3), edge * 1e4)


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function changes sign between two numbers."""
    from scipy import optimize

    solver: Any = optimize
    return float(solver.brentq(function, low, high, xtol=1e-14, rtol=1e-14))
