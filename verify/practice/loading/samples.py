"""Samples of all kinds as one pair of inputs and targets: joined, drawn, and in the shape that a loss wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from simulate.objectives.batches import (
    Labelling,
    as_tensor,
    carries_labels,
    cuttable,
    held,
    joined,
    pair,
    placed,
    repeatable,
    rows,
    sample_counts,
)
from simulate.objectives.parameters import as_found
from verify.practice.loading.foreign import calling

__all__ = ["each", "fitting", "gathered", "subsample"]

_LABELS = "; if they are classes, save them as integers and take cross-entropy"
_SHARES = "; if they are shares of the classes, save them as floats"


def gathered(data: Any, like: Tensor, labels: Labelling) -> tuple[Any, Tensor]:
    """All samples of the batches in one, on the device and in the type of the parameters.

    Of a mapping with labels `labels` makes inputs and targets.
    """
    with as_found(None, training=False), calling("data", "give batches (inputs, targets)"):
        items = list(held(repeatable(data)))
        batches = [pair(item) for item in items]
    if not batches:
        raise ValueError("data must hold at least one sample, got no batch")
    inputs = [each(x, lambda part: placed(_scaled(part), like)) for x, _ in batches]
    targets = [placed(_tensor("targets", y), like) for _, y in batches]
    for place, item in enumerate(items):
        if carries_labels(item):
            inputs[place], targets[place] = labels(inputs[place], targets[place])
    for x, y in zip(inputs, targets, strict=True):
        if not cuttable(x, y):
            got = " and ".join(map(str, sample_counts(x, y)))
            raise ValueError(f"inputs and targets must be of one number of samples, got {got}")
    if not sum(map(rows, targets)):
        raise ValueError("data must hold at least one sample, got none")
    return joined(inputs), joined(targets)


def each(part: Any, change: Callable[[Any], Any]) -> Any:
    """A structure of tensors with each of them changed."""
    if isinstance(part, Mapping):
        return {name: each(value, change) for name, value in part.items()}
    return tuple(each(value, change) for value in part) if isinstance(part, tuple | list) else change(part)


def _scaled(part: Any) -> Tensor:
    """Inputs: bytes become floats in [0, 1], and floats must be finite."""
    raw = part.dtype in (torch.uint8, np.dtype(np.uint8)) if isinstance(part, Tensor | np.ndarray) else False
    tensor = _tensor("inputs", part)
    if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
        raise ValueError("inputs must be finite, got NaN or infinity")
    return tensor.double() / 255 if raw else tensor


def _tensor(name: str, part: Any) -> Tensor:
    """Floats as they are, whole numbers and truth values as int64."""
    if isinstance(part, Tensor) or (isinstance(part, np.ndarray) and part.dtype.kind in "biuf"):
        part = as_tensor(part)
    if not isinstance(part, Tensor) or part.is_complex() or part.ndim == 0:
        got = f"an array of {part.dtype}" if isinstance(part, Tensor | np.ndarray) else type(part).__name__
        raise ValueError(f"{name} must be tensors or arrays of real numbers, samples first, got {got}")
    return part if part.is_floating_point() else part.long()


def subsample(inputs: Any, targets: Tensor, samples: int | None, seed: int) -> tuple[Any, Tensor]:
    """So many of the samples, or all, in their order."""
    if samples is None:
        return inputs, targets
    if not 1 <= samples <= len(targets):
        raise ValueError(f"samples must be 1 to the {len(targets)} there are, got {samples}")
    drawn = np.random.default_rng(seed).choice(len(targets), samples, replace=False)
    chosen = torch.as_tensor(np.sort(drawn), device=targets.device)
    return each(inputs, lambda part: part[chosen]), targets[chosen]


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
