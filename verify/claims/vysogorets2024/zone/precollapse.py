"""Vysogorets, Dawid and Kempe (2024): the least confident sample, the last one whose softmax collapses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import networks
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature, layer_blocks
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.zone.collapsed import EVENTS, excess_of, lenet, multiplied_out
from verify.model import AnyClaim, Claim, Experiment, Kind, NoTheory
from verify.model.observation import Column, Observation

__all__ = ["CLAIMS", "OBSERVATIONS"]

# --- the least confident sample ------------------------------------------------------------------------------


def least_confident(block: Block, point: Point) -> Mapping[str, Any]:
    """Whether the least confident image has the top eigenvector of the first layer's block at the largest scale."""
    found = []
    for rng in block.streams:
        weights, images, _ = lenet(rng, point, block.device)
        top = layer_blocks.layer_block(weights, images, alpha=point.alpha[-1]).top_direction()
        image = images[_least_confident(weights, images)]
        found.append(float((top @ image).square().sum() > SHOWN * image.square().sum()))
    return {"shown": np.array(found)}


SHOWN = 0.99
"""What the least confident image must have of the energy of the eigenvector: others come to 0.95."""


def _least_confident(weights: Any, images: Any) -> int:
    """The image with the smallest gap of its two largest logits."""
    first, second = networks.mlp_logits(weights, images).topk(2, dim=1).values.T
    return int((first - second).argmin())


LEAST_CONFIDENT = Experiment(
    id="vysogorets2024/least-confident",
    replicate="one LeNet-300-100 at initialisation with 60 images",
    simulate=least_confident,
    points=(Point(images="digits", samples=60, alpha=(4.0, 10.0, 40.0)),),
    budget=1024,
    seconds=3.6,
    data="digits",
)


# --- what one network shows over all scales ------------------------------------------------------------------


def _plateau(block: Block, point: Point) -> Mapping[str, Any]:
    """Excesses of LeNet-300-100 along a random frame, and of its first layer's block, at every scale."""
    rows = [_plateau_of_one(rng, point, block.device) for rng in block.streams]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _plateau_of_one(rng: np.random.Generator, point: Point, device: str) -> dict[str, Any]:
    weights, images, labels = lenet(rng, point, device)
    net = _along_a_frame(rng, weights, images, labels, point.dim)
    terms, least = net.terms(point.alpha), _least_confident(weights, images)
    blocks = [layer_blocks.layer_block(weights, images, alpha=alpha) for alpha in point.alpha]
    return {
        "hessian": curvature.positive_excess(terms.hessian).cpu(),
        "g_term": curvature.positive_excess(net.scaled_g_term(point.alpha)[0]).cpu(),
        "float64": [excess_of(multiplied_out(net, alpha)) for alpha in point.alpha],
        "float32": [excess_of(multiplied_out(net, alpha, "float32")) for alpha in point.alpha],
        "block": [found.excess for found in blocks],
        "share": [float(found.shares[least]) for found in blocks],
    }


def _along_a_frame(rng: np.random.Generator, weights: Any, images: Any, labels: Any, dim: int) -> Any:
    """A network along a random frame, of which the directions that no image sees are never drawn."""
    import torch

    first, *others = weights
    span, coordinates = torch.linalg.qr(images.T)
    seen, size = (first @ span, *others), sum(weight.numel() for weight in weights)
    rows = sum(weight.numel() for weight in seen)
    frame = curvature.haar(rng, rows, dim, total=size, device=str(first.device))
    return curvature.ProjectedMlp(seen, coordinates.T, labels, frame)


OBSERVATIONS: tuple[Observation, ...] = (
    Observation(
        id="vysogorets2024/plateau-of-the-excess",
        entries=("A22", "A51"),
        source=f"{PAPER}, section 3 and appendix D, figures 2 and 10",
        title="Excess of the Hessian and of its Gauss-Newton term as the weights grow",
        note="G goes to an excess of 1, that of one sample with two likely classes, and stays there at every scale; "
        "so does the first layer's block of H, in which the H-term has no part. What falls to 0 is G as float64 "
        "multiplies it out, on every network of one run from alpha = 31.6 on; in float32 noise of either sign is left "
        "(-0.9 to 0.7). The excess of H itself does drop, to the scatter of a random projection (0.2), once the H-term "
        "takes over. That it stays near 1 before was seen on one network in six (1.01 at alpha = 10): the others pass "
        "1 on their way down. LeNet-5 is not measured here.",
        replicate="one LeNet-300-100 at initialisation with 60 images, along 50 random directions",
        simulate=_plateau,
        single="one of its columns is what single precision leaves",
        points=(
            Point(images="digits", samples=60, dim=50, alpha=(1.0, 3.0, 5.6, 10.0, 17.8, 31.6, 56.2, 100.0)),
        ),
        along="alpha",
        columns=(
            Column(score="hessian", heading="excess of H"),
            Column(score="g_term", heading="excess of G"),
            Column(score="float64", heading="excess of G, multiplied out in float64"),
            Column(score="float32", heading="excess of G, multiplied out in float32"),
            Column(score="block", heading="excess of the first layer's block of H"),
            Column(score="share", heading="the least confident image's share of that block"),
        ),
        replicates=6,
        seconds=0.17,
        data="digits",
        axis="scale alpha of the weights",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/least-confident-image",
        entries=("A50",),
        source=f"{PAPER}, appendix D, figure 10",
        no_theory=NoTheory.CONSTANT,
        statement=r"P\big(\lvert V \hat x_{\mu_0}\rvert^2 > 0.99\big) \to 1 \text{ for the top eigenvector } V "
        r"\text{ of the first layer's block } (\alpha \gg 1), \text{ at } \alpha = 40",
        says="Far above the zone, the top eigenvector of the first layer's block lies along the least confident image "
        "on almost every network.",
        experiment=LEAST_CONFIDENT,
        kind=Kind.PROPORTION,
        score="shown",
        predict=lambda _: 1.0,
        margin=0.1,
        relative=False,
        margin_reason=EVENTS,
        pilot="the threshold 0.99: of the first networks drawn, other images came to 0.95",
        rivals={"half of the networks": lambda _: 0.5},
        quantity="share of networks whose top eigenvector is along the least confident image",
    ),
)
