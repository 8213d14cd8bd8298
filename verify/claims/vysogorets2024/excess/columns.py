"""Vysogorets, Dawid and Kempe (2024): frames of columns drawn one by one, and how far from orthonormal they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature
from theory.gauss_newton import projection
from verify.claims.vysogorets2024 import PAPER
from verify.model import OURS, AnyClaim, Claim, Experiment

__all__ = ["CLAIMS"]


def frame_overlaps(block: Block, point: Point) -> Mapping[str, Any]:
    """Squared distance of R'R from the identity, for sparse columns or dense ones."""
    gram = _gram(block, point)
    gram.diagonal(dim1=1, dim2=2).sub_(1.0)
    return {"overlap": gram.square().sum((1, 2))}


def _gram(block: Block, point: Point) -> Any:
    """R'R of independent unit columns."""
    import torch

    if point.columns == "sparse":
        drawn = torch.stack(
            [
                curvature.sparse_frame(g, point.parameters, point.dim, device=block.device)
                for g in block.streams
            ]
        )
    else:
        drawn = torch.nn.functional.normalize(block.normal(point.parameters, point.dim), dim=1)
    return drawn.mT @ drawn


FRAMES = Experiment(
    id="vysogorets2024/frames",
    replicate="one frame of independent unit columns",
    simulate=frame_overlaps,
    points=(
        Point(columns="sparse", parameters=307, dim=151),
        Point(columns="dense", parameters=109, dim=47),
    ),
    budget=8192,
    seconds=0.65,
)

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/frame-overlap",
        entries=("A6",),
        source=f"ours, for columns drawn apart in place of the orthogonal ones of section 2 of {PAPER}",
        passage=OURS,
        statement=r"\mathbb{E}\,\lVert R^\top R - I\rVert_F^2 = d (d - 1) / P",
        says="Random unit columns drawn one by one, sparse or dense, miss orthonormality by a mean squared distance "
        "equal to ordered pairs of columns over number of parameters.",
        experiment=FRAMES,
        score="overlap",
        predict=lambda p: projection.frame_overlap(p.dim, parameters=p.parameters),
        margin=0.005,
        margin_reason="unbiased at every size; 0.5 % tell d - 1 from d",
        rivals={
            "orthogonal columns": lambda _: 0.0,
            "d for d - 1": lambda p: p.dim**2 / p.parameters,
            "every pair once": lambda p: p.dim * (p.dim - 1) / (2 * p.parameters),
            "one place in common of the root of P": lambda p: p.dim * (p.dim - 1) / p.parameters**0.5,
        },
        quantity="squared distance from an orthonormal frame",
    ),
)
