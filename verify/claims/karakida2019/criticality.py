"""Depth scales of wide random networks, next to the recursions of Karakida, Akaho and Amari (2019)."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.wide import signals
from theory import criticality
from theory.activations import gaussian_kernels, single
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import WIDE, law, network_of
from verify.model import Arrays, Claim, Experiment, Kind, Prediction

TILT = 0.01
"""Angle and relative length by which pairs of inputs differ: all below are linear in it."""


def travelling_pairs(block: Block, point: Point) -> Arrays:
    """Distances and differences of variance of pairs of inputs, in the first layer and later.

    Pairs are near each other, or of nearly one length.
    """
    import torch

    widths = (*(point.width,) * (point.steps + 2), 1)
    network = network_of(block, point, widths=widths, samples=2 * point.pairs)
    x, y = network.inputs.chunk(2, dim=1)
    one = x / x.norm(dim=-1, keepdim=True)
    rest = y - (y * one).sum(-1, keepdim=True) * one
    other = rest / rest.norm(dim=-1, keepdim=True)
    length, overlap = point.input_scale * math.sqrt(point.width), math.cos(TILT)
    turned = overlap * one + math.sqrt(1 - overlap**2) * other
    pairs = (length * one, length * turned, length * (1 + TILT / 2) * one, length * (1 - TILT / 2) * one)
    inputs = torch.stack(pairs, 1).flatten(1, 2)
    moved = signals.WideNetwork(weights=network.weights, biases=network.biases, inputs=inputs)
    layers = signals.forward(moved, point.activation).preactivations

    def apart(layer: int) -> tuple[Any, Any]:
        base, near, longer, shorter = layers[layer].unflatten(1, (4, point.pairs)).unbind(1)
        return (near - base).square().mean((1, 2)), (longer.square() - shorter.square()).mean((1, 2))

    distance, variance = apart(0)
    return {
        "distance_first": distance,
        "variance_first": variance,
        "variance_second": apart(1)[1],
        "distance_last": apart(point.steps)[0],
    }


PAIRS: Arrays = {"steps": 3, "pairs": 24, "width": 100}

# inputs of such lengths that the first layer is near the fixed point
# `input_overlap`: of inputs that are not drawn any more; points keep their names, which their draws have
IN_ORDER, IN_CHAOS = (
    Experiment(
        id=f"karakida2019/pairs-in-{phase}",
        replicate="one network with pairs of inputs",
        simulate=travelling_pairs,
        points=tuple(
            law(name, weights, biases, input_scale=scale, input_overlap=overlap, **PAIRS)
            for name, weights, biases, scale, overlap in rows
        ),
        budget=2048,
        seconds=0.55,
    )
    for phase, rows in (
        ("order", (("tanh", 1.4, 0.13, 0.5303, 0.9), ("erf", 1.1, 0.15, 0.5859, 0.9))),
        ("chaos", (("tanh", 2.6, 0.2, 0.6728, 0.818), ("erf", 2.3, 0.1, 0.714, 0.4672))),
    )
)


def _weight_and_bias_variance(p: Point, **changed: float) -> dict[str, Any]:
    return {"weight_variance": p.weight_variance, "bias_variance": p.bias_variance} | changed


@cache
def _scales(p: Point) -> criticality.DepthScales:
    return criticality.depth_scales(p.activation, **_weight_and_bias_variance(p))


def _at_unit_variance(p: Point) -> float:
    slope = gaussian_kernels(single(p.activation)).derivative(1.0, 1.0, 0.0).moment
    return float(p.weight_variance * slope) ** p.steps


FIELD = "Schoenholz et al. (2017), Deep information propagation"


def _power_of(name: str, more: int = 0) -> Prediction:
    return lambda p: float(getattr(_scales(p), name) ** (p.steps + more))


_of_pairs = partial(
    Claim,
    kind=Kind.RATIO,
    margin=0.03,
    margin_reason="linear in the difference of the inputs; O(1/M) per layer, below 1 % at M = 100; " + WIDE,
    axis="weight_variance",
)
_of_distances = partial(
    _of_pairs,
    entries=("C6", "C7"),
    score=("distance_last", "distance_first"),
    quantity="squared distance of near inputs, over n layers",
)

CLAIMS = (
    _of_distances(
        id="karakida2019/depth-of-distances",
        source=f"{FIELD}, eqs. (6) and (7), beside {PAPER}, eqs. (5) to (7)",
        statement=r"\frac{\mathbb{E}\,|u^{l+n}(s) - u^{l+n}(t)|^2}{\mathbb{E}\,|u^l(s) - u^l(t)|^2} = "
        r"e^{-n/\xi_c} = \chi^n,\quad \chi = \sigma_w^2 E\,\phi'(\sqrt{q^*} z)^2 < 1 \quad (q_t^l = q^*)",
        says="In the ordered phase, the squared distance of near inputs shrinks in each wide layer by weight "
        "variance times mean squared slope.",
        experiment=IN_ORDER,
        predict=lambda p: math.exp(-p.steps / _scales(p).correlation_depth),
        rivals={
            "slope of the variances": _power_of("variance_slope"),
            "without sigma_w^2": lambda p: (_scales(p).chi / p.weight_variance) ** p.steps,
            "one layer more": _power_of("chi", more=1),
            "at unit variance": _at_unit_variance,
        },
    ),
    _of_pairs(
        id="karakida2019/depth-of-variances",
        symbols={r"\delta": "a small change of what follows"},
        entries=("C6",),
        source=f"{FIELD}, eqs. (8) and (9), beside {PAPER}, eqs. (5) and (6)",
        statement=r"\frac{\mathbb{E}\,\delta q^{l+1}}{\mathbb{E}\,\delta q^l} = e^{-1/\xi_q} = "
        r"\sigma_w^2 E\,[\phi'(\sqrt{q^*} z)^2 + \phi(\sqrt{q^*} z) \phi''(\sqrt{q^*} z)] \quad (q_t^l = q^*)",
        says="In the ordered phase, a difference of variances near their fixed point shrinks in a wide layer by "
        "the slope of the variance map.",
        experiment=IN_ORDER,
        score=("variance_second", "variance_first"),
        predict=lambda p: math.exp(-1 / _scales(p).variance_depth),
        rivals={
            "chi": lambda p: _scales(p).chi,
            "without sigma_w^2": lambda p: _scales(p).variance_slope / p.weight_variance,
            "two layers": lambda p: _scales(p).variance_slope ** 2,
        },
        quantity="difference of two variances, over one layer",
    ),
    _of_distances(
        id="karakida2019/distances-in-chaos",
        source=f"{FIELD}, eq. (7), beside {PAPER}, eqs. (5) to (7)",
        statement=r"\frac{\mathbb{E}\,|u^{l+n}(s) - u^{l+n}(t)|^2}{\mathbb{E}\,|u^l(s) - u^l(t)|^2} = \chi^n > 1 \quad "
        r"(q_t^l = q^*)",
        says="In the chaotic phase, the squared distance of near inputs grows in each wide layer by weight "
        "variance times mean squared slope.",
        experiment=IN_CHAOS,
        predict=_power_of("chi"),
        rivals={
            "slope at c*": _power_of("correlation_slope"),
            "slope of the variances": _power_of("variance_slope"),
            "one layer more": _power_of("chi", more=1),
            "at unit variance": _at_unit_variance,
        },
    ),
)
