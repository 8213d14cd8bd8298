"""Largest eigenvalues of the loss on random mini-batches, measured and by the own-direction law.

The law is of the Gauss-Newton matrix, so that matrix is measured on the same batches too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from simulate.eigenvalues import extremes
from simulate.lanczos import Operator
from simulate.modules.sample_directions import sample_directions
from simulate.objectives.ranks import LostProcessError
from simulate.operators import gauss_newton, hessian
from verify.practice.limits.batch_law import BatchEigenvalue, BatchLaw, summarised
from verify.practice.loading import Problem
from verify.practice.measure.budget import FIRST, GAUSS_NEWTON, HESSIAN, Budget

LEAST, MOST = 16, 64
"""Mini-batches for which passes are laid aside if each takes as long as it may, and most of them."""

_STEPS, _TOLERANCE = 40, 0.01
"""Most products for an eigenvalue of a batch, and the relative residual to stop at."""

_DIRECTIONS, _PROBES = 10, 12
"""Eigenvectors of G and directions of single samples on which the law rests."""

_LAW_PASSES = 200.0
"""Most passes that are laid aside for the law."""


@dataclass(frozen=True, kw_only=True)
class MiniBatches:
    """Largest eigenvalues of the loss on random mini-batches of one size.

    Attributes
    ----------
    size
        B; batches are drawn without replacement, each by itself.
    hessian, gauss_newton
        Mean with its standard error over the batches, and the ends between which eight of ten lie: of λ₁(H_B), and of
        λ₁(G_B) of the Gauss-Newton matrix.
    hessians, gauss_newtons
        Both of each batch.
    bound
        An eigenvalue of the batch lies within it of each measured value.
    law
        λ₁(G_B) by the own-direction law (docs/claims/beyond.md, D1); None if it is missing.
    not_predicted
        Why it is missing.
    """

    size: int
    hessian: BatchEigenvalue
    gauss_newton: BatchEigenvalue
    hessians: tuple[float, ...] = field(repr=False)
    gauss_newtons: tuple[float, ...] = field(repr=False)
    bound: float
    law: BatchEigenvalue | None
    not_predicted: str


def require_batches(problem: Problem, size: int | None) -> None:
    """Raise unless mini-batches of this size can be drawn and their mean loss is that of all samples."""
    if size is None:
        return
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size < problem.samples:
        raise ValueError(f"batches must be a size from 1 to {problem.samples - 1}, got {size!r}")
    if problem.objective.reduction != "mean":
        raise ValueError("batches needs a loss that is a mean over the samples, got a sum")


def batch_passes(problem: Problem, size: int | None) -> float:
    """Return the passes to lay aside for the law and for some mini-batches."""
    return min(_law_passes(problem), _LAW_PASSES) + LEAST * _batch_passes(problem, size) if size else 0.0


def _law_passes(problem: Problem) -> float:
    # the Jacobian of each sample, and directions through it
    return _STEPS * GAUSS_NEWTON + 2.0 * (math.prod(problem.outputs) + _DIRECTIONS + _PROBES)


def _batch_passes(problem: Problem, size: int, first: int = _STEPS, second: int = _STEPS) -> float:
    """Return the passes of a batch: two for the loss, then products with the Hessian and the Gauss-Newton matrix."""
    return size / problem.samples * (2 + 2 * FIRST + first * HESSIAN + second * GAUSS_NEWTON)


def mini_batches(
    problem: Problem, size: int, matrix: Operator, rng: np.random.Generator, spent: Budget
) -> MiniBatches | None:
    """Measure mini-batches as long as the budget lasts; None if it does not suffice for two.

    Parameters
    ----------
    size
        From `require_batches`.
    matrix
        The Gauss-Newton matrix of all samples, counted by `spent`.
    """
    law, missing = None, "the budget"
    if spent.free >= _law_passes(problem):
        try:
            law, missing = _law(problem, matrix, rng, spent).at(size, rng), ""
        except LostProcessError:
            raise
        except ValueError as error:
            missing = str(error)
    found = list[tuple[float, ...]]()
    while len(found) < MOST and spent.free >= _batch_passes(problem, size):
        part = problem.batch_objective(rng.choice(problem.samples, size, replace=False))
        one, other = (
            extremes(make(part), rng, tolerance=_TOLERANCE, steps=_STEPS) for make in (hessian, gauss_newton)
        )
        spent.spend(_batch_passes(problem, size, one.products, other.products))
        found.append(
            (float(one.values[0]), float(other.values[0]), float(max(one.bounds[0], other.bounds[0])))
        )
    if len(found) < 2:
        return None
    values, others, bounds = np.array(found).T
    return MiniBatches(
        size=size,
        hessian=summarised(values),
        gauss_newton=summarised(others),
        hessians=tuple(values.tolist()),
        gauss_newtons=tuple(others.tolist()),
        bound=float(bounds.max()),
        law=law,
        not_predicted=missing,
    )


def _law(problem: Problem, matrix: Operator, rng: np.random.Generator, spent: Budget) -> BatchLaw:
    largest = min(_DIRECTIONS, matrix.dim)
    top = extremes(matrix, rng, largest=largest, tolerance=_TOLERANCE, steps=_STEPS)
    spent.spend(_law_passes(problem) - _STEPS * GAUSS_NEWTON)
    samples = sample_directions(problem.objective, top.vectors, rng, probes=_PROBES, heavy=0)
    return BatchLaw(samples.statistics, problem.unit)
