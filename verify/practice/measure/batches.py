"""Largest eigenvalues of the loss on random mini-batches, measured and by the own-direction law.

The law is of the Gauss-Newton matrix, so that matrix is measured on the same batches too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from simulate._checks import natural
from simulate.eigenvalues import extremes
from simulate.lanczos import Operator
from simulate.modules.sample_directions import sample_directions
from simulate.objectives.ranks import LostProcessError
from simulate.operators import gauss_newton, hessian
from verify.practice.limits.batch_law import BatchEigenvalue, BatchLaw, summarised
from verify.practice.loading import Problem
from verify.practice.measure.budget import FIRST, GAUSS_NEWTON, HESSIAN, Budget

_LEAST, _MOST, _LAW = 16, 64, 200.0
"""Mini-batches for which passes are laid aside as if each took the most, most of them, and passes for the law."""

_STEPS, _TOLERANCE = 40, 0.01
"""Most products for an eigenvalue of a batch, and the relative residual to stop at."""

_DIRECTIONS, _PROBES = 10, 12
"""Eigenvectors of G and directions of single samples on which the law rests."""


@dataclass(frozen=True, kw_only=True)
class MiniBatches:
    """Largest eigenvalues of the loss on random mini-batches of one size.

    Attributes
    ----------
    size
        B; batches are drawn without replacement, each by itself.
    pairs
        λ₁(H_B) and λ₁(G_B) of each batch, of the Hessian and its Gauss-Newton part; each within 1 % of an eigenvalue.
    hessian, gauss_newton
        Mean of either with its standard error over the batches, and the ends between which eight of ten lie.
    law
        λ₁(G_B) by the own-direction law (docs/claims/beyond.md, D1); None if it is missing.
    not_predicted
        Why it is missing.
    """

    size: int
    pairs: tuple[tuple[float, float], ...] = field(repr=False)
    hessian: BatchEigenvalue
    gauss_newton: BatchEigenvalue
    law: BatchEigenvalue | None
    not_predicted: str


def batch_passes(problem: Problem, size: int | None) -> float:
    """Return the passes to lay aside for mini-batches and their law.

    Raises
    ------
    ValueError
        If the size is not below the number of samples, or the loss is not a mean over them.
    """
    if size is None:
        return 0.0
    if natural("batches", size) >= problem.samples or problem.objective.reduction != "mean":
        raise ValueError(f"batches must be below {problem.samples} samples of a mean loss, got {size}")
    return _LAW + _LEAST * _passes(problem, size)


def _passes(problem: Problem, size: int, first: int = _STEPS, second: int = _STEPS) -> float:
    """Return the passes of a batch: two for the loss, then products with the Hessian and the Gauss-Newton matrix."""
    return size / problem.samples * (2 + 2 * FIRST + first * HESSIAN + second * GAUSS_NEWTON)


def mini_batches(
    problem: Problem, size: int, matrix: Operator, rng: np.random.Generator, spent: Budget
) -> MiniBatches | None:
    """Measure mini-batches as long as the budget lasts; None if it does not suffice for two.

    Parameters
    ----------
    matrix
        The Gauss-Newton matrix of all samples, counted by `spent`.
    """
    law, missing, pairs = None, "the budget", list[tuple[float, float]]()
    # the Jacobian of each sample, and directions through it
    passes = 2.0 * (math.prod(problem.outputs) + _DIRECTIONS + _PROBES)
    if spent.free >= passes + _STEPS * GAUSS_NEWTON:
        try:
            top = extremes(
                matrix, rng, largest=min(_DIRECTIONS, matrix.dim), tolerance=_TOLERANCE, steps=_STEPS
            )
            spent.spend(passes)
            found = sample_directions(problem.objective, top.vectors, rng, probes=_PROBES, heavy=0)
            law, missing = BatchLaw(found.statistics, problem.unit).at(size, rng), ""
        except LostProcessError:
            raise
        except ValueError as error:
            missing = str(error)
    while len(pairs) < _MOST and spent.free >= _passes(problem, size):
        part = problem.batch_objective(rng.choice(problem.samples, size, replace=False))
        one, other = (
            extremes(make(part), rng, tolerance=_TOLERANCE, steps=_STEPS) for make in (hessian, gauss_newton)
        )
        spent.spend(_passes(problem, size, one.products, other.products))
        pairs.append((float(one.values[0]), float(other.values[0])))
    if len(pairs) < 2:
        return None
    first, second = map(summarised, np.array(pairs).T)
    return MiniBatches(
        size=size, pairs=tuple(pairs), hessian=first, gauss_newton=second, law=law, not_predicted=missing
    )
