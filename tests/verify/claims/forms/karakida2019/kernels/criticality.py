"""Closed forms of `verify.claims.karakida2019.criticality`."""

from functools import cache

import numpy as np
from scipy import special

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import KERNEL_OF, NODES, WEIGHTS, ClosedForm, Quantity

__all__ = ["FORMS", "WITHOUT_FORM"]


@cache
def _fixed_point(activation: str, weight_variance: float, bias_variance: float) -> float:
    """Variance after so many layers that it does not move any more."""
    value, q = KERNEL_OF["average"][activation], np.array([1.3])
    for _ in range(600):
        q = weight_variance * value(q, q) + bias_variance
    return float(q[0])


def _at_fixed_point(p: Point) -> float:
    return _fixed_point(p["activation"], p["weight_variance"], p["bias_variance"])


def _slope(p: Point) -> float:
    """E phi' phi' of one input at the fixed point of the variance."""
    q = np.array([_at_fixed_point(p)])
    return float(KERNEL_OF["average_slope"][p["activation"]](q, q)[0])


def _growth(p: Point) -> float:
    """E u phi phi' / q."""
    q = _at_fixed_point(p)
    u = np.sqrt(q) * NODES
    phi, slope = {
        "tanh": (np.tanh(u), 1 - np.tanh(u) ** 2),
        "erf": (special.erf(u), 2 / np.sqrt(np.pi) * np.exp(-(u**2))),
    }[p["activation"]]
    return float((u * phi * slope) @ WEIGHTS / q)


NEAR: dict[str, Quantity] = {"slope": _slope}


def _over_layers(weight_variance, slope, steps):
    return (weight_variance * slope) ** steps


FORMS: dict[str, ClosedForm] = {
    "karakida2019/depth-of-distances": ClosedForm(_over_layers, NEAR),
    "karakida2019/distances-in-chaos": ClosedForm(_over_layers, NEAR),
    "karakida2019/depth-of-variances": ClosedForm(
        lambda weight_variance, growth: weight_variance * growth, {"growth": _growth}
    ),
}

WITHOUT_FORM = {"karakida2019/phases": "a phase: its rivals are the other one, and another critical line"}
