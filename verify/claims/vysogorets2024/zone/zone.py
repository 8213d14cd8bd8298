"""Vysogorets, Dawid and Kempe (2024): edges and rates of the Goldilocks zone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate import data, networks
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import confident, curvature
from theory import zone
from verify.claims.vysogorets2024 import PAPER, framed_networks
from verify.claims.vysogorets2024.zone.networks import ZONE
from verify.model import OURS, AnyClaim, Claim, Experiment, Tier

__all__ = ["CLAIMS"]

# --- small scales --------------------------------------------------------------------------------------------


def small_scales(block: Block, point: Point) -> Mapping[str, Any]:
    """Local exponents of both norms between two small scales, and the sharpness at the larger one.

    Measured on networks with scaled weights; nothing is taken from the scaling of derivatives.
    """
    source, found = data.opened(point.images, (1, 8, 8)), []
    for rng in block.streams:
        images = data.sample(source, rng, point.samples).flat()
        widths = (*point.widths, source.classes)
        weights = [w.to(block.device) for w in networks.mlp_weights(rng, widths)]
        frame = curvature.haar(rng, networks.weight_count(widths), point.dim, device=block.device)
        nets = [
            curvature.ProjectedMlp([a * w for w in weights], images.images, images.labels, frame)
            for a in (point.smaller, point.alpha, 1.0)
        ]
        small, large = ([float(curvature.spectral_norm(m)) for m in net.terms()] for net in nets[:2])
        rates = np.log(np.divide(large, small)) / np.log(point.alpha / point.smaller)
        sharpness = float(curvature.spectral_norm(nets[1].terms().hessian))
        found.append((*rates, sharpness, framed_networks.uniform_norms(nets[2])[1]))
    names = ("g_rate", "h_rate", "sharpness", "h_norm")
    return dict(zip(names, np.array(found).T, strict=True))


def _depth(p: Point) -> int:
    """Layers with weights; the last one, to the classes of the images, is not among the widths."""
    return len(p.widths)


def _local_exponent(p: Any, name: str) -> float:
    """Of one factor of the curvature between the two scales."""
    small, large = (
        getattr(zone.curvature_factors(alpha, depth=_depth(p)), name) for alpha in (p.smaller, p.alpha)
    )
    return float(np.log(large / small) / np.log(p.alpha / p.smaller))


SMALL = Experiment(
    id="vysogorets2024/small-scales",
    replicate="one bias-free ReLU network at initialisation with 40 images and a random projection",
    simulate=small_scales,
    points=tuple(
        Point(images="digits", widths=widths, smaller=0.04, alpha=0.09, samples=40, dim=10)
        for widths in ((64, 30, 20), (64, 50, 40, 30, 20))
    ),
    budget=512,
    seconds=2.1,
    data="digits",
)

RATES = "the default for exponents; predictions are uniform up to a relative O(alpha^L), below 0.001 at these scales"

SMALL_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/g-term-rate",
        entries=("A21",),
        source=f"{PAPER}, section 3",
        statement=r"\frac{d \log \lVert G'_d\rVert_2}{d \log \alpha} = 2L - 2 \quad\text{for } \alpha \to 0",
        says="As the weights are scaled down, the norm of the Gauss-Newton term falls as the scale to the power of "
        "twice the depth less two.",
        experiment=SMALL,
        score="g_rate",
        predict=lambda p: _local_exponent(p, "gauss_newton"),
        margin=0.05,
        relative=False,
        margin_reason=RATES,
        rivals={
            "2 L": lambda p: 2 * _depth(p),
            "2 L - 1": lambda p: 2 * _depth(p) - 1,
            "L": lambda p: _depth(p),
            "L - 1, one Jacobian": lambda p: _depth(p) - 1,
        },
        quantity="local exponent of the norm of the G-term",
    ),
    Claim(
        id="vysogorets2024/h-term-rate",
        entries=("A21",),
        source=f"{PAPER}, section 3",
        statement=r"\frac{d \log \lVert \tilde H'_d\rVert_2}{d \log \alpha} = L - 2 \quad\text{for } \alpha \to 0",
        says="As the weights are scaled down, the norm of the Hessian's remainder falls only as the scale to the "
        "power of the depth less two.",
        experiment=SMALL,
        score="h_rate",
        predict=lambda p: _local_exponent(p, "h_term"),
        margin=0.05,
        relative=False,
        margin_reason=RATES,
        rivals={
            "L": lambda p: _depth(p),
            "L - 1": lambda p: _depth(p) - 1,
            "2 L - 2, as for G": lambda p: 2 * _depth(p) - 2,
        },
        quantity="local exponent of the norm of the H-term",
    ),
    Claim(
        id="vysogorets2024/sharpness-at-small-scale",
        entries=("A53",),
        source=f"{PAPER}, section 5, figure 8 right; the level is ours",
        passage=OURS,
        statement=r"\alpha^{2-L} \lVert H'_d\rVert_2 \to \lVert \tilde H_d\rVert_2 \text{ at uniform } p, "
        r"\quad \alpha \to 0",
        says="At small scale, the spectral norm of the Hessian is that of its remainder at uniform predictions, times "
        "the scale to the depth less two.",
        experiment=SMALL,
        score="sharpness",
        inputs={"h_norm": lambda p: 0.027 if _depth(p) == 3 else 0.02},
        predict=lambda p: p.h_norm * zone.curvature_factors(p.alpha, depth=_depth(p)).h_term,
        margin=0.01,
        margin_reason="G adds alpha^L |G| / |Ht|, 0.2 % of it, if all at the top of the H-term",
        rivals={
            "rate 1 / alpha^(L-1)": lambda p: p.h_norm * p.alpha ** (_depth(p) - 1),
            "rate 1 / alpha^L": lambda p: p.h_norm * p.alpha ** _depth(p),
            "rate of G": lambda p: p.h_norm * p.alpha ** (2 * _depth(p) - 2),
        },
        quantity="spectral norm of the projected Hessian",
    ),
)

# --- the lower edge ------------------------------------------------------------------------------------------

LENET_DEPTH = 3

NORMS = {"g_norm": 0.0224, "h_norm": 0.0062, "g_frobenius": 0.043, "h_frobenius": 0.0224}

EDGE_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/lower-edge",
        entries=("A21",),
        source=f"ours, from eqs. (5) and (6) of {PAPER}",
        passage=OURS,
        statement=r"\alpha_{\rm low} = \left( \frac{\lVert \tilde H_d\rVert_2}{\lVert G_d\rVert_2} "
        r"\right)^{1/L} \text{ at uniform } p:\quad \lVert G'_d\rVert_2 = \lVert \tilde H'_d\rVert_2",
        says="The lower edge of the zone is the ratio of the remainder's norm to the Gauss-Newton term's, at uniform "
        "predictions, to the power of one over the depth.",
        experiment=ZONE,
        score="edge",
        inputs=NORMS,
        predict=lambda p: zone.lower_edge(p.g_norm, p.h_norm, depth=LENET_DEPTH),
        margin=0.03,
        numerical=1e-5,
        margin_reason="the default for networks; the predictions at the edge are not quite uniform, which moves single "
        "networks of 40 images by 4 %, either way",
        rivals={
            "exponent 1 / (L - 1)": lambda p: (p.h_norm / p.g_norm) ** (1 / (LENET_DEPTH - 1)),
            "exponent 1 / (L + 1)": lambda p: (p.h_norm / p.g_norm) ** (1 / (LENET_DEPTH + 1)),
            "exponent 1 / (2 L - 2)": lambda p: (p.h_norm / p.g_norm) ** (1 / (2 * LENET_DEPTH - 2)),
            "Frobenius norms": lambda p: (p.h_frobenius / p.g_frobenius) ** (1 / LENET_DEPTH),
            "no root": lambda p: p.h_norm / p.g_norm,
        },
        quantity="scale at which the projected G-term first outweighs the H-term",
    ),
)

# --- the upper edge, and what holds it up --------------------------------------------------------------------


OTHERS = 3
"""Further sets of inputs of every network, of which the smallest gaps alone are looked at."""

LEVER = 0.4
"""By which a smaller gap moves the edge out, both as logarithms: near 1/L. Any would leave the mean as it is."""


def upper_edges(block: Block, point: Point) -> Mapping[str, Any]:
    """Growth of the upper crossing of one network with the number of its inputs.

    The smallest gap of a set of inputs moves its edge more than all else. This scatter is taken out by the smallest
    gaps of other sets of the same network: no set is on average other than the mean of all.
    """
    growth = []
    for rng in block.streams:
        weights = [w.to(block.device) for w in networks.mlp_weights(rng, point.widths)]
        dim = networks.weight_count(point.widths)
        frame = curvature.haar(rng, dim, point.dim, device=block.device)
        sets = [
            rng.standard_normal((n, point.widths[0]))
            for n in (point.samples, point.more, OTHERS * point.more)
        ]
        few, many, others = (confident.gaps(_logits(weights, x, 1.0)).log().numpy(force=True) for x in sets)
        leads = np.array([_lead(own, others) for own in (few, many)])
        edges = np.array([_upper_edge(rng, weights, frame, x) for x in sets[:2]])
        growth.append(np.diff(np.log(edges) + LEVER * leads).item() / np.log(point.more / point.samples))
    return {"growth": np.array(growth)}


def _lead(own: Any, others: Any) -> float:
    """Smallest of the own ones, less its mean over them and over all sets of as many others."""
    smallest = np.concatenate([own, others]).reshape(-1, len(own)).min(1)
    return smallest[0] - smallest.mean()


def _upper_edge(rng: np.random.Generator, weights: Any, frame: Any, x: NDArray[np.float64]) -> float:
    """Read off with as many samples near a tie as it takes to reach down to it."""
    samples = len(x)
    labels = rng.integers(0, len(weights[-1]), samples)
    near = 64 if samples > 1000 else samples
    while True:
        net = confident.ConfidentMlp(weights, x, labels, frame, near=near)
        grid = np.geomspace(max(net.least, 0.5), (1e6 * samples) ** (1 / net.depth), 25)
        if near >= samples or framed_networks.log_ratio(net, grid[:1]).item() > 0:
            return framed_networks.upper_crossing(net, grid)
        near *= 4


SET = 100
"""Inputs of a set, one of which is near a tie at its upper edge."""


def near_ties(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean product of the two largest probabilities, the density of small gaps, and where one of a set is near a tie.

    The last on inputs of its own: the scale at which on average one gap of `SET` inputs is below alpha^-L.
    """
    found = []
    for rng in block.streams:
        weights = [w.to(block.device) for w in networks.mlp_weights(rng, point.widths)]
        x = rng.standard_normal((point.samples, point.widths[0]))
        first, second = _logits(weights, x, 1.0).topk(2).values.T
        others = _logits(weights, rng.standard_normal(x.shape), 1.0).topk(2).values
        last = (others[:, 0] - others[:, 1]).kthvalue(point.samples // SET).values
        p = (_logits(weights, x, point.alpha) / point.temperature).softmax(-1).topk(2).values
        density = (first - second < point.gap).double().mean() / point.gap
        found.append((float(p.prod(-1).mean()), float(density), float(last) ** (-1 / len(weights))))
    weight, density, edge = np.array(found).T
    return {"weight": weight, "gap_density": density, "edge": edge}


def _logits(weights: Any, x: Any, alpha: float) -> Any:
    """Of the network with all weights scaled."""
    import torch

    return networks.mlp_logits([alpha * w for w in weights], torch.as_tensor(x).to(weights[0]))


def _layers(p: Point) -> int:
    return len(p.widths) - 1


def _growth(p: Point) -> float:
    """Exponent of the upper edge in the number of samples, whatever the density of gaps."""
    few, many = (zone.upper_edge(n, gap_density=0.3, depth=_layers(p)).item() for n in (p.samples, p.more))
    return float(np.log(many / few) / np.log(p.more / p.samples))


UPPER = Experiment(
    id="vysogorets2024/upper-edges",
    replicate="one bias-free ReLU network with 100 and with 10,000 normal inputs, random labels, a random projection; "
    "30,000 more inputs of which only the smallest gaps are used",
    simulate=upper_edges,
    points=(Point(widths=(20, 30, 20, 10), samples=100, more=10_000, dim=3),),
    budget=2048,
    seconds=8.7,
    tier=Tier.FULL,
)

TIES = Experiment(
    id="vysogorets2024/near-ties",
    replicate="one bias-free ReLU network with 20,000 normal inputs, and as many others",
    simulate=near_ties,
    points=(
        Point(widths=(20, 30, 10), alpha=14.0, temperature=1.7, samples=20_000, gap=0.02),
        Point(widths=(20, 30, 20, 10), alpha=6.5, temperature=1.7, samples=20_000, gap=0.02),
    ),
    budget=512,
    seconds=3.4,
)

UPPER_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/upper-edge-growth",
        entries=("A23",),
        source=f"ours, beside {PAPER}, section 3",
        passage=OURS,
        statement=r"\alpha_{\rm high} \sim N^{1/L}:\quad \mathbb{E} \frac{\log \alpha_{\rm high}(N_2) - \log "
        r"\alpha_{\rm high}(N_1)}{\log N_2 - \log N_1} = \frac{1}{L}",
        says="On normal inputs the upper edge of the zone moves out with their number to the power one over depth.",
        experiment=UPPER,
        score="growth",
        predict=_growth,
        margin=0.05,
        relative=False,
        margin_reason="the default for exponents",
        rivals={
            "0, the same for every sample": lambda _: 0.0,
            "1 / (L - 1)": lambda p: 1 / (_layers(p) - 1),
            "1": lambda _: 1.0,
        },
        quantity="exponent of the upper edge in the number of samples",
    ),
    Claim(
        id="vysogorets2024/upper-edge",
        entries=("A23",),
        source=f"ours, beside {PAPER}, section 3",
        passage=OURS,
        statement=r"\alpha_{\rm high} = (N f(0))^{1/L}:\quad \text{one of } N = 100 \text{ gaps of the two largest "
        r"logits is on average below } \alpha_{\rm high}^{-L}",
        says="The scale at which on average one sample of a set is near a tie is sample count times density of near "
        "ties, to the power of one over depth.",
        experiment=TIES,
        score="edge",
        inputs={"gap_density": 1.2},
        predict=lambda p: zone.upper_edge(SET, gap_density=p.gap_density, depth=_layers(p)),
        margin=0.03,
        margin_reason="the default for networks; the root of 200 gaps of 20,000, and of a density up to 0.02 in place "
        "of 0, costs 0.5 % or less",
        rivals={
            "median over sets of the last": lambda p: (SET * p.gap_density / np.log(2)) ** (1 / _layers(p)),
            "all gaps of one size, half of N": lambda p: (SET * p.gap_density / 2) ** (1 / _layers(p)),
            "whatever the gaps": lambda p: SET ** (1 / _layers(p)) + 0 * p.gap_density,
            "1 / (L - 1)": lambda p: (SET * p.gap_density) ** (1 / (_layers(p) - 1)),
        },
        quantity="scale at which one of 100 samples is near a tie",
    ),
    Claim(
        id="vysogorets2024/near-tie-weight",
        entries=("A23",),
        source=f"ours, beside {PAPER}, section 3",
        passage=OURS,
        statement=r"\mathbb{E}\, p_1 p_2 = \frac{f(0)\, T}{2 \alpha^L}\quad "
        r"\text{for large } \alpha,\ f \text{ the density of the gap of the two largest logits}",
        says="At large scale, the mean product of the two largest probabilities is half the density of near ties, "
        "times temperature over the scale to the depth.",
        experiment=TIES,
        score="weight",
        inputs={"gap_density": 1.2},
        predict=lambda p: zone.near_tie_weight(
            p.alpha, gap_density=p.gap_density, depth=_layers(p), temperature=p.temperature
        ),
        margin=0.03,
        margin_reason="the default for networks; gaps up to 0.02 in place of 0 cost 1 % or less",
        rivals={
            "without 1/2": lambda p: p.gap_density * p.temperature / p.alpha ** _layers(p),
            "a quarter, its largest value": lambda p: (
                p.gap_density * p.temperature / p.alpha ** _layers(p) / 4
            ),
            "1 / T": lambda p: p.gap_density / p.temperature / p.alpha ** _layers(p) / 2,
            "power L - 1": lambda p: p.gap_density * p.temperature / p.alpha ** (_layers(p) - 1) / 2,
        },
        quantity="mean product of the two largest probabilities",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*SMALL_CLAIMS, *EDGE_CLAIMS, *UPPER_CLAIMS)
