"""What a loss function says of itself: whether it is a mean or a sum over samples, and over how many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate.objectives.batches import rows

__all__ = ["IGNORED", "Count", "Loss", "Reduction", "counted_by", "of_classes", "reduction_of"]

Reduction = Literal["mean", "sum"]
Loss = Callable[[Tensor, Any], Tensor]
Count = Callable[[Any], float]

_REDUCTIONS = ("mean", "sum")

IGNORED = -100
"""Label that a cross-entropy of torch leaves out where nobody says another."""

_FUNCTIONS = (functional.cross_entropy, functional.nll_loss)
"""Losses of classes that are no modules."""


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


def of_classes(loss: Loss) -> bool:
    """Whether it is a cross-entropy or a log-likelihood of torch.

    Examples
    --------
    >>> of_classes(nn.CrossEntropyLoss()), of_classes(functional.cross_entropy), of_classes(nn.MSELoss())
    (True, True, False)
    """
    return isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss) or any(loss is known for known in _FUNCTIONS)


def counted_by(loss: Loss) -> Count:
    """What a mean over a batch divides by, up to a constant factor."""
    if not of_classes(loss):
        return rows
    weight, ignored = getattr(loss, "weight", None), getattr(loss, "ignore_index", IGNORED)

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
