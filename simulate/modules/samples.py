"""Samples of an objective that do not see each other: its batches, cut to fit, and the loss of each in its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from simulate import _memory
from simulate.objectives import Batch, Objective
from simulate.objectives.additivity import MIXED
from simulate.objectives.batches import cuts, rows, window
from simulate.objectives.derivatives import directional, normal
from simulate.objectives.output_curvature import SoftmaxCurvature, closed_curvature

__all__ = ["CoupledError", "Outer", "outer_of", "separate_batches", "windows"]

_BYTES = 1 << 27
"""Of derivatives that are held at once."""
_ROUNDINGS = 100
"""What is more than so many roundings of the largest entry is none of rounding."""


class CoupledError(ValueError):
    """Samples that have no loss, or no outputs, of their own."""


class Outer:
    """First and second derivative of the loss of one batch in its outputs, divided by the share of a sample.

    Outputs, and what is like them, have one row for each sample here, (n, m).
    """

    def __init__(self, objective: Objective, batch: Batch, outputs: Tensor) -> None:
        samples = rows(batch.targets)
        if outputs.ndim == 0 or len(outputs) != samples:
            shape = tuple(outputs.shape)
            raise CoupledError(f"model must return one row for each of {samples} samples, got shape {shape}")
        free, self._share = outputs.detach().requires_grad_(), objective.share
        closed = closed_curvature(objective.criterion, outputs.detach(), batch)
        loss = objective.loss(free, batch)
        (slope,) = torch.autograd.grad(loss, free, create_graph=closed is None)
        self._shape = outputs.shape
        self.slope = slope.detach().reshape(samples, -1) / self._share
        self._bend = closed() if closed else partial(directional, slope, free)
        if closed is None:
            self._require_apart()

    def bent(self, tangent: Tensor, part: slice) -> Tensor:
        """Second derivative times a change of the outputs of some of the samples."""
        change = torch.zeros_like(self.slope)
        change[part] = tangent
        return self._bend(change.view(self._shape)).reshape_as(change)[part] / self._share

    def factors(self, part: slice) -> tuple[Tensor, Tensor] | None:
        """Values (n, r) and vectors (n, m, r): V diag(values) V' is the second derivative, where a formula has them."""
        if not isinstance(self._bend, SoftmaxCurvature):
            return None
        values, vectors = self._bend.factors(part)
        return values / self._share, vectors

    def blocks(self, part: slice) -> Tensor:
        """Second derivatives (n, m, m) of some of the samples."""
        units = torch.eye(self.slope.shape[1], dtype=self.slope.dtype, device=self.slope.device)
        likes = self.slope[part]
        return torch.stack([self.bent(unit.expand_as(likes), part) for unit in units], dim=1)

    def _require_apart(self) -> None:
        """Changes of one half of the samples must not be felt by the other, in halves that part any two of them."""
        numbers, change = torch.arange(len(self.slope), device=self.slope.device), normal(self.slope)
        for digit in range((len(self.slope) - 1).bit_length()):
            others = (numbers >> digit & 1).bool()
            felt = self.bent(change.masked_fill(others[:, None], 0.0), slice(None)).abs().amax(1)
            if float(felt[others].max()) > _ROUNDINGS * torch.finfo(felt.dtype).eps * float(felt.max()):
                raise CoupledError(
                    "loss must be a sum or mean of what every sample adds, got one that couples samples;"
                    " use an estimate such as spectra.trace"
                )


def outer_of(objective: Objective, batch: Batch) -> Outer:
    """That of the outputs of the model."""
    with torch.no_grad():
        outputs = objective.outputs(objective.leaves(), batch.inputs)
    return Outer(objective, batch, outputs)


def separate_batches(objective: Objective) -> Iterator[Batch]:
    """All of them, those too that add nothing to the loss; samples that see each other are refused."""
    if objective.training:
        raise ValueError("objective must be in evaluation mode, where no sample sees another, got training")
    if objective.mixing == MIXED:
        raise ValueError("model must give each sample outputs of its own, got samples that see each other")
    yield from objective.batches(empty=True)


def windows(batch: Batch, one: Callable[[Any], int], objective: Objective) -> Iterator[slice]:
    """A batch cut so that what it holds fits; `one` tells how many bytes the first samples hold."""
    size = rows(batch.targets)
    each = one(window(batch.inputs, slice(0, 1)))
    what, advice = "the derivatives of one sample", "use a smaller model"
    _memory.require_free("objective", each, what, device=objective.device, advice=advice)
    most = max(1, _BYTES // max(1, each))
    return cuts(size, most)
