"""Vysogorets, Dawid and Kempe (2024): training while outputs are uniform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import data, networks
from simulate.monte_carlo import Block, Point
from simulate.training import scaled_training
from theory import zone
from verify.claims.vysogorets2024 import PAPER
from verify.model import AnyClaim, Claim, Experiment, Identity, Kind, NoTheory, Passage, Standing
from verify.model.observation import Column, Observation

__all__ = ["CLAIMS", "OBSERVATIONS", "perceptrons"]


def perceptrons(block: Block, point: Point, hidden: tuple[int, ...]) -> tuple[list[Any], Any, Any]:
    """Bias-free networks on 8 x 8 images: weights (n, 1, out, in), inputs (n, 1, N, 64) and labels (n, 1, N)."""
    import torch

    source = data.opened(point.images, (1, 8, 8))
    weights = [networks.mlp_weights(rng, (64, *hidden, source.classes)) for rng in block.streams]
    images = [data.sample(source, rng, point.samples).flat().tensors(block.device) for rng in block.streams]
    stacked = [torch.stack(layer)[:, None].to(block.device) for layer in zip(*weights, strict=True)]
    x, labels = (torch.stack(part)[:, None] for part in zip(*images, strict=True))
    return stacked, x, labels


def uniform_paths(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Weights after training as if outputs were uniform, and of a network scaled so far down that they round to it."""
    import torch

    weights, x, labels = perceptrons(Block((rng,)), point, (point.hidden,) * (point.depth - 1))
    start, batches = [point.alpha * w for w in weights], [(x, labels)]
    rate = float(zone.matched_rate(point.rate, alpha=point.alpha, depth=point.depth))

    def end(parameters: Any, **how: Any) -> Any:
        *_, last = scaled_training.descent(parameters, batches, steps=point.steps, **how)
        return torch.cat([p.flatten() for p in last.parameters])

    scaled = end(start, rate=rate)
    return {
        "scaled weights / alpha": scaled / point.alpha,
        "uniform outputs": end(weights, rate=point.rate, predictions=scaled_training.uniform),
        "not scaled back": scaled,
        "own outputs": end(weights, rate=point.rate),
        "rate as it was": end(start, rate=point.rate) / point.alpha,
    }


def _scaled_down(*alphas: float) -> tuple[Point, ...]:
    """For networks of two, three, four and five layers."""
    return tuple(
        Point(images="digits", depth=depth, alpha=alpha, hidden=12, samples=20, steps=15, rate=0.006)
        for depth, alpha in enumerate(alphas, start=2)
    )


def turned(block: Block, point: Point) -> Mapping[str, Any]:
    """Cosine between weights and step at the end of training with uniform predictions, and what it gained."""
    _, _, cosine = _courses(block, point, point.steps)
    return {"cosine": cosine[:, -1], "gain": cosine[:, -1] - cosine[:, 0]}


def courses(block: Block, point: Point) -> Mapping[str, Any]:
    """Norms of weights and gradient over those at the start, and their cosine, after some numbers of steps."""
    norm, slope, cosine = _courses(block, point, max(point.step))
    at = list(point.step)
    relative, steep = norm / norm[:, :1], slope / slope[:, :1]
    return {
        "norm": relative[:, at],
        "gradient": steep[:, at],
        "smaller": (steep < 1)[:, at].double(),
        "cosine": cosine[:, at],
    }


def _courses(block: Block, point: Point, steps: int) -> tuple[Any, Any, Any]:
    """Norm of the weights, norm of the gradient and cosine of weights and step, before each step: (n, steps + 1)."""
    import torch

    weights, x, labels = perceptrons(block, point, (14, 11))
    rows = [
        (
            scaled_training.inner(at.parameters, at.parameters, 1),
            scaled_training.inner(at.gradients, at.gradients, 1),
            scaled_training.inner(*at[:2], 1),
        )
        for at in scaled_training.descent(
            weights, [(x, labels)], rate=point.rate, steps=steps, predictions=scaled_training.uniform
        )
    ]
    square, slope, product = (torch.stack(column, dim=1) for column in zip(*rows, strict=True))
    return square.sqrt(), slope.sqrt(), -product / (square * slope).sqrt()


TURNED = Experiment(
    id="vysogorets2024/divergence-regime",
    replicate="one bias-free ReLU network 64-14-11-10 with 20 images, trained with uniform predictions",
    simulate=turned,
    points=(Point(images="digits", samples=20, steps=100, rate=0.004),),
    budget=256,
    seconds=0.23,
    data="digits",
)


OBSERVATIONS: tuple[Observation, ...] = (
    Observation(
        id="vysogorets2024/courses-of-divergence",
        entries=("A56",),
        source=f"{PAPER}, section 5 and appendix E",
        title="Norm of weights and gradient, and their alignment, in training with uniform outputs",
        note="The cosine grows on every network from about 0, of either sign, to 0.25 on average after 100 steps, "
        "and the norm of the weights to 1.02 times that at the start, on some networks after a fall of 0.1 to "
        "0.2 %. The norm of the gradient does not grow from the start: after 10 and 20 steps it is smaller "
        "than at the start on 53 to 75 % of 32 networks (two runs), then it rises, to 1.65 times that at the "
        "start on average after 100 steps (0.6 to 9), where one network in four is still below. Some tens of "
        "steps later it leaves float64 on the fastest ones: with uniform outputs the loss has no minimum.",
        replicate="one bias-free ReLU network 64-14-11-K with 20 images, trained with uniform predictions",
        simulate=courses,
        points=(Point(images="digits", samples=20, rate=0.004, step=(0, 10, 20, 40, 70, 100)),),
        along="step",
        columns=(
            Column(score="norm", heading="norm of the weights over that at the start"),
            Column(score="gradient", heading="norm of the gradient over that at the start"),
            Column(score="smaller", heading="share of networks whose gradient is smaller than at the start"),
            Column(score="cosine", heading="cosine of weights and step"),
        ),
        replicates=32,
        seconds=0.02,
        data="digits",
        axis="steps of gradient descent",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="vysogorets2024/uniform-outputs-path",
        entries=("A55",),
        source=f"{PAPER}, appendix E and figure 11",
        passage=Passage(
            Standing.AS_STATED,
            "the USO model and the down-scaled networks with uniform output have exactly the same evolution",
            "Appendix E",
        ),
        statement=r"\theta'_t/\alpha = \theta^{\mathrm{unif}}_t \quad (\eta' = \eta\, \alpha^{2-L}) \text{ where } "
        r"\alpha^L \text{ is so small that outputs are uniform in every digit}",
        says="Where outputs are uniform in every digit, a scaled-down network at a matched learning rate trains "
        "exactly like one whose outputs are held uniform.",
        routes=uniform_paths,
        points=_scaled_down(1e-9, 1e-6, 3e-5, 3e-4),
        tolerance=1e-12,
        tolerance_reason="rounding of fifteen steps",
        seconds=0.056,
        data="digits",
        quantity="weights after training",
    ),
    Claim(
        id="vysogorets2024/norm-turns",
        entries=("A56",),
        source=f"{PAPER}, section 5 and appendix E",
        no_theory=NoTheory.CONSTANT,
        statement=r"\cos(\theta, -\nabla\ell) > 0 \text{ after some training with uniform outputs}",
        says="After some training with outputs held uniform, the descent direction has a positive cosine with the "
        "weights on every network, so that their norm grows.",
        experiment=TURNED,
        kind=Kind.NEVER_BELOW,
        score="cosine",
        predict=lambda _: 0.0,
        margin=0.15,
        relative=False,
        margin_reason="the share of exceptions that a hundred networks would show",
        rivals={"above 0.3": lambda _: 0.3},
        quantity="cosine of weights and descent direction after training",
    ),
    Claim(
        id="vysogorets2024/alignment-grows",
        entries=("A56",),
        source=f"{PAPER}, section 5 and appendix E",
        no_theory=NoTheory.CONSTANT,
        statement=r"\cos(\theta, -\nabla\ell) \text{ grows in training with uniform outputs}",
        says="Training with outputs held uniform increases the cosine of weights and descent direction on every "
        "network.",
        experiment=TURNED,
        kind=Kind.NEVER_BELOW,
        score="gain",
        predict=lambda _: 0.0,
        margin=0.15,
        relative=False,
        margin_reason="the share of exceptions that a hundred networks would show",
        rivals={"by 0.3": lambda _: 0.3},
        quantity="growth of the cosine of weights and descent direction",
    ),
)
