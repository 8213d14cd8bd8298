"""Short runs of SGD from the parameters as they are: up to which learning rate the loss does not grow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from simulate.objectives import Objective
from simulate.objectives.parameters import Leaves, as_found
from simulate.spectra import Estimate
from verify.practice.loading import Problem

__all__ = ["GROWTH", "RATIO", "Trial", "trial"]

RATIO = math.sqrt(2)
"""Of neighbouring rates on the grid."""

GROWTH = 2.0
"""A rate holds if the loss after the steps, in the mean over the runs, is at most so many times that at the start."""

_LOST = 1e4
"""A run whose batch loss exceeds the loss at the start by this factor is not continued: it counts as infinite."""

_MOST_STRIDES = 8
"""From the first rate on: a factor of 2 each."""

Watch = Callable[[float], None]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What short runs at one batch size have shown.

    Attributes
    ----------
    batch_size, steps, runs
        Of every run, and how many of them at each rate: one where a batch is all samples.
    start
        Loss on all data at the start.
    held, failed
        Neighbouring rates of the grid of which the first held and the second did not; None where all rates that were
        tried did the other.
    held_loss, failed_loss
        Loss on all data after the steps at these rates, mean over the runs with its standard error; None without a
        rate, and where a run was lost.
    best, best_loss
        The rate with the lowest such loss of all that were tried.
    """

    batch_size: int
    steps: int
    runs: int
    start: float
    held: float | None
    failed: float | None
    held_loss: Estimate | None
    failed_loss: Estimate | None
    best: float | None
    best_loss: Estimate | None


def trial(
    problem: Problem,
    batch_size: int,
    rate: float,
    rng: np.random.Generator,
    *,
    steps: int,
    runs: int,
    watch: Watch = lambda _: None,
) -> Trial:
    """Walk from a first rate up, or down, a geometric grid until the runs no longer hold, or hold again.

    By factors of 2, with one rate in between at the end.

    Every step draws a batch without replacement, independent of the other steps. The model is not touched.

    Parameters
    ----------
    problem
        Model, data and loss.
    batch_size
        From 1 to N.
    rate
        Where to begin.
    rng
        Source of the batches. All rates see the same ones.
    steps, runs
        Of every run, and how many at each rate, at least 2.
    watch
        Called with a guess of the share that is done.

    Raises
    ------
    ValueError
        If the loss at the start is no positive number: nothing can grow from there.
    """
    start = problem.objective.value()
    if not start > 0:
        raise ValueError(f"loss must be positive at the start of runs, got {start}")
    runs = runs if batch_size < problem.samples else 1  # all would be alike
    drawn = [_batches(rng, problem.samples, batch_size, steps) for _ in range(runs)]
    tried: dict[int, Estimate | None] = {}

    def holds(k: int) -> bool:
        tried[k] = _mean([_final(problem, rate * RATIO**k, batches, start) for batches in drawn])
        watch(len(tried) / (len(tried) + 2))
        return _value(tried[k]) <= GROWTH * start

    held, failed = _walk(holds)
    best = min(tried, key=lambda k: _value(tried[k]))
    return Trial(
        batch_size=batch_size,
        steps=steps,
        runs=runs,
        start=start,
        held=None if held is None else rate * RATIO**held,
        failed=None if failed is None else rate * RATIO**failed,
        held_loss=None if held is None else tried[held],
        failed_loss=None if failed is None else tried[failed],
        best=None if tried[best] is None else rate * RATIO**best,
        best_loss=tried[best],
    )


def _mean(losses: Sequence[float]) -> Estimate | None:
    values = np.array(losses)
    if not np.isfinite(values).all():
        return None
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Estimate(float(values.mean()), float(error))


def _value(loss: Estimate | None) -> float:
    return math.inf if loss is None else loss.value


def _walk(holds: Callable[[int], bool]) -> tuple[int | None, int | None]:
    """The last place that holds and the first that does not, side by side; one of them missing where all are alike.

    By two places at a time, and one in between at the end.
    """
    up, at = holds(0), 0
    for _ in range(_MOST_STRIDES):
        following = at + 2 if up else at - 2
        if holds(following) != up:
            low, high = sorted((at, following))
            return (low + 1, high) if holds(low + 1) else (low, low + 1)
        at = following
    return (at, None) if up else (None, at)


def _batches(rng: np.random.Generator, samples: int, batch_size: int, steps: int) -> list[Tensor]:
    return [torch.as_tensor(rng.choice(samples, batch_size, replace=False)) for _ in range(steps)]


def _final(problem: Problem, rate: float, batches: list[Tensor], start: float) -> float:
    """Loss on all data after one run; infinite if it was lost on the way."""
    objective = problem.objective
    leaves = objective.leaves()
    with as_found(objective.model, objective.training), torch.enable_grad():
        for chosen in batches:
            loss, slopes = _slopes(problem, leaves, chosen.to(problem.targets.device))
            if not loss <= _LOST * start:
                return math.inf
            leaves = tuple(
                (p - rate * s).detach().requires_grad_() for p, s in zip(leaves, slopes, strict=True)
            )
    return _whole(objective, leaves)


def _slopes(problem: Problem, leaves: Leaves, chosen: Tensor) -> tuple[float, list[Tensor]]:
    """Loss of a batch and its derivatives, in passes of as many samples as the problem allows."""
    value, slopes = 0.0, [torch.zeros_like(p) for p in leaves]
    objective = problem.batch_objective(chosen)
    for batch in objective.batches():
        outputs = objective.outputs(leaves, batch.inputs)
        loss = objective.criterion(outputs, batch.targets) * batch.factor
        value += loss.item()
        with objective.standing(leaves, needed=objective.runs_again):
            parts = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
        slopes = [slope + part for slope, part in zip(slopes, parts, strict=True)]
    return value, slopes


def _whole(objective: Objective, leaves: Leaves) -> float:
    total = 0.0
    with as_found(objective.model, objective.training), torch.no_grad():
        for batch in objective.batches():
            outputs = objective.outputs(leaves, batch.inputs)
            total += batch.factor * float(objective.criterion(outputs, batch.targets))
    return total if math.isfinite(total) else math.inf
