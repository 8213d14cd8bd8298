"""The square root rule on small networks: the loss after as many samples at a batch four times as large."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import data
from simulate.monte_carlo import Block, Point
from simulate.training import grids, rules, stacks, trial_training
from theory.learning_rates import adam
from verify.claims.adam_limit.scaling import MALLADI
from verify.model import AnyClaim, Claim, Experiment, NoTheory, Passage, Standing

__all__ = ["CLAIMS"]


def two_batch_sizes(block: Block, point: Point) -> Mapping[str, Any]:
    """Logarithm of the loss of all samples at the larger batch over that at the smaller, after as many epochs."""
    import torch

    source = data.opened(point.images, (1, 8, 8))
    drawn = [data.sample(source, rng, point.samples).flat() for rng in block.streams]
    samples = grids.TrainingSets(
        torch.from_numpy(np.concatenate([d.images for d in drawn])).float().to(block.device),
        torch.from_numpy(np.concatenate([d.labels for d in drawn])).to(block.device),
        torch.arange(len(block) * point.samples).view(len(block), -1).to(block.device),
    )
    start = stacks.perceptrons_at_start(block.streams, (64, *point.hidden, source.classes))
    stack, losses = stacks.Perceptrons(point.activation), list[Any]()
    for growth in (1, point.growth):
        own = adam.square_root_rule(
            float(growth),
            rate=point.rate,
            momentum=point.momentum,
            second=point.second,
            damping=point.damping,
        )
        size = growth * point.batch_size
        run = grids.train(
            stack,
            [p.to(block.device) for p in start],
            samples,
            [
                trial_training.CommonBatches(
                    samples=point.samples, size=size, seed=int(rng.integers(2**31)), drop_last=True
                )
                for rng in block.streams
            ],
            rates=torch.full((len(block), 1), own.rate, device=block.device),
            steps=point.epochs * (point.samples // size),
            rule=rules.Rule(momentum=own.momentum, second=own.second, damping=own.damping),
        )
        losses.append(grids.ends_measured(stack, run, samples)[0][:, 0].double().cpu().numpy())
    return {"log ratio": np.log(losses[1] / losses[0])}


SHARED: dict[str, Any] = {
    "images": "digits",
    "samples": 128,
    "batch_size": 2,
    "growth": 4,
    "epochs": 8,
    "rate": 0.001,
    "momentum": 0.9,
    "second": 0.999,
    "damping": 1e-8,
}

TWO_SIZES = Experiment(
    id="adam_limit/two-batch-sizes",
    replicate="one perceptron with its images, trained by Adam at two batch sizes for as many epochs",
    simulate=two_batch_sizes,
    single="its networks are trained in single precision",
    points=(
        Point(activation="relu", hidden=(24,), **SHARED),
        Point(activation="tanh", hidden=(16, 12), **SHARED),
    ),
    budget=256,
    seconds=0.73,
    data="digits",
)

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="adam_limit/loss-after-equal-epochs",
        entries=("I2",),
        source=f"{MALLADI}, abstract",
        passage=Passage(Standing.AS_STATED, "its empirical validation in deep learning settings", "abstract"),
        statement=r"\mathbb{E} \ln L_{4B} - \mathbb{E} \ln L_B \approx 0\ \text{after as many epochs}:\quad "
        r"\eta \to 2 \eta,\ 1 - \beta \to 4 (1 - \beta),\ \epsilon \to \epsilon / 2",
        says="On small perceptrons, Adam at batches of eight by the square root rule comes within a factor of 1.3 of "
        "the loss that batches of two reach in as many epochs.",
        experiment=TWO_SIZES,
        score="log ratio",
        predict=lambda _: 0.0,
        margin=float(np.log(1.3)),
        relative=False,
        margin_reason="a factor of 1.3: gradients are not all noise; other rules for the rate are off by more",
        pilot="the margin, with seed 5: 0.20 and 0.11 by the square root rule, -0.80 and -0.57 with the rate four "
        "times as large, 1.00 and 0.50 with the rate as it is",
        rivals={
            "linear in the rate": lambda p: -0.8 if p.activation == "relu" else -0.57,
            "rate as it is": lambda p: 1.0 if p.activation == "relu" else 0.5,
        },
        no_theory=NoTheory.CONSTANT,
        quantity="logarithm of the loss at four times the batch size over that at the batch size",
        logarithm="e",
    ),
)
