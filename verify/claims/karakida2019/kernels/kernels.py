"""Karakida, Akaho and Amari (2019): order parameters layer by layer, and the integrals in them.

With activations beyond those of the paper, one of them with kinks away from 0, and the ends of the recursions: no slope
of phi multiplies the derivative by the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Block, Point
from simulate.wide import signals
from theory.activations import gaussian_kernels, leaky_relu, single
from theory.order_parameters import (
    OrderParameters,
    input_derivative,
    order_parameters,
    preactivation_moment,
)
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import QUANTITIES, setting
from verify.model import OURS, AnyClaim, Claim, ExactProperty, Experiment
from verify.model.domains import Between, OneOf

__all__ = ["CLAIMS"]

# --- every layer of a network --------------------------------------------------------------------------------


def signals_of_every_layer(block: Block, point: Point) -> Mapping[str, Any]:
    """Order parameters of all layers, the moments of the pre-activations above, and of the derivative by the inputs."""
    import torch

    network = signals.wide_network(
        block,
        widths=(*point.units, point.outputs),
        samples=point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )
    found = signals.measured_order_parameters(network, point.activation)
    passed = signals.forward(network, point.activation)
    above = torch.stack([u.square().mean((1, 2)) for u in passed.preactivations[:-1]], dim=1)
    *_, first = signals.backward(network, point.activation, passed.preactivations)
    by_inputs = first.flatten(1, 2) @ network.weights[0]
    return {
        "forward_variance": found["q_hat_t"][:, 1:],
        "forward_covariance": found["q_hat_st"][:, 1:],
        "backward_variance": found["q_tilde_t"][:, :-1],
        "backward_covariance": found["q_tilde_st"][:, :-1],
        "below": found["q_hat_t"][:, :-1],
        "above": above,
        "by_inputs": by_inputs.square().sum(2).mean(1),
    }


SETTINGS = (
    Point(activation="hard_tanh", weight_variance=0.8, bias_variance=0.45),
    Point(activation="sigmoid", weight_variance=6.3, bias_variance=0.3),
    Point(activation="softplus", weight_variance=0.7, bias_variance=0.35),
)
SIZES = {"depth": 4, "units": (115, 150, 105, 130), "samples": 7, "outputs": 14, "layers": (1, 2, 3)}

LAYERS = Experiment(
    id="karakida2019/signals-of-every-layer",
    replicate="one network with its inputs",
    simulate=signals_of_every_layer,
    points=tuple(s | SIZES for s in SETTINGS),
    budget=3072,
    seconds=1.3,
)


@cache
def _recursion(**known: Any) -> OrderParameters:
    """Looked up at every look at the replicates."""
    return order_parameters(**known)


def _parameters(p: Point) -> OrderParameters:
    return _recursion(**setting(p))


def _forward(name: str, *, below: int = 0) -> Callable[[Point], float]:
    """Of layer l, or of one below it."""
    return lambda p: float(getattr(_parameters(p), name)[p.layers - below])


def _backward(name: str, *, above: int = 0) -> Callable[[Point], float]:
    return lambda p: float(getattr(_parameters(p), name)[p.layers - 1 + above])


def _backward_by_width(name: str) -> Callable[[Point], float]:
    """As if the weights had variance over the units above them, M_l for M_(l-1)."""
    return lambda p: _backward(name)(p) * p.units[p.layers] / p.units[-1]


def _backward_without_weights(name: str) -> Callable[[Point], float]:
    return lambda p: _backward(name)(p) / p.weight_variance ** (p.depth - p.layers)


@cache
def _squares(activation: str, variance: float) -> tuple[float, float]:
    """E phi^2 and E phi'^2 at this variance."""
    kernels, pair = gaussian_kernels(single(activation)), (variance, variance, 0.0)
    return float(kernels.value(*pair).moment), float(kernels.derivative(*pair).moment)


def _at_unit_variance(p: Point) -> float:
    """The activation of a standard normal variable, whatever the layer."""
    return _squares(p.activation, 1.0)[0]


def _above(p: Point) -> Any:
    return preactivation_moment(p.below, weight_variance=p.weight_variance, bias_variance=p.bias_variance)[()]


def _by_inputs(p: Point) -> float:
    """The recursion goes on to the inputs, without a slope of phi."""
    return input_derivative(**setting(p))


def _slope_at_the_inputs(p: Point) -> float:
    """With one more slope, at the variance 1 of the inputs."""
    return _by_inputs(p) * _squares(p.activation, 1.0)[1]


WIDE = "at most 3 % for wide networks; the bias is O(1/M), about 1 % at M = 120"


def _layer_claim(
    name: str, entry: str, equation: str, statement: str, says: str, score: str, **more: Any
) -> Claim:
    return Claim(
        id=f"karakida2019/{name}",
        entries=(entry,),
        source=f"{PAPER}, {equation}",
        statement=statement,
        says=says,
        experiment=LAYERS,
        score=score,
        margin=0.03,
        margin_reason=WIDE,
        quantity=QUANTITIES[score],
        **more,
    )


ALONG = {"along": "layers"}

LAYER_CLAIMS: tuple[AnyClaim, ...] = (
    _layer_claim(
        "forward-variance-by-layer",
        "C5",
        "eqs. (5) and (6)",
        r"\hat q_t^l = \int Dz\, \phi(\sqrt{q_t^l}\, z)^2,\quad l = 1..L-1",
        "In every hidden layer of a wide network, the mean square of the activations is a Gaussian average "
        "at the variance of that layer.",
        "forward_variance",
        predict=_forward("q_hat_t"),
        rivals={"one layer less": _forward("q_hat_t", below=1), "at unit variance": _at_unit_variance},
        **ALONG,
    ),
    _layer_claim(
        "forward-covariance-by-layer",
        "C5",
        "eqs. (5) and (6)",
        r"\hat q_{st}^l = I_\phi[q_t^l, q_{st}^l],\quad l = 1..L-1",
        "In every hidden layer of a wide network, the mean product of the activations for two inputs is an "
        "average over correlated Gaussians.",
        "forward_covariance",
        predict=_forward("q_hat_st"),
        rivals={
            "one layer less": _forward("q_hat_st", below=1),
            "variance for covariance": _forward("q_hat_t"),
        },
        **ALONG,
    ),
    _layer_claim(
        "variance-of-pre-activations",
        "C6",
        "eq. (6)",
        r"q_t^{l+1} = \sigma_w^2 \hat q_t^l + \sigma_b^2 \text{ given } \hat q_t^l",
        "In every hidden layer, the variance of the pre-activations is the weight variance times the mean "
        "square of the activations below, plus the bias variance.",
        "above",
        predict=_above,
        inputs={"below": _forward("q_hat_t", below=1)},
        rivals={
            "without sigma_w^2": lambda p: p.below + p.bias_variance,
            "sigma_w for its square": lambda p: math.sqrt(p.weight_variance) * p.below + p.bias_variance,
            "without biases": lambda p: p.weight_variance * p.below,
        },
        **ALONG,
    ),
    _layer_claim(
        "backward-variance-by-layer",
        "C7",
        "eq. (7)",
        r"\tilde q_t^l = \sigma_w^2\, \tilde q_t^{l+1} \int Dz\, \phi'(\sqrt{q_t^l}\, z)^2,\quad l = 1..L-1",
        "In every hidden layer of a wide network, the squared back-propagated gradient is that of the layer "
        "above times the weight variance and the mean squared slope.",
        "backward_variance",
        predict=_backward("q_tilde_t"),
        rivals={
            "without sigma_w^2": _backward_without_weights("q_tilde_t"),
            "variance over the units above": _backward_by_width("q_tilde_t"),
            "one layer less": _backward("q_tilde_t", above=1),
        },
        **ALONG,
    ),
    _layer_claim(
        "backward-covariance-by-layer",
        "C7",
        "eq. (7)",
        r"\tilde q_{st}^l = \sigma_w^2\, \tilde q_{st}^{l+1} I_{\phi'}[q_t^l, q_{st}^l],\quad l = 1..L-1",
        "In every hidden layer of a wide network, the overlap of two inputs' gradients is that of the layer "
        "above times the weight variance and the mean product of slopes.",
        "backward_covariance",
        predict=_backward("q_tilde_st"),
        rivals={
            "without sigma_w^2": _backward_without_weights("q_tilde_st"),
            "variance over the units above": _backward_by_width("q_tilde_st"),
            "variance for covariance": _backward("q_tilde_t"),
        },
        **ALONG,
    ),
    _layer_claim(
        "derivative-by-the-inputs",
        "C7",
        "eq. (7) carried on to the inputs, which is ours",
        r"\sum_i (\partial f_k / \partial x_i)^2 = \sigma_w^2\, \tilde q_t^1",
        "The squared gradient of an output by the inputs of a wide network is the weight variance times the "
        "first layer's backward variance, without a further slope.",
        "by_inputs",
        passage=OURS,
        predict=_by_inputs,
        rivals={
            "without sigma_w^2": lambda p: _by_inputs(p) / p.weight_variance,
            "a slope at the inputs": _slope_at_the_inputs,
        },
        axis="weight_variance",
    ),
)


# --- the integrals by quadrature ------------------------------------------------------------------------------


Array = NDArray[np.float64]

ROOT = math.sqrt(2 * math.pi)


@cache
def gauss_hermite(nodes: int) -> tuple[Array, Array]:
    """Nodes and weights for a standard normal variable."""
    from scipy import special

    x, w = special.roots_hermitenorm(nodes)
    return x, w / ROOT


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

CLAIMS: tuple[AnyClaim, ...] = (*LAYER_CLAIMS, PANELS)
