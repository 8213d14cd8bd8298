"""Karakida, Akaho and Amari (2019): order parameters layer by layer, the integrals in them, and signs.

With activations beyond those of the paper, one of them with kinks away from 0. Non-centred networks, and the sign of
kappa1 - kappa2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate import activations
from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, signals
from theory import fisher
from theory.activations import Activation, gaussian_kernels, leaky_relu, single
from theory.order_parameters import (
    OrderParameters,
    order_parameters,
    preactivation_moment,
)
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import WIDE, law, lazy_network_of, one_network, setting, wide
from verify.model import Arrays, Claim, ExactProperty, Prediction, as_stated
from verify.model.domains import Between, Either, OneOf

# --- every layer of a network --------------------------------------------------------------------------------


def signals_of_every_layer(block: Block, point: Point) -> Arrays:
    """Order parameters of all layers, and the moments of the pre-activations above."""
    import torch

    network = lazy_network_of(block, point, widths=(*point.units, point.outputs))
    found = signals.measured_order_parameters(network, point.activation)
    passed = signals.forward(network, point.activation)
    above = torch.stack([u.square().mean((1, 2)) for u in passed.preactivations[:-1]], dim=1)
    return {
        "forward_variance": found["q_hat_t"][:, 1:],
        "forward_covariance": found["q_hat_st"][:, 1:],
        "backward_variance": found["q_tilde_t"][:, :-1],
        "backward_covariance": found["q_tilde_st"][:, :-1],
        "below": found["q_hat_t"][:, :-1],
        "above": above,
    }


SIZES: Arrays = {
    "depth": 4,
    "units": (690, 900, 630, 780),
    "samples": 5,
    "outputs": 6,
    "layers": (1, 2, 3),
}

LAYERS = one_network(
    id="karakida2019/signals-of-every-layer",
    simulate=signals_of_every_layer,
    points=(
        law("hard_tanh", 0.8, 0.45, **SIZES),
        law("sigmoid", 6.3, 0.3, **SIZES),
        law("softplus", 0.7, 0.35, **SIZES),
    ),
    budget=3072,
    seconds=1.3,
)


@cache
def _recursion(**known: Any) -> OrderParameters:
    """Looked up at every look at the replicates."""
    return order_parameters(**known)


def _of_layer(name: str, shift: int = 0) -> Prediction:
    """Order parameter of layer l, or of one so many further up."""
    first = 0 if name.startswith("q_hat") else 1
    return lambda p: getattr(_recursion(**setting(p)), name)[p.layers - first + shift]


def _by_width(name: str) -> Prediction:
    """Return a layer's value if the weights had variance over the units above them, M_l for M_(l-1)."""
    return lambda p: _of_layer(name)(p) * p.units[p.layers] / p.units[-1]


def _without_weights(name: str) -> Prediction:
    return lambda p: _of_layer(name)(p) / p.weight_variance ** (p.depth - p.layers)


@cache
def _square(activation: str) -> float:
    """E phi^2 of a standard normal variable."""
    return float(gaussian_kernels(single(activation)).value(1.0, 1.0, 0.0).moment)


def _above(p: Point) -> Any:
    return preactivation_moment(p.below, weight_variance=p.weight_variance, bias_variance=p.bias_variance)[()]


def _layer_claim(
    name: str,
    entry: str,
    equation: str,
    statement: str,
    says: str,
    score: str,
    quantity: str,
    **more: Any,
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
        margin_reason=f"{WIDE}; the bias is O(1/M), about 0.2 % at M = 630",
        quantity=quantity,
        along="layers",
        **more,
    )


LAYER_CLAIMS = (
    _layer_claim(
        "forward-variance-by-layer",
        "C5",
        "eqs. (5) and (6)",
        r"\hat q_t^l = \int Dz\, \phi(\sqrt{q_t^l}\, z)^2,\quad l = 1..L-1",
        "In every hidden layer of a wide network, the mean square of the activations is a Gaussian average at the "
        "variance of that layer.",
        "forward_variance",
        "mean square of the activations",
        predict=_of_layer("q_hat_t"),
        rivals={
            "one layer less": _of_layer("q_hat_t", -1),
            "at unit variance": lambda p: _square(p.activation),
        },
    ),
    _layer_claim(
        "forward-covariance-by-layer",
        "C5",
        "eqs. (5) and (6)",
        r"\hat q_{st}^l = I_\phi[q_t^l, q_{st}^l],\quad l = 1..L-1",
        "In every hidden layer of a wide network, the mean product of the activations for two inputs is an "
        "average over correlated Gaussians.",
        "forward_covariance",
        "mean product of the activations of two samples",
        predict=_of_layer("q_hat_st"),
        rivals={
            "one layer less": _of_layer("q_hat_st", -1),
            "variance for covariance": _of_layer("q_hat_t"),
        },
    ),
    _layer_claim(
        "variance-of-pre-activations",
        "C6",
        "eq. (6)",
        r"q_t^{l+1} = \sigma_w^2 \hat q_t^l + \sigma_b^2 \text{ given } \hat q_t^l",
        "In every hidden layer, the variance of the pre-activations is the weight variance times the mean square "
        "of the activations below, plus the bias variance.",
        "above",
        "variance of the pre-activations",
        predict=_above,
        inputs={"below": _of_layer("q_hat_t", -1)},
        rivals={
            "without sigma_w^2": lambda p: p.below + p.bias_variance,
            "sigma_w for its square": lambda p: math.sqrt(p.weight_variance) * p.below + p.bias_variance,
            "without biases": lambda p: p.weight_variance * p.below,
        },
    ),
    _layer_claim(
        "backward-variance-by-layer",
        "C7",
        "eq. (7)",
        r"\tilde q_t^l = \sigma_w^2\, \tilde q_t^{l+1} \int Dz\, \phi'(\sqrt{q_t^l}\, z)^2,\quad l = 1..L-1",
        "In every hidden layer of a wide network, the squared back-propagated gradient is that of the layer above "
        "times the weight variance and the mean squared slope.",
        "backward_variance",
        "squared back-propagated gradient",
        predict=_of_layer("q_tilde_t"),
        rivals={
            "without sigma_w^2": _without_weights("q_tilde_t"),
            "variance over the units above": _by_width("q_tilde_t"),
            "one layer less": _of_layer("q_tilde_t", 1),
        },
    ),
    _layer_claim(
        "backward-covariance-by-layer",
        "C7",
        "eq. (7)",
        r"\tilde q_{st}^l = \sigma_w^2\, \tilde q_{st}^{l+1} I_{\phi'}[q_t^l, q_{st}^l],\quad l = 1..L-1",
        "In every hidden layer of a wide network, the overlap of two inputs' gradients is that of the layer above "
        "times the weight variance and the mean product of slopes.",
        "backward_covariance",
        "product of the back-propagated gradients of two samples",
        predict=_of_layer("q_tilde_st"),
        rivals={
            "without sigma_w^2": _without_weights("q_tilde_st"),
            "variance over the units above": _by_width("q_tilde_st"),
            "variance for covariance": _of_layer("q_tilde_t"),
        },
    ),
)

# --- the integrals by quadrature ------------------------------------------------------------------------------

Array = NDArray[np.float64]

ROOT = math.sqrt(2 * math.pi)


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
    from scipy import special

    x, w = special.roots_hermitenorm(nodes)
    w, scale, c = w / ROOT, math.sqrt(p.variance), p.correlation
    phi = _activation(p.activation).function
    pair = phi(scale * x[:, None]) * phi(scale * (c * x[:, None] + math.sqrt(1 - c * c) * x))
    return abs(float(w @ pair @ w) - _reference(p)) / float(w @ phi(scale * x) ** 2)


PANELS = ExactProperty(
    id="karakida2019/kernels-by-quadrature",
    entries=("C59", "C5"),
    source=f"{PAPER}, section 2.2, the integral I_phi",
    statement=r"I_\phi[a, b] = \int Dz \Big(\int D\zeta\, \phi(\sqrt b z + \sqrt{a - b}\, \zeta)\Big)^2 "
    r"\text{ to } 10^{-12} E\phi^2 \text{, with kinks or without}",
    says="Averages of activations over two correlated Gaussians agree with independent integration, with kinks"
    " or without.",
    domain={
        "activation": OneOf(*MEANS, "tanh", "softplus", "sigmoid"),
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

# --- non-centred networks, and the sign of kappa1 - kappa2 ----------------------------------------------------

CENTRED_AT_ONE = Activation(
    "|x| - sqrt(2/pi)", lambda x: np.abs(x) - math.sqrt(2 / math.pi), np.sign, np.zeros_like, (0.0,)
)
"""Its mean vanishes at unit variance and at no other."""


def zero_mean_at_unit_variance(block: Block, point: Point) -> Arrays:
    """Rayleigh quotient of the Fisher matrix at equal weights, for |x| less its mean at unit variance."""
    import torch

    shifted = activations.Nonlinearity(lambda u: u.abs() - math.sqrt(2 / math.pi), torch.sign)
    return {"rayleigh": fisher_gram.rayleigh(fisher_gram.gram(lazy_network_of(block, point), shifted))}


SHIFTED = one_network(
    id="karakida2019/zero-mean-at-unit-variance",
    simulate=zero_mean_at_unit_variance,
    points=tuple(
        Point(weight_variance=w, bias_variance=0.0, depth=2, width=300, samples=samples, outputs=3)
        for w, samples in ((5.3, 7), (8.9, 23))
    ),
    budget=2048,
    seconds=0.22,
    special="no biases: with them every network is non-centred; two layers: one mean, the statement needs no more",
)


def _law(p: Point) -> dict[str, Any]:
    return {name: p[name] for name in ("depth", "weight_variance", "bias_variance")}


@cache
def _largest(p: Point) -> float:
    size = {"width": p.width, "samples": p.samples, "outputs": p.outputs}
    return fisher.eigenvalue_statistics(CENTRED_AT_ONE, **_law(p), **size, finite_width=True).largest


@cache
def _kappa2_part(p: Point) -> float:
    kappas = fisher.kappas(CENTRED_AT_ONE, **_law(p))
    return kappas.alpha * p.width * kappas.kappa2 * (p.samples - 1) / p.samples


NOT_CENTRED = wide(
    id="karakida2019/not-centred",
    entries=("C11",),
    source=f"{PAPER}, definition 2.1 and section 2.3 on centred networks, at another variance",
    passage=as_stated("a network with no bias terms and zero-Gaussian mean", "Section 2.3"),
    statement=r"\kappa_2 = E[\phi(\sqrt{q^1} z)]^2 > 0 \text{ for } \phi = |x| - \sqrt{2/\pi},\ "
    r"\sigma_b = 0,\ \sigma_w \ne 1,\ L = 2 \text{, in } \tfrac{1}{T^2} \mathbf 1^\top K_{kk} \mathbf 1",
    says="Without biases and with an activation of zero mean at unit variance only, gradients of different "
    "samples overlap.",
    experiment=SHIFTED,
    score="rayleigh",
    predict=_largest,
    printed=lambda p: _largest(p) - _kappa2_part(p),
    reads=r"\kappa_2 = 0 \quad \Big(\sigma_b = 0,\ \int Dz\, \phi(z) = 0\Big)",
    finding="An activation of zero mean at unit variance, without biases, does not make kappa_2 zero: its mean at "
    "the variance of the layer counts. For odd activations kappa2 is 0; here it is positive, and the largest "
    "eigenvalue grows with the width.",
    margin_reason=f"linear in the Gram matrix: unbiased up to O(1/M); {WIDE}",
    rivals={"half of it": lambda p: _largest(p) - 0.5 * _kappa2_part(p)},
    quantity="Rayleigh quotient of the Fisher matrix at equal weights",
    axis="weight_variance",
)


def _phi(p: Point) -> Activation:
    return CENTRED_AT_ONE if p.activation == "shifted" else single(p.activation)


def _kappas(p: Point) -> fisher.Kappas:
    return fisher.kappas(_phi(p), **_law(p))


def _difference_too_small(p: Point, times: float) -> float:
    """Violation of bounds on kappa_1 - kappa_2, one from the first layer; error of it summed without subtraction."""
    k, first = _kappas(p), float(order_parameters(_phi(p), **_law(p)).q_tilde_t[0]) / (p.depth - 1)
    share = k.difference / k.kappa1
    outside = (times * (first / k.kappa1) - share, share - 1, float(not share > 0))
    return max(0.0, *outside, abs(k.difference - (k.kappa1 - k.kappa2)) / k.kappa1)


CLAIMS = (
    *LAYER_CLAIMS,
    PANELS,
    NOT_CENTRED,
    ExactProperty(
        id="karakida2019/kappa-difference",
        entries=("C32",),
        source=f"{PAPER}, section 3.2; the middle term is ours",
        passage=as_stated("hold in the non-centered networks", "Section 3.2"),
        statement=r"\kappa_1 \ge \kappa_1 - \kappa_2 \ge \frac{\alpha_0}{\alpha} \tilde q_t^1 > 0 \quad (\sigma_w > 0)",
        says="The gradient overlap of a sample with itself exceeds that with another by at least the positive part"
        " of the first layer's weights.",
        domain={
            "activation": OneOf(
                "relu",
                "leaky_relu",
                "linear",
                "tanh",
                "erf",
                "sigmoid",
                "softplus",
                "gelu",
                "hard_tanh",
                "shifted",
            ),
            "depth": Between(2, 6),
            "weight_variance": Between(0.05, 4.0),
            "bias_variance": Either(OneOf(0.0), Between(0.0, 2.0)),
            "overlap": Between(0.0, 1.0),
        },
        violation=lambda _, p: _difference_too_small(p, 1.0),
        examples=(
            law("relu", 1.7, 0.0, depth=2, overlap=0.0),
            law("softplus", 0.6, 1.3, depth=5, overlap=0.0),
        ),
        tolerance=1e-12,
        tolerance_reason="the promised accuracy of the kernels",
        rivals={
            "twice the first layer": lambda _, p: _difference_too_small(p, 2.0),
            "at least half of kappa1": lambda _, p: max(0.0, 0.5 - _kappas(p).difference / _kappas(p).kappa1),
        },
        seconds=0.054,
    ),
)
