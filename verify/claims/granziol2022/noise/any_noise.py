"""Moments of every kind of noise matrix, and of means over batches, at any size and shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulate.matrices import ensembles, noise, populations
from simulate.monte_carlo import Block, Point
from theory import rmt
from theory.batch_hessian import element_fluctuation
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.noise import ensembles as moments
from verify.judging.families import one
from verify.model import OURS, AnyClaim, StatisticalProperty
from verify.model.domains import Between, OneOf

__all__ = ["CLAIMS"]

ENTRIES = 4096
"""Of all matrices of a replicate together: small ones scatter the most and cost the least."""

COUNTS = {"batches": 48, "without the matrix": 64}
"""Of those that are small whatever their size."""


def _second(block: Block, matrices: Any, **known: float) -> Any:
    """Mean square of the eigenvalues with a spike added, over that of theory."""
    dim, spike = matrices.shape[1], 1.7
    directions = ensembles.unit_vectors(block, dim)
    found = ensembles.spiked(matrices, directions, spike).square().sum((1, 2)) / dim
    return found / float(rmt.wigner_second_moment(sigma=1.0, dim=dim, spike=spike, **known))


def _fourth(claim: Any, block: Block, p: Point) -> Any:
    return claim.experiment.simulate(block, p)["fourth"] / claim.predict(p)


def _drawn_without_the_matrix(block: Block, p: Point) -> Any:
    trace, square = ensembles.goe_moments(block, p.dim, spike=p.spike, rank=p.rank)
    known = rmt.wigner_second_moment(sigma=1.0, dim=p.dim, diagonal=2.0, spike=p.spike * p.rank**0.5)
    return (square / p.dim / float(known) + trace / (p.spike * p.rank)) / 2


def _batches(block: Block, p: Point) -> Any:
    """Squared distance of the means of all batches from that of the population, over the variance of the elements."""
    size, dim = p.samples + 1, p.rank + 1
    drawn = [populations.symmetric_matrices(rng, size, dim) for rng in block.streams]
    means = np.stack([populations.batch_sums(each, p.batch) / p.batch for each in drawn])
    apart = means - np.stack([each.mean(0) for each in drawn])[:, None]
    known = element_fluctuation(variance=dim * (dim + 1) / 2, batch_size=p.batch, dataset_size=size)
    return np.square(apart).sum((2, 3)).mean(1) / float(known)


def _nested(block: Block, p: Point) -> Any:
    """The same of nested means, whose sizes have no bound."""
    sizes = (p.batch, p.batch + p.samples)
    few, all_of_them = populations.nested_means(block, p.dim, sizes).unbind(1)
    known = element_fluctuation(variance=p.dim * (p.dim + 1), batch_size=sizes[0], dataset_size=sizes[1])
    return (few - all_of_them).square().sum((1, 2)) / float(known)


UNEVEN_ROWS, FEW_ENTRIES, LOW_RANK = moments.MOMENT_CLAIMS

CASES: dict[str, Callable[[Block, Point], Any]] = {
    "gaussian": lambda b, p: _second(b, ensembles.wigner(b, p.dim), diagonal=2.0),
    "signs": lambda b, p: _second(b, ensembles.wigner(b, p.dim, law="rademacher")),
    "student": lambda b, p: _second(b, noise.student(b, p.dim, degrees=8 + p.samples)),
    "bands": lambda b, p: _second(b, noise.profiled(b, noise.banded_profile(p.dim, contrast=p.contrast))),
    "blocks": lambda b, p: _fourth(UNEVEN_ROWS, b, p),
    "sparse": lambda b, p: _fourth(FEW_ENTRIES, b, p | {"per_row": 1 + p.contrast * (p.dim - 1)}),
    "projections": lambda b, p: _fourth(LOW_RANK, b, p),
    "without the matrix": _drawn_without_the_matrix,
    "batches": _batches,
    "nested": _nested,
}


def any_moment(block: Block, point: Point) -> Mapping[str, Any]:
    """A moment over what theory says of it, averaged over as many matrices as make it scatter little."""
    count = COUNTS.get(point.case) or max(1, ENTRIES // point.dim**2)
    p = point | {"dim": 2 * (point.dim // 2), "batch": min(point.batch_size, point.samples)}
    found = CASES[point.case](block.repeated(count), p)
    return {"ratio": found.reshape(len(block), count).mean(1)}


def _example(case: str) -> Point:
    sizes = {"dim": 12 if case == "batches" else 13, "samples": 5, "batch_size": 3, "rank": 4}
    return Point(case=case, sigma=1.3, variance=0.7, contrast=0.63, spike=2.3, **sizes)


CLAIMS: tuple[AnyClaim, ...] = (
    StatisticalProperty(
        id="granziol2022/any-noise",
        entries=("B6", "B13"),
        source=f"ours, beside eqs. (4), (5) and theorem 3 of {PAPER}",
        passage=OURS,
        statement=r"\frac1P \mathbb{E}\,\mathrm{tr}\,\varepsilon^k,\ k = 2, 4,\quad "
        r"\mathbb{E}\,\lVert H_B - H\rVert_F^2 \propto \tfrac1B - \tfrac1N",
        says="At any size and shape, noise of every kind has the second or fourth moment of theory, and means over "
        "batches have the spread of the effective batch size.",
        domain={
            "case": OneOf(*CASES),
            "dim": Between(4, 40),
            "samples": Between(2, 6),
            "batch_size": Between(1, 5),
            "rank": Between(1, 4),
            "sigma": Between(0.03, 30.0),
            "variance": Between(0.03, 30.0),
            "contrast": Between(0.05, 0.95),
            "spike": Between(1.5, 9.0),
        },
        simulate=any_moment,
        on_host="populations of matrices, in numpy",
        replicate="some noise matrices, or populations with all of their batches",
        examples=tuple(map(_example, CASES)),
        score="ratio",
        predict=one,
        margin=0.02,
        margin_reason="exact at every size; the fourth moments of few rows scatter by more than 1 % allows",
        rivals={
            "limit of size": lambda p: 1 - 1 / p.dim,
            "no diagonal": lambda p: 1 + 1 / p.dim,
            "B for b": lambda p: 1 + p.batch_size / p.samples,
        },
        budget=4096,
        seconds=2.0,
        quantity="moment over theory",
    ),
)
