"""Blocks of the Hessian between hidden neurons of a perceptron, by automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory.gauss_newton import class_blocks
from verify.claims.structure.classes import SAID, SOURCE, block_norms, power
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind, NoTheory

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["CLAIMS"]


def _loss_of(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Means over samples of outputs and of targets, 1 at the class and 0 elsewhere."""
    from torch.nn import functional

    if name == "cross-entropy":
        return functional.cross_entropy
    return lambda outputs, targets: (outputs - targets).square().sum(-1).mean() / 2


def _of_networks(block: Block, classes: int, point: Point) -> tuple[Tensor, Tensor]:
    """Squared norms of the blocks of a hidden neuron with the others, in the mean, and of its own."""
    import torch
    from torch.func import vmap

    many = point.networks
    weights = block.normal(many, point.width, point.dim) / point.dim**0.5
    outward = block.normal(many, classes, point.width) * point.outward_std / point.width**0.5
    inputs = block.normal(many, point.samples, point.dim)
    targets = block.stack(lambda rng: np.eye(classes)[rng.integers(classes, size=(many, point.samples))])
    loss = _loss_of(point.loss)

    def norms(rows: Tensor, out: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return block_norms(lambda hidden: loss(torch.relu(x @ hidden.T) @ out.T, y), rows)

    return vmap(vmap(norms))(weights, outward, inputs, targets)


def several_perceptrons(block: Block, point: Point) -> Mapping[str, Any]:
    """Squared norms, off the diagonal and on it."""
    off, on = _of_networks(block, point.classes, point)
    return {"off": off.mean(1), "on": on.mean(1)}


def ratios_of_neurons(block: Block, point: Point) -> Mapping[str, Any]:
    """Power of the number of classes by which the ratio of the norms falls, from means over some networks."""
    return {"power": power(_of_networks, block, point)}


LAYER: dict[str, Any] = {"width": 6, "dim": 30, "networks": 8}
SMALL: dict[str, Any] = {"width": 6, "dim": 18, "networks": 8}

PERCEPTRONS = Experiment(
    id="structure/perceptrons",
    replicate="eight perceptrons with their inputs",
    simulate=several_perceptrons,
    points=(
        Point(classes=7, samples=200, loss="squared error", outward_std=1.3, **LAYER | {"dim": 2}),
        Point(classes=21, samples=22, loss="squared error", outward_std=1.3, **LAYER),
        Point(classes=9, samples=90, loss="cross-entropy", outward_std=0.03, **LAYER),
        Point(classes=21, samples=22, loss="cross-entropy", outward_std=0.03, **LAYER),
    ),
    budget=512,
    seconds=0.39,
)
NUMBERS = Experiment(
    id="structure/perceptrons-against-classes",
    replicate="eight perceptrons with their inputs, of few classes and of many",
    simulate=ratios_of_neurons,
    points=(
        Point(few=16, many=64, samples=30, loss="squared error", outward_std=1.3, **SMALL),
        Point(few=16, many=64, samples=30, loss="cross-entropy", outward_std=0.7, **SMALL),
    ),
    budget=256,
    seconds=0.27,
)


def _without_angles(p: Any) -> float:
    """As if the activity of a neuron for one sample did not depend on its activity for another."""
    two, one = ((p.dim + 2) * share + (p.samples - 1) * share**2 for share in (1 / 4, 1 / 2))
    return two / one / (p.classes + (2 if p.loss == "squared error" else 1))


def _hidden(p: Any) -> float:
    return (
        class_blocks.hidden_ratio(p.classes, dim=p.dim, samples=p.samples, centred=p.loss == "cross-entropy")
        ** 2
    )


CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="structure/power-between-neurons",
        entries=("G4",),
        source=SOURCE,
        passage=SAID,
        statement=r"\frac{d}{d \log C} \log \frac{\lVert H_{ij} \rVert_F}{\lVert H_{ii} \rVert_F} = -\frac12 "
        r"\quad\text{for the weights into hidden neurons } i,\ j",
        says="In a perceptron with random weights, blocks of the Hessian between two hidden neurons fall like one over "
        "the root of the number of classes against those of one neuron.",
        experiment=NUMBERS,
        score="power",
        predict=lambda _: -0.5,
        margin=0.1,
        relative=False,
        margin_reason="a fifth of the way to the nearest power at issue; C + 2 in place of C is a twentieth",
        pilot="that the slope between two numbers of classes is judged, and no limit of it: first runs of that were "
        "not decided",
        rivals={"that of classes": lambda _: -1.0, "no fall": lambda _: 0.0},
        no_theory=NoTheory.CONSTANT,
        quantity="power of C from 16 to 64 classes",
    ),
    Claim(
        id="structure/neurons",
        entries=("G5",),
        source=f"ours, in the setting of {SOURCE}",
        passage=OURS,
        statement=r"\frac{\mathbb{E} \lVert H_{ij} \rVert_F^2}{\mathbb{E} \lVert H_{ii} \rVert_F^2} = "
        r"\frac{1}{C + 2} \cdot \frac{(d + 2)/4 + (N - 1) s}{(d + 2)/2 + (N - 1)/4} \text{ for the squared error},\ "
        r"s = d\, \mathbb{E}\, c^2 \Big(\frac14 + \frac{\arcsin c}{2 \pi}\Big)^2,\ "
        r"C + 1 \text{ in place of } C + 2 \text{ for cross-entropy at } p_i = 1/C",
        says="In a perceptron of ReLU with random weights, the squared norms of blocks between hidden neurons follow "
        "from the number of classes, the dimension and the number of samples; c is the cosine between two inputs.",
        experiment=PERCEPTRONS,
        kind=Kind.RATIO,
        score=("off", "on"),
        predict=_hidden,
        margin=0.15,
        margin_reason="the formula is exact for the squared error; four thousand networks tell it to a tenth",
        pilot="the margin, and that means over eight networks are judged: first runs of four were too skewed; with a "
        "margin of a tenth two points were not decided",
        rivals={
            "C - 1": lambda p: _hidden(p) * (p.classes + 2) / (p.classes - 1),
            "1/C for the norms": lambda p: _hidden(p) / p.classes,
            "without the activity": lambda p: 1 / (p.classes + 2),
            "of infinitely many samples": lambda p: 1 / (4 * (p.classes + 2)),
            "no angle between inputs": _without_angles,
        },
        quantity="squared norm of a block between two neurons over that of one",
    ),
)
