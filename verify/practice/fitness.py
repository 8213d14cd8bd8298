"""What model and loss must be like for their curvature to be measured, asked of a few samples."""

from __future__ import annotations

import math

import torch

from simulate.batches import window
from simulate.objectives import Objective
from simulate.parametric import as_found

__all__ = ["FEW", "require_mean"]

FEW = 2
"""Samples of a call: batch normalisation in training mode needs two."""

_ROUNDINGS = 1e4
"""Losses that differ by more than so many roundings differ."""


def require_mean(objective: Objective) -> None:
    """Refuse a loss function that says nothing of its reduction and gives a sum over the samples.

    Raises
    ------
    ValueError
        If the loss of some samples is the sum, and not the mean, of the losses of either half.
    """
    if objective.reduction != "mean":
        return
    batch, left, right = next(objective.batches()), slice(FEW), slice(FEW, 2 * FEW)
    targets = batch.targets[: 2 * FEW]
    if len(targets) < 2 * FEW:
        return
    with as_found(objective.model, objective.training), torch.no_grad():
        outputs = objective.outputs(objective.leaves(), window(batch.inputs, slice(2 * FEW)))
        both, one, other = (
            float(objective.criterion(outputs[part], targets[part])) for part in (slice(None), left, right)
        )
    rounding = _ROUNDINGS * torch.finfo(objective.dtype).eps
    if math.isclose(both, one + other, rel_tol=rounding) and not math.isclose(
        both, (one + other) / 2, rel_tol=rounding
    ):
        raise ValueError(
            "loss must be a mean over the samples of a batch, got a sum: divide it by their number"
        )
