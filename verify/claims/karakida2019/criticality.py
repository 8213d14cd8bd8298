"""Depth scales of wide random networks, next to the recursions of Karakida, Akaho and Amari (2019)."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate.monte_carlo import Block, Point
from simulate.wide import signals
from theory import criticality
from theory.activations import gaussian_kernels, single
from theory.order_parameters import order_parameters
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import WIDE, law, network_of
from verify.model import KNOWN, Arrays, Claim, Experiment, Identity, Kind, Prediction

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

PAIR_CLAIMS = (
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

# --- fixed points and phases ---------------------------------------------------------------------------------

LAYERS = 540
"""Enough for the farthest of the depth scales below, 14 layers, to leave nothing but rounding."""

SMALL = 1e-5
"""Step of a recursion at which its ratio to the next is the slope at the fixed point, up to this."""


def deep_networks(_: Generator, point: Point) -> Arrays:
    """Variance and correlation of two pre-activations deep inside, and how they approach what they become."""
    moments = order_parameters(point.activation, depth=LAYERS, **_weight_and_bias_variance(point))
    variance, covariance = (
        point.weight_variance * hat + point.bias_variance for hat in (moments.q_hat_t, moments.q_hat_st)
    )
    correlation, found = covariance / variance, _scales(point)
    fixed = criticality.variance_fixed_point(point.activation, **_weight_and_bias_variance(point))
    ends = [variance[-1], variance[-1], correlation[-1]]
    slopes = [found.variance_slope, found.correlation_slope]
    known = [fixed, found.variance, found.correlation, *slopes]
    return {
        "recursion": np.array([*ends, _last_ratio(variance), _last_ratio(correlation)]),
        "fixed points": np.array(known),
        "slopes interchanged": np.array([*known[:3], *slopes[::-1]]),
        "as in the first layer": np.array([variance[0], variance[0], correlation[0], *slopes]),
    }


def _last_ratio(values: Any) -> float:
    """Ratio of a step to the step before, where steps have become small."""
    steps = np.diff(values)
    at = int(np.argmax(np.abs(steps) < SMALL))
    return float(steps[at + 1] / steps[at])


FIXED_POINTS = Identity(
    id="karakida2019/deep-fixed-points",
    entries=("C6",),
    source=f"Poole et al. (2016), eqs. (3) and (5), and {FIELD}, eqs. (6) to (9), beside {PAPER}, eqs. (5) and (6)",
    passage=KNOWN,
    statement=r"q_t^l \to q^*,\quad q_{st}^l / q_t^l \to c^*,\quad "
    r"\frac{q_t^{l+1} - q_t^l}{q_t^l - q_t^{l-1}} \to \sigma_w^2 E\,[\phi'^2 + \phi \phi''],\quad "
    r"\frac{c^{l+1} - c^l}{c^l - c^{l-1}} \to \sigma_w^2 I_{\phi'}[q^*, c^* q^*]",
    says="Variance and correlation of two signals deep inside a wide network settle where theory puts them, at"
    " the rates it gives.",
    routes=deep_networks,
    points=(law("tanh", 1.7, 0.3), law("tanh", 2.5, 0.1), law("erf", 2.3, 0.15)),
    tolerance=1e-4,
    tolerance_reason=f"steps of {SMALL:g} are not yet none; the fixed points themselves agree to 1e-12",
    seconds=1.3,
    quantity="variance, correlation and their slopes, deep inside",
)


def growing_pairs(block: Block, point: Point) -> Arrays:
    """Whether the squared distance of near inputs grows over some layers of a few networks."""
    found = travelling_pairs(block.repeated(point.networks), point)
    first, last = (
        found[f"distance_{name}"].reshape(len(block), point.networks).sum(1) for name in ("first", "last")
    )
    return {"grows": (last > first).double()}


FEW: Arrays = {"networks": 9, "steps": 4, "pairs": 3, "width": 70, "input_overlap": 0.7}

PHASES = Experiment(
    id="karakida2019/phases",
    replicate="nine networks with near inputs",
    simulate=growing_pairs,
    points=(
        law("tanh", 1.83, 0.13, input_scale=0.5876, **FEW),
        law("tanh", 2.35, 0.13, input_scale=0.641, **FEW),
        law("erf", 1.56, 0.2, input_scale=0.6652, **FEW),
        law("erf", 2.01, 0.2, input_scale=0.7067, **FEW),
    ),
    budget=1024,
    seconds=0.3,
)

GROWS = {"ordered": 0.0, "chaotic": 1.0}


def _grows(p: Point, **changed: float) -> float:
    """1 in the chaotic phase, 0 in the ordered one, by chi and by the critical line; 1/2 where these two differ."""
    drawn = _weight_and_bias_variance(p, **changed)
    found = criticality.depth_scales(p.activation, **drawn)
    above = p.weight_variance > criticality.critical_weight_variance(p.activation, drawn["bias_variance"])
    return (GROWS[found.phase] + float(above)) / 2


PHASE = Claim(
    id="karakida2019/phases",
    entries=("C6", "C7"),
    source=f"Poole et al. (2016), eq. (6) and figure 1, beside {PAPER}, eqs. (5) to (7)",
    passage=KNOWN,
    statement=r"\chi(\sigma_w^2, \sigma_b^2) > 1 \iff \sigma_w^2 > \sigma_{w*}^2(\sigma_b^2):\quad "
    r"\text{near inputs part in the chaotic phase and approach each other in the ordered one}",
    says="Above the critical weight variance the distance of near inputs grows from layer to layer, below it "
    "shrinks.",
    experiment=PHASES,
    kind=Kind.PROPORTION,
    score="grows",
    predict=_grows,
    margin=0.2,
    relative=False,
    margin_reason="one group of networks in five on the wrong side, by scatter",
    rivals={
        "the other way round": lambda p: 1 - _grows(p),
        "critical line of no biases": lambda p: _grows(p, bias_variance=0.0),
        "always ordered": lambda _: 0.0,
    },
    quantity="share of groups of networks in which near inputs part",
    axis="weight_variance",
)

CLAIMS = (*PAIR_CLAIMS, FIXED_POINTS, PHASE)
