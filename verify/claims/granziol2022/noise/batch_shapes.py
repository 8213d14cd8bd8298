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
    OURS,
    AnyClaim,
    Claim,
    ExactProperty,
    Experiment,
    Kind,
)
from verify.model.domains import Between, Either

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


SHAPE = ExactProperty(
    id="granziol2022/shape-against-batch-size",
    entries=("B42",),
    source=f"{PAPER}, theorem 4, the curve that figure 1 illustrates; footnote 6",
    statement=r"\lambda_1'(b) \propto b^{-1/2}\ (b < B_c),\quad \lambda_1'(b) \text{ strictly convex in } b",
    says="The top eigenvalue of Theorem 4 falls as the inverse square root of the effective batch size below the "
    "crossover, and is convex in it throughout.",
    domain={
        "eigenvalue": Between(0.01, 100.0),
        "sigma": Between(0.01, 10.0),
        "dim": Between(2, 10**6),
        "first": Between(0.01, 0.4),
        "gap": Between(0.05, 0.5),
    },
    violation=_shape,
    examples=(Point(eigenvalue=0.7, sigma=0.13, dim=300, first=0.23, gap=0.41),),
    tolerance=1e-10,
    tolerance_reason="rounding of logarithms of ratios near one",
    rivals={
        "linear up to a threshold": lambda _, point: abs(_chord(point, point.first)),
        "exponent -1 below the crossover": lambda _, point: abs(_local_exponent(point, point.first) + 1),
        "exponent -1/2 above it": lambda _, point: abs(_local_exponent(point, 3.0) + 0.5),
    },
    seconds=0.031,
)


def _bend(point: Point) -> float:
    """Second difference of the edge in B over the edge, at a share of the data set; positive where it is convex."""
    sizes = point.dataset_size * (point.share + np.array([-0.02, 0.0, 0.02]))
    low, middle, high = (theorem_4(point, 0.0, size, point.dataset_size) for size in sizes)
    return float((low + high - 2 * middle) / middle)


BEND = ExactProperty(
    id="granziol2022/bend-against-batch-size",
    entries=("B42",),
    source=f"ours, beside the caption of figure 1 of {PAPER}; theorem 4 below its threshold",
    statement=r"2 \sqrt{P (1/B - 1/N)}\,\sigma \text{ is convex in } B \text{ up to } B = 3N/4,\ "
    r"\text{concave beyond}",
    says="The edge of the noise is convex in the batch size up to three quarters of the data set, and concave "
    "beyond.",
    passage=OURS,
    domain={
        "sigma": Between(0.01, 10.0),
        "dim": Between(2, 10**6),
        "dataset_size": Between(10, 10**6),
        "share": Either(Between(0.05, 0.7), Between(0.8, 0.95)),
    },
    violation=lambda _, point: max(0.0, -_bend(point) if point.share < 0.75 else _bend(point)),
    examples=(
        Point(sigma=0.13, dim=300, dataset_size=900, share=0.31),
        Point(sigma=0.13, dim=300, dataset_size=900, share=0.88),
    ),
    tolerance=1e-10,
    tolerance_reason="rounding of differences; the bend itself is 1e-5 and more",
    rivals={
        "convex throughout": lambda _, point: max(0.0, -_bend(point)),
        "linear": lambda _, point: abs(_bend(point)),
    },
    seconds=0.025,
)


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
    SHAPE,
    BEND,
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
