"""Transfer over depth and width: residual perceptrons, the tangent parametrisation, and steps of a spectral size."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import stacks
from verify.claims.trained_networks import all_samples, trained_on_digits
from verify.claims.width import PAPER
from verify.claims.width.sharpness import (
    MUP,
    STANDARD,
    at_looks,
    enlarged,
    images_of,
    normal_weights,
    sharpness_in_training,
    weights,
)
from verify.model import (
    KNOWN,
    OURS,
    Arrays,
    Claim,
    ExactProperty,
    Experiment,
    Kind,
    NoTheory,
    Tier,
    as_stated,
)
from verify.model.domains import Between, Domain, OneOf

SCALED, PLAIN = "1/sqrt(L)", "1"


def across_depths(block: Block, point: Point) -> Arrays:
    """Exponents of the sharpness between two depths at some steps, for residual perceptrons on the same images.

    Under muP, as in `verify.claims.width.sharpness`: the branches have entries of variance 1/M and the rate eta.
    """
    images = images_of(block, point)
    samples = enlarged(images, point.width**0.5)
    classes, found = images.targets.shape[1], list[Any]()
    for depth in (point.shallow, point.deep):
        scale = depth**-0.5 if point.branches == SCALED else 1.0
        stack = stacks.ResidualPerceptrons(point.activation, "squared error", scale=scale)
        shapes = ((point.width, 64), (depth, point.width, point.width), (classes, point.width))
        start = [normal_weights(block, point.width**-0.5, shape) for shape in shapes]
        found.append(at_looks(block, point, stack, start, samples, point.rate / point.width))
    return {"exponent": np.log(found[1] / found[0]) / np.log(point.deep / point.shallow)}


def across_widths(block: Block, point: Point) -> Arrays:
    """Change of the logarithm of the sharpness in training, at each of two widths on the same images."""
    images = images_of(block, point)
    found = {name: sharpness_in_training(block, point, images, point[name]) for name in ("narrow", "wide")}
    return {name: np.abs(np.log(values[:, -1] / values[:, 0])) for name, values in found.items()}


def moves_in_one_step(block: Block, point: Point) -> Arrays:
    """Exponents between two widths of how far a step of descent moves the signals of each layer; same images.

    Weights and rates as in `verify.claims.width.sharpness` for muP; in the tangent parametrisation, weights of the
    standard one and rates eta, eta/M and eta/M. Signals are taken before the activation; the last one is the output.
    """
    images = images_of(block, point)
    scaled = point.parametrisation == MUP
    stack = stacks.Perceptrons(point.activation, "squared error", bias=False)
    moves: list[Any] = []
    for width in (point.narrow, point.wide):
        factor = width**0.5 if scaled else 1.0
        samples = enlarged(images, factor)
        x, y = all_samples(samples)
        before = weights(block, point, width, scaled, y.shape[2])
        rates = np.array([1 / width if scaled else 1.0, 1 / width, 1 / width]) * point.rate
        _, gradients = stack.losses_and_gradients(before, x, y)
        after = [w - float(rate) * g for w, rate, g in zip(before, rates, gradients, strict=True)]
        moved = [stack.outputs(after[:i], x) - stack.outputs(before[:i], x) for i in point.layers]
        sizes = [m.double().square().mean((1, 2)).sqrt().cpu().numpy() for m in moved]
        # the outputs are enlarged too
        moves.append(np.stack([*sizes[:-1], sizes[-1] / factor], 1))
    return {"exponents": np.log(moves[1] / moves[0]) / np.log(point.wide / point.narrow)}


def off_spectral(rng: np.random.Generator, point: Point, *, samples: int = 1, power: float = 0.5) -> float:
    """Largest relative error of the size of a layer's move, said to be c times that of its input.

    The step goes along the gradient of one sample and has the spectral norm c (out/in)^power. Sizes are root mean
    squares over units.
    """
    import torch

    stack = stacks.Perceptrons(point.activation, "squared error", bias=False)
    widths = (point.inputs, point.first, point.second, point.outputs)
    shapes = [(out, into) for into, out in itertools.pairwise(widths)]
    start = [torch.from_numpy(rng.standard_normal((1, *shape))) / shape[1] ** 0.5 for shape in shapes]
    x, y = (torch.from_numpy(rng.standard_normal((1, samples, n))) for n in (widths[0], widths[-1]))
    _, gradients = stack.losses_and_gradients(start, x, y)
    worst = 0.0
    for i, (gradient, (out, into)) in enumerate(zip(gradients, shapes, strict=True)):
        norm = float(torch.linalg.matrix_norm(gradient, 2))
        moved = gradient * (point.size * (out / into) ** power / norm)
        # a unit matrix as the last layer returns the signals below it
        below = stack.outputs([*start[:i], torch.eye(into).double()[None]], x)
        sizes = [signals.square().mean(2).sqrt() for signals in (below @ moved.mT, below)]
        worst = max(worst, float((sizes[0] / sizes[1] / point.size - 1).abs().max()))
    return worst


def _of_depths(name: str, branches: str, rate: float) -> Experiment:
    point = Point(
        branches=branches, activation="tanh", rate=rate, shallow=2, deep=6, width=24, samples=16, images="digits",
        looks=(0, 40),
    )  # fmt: skip
    return trained_on_digits(
        id=f"width/{name}",
        replicate="two residual perceptrons of unlike depth on the same 16 images, trained by full-batch descent",
        simulate=across_depths,
        points=(point,),
        budget=384,
        seconds=1.4,
    )


TANGENT = trained_on_digits(
    id="width/tangent-training",
    replicate="two perceptrons of unlike width on the same 16 images, trained by full-batch descent",
    simulate=across_widths,
    points=(
        Point(
            parametrisation=STANDARD, activation="relu", rate=0.6, narrow=64, wide=256, samples=16, images="digits",
            looks=(0, 20),
        ),
    ),
    budget=768,
    seconds=20.0,
    tier=Tier.FULL,
)  # fmt: skip

STEP = trained_on_digits(
    id="width/one-step",
    replicate="two perceptrons of unlike width on the same 16 images, after one step of descent",
    simulate=moves_in_one_step,
    points=tuple(
        Point(
            parametrisation=parametrisation, activation="tanh", rate=0.7, narrow=48, wide=384, samples=16,
            images="digits", layers=(1, 2, 3),
        )
        for parametrisation in (MUP, STANDARD)
    ),
    budget=1024,
    seconds=0.6,
)  # fmt: skip

ANY: Domain = {
    "activation": OneOf("tanh", "relu", "linear"),
    "inputs": Between(3, 40),
    "first": Between(8, 60),
    "second": Between(8, 60),
    "outputs": Between(2, 12),
    "size": Between(0.01, 3.0),
}

OF_DEPTHS = {
    "entries": ("J5",),
    "no_theory": NoTheory.CONSTANT,
    "score": "exponent",
    "along": "looks",
    "margin": 0.2,
    "relative": False,
    "quantity": "exponent of the largest eigenvalue between 2 and 6 branches, after so many steps",
}

YANG = "Yang, Simon and Bernstein (2023), arXiv 2310.17813, abstract"

CLAIMS = (
    Claim(
        id="width/sharpness-over-depth",
        **OF_DEPTHS,
        source=f"{PAPER}, arXiv 2402.17457v1, abstract",
        passage=as_stated(
            "largely independent of the width and depth of the network for a sustained period of training time",
            "abstract of version 1",
        ),
        statement=r"\frac{\log \lambda_1(3L, t) - \log \lambda_1(L, t)}{\log 3} = 0 \quad "
        r"(h_{l+1} = h_l + L^{-1/2} W_l \phi(h_l))",
        says="In residual networks with branches scaled by one over the root of the depth, the largest eigenvalue of "
        "the Hessian does not go with the depth.",
        experiment=_of_depths("scaled-branches", SCALED, 0.6),
        predict=lambda _: 0.0,
        margin_reason="largely independent, at small sizes; as for the width",
        pilot="sizes, and the rate, below the edge of stability",
        rivals={"in proportion": lambda _: 1.0, "as the root": lambda _: 0.5},
    ),
    Claim(
        id="width/sharpness-over-depth-unscaled",
        **OF_DEPTHS,
        source="ours, next to Bordelon et al. (2024), arXiv 2309.16620, abstract: under muP alone no transfer across "
        "depths",
        passage=OURS,
        statement=r"\frac{\log \lambda_1(3L, t) - \log \lambda_1(L, t)}{\log 3} \ge 0.8 \quad "
        r"(h_{l+1} = h_l + W_l \phi(h_l))",
        says="In residual networks with branches that are not scaled, the largest eigenvalue of the Hessian grows "
        "about as fast as the depth, or faster.",
        experiment=_of_depths("plain-branches", PLAIN, 0.05),
        kind=Kind.AT_LEAST,
        predict=lambda _: 0.8,
        margin_reason="as with scaled branches",
        pilot="the bound, below the 1.2 of networks trained first; the rate, below the edge of stability",
        rivals={"as the square": lambda _: 2.0},
    ),
    Claim(
        id="width/shift-under-tangent",
        entries=("J3",),
        source="Dyer and Gur-Ari (2020), arXiv 1909.11304: training moves the tangent kernel by O(1/M)",
        passage=KNOWN,
        no_theory=NoTheory.CONSTANT,
        statement=r"\frac{\mathbb{E}\,|\log \lambda_1(4M, t)/\lambda_1(4M, 0)|}"
        r"{\mathbb{E}\,|\log \lambda_1(M, t)/\lambda_1(M, 0)|} = \frac14 \quad \text{(standard)}",
        says="Without muP, training moves the logarithm of the largest eigenvalue of the Hessian in proportion to one "
        "over the width.",
        experiment=TANGENT,
        score=("wide", "narrow"),
        kind=Kind.RATIO,
        predict=lambda p: p.narrow / p.wide,
        margin=0.25,
        margin_reason="an order, at small widths: powers of the width from 0.84 to 1.21",
        pilot="activation and rate: with ReLU the move is large enough to be seen at width 256",
        rivals={
            "as the root": lambda p: (p.narrow / p.wide) ** 0.5,
            "as the square": lambda p: (p.narrow / p.wide) ** 2,
            "independent": lambda _: 1.0,
        },
        quantity="move of the logarithm of the largest eigenvalue at width 256 over that at width 64",
    ),
    Claim(
        id="width/features-in-one-step",
        entries=("J6",),
        source=YANG,
        passage=as_stated(
            "our spectral scaling analysis also leads to an elementary derivation of maximal update parametrization",
            "abstract",
        ),
        no_theory=NoTheory.CONSTANT,
        statement=r"\frac{\log |\Delta h_l(8M)| - \log |\Delta h_l(M)|}{\log 8} = 0, 0, 0\ (\mu P),\quad "
        r"-\tfrac12, -\tfrac12, 0\ (\text{NTK}),\quad |\Delta h_l|^2 = \tfrac1{n_l} \|\Delta h_l\|^2",
        says="One step of descent moves features and outputs by amounts independent of the width under muP; in the "
        "tangent parametrisation features move by one over its root.",
        experiment=STEP,
        score="exponents",
        along="layers",
        predict=lambda p: -0.5 if p.parametrisation == STANDARD and p.layers < 3 else 0.0,
        relative=False,
        margin=0.12,
        margin_reason="small widths, and less than a quarter of what tells the parametrisations apart",
        pilot="the widths, further apart than at first so that fewer networks decide",
        rivals={
            "features under neither": lambda p: -0.5 if p.layers < 3 else 0.0,
            "features under both": lambda _: 0.0,
            "outputs as features": lambda p: -0.5 if p.parametrisation == STANDARD else 0.0,
        },
        quantity="exponent of the move of a layer between widths 48 and 384",
    ),
    ExactProperty(
        id="width/spectral-step",
        entries=("J6",),
        source=f"{YANG}; derived in docs/claims/width.md",
        passage=as_stated("feature learning is achieved by scaling the spectral norm", "abstract"),
        no_theory=NoTheory.MEASURED,
        statement=r"\|\Delta W_l\|_* = c \sqrt{n_l / n_{l-1}} \Rightarrow \frac{\|\Delta W_l h_{l-1}\|}{\sqrt{n_l}} = "
        r"c\, \frac{\|h_{l-1}\|}{\sqrt{n_{l-1}}} \quad \text{(gradient of one sample)}",
        says="A gradient step on one sample whose spectral norm is a constant times the root of outputs over inputs "
        "moves a layer by this constant times its input, at all widths.",
        domain=ANY,
        violation=off_spectral,
        examples=(
            Point(activation="tanh", inputs=7, first=40, second=11, outputs=3, size=0.3),
            Point(activation="relu", inputs=31, first=9, second=50, outputs=10, size=1.7),
        ),
        tolerance=1e-9,
        tolerance_reason="rounding of products of small matrices",
        rivals={
            "for three samples": partial(off_spectral, samples=3),
            "without the root": partial(off_spectral, power=1.0),
            "the same norm for all shapes": partial(off_spectral, power=0.0),
        },
        seconds=0.03,
    ),
)
