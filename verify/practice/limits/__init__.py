"""Stability limits of plain SGD from the curvature at the current parameters, at every batch size.

They describe small displacements, in evaluation mode, with single samples. They are not rates to train with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulate.eigenvalues import extremes
from simulate.modules.sample_directions import sample_directions
from simulate.operators import gauss_newton, hessian
from simulate.spectra import Estimate
from theory import learning_rates
from theory.batch_hessian import element_variance
from verify.practice.limits.batch_law import BatchEigenvalue, BatchLaw
from verify.practice.limits.rate_bracket import MeasuredBracket, measured_bracket
from verify.practice.loading import Problem
from verify.practice.measure.norms import frobenius

_DIRECTIONS, _HEAVY = 10, 20
"""Trial directions of the bracket: eigenvectors of G, and single samples with large eigenvalues."""

_OWN, _PROBES = 12, 8
"""Directions of single samples along which others are measured, and random vectors for a norm."""


@dataclass(frozen=True, kw_only=True)
class BatchRates:
    """Stability limits at one batch size.

    Attributes
    ----------
    batch_size
        B.
    lower, upper
        SGD is stable in the mean square below the first and not above the second.
    deciding
        Direction that gives the upper one: an eigenvector of the Gauss-Newton matrix, or that of a sample.
    batch
        Largest Gauss-Newton eigenvalue of random batches.
    sharpness
        2 over its mean, the rate below which full steps on one batch alone would be stable.
    theorem_4
        2 over the eigenvalue of Theorem 4, with its error from random probes.
    """

    batch_size: int
    lower: float
    upper: float
    deciding: str
    batch: BatchEigenvalue
    sharpness: Estimate
    theorem_4: Estimate


@dataclass(frozen=True, kw_only=True)
class Linearised:
    """Stability limits at every batch size.

    Attributes
    ----------
    bracket
        Statistics of the samples; gives the bracket at any other batch size too.
    hessian, hessian_bound
        Largest eigenvalue of the Hessian as Lanczos found it, and its residual: an eigenvalue lies within it.
    variance
        Mean over the samples of |G_i - G|_F^2, with its standard error.
    rates
        One for each batch size, ascending.
    products
        Number of products of the curvature with a vector, each over all samples.
    """

    bracket: MeasuredBracket
    hessian: float
    hessian_bound: float
    variance: Estimate
    rates: tuple[BatchRates, ...]
    products: float


def linearised(
    problem: Problem,
    sizes: Sequence[int],
    rng: np.random.Generator,
    *,
    directions: int = _DIRECTIONS,
    heavy: int = _HEAVY,
) -> Linearised:
    """Measure the stability limits of plain SGD in the linearised dynamics.

    Parameters
    ----------
    problem
        A loss that is a mean over samples and convex in the outputs, in evaluation mode.
    sizes
        Batch sizes, ascending, each from 1 to the number of samples.
    rng
        Source of random starts, probes and batches.
    directions, heavy
        Trial directions of the bracket.

    Raises
    ------
    ValueError
        If samples of a batch affect each other, or the loss has no curvature or is not convex in the outputs.
    """
    objective = problem.objective
    if not objective.separable:
        raise ValueError(
            f"curvature needs a loss that is a mean of losses of single samples, got another: {objective.coupling}"
        )

    matrix = gauss_newton(objective)
    # the lower end of the bracket needs a bound of lambda_1 itself, not of the distance to some eigenvalue
    top = extremes(matrix, rng, largest=min(directions, objective.dim), certified=True)
    sharpest = extremes(hessian(objective), rng, largest=1)
    samples = sample_directions(objective, top.vectors, rng, probes=_OWN, heavy=min(heavy, problem.samples))
    bracket, law = measured_bracket(top, samples, problem.unit), BatchLaw(samples.statistics, problem.unit)
    # |G_i|_F^2 is exact, |G|_F^2 is in part from probes; the divisor is N - 1
    whole = frobenius(matrix, top, rng, probes=_PROBES)
    factor = problem.samples / (problem.samples - 1)
    spread = problem.unit**2 * float(samples.grams.squares.mean()) - whole.value**2
    variance = Estimate(factor * max(spread, 0.0), factor * 2 * whole.value * whole.standard_error)
    return Linearised(
        bracket=bracket,
        hessian=float(sharpest.values[0]),
        hessian_bound=float(sharpest.bounds[0]),
        variance=variance,
        rates=tuple(_rates(size, law.at(size, rng), bracket, variance, objective.dim) for size in sizes),
        products=top.products + sharpest.products + _PROBES,
    )


def _rates(
    size: int, batch: BatchEigenvalue, bracket: MeasuredBracket, variance: Estimate, dim: int
) -> BatchRates:
    lower, upper = bracket.rates(size)
    theorem_4, other = (
        float(
            learning_rates.sgd_limit(
                bracket.largest,
                sigma=math.sqrt(element_variance(total / dim, dim=dim)),
                dim=dim,
                batch_size=size,
                dataset_size=bracket.samples,
            )
        )
        for total in (variance.value, variance.value + variance.standard_error)
    )
    return BatchRates(
        batch_size=size,
        lower=float(lower),
        upper=float(upper),
        deciding=bracket.deciding(size),
        batch=batch,
        sharpness=Estimate(2 / batch.mean.value, 2 * batch.mean.standard_error / batch.mean.value**2),
        theorem_4=Estimate(theorem_4, abs(other - theorem_4)),
    )
