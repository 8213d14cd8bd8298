"""Karakida, Akaho and Amari (2019): non-centred networks, and the signs of covariances and of kappa1 - kappa2."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from simulate import activations
from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram
from theory import fisher
from theory.activations import Activation, single
from theory.order_parameters import OrderParameters, order_parameters, propagate
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import network_of
from verify.model import OURS, AnyClaim, Claim, ExactProperty, Experiment, Identity, Passage, Standing
from verify.model.domains import Between, Domain, Either, OneOf

__all__ = ["CLAIMS"]

CENTRED_AT_ONE = Activation(
    "|x| - sqrt(2/pi)",
    lambda x: np.abs(x) - math.sqrt(2 / math.pi),
    np.sign,
    np.zeros_like,
    (0.0,),
)
"""Its mean vanishes at unit variance and at no other."""

CENTRED = Passage(Standing.AS_STATED, "a network with no bias terms and zero-Gaussian mean", "Section 2.3")

ALL_ACTIVATIONS = ("relu", "leaky_relu", "linear", "tanh", "erf", "sigmoid", "softplus", "gelu", "hard_tanh")

# --- non-centred networks ------------------------------------------------------------------------------------


def zero_mean_at_unit_variance(block: Block, point: Point) -> Mapping[str, Any]:
    """Rayleigh quotient of the Fisher matrix at equal weights, for |x| less its mean at unit variance."""
    import torch

    shifted = activations.Nonlinearity(lambda u: u.abs() - math.sqrt(2 / math.pi), torch.sign)
    return {"rayleigh": fisher_gram.rayleigh(fisher_gram.gram(network_of(block, point), shifted))}


SHIFTED = Experiment(
    id="karakida2019/zero-mean-at-unit-variance",
    replicate="one network with its inputs",
    simulate=zero_mean_at_unit_variance,
    points=tuple(
        Point(weight_variance=w, bias_variance=0.0, depth=2, width=300, samples=samples, outputs=3)
        for w, samples in ((5.3, 7), (8.9, 23))
    ),
    budget=2048,
    seconds=0.22,
    special="no biases: with them every network is non-centred; two layers: one mean, the statement needs no more",
)


@cache
def _statistics(p: Point) -> fisher.FisherStatistics:
    names = ("depth", "width", "samples", "outputs", "weight_variance", "bias_variance")
    return fisher.eigenvalue_statistics(CENTRED_AT_ONE, **{n: p[n] for n in names}, finite_width=True)


@cache
def _kappa2_part(p: Point) -> float:
    kappas = fisher.kappas(
        CENTRED_AT_ONE, depth=p.depth, weight_variance=p.weight_variance, bias_variance=p.bias_variance
    )
    return kappas.alpha * p.width * kappas.kappa2 * (p.samples - 1) / p.samples


NOT_CENTRED = Claim(
    id="karakida2019/not-centred",
    entries=("C11",),
    source=f"{PAPER}, definition 2.1 and section 2.3 on centred networks, at another variance",
    passage=CENTRED,
    statement=r"\kappa_2 = E[\phi(\sqrt{q^1} z)]^2 > 0 \text{ for } \phi = |x| - \sqrt{2/\pi},\ "
    r"\sigma_b = 0,\ \sigma_w \ne 1,\ L = 2 \text{, in } \tfrac{1}{T^2} \mathbf 1^\top K_{kk} \mathbf 1",
    says="A network without biases whose activation function has zero mean at unit variance only is not "
    "centred: gradients of different samples overlap, and the Rayleigh quotient counts it.",
    experiment=SHIFTED,
    score="rayleigh",
    predict=lambda p: float(_statistics(p).largest),
    printed=lambda p: float(_statistics(p).largest) - _kappa2_part(p),
    reads=r"\kappa_2 = 0 \quad \Big(\sigma_b = 0,\ \int Dz\, \phi(z) = 0\Big)",
    finding="Without biases and with zero Gaussian mean kappa2 is said to be 0. That holds for odd activations; in "
    "general the mean counts at the variance of its layer, which is not 1 here: kappa2 is positive, and the largest "
    "eigenvalue grows with the width.",
    margin=0.03,
    margin_reason="linear in the Gram matrix: unbiased up to O(1/M); at most 3 % for wide networks",
    rivals={"half of it": lambda p: float(_statistics(p).largest) - 0.5 * _kappa2_part(p)},
    quantity="Rayleigh quotient of the Fisher matrix at equal weights",
    axis="weight_variance",
)


def kappa2_without_bias(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """kappa2 of the shifted absolute value: by panels between kinks, and from the arc-cosine kernel of |x|."""
    w, shift = point.weight_variance, math.sqrt(2 / math.pi)
    hats, tildes, a, b = [0.0], [1.0], w, 0.0
    slopes = []
    for _layer in range(point.depth - 1):
        c = b / a
        kernel = 2 * a / math.pi * (math.sqrt(1 - c * c) + c * math.asin(c))
        slopes.append(w * 2 / math.pi * math.asin(c))
        hats.append(kernel - 2 * shift * math.sqrt(a) * shift + shift**2)
        own = a - 2 * shift * math.sqrt(a) * shift + shift**2
        a, b = w * own, w * hats[-1]
    for slope in reversed(slopes):
        tildes.insert(0, slope * tildes[0])
    known = {"depth": point.depth, "weight_variance": w, "bias_variance": 0.0}
    return {
        "panels between kinks": fisher.kappas(CENTRED_AT_ONE, **known).kappa2,
        "arccosine kernel": sum(t * h for t, h in zip(tildes, hats, strict=True)) / (point.depth - 1),
        "zero mean at unit variance": 0.0,
        "of |x|": fisher.kappas(Activation("|x|", np.abs, np.sign, np.zeros_like, (0.0,)), **known).kappa2,
    }


KAPPA2 = Identity(
    id="karakida2019/zero-mean-is-not-enough",
    entries=("C11",),
    source=f"{PAPER}, definition 2.1 and section 2.3 on centred networks, at another variance",
    passage=CENTRED,
    statement=r"\phi = |x| - \sqrt{2/\pi},\ \sigma_b = 0:\quad \kappa_2 > 0 \text{ though } \int Dz\, \phi(z) = 0",
    says="For an absolute value shifted to zero mean at unit variance, gradients of different samples "
    "overlap even without biases, by the amount that two routes of integration give.",
    routes=kappa2_without_bias,
    points=tuple(
        Point(depth=depth, weight_variance=w) for depth, w in ((2, 2.3), (3, 2.1), (4, 0.6), (6, 3.3))
    ),
    printed="zero mean at unit variance",
    reads=r"\kappa_2 = 0 \quad \Big(\sigma_b = 0,\ \int Dz\, \phi(z) = 0\Big)",
    finding="Zero Gaussian mean makes kappa2 zero if it is taken at the variance of each layer, as for odd activations "
    "it is zero at every variance.",
    tolerance=1e-12,
    tolerance_reason="the promised accuracy of the kernels",
    seconds=0.053,
    quantity="mean overlap of the gradients of two samples, kappa2",
)


def _activation(p: Point) -> Activation:
    return CENTRED_AT_ONE if p.activation == "shifted" else single(p.activation)


def _kappas(p: Point) -> fisher.Kappas:
    return fisher.kappas(
        _activation(p), depth=p.depth, weight_variance=p.weight_variance, bias_variance=p.bias_variance
    )


GRID = np.linspace(-9.0, 9.0, 18001)
MASS = np.exp(-0.5 * GRID**2) / np.exp(-0.5 * GRID**2).sum()


def _has_mean(activation: Activation, variance: float) -> bool:
    """By a plain sum, whose error at a kink is below 1e-7."""
    y = activation.function(math.sqrt(variance) * GRID)
    return abs(MASS @ y) > 1e-5 * math.sqrt(MASS @ y**2)


def _wrongly_centred(p: Point, non_centred: bool) -> float:
    k = _kappas(p)
    return float((k.kappa2 > 1e-10 * k.kappa1) != non_centred)


def _own_variances(p: Point) -> list[float]:
    passed = propagate(
        [_activation(p)] * (p.depth - 1), weight_variance=p.weight_variance, bias_variance=p.bias_variance
    )
    return passed.variance


def _at_own_variance(_: np.random.Generator, p: Point) -> float:
    means = any(_has_mean(_activation(p), q) for q in _own_variances(p))
    return _wrongly_centred(p, p.bias_variance > 0 or means)


def _at_variance_one(_: np.random.Generator, p: Point) -> float:
    return _wrongly_centred(p, p.bias_variance > 0 or _has_mean(_activation(p), 1.0))


EXAMPLES = (
    Point(activation="shifted", depth=3, weight_variance=1.7, bias_variance=0.0),
    Point(activation="tanh", depth=3, weight_variance=1.7, bias_variance=0.0),
    Point(activation="hard_tanh", depth=2, weight_variance=2.6, bias_variance=0.3),
    Point(activation="relu", depth=5, weight_variance=0.8, bias_variance=0.0),
)

NON_CENTRED = ExactProperty(
    id="karakida2019/non-centred",
    entries=("C11", "C32"),
    source=f"ours, beside {PAPER}, definition 2.1 and section 3.2: with the variance of every layer",
    passage=OURS,
    statement=r"\kappa_2 > 0 \iff \sigma_b \ne 0 \text{ or } \int Dz\, \phi(\sqrt{q_t^l}\, z) \ne 0 "
    r"\text{ for some hidden } l",
    says="Gradients of different samples overlap in the mean exactly if there are biases, or some hidden "
    "layer's activations have a mean at that layer's variance.",
    domain={
        "activation": OneOf(*ALL_ACTIVATIONS, "shifted"),
        "depth": OneOf(2, 3, 5),
        "weight_variance": OneOf(0.3, 0.8, 1.0, 1.7, 2.6),
        "bias_variance": OneOf(0.0, 0.0, 0.3, 1.1),
    },
    violation=_at_own_variance,
    examples=EXAMPLES,
    tolerance=0.1,
    tolerance_reason="a yes or no: 1 where it is wrong",
    rivals={
        "at unit variance": _at_variance_one,
        "biases only": lambda _, p: _wrongly_centred(p, p.bias_variance > 0),
        "means only": lambda _, p: _wrongly_centred(
            p, any(_has_mean(_activation(p), q) for q in _own_variances(p))
        ),
    },
    seconds=0.061,
)

# --- signs ---------------------------------------------------------------------------------------------------


WIDE_SETTINGS: Domain = {
    "activation": OneOf(*ALL_ACTIVATIONS, "shifted"),
    "depth": Between(2, 6),
    "weight_variance": Between(0.05, 4.0),
    "bias_variance": Either(OneOf(0.0), Between(0.0, 2.0)),
    "overlap": Between(0.0, 1.0),
}


def _below_zero(p: Point, overlap: float) -> float:
    """The most negative covariance, forward or backward, over its variance."""
    passed = propagate(
        [_activation(p)] * (p.depth - 1),
        weight_variance=p.weight_variance,
        bias_variance=p.bias_variance,
        input_overlap=overlap,
    )
    forward = -np.array([*passed.covariance, *passed.q_hat_st]) / [*passed.variance, *passed.q_hat_t]
    backward = -np.array(passed.q_tilde_st) / passed.q_tilde_t
    return max(0.0, float(forward.max()), float(backward.max()))


SIGN = ExactProperty(
    id="karakida2019/covariances-keep-their-sign",
    entries=("C6",),
    source=f"ours, beside eqs. (5) to (7) of {PAPER}",
    passage=OURS,
    statement=r"q_{st}^l, \hat q_{st}^l, \tilde q_{st}^l \ge 0 \text{ if } \hat q_{st}^0 \ge 0,\quad "
    r"I_\phi[a, b] = E_z \big(E_\zeta\, \phi(\sqrt b z + \sqrt{a - b}\, \zeta)\big)^2",
    says="Inputs of non-negative overlap keep non-negative covariances through every layer, forward and "
    "backward, whatever the activation function.",
    domain=WIDE_SETTINGS,
    violation=lambda _, p: _below_zero(p, p.overlap),
    examples=tuple(p | {"overlap": 0.0} for p in EXAMPLES),
    tolerance=1e-13,
    tolerance_reason="rounding of moments that vanish",
    rivals={"whatever the inputs": lambda _, p: _below_zero(p, -0.6)},
    seconds=0.034,
)


def _shares(p: Point) -> tuple[float, float]:
    """kappa1 - kappa2 over kappa1, and the part of it that the weights of the first layer have."""
    k = _kappas(p)
    first = float(_signal(p).q_tilde_t[0]) / (p.depth - 1)
    return k.difference / k.kappa1, first / k.kappa1


def _not_the_difference(p: Point) -> float:
    """Of the two constants, summed layer by layer without a subtraction."""
    k = _kappas(p)
    return abs(k.difference - (k.kappa1 - k.kappa2)) / k.kappa1


def _signal(p: Point) -> OrderParameters:
    return order_parameters(
        _activation(p), depth=p.depth, weight_variance=p.weight_variance, bias_variance=p.bias_variance
    )


def _difference_too_small(p: Point, times: float) -> float:
    difference, first = _shares(p)
    outside = (times * first - difference, difference - 1, float(not difference > 0))
    return max(0.0, *outside, _not_the_difference(p))


DIFFERENCE = ExactProperty(
    id="karakida2019/kappa-difference",
    entries=("C32",),
    source=f"{PAPER}, section 3.2; the middle term is ours",
    passage=Passage(Standing.AS_STATED, "hold in the non-centered networks", "Section 3.2"),
    statement=r"\kappa_1 \ge \kappa_1 - \kappa_2 \ge \frac{\alpha_0}{\alpha} \tilde q_t^1 > 0 \quad (\sigma_w > 0)",
    says="The mean gradient overlap of a sample with itself exceeds that with another by at least the "
    "contribution of the first layer's weights, which is positive.",
    domain=WIDE_SETTINGS,
    violation=lambda _, p: _difference_too_small(p, 1.0),
    examples=(
        Point(activation="relu", depth=2, weight_variance=1.7, bias_variance=0.0, overlap=0.0),
        Point(activation="softplus", depth=5, weight_variance=0.6, bias_variance=1.3, overlap=0.0),
    ),
    tolerance=1e-12,
    tolerance_reason="the promised accuracy of the kernels",
    rivals={
        "twice the first layer": lambda _, p: _difference_too_small(p, 2.0),
        "at least half of kappa1": lambda _, p: max(0.0, 0.5 - _shares(p)[0]),
    },
    seconds=0.054,
)


CLAIMS: tuple[AnyClaim, ...] = (NOT_CENTRED, KAPPA2, NON_CENTRED, SIGN, DIFFERENCE)
