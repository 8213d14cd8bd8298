"""Vysogorets, Dawid and Kempe (2024): what random frames leave of a fixed matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature
from theory.gauss_newton import projection
from verify.claims.vysogorets2024 import PAPER
from verify.model import KNOWN, OURS, AnyClaim, Claim, Experiment, Kind

__all__ = ["CLAIMS"]

Floats = NDArray[np.float64]

UNBIASED = "linear in what is averaged, hence unbiased; at most 1 % for random matrices"

# --- sparse frames see the axes ------------------------------------------------------------------------------


def _spectrum(point: Point) -> Floats:
    return np.repeat(point.eigenvalues, point.multiplicities)


def _trace(p: Point) -> float:
    return float(_spectrum(p).sum())


def _square(p: Point) -> float:
    return float(np.square(_spectrum(p)).sum())


def _size(p: Point) -> int:
    return sum(p.multiplicities)


def _root_excess(p: Point) -> float:
    return _trace(p) / math.sqrt(_square(p))


def _in_axes(point: Point) -> Floats:
    """The spectrum along the axes, or along the columns of a Hadamard matrix, where every axis sees the same."""
    from scipy.linalg import hadamard

    values = _spectrum(point)
    if point.aligned:
        return np.diag(values)
    places = np.arange(len(values))
    return (hadamard(len(values)) @ values / len(values))[places[:, None] ^ places]


def sparse_projections(block: Block, point: Point) -> Mapping[str, Any]:
    """Trace and squared norm of R'HR, means over sparse frames R; traces of two frames multiplied."""
    import torch

    matrix = torch.from_numpy(_in_axes(point)).to(block.device)

    rows, found, pairs = len(matrix), [], point.frames * (point.frames - 1)
    for rng in block.streams:
        frames = torch.stack(
            [curvature.sparse_frame(rng, rows, point.dim, device=block.device) for _ in range(point.frames)]
        )
        seen = frames.mT @ matrix @ frames
        traces = seen.diagonal(dim1=1, dim2=2).sum(1)
        product = (traces.sum().square() - traces.square().sum()) / pairs
        found.append((seen.square().sum((1, 2)).mean(), traces.mean(), product))
    names = ("squared_norm", "trace", "trace_product")
    return {n: torch.stack(column) for n, column in zip(names, zip(*found, strict=True), strict=True)}


SPARSE = Experiment(
    id="vysogorets2024/sparse-projections",
    replicate="three to 20 sparse frames around a fixed matrix",
    simulate=sparse_projections,
    points=(
        Point(
            eigenvalues=(1.3, 0.7, -0.4, -0.9),
            multiplicities=(15, 19, 13, 17),
            dim=23,
            aligned=True,
            frames=3,
        ),
        Point(eigenvalues=(1.7, 0.9, 1.1), multiplicities=(1, 1, 2), dim=3, aligned=True, frames=10),
        Point(eigenvalues=(1.7, 0.6, -0.8), multiplicities=(1, 2, 1), dim=2, aligned=False, frames=20),
    ),
    budget=8192,
    seconds=1.8,
)


def _squared_diagonal(p: Point) -> float:
    return _square(p) if p.aligned else _trace(p) ** 2 / _size(p)


def _haar_square(p: Point) -> float:
    moments = projection.haar_moments(_trace(p), _square(p), dim=p.dim, parameters=_size(p))
    return float(moments.squared_norm)


def _sparse(p: Point, squared_diagonal: float | None = None) -> projection.ProjectedMoments:
    diagonal = _squared_diagonal(p) if squared_diagonal is None else squared_diagonal
    return projection.sparse_moments(
        _trace(p), _square(p), squared_diagonal=diagonal, dim=p.dim, parameters=_size(p)
    )


SPARSE_CLAIM = Claim(
    id="vysogorets2024/sparse-frames-see-axes",
    entries=("A6",),
    source=f"ours, for the frame of section 2 of {PAPER}",
    passage=OURS,
    statement=r"\mathbb{E}\,\lVert R^\top H R\rVert_F^2 = d \Big[\frac{\kappa}{P} D + \frac{1 - \kappa}{P (P - 1)} "
    r"\big((\mathrm{Tr} H)^2 + 2 \lVert H\rVert_F^2 - 3 D\big)\Big] + \frac{d (d - 1)}{P^2} \lVert H\rVert_F^2,\quad "
    r"D = \sum_i H_{ii}^2,\ \kappa = \mathbb{E}\,\frac1n",
    says="Projected onto sparse random columns, a matrix has a mean squared norm that depends on its diagonal "
    "entries, not on its trace and norm alone.",
    experiment=SPARSE,
    score="squared_norm",
    predict=lambda p: _sparse(p).squared_norm,
    margin=0.03,
    margin_reason="3 %, the default of sizes: unbiased, but a frame scatters by a sixth to two thirds",
    rivals={
        "invariant under rotations": _haar_square,
        "orthonormal, no trace": lambda p: p.dim * (p.dim + 1) / _size(p) ** 2 * _square(p),
        "every axis the same": lambda p: _sparse(p, _trace(p) ** 2 / _size(p)).squared_norm,
    },
    quantity="squared norm of the projected matrix",
)

SPARSE_TRACE = Claim(
    id="vysogorets2024/sparse-trace",
    entries=("A6", "A7"),
    source=f"ours, for the frame of section 2 of {PAPER}",
    passage=OURS,
    statement=r"\mathbb{E}\,\mathrm{Tr}(R^\top H R) = \frac{d}{P}\,\mathrm{Tr} H \text{ for sparse columns too}",
    says="Sparse random columns keep on average the same share of a matrix's trace as random rotations do: projection "
    "dimension over number of parameters.",
    experiment=SPARSE,
    score="trace",
    predict=lambda p: _sparse(p).trace,
    margin=0.03,
    margin_reason="3 %, the default of sizes: unbiased, but the trace of few columns scatters by a third of itself",
    rivals={
        "P - 1 for P": lambda p: p.dim / (_size(p) - 1) * _trace(p),
        "all of it": _trace,
        "root of the share": lambda p: (p.dim / _size(p)) ** 0.5 * _trace(p),
    },
    quantity="trace of the projected matrix",
)

SPARSE_EXCESS = Claim(
    id="vysogorets2024/sparse-dimension-law",
    entries=("A6", "A7"),
    source=f"ours, for the frame of section 2 of {PAPER}",
    passage=OURS,
    statement=r"r_d^2 = \frac{(\mathbb{E}\,\mathrm{Tr} R^\top H R)^2}{\mathbb{E}\,\lVert R^\top H R\rVert_F^2} "
    r"\text{ in sparse frames depends on } D = \textstyle\sum_i H_{ii}^2 \text{ too}",
    says="In sparse projections, the squared mean trace over the mean squared norm depends on the diagonal entries of "
    "the matrix, besides its excess.",
    experiment=SPARSE,
    kind=Kind.RATIO,
    score=("trace_product", "squared_norm"),
    predict=lambda p: float(_sparse(p).excess) ** 2,
    margin=0.05,
    margin_reason="traces of independent frames: no bias; 5 % of the square are 2.5 % of the excess",
    rivals={
        "invariant under rotations": lambda p: _seen_squared(p),
        "independent of d": lambda p: _root_excess(p) ** 2,
        "orthonormal, no trace": lambda p: p.dim / (p.dim + 1) * _root_excess(p) ** 2,
    },
    quantity="squared excess of the projected matrix",
)

# --- orthonormal frames around fixed spectra -----------------------------------------------------------------


def haar_projections(block: Block, point: Point) -> Mapping[str, Any]:
    """Trace and squared norm of R'HR for a fixed H, means over orthonormal frames; traces of two frames multiplied."""
    import torch

    values = torch.from_numpy(_spectrum(point)).to(block.device)
    frames = ensembles.haar_frames(block, len(values), point.dim, count=point.frames)
    seen = frames.mT @ (values[:, None] * frames)
    trace, square = seen.diagonal(dim1=2, dim2=3).sum(2), seen.square().sum((2, 3))
    return {
        "trace": trace.mean(1),
        "squared_norm": square.mean(1),
        "trace_product": (trace[:, ::2] * trace[:, 1::2]).mean(1),
        "squared_trace": trace.square().mean(1),
    }


HAAR = Experiment(
    id="vysogorets2024/haar-projections",
    replicate="four or 288 orthonormal frames around a fixed matrix",
    simulate=haar_projections,
    points=(
        Point(eigenvalues=(3.1, 1.3, -0.7, 0.2), multiplicities=(5, 14, 23, 71), dim=37, frames=4),
        Point(eigenvalues=(2.3, 1.1, -0.7), multiplicities=(1, 2, 2), dim=2, frames=288),
    ),
    budget=8192,
    seconds=0.35,
)

ZERO_TRACE = Experiment(
    id="vysogorets2024/zero-trace-projections",
    replicate="64 orthonormal frames around a fixed matrix of zero trace",
    simulate=haar_projections,
    points=(
        Point(eigenvalues=(2.7, -0.9), multiplicities=(9, 27), dim=5, frames=64),
        Point(eigenvalues=(1.2, -0.6), multiplicities=(1, 2), dim=2, frames=64),
    ),
    budget=4096,
    seconds=0.19,
)


def _seen_squared(p: Point, *, ambient: float | None = None) -> float:
    size = _size(p) if ambient is None else ambient
    return float(projection.projected_excess(_root_excess(p), dim=p.dim, parameters=size)) ** 2


HAAR_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/projected-trace",
        entries=("A7",),
        source=f"ours, beside section 4 of {PAPER}",
        passage=OURS,
        statement=r"\mathbb{E}\,\mathrm{Tr}(R^\top H R) = \frac{d}{P}\,\mathrm{Tr} H",
        says="A random orthonormal projection keeps on average the share of a matrix's trace that is its dimension "
        "over the number of parameters.",
        experiment=HAAR,
        score="trace",
        predict=lambda p: (
            projection.haar_moments(_trace(p), _square(p), dim=p.dim, parameters=_size(p)).trace
        ),
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={
            "all of it": _trace,
            "root of the share": lambda p: (p.dim / _size(p)) ** 0.5 * _trace(p),
        },
        quantity="trace of the projected matrix",
    ),
    Claim(
        id="vysogorets2024/projected-norm",
        entries=("A7",),
        source=f"Collins and Sniady (2006), arXiv math-ph/0402073, beside section 4 of {PAPER}",
        passage=KNOWN,
        statement=r"\mathbb{E}\,\lVert R^\top H R\rVert_F^2 = (a + b) \lVert H\rVert_F^2 + b\,(\mathrm{Tr} H)^2,\quad "
        r"a = \frac{d\,[d (P + 1) - 2]}{P (P - 1) (P + 2)},\ b = \frac{d (P - d)}{P (P - 1) (P + 2)}",
        says="The mean squared norm of a randomly projected matrix combines the full matrix's squared norm and "
        "squared trace with weights set by the two dimensions.",
        experiment=HAAR,
        score="squared_norm",
        predict=_haar_square,
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={
            "square of the share": lambda p: (p.dim / _size(p)) ** 2 * _square(p),
            "no trace": lambda p: p.dim * (p.dim + 1) / _size(p) ** 2 * _square(p),
            "P without bound": lambda p: p.dim * ((p.dim + 1) * _square(p) + _trace(p) ** 2) / _size(p) ** 2,
        },
        quantity="squared norm of the projected matrix",
    ),
    Claim(
        id="vysogorets2024/dimension-law",
        entries=("A7",),
        source=f"ours, beside section 4 of {PAPER}",
        passage=OURS,
        statement=r"r_d^2 = \frac{(\mathbb{E}\,\mathrm{Tr} H_d)^2}{\mathbb{E}\,\lVert H_d\rVert_F^2} \to "
        r"\frac{r^2 d}{d + 1 + r^2}\ (P \gg d),\quad r = \mathrm{exc}(H)",
        says="In random orthonormal projections, squared mean trace over mean squared norm follows from the excess of "
        "the full matrix and the two dimensions alone.",
        experiment=HAAR,
        kind=Kind.RATIO,
        score=("trace_product", "squared_norm"),
        predict=_seen_squared,
        margin=0.01,
        margin_reason="traces of independent frames: no bias, at any size; at most 1 % for random matrices",
        rivals={
            "independent of d": lambda p: _root_excess(p) ** 2,
            "root of d/P": lambda p: _root_excess(p) ** 2 * p.dim / _size(p),
            "root of d": lambda p: float(p.dim),
            "P without bound": lambda p: _seen_squared(p, ambient=math.inf),
            "d for d + 1": lambda p: _root_excess(p) ** 2 * p.dim / (p.dim + _root_excess(p) ** 2),
        },
        quantity="squared excess of the projected matrix",
    ),
    Claim(
        id="vysogorets2024/noise-floor",
        entries=("A8",),
        source=f"ours, beside figures 1 to 3 of {PAPER}",
        passage=OURS,
        statement=r"\mathrm{Tr} H = 0:\quad \mathbb{E}\,(\mathrm{Tr} H_d)^2 / \mathbb{E}\,\lVert H_d\rVert_F^2 = "
        r"\frac{2 (P - d)}{d P + P - 2} \to \frac{2}{d + 1}",
        says="For a matrix of zero trace, projected at random, mean squared trace over mean squared norm is not zero "
        "but falls with the projection dimension by an exact law.",
        experiment=ZERO_TRACE,
        kind=Kind.RATIO,
        score=("squared_trace", "squared_norm"),
        predict=lambda p: float(projection.excess_noise_floor(p.dim, parameters=_size(p))) ** 2,
        margin=0.03,
        margin_reason="3 %, the default of sizes: unbiased at every P, but a squared trace scatters by 1.4 of itself",
        rivals={
            "d for d + 1": lambda p: 2 / p.dim,
            "one for two": lambda p: 1 / (p.dim + 1),
            "no noise": lambda _: 0.0,
            "P without bound": lambda p: 2 / (p.dim + 1),
        },
        quantity="squared standard deviation of the excess",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (SPARSE_CLAIM, SPARSE_TRACE, SPARSE_EXCESS, *HAAR_CLAIMS)
