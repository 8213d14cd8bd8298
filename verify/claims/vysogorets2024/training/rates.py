"""Vysogorets, Dawid and Kempe (2024): the largest learning rate of a scaled network."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulate import data, networks
from simulate.monte_carlo import Block, Point
from simulate.training import learnable_rates
from theory import zone
from verify.claims.vysogorets2024 import PAPER
from verify.model import AnyClaim, Claim, Experiment, Passage, Standing

__all__ = ["CLAIMS"]

LADDER = {"factor": math.sqrt(2), "count": 7}
"""Rates eta from 0.35 to 4, all moved by one random factor up to sqrt(2): every network learns at the first ones."""


def base_rates(block: Block, point: Point) -> Mapping[str, Any]:
    """Exponent between two scales of the largest eta_0 = eta alpha^(L-2) at which a network learns; same images."""
    networks = _classifiers(block, point)
    small, large = (_ladder(networks, alpha, block, point) for alpha in (point.small, point.large))
    return {"exponent": np.log(large / small) / math.log(point.large / point.small) + point.depth - 2}


def _ladder(networks: Any, alpha: float, block: Block, point: Point) -> Any:
    import torch

    offsets = torch.from_numpy(np.array([rng.uniform() for rng in block.streams])).to(block.device)
    return learnable_rates.largest_rates(
        networks.scaled(alpha),
        lowest=0.35 * LADDER["factor"] ** offsets,
        target=math.log(networks.weights[-1].shape[1]) / 2,
        steps=point.steps,
        **LADDER,
    )


def _classifiers(block: Block, point: Point) -> Any:
    """Networks on images pooled to 4 x 4; float64, for near the largest rate rounding decides whether a run learns.

    In float32 the exponents of 3 % of the networks of two layers and of 61 % of those of five came out others.
    """
    import torch

    source = data.opened(point.images, (1, 4, 4))
    widths = (16, *[point.width] * (point.depth - 1), source.classes)
    weights = [networks.mlp_weights(rng, widths) for rng in block.streams]
    images = [data.sample(source, rng, point.samples).flat() for rng in block.streams]
    return learnable_rates.Classifiers(
        tuple(torch.stack(layer).to(block.device) for layer in zip(*weights, strict=True)),
        torch.from_numpy(np.stack([i.images for i in images])).to(block.device),
        torch.from_numpy(np.stack([i.labels for i in images])).to(block.device),
    )


def _exponent(p: Point) -> float:
    rates = zone.largest_base_rate([p.small, p.large], sharpness=1.3, depth=p.depth)
    return float(np.diff(np.log(rates)).item() / np.log(p.large / p.small))


def _experiment(name: str, seconds: float, *rows: tuple[int, float, float, int]) -> Experiment:
    """Points of depth, small and large scale, and steps."""
    return Experiment(
        id=f"vysogorets2024/base-rates-{name}",
        replicate="one bias-free ReLU network with 24 images, trained at two scales and seven learning rates each",
        simulate=base_rates,
        points=tuple(
            Point(images="digits", depth=depth, small=small, large=large, width=20, samples=24, steps=steps)
            for depth, small, large, steps in rows
        ),
        budget=512,
        seconds=seconds,
        data="digits",
        rounding={"exponent": math.inf},  # next to the largest rate, see `_classifiers`
    )


SLOPES: dict[str, Callable[[Any], float]] = {
    "of the logit gradients, L - 1": lambda p: p.depth - 1.0,
    "of the logits, L": lambda p: float(p.depth),
    "of the schedule, 2 - L": lambda p: 2.0 - p.depth,
    "half the power": lambda p: (p.depth - 2) / 2,
}


def _exponent_claim(experiment: Experiment, **its_own: Any) -> Claim:
    return Claim(
        id=experiment.id.replace("base-rates", "base-rate-exponent"),
        entries=("A54",),
        source=f"{PAPER}, appendix E, figure 8 left",
        statement=r"\eta_{0,\max} \sim \alpha^{L-2}:\text{ the largest } \eta = \eta_0 \alpha^{2-L} "
        r"\text{ at which a network learns does not depend on its initial scale}",
        experiment=experiment,
        score="exponent",
        predict=_exponent,
        relative=False,
        rivals=SLOPES,
        axis="depth",
        quantity="exponent of the largest base rate in the scale",
        **its_own,
    )


CLAIMS: tuple[AnyClaim, ...] = (
    _exponent_claim(
        _experiment("three-layers", 2.2, (3, 0.07, 0.6, 250)),
        says="With three layers, the largest base learning rate at which a network learns grows linearly with its "
        "initial scale.",
        margin=0.1,
        margin_reason="an exponent, 0.05, and as much for a larger scale that is not yet small, where base rates were "
        "seen to lie a tenth above the power; ten times smaller scales would need ten times the steps",
        pilot="the margin 0.1: base rates of the first networks drawn lay a tenth above the power at the larger scale",
    ),
    _exponent_claim(
        _experiment("deep", 5.5, (4, 0.25, 0.8, 300), (5, 0.35, 0.9, 400)),
        says="With four and five layers, the largest base learning rate at which a network learns grows as the "
        "initial scale to the depth less two.",
        margin=0.2,
        margin_reason="an exponent between scales a factor of three apart, where rates of single networks differ by "
        "30 %: a fifth of a layer is what a hundred networks resolve",
        pilot="the margin 0.2: rates of single networks drawn first differed by 30 %",
        reads=r"\eta_0 \alpha^{-1} = 2/\mathcal{O}(1)",
        printed=lambda _: 1.0,
        passage=Passage(
            Standing.AS_STATED, "linear separation between trainable and divergent models", "Appendix E"
        ),
        finding="The paper has eta_0 / alpha the same at all scales, for LeNet-5 with its five layers too: the case of "
        "L = 3 said of both. With its own eta = eta_0 alpha^(2-L) it is eta_0 alpha^(2-L) that stays.",
    ),
)
