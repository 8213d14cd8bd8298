"""Generalised sharpness of perceptrons late in steepest descent in a norm, each network at two rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import edges, grids, scaled_training, stacks, steepest
from theory.learning_rates import edge_of_stability
from verify.claims.trained_networks import (
    RARE,
    all_samples,
    batches_of,
    common_rates,
    drawn_images,
    trained_on_digits,
    training_sets,
)
from verify.model import OURS, Arrays, Claim, Experiment, Kind, NoTheory, as_stated

if TYPE_CHECKING:
    from torch import Tensor

PAPER = "Islamov, Crawshaw, Cohen and Gower (2026), arXiv 2603.05002"

STARTS, PRODUCTS = 2, 8
"""Random starts of the search for the largest curvature, and Hessian products for each."""


def _normal(block: Block, networks: Tensor, like: Tensor) -> Tensor:
    import torch

    drawn = [block.streams[network].standard_normal(like.shape[1:]) for network in networks.tolist()]
    return torch.from_numpy(np.stack(drawn)).to(like)


def late_sharpness(block: Block, point: Point) -> Arrays:
    """Generalised sharpness and largest eigenvalue, mean over the looks, of each network at each rate."""
    images, classes = drawn_images(block, point)
    labels = [np.eye(classes)[rng.integers(classes, size=point.samples)] for rng in block.streams]
    samples = training_sets(block, [d.images for d in images], labels)
    drawn = stacks.perceptrons_at_start(block.streams, (64, *point.hidden, classes))[::2]
    stack, start = (
        stacks.Perceptrons("tanh", "squared error", bias=False),
        [p.to(block.device) for p in drawn],
    )
    rule = steepest.Steepest(norm=point.norm, normalised=point.normalised)
    count = len(point.rate)

    def measure(_: int, cells: grids.Cells) -> dict[str, Tensor]:
        networks, own = cells.networks(count), cells.parameters
        setting = (stack, own, *all_samples(samples, networks))
        random = [[_normal(block, networks, p) for p in own] for _ in range(STARTS)]
        found = steepest.generalised_sharpness(*setting, norm=point.norm, starts=random, steps=PRODUCTS)
        gradients = stack.losses_and_gradients(own, *setting[2:])[1]
        dual = scaled_training.inner(gradients, steepest.NORMS[point.norm](gradients), 1)
        return {
            "sharpness": found / dual if point.normalised else found,
            "eigenvalue": edges.top_eigenvalues(*setting, steps=PRODUCTS).values,
        }

    run = grids.train(
        stack,
        start,
        samples,
        batches_of(block, point.samples, point.samples),
        rates=common_rates(block, *point.rate),
        steps=max(point.looks),
        rule=rule,
        watch=measure,
        at=point.looks,
    )
    found = {
        name: np.nan_to_num(values.double().mean(-1).cpu().numpy()) for name, values in run.watched.items()
    }
    level = found["sharpness"] / edge_of_stability.edge(point.rate)
    return found | {"at the edge": (np.abs(level - 1) < point.within).astype(float)}


USUAL = {"images": "digits", "normalised": False, "within": 0.25, "samples": 32, "hidden": (16,)}
"""Parameters that an experiment has unless it gives others."""


def _experiment(name: str, seconds: float, **setting: Any) -> Experiment:
    return trained_on_digits(
        id=f"steepest/{name}",
        replicate="one perceptron with its images and random labels, trained at two rates",
        simulate=late_sharpness,
        points=(Point(**(USUAL | setting)),),
        budget=384,
        seconds=seconds,
    )


SPECTRAL = _experiment(
    "spectral",
    2.3,
    norm="spectral",
    within=0.1,
    rate=(0.03, 0.05),
    looks=(80, 100),
)
BLOCKS = _experiment(
    "blocks",
    1.8,
    norm="blocks",
    rate=(0.1, 0.14),
    looks=(270, 300),
)
SCALED = _experiment(
    "sign-descent",
    1.6,
    norm="signs",
    normalised=True,
    samples=48,
    hidden=(8,),
    rate=(0.0005, 0.0008),
    looks=(270, 300),
)
SIGNS = _experiment(
    "signs",
    1.3,
    norm="signs",
    rate=(0.0002, 0.0004),
    looks=(175, 200),
)


def _edge(p: Any) -> Any:
    return edge_of_stability.edge(p.rate)


COMMON: dict[str, Any] = {
    "along": "rate",
    "pilot": "the sizes, rates, steps and margins: 96 networks of each kind with another seed",
}
LEVEL: dict[str, Any] = {
    **COMMON,
    "source": f"{PAPER}, abstract",
    "passage": as_stated("oscillations around or above the threshold", "abstract"),
    "score": "sharpness",
    "quantity": "generalised sharpness, mean over time",
}
SHARE: dict[str, Any] = {
    **LEVEL,
    "kind": Kind.PROPORTION,
    "score": "at the edge",
    "predict": lambda _: 1.0,
    "margin": 0.25,
    "relative": False,
    "margin_reason": "one network in four: a few lie far above, and their mean would tell of them alone",
    "rivals": {"never": lambda _: 0.0, "every second network": lambda _: 0.5},
    "no_theory": NoTheory.CONSTANT,
    "quantity": "share of networks whose generalised sharpness is at the edge",
}
SIGN_SYMBOLS = {r"|g|_1": "sum of the sizes of the entries of the gradient", r"d_i": "entry of d"}

CLAIMS = (
    Claim(
        id="steepest/spectral",
        **SHARE,
        entries=("M1",),
        experiment=SPECTRAL,
        statement=r"P\big(|\overline{\max\nolimits_{\|d_l\|_2 \le 1} d^\top H d} \cdot \eta/2 - 1| < 0.1\big) = 1 "
        r"\quad\text{for } w_l' = w_l - \eta\, \Big(\sum_k \|g_k\|_{\rm tr}\Big)\, \mathrm{polar}(g_l)",
        symbols={
            r"g_l": "gradient by the weight matrix of layer l",
            r"w_l": "this matrix",
            r"d_l": "its part of d",
        },
        says="Under spectral descent the largest curvature along steps of spectral norm one in each layer comes to "
        "within a tenth of two over the rate.",
    ),
    Claim(
        id="steepest/blocks",
        **SHARE,
        entries=("M2",),
        experiment=BLOCKS,
        statement=r"P\big(|\overline{\max\nolimits_l \lambda_1(H_{ll})} \cdot \eta/2 - 1| < 0.25\big) = 1 "
        r"\quad\text{for descent in the layer whose gradient is longest}",
        symbols={r"H_{ll}": "block of the Hessian that belongs to layer l"},
        says="When each step moves only the layer with the longest gradient, the largest eigenvalue of a layer's "
        "block of the Hessian comes to within a quarter of two over the rate.",
    ),
    Claim(
        id="steepest/sign-descent",
        **SHARE,
        entries=("M3",),
        experiment=SCALED,
        statement=r"P\big(|\overline{\max\nolimits_{|d_i| \le 1} d^\top H d / |g|_1} \cdot \eta/2 - 1| < 0.25\big) = 1 "
        r"\quad\text{for } w' = w - \eta\, \mathrm{sign}\, g",
        symbols=SIGN_SYMBOLS,
        says="Under sign descent the largest curvature along vectors of signs, over the sum of absolute gradients, "
        "comes to within a quarter of two over the rate.",
    ),
    Claim(
        id="steepest/signs",
        **LEVEL,
        entries=("M4",),
        statement=r"\text{time mean of } \max_{|d_i| \le 1} d^\top H d \ge 0.9 \cdot 2/\eta \quad\text{(every "
        r"network), } w' = w - \eta\, |g|_1\, \mathrm{sign}\, g",
        symbols=SIGN_SYMBOLS,
        says="Under steepest descent in the largest-entry norm the largest curvature along vectors of signs comes to "
        "two over the rate or above, but for a tenth, in every network.",
        experiment=SIGNS,
        kind=Kind.NEVER_BELOW,
        predict=lambda p: 0.9 * _edge(p),
        **RARE,
        rivals={"half above the edge": lambda p: 1.5 * _edge(p), "twice the edge": lambda p: 2 * _edge(p)},
    ),
    Claim(
        id="steepest/eigenvalue-under-spectral-descent",
        **COMMON,
        source=f"ours, on the rule of {PAPER}",
        entries=("M5",),
        passage=OURS,
        statement=r"\text{time mean of } \lambda_1(H) \le 1/\eta \quad\text{under spectral descent (every network)}",
        says="Under spectral descent the largest eigenvalue of the Hessian stays below half of two over the rate in "
        "every network.",
        experiment=SPECTRAL,
        kind=Kind.NEVER_ABOVE,
        score="eigenvalue",
        predict=lambda p: _edge(p) / 2,
        **RARE,
        rivals={"a fifth of it": lambda p: _edge(p) / 10, "a tenth of it": lambda p: _edge(p) / 20},
        quantity="largest eigenvalue of the Hessian, mean over time",
    ),
)
