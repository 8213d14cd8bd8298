"""Random frames and random logit gradients of any shape: what a projection and a Gauss-Newton matrix keep of a law."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulate import networks, spectra
from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature, full_space
from theory import gauss_newton
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.softmax.theorems import CLAIMS as LOGITS
from verify.judging.families import by_name, one, ratio
from verify.model import OURS, AnyClaim, StatisticalProperty
from verify.model.domains import Between, Many, OneOf

__all__ = ["CLAIMS"]

FRAMES = 12
"""Of each replicate."""

OF_LOGITS = by_name(LOGITS, "outlier", "bulk")


def _squares(matrix: Any, frames: Any, p: Point) -> Any:
    """Mean squared norm of a matrix in some frames, over that of theory, with that of the trace."""
    seen = frames.mT @ matrix @ frames
    law = gauss_newton.sparse_moments if p.case == "sparse" else gauss_newton.haar_moments
    more = {"squared_diagonal": float(matrix.diagonal().square().sum())} if p.case == "sparse" else {}
    known = law(
        float(matrix.trace()), float(matrix.square().sum()), dim=p.dim, parameters=len(matrix), **more
    )
    traces = seen.diagonal(dim1=1, dim2=2).sum(1)
    return (seen.square().sum((1, 2)) / float(known.squared_norm) + traces / float(known.trace)).mean() / 2


def _matrix(rng: np.random.Generator, size: int) -> Any:
    """Symmetric, with a trace as large as its norm."""
    import torch

    drawn = torch.from_numpy(rng.standard_normal((size, size)))
    return (drawn + drawn.T) / size**0.5 + 2 * torch.eye(size, dtype=drawn.dtype)


def _framed(block: Block, p: Point, draw: Callable[[np.random.Generator, int, int], Any]) -> Any:
    import torch

    found = []
    for rng in block.streams:
        matrix = _matrix(rng, p.parameters)
        frames = torch.stack([draw(rng, p.parameters, p.dim) for _ in range(FRAMES)])
        found.append(_squares(matrix, frames, p))
    return torch.stack(found)


def _first_rows(rng: np.random.Generator, rows: int, columns: int) -> Any:
    """A frame whose last rows are made from what the first ones, drawn without them, leave of unit columns."""
    import torch

    seen = curvature.haar(rng, rows - columns, columns, total=rows)
    rest = torch.eye(columns, dtype=seen.dtype) - seen.T @ seen
    return torch.cat([seen, torch.linalg.cholesky(rest).T])


def _together(block: Block, p: Point) -> Any:
    frames = ensembles.haar_frames(block, p.parameters, p.dim, count=FRAMES).cpu()
    pairs = zip(block.streams, frames, strict=True)
    found = [_squares(_matrix(rng, p.parameters), each, p) for rng, each in pairs]
    return np.array([float(value) for value in found])


def _network(block: Block, p: Point) -> Any:
    """The Hessian of a perceptron seen through a frame, over its exact norm in full space as theory projects it."""
    found = []
    for rng in block.streams:
        weights = networks.mlp_weights(rng, (4, 5, 3))
        x, labels = rng.standard_normal((6, 4)), rng.integers(0, 3, 6)
        whole = full_space.norms(weights, x, labels, p.alpha, p.alpha**2)
        size, dim = networks.weight_count((4, 5, 3)), p.dim + 27
        framed = curvature.ProjectedMlp(weights, x, labels, curvature.haar(rng, size, dim))
        seen = framed.terms(p.alpha, p.alpha**2).hessian
        known = gauss_newton.haar_moments(
            whole.trace_hessian, whole.norm_hessian**2, dim=dim, parameters=size
        )
        found.append(float(seen.square().sum()) / float(known.squared_norm))
    return np.array(found)


def _probes(block: Block, p: Point) -> Any:
    """Traces by random signs, and the variance of one over that of theory."""
    found = []
    for rng in block.streams:
        matrix = _matrix(rng, p.parameters)
        estimate = spectra.trace(matrix, rng, probes=400)
        square, own = float(matrix.square().sum()), float(matrix.diagonal().square().sum())
        variance = float(gauss_newton.sign_probe_variance(square, squared_diagonal=own))
        parts = estimate.value / float(matrix.trace()), 400 * estimate.standard_error**2 / variance
        found.append(sum(parts) / 2)
    return np.array(found)


CASES: dict[str, Callable[[Block, Point], Any]] = {
    "whole": lambda block, p: _framed(block, p, curvature.haar),
    "first rows": lambda block, p: _framed(block, p, _first_rows),
    "sparse": lambda block, p: _framed(block, p, curvature.sparse_frame),
    "together": _together,
    "network": _network,
    "probes": _probes,
    "outlier": lambda block, p: ratio(OF_LOGITS["outlier"], block, _logits(p)),
    "bulk": lambda block, p: ratio(OF_LOGITS["bulk"], block, _logits(p)),
}


def _logits(p: Point) -> Point:
    weights = np.sort(p.odds)[::-1] * 1.5 ** -np.arange(len(p.odds))
    return p | {"p": tuple(weights / weights.sum()), "dim": p.parameters, "samples": 24}


def any_frame(block: Block, point: Point) -> Mapping[str, Any]:
    """What is seen over what theory says of it."""
    return {"ratio": CASES[point.case](block, point)}


def _example(case: str) -> Point:
    odds = (0.41, 0.32, 0.23, 0.14)
    return Point(case=case, parameters=23, dim=3, alpha=1.7, odds=odds, sigma_c=1.1, sigma_e=1.9)


CLAIMS: tuple[AnyClaim, ...] = (
    StatisticalProperty(
        id="vysogorets2024/any-frame",
        entries=("A6", "A7", "A27", "A41"),
        source=f"ours, beside sections 2 and 4 and eq. (7) of {PAPER}",
        passage=OURS,
        statement=r"\mathbb{E}\,\lVert R^\top H R\rVert_F^2,\ \mathbb{E}\,\mathrm{Tr}\,R^\top H R,\ "
        r"\lambda_i(\mathbb{E}_e G)\text{: as of } \mathrm{Tr} H,\ \lVert H\rVert_F,\ p",
        says="In random frames of every kind and shape a matrix has the trace and squared norm of theory, and so "
        "have random signs and random logit gradients.",
        domain={
            "case": OneOf(*CASES),
            "parameters": Between(16, 60),
            "dim": Between(1, 7),
            "alpha": Between(0.05, 20.0),
            "odds": Many(Between(0.1, 1.0), 3, 9),
            "sigma_c": Between(0.5, 3.0),
            "sigma_e": Between(0.5, 3.0),
        },
        simulate=any_frame,
        on_host="all of it but random logit gradients",
        replicate="one matrix in 12 frames, or one network, or one draw of logit gradients",
        examples=tuple(map(_example, CASES)),
        score="ratio",
        predict=one,
        margin=0.03,
        margin_reason="exact at every size; frames of few columns scatter by more than 1 % allows",
        rivals={
            "a share d/P of the squared norm": lambda p: 2 * p.dim / p.parameters,
            "gradients of the same length": lambda p: p.sigma_c**2 / p.sigma_e**2,
        },
        budget=4096,
        seconds=3.0,
        quantity="trace, norm or eigenvalue over theory",
    ),
)
