"""Granziol, Zohren and Roberts (2022), section 11.2: noise of the squared gradient of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import loss_change
from verify.claims.granziol2022 import PAPER
from verify.model import AnyClaim, Claim, Experiment, Passage, Standing

__all__ = ["CLAIMS"]


def squared_gradients(block: Block, point: Point) -> Mapping[str, Any]:
    """Squared mean gradient of batches of normal samples: its mean, and half the squared difference of two batches."""
    g, spread = np.array(point.gradient), np.sqrt(point.variances)
    shape = (point.pairs, 2, point.batch_size, len(g))
    found = []
    for rng in block.streams:
        means = g + (spread * rng.standard_normal(shape)).mean(axis=2)
        squares = (means**2).sum(axis=2)
        found.append((squares.mean(), ((squares[:, 0] - squares[:, 1]) ** 2).mean() / 2))
    mean, variance = np.array(found).T
    return {"mean": mean, "variance": variance}


SMALLEST = 3

GRADIENTS = Experiment(
    id="granziol2022/squared-gradients",
    replicate="24 pairs of batches of normal gradients",
    simulate=squared_gradients,
    on_host="all of it, in numpy",
    points=tuple(
        Point(gradient=(1.3, -0.7, 0.4, 0.9), variances=(3.1, 0.6, 1.7, 4.2), batch_size=size, pairs=24)
        for size in (SMALLEST, 31)
    ),
    budget=16384,
    seconds=0.22,
)


def _gradient_mean(p: Point) -> float:
    square = float(np.square(p.gradient).sum())
    return float(loss_change.squared_gradient_mean(square, trace=sum(p.variances), batch_size=p.batch_size))


def _gradient_variance(p: Point, *, along: float = 1.0, square: float = 1.0) -> float:
    g, c = np.array(p.gradient), np.array(p.variances)
    return float(
        loss_change.squared_gradient_variance(
            along * g**2 @ c, trace_of_square=square * c @ c, batch_size=p.batch_size
        )
    )


CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/squared-gradient-mean",
        entries=("B59",),
        source=f"{PAPER}, section 11.2; McCandlish et al. (2018), arXiv 1812.06162, appendix A",
        statement=r"\mathbb{E}\,|g_B|^2 = |g|^2 + \mathrm{tr}\,C / B",
        says="The mean squared norm of a batch gradient is that of the full gradient plus the trace of the "
        "samples' covariance over the batch size.",
        passage=Passage(
            Standing.AS_STATED,
            "whilst the value of the change in loss remains unchanged in expectation",
            "Section 11.2",
        ),
        experiment=GRADIENTS,
        score="mean",
        predict=_gradient_mean,
        printed=lambda p: float(np.square(p.gradient).sum()),
        reads=r"L(w - \alpha \nabla L(w)) - L(w) = -\alpha \lVert\nabla L(w)\rVert^2 \text{, unchanged in "
        r"expectation}",
        finding="With the gradient of the batch in both factors, as the displayed variance has it, the "
        "change is not unchanged: the noise of the batch adds its own squared length, tr C / B. (In a loss "
        "that does not depend on the batch it would be.)",
        margin=0.01,
        margin_reason="unbiased",
        rivals={
            "mean of the variances": lambda p: (
                float(np.square(p.gradient).sum()) + float(np.mean(p.variances)) / p.batch_size
            ),
            "1/B^2": lambda p: float(np.square(p.gradient).sum()) + sum(p.variances) / p.batch_size**2,
        },
        axis="batch_size",
        quantity="squared gradient of a batch",
    ),
    Claim(
        id="granziol2022/squared-gradient-variance",
        entries=("B59",),
        source=f"{PAPER}, section 11.2; moments of normal variables, Isserlis (1918)",
        statement=r"\mathrm{Var}\,|g_B|^2 = \frac4B g^\top C g + \frac2{B^2} \mathrm{tr}\,C^2\quad "
        r"\text{(normal gradients)}",
        says="For normal gradients the variance of the batch gradient's squared norm has a term that falls as the "
        "inverse batch size beside one that falls as its square.",
        passage=Passage(Standing.AS_STATED, "the variance changes as", "Section 11.2"),
        experiment=GRADIENTS,
        score="variance",
        predict=_gradient_variance,
        printed=lambda p: _gradient_variance(GRADIENTS.points[0]) * (SMALLEST / p.batch_size) ** 2,
        reads=r"\mathrm{Var}\Big(L(w) - \alpha \Big(\frac1B \sum_i^B \nabla L(w)_i\Big) \Big(\frac1B \sum_j^B "
        r"\nabla L(w)_j\Big)\Big)^\top \propto \frac{\alpha^2}{B^2}",
        finding="From B = 3 to 31 the variance falls by 15, not by the square of the ratio, 107: proportional to 1/B^2 "
        "is the second term alone; the first is the larger one while B |g|^2 exceeds tr C.",
        margin=0.05,
        margin_reason="a variance, from pairs of batches: 5 % takes some 10^3 replicates",
        rivals={
            "first order only": lambda p: _gradient_variance(p, square=0.0),
            "second order only": lambda p: _gradient_variance(p, along=0.0),
            "variance of the projection": lambda p: _gradient_variance(p, along=0.25),
            "without the 2": lambda p: _gradient_variance(p, square=0.5),
        },
        axis="batch_size",
        quantity="variance of the squared gradient of a batch",
    ),
)
