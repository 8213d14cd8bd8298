"""Closed forms of `verify.claims.karakida2019.kernels.criticality`."""

from functools import cache

import numpy as np
from scipy import special

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import KERNEL_OF, NODES, WEIGHTS, ClosedForm, Quantity

__all__ = ["FORMS", "WITHOUT_FORM"]


@cache
def _fixed_point(activation: str, weight_variance: float, bias_variance: float) -> tuple[float, float]:
    """Variance and covariance after so many layers that they do not move any more."""
    value = KERNEL_OF["average"][activation]
    q, c = np.array([1.3]), np.array([0.7])
    for _ in range(600):
        q, c = (weight_variance * value(q, x) + bias_variance for x in (q, c))
    return float(q[0]), float(c[0])


def _at_fixed_point(p: Point) -> tuple[float, float]:
    return _fixed_point(p["activation"], p["weight_variance"], p["bias_variance"])


def _slope(p: Point, *, near: bool) -> float:
    """E phi' phi' at the fixed point of the variance, for one input or at the fixed point of the covariance."""
    q, c = (np.array([x]) for x in _at_fixed_point(p))
    return float(KERNEL_OF["average_slope"][p["activation"]](q, q if near else c)[0])


def _growth(p: Point) -> float:
    """E u phi phi' / q."""
    q = _at_fixed_point(p)[0]
    u = np.sqrt(q) * NODES
    phi, slope = {
        "tanh": (np.tanh(u), 1 - np.tanh(u) ** 2),
        "erf": (special.erf(u), 2 / np.sqrt(np.pi) * np.exp(-(u**2))),
    }[p["activation"]]
    return float((u * phi * slope) @ WEIGHTS / q)


NEAR: dict[str, Quantity] = {"slope": lambda p: _slope(p, near=True)}
APART: dict[str, Quantity] = {"slope": lambda p: _slope(p, near=False)}


def _over_layers(weight_variance, slope, steps):
    return (weight_variance * slope) ** steps


FORMS: dict[str, ClosedForm] = {
    "karakida2019/depth-of-distances": ClosedForm(_over_layers, NEAR),
    "karakida2019/distances-in-chaos": ClosedForm(_over_layers, NEAR),
    "karakida2019/depth-of-overlaps": ClosedForm(_over_layers, APART),
    "karakida2019/depth-of-variances": ClosedForm(
        lambda weight_variance, growth: weight_variance * growth, {"growth": _growth}
    ),
}

WITHOUT_FORM = {"karakida2019/phases": "a phase: its rivals are the other one, and another critical line"}
