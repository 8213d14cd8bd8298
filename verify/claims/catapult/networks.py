"""The largest rate of small perceptrons over the curvature at the start, by depth."""

from __future__ import annotations

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import edges, grids, stacks
from theory.learning_rates import catapult
from verify.claims.trained_networks import (
    LOST,
    all_samples,
    below_constants,
    centred_images,
    full_batches,
    normal_perceptrons,
    trained_on_digits,
)
from verify.model import (
    Arrays,
    Claim,
    NoTheory,
    Verdict,
    as_stated,
    out_of_scope,
)

WIDTH = 64
"""Width of the inputs and of every hidden layer: all weights have one scale, so that the parametrisation with weights
of unit variance is this one with another unit of the rate."""

PRODUCTS = 16
"""Gauss-Newton products for its largest eigenvalue."""


def largest_rates_of_perceptrons(block: Block, point: Point) -> Arrays:
    """Decades of the largest rate at which full-batch descent trains a network, times its curvature at the start.

    It trains if the loss ends below that of the best constant outputs. The score counts the rates that train.
    """
    import torch

    samples = centred_images(block, point)
    start = normal_perceptrons(block, (*(WIDTH,) * (point.hidden + 1), 10), point.weight_variance)
    stack = stacks.Perceptrons(point.activation, "squared error", bias=False)
    x, _ = all_samples(samples)
    # where targets are the outputs, the Hessian of the squared error is the Gauss-Newton matrix
    curvature = edges.top_eigenvalues(
        stack, start, x, stack.outputs(start, x), steps=PRODUCTS, start=start
    ).values
    ladder = point.low * point.ratio ** torch.arange(point.rungs, device=block.device)
    ran = grids.train(
        stack,
        start,
        samples,
        full_batches(samples, len(block)),
        rates=ladder / curvature[:, None],
        steps=point.steps,
        lost=LOST,
    )
    trained = below_constants(stack, ran, samples)
    return {"decades": np.log10(point.low) + np.log10(point.ratio) * (trained.sum(1).double() - 0.5)}


RELU = {"activation": "relu", "weight_variance": 2.0, "samples": 16, "steps": 40}

SPECIAL = "the variance 2 of the weights is that at which signals keep their size"

RAISED = {"low": 6.0, "ratio": 1.3, "rungs": 7}
LOWER = {"low": 2.6, "ratio": 1.12, "rungs": 9}

DEEP, CENTRED = (
    trained_on_digits(
        id=f"catapult/{name}",
        replicate="one perceptron with 16 digits, at each rate of a ladder",
        simulate=largest_rates_of_perceptrons,
        points=points,
        budget=256,
        seconds=seconds,
        special=SPECIAL,
    )
    for name, points, seconds in (
        (
            "relu-in-deeper-networks",
            (
                Point(hidden=2, centred=True, **RAISED, **RELU),
                Point(hidden=3, centred=True, **RAISED, **RELU),
            ),
            0.4,
        ),
        ("relu-in-one-layer", (Point(hidden=1, centred=True, **LOWER, **RELU),), 0.21),
    )
)


AT_TWELVE = {
    "entries": ("F8",),
    "source": "Lewkowycz et al. (2020), section 1",
    "score": "decades",
    "predict": lambda _: float(np.log10(12)),
    "margin": 0.2,
    "relative": False,
    "margin_reason": "less than half-way from 12 to the 4 of linear networks, in decades: the paper says approximately",
    "no_theory": NoTheory.CONSTANT,
    "quantity": "decades of the largest rate times the curvature at the start",
    "logarithm": "10",
}

CLAIMS = (
    Claim(
        id="catapult/relu-in-deeper-networks",
        **AT_TWELVE,
        passage=as_stated(
            "a narrow range of large, stable learning rates",
            "abstract; of the range in section 1, 12 for ReLU, other accounts were read",
        ),
        statement=r"\mathbb{E} \log_{10} \eta_{\max}\lambda_0 = \log_{10} 12 "
        r"\quad\text{ReLU, two and three hidden layers}",
        says="Perceptrons with ReLU and two or three hidden layers train up to a rate of about twelve over the "
        "initial curvature.",
        experiment=DEEP,
        pilot="widths, samples, and that decades are judged: networks drawn first lay at 13 and 16",
        rivals={
            "that of linear networks": lambda _: float(np.log10(catapult.largest_product())),
            "2, as for a quadratic loss": lambda _: float(np.log10(2)),
            "forty": lambda _: float(np.log10(40)),
        },
    ),
    Claim(
        id="catapult/relu-in-one-layer",
        **AT_TWELVE,
        passage=out_of_scope(
            "training dynamics in realistic deep learning settings",
            "abstract; of the number 12 and of networks with 2048 units in a layer, accounts by others",
        ),
        statement=r"\mathbb{E} \log_{10} \eta_{\max}\lambda_0 = \log_{10} 12 "
        r"\quad\text{ReLU, one hidden layer, inputs of mean 0}",
        says="Perceptrons with ReLU and one hidden layer, on inputs of mean 0, train up to about twelve over the "
        "initial curvature.",
        experiment=CENTRED,
        rivals={"forty": lambda _: float(np.log10(40))},
        expected=Verdict.DISAGREES,
        finding="With one hidden layer and inputs of mean 0 the largest rate is about that of linear networks, 4 "
        "over the initial curvature: the number is not one of the activation alone.",
        pilot="that it disagrees was seen on networks drawn first",
    ),
)
