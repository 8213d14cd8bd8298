"""Closed forms of `verify.claims.karakida2019.kernels`."""

from functools import cache

import numpy as np

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import KERNEL_OF, ClosedForm, Quantity, average, average_slope

__all__ = ["FORMS"]


@cache
def _moments(activation: str, depth: int, weight: float, bias: float) -> dict[str, list[float]]:
    """Eqs. (5) to (7) layer by layer, from inputs of variance 1 and covariance 0."""
    value, slope = (KERNEL_OF[name][activation] for name in ("average", "average_slope"))
    own, shared, slopes = [1.0], [0.0], []
    for _ in range(depth - 1):
        a, b = (np.array([weight * x[-1] + bias]) for x in (own, shared))
        slopes.append((weight * float(slope(a, a)[0]), weight * float(slope(a, b)[0])))
        own.append(float(value(a, a)[0]))
        shared.append(float(value(a, b)[0]))
    back, back_shared = [1.0], [1.0]
    for t, u in reversed(slopes):
        back.insert(0, t * back[0])
        back_shared.insert(0, u * back_shared[0])
    return {"own": own, "shared": shared, "back": back, "back_shared": back_shared}


def _at(name: str, offset: int) -> Quantity:
    """A moment of the layer l + offset, where `layers` is l; backward ones begin at layer 1."""

    def value(p: Point) -> float:
        found = _moments(p.activation, p.depth, p.weight_variance, p.bias_variance)
        return found[name][p.layers + offset]

    return value


BELOW: dict[str, Quantity] = {"fore": _at("own", -1), "fore_shared": _at("shared", -1)}
AROUND: dict[str, Quantity] = {**BELOW, "above": _at("back", 0), "above_shared": _at("back_shared", 0)}


def _forward_variance(weight_variance, fore, bias_variance):
    return average(weight_variance * fore + bias_variance)


def _forward_covariance(weight_variance, fore, fore_shared, bias_variance):
    return average(weight_variance * fore + bias_variance, weight_variance * fore_shared + bias_variance)


def _pre_activations(weight_variance, below, bias_variance):
    return weight_variance * below + bias_variance


def _backward_variance(weight_variance, fore, bias_variance, above):
    return weight_variance * above * average_slope(weight_variance * fore + bias_variance)


def _backward_covariance(weight_variance, fore, fore_shared, bias_variance, above_shared):
    slope = average_slope(
        weight_variance * fore + bias_variance, weight_variance * fore_shared + bias_variance
    )
    return weight_variance * above_shared * slope


def _first_backward(p: Point) -> float:
    return _moments(p.activation, p.depth, p.weight_variance, p.bias_variance)["back"][0]


def _by_inputs(weight_variance, first):
    return weight_variance * first


FORMS = {
    "karakida2019/forward-variance-by-layer": ClosedForm(_forward_variance, BELOW),
    "karakida2019/forward-covariance-by-layer": ClosedForm(_forward_covariance, BELOW),
    "karakida2019/variance-of-pre-activations": ClosedForm(_pre_activations),
    "karakida2019/backward-variance-by-layer": ClosedForm(_backward_variance, AROUND),
    "karakida2019/backward-covariance-by-layer": ClosedForm(_backward_covariance, AROUND),
    "karakida2019/derivative-by-the-inputs": ClosedForm(_by_inputs, {"first": _first_backward}),
}
