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
from theory.order_parameters import OrderParameters, order_parameters
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import network_of
from verify.model import AnyClaim, Claim, ExactProperty, Experiment, Passage, Standing
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


def _activation(p: Point) -> Activation:
    return CENTRED_AT_ONE if p.activation == "shifted" else single(p.activation)


def _kappas(p: Point) -> fisher.Kappas:
    return fisher.kappas(
        _activation(p), depth=p.depth, weight_variance=p.weight_variance, bias_variance=p.bias_variance
    )


# --- signs ---------------------------------------------------------------------------------------------------


WIDE_SETTINGS: Domain = {
    "activation": OneOf(*ALL_ACTIVATIONS, "shifted"),
    "depth": Between(2, 6),
    "weight_variance": Between(0.05, 4.0),
    "bias_variance": Either(OneOf(0.0), Between(0.0, 2.0)),
    "overlap": Between(0.0, 1.0),
}


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


CLAIMS: tuple[AnyClaim, ...] = (NOT_CENTRED, DIFFERENCE)
