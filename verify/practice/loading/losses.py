"""Losses by their names or by the targets, and targets as a loss wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from simulate._checks import did_you_mean

__all__ = ["LOSSES", "fitting", "loss_of", "named_loss"]

LOSSES: Mapping[str, Callable[[], nn.Module]] = {
    "cross-entropy": nn.CrossEntropyLoss,
    "mse": nn.MSELoss,
    "bce": nn.BCEWithLogitsLoss,
}

_LABELS = "; if they are classes, save them as integers and take cross-entropy"
_SHARES = "; if they are shares of the classes, save them as floats"


def loss_of(loss: Any, targets: Tensor) -> Any:
    """What is named or given, and if it is None what the targets are for: cross-entropy for whole numbers."""
    if loss is None:
        return nn.MSELoss() if targets.is_floating_point() else nn.CrossEntropyLoss()
    return named_loss(loss)


def named_loss(loss: Any) -> Any:
    """The loss of this name; a function as it is.

    Raises
    ------
    ValueError
        If it is neither.

    Examples
    --------
    >>> named_loss("mse")
    MSELoss()
    """
    if isinstance(loss, str) and loss not in LOSSES:
        near = did_you_mean(loss, LOSSES)
        raise ValueError(f"loss must be one of {', '.join(LOSSES)} or a function, got {loss!r}{near}")
    if not isinstance(loss, str) and not callable(loss):
        raise ValueError(f"loss must be a function of outputs and targets, got {type(loss).__name__}")
    return LOSSES[loss]() if isinstance(loss, str) else loss


def fitting(loss: Any, outputs: tuple[int, ...], targets: Tensor, dtype: torch.dtype) -> Tensor:
    """The targets as a loss of torch wants them for outputs of this shape; as they are for other functions."""
    if targets.is_floating_point() and not bool(targets.isfinite().all()):
        raise ValueError("targets must be finite, got NaN or infinity")
    if isinstance(loss, nn.CrossEntropyLoss):
        return _classes(loss, outputs, targets)
    if not isinstance(loss, nn.MSELoss | nn.BCEWithLogitsLoss):
        return targets
    values = _shaped(targets.to(dtype), outputs, _LABELS * _like_labels(targets, outputs))
    if isinstance(loss, nn.BCEWithLogitsLoss) and not bool(((values >= 0) & (values <= 1)).all()):
        raise ValueError(f"targets must be 0..1 for bce, got {values.min():g}..{values.max():g}")
    return values


def _like_labels(targets: Tensor, outputs: tuple[int, ...]) -> bool:
    """Whether they may have been meant as classes."""
    return tuple(targets.shape[1:]) == outputs[1:] and bool((targets == targets.round()).all())


def _classes(loss: nn.CrossEntropyLoss, outputs: tuple[int, ...], targets: Tensor) -> Tensor:
    if not outputs or outputs[0] < 2:
        raise ValueError(
            f"outputs must be at least 2 for cross-entropy, one for each class, got {outputs}; use bce for one"
        )
    if targets.is_floating_point():  # probabilities
        return _shaped(targets, outputs, _LABELS * _like_labels(targets, outputs))
    labels = _shaped(targets, outputs[1:], _SHARES * (targets.shape[1:] == outputs))
    kept = labels[labels != loss.ignore_index]
    if len(kept) and not 0 <= int(kept.min()) <= int(kept.max()) < outputs[0]:
        got = f"{int(kept.min())}..{int(kept.max())}"
        raise ValueError(f"labels must be 0..{outputs[0] - 1} for {outputs[0]} outputs, got {got}")
    return labels


def _shaped(targets: Tensor, shape: tuple[int, ...], hint: str = "") -> Tensor:
    """The targets in this shape for each sample, but for axes of length 1: torch would spread those over others."""
    own = tuple(targets.shape[1:])
    if [n for n in own if n != 1] != [n for n in shape if n != 1]:
        raise ValueError(f"targets must be of shape {shape} each for what the model returns, got {own}{hint}")
    return targets.reshape(len(targets), *shape)
