"""The least loss of a model that says the same of every sample: who is not below it has learned nothing."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from simulate.objectives.batches import rows
from simulate.objectives.parameters import doubled
from simulate.objectives.reductions import Loss

__all__ = ["constant_loss"]

_ROUNDS, _FLAT = 200, 1e-9
"""Of the search where there is no closed form, and the slope at which it ends."""


def constant_loss(loss: Loss, outputs: Tensor, targets: Any) -> float:
    """Least loss on all targets of outputs that are the same for every sample.

    For a cross-entropy the entropy of the frequencies of the classes, weighted as the loss weights them; for a squared
    error the variance about the mean target; else the least that a search over one output finds.

    Parameters
    ----------
    loss
        A function of outputs and targets, one number for a batch.
    outputs
        Of any samples, (n, ...), n >= 1: their shape is what counts, and where the search begins.
    targets
        All of them, samples along the first axis.

    Raises
    ------
    ValueError
        If the outputs are of no sample, or the search begins at no finite loss.

    Examples
    --------
    >>> classes = torch.tensor([0, 0, 0, 1])
    >>> round(constant_loss(nn.CrossEntropyLoss(), torch.zeros(1, 2), classes), 6)  # entropy of (3/4, 1/4)
    0.562335
    >>> constant_loss(nn.MSELoss(), torch.zeros(1, 1), torch.tensor([[0.0], [2.0]]))
    1.0
    >>> round(constant_loss(nn.L1Loss(), torch.zeros(1, 1), torch.tensor([[0.0], [0.0], [3.0]])), 6)
    1.0
    """
    if not outputs.ndim or not len(outputs):
        raise ValueError(f"outputs must be of at least one sample, got shape {tuple(outputs.shape)}")
    if _classifies(loss, targets):
        return _entropy(loss, outputs.shape[1], targets)
    if isinstance(loss, nn.MSELoss) and loss.reduction == "mean" and targets.shape[1:] == outputs.shape[1:]:
        return float(targets.double().var(0, correction=0).mean())
    return _searched(loss, outputs, targets)


def _classifies(loss: Loss, targets: Any) -> bool:
    plain = isinstance(loss, nn.CrossEntropyLoss) and loss.reduction == "mean" and not loss.label_smoothing
    return plain and isinstance(targets, Tensor) and not targets.is_floating_point()


def _entropy(loss: Any, classes: int, targets: Tensor) -> float:
    kept = targets[targets != loss.ignore_index].reshape(-1)
    counts = torch.bincount(kept.long(), minlength=classes).double().cpu()
    counts = counts if loss.weight is None else counts * loss.weight.detach().double().cpu()
    shares = counts[counts > 0] / counts.sum()
    return abs(float((shares * shares.log()).sum()))


def _searched(loss: Loss, outputs: Tensor, targets: Any) -> float:
    """By L-BFGS from the mean of the outputs, in double precision."""
    criterion, wanted = doubled(loss), _double(targets)
    level = outputs.detach().double().mean(0).requires_grad_()
    search = torch.optim.LBFGS(
        [level], max_iter=_ROUNDS, tolerance_grad=_FLAT, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )
    seen: list[float] = []

    def closure() -> Tensor:
        search.zero_grad()
        value = criterion(level.expand(rows(targets), *level.shape), wanted).reshape(())
        if not math.isfinite(value.item()):
            raise OverflowError(value.item())
        seen.append(value.item())
        value.backward()
        return value

    # the search does not get back from a step into infinity: what it has seen until then counts
    with torch.enable_grad(), suppress(OverflowError):
        search.step(closure)
    if not seen:
        raise ValueError("loss must be finite for a constant output, got infinity or NaN")
    return float(np.min(seen))


def _double(targets: Any) -> Any:
    return targets.double() if isinstance(targets, Tensor) and targets.is_floating_point() else targets
