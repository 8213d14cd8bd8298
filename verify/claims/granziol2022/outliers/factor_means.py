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
    """Element of (J + X)(J + X)' along and across the only direction of J J', at squared cosines with it.

    The noise is exponential less the mean of its law.
    """
    import torch

    shape = (point.draws, point.dim, point.samples)
    noise = (
        block.stack(lambda rng: rng.standard_exponential(shape) - 1) * point.sigma / math.sqrt(point.samples)
    )
    frame = torch.linalg.qr(block.normal(point.draws, point.dim, 2)).Q
    right = torch.nn.functional.normalize(block.normal(point.draws, point.samples), dim=2)
    cosines = torch.tensor(point.squared_cosines, dtype=noise.dtype, device=noise.device).sqrt()
    directions = frame @ torch.stack([cosines, (1 - cosines.square()).sqrt()])
    factor = noise + math.sqrt(point.eigenvalue) * frame[..., :1] * right[..., None, :]
    return {"elements": (directions.mT @ factor).square().sum(3).mean(1)}


FACTORS = Experiment(
    id="granziol2022/noisy-factors",
    replicate="128 factors of one direction with exponential noise",
    simulate=noisy_factors,
    points=(
        Point(eigenvalue=0.9, sigma=1.3, dim=5, samples=3, draws=128, squared_cosines=(0.97, 0.03)),
        Point(eigenvalue=2.7, sigma=0.7, dim=8, samples=4, draws=128, squared_cosines=(0.97, 0.03)),
    ),
    budget=16384,
    seconds=0.084,
)


def _element(p: Point, *, noise: float | None = None) -> float:
    """Share of the eigenvalue in this direction, and the noise."""
    found = MarchenkoPastur(q=p.dim / p.samples, sigma=p.sigma).mean() if noise is None else noise
    return float(p.eigenvalue * p.squared_cosines + found)


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
        statement=r"\mathbb{E}\,v^\top (J + X)(J + X)^\top v = \lambda (u^\top v)^2 + \sigma^2\quad "
        r"(J J^\top = \lambda u u^\top,\ |v| = 1,\ \text{independent elements of } X \text{ of variance } "
        r"\sigma^2/n)",
        says="Independent noise of mean zero inside a factor raises the mean of the factor's square by exactly the "
        "noise variance, along its direction and across it.",
        experiment=FACTORS,
        score="elements",
        along="squared_cosines",
        predict=_element,
        margin=0.01,
        margin_reason="exact at every size; of noise less its mean in the draws at hand it would hold by algebra",
        rivals={
            "the noise drops out": lambda p: _element(p, noise=0.0),
            "divisor n - 1": lambda p: _element(p, noise=p.sigma**2 * p.samples / (p.samples - 1)),
            "divisor n + 1": lambda p: _element(p, noise=p.sigma**2 * p.samples / (p.samples + 1)),
            "standard deviation": lambda p: _element(p, noise=p.sigma),
            "along its direction alone": lambda p: _element(p, noise=p.sigma**2 * p.squared_cosines),
            "noise 3 % larger": lambda p: _element(p, noise=1.03 * p.sigma**2),
        },
        quantity="mean of the noisy matrix in a direction",
    ),
)
