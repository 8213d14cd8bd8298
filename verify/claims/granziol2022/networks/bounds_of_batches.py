"""Granziol, Zohren and Roberts (2022): what Algorithm 1 averages, and bounds of every batch from its samples alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.matrices import populations
from simulate.monte_carlo import Point
from simulate.perceptrons import per_sample
from theory import batch_hessian, own_direction
from verify.claims.granziol2022 import PAPER
from verify.model import OURS, AnyClaim, ExactProperty, Identity
from verify.model.domains import Between, OneOf

__all__ = ["CLAIMS"]

Floats = NDArray[np.float64]


def element_variances(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Variance of the elements of matrices, and what Algorithm 1 gives with a whole basis for its probes.

    The mean over an orthonormal basis is that over all unit vectors, which random probes estimate.
    """
    import torch

    matrices = populations.symmetric_matrices(rng, point.dataset_size, point.dim) + np.eye(point.dim)
    basis = np.linalg.qr(rng.standard_normal((point.dim, point.dim)))[0]
    pieces = per_sample.algorithm_1_probes(torch.from_numpy(matrices), basis)
    total = float((pieces.mean_square - pieces.square_of_mean).mean())
    predicted = batch_hessian.element_variance(total, dim=point.dim)
    return {
        "over the samples": matrices.var(axis=0).mean(),
        "by the probes": predicted,
        "not divided": total,
        "mean not subtracted": (matrices**2).sum((1, 2)).mean() / point.dim**2,
        "divisor N - 1": predicted * point.dataset_size / (point.dataset_size - 1),
    }


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
    Identity(
        id="granziol2022/element-variance",
        entries=("B37",),
        source=f"{PAPER}, algorithm 1 and section 8.2",
        statement=r"\frac1{P^2} \sum_{jk} \mathrm{Var}_i\,(H_i)_{jk} = \frac1P\, \mathbb{E}_v\Big[\frac1N \sum_i "
        r"\lVert H_i v\rVert^2 - \lVert \bar H v\rVert^2\Big]",
        says="The corrected average of Algorithm 1 over all unit vectors, divided by the dimension, is the mean "
        "variance of a Hessian element over the samples.",
        routes=element_variances,
        points=(Point(dataset_size=8, dim=5), Point(dataset_size=7, dim=9)),
        tolerance=1e-12,
        tolerance_reason="rounding of sums of some hundred squares",
        seconds=0.01,
        quantity="variance of an element of a sample's Hessian",
    ),
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
