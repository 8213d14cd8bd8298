"""Depth scales of wide random networks, beside the recursions of Karakida, Akaho and Amari (2019)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import signals
from theory import criticality, fisher
from theory.activations import gaussian_kernels, leaky_relu, single
from theory.order_parameters import order_parameters
from verify.claims.karakida2019 import PAPER
from verify.model import KNOWN, OURS, AnyClaim, Claim, Experiment, Identity, Kind

__all__ = ["CLAIMS"]

TILT = 0.01
"""Angle, relative length and overlap by which pairs of inputs differ: all below are linear in it."""


def travelling_pairs(block: Block, point: Point) -> Mapping[str, Any]:
    """Distances, differences of variance and of overlap of pairs of inputs, in the first layer and later.

    Pairs are near each other, of nearly one length, or of nearly one overlap with a third.
    """
    import torch

    network = signals.wide_network(
        block,
        widths=(point.width,) * (point.steps + 2) + (1,),
        samples=2 * point.pairs,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )
    one, other = _orthonormal(*network.inputs.chunk(2, dim=1))
    length = point.input_scale * math.sqrt(point.width)
    high, low = (length * _turned(one, other, point.input_overlap + e) for e in (TILT / 2, -TILT / 2))
    inputs = torch.stack(
        [
            length * one,
            length * _turned(one, other, math.cos(TILT)),
            length * (1 + TILT / 2) * one,
            length * (1 - TILT / 2) * one,
            high,
            low,
        ],
        1,
    )
    moved = signals.WideNetwork(weights=network.weights, biases=network.biases, inputs=inputs.flatten(1, 2))
    layers = signals.forward(moved, point.activation).preactivations
    scores: dict[str, Any] = {}
    for name, layer in (("first", 0), ("second", 1), ("last", point.steps)):
        base, near, longer, shorter, over, under = layers[layer].unflatten(1, (6, point.pairs)).unbind(1)
        scores[f"distance_{name}"] = (near - base).square().mean((1, 2))
        scores[f"variance_{name}"] = (longer.square() - shorter.square()).mean((1, 2))
        scores[f"overlap_{name}"] = (base * (over - under)).mean((1, 2))
    return scores


def _orthonormal(x: Any, y: Any) -> tuple[Any, Any]:
    one = x / x.norm(dim=-1, keepdim=True)
    rest = y - (y * one).sum(-1, keepdim=True) * one
    return one, rest / rest.norm(dim=-1, keepdim=True)


def _turned(one: Any, other: Any, overlap: float) -> Any:
    return overlap * one + math.sqrt(1 - overlap**2) * other


PAIRS = {"steps": 3, "pairs": 24, "width": 100}

# inputs of such lengths and overlaps that the first layer is near the fixed points
ORDERED = (
    Point(activation="tanh", weight_variance=1.4, bias_variance=0.13, input_scale=0.5303, input_overlap=0.9),
    Point(activation="erf", weight_variance=1.1, bias_variance=0.15, input_scale=0.5859, input_overlap=0.9),
)
CHAOTIC = (
    Point(activation="tanh", weight_variance=2.6, bias_variance=0.2, input_scale=0.6728, input_overlap=0.818),
    Point(activation="erf", weight_variance=2.3, bias_variance=0.1, input_scale=0.714, input_overlap=0.4672),
)

IN_ORDER, IN_CHAOS = (
    Experiment(
        id=f"karakida2019/pairs-in-{phase}",
        replicate="one network with pairs of inputs",
        simulate=travelling_pairs,
        points=tuple(p | PAIRS for p in points),
        budget=2048,
        seconds=0.55,
    )
    for phase, points in (("order", ORDERED), ("chaos", CHAOTIC))
)


@cache
def _scales(p: Point) -> criticality.DepthScales:
    return criticality.depth_scales(
        p.activation, weight_variance=p.weight_variance, bias_variance=p.bias_variance
    )


def _chi_at_unit_variance(p: Point) -> float:
    slope = gaussian_kernels(single(p.activation)).derivative(1.0, 1.0, 0.0).moment
    return float(p.weight_variance * slope)


DEEP = "linear in the difference of the inputs; O(1/M) per layer, below 1 % at M = 100; at most 3 % for wide networks"
FIELD = "Schoenholz et al. (2017), Deep information propagation"


def _power_of(name: str, more: int = 0) -> Callable[[Point], float]:
    return lambda p: float(getattr(_scales(p), name) ** (p.steps + more))


CRITICALITY_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/depth-of-distances",
        entries=("C6", "C7"),
        source=f"{FIELD}, eqs. (6) and (7), beside {PAPER}, eqs. (5) to (7)",
        statement=r"\frac{\mathbb{E}\,|u^{l+n}(s) - u^{l+n}(t)|^2}{\mathbb{E}\,|u^l(s) - u^l(t)|^2} = "
        r"e^{-n/\xi_c} = \chi^n,\quad \chi = \sigma_w^2 E\,\phi'(\sqrt{q^*} z)^2 < 1 \quad (q_t^l = q^*)",
        says="In the ordered phase of wide networks, the squared distance of two near inputs shrinks in "
        "each layer by the weight variance times the mean squared slope.",
        experiment=IN_ORDER,
        kind=Kind.RATIO,
        score=("distance_last", "distance_first"),
        predict=lambda p: math.exp(-p.steps / _scales(p).correlation_depth),
        margin=0.03,
        margin_reason=DEEP,
        rivals={
            "slope of the variances": _power_of("variance_slope"),
            "without sigma_w^2": lambda p: (_scales(p).chi / p.weight_variance) ** p.steps,
            "one layer more": _power_of("chi", more=1),
            "at unit variance": lambda p: _chi_at_unit_variance(p) ** p.steps,
        },
        quantity="squared distance of near inputs, over n layers",
        axis="weight_variance",
    ),
    Claim(
        id="karakida2019/depth-of-variances",
        symbols={r"\delta": "a small change of what follows"},
        entries=("C6",),
        source=f"{FIELD}, eqs. (8) and (9), beside {PAPER}, eqs. (5) and (6)",
        statement=r"\frac{\mathbb{E}\,\delta q^{l+1}}{\mathbb{E}\,\delta q^l} = e^{-1/\xi_q} = "
        r"\sigma_w^2 E\,[\phi'(\sqrt{q^*} z)^2 + \phi(\sqrt{q^*} z) \phi''(\sqrt{q^*} z)] \quad (q_t^l = q^*)",
        says="In the ordered phase of wide networks, a difference of pre-activation variances near their "
        "fixed point shrinks over one layer by the slope of the variance map.",
        experiment=IN_ORDER,
        kind=Kind.RATIO,
        score=("variance_second", "variance_first"),
        predict=lambda p: math.exp(-1 / _scales(p).variance_depth),
        margin=0.03,
        margin_reason=DEEP,
        rivals={
            "chi": lambda p: _scales(p).chi,
            "without sigma_w^2": lambda p: _scales(p).variance_slope / p.weight_variance,
            "two layers": lambda p: _scales(p).variance_slope ** 2,
        },
        quantity="difference of two variances, over one layer",
        axis="weight_variance",
    ),
    Claim(
        id="karakida2019/distances-in-chaos",
        entries=("C6", "C7"),
        source=f"{FIELD}, eq. (7), beside {PAPER}, eqs. (5) to (7)",
        statement=r"\frac{\mathbb{E}\,|u^{l+n}(s) - u^{l+n}(t)|^2}{\mathbb{E}\,|u^l(s) - u^l(t)|^2} = \chi^n > 1 \quad "
        r"(q_t^l = q^*)",
        says="In the chaotic phase of wide networks, the squared distance of two near inputs grows in each "
        "layer by the weight variance times the mean squared slope.",
        experiment=IN_CHAOS,
        kind=Kind.RATIO,
        score=("distance_last", "distance_first"),
        predict=_power_of("chi"),
        margin=0.03,
        margin_reason=DEEP,
        rivals={
            "slope at c*": _power_of("correlation_slope"),
            "slope of the variances": _power_of("variance_slope"),
            "one layer more": _power_of("chi", more=1),
            "at unit variance": lambda p: _chi_at_unit_variance(p) ** p.steps,
        },
        quantity="squared distance of near inputs, over n layers",
        axis="weight_variance",
    ),
    Claim(
        id="karakida2019/depth-of-overlaps",
        symbols={r"\delta": "a small change of what follows"},
        entries=("C6", "C7"),
        source=f"{FIELD}, eqs. (6) and (7) in the chaotic phase, beside {PAPER}, eqs. (5) and (6)",
        statement=r"\frac{\mathbb{E}\,\delta q_{st}^{l+n}}{\mathbb{E}\,\delta q_{st}^l} = e^{-n/\xi_c} = "
        r"\big(\sigma_w^2 I_{\phi'}[q^*, c^* q^*]\big)^n \quad (q_t^l = q^*,\ q_{st}^l = c^* q^*)",
        says="In the chaotic phase of wide networks, a difference of two inputs' overlaps near the fixed "
        "point shrinks in each layer by the slope of the covariance map.",
        experiment=IN_CHAOS,
        kind=Kind.RATIO,
        score=("overlap_last", "overlap_first"),
        predict=lambda p: math.exp(-p.steps / _scales(p).correlation_depth),
        margin=0.03,
        margin_reason=DEEP,
        rivals={
            "chi, as for near inputs": _power_of("chi"),
            "slope of the variances": _power_of("variance_slope"),
            "without sigma_w^2": lambda p: (_scales(p).correlation_slope / p.weight_variance) ** p.steps,
            "one layer more": _power_of("correlation_slope", more=1),
        },
        quantity="difference of two overlaps, over n layers",
        axis="weight_variance",
    ),
)


# --- the critical point --------------------------------------------------------------------------------------


def critical_kappas(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """kappa1 of ReLU networks, and of leaky ones, at their critical point."""
    depths = np.array(point.depths, dtype=float)
    weight = criticality.critical_weight_variance(leaky_relu(point.slope), 0.0)
    found = [
        fisher.kappas(leaky_relu(point.slope), depth=depth, weight_variance=weight, bias_variance=0.0).kappa1
        for depth in point.depths
    ]
    return {
        "recursion": np.array(found),
        "L / (L - 1)": depths / (depths - 1),
        "1": np.ones_like(depths),
        "L": depths,
    }


KAPPA_IDENTITY = Identity(
    id="karakida2019/critical-kappa1",
    entries=("C16",),
    source=f"ours, {PAPER}, eq. (11), at the critical point of Poole et al. (2016)",
    passage=OURS,
    statement=r"\kappa_1 = \frac{L}{L - 1} \quad \Big(\text{leaky ReLU of slope } s,\ "
    r"\sigma_w^2 = \frac{2}{1 + s^2},\ \sigma_b = 0,\ \alpha_l = 1\Big)",
    says="For leaky ReLU at its critical initialisation with equal widths, the constant behind the mean "
    "Fisher eigenvalue is the number of layers over that of hidden layers.",
    routes=critical_kappas,
    points=(Point(depths=(2, 3, 7, 20), slope=0.0), Point(depths=(2, 5, 11), slope=0.3)),
    tolerance=1e-12,
    tolerance_reason="an exact identity in float64",
    seconds=0.01,
    quantity="kappa1, the constant of the mean eigenvalue",
)

# --- fixed points and phases ---------------------------------------------------------------------------------

LAYERS = 540
"""Enough for the farthest of the depth scales below, 14 layers, to leave nothing but rounding."""

SMALL = 1e-5
"""Step of a recursion at which its ratio to the next is the slope at the fixed point, up to this."""


def deep_networks(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Variance and correlation of two pre-activations deep inside, and how they approach what they become."""
    drawn = {"weight_variance": point.weight_variance, "bias_variance": point.bias_variance}
    moments = order_parameters(point.activation, depth=LAYERS, **drawn)
    variance, covariance = (
        point.weight_variance * hat + point.bias_variance for hat in (moments.q_hat_t, moments.q_hat_st)
    )
    correlation = covariance / variance
    found = criticality.depth_scales(point.activation, **drawn)
    fixed = criticality.variance_fixed_point(point.activation, **drawn)
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
    """Of one step to the step before, where these have become small."""
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
    says="Variance and correlation of two signals deep inside a wide network settle where theory puts them, "
    "and step by step at the rates it gives.",
    routes=deep_networks,
    points=(
        Point(activation="tanh", weight_variance=1.7, bias_variance=0.3),
        Point(activation="tanh", weight_variance=2.5, bias_variance=0.1),
        Point(activation="erf", weight_variance=2.3, bias_variance=0.15),
    ),
    tolerance=1e-4,
    tolerance_reason=f"steps of {SMALL:g} are not yet none; the fixed points themselves agree to 1e-12",
    seconds=1.3,
    quantity="variance, correlation and their slopes, deep inside",
)


def growing_pairs(block: Block, point: Point) -> Mapping[str, Any]:
    """Whether the squared distance of near inputs grows over some layers of a few networks."""
    found = travelling_pairs(block.repeated(point.networks), point)
    first, last = (
        found[f"distance_{name}"].reshape(len(block), point.networks).sum(1) for name in ("first", "last")
    )
    return {"grows": (last > first).double()}


FEW: dict[str, Any] = {"networks": 9, "steps": 4, "pairs": 3, "width": 70, "input_overlap": 0.7}

PHASES = Experiment(
    id="karakida2019/phases",
    replicate="nine networks with near inputs",
    simulate=growing_pairs,
    points=tuple(
        Point(activation=name, weight_variance=weights, bias_variance=biases, input_scale=scale, **FEW)
        for name, weights, biases, scale in (
            ("tanh", 1.83, 0.13, 0.5876),
            ("tanh", 2.35, 0.13, 0.641),
            ("erf", 1.56, 0.2, 0.6652),
            ("erf", 2.01, 0.2, 0.7067),
        )
    ),
    budget=1024,
    seconds=0.3,
)

GROWS = {"ordered": 0.0, "chaotic": 1.0}


def _grows(p: Point, *, biases: bool = True) -> float:
    """1 in the chaotic phase, 0 in the ordered one, by chi and by the critical line; 1/2 where these two differ."""
    biases_drawn = p.bias_variance if biases else 0.0
    found = criticality.depth_scales(
        p.activation, weight_variance=p.weight_variance, bias_variance=biases_drawn
    )
    above = p.weight_variance > criticality.critical_weight_variance(p.activation, biases_drawn)
    return (GROWS[found.phase] + float(above)) / 2


PHASE = Claim(
    id="karakida2019/phases",
    entries=("C6", "C7"),
    source=f"Poole et al. (2016), eq. (6) and figure 1, beside {PAPER}, eqs. (5) to (7)",
    passage=KNOWN,
    statement=r"\chi(\sigma_w^2, \sigma_b^2) > 1 \iff \sigma_w^2 > \sigma_{w*}^2(\sigma_b^2):\quad "
    r"\text{near inputs part in the chaotic phase and approach each other in the ordered one}",
    says="In drawn networks above the critical weight variance the distance of near inputs grows from layer to "
    "layer, and below it shrinks.",
    experiment=PHASES,
    kind=Kind.PROPORTION,
    score="grows",
    predict=_grows,
    margin=0.2,
    relative=False,
    margin_reason="one group of networks in five on the wrong side, by scatter",
    rivals={
        "the other way round": lambda p: 1 - _grows(p),
        "critical line of no biases": lambda p: _grows(p, biases=False),
        "always ordered": lambda _: 0.0,
    },
    quantity="share of groups of networks in which near inputs part",
    axis="weight_variance",
)

CLAIMS: tuple[AnyClaim, ...] = (*CRITICALITY_CLAIMS, KAPPA_IDENTITY, FIXED_POINTS, PHASE)
