"""The curvature of a model that moves: eigenvectors go on from one measurement to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from simulate.lanczos import Operator, WarmStart, warm_start
from simulate.objectives import Objective
from simulate.objectives.batches import cuts, cuttable, pair, rows, window
from simulate.objectives.restoring import seed_generators
from simulate.operators import hessian
from verify.practice.step_limits import StepLimit, scaled, with_decay

_ACCURACY = 0.02
"""Residual of an eigenvalue that Lanczos may leave, as a share of it: batches scatter by more."""

_LEAST, _MOST = 5, 40
"""Products for an eigenvalue. With three a neighbour that was the largest before passed for the largest in 3 % of the
measurements of small perceptrons at a high rate, with five in 1 %."""

_FRESH = 5
"""Every so many measurements Lanczos starts at random: a direction that has overtaken the old one is found then."""

_OVERTAKING = 0.5
"""Weight of each leading Ritz vector of the measurement before, in the next start, over that of the one above it."""

_STRAY = 0.3
"""Length of the random part of such a start, where the first Ritz vector has 1."""

_FEWEST = 4
"""Samples of a batch from which on it is halved: halves of one sample have no statistics of a batch."""


class WrongLossError(ValueError):
    """A loss that is not one number: what the user is told whenever it occurs."""


@dataclass(frozen=True, kw_only=True)
class OfBatch:
    """Measurements of one batch."""

    top: WarmStart
    square: float | None = None
    variance: float | None = None


class Spent:
    """Products, and rows that went through the model and back."""

    def __init__(self) -> None:
        self.count, self.rows = 0, 0.0

    def found(self, found: WarmStart, samples: int) -> WarmStart:
        """Count the products of a result and the pass that makes their graph; return the result."""
        self.count += found.products
        self.rows += samples * (found.products + 1)
        return found


class MovingCurvature:
    """The objective, and the eigenvectors that the next measurement starts from."""

    def __init__(
        self, model: nn.Module, loss: Any, samples: Any, names: tuple[str, ...], training: bool, seed: int
    ) -> None:
        self._names, self._training, self._seed = names, training, seed
        self._objective = Objective(model, [samples], loss, parameters=list(names), training=training)
        self._asked, self._count = False, 0
        self._samples = rows(pair(samples)[1])
        self._vectors: dict[str, Tensor] = {}
        self.succeeded = False

    def fits(self, names: Any, training: bool) -> bool:
        """Whether the same parameters are trained in the same mode."""
        return tuple(names) == self._names and training == self._training

    def renew(self) -> None:
        """Move to the current parameters of the model."""
        self._objective = self._objective.at_current_parameters()
        self._count += 1

    def value(self, batch: Any) -> float:
        """Loss of the batch, be it finite or not."""
        objective, total = self._on(batch), 0.0
        with torch.no_grad():
            for part in objective.batches():
                loss = objective.criterion(objective.outputs(objective.leaves, part.inputs), part.targets)
                if not isinstance(loss, Tensor) or loss.numel() != 1 or loss.is_complex():
                    shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
                    raise WrongLossError(f"loss must return one number for a batch, its mean, got {shape}")
                total += float(loss)
        return total

    def of_samples(self, step: int, limit: StepLimit, count: Spent) -> tuple[WarmStart, WarmStart | None]:
        """Largest eigenvalue of the fixed samples, and that with the steps of the optimiser if these are scaled."""
        objective = self._objective
        seed_generators(self._seed)
        if not self._asked:
            objective.require_sound()
            if objective.sums():
                raise ValueError("loss must be a mean over the samples of a batch, got their sum; divide it")
            self._asked = True
        matrix = with_decay(hessian(objective), objective.shapes, limit.decay)
        top = count.found(self._follow("samples", matrix, step), self._samples)
        if limit.scaling is None:
            return top, None
        return top, count.found(
            self._follow("scaled", scaled(matrix, objective.shapes, limit.scaling), step), self._samples
        )

    def of_batch(self, batch: Any, step: int, limit: StepLimit, count: Spent) -> OfBatch:
        """Largest eigenvalue of a batch, and what the gradients of its halves tell of their noise."""
        objective, size = self._on(batch), rows(pair(batch)[1])
        # Three seeds a step: of the batch and of its halves.
        seed_generators(self._seed + 3 * step)
        matrix = with_decay(hessian(objective), objective.shapes, limit.decay)
        top = count.found(self._follow("batch", matrix, step), size)
        if size < _FEWEST or not cuttable(*pair(batch)):
            return OfBatch(top=top)
        parts = list(cuts(size, -(-size // 2)))
        gradients = []
        for place, part in enumerate(parts, start=1):
            seed_generators(self._seed + 3 * step + place)  # halves drop units each for itself
            try:
                gradients.append(self._on(window(batch, part)).gradient().double())
            except Exception:  # code of others, whose loss takes whole batches alone
                return OfBatch(top=top)
        count.rows += size
        # The halves are independent. So their product is unbiased for the square of the mean gradient, and
        # the square of their difference for the trace of the covariance times `over`.
        one, other = gradients
        over = sum(1 / (part.stop - part.start) for part in parts)
        return OfBatch(
            top=top, square=float(one @ other), variance=float((one - other).square().sum()) / over
        )

    def _on(self, batch: Any) -> Objective:
        return self._objective if batch is None else self._objective.with_data([batch])

    def _follow(self, what: str, matrix: Operator, step: int) -> WarmStart:
        """Run Lanczos from the last leading Ritz vectors with some noise; now and then from a random vector alone."""
        drawn = np.random.default_rng([self._seed, step]).standard_normal((1, matrix.dim))
        start = matrix.vectors(drawn)[0]
        before = self._vectors.get(what, self._vectors.get("samples"))
        if before is not None and (self._count - 1) % _FRESH:
            weights = _OVERTAKING ** torch.arange(len(before), dtype=matrix.dtype, device=matrix.device)
            start = weights @ before + _STRAY * start / start.norm()
        found = warm_start(matrix, start, tolerance=_ACCURACY, least=min(_LEAST, matrix.dim), steps=_MOST)
        self._vectors[what] = found.leading
        return found
