"""Granziol, Zohren and Roberts (2022), section 8.2 and figure 8: how the variance of the Hessian goes in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.training.courses import course
from verify.model import AnyClaim, Claim, Experiment, Kind, NoTheory, Passage, Standing, Verdict

__all__ = ["CLAIMS"]


def variance_in_training(block: Block, point: Point) -> Mapping[str, Any]:
    """Logarithm of the growth of the variance of the Hessian while the rate falls, over that before."""
    walk = course(block, point)
    totals = np.array(
        [
            [_total(walk.samples(network, checkpoint, "hessian")) for checkpoint in walk.found]
            for network in range(len(block))
        ]
    )
    before, falling = np.diff(np.log(totals), axis=1).T
    return {"later": falling - before}


def _total(samples: Any) -> float:
    """Mean over the samples of |H_i|^2, less |H|^2, exactly."""
    inner = samples.inner()
    return float(inner.square().sum((2, 3)).mean() - samples.matrices(inner).square().sum())


VARIANCES = Experiment(
    id="granziol2022/variance-in-training",
    replicate="one perceptron 16-8-10 with 128 images, trained by the schedule of eq. (21)",
    simulate=variance_in_training,
    points=tuple(
        Point(
            images="digits",
            pixels=4,
            hidden=8,
            samples=128,
            noise=noise,
            batch_size=32,
            epochs=40,
            rate=0.1,
            done=(0.0, 0.54, 0.9),
        )
        for noise in (0.0, 0.3)
    ),
    budget=512,
    seconds=0.8,
    data="digits",
    special="the data as they are have no label that is drawn anew; training begins at 0",
    on_host="matrices of the samples",
    rounding={"later": 1e-4},  # after a training
)

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/variance-grows-as-the-rate-falls",
        entries=("B41",),
        source=f"{PAPER}, section 8.2 and figure 8, on small networks",
        passage=Passage(Standing.OUTSIDE, "during SGD training for VGG-16 CIFAR-100", "caption of Figure 8"),
        no_theory=NoTheory.CONSTANT,
        expected=Verdict.DISAGREES,
        finding="Outside the network of figure 8, on small perceptrons, the order is the reverse: the variance grows "
        "five times before the rate falls (2.6 times with labels drawn anew), and while it falls by nothing (by 30 %).",
        statement=r"\mathbb{E} \log \frac{\sigma^2(0.9\, T)}{\sigma^2(0.54\, T)} \ge "
        r"\mathbb{E} \log \frac{\sigma^2(0.54\, T)}{\sigma^2(0)}",
        says="The variance of the Hessian over the samples grows by more while the learning rate falls than before.",
        experiment=VARIANCES,
        kind=Kind.AT_LEAST,
        score="later",
        predict=lambda _: 0.0,
        margin=0.1,
        relative=False,
        margin_reason="a tenth of the variance",
        pilot="that the two parts of training are compared: networks drawn first had grown before the rate fell",
        rivals={"fortyfold": lambda _: float(np.log(40))},
        axis="noise",
        quantity="logarithm of the growth while the rate falls over that before",
        logarithm="e",
    ),
)
