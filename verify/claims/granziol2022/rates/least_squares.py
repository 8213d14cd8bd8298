"""Granziol, Zohren and Roberts (2022): mean-square stability of one step, the rule that is linear, then flat."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.training import optimisers
from theory import learning_rates
from verify.claims.granziol2022 import PAPER
from verify.model import KNOWN, AnyClaim, Claim, Experiment, Kind

__all__ = ["CLAIMS"]


def least_squares(block: Block, point: Point) -> Mapping[str, Any]:
    """SGD on Gaussian inputs, over many runs: growth of the squared distance, and what one step is made of."""
    found = optimisers.least_squares_paths(block, **point)
    return {"twice trace": 2 * found["trace"], "growth": found["growth"], "square": found["square"]}


LEAST_SQUARES_ELSEWHERE = (
    f"beside {PAPER}, section 10.1; Feuer and Weinstein (1985) for single samples, Mulayoff and Michaeli (2024), "
    "arXiv 2306.07850, for batches"
)

LEAST_SQUARES = Experiment(
    id="granziol2022/least-squares",
    replicate="24 runs of SGD on fresh Gaussian inputs",
    simulate=least_squares,
    points=(
        Point(dim=13, batch_size=1, rate=0.11, steps=2, runs=24),
        Point(dim=7, batch_size=4, rate=0.37, steps=2, runs=24),
        Point(dim=20, batch_size=9, rate=0.47, steps=2, runs=24),
    ),
    budget=8192,
    seconds=0.35,
    special="a batch of one sample is where batch noise is largest",
)


def _least_squares(p: Point) -> float:
    return float(learning_rates.gaussian_least_squares_limit(p.batch_size, p.dim))


def _growth(p: Point, dim: int) -> float:
    return (
        float(learning_rates.gaussian_least_squares_growth(p.rate, batch_size=p.batch_size, dim=dim))
        ** p.steps
    )


CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/least-squares-limit",
        entries=("B46", "beyond/D2"),
        source=LEAST_SQUARES_ELSEWHERE,
        statement=r"\frac{2\, \mathbb{E}\, \mathrm{tr}\, H_B}{\mathbb{E}\, \mathrm{tr}\, H_B^2} = "
        r"\frac{2B}{B + P + 1}\quad "
        r"\text{for inputs } x \sim N(0, I_P): \text{linear, then flat}",
        says="For least squares on Gaussian inputs, the rate at which SGD's mean squared distance stands still "
        "grows linearly with the batch size and then levels off.",
        passage=KNOWN,
        experiment=LEAST_SQUARES,
        kind=Kind.RATIO,
        score=("twice trace", "square"),
        predict=_least_squares,
        margin=0.01,
        margin_reason="unbiased; at most 1 % for random matrices",
        rivals={
            "2 over the Marchenko-Pastur edge": lambda p: 2 / (1 + math.sqrt(p.dim / p.batch_size)) ** 2,
            "gradient descent": lambda _: 2.0,
            "P for P + 1": lambda p: 2 * p.batch_size / (p.batch_size + p.dim),
            "square root of B": lambda p: 2 * math.sqrt(p.batch_size / (p.batch_size + p.dim + 1)),
            "variance of the quadratic form": lambda p: 2 / (1 + 2 / p.batch_size),
        },
        axis="batch_size",
        quantity="rate at which the mean squared distance stays as it is",
    ),
    Claim(
        id="granziol2022/least-squares-growth",
        entries=("B46", "beyond/D2"),
        source=LEAST_SQUARES_ELSEWHERE,
        statement=r"\frac{\mathbb{E}\,|w_t|^2}{|w_0|^2} = \Big[(1 - a)^2 + a^2 \frac{P + 1}{B}\Big]^t\quad "
        r"\text{for inputs } x \sim N(0, I_P)",
        says="For least squares on Gaussian inputs, each step multiplies the mean squared distance by gradient "
        "descent's factor plus a noise term in dimension over batch size.",
        passage=KNOWN,
        experiment=LEAST_SQUARES,
        score="growth",
        predict=lambda p: _growth(p, p.dim),
        margin=0.01,
        margin_reason="unbiased; at most 1 % for random matrices",
        rivals={
            "no batch noise": lambda p: (1 - p.rate) ** (2 * p.steps),
            "P for P + 1": lambda p: _growth(p, p.dim - 1),
            "one step": lambda p: _growth(p | {"steps": 1}, p.dim),
        },
        axis="batch_size",
        quantity="squared distance after two steps over that before",
    ),
)
