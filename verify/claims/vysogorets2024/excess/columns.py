"""Vysogorets, Dawid and Kempe (2024): frames of columns drawn one by one, and how far from orthonormal they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature
from theory.gauss_newton import projection
from theory.rmt import marchenko_pastur
from verify.claims.vysogorets2024 import PAPER
from verify.model import OURS, AnyClaim, Claim, Experiment, Simulator

__all__ = ["CLAIMS"]


def frame_overlaps(block: Block, point: Point) -> Mapping[str, Any]:
    """Squared distance of R'R from the identity, for sparse columns or dense ones."""
    gram = _gram(block, point)
    gram.diagonal(dim1=1, dim2=2).sub_(1.0)
    return {"overlap": gram.square().sum((1, 2))}


def frame_eigenvalues(block: Block, point: Point) -> Mapping[str, Any]:
    """Extreme eigenvalues of R'R, for sparse columns or dense ones."""
    import torch

    values = torch.linalg.eigvalsh(_gram(block, point))
    return {"largest": values[:, -1], "smallest": values[:, 0]}


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


def _frames(
    name: str, simulate: Simulator, sparse: tuple[int, int], dense: tuple[int, int], seconds: float
) -> Experiment:
    sizes = {"sparse": sparse, "dense": dense}
    return Experiment(
        id=f"vysogorets2024/{name}",
        replicate="one frame of independent unit columns",
        simulate=simulate,
        points=tuple(Point(columns=c, parameters=rows, dim=d) for c, (rows, d) in sizes.items()),
        budget=8192,
        seconds=seconds,
    )


FRAMES = _frames("frames", frame_overlaps, (307, 151), (109, 47), 0.65)
LARGE_FRAMES = _frames("large-frames", frame_eigenvalues, (2311, 97), (2003, 101), 0.37)


def _edge(p: Point, side: int) -> float:
    return marchenko_pastur.MarchenkoPastur(q=p.dim / p.parameters, variance=1.0).edges[side]


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
    *(
        Claim(
            id=f"vysogorets2024/frame-{name}-eigenvalue",
            entries=("A6",),
            source=f"ours, beside section 2 of {PAPER}",
            passage=OURS,
            statement=rf"\mathbb{{E}}\,\lambda_{{\{kind}}}(R^\top R) = (1 {sign} \sqrt{{d/P}})^2 + O(d^{{-2/3}})",
            says=f"The {name} eigenvalue of the Gram matrix of random unit columns lies at the {edge} Marchenko-Pastur "
            "edge, for large frames.",
            experiment=LARGE_FRAMES,
            score=name,
            predict=lambda p, side=side: _edge(p, side),
            margin=0.03,
            margin_reason="3 % for finite sizes: the edge is approached as d^(-2/3), from within",
            rivals={
                "orthonormal": lambda _: 1.0,
                "without the square": lambda p, s=step: 1 + s * (p.dim / p.parameters) ** 0.5,
                "d/P for its root": lambda p, s=step: (1 + s * p.dim / p.parameters) ** 2,
            },
            quantity=f"{name} eigenvalue of the frame's Gram matrix",
        )
        for name, edge, kind, sign, side, step in (
            ("largest", "upper", "max", "+", 1, 1),
            ("smallest", "lower", "min", "-", 0, -1),
        )
    ),
)
