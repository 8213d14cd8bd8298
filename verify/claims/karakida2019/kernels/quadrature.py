"""Karakida, Akaho and Amari (2019): the Gaussian integrals of the order parameters by quadrature.

Gauss-Hermite rules of n nodes cross the kinks of an activation: their errors fall like 1/n, with a sign that depends on
whether n is even, and like n^(-1/2) where the activation jumps. Rules that stop at the kinks converge at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Point
from theory.activations import gaussian_kernels, leaky_relu, single
from verify.claims.karakida2019 import PAPER
from verify.model import AnyClaim, ExactProperty
from verify.model.domains import Between, OneOf

__all__ = ["CLAIMS"]

Array = NDArray[np.float64]

ROOT = math.sqrt(2 * math.pi)


@cache
def gauss_hermite(nodes: int) -> tuple[Array, Array]:
    """Nodes and weights for a standard normal variable."""
    from scipy import special

    x, w = special.roots_hermitenorm(nodes)
    return x, w / ROOT


# --- a pair of pre-activations -------------------------------------------------------------------------------


def _ramp(t: Array) -> Array:
    """E max(t + zeta, 0)."""
    from scipy import special

    return t * special.ndtr(t) + np.exp(-0.5 * t**2) / ROOT


MEANS: dict[str, Callable[[Array, float], Array]] = {
    "relu": lambda x, s: s * _ramp(x / s),
    "absolute value": lambda x, s: s * (_ramp(x / s) + _ramp(-x / s)),
    "hard_tanh": lambda x, s: s * (_ramp((x + 1) / s) - _ramp((x - 1) / s)) - 1,
}
"""E phi(x + s zeta), in closed form."""

SMOOTH = ("tanh", "softplus", "sigmoid")


def _activation(name: str) -> Any:
    return leaky_relu(-1.0) if name == "absolute value" else single(name)


def _normal_sum(step: float) -> tuple[NDArray[Any], NDArray[Any]]:
    x = step * np.arange(-int(9 / step), int(9 / step) + 1)
    return x, step * np.exp(-0.5 * x**2) / ROOT


def _reference(p: Point) -> float:
    """Overlap by a plain sum: over the shared part of the inputs if phi has kinks, else over the plane."""
    b, d = p.variance * p.correlation, p.variance * (1 - p.correlation)
    if p.activation in MEANS:
        z, w = _normal_sum(0.25 * min(1.0, math.sqrt(d / b)) if b > 0 else 0.25)
        return float(w @ MEANS[p.activation](math.sqrt(b) * z, math.sqrt(d)) ** 2)
    z, w = _normal_sum(0.2 / max(1.0, math.sqrt(p.variance)))
    phi = _activation(p.activation).function
    # grids of the same step in half the sum and half the difference, which are independent
    plus, minus = math.sqrt(p.variance - 0.5 * d) * z[:, None], math.sqrt(0.5 * d) * z
    return float(w @ (phi(plus + minus) * phi(plus - minus)) @ w)


def _kernel_error(p: Point) -> float:
    """Relative to the second moment, as an overlap may vanish."""
    pair = (p.variance, p.variance * p.correlation, p.variance * (1 - p.correlation))
    moments = gaussian_kernels(_activation(p.activation)).value(*pair)
    return abs(float(moments.overlap) - _reference(p)) / float(moments.moment)


def _hermite_error(p: Point, nodes: int) -> float:
    x, w = gauss_hermite(nodes)
    scale, c = math.sqrt(p.variance), p.correlation
    phi = _activation(p.activation).function
    pair = phi(scale * x[:, None]) * phi(scale * (c * x[:, None] + math.sqrt(1 - c * c) * x))
    return abs(float(w @ pair @ w) - _reference(p)) / float(w @ phi(scale * x) ** 2)


PANELS = ExactProperty(
    id="karakida2019/kernels-by-quadrature",
    entries=("C59", "C5"),
    source=f"{PAPER}, section 2.2, the integral I_phi",
    statement=r"I_\phi[a, b] = \int Dz \Big(\int D\zeta\, \phi(\sqrt b z + \sqrt{a - b}\, \zeta)\Big)^2 "
    r"\text{ to } 10^{-12} E\phi^2 \text{, with kinks or without}",
    says="The averages of activations over two correlated Gaussians agree with independent integration, for "
    "activation functions with kinks as for smooth ones.",
    domain={
        "activation": OneOf(*MEANS, *SMOOTH),
        "variance": Between(0.05, 12.0),
        "correlation": Between(0.0, 0.98),
    },
    violation=lambda _, p: _kernel_error(p),
    examples=(
        Point(activation="hard_tanh", variance=3.64, correlation=0.6),
        Point(activation="tanh", variance=9.7, correlation=0.3),
        Point(activation="relu", variance=1.3, correlation=0.9),
    ),
    tolerance=1e-12,
    tolerance_reason="the promised accuracy of the kernels",
    rivals={
        "Gauss-Hermite of 25 nodes": lambda _, p: _hermite_error(p, 25),
        "Gauss-Hermite of 200 nodes": lambda _, p: _hermite_error(p, 200),
    },
    seconds=0.017,
)

# --- what fluctuates, and bends, at kinks --------------------------------------------------------------------


def _clipped(x: Array, s: float) -> tuple[Array, Array, Array]:
    """Variance of phi, mean of phi' and covariance of both at x + s zeta, for phi that clips at -1 and 1."""
    from scipy import special

    low, high = (-1 - x) / s, (1 - x) / s
    inside = special.ndtr(high) - special.ndtr(low)
    at_low, at_high = (np.exp(-0.5 * t**2) / ROOT for t in (low, high))
    first = x * inside + s * (at_low - at_high)
    second = (
        (x * x + s * s) * inside + 2 * x * s * (at_low - at_high) + s * s * (low * at_low - high * at_high)
    )
    mean = MEANS["hard_tanh"](x, s)
    return second + 1 - inside - mean**2, inside, first - mean * inside


def _density_of_pair(x: float, y: float, variance: float, covariance: float) -> float:
    det = variance**2 - covariance**2
    form = (variance * (x * x + y * y) - 2 * covariance * x * y) / det
    return math.exp(-0.5 * form) / (2 * math.pi * math.sqrt(det))


def _kinked(x: Array, s: float, slope: float) -> dict[str, Array]:
    """What the fluctuations average, squared, at x + s zeta, for a leaky ReLU, by Stein's lemma."""
    from scipy import special

    t, jump = x / s, 1 - slope
    positive, density, ramp = special.ndtr(t), np.exp(-0.5 * t**2) / ROOT, _ramp(t)
    of_ramp = (1 + t**2) * positive + t * density - ramp**2
    return {
        "value": s * s * (slope**2 + 2 * slope * jump * positive + jump**2 * of_ramp),
        "derivative": jump**2 * (positive - positive**2),
        "square": slope**2 + (1 - slope**2) * positive,
        "cross": s * jump * (slope * density + jump * (ramp - ramp * positive)),
    }


def _bent(p: Point, slope: float) -> float:
    """E phi'' phi'' of two pre-activations: a plain sum for erf, at the one kink of a leaky ReLU."""
    b, d = p.variance * p.correlation, p.variance * (1 - p.correlation)
    if p.activation == "leaky_relu":
        return (1 - slope) ** 2 * _density_of_pair(0.0, 0.0, p.variance, b)
    z, w = _normal_sum(0.1)
    plus, minus = math.sqrt(p.variance - 0.5 * d) * z[:, None], math.sqrt(0.5 * d) * z
    one, other = (-4 / math.sqrt(math.pi) * x * np.exp(-(x**2)) for x in (plus + minus, plus - minus))
    return float(w @ (one * other) @ w)


def closed_forms(_: np.random.Generator, p: Point) -> Mapping[str, Any]:
    """The overlap of the second derivatives of leaky ReLU and erf, and what fluctuates of a leaky ReLU."""
    b, d = p.variance * p.correlation, p.variance * (1 - p.correlation)
    slope = p.get("slope", 0.0)
    kinked = p.activation == "leaky_relu"
    kernels = gaussian_kernels(leaky_relu(slope) if kinked else single(p.activation))
    found, plain = [kernels.curvature(p.variance, b, d)], [_bent(p, slope)]
    if kinked:
        z, w = _normal_sum(0.25 * min(1.0, math.sqrt(d / b)))
        rows = _kinked(math.sqrt(b) * z, math.sqrt(d), slope)
        rows["mixed"] = np.sqrt(rows["derivative"] * rows["square"])
        found += [kernels.fluctuations(b, d)._asdict()[name] for name in rows]
        plain += [float(w @ row**2) for row in rows.values()]
    uncorrelated = _bent(Point(**{**dict(p), "correlation": 0.0}), slope)
    return {
        "kernels": np.array(found),
        "plain sum": np.array(plain),
        "two independent inputs": np.array([uncorrelated, *plain[1:]]),
        "1 % more": 1.01 * np.array(plain),
    }


CLAIMS: tuple[AnyClaim, ...] = PANELS
