"""Curvature of drawn batches in the mode in which a network trains, where batch statistics leave no single samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulate.eigenvalues import extremes
from simulate.objectives import Objective
from simulate.objectives.batches import window
from simulate.objectives.restoring import preserve_state, seed_generators
from simulate.operators import hessian
from simulate.spectra import Estimate
from verify.practice.loading import Problem
from verify.practice.loading.foreign import calling
from verify.practice.plan.linearised import drawn_batches

Integers = NDArray[np.int64]

_RITZ = 1e-2
"""Relative error that Lanczos may leave: batches scatter by more than that."""


@dataclass(frozen=True, kw_only=True)
class BatchCurvature:
    """Curvature of the loss of a batch, with the statistics of that batch.

    Attributes
    ----------
    batch_size
        B.
    eigenvalue
        Mean of the largest eigenvalue of the Hessian over random batches, with its standard error.
    """

    batch_size: int
    eigenvalue: Estimate

    @property
    def rate(self) -> float:
        """2 over that: full steps on one batch alone are stable below. Infinite without positive curvature."""
        return 2 / self.eigenvalue.value if self.eigenvalue.value > 0 else math.inf


def batch_curvature(
    problem: Problem,
    sizes: Sequence[int],
    batches: int,
    rng: np.random.Generator,
    watch: Callable[[float], None] = lambda _: None,
) -> tuple[BatchCurvature, ...]:
    """Mean of the largest Hessian eigenvalue of batches, in training mode; one batch where it is all samples.

    Parameters
    ----------
    problem
        Of any mode; the model is left as found.
    sizes
        Batch sizes, each from 1 to the number of samples.
    batches
        Of each size, at least 2.
    rng
        Source of batches and starts.
    watch
        Called with the share that is done.

    Raises
    ------
    ValueError
        If the loss of a batch has no second derivatives, or cannot be had for so few samples.
    """
    found, total, done = list[BatchCurvature](), sum(sizes), 0
    for size in sizes:
        count = batches if size < problem.samples else 1
        values = _values(problem, list(drawn_batches(rng, problem.samples, size, count)), rng.spawn(count))
        found.append(BatchCurvature(batch_size=size, eigenvalue=_mean(values)))
        done += size
        watch(done / total)
    return tuple(found)


def _values(
    problem: Problem, batches: Sequence[Integers], generators: Sequence[np.random.Generator]
) -> list[float]:
    """One after the other, or dealt out to the processes of a group."""
    ranks = problem.objective.ranks
    with ranks.together("batches"):
        own = [
            _largest(problem, batch, rng)
            for place, (batch, rng) in enumerate(zip(batches, generators, strict=True))
            if place % ranks.size == ranks.rank
        ]
        found = ranks.gathered("eigenvalues of batches", own)
    return [found[place % ranks.size][place // ranks.size] for place in range(len(batches))]


def _largest(problem: Problem, chosen: Integers, rng: np.random.Generator) -> float:
    picked = chosen.tolist()
    data = [(window(problem.inputs, picked), window(problem.targets, picked))]
    running = calling("model and loss", f"run on batches of {len(picked)} samples in training mode")
    with running, preserve_state(problem.module, training=True):
        seed_generators(int(rng.integers(1 << 32)))  # what is dropped
        objective = Objective(
            problem.module,
            data,
            problem.loss,
            parameters=problem.objective.names,
            training=True,
            field=problem.objective.form.field,
        )
        return float(extremes(hessian(objective), rng, largest=1, tolerance=_RITZ).values[0])


def _mean(values: Sequence[float]) -> Estimate:
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
    return Estimate(float(np.mean(values)), error)
