"""Granziol, Zohren and Roberts (2022), eqs. (14), (15): the mean of noise inside a factor, and of batches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory.rmt import MarchenkoPastur
from verify.claims.granziol2022 import PAPER
from verify.model import AnyClaim, Claim, Experiment

__all__ = ["CLAIMS"]


def noisy_factors(block: Block, point: Point) -> Mapping[str, Any]:
    """Element of (J + X)(J + X)' along the only direction of J J', for exponential noise less the mean of its law."""
    import torch

    shape = (point.draws, point.dim, point.samples)
    noise = (
        block.stack(lambda rng: rng.standard_exponential(shape) - 1) * point.sigma / math.sqrt(point.samples)
    )
    factors = [
        torch.nn.functional.normalize(block.normal(point.draws, size), dim=2)
        for size in (point.dim, point.samples)
    ]
    along = (factors[0][..., None] * noise).sum(2) + math.sqrt(point.eigenvalue) * factors[1]
    return {"along": along.square().sum(2).mean(1)}


FACTORS = Experiment(
    id="granziol2022/noisy-factors",
    replicate="128 factors of one direction with exponential noise",
    simulate=noisy_factors,
    points=(
        Point(eigenvalue=0.9, sigma=1.3, dim=5, samples=9, draws=128),
        Point(eigenvalue=2.7, sigma=0.7, dim=8, samples=6, draws=128),
    ),
    budget=16384,
    seconds=0.084,
)


def _off(found: Any, expected: Any) -> float:
    """Largest difference relative to the largest entry."""
    return float(np.abs(found - expected).max() / np.abs(found).max())


def _batches(rng: np.random.Generator, p: Point) -> tuple[Any, Any, float]:
    """Mean over all batches of their Gauss-Newton matrix, that of the data set, and sigma^2 of eq. (15)."""
    factors = rng.standard_normal((p.dataset_size, p.dim, 2)) + 1.0
    size = math.ceil(p.share * (p.dataset_size - 1))
    samples = np.array([f @ f.T for f in factors])
    batches = [samples[list(chosen)].mean(axis=0) for chosen in combinations(range(len(samples)), size)]
    noise = float(factors.var(axis=0).mean()) * (1 / size - 1 / p.dataset_size)
    return np.mean(batches, axis=0), samples.mean(axis=0), noise


ROUNDING = "rounding of a few dozen additions"

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/mean-of-the-square",
        entries=("B24",),
        source=f"{PAPER}, eq. (15)",
        statement=r"\mathbb{E}\,u^\top (J + X)(J + X)^\top u = \lambda + \sigma^2\quad "
        r"(J J^\top = \lambda u u^\top,\ \text{independent elements of } X \text{ of variance } \sigma^2/n)",
        says="Independent noise of mean zero inside a factor raises the mean of the factor's square along its "
        "direction by exactly the noise variance.",
        experiment=FACTORS,
        score="along",
        predict=lambda p: p.eigenvalue + MarchenkoPastur(q=p.dim / p.samples, sigma=p.sigma).mean(),
        margin=0.01,
        margin_reason="exact at every size; of noise less its mean in the draws at hand it would hold by algebra",
        rivals={
            "the noise drops out": lambda p: p.eigenvalue,
            "divisor n - 1": lambda p: p.eigenvalue + p.sigma**2 * p.samples / (p.samples - 1),
            "standard deviation": lambda p: p.eigenvalue + p.sigma,
        },
        quantity="mean of the noisy matrix along its direction",
    ),
)
