"""Vysogorets, Dawid and Kempe (2024): what random frames leave of a matrix, of any size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate import networks, spectra
from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature, full_space
from theory import gauss_newton
from theory.gauss_newton import projection
from verify.claims import Floats
from verify.claims.vysogorets2024 import PAPER, logit_model
from verify.judging.families import by_name, one, ratio
from verify.model import KNOWN, OURS, Arrays, Claim, Experiment, Kind, StatisticalProperty
from verify.model.domains import Between, Many, OneOf


def _spectrum(point: Point) -> Floats:
    return np.repeat(point.eigenvalues, point.multiplicities)


def _trace(p: Point) -> float:
    return float(_spectrum(p).sum())


def _square(p: Point) -> float:
    return float(np.square(_spectrum(p)).sum())


def _size(p: Point) -> int:
    return sum(p.multiplicities)


def _squared_excess(p: Point) -> float:
    return (_trace(p) / math.sqrt(_square(p))) ** 2


# --- orthonormal frames around fixed spectra -----------------------------------------------------------------


def haar_projections(block: Block, point: Point) -> Arrays:
    """Squared norm and squared trace of R'HR, means over orthonormal frames; traces of two frames multiplied."""
    import torch

    values = torch.from_numpy(_spectrum(point)).to(block.device)
    frames = ensembles.haar_frames(block, len(values), point.dim, count=point.frames)
    projected = frames.mT @ (values[:, None] * frames)
    trace, square = projected.diagonal(dim1=2, dim2=3).sum(2), projected.square().sum((2, 3))
    return {
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
    seconds=0.19,
)


def _seen_squared(p: Point, size: float = 0) -> float:
    """Squared excess after a projection, of a matrix with `size` dimensions or with its own."""
    root = _trace(p) / math.sqrt(_square(p))
    return float(projection.projected_excess(root, dim=p.dim, parameters=size or _size(p))) ** 2


def _projected_square(p: Point) -> float:
    moments = projection.haar_moments(_trace(p), _square(p), dim=p.dim, parameters=_size(p))
    return float(moments.squared_norm)


HAAR_CLAIMS = (
    Claim(
        id="vysogorets2024/projected-norm",
        entries=("A7",),
        source=f"Collins and Sniady (2006), arXiv math-ph/0402073, beside section 4 of {PAPER}",
        passage=KNOWN,
        statement=r"\mathbb{E}\,\|R^\top H R\|_F^2 = (a + b) \|H\|_F^2 + b\,(\mathrm{Tr} H)^2,\quad "
        r"a = \frac{d\,[d (P + 1) - 2]}{P (P - 1) (P + 2)},\ b = \frac{d (P - d)}{P (P - 1) (P + 2)}",
        says="The mean squared norm of a randomly projected matrix mixes the full one's squared norm and squared "
        "trace with weights set by the two dimensions.",
        experiment=HAAR,
        score="squared_norm",
        predict=_projected_square,
        margin=0.01,
        margin_reason="orthonormal frames: no bias, at any size; at most 1 % for random matrices",
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
        statement=r"r_d^2 = \frac{(\mathbb{E}\,\mathrm{Tr} H_d)^2}{\mathbb{E}\,\|H_d\|_F^2} \to "
        r"\frac{r^2 d}{d + 1 + r^2}\ (P \gg d),\quad r = \mathrm{exc}(H)",
        says="In orthonormal projections, squared mean trace over mean squared norm follows from the excess of the"
        " full matrix and the two dimensions.",
        experiment=HAAR,
        kind=Kind.RATIO,
        score=("trace_product", "squared_norm"),
        predict=_seen_squared,
        margin=0.01,
        margin_reason="traces of independent frames: no bias, at any size; at most 1 % for random matrices",
        rivals={
            "independent of d": _squared_excess,
            "root of d/P": lambda p: _squared_excess(p) * p.dim / _size(p),
            "root of d": lambda p: float(p.dim),
            "P without bound": lambda p: _seen_squared(p, math.inf),
            "d for d + 1": lambda p: _squared_excess(p) * p.dim / (p.dim + _squared_excess(p)),
        },
        quantity="squared excess of the projected matrix",
    ),
    Claim(
        id="vysogorets2024/noise-floor",
        entries=("A8",),
        source=f"ours, beside figures 1 to 3 of {PAPER}",
        passage=OURS,
        statement=r"\mathrm{Tr} H = 0:\quad \mathbb{E}\,(\mathrm{Tr} H_d)^2 / \mathbb{E}\,\|H_d\|_F^2 = "
        r"\frac{2 (P - d)}{d P + P - 2} \to \frac{2}{d + 1}",
        says="Of a projected matrix of zero trace, mean squared trace over mean squared norm falls with the "
        "projection dimension by an exact law.",
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


# --- of any shape, and random logit gradients --------------------------------------------------------------------

EACH = 12
"""Of each replicate."""


def _squares(matrix: Any, frames: Any, p: Point) -> float:
    """Mean squared norm of a matrix in some frames, over that of theory, with that of the trace."""
    projected, size = frames.mT @ matrix @ frames, {"dim": p.dim, "parameters": len(matrix)}
    trace, square = float(matrix.trace()), float(matrix.square().sum())
    if p.case == "sparse":
        own = float(matrix.diagonal().square().sum())
        known = gauss_newton.sparse_moments(trace, square, squared_diagonal=own, **size)
    else:
        known = gauss_newton.haar_moments(trace, square, **size)
    traces = projected.diagonal(dim1=1, dim2=2).sum(1)
    both = projected.square().sum((1, 2)) / float(known.squared_norm) + traces / float(known.trace)
    return float(both.mean() / 2)


def _matrix(rng: Generator, size: int) -> Any:
    """Symmetric, with a trace as large as its norm."""
    import torch

    drawn = torch.from_numpy(rng.standard_normal((size, size)))
    return (drawn + drawn.T) / size**0.5 + 2 * torch.eye(size, dtype=drawn.dtype)


def _framed(draw: Callable[[Generator, int, int], Any], rng: Generator, p: Point) -> float:
    import torch

    matrix = _matrix(rng, p.parameters)
    return _squares(matrix, torch.stack([draw(rng, p.parameters, p.dim) for _ in range(EACH)]), p)


def _first_rows(rng: Generator, rows: int, columns: int) -> Any:
    """A frame whose last rows are made from what the first ones, drawn without them, leave of unit columns."""
    import torch

    frame = curvature.haar(rng, rows - columns, columns, total=rows)
    rest = torch.eye(columns, dtype=frame.dtype) - frame.T @ frame
    return torch.cat([frame, torch.linalg.cholesky(rest).T])


def _together(block: Block, p: Point) -> Any:
    frames = ensembles.haar_frames(block, p.parameters, p.dim, count=EACH).cpu()
    pairs = zip(block.streams, frames, strict=True)
    return np.array([_squares(_matrix(rng, p.parameters), each, p) for rng, each in pairs])


def _network(rng: Generator, p: Point) -> float:
    """The Hessian of a perceptron seen through a frame, over its exact norm in full space as theory projects it."""
    widths, dim = (4, 5, 3), p.dim + 27
    weights, size = networks.mlp_weights(rng, widths), networks.weight_count(widths)
    data = weights, rng.standard_normal((6, 4)), rng.integers(0, 3, 6)
    whole = full_space.norms(*data, p.alpha, p.alpha**2)
    framed = curvature.ProjectedMlp(*data, curvature.haar(rng, size, dim))
    projected = framed.terms(p.alpha, p.alpha**2).hessian
    known = gauss_newton.haar_moments(whole.trace_hessian, whole.norm_hessian**2, dim=dim, parameters=size)
    return float(projected.square().sum()) / float(known.squared_norm)


def _probes(rng: Generator, p: Point) -> float:
    """Traces by random signs, and the variance of one over that of theory."""
    matrix = _matrix(rng, p.parameters)
    estimate = spectra.trace(matrix, rng, probes=400)
    square, own = float(matrix.square().sum()), float(matrix.diagonal().square().sum())
    variance = float(gauss_newton.sign_probe_variance(square, squared_diagonal=own))
    parts = estimate.value / float(matrix.trace()), 400 * estimate.standard_error**2 / variance
    return sum(parts) / 2


OF_LOGITS = by_name(logit_model.CLAIMS, "outlier", "bulk")


def _logits(block: Block, p: Point) -> Any:
    weights = np.sort(p.odds)[::-1] * 1.5 ** -np.arange(len(p.odds))
    known = {"p": tuple(weights / weights.sum()), "dim": p.parameters, "samples": 24}
    return ratio(OF_LOGITS[p.case], block, p | known)


ALONE: dict[str, Callable[[Generator, Point], float]] = {
    "whole": lambda rng, p: _framed(curvature.haar, rng, p),
    "first rows": lambda rng, p: _framed(_first_rows, rng, p),
    "sparse": lambda rng, p: _framed(curvature.sparse_frame, rng, p),
    "network": _network,
    "probes": _probes,
}
AT_ONCE: dict[str, Callable[[Block, Point], Any]] = {
    "together": _together,
    "outlier": _logits,
    "bulk": _logits,
}
CASES = ("whole", "first rows", "sparse", "together", "network", "probes", "outlier", "bulk")


def any_frame(block: Block, point: Point) -> Arrays:
    """Return what is measured through a frame over its prediction, in one of the cases."""
    if point.case in AT_ONCE:
        return {"ratio": AT_ONCE[point.case](block, point)}
    return {"ratio": np.array([ALONE[point.case](rng, point) for rng in block.streams])}


CLAIMS = (
    *HAAR_CLAIMS,
    StatisticalProperty(
        id="vysogorets2024/any-frame",
        entries=("A6", "A7", "A27", "A41"),
        source=f"ours, beside sections 2 and 4 and eq. (7) of {PAPER}",
        passage=OURS,
        statement=r"\mathbb{E}\,\|R^\top H R\|_F^2,\ \mathbb{E}\,\mathrm{Tr}\,R^\top H R,\ "
        r"\lambda_i(\mathbb{E}_e G)\text{: as of } \mathrm{Tr} H,\ \|H\|_F,\ p",
        says="In random frames of every kind and shape a matrix has the trace and squared norm that theory "
        "predicts, as do random signs and random logit gradients.",
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
        examples=tuple(
            Point(
                case=case,
                parameters=23,
                dim=3,
                alpha=1.7,
                odds=(0.41, 0.32, 0.23, 0.14),
                sigma_c=1.1,
                sigma_e=1.9,
            )
            for case in CASES
        ),
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
