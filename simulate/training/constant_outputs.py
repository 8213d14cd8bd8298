"""Smallest loss of a constant output; a model whose loss is not below it has learned nothing."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from simulate.objectives.batches import rows
from simulate.objectives.losses import Loss
from simulate.objectives.parameters import doubled

_ITERATIONS, _FLAT = 200, 1e-9
"""Largest number of iterations of the search without a closed form, and the gradient at which it ends."""


def constant_loss(loss: Loss, outputs: Tensor, targets: Any) -> float:
    """Return the smallest loss on all targets of one output for all samples.

    For a cross-entropy it is the entropy of the class frequencies, weighted as the loss weights them; for a squared
    error the variance about the mean target; otherwise the smallest loss that a search over one output finds.

    Parameters
    ----------
    loss
        A function of outputs and targets, one number for a batch.
    outputs
        Outputs of any samples, (n, ...), n >= 1: they give the shape, and the start of the search.
    targets
        All targets, samples along the first axis.

    Raises
    ------
    ValueError
        If there is no sample in the outputs, or the search starts at a loss that is not finite.

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
        raise ValueError(f"outputs must have at least one sample, got shape {tuple(outputs.shape)}")
    if _is_cross_entropy(loss, targets):
        return float(torch.special.entr(_class_shares(loss, outputs.shape[1], targets)).sum())
    if _is_squared_error(loss, outputs, targets):
        return float(targets.double().var(0, correction=0).mean())
    return _search(loss, outputs, targets)


def _is_cross_entropy(loss: Loss, targets: Any) -> bool:
    plain = isinstance(loss, nn.CrossEntropyLoss) and loss.reduction == "mean" and not loss.label_smoothing
    return plain and isinstance(targets, Tensor) and not targets.is_floating_point()


def _is_squared_error(loss: Loss, outputs: Tensor, targets: Any) -> bool:
    return (
        isinstance(loss, nn.MSELoss) and loss.reduction == "mean" and targets.shape[1:] == outputs.shape[1:]
    )


def _class_shares(loss: Any, classes: int, targets: Tensor) -> Tensor:
    counted = targets[targets != loss.ignore_index].reshape(-1)
    counts = torch.bincount(counted.long(), minlength=classes).double().cpu()
    counts = counts if loss.weight is None else counts * loss.weight.detach().double().cpu()
    return counts / counts.sum()


def _search(loss: Loss, outputs: Tensor, targets: Any) -> float:
    """Find the loss by L-BFGS from the mean of the outputs, in double precision."""
    criterion, wanted = doubled(loss), targets
    if isinstance(targets, Tensor) and targets.is_floating_point():
        wanted = targets.double()
    level = outputs.detach().double().mean(0).requires_grad_()
    search = torch.optim.LBFGS(
        [level],
        max_iter=_ITERATIONS,
        tolerance_grad=_FLAT,
        # torch would also end at a step that changes little, far from a flat gradient
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )
    tried = list[float]()

    def closure() -> Tensor:
        search.zero_grad()
        value = criterion(level.expand(rows(targets), *level.shape), wanted).reshape(())
        if not math.isfinite(value.item()):
            raise OverflowError(value.item())
        tried.append(value.item())
        value.backward(inputs=[level])  # a penalty also has parameters
        return value

    # the search does not return from a step into infinity: the best point until then counts
    with torch.enable_grad(), suppress(OverflowError):
        search.step(closure)
    if not tried:
        raise ValueError("loss must be finite for a constant output, got infinity or NaN")
    return min(tried)
