"""Granziol, Zohren and Roberts (2022): the shape of the largest eigenvalue against the batch size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.noise.rational_moments import inverse_batch
from verify.claims.granziol2022.noise.scatter import Array, theorem_4
from verify.model import (
    AnyClaim,
    Claim,
    Experiment,
    Kind,
)

__all__ = ["CLAIMS"]


def _at_effective(point: Point, sizes: Array) -> Array:
    """Theorem 4 at effective batch sizes in units of the crossover P sigma^2 / lambda^2."""
    b = sizes * point.dim * (point.sigma / point.eigenvalue) ** 2
    return theorem_4(point, point.eigenvalue, b, math.inf)


def _chord(point: Point, size: float) -> float:
    """Value half-way between two effective sizes over the mean of the values there, less one."""
    low, middle, high = _at_effective(point, size * np.array([1.0, 1 + point.gap, 1 + 2 * point.gap]))
    return 2 * middle / (low + high) - 1


def _local_exponent(point: Point, size: float) -> float:
    low, high = _at_effective(point, size * np.array([1.0, 1 + point.gap]))
    return math.log(high / low) / math.log(1 + point.gap)


LEAST_BEND = 5e-4
"""A curve b^(-1/2) or 1 + 1/b lies further than this below its chords at all sizes and gaps that are drawn."""


def _shape(_: np.random.Generator, point: Point) -> float:
    """Exponent -1/2 below the crossover; clearly below every chord there, across it and beyond."""
    below = abs(_local_exponent(point, point.first) + 0.5)
    highest = max(_chord(point, size) for size in (point.first, 0.9, 3 * point.first + 1))
    return max(below, highest + LEAST_BEND, 0.0)


def _bend(point: Point) -> float:
    """Second difference of the edge in B over the edge, at a share of the data set; positive where it is convex."""
    sizes = point.dataset_size * (point.share + np.array([-0.02, 0.0, 0.02]))
    low, middle, high = (theorem_4(point, 0.0, size, point.dataset_size) for size in sizes)
    return float((low + high - 2 * middle) / middle)


def edges_of_batches(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest eigenvalue at three batch sizes, with a weak spike: at the middle one, and the mean of the others."""
    spread = point.sigma * np.sqrt(point.dim * (1 / np.array(point.batch_sizes) - 1 / point.dataset_size))
    low, middle, high = (
        s * ensembles.goe_top_eigenvalue(block, point.dim, spike=point.eigenvalue / s)
        for s in spread.tolist()
    )
    return {"middle": middle, "ends": (low + high) / 2}


EDGES = Experiment(
    id="granziol2022/edges-of-batches",
    replicate="one noise matrix with one direction at each batch size",
    simulate=edges_of_batches,
    on_host="eigenvalues of tridiagonal matrices, by LAPACK",
    points=(Point(dim=1500, eigenvalue=0.08, sigma=0.07, batch_sizes=(10, 35, 60), dataset_size=96),),
    budget=1024,
    seconds=0.029,
)


def _middle_over_ends(p: Point, value: Any) -> float:
    low, middle, high = (float(value(size)) for size in p.batch_sizes)
    return 2 * middle / (low + high)


CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/not-linear-in-batch-size",
        entries=("B42",),
        source=f"{PAPER}, theorem 4 below its threshold, footnote 6",
        statement=r"\frac{2 \lambda_1'(B_2)}{\lambda_1'(B_1) + \lambda_1'(B_3)} = "
        r"\frac{2 \sqrt{1/B_2 - 1/N}}{\sqrt{1/B_1 - 1/N} + \sqrt{1/B_3 - 1/N}}\quad (B_i < B_c)",
        says="Where noise drowns the spike, the top eigenvalue at a middle batch size lies below the straight line "
        "through a smaller and a larger one.",
        experiment=EDGES,
        kind=Kind.RATIO,
        score=("middle", "ends"),
        predict=lambda p: _middle_over_ends(p, lambda b: theorem_4(p, p.eigenvalue, b, p.dataset_size)),
        margin=0.01,
        margin_reason="finite size takes 1 % from each edge and cancels in the ratio",
        rivals={
            "straight line in B": lambda _: 1.0,
            "1/B": lambda p: _middle_over_ends(p, lambda b: 1 / b),
            "B for b": lambda p: _middle_over_ends(p, lambda b: b**-0.5),
            "no threshold": lambda p: _middle_over_ends(
                p,
                lambda b: p.eigenvalue + p.dim * p.sigma**2 * inverse_batch(b, p.dataset_size) / p.eigenvalue,
            ),
        },
        quantity="largest eigenvalue at the middle batch size over the mean of the outer ones",
    ),
)
