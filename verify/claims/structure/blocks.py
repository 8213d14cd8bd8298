"""Blocks of the Hessian between classes of a softmax classifier and between hidden neurons."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory.gauss_newton import class_blocks
from verify.claims.drawn_networks import Violation
from verify.model import (
    OURS,
    Arrays,
    Claim,
    ExactProperty,
    Experiment,
    Kind,
    NoTheory,
    as_stated,
)
from verify.model.domains import Between

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = "Dong, Zhang, Luo, Yao and Sun (2025), arXiv 2505.02809"


def block_norms(loss: Callable[[Tensor], Tensor], weights: Tensor) -> tuple[Tensor, Tensor]:
    """Squared Frobenius norms of the blocks of a Hessian in rows of weights: mean off the diagonal, and on it.

    Blocks of the first row with the others, and with itself.
    """
    from torch.func import grad, jacrev

    squares = jacrev(lambda rows: grad(loss)(rows)[0])(weights).square().sum((0, 2))
    return squares[1:].mean(), squares[0]


def _in_rows(weights: Tensor, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    from torch.nn import functional

    return block_norms(lambda rows: functional.cross_entropy(inputs @ rows.T, labels), weights)


# --- equal probabilities -------------------------------------------------------------------------------------


def _measured(rng: np.random.Generator, point: Point) -> float:
    """Ratio of the norms at weights of 0, for inputs of any kind."""
    import torch

    inputs = torch.from_numpy(rng.exponential(size=(point.samples, point.dim)) - point.shift)
    labels = torch.from_numpy(rng.integers(point.classes, size=point.samples))
    off, on = _in_rows(torch.zeros(point.classes, point.dim).double(), inputs, labels)
    return float((off / on).sqrt())


def _against(ratio: Callable[[int], float]) -> Violation:
    return lambda rng, point: abs(_measured(rng, point) / ratio(point.classes) - 1)


UNIFORM = ExactProperty(
    id="structure/uniform",
    entries=("G1",),
    source=f"ours, in the setting of {SOURCE}",
    passage=OURS,
    statement=r"\lVert H_{ij} \rVert / \lVert H_{ii} \rVert = \frac1{C - 1} \text{ at } p_i = 1/C",
    says="Where a softmax classifier gives all classes one probability, the Hessian's block between two classes is "
    "that of one over the number of the others.",
    domain={
        "classes": Between(2, 25),
        "dim": Between(1, 12),
        "samples": Between(1, 30),
        "shift": Between(0.0, 2.0),
    },
    violation=_against(class_blocks.uniform_ratio),
    examples=(Point(classes=7, dim=5, samples=11, shift=0.3),),
    tolerance=1e-9,
    tolerance_reason="rounding of sums over samples and classes",
    rivals={
        "1/C": _against(lambda c: 1 / c),
        "1/(C - 1)^2": _against(lambda c: 1 / (c - 1) ** 2),
        "p_i p_j over p_i": _against(lambda c: 1 / c / (1 - 1 / c) ** 2),
    },
    seconds=0.042,
)

# --- random weights ------------------------------------------------------------------------------------------


def _of_classifiers(block: Block, classes: int, point: Point) -> tuple[Tensor, Tensor]:
    from torch.func import vmap

    many = point.networks
    weights = block.normal(many, classes, point.dim) * (point.logit_std / point.dim**0.5)
    inputs = block.normal(many, point.samples, point.dim)
    labels = block.stack(lambda rng: rng.integers(classes, size=(many, point.samples)))
    return vmap(vmap(_in_rows))(weights, inputs, labels)


def _of_networks(block: Block, classes: int, point: Point) -> tuple[Tensor, Tensor]:
    # a classifier has no hidden units
    return (_of_perceptrons if "width" in point else _of_classifiers)(block, classes, point)


def squared_norms(block: Block, point: Point) -> Arrays:
    """Squared norms of the blocks of a class or a hidden neuron with the others, in the mean, and of its own."""
    off, on = _of_networks(block, point.classes, point)
    return {"off": off.mean(1), "on": on.mean(1)}


def against_classes(block: Block, point: Point) -> Arrays:
    """Power of the number of classes by which the ratio of the norms falls, from means over some networks."""
    norms = (_of_networks(block, classes, point) for classes in (point.few, point.many))
    few, many = ((off / on).sqrt().mean(1) for off, on in norms)
    return {"power": (many / few).log() / math.log(point.many / point.few)}


CLASSIFIERS = Experiment(
    id="structure/classifiers",
    replicate="two classifiers with their inputs",
    simulate=squared_norms,
    points=(
        Point(classes=4, logit_std=0.7, dim=70, samples=45, networks=2),
        Point(classes=12, logit_std=1.4, dim=60, samples=90, networks=2),
        Point(classes=9, logit_std=2.8, dim=50, samples=80, networks=2),
    ),
    budget=1024,
    seconds=0.23,
)
CLASS_NUMBERS = Experiment(
    id="structure/numbers-of-classes",
    replicate="two classifiers with their inputs, of few classes and of many",
    simulate=against_classes,
    points=(Point(few=16, many=64, logit_std=0.6, dim=30, samples=50, networks=2),),
    budget=256,
    seconds=0.3,
)


def _square(ratio: Callable[[Any], float]) -> Callable[[Any], float]:
    return lambda p: ratio(p) ** 2


def _many_classes(p: Any) -> float:
    aspect, squared = p.dim / p.samples, p.logit_std**2
    return ((1 + aspect * math.exp(2 * squared)) / (1 + aspect * math.exp(squared))) ** 0.5 / p.classes


POWER = {
    "passage": as_stated(
        "the block-diagonal structure arises as C becomes large",
        "abstract; the powers in other accounts",
    ),
    "source": SOURCE,
    "score": "power",
    "margin": 0.1,
    "relative": False,
    "no_theory": NoTheory.CONSTANT,
    "quantity": "power of C from 16 to 64 classes",
}

_ratio = partial(
    Claim, source=f"ours, in the setting of {SOURCE}", passage=OURS, kind=Kind.RATIO, score=("off", "on")
)

CLASSES_CLAIMS = (
    UNIFORM,
    Claim(
        id="structure/power-of-the-classes",
        **POWER,
        entries=("G2",),
        statement=r"\frac{d}{d \log C} \log \frac{\lVert H_{ij} \rVert_F}{\lVert H_{ii} \rVert_F} = -1",
        says="In a softmax classifier with random weights, blocks of the Hessian between two classes fall as the "
        "inverse number of classes against those of one.",
        experiment=CLASS_NUMBERS,
        predict=lambda _: -1.0,
        margin_reason="a fifth of the way to the nearest power at issue; C - 1 in place of C is a twentieth",
        pilot="that the slope between two numbers of classes is judged, and no limit of it: first runs of that were "
        "too skewed",
        rivals={"that of hidden neurons": lambda _: -0.5, "square": lambda _: -2.0},
    ),
    _ratio(
        id="structure/classifiers",
        entries=("G3",),
        statement=r"\frac{\mathbb{E} \lVert H_{ij} \rVert_F^2}{\mathbb{E} \lVert H_{ii} \rVert_F^2} = "
        r"\frac{(d + 2)\, \mathbb{E} a_{ij}^2 + (N - 1) (\mathbb{E} a_{ij})^2}"
        r"{(d + 2)\, \mathbb{E} a_{ii}^2 + (N - 1) (\mathbb{E} a_{ii})^2},\quad "
        r"a_{ij} = p_i p_j,\ a_{ii} = p_i (1 - p_i)",
        says="In a softmax classifier with random weights, squared norms of blocks between classes follow from "
        "moments of the probabilities, and exceed the uniform value only where samples are few for the dimension.",
        experiment=CLASSIFIERS,
        predict=_square(
            lambda p: class_blocks.output_ratio(
                p.classes, logit_std=p.logit_std, dim=p.dim, samples=p.samples
            )
        ),
        margin=0.08,
        margin_reason="that the probabilities know of the inputs is left out: of order 1/d, here a fiftieth or more",
        rivals={
            "the uniform value": _square(lambda p: class_blocks.uniform_ratio(p.classes)),
            "1/C": _square(lambda p: 1 / p.classes),
            "as for many classes": _square(_many_classes),
        },
        quantity="squared norm of a block between two classes over that of one class",
    ),
)


def _loss_of(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Means over samples of outputs and of targets, 1 at the class and 0 elsewhere."""
    from torch.nn import functional

    if name == "cross-entropy":
        return functional.cross_entropy
    return lambda outputs, targets: (outputs - targets).square().sum(-1).mean() / 2


def _of_perceptrons(block: Block, classes: int, point: Point) -> tuple[Tensor, Tensor]:
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


LAYER = {"width": 6, "dim": 30, "networks": 8}
SMALL = {"width": 6, "dim": 18, "networks": 8}

PERCEPTRONS = Experiment(
    id="structure/perceptrons",
    replicate="eight perceptrons with their inputs",
    simulate=squared_norms,
    points=(
        Point(classes=7, samples=200, loss="squared error", outward_std=1.3, **LAYER | {"dim": 2}),
        Point(classes=21, samples=22, loss="squared error", outward_std=1.3, **LAYER),
        Point(classes=9, samples=90, loss="cross-entropy", outward_std=0.03, **LAYER),
        Point(classes=21, samples=22, loss="cross-entropy", outward_std=0.03, **LAYER),
    ),
    budget=1024,
    seconds=0.39,
)
NEURON_NUMBERS = Experiment(
    id="structure/perceptrons-against-classes",
    replicate="eight perceptrons with their inputs, of few classes and of many",
    simulate=against_classes,
    points=(
        Point(few=16, many=64, samples=30, loss="squared error", outward_std=1.3, **SMALL),
        Point(few=16, many=64, samples=30, loss="cross-entropy", outward_std=0.7, **SMALL),
    ),
    budget=256,
    seconds=0.27,
)


def _without_angles(p: Any) -> float:
    """Prediction if the activity of a neuron for one sample did not depend on its activity for another."""
    two, one = ((p.dim + 2) * share + (p.samples - 1) * share**2 for share in (1 / 4, 1 / 2))
    return two / one / (p.classes + (2 if p.loss == "squared error" else 1))


def _hidden(p: Any) -> float:
    return (
        class_blocks.hidden_ratio(p.classes, dim=p.dim, samples=p.samples, centred=p.loss == "cross-entropy")
        ** 2
    )


CLAIMS = (
    *CLASSES_CLAIMS,
    Claim(
        id="structure/power-between-neurons",
        **POWER,
        entries=("G4",),
        statement=r"\frac{d}{d \log C} \log \frac{\lVert H_{ij} \rVert_F}{\lVert H_{ii} \rVert_F} = -\frac12 "
        r"\quad\text{for the weights into hidden neurons } i,\ j",
        says="In a perceptron with random weights, blocks of the Hessian between two hidden neurons fall as the "
        "inverse root of the number of classes against those of one.",
        experiment=NEURON_NUMBERS,
        predict=lambda _: -0.5,
        margin_reason="a fifth of the way to the nearest power at issue; C + 2 in place of C is a twentieth",
        pilot="that the slope between two numbers of classes is judged, and no limit of it: first runs of that were "
        "not decided",
        rivals={"that of classes": lambda _: -1.0, "no fall": lambda _: 0.0},
    ),
    _ratio(
        id="structure/neurons",
        entries=("G5",),
        statement=r"\frac{\mathbb{E} \lVert H_{ij} \rVert_F^2}{\mathbb{E} \lVert H_{ii} \rVert_F^2} = "
        r"\frac{1}{C + 2} \cdot \frac{(d + 2)/4 + (N - 1) s}{(d + 2)/2 + (N - 1)/4} \text{ for the squared error},\ "
        r"s = d\, \mathbb{E}\, c^2 \Big(\frac14 + \frac{\arcsin c}{2 \pi}\Big)^2,\ "
        r"C + 1 \text{ in place of } C + 2 \text{ for cross-entropy at } p_i = 1/C",
        says="In a ReLU perceptron with random weights, squared norms of blocks between hidden neurons follow from "
        "classes, dimension and samples; c is the cosine between two inputs.",
        experiment=PERCEPTRONS,
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
