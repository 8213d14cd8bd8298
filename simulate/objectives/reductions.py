"""What a loss function says of itself: whether it is a mean or a sum over samples, and over how many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from simulate.objectives.batches import rows

__all__ = ["Count", "Loss", "Reduction", "counted_by", "reduction_of"]

Reduction = Literal["mean", "sum"]
Loss = Callable[[Tensor, Any], Tensor]
Count = Callable[[Any], float]

_REDUCTIONS = ("mean", "sum")


def reduction_of(loss: Loss, reduction: str | None) -> str:
    """Mean or sum, as asked for, or else as the loss function says.

    Raises
    ------
    ValueError
        If it is neither.
    """
    found = getattr(loss, "reduction", "mean") if reduction is None else reduction
    # what torch calls the mean over samples, of a divergence
    found = "mean" if found == "batchmean" else found
    if found not in _REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(_REDUCTIONS)}, got {found!r}")
    return found


def counted_by(loss: Loss) -> Count:
    """What a mean over a batch divides by, up to a constant factor."""
    if not isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss):
        return rows
    weight, ignored = loss.weight, loss.ignore_index

    def count(targets: Any) -> float:
        if torch.is_floating_point(targets):  # probabilities: torch divides by their number
            if targets.ndim < 2:
                raise ValueError(
                    f"targets of a cross-entropy must be whole numbers, or shares of the classes along axis 1, got"
                    f" {targets.dtype} of shape {tuple(targets.shape)}"
                )
            return float(targets.numel() // targets.shape[1])
        kept = targets[targets != ignored]
        return float(kept.numel()) if weight is None else float(weight[kept].sum())

    return count
