"""The least loss of a model that says the same of every sample: who is not below it has learned nothing."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from simulate.objectives.batches import rows
from simulate.objectives.losses import Loss
from simulate.objectives.parameters import doubled

_NEVER = 1e-30
"""Share of a class that is never there."""

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
    _require_samples(outputs)
    if _classifies(loss, targets):
        shares = _shares(loss, outputs.shape[1], targets)
        return float(torch.special.entr(shares).sum())
    if _squares(loss, outputs, targets):
        return float(targets.double().var(0, correction=0).mean())
    return _searched(loss, outputs, targets)[0]


def constant_output(loss: Loss, outputs: Tensor, targets: Any) -> Tensor:
    """Output of that loss, the same for every sample, shaped as that of one.

    For a cross-entropy the logarithms of the frequencies of the classes, weighted as the loss weights them; for a
    squared error the mean target; else what the search finds.

    Parameters
    ----------
    loss, outputs, targets
        As for `constant_loss`.

    Raises
    ------
    ValueError
        As `constant_loss`.

    Examples
    --------
    >>> classes = torch.tensor([0, 0, 0, 1])
    >>> constant_output(nn.CrossEntropyLoss(), torch.zeros(1, 2), classes).softmax(0)
    tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    _require_samples(outputs)
    if _classifies(loss, targets):
        logits = _shares(loss, outputs.shape[1], targets).clamp(min=_NEVER).log()
        return logits.reshape(-1, *(1 for _ in outputs.shape[2:])).expand(outputs.shape[1:])
    if _squares(loss, outputs, targets):
        return targets.double().mean(0).cpu()
    return _searched(loss, outputs, targets)[1]


def _require_samples(outputs: Tensor) -> None:
    if not outputs.ndim or not len(outputs):
        raise ValueError(f"outputs must be of at least one sample, got shape {tuple(outputs.shape)}")


def _classifies(loss: Loss, targets: Any) -> bool:
    plain = isinstance(loss, nn.CrossEntropyLoss) and loss.reduction == "mean" and not loss.label_smoothing
    return plain and isinstance(targets, Tensor) and not targets.is_floating_point()


def _squares(loss: Loss, outputs: Tensor, targets: Any) -> bool:
    return (
        isinstance(loss, nn.MSELoss) and loss.reduction == "mean" and targets.shape[1:] == outputs.shape[1:]
    )


def _shares(loss: Any, classes: int, targets: Tensor) -> Tensor:
    kept = targets[targets != loss.ignore_index].reshape(-1)
    counts = torch.bincount(kept.long(), minlength=classes).double().cpu()
    counts = counts if loss.weight is None else counts * loss.weight.detach().double().cpu()
    return counts / counts.sum()


def _searched(loss: Loss, outputs: Tensor, targets: Any) -> tuple[float, Tensor]:
    """Loss and output, by L-BFGS from the mean of the outputs, in double precision."""
    criterion, wanted = doubled(loss), targets
    if isinstance(targets, Tensor) and targets.is_floating_point():
        wanted = targets.double()
    level = outputs.detach().double().mean(0).requires_grad_()
    search = torch.optim.LBFGS(
        [level], max_iter=_ROUNDS, tolerance_grad=_FLAT, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )
    seen = list[tuple[float, Tensor]]()

    def closure() -> Tensor:
        search.zero_grad()
        value = criterion(level.expand(rows(targets), *level.shape), wanted).reshape(())
        if not math.isfinite(value.item()):
            raise OverflowError(value.item())
        seen.append((value.item(), level.detach().clone()))
        value.backward()
        return value

    # the search does not get back from a step into infinity: what it has seen until then counts
    with torch.enable_grad(), suppress(OverflowError):
        search.step(closure)
    if not seen:
        raise ValueError("loss must be finite for a constant output, got infinity or NaN")
    value, best = min(seen, key=lambda each: each[0])
    return value, best.cpu()
