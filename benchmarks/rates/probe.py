"""What can be known of a network before it is trained: curvature and gradients in the mode in which it trains."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.rates.cells import Ground
from benchmarks.rates.samples import SAMPLES
from simulate.eigenvalues import extremes
from simulate.modules.sample_directions import sample_directions
from simulate.objectives import Objective
from simulate.objectives.restoring import as_found
from simulate.operators import gauss_newton, hessian
from simulate.training.trial_training import CommonBatches
from theory import learning_rates
from theory.batch_hessian import element_variance
from verify.practice.loading import problem
from verify.practice.measure.norms import frobenius
from verify.practice.plan.rate_bracket import MeasuredBracket, measured_bracket

__all__ = ["Probe", "threshold"]

_RITZ = 1e-2
_BATCHES, _NOISE_SIZE, _NOISE_BATCHES = 4, 64, 16
_SINGLE, _DIRECTIONS, _HEAVY, _PROBES = 256, 5, 10, 8
"""Samples that are looked at one by one, and how they are: fewer than a plan takes, which costs minutes."""

_BACKWARD = 2.0
"""Of a product with the Hessian, in passes forward and back."""

_FROM, _DOUBLINGS, _HALVINGS = 0.1, 30, 4
"""Of the search for the critical rate."""


class Probe:
    """Measurements at a ground, each made once; `spent` counts samples that passed forward and back.

    Dropout is off: what it draws is no property of the parameters. Batch normalisation takes the statistics of a batch.

    Parameters
    ----------
    ground
        Network, state and samples.
    """

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.inputs, self.targets = ground.data
        self.model = _without_dropout(copy.deepcopy(ground.model))
        self.spent = 0.0

    @property
    def rng(self) -> np.random.Generator:
        """Source of starts and probes, anew for each measurement: they do not hang on which were made before."""
        return np.random.default_rng((self.ground.seed, 2))

    def objective(self, chosen: Tensor | None = None) -> Objective:
        """The loss on some samples as one batch, or on all."""
        rows = torch.arange(SAMPLES) if chosen is None else chosen
        batch = [(self.inputs[rows], self.targets[rows])]
        return Objective(self.model, batch, self.ground.network.loss, training=True)

    def batches(self, size: int, count: int) -> list[Tensor]:
        """Different ones, of an order of their own."""
        common = CommonBatches(samples=SAMPLES, size=size, seed=self.ground.seed + 1)
        return list(common.steps(0, count))

    @cached_property
    def top(self) -> float:
        """Largest eigenvalue of the Hessian."""
        return self._top(self.objective(), SAMPLES)

    def batch_top(self, size: int) -> float:
        """The mean of it over some batches."""
        drawn = self.batches(size, max(1, min(_BATCHES, SAMPLES // size)))
        return float(np.mean([self._top(self.objective(chosen), size) for chosen in drawn]))

    def _top(self, objective: Objective, samples: int) -> float:
        found = extremes(hessian(objective), self.rng, largest=1, tolerance=_RITZ, steps=60)
        self.spent += _BACKWARD * found.products * samples
        return float(found.values[0])

    def critical(self, size: int) -> float:
        """Rate at which one step along the gradient of a batch no longer lowers its loss, geometric mean over some."""
        found = [self._critical(self.objective(chosen), size) for chosen in self.batches(size, _BATCHES)]
        return math.exp(float(np.mean(np.log(found))))

    def _critical(self, objective: Objective, size: int) -> float:
        gradient = objective.gradient()
        self.spent += size
        start = objective.value()

        def rises(rate: float) -> bool:
            self.spent += size / 3  # forward alone
            return not _moved(objective, gradient, rate) <= start

        return threshold(rises)

    @cached_property
    def one_step(self) -> tuple[float, float]:
        """Best rate of one full step, |g|^2 / g'Hg, and the noise scale tr(H S) / g'Hg; no rate without curvature."""
        objective = self.objective()
        gradient, matrix = objective.gradient(), hessian(objective)
        along = float(gradient @ (matrix @ gradient))
        self.spent += SAMPLES * (
            1 + _BACKWARD * (1 + _NOISE_BATCHES) + _NOISE_BATCHES * _NOISE_SIZE / SAMPLES
        )
        noises = []
        for chosen in self.batches(_NOISE_SIZE, _NOISE_BATCHES):
            off = self.objective(chosen).gradient() - gradient
            noises.append(float(off @ (matrix @ off)))
        left = _NOISE_SIZE * (SAMPLES - 1) / (SAMPLES - _NOISE_SIZE)
        if along <= 0:
            return math.inf, 0.0
        return float(gradient @ gradient) / along, max(0.0, float(np.mean(noises)) * left / along)

    @cached_property
    def linearised(self) -> tuple[MeasuredBracket, float]:
        """The bracket of `losscurv plan`, in evaluation mode, of fewer samples; and the variance of Theorem 4."""
        rows = torch.arange(_SINGLE)
        few = problem(
            self.model,
            (self.inputs[rows], self.targets[rows]),
            loss=self.ground.network.loss,
            name=self.ground.network.name,
        )
        top = extremes(gauss_newton(few.objective), self.rng, largest=_DIRECTIONS, tolerance=_RITZ, steps=60)
        found = sample_directions(few.objective, top.vectors, self.rng, heavy=_HEAVY)
        bracket = measured_bracket(top, found, few.unit)
        whole = frobenius(gauss_newton(few.objective), top, self.rng, probes=_PROBES)
        self.spent += _SINGLE * (_BACKWARD * (top.products + _PROBES + _DIRECTIONS + _HEAVY) + 10)
        spread = few.unit**2 * float(found.grams.squares.mean()) - whole.value**2
        return replace(bracket, samples=SAMPLES), max(spread, 0.0) * _SINGLE / (_SINGLE - 1)

    def theorem_4(self, size: int) -> float:
        """2 over the eigenvalue of a batch."""
        bracket, variance = self.linearised
        dim = sum(p.numel() for p in self.model.parameters())
        return float(
            learning_rates.sgd_limit(
                bracket.largest,
                sigma=math.sqrt(element_variance(variance / dim, dim=dim)),
                dim=dim,
                batch_size=size,
                dataset_size=SAMPLES,
            )
        )

    def bracket(self, size: int) -> tuple[float, float]:
        """Stable below the first, not above the second."""
        lower, upper = self.linearised[0].rates(size)
        return float(lower), float(upper)


def _without_dropout(model: nn.Module) -> nn.Module:
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = 0.0
    return model


def _moved(objective: Objective, gradient: Tensor, rate: float) -> float:
    """Loss of a batch after a step along its gradient; infinite where it is no number."""
    pairs = zip(objective.leaves(), objective.split(gradient), strict=True)
    with as_found(objective.model, objective.training), torch.no_grad():
        leaves = [p - rate * slope for p, slope in pairs]
        batch = next(objective.batches())
        loss = float(objective.criterion(objective.outputs(leaves, batch.inputs), batch.targets))
    return loss if math.isfinite(loss) else math.inf


def threshold(rises: Callable[[float], bool]) -> float:
    """Where a property of rates begins, looked for by factors of 2 from 0.1 on and then between them.

    >>> found = [threshold(lambda rate: rate > at) for at in (3.0, 0.003)]
    >>> bool(np.allclose(found, [3.0, 0.003], rtol=0.03))
    True
    """
    rate = _FROM
    up = not rises(rate)
    for _ in range(_DOUBLINGS):
        rate *= 2.0 if up else 0.5
        if rises(rate) == up:
            break
    low = rate / 2 if up else rate
    return _between(rises, low, 2 * low)


def _between(rises: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rises(middle) else (middle, high)
    return math.sqrt(low * high)
