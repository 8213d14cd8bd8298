"""Batches of data: pairs of inputs and targets, each a tensor or a structure of tensors with samples first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["copied", "cuts", "moved", "pair", "repeatable", "rows", "tensors", "window"]


def repeatable(data: Any) -> Iterable[Any]:
    """Data that can be gone through again and again; one pair (inputs, targets) is one batch."""
    if (
        isinstance(data, tuple)
        and len(data) == 2
        and not all(isinstance(part, tuple | list) for part in data)
    ):
        return [data]
    if not isinstance(data, Iterable):
        raise ValueError(
            f"data must be batches (inputs, targets) or one such pair, got {type(data).__name__}"
        )
    return list(data) if isinstance(data, Iterator) else data


def pair(item: Any) -> tuple[Any, Any]:
    """Inputs and targets of one batch."""
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise ValueError(
            f"data must give batches (inputs, targets), got {type(item).__name__}"
            + (f" of length {len(item)}" if isinstance(item, tuple | list) else "")
        )
    return item[0], item[1]


def moved(part: Any, like: Tensor) -> Any:
    """Tensors on the device of another, floating ones of its type; arrays as tensors."""
    if isinstance(part, np.ndarray):
        part = torch.from_numpy(part)
    if isinstance(part, Tensor):
        dtype = like.dtype if part.is_floating_point() else part.dtype
        return part.detach().to(device=like.device, dtype=dtype)
    if isinstance(part, Mapping):
        return {name: moved(value, like) for name, value in part.items()}
    if isinstance(part, tuple | list):
        return tuple(moved(value, like) for value in part)
    return part


def rows(part: Any) -> int:
    """Samples of inputs or targets: length of the first axis."""
    if isinstance(part, Mapping):
        return rows(next(iter(part.values())))
    if isinstance(part, tuple):
        return rows(part[0])
    if not isinstance(part, Tensor) or part.ndim == 0:
        raise ValueError(f"data must hold tensors with samples along the first axis, got {part!r}")
    return len(part)


def window(part: Any, samples: slice) -> Any:
    """Some of the samples of inputs or targets."""
    if isinstance(part, Mapping):
        return {name: window(value, samples) for name, value in part.items()}
    if isinstance(part, tuple):
        return tuple(window(value, samples) for value in part)
    return part[samples] if isinstance(part, Tensor) else part


def cuts(samples: int, most: int) -> Iterator[slice]:
    """Samples in windows of at most so many, one after the other."""
    return (slice(start, min(start + most, samples)) for start in range(0, samples, most))


def copied(part: Any) -> Any:
    """Inputs or targets in memory of their own."""
    if isinstance(part, Mapping):
        return {name: copied(value) for name, value in part.items()}
    if isinstance(part, tuple):
        return tuple(copied(value) for value in part)
    return part.clone() if isinstance(part, Tensor) else part


def tensors(part: Any) -> Iterator[Tensor]:
    """All that inputs or targets hold."""
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, Mapping | tuple):
        for value in part.values() if isinstance(part, Mapping) else part:
            yield from tensors(value)
