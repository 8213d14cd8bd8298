"""Granziol, Zohren and Roberts (2022): what Algorithm 1 averages, and bounds of every batch from its samples alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulate.matrices import populations
from simulate.monte_carlo import Point
from theory import own_direction
from verify.model import OURS, AnyClaim, ExactProperty
from verify.model.domains import Between, OneOf

__all__ = ["CLAIMS"]

Floats = NDArray[np.float64]


def law_of_samples(matrices: Floats) -> own_direction.OwnDirections:
    """From the eigenvectors of dense matrices, with the top one of their mean as the only direction V."""
    v = np.linalg.eigh(matrices.mean(axis=0))[1][:, -1:]
    values, vectors = np.linalg.eigh(matrices)
    return own_direction.own_directions(
        v.T @ matrices @ v,
        v.T @ matrices @ matrices @ v,
        values[:, -1],
        (v.T @ vectors[:, :, -1:])[..., 0],
        background=0.0,
        spread=0.0,
    )


def outside_bounds(
    rng: np.random.Generator, point: Point, *, lower: float = 1.0, upper: float = 1.0
) -> float:
    """How far top eigenvalues of batches lie outside of the bounds from single samples."""
    matrices = populations.symmetric_matrices(rng, point.samples, point.dim)
    if point.semidefinite:
        matrices = matrices @ matrices
    elif np.linalg.eigvalsh(matrices.mean(axis=0))[-1] <= 0:
        matrices = (
            -matrices
        )  # directions are those of positive curvature of the mean, and one in forty 3 x 3 ones has none
    drawn = populations.every_batch(point.samples, min(point.batch_size, point.samples))
    tops = np.linalg.eigvalsh(matrices[drawn].mean(axis=1))[:, -1]
    found = own_direction.batch_bounds(law_of_samples(matrices), drawn, semidefinite=point.semidefinite)
    scale = float(np.abs(matrices).max())
    return (
        max(0.0, float((lower * found.lower - tops).max()), float((tops - upper * found.upper).max())) / scale
    )


CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="beyond/bounds-of-every-batch",
        entries=("D1",),
        source="ours: a compression, and the triangle inequality",
        statement=r"\lambda_{\max}\Big(\frac1B \sum_{i \in S} V^\top H_i V\Big) \le \lambda_1(H_S) \le "
        r"\frac1B \sum_{i \in S} \lambda_1(H_i),\quad \lambda_1(H_S) \ge \frac1B \max_{i \in S} \lambda_1(H_i)\ "
        r"(H_i \succeq 0)",
        says="For every batch the top eigenvalue lies between that of its samples restricted to a few directions "
        "and the mean of the samples' own.",
        passage=OURS,
        domain={
            "samples": Between(2, 7),
            "dim": Between(2, 6),
            "batch_size": Between(1, 5),
            "semidefinite": OneOf(True, False),
        },
        violation=outside_bounds,
        examples=(
            Point(samples=6, dim=5, batch_size=3, semidefinite=False),
            Point(samples=7, dim=4, batch_size=1, semidefinite=True),
        ),
        tolerance=1e-10,
        tolerance_reason="rounding of symmetric eigenvalue problems",
        rivals={
            "upper one 5 % lower": lambda rng, point: outside_bounds(rng, point, upper=0.95),
            "lower one 5 % higher": lambda rng, point: outside_bounds(rng, point, lower=1.05),
        },
        seconds=0.01,
    ),
)
