"""Karakida, Akaho and Amari (2019): second moments that hold at any width, and with them the scale of what is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from simulate import networks
from simulate.monte_carlo import Block, Point
from simulate.wide import signals
from theory.order_parameters import order_parameters, preactivation_moment
from verify.claims.karakida2019 import PAPER
from verify.model import OURS, AnyClaim, Claim, Experiment

__all__ = ["CLAIMS"]

# --- biases --------------------------------------------------------------------------------------------------


def biases_of_a_layer(block: Block, point: Point) -> Mapping[str, Any]:
    """Second moment of the first pre-activations, most of it that of the biases."""
    network = signals.wide_network(
        block,
        widths=(point.inputs, point.units),
        samples=point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )
    (first,) = signals.forward(network, "linear").preactivations
    return {"first": first.square().mean((1, 2))}


BIASES = Claim(
    id="karakida2019/biases-of-a-layer",
    entries=("C5", "C6"),
    source=f"{PAPER}, eqs. (2) and (5) at the first layer",
    statement=r"\mathbb{E} (u_i^1)^2 = \sigma_w^2 + \sigma_b^2 \text{ at any width}",
    says="On standard normal inputs, the first layer's pre-activations have the weight variance plus the bias "
    "variance for a mean square, however wide the network.",
    experiment=Experiment(
        id="karakida2019/first-layer",
        replicate="one layer with its inputs",
        simulate=biases_of_a_layer,
        points=(Point(inputs=20, units=2500, samples=3, weight_variance=0.3, bias_variance=1.7),),
        budget=1024,
        seconds=0.43,
    ),
    score="first",
    predict=lambda p: float(
        preactivation_moment(1.0, weight_variance=p.weight_variance, bias_variance=p.bias_variance)
    ),
    margin=0.01,
    margin_reason="exact; 1 % resolves biases whose deviation is 1 % off",
    rivals={
        "deviation for variance": lambda p: p.weight_variance + p.bias_variance**0.5,
        "biases over the fan-in": lambda p: p.weight_variance + p.bias_variance / p.inputs,
        "no weights": lambda p: p.bias_variance,
    },
    quantity="second moment of the first pre-activations",
)

# --- weights -------------------------------------------------------------------------------------------------


def kaiming_outputs(block: Block, point: Point) -> Mapping[str, Any]:
    """Second moment of the outputs of a perceptron as `simulate.networks` draws it."""
    import torch

    found = []
    for rng in block.streams:
        network = networks.Mlp(point.widths, rng=rng).to(block.device)
        with torch.no_grad():
            inputs = torch.from_numpy(rng.standard_normal((point.samples, point.widths[0])))
            outputs = network(inputs.to(block.device))
        found.append(float(outputs.square().mean()))
    return {"output": np.array(found)}


@cache
def _at_any_depth(depth: int) -> float:
    """Of rectifiers without biases whose weights have variance two over the fan-in."""
    below = order_parameters(activation="relu", depth=depth, weight_variance=2.0, bias_variance=0.0).q_hat_t
    return float(preactivation_moment(below[-1], weight_variance=2.0, bias_variance=0.0))


def _output(p: Point) -> float:
    return _at_any_depth(len(p.widths) - 1)


def _by_widths(factor: Callable[[int, int], float]) -> Callable[[Point], float]:
    """With variances of the weights that are other by a factor of the widths below and above."""
    return lambda p: _output(p) * math.prod(factor(a, b) for a, b in pairwise(p.widths))


KAIMING = Claim(
    id="karakida2019/kaiming-keeps-the-scale",
    entries=("C6",),
    source=f"ours, from eq. (5) of {PAPER} for rectifiers without biases",
    passage=OURS,
    statement=r"\phi = \max(0, \cdot),\ \sigma_w^2 = 2,\ \sigma_b = 0:\quad \mathbb{E} f_k^2 = 2 \text{ at any width}",
    says="With weights of variance two over the fan-in, Kaiming's, the outputs of rectifier networks have the mean "
    "square of their first pre-activations, at any width.",
    experiment=Experiment(
        id="karakida2019/kaiming-perceptrons",
        replicate="one perceptron with its inputs",
        simulate=kaiming_outputs,
        points=(Point(widths=(64, 500, 300), samples=8),),
        budget=2048,
        seconds=0.97,
    ),
    score="output",
    predict=_output,
    margin=0.03,
    margin_reason="exact; 3 % resolves weights that are 2 % off in both layers, 8 % of the second moment",
    rivals={
        "one over the fan-in": _by_widths(lambda *_: 0.5),
        "two over the fan-out": _by_widths(lambda below, above: below / above),
        "two over the mean of both": _by_widths(lambda below, above: 2 * below / (below + above)),
    },
    quantity="second moment of the outputs",
)

CLAIMS: tuple[AnyClaim, ...] = (BIASES, KAIMING)
