"""Data sets of single samples as batches, by their protocol: what `torch.utils.data.DataLoader` takes by number.

A sample is a pair (input, target), or a mapping with labels, of tensors, arrays, numbers, lists of numbers, or images
that are none of these but give an array, which become (C, H, W) in [0, 1] as torchvision's `ToTensor` has them. What
is text in a mapping is left out. Samples of one shape that follow each other are stacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Number
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import data as torch_data

__all__ = ["Stacked", "of_samples"]

SIZE = 128
"""Samples in a batch where nobody says."""


class Stacked:
    """Batches of the samples of a data set, in their order.

    Parameters
    ----------
    data
        With `len` and samples by number.
    size
        Most samples in a batch.

    Raises
    ------
    ValueError
        From going through it, if a sample is none.

    Examples
    --------
    >>> samples = torch_data.TensorDataset(torch.eye(3), torch.tensor([0, 1, 2]))
    >>> [tuple(x.shape) for x, _ in Stacked(samples, 2)]
    [(2, 3), (1, 3)]
    """

    def __init__(self, data: Any, size: int | None = None) -> None:
        self.data, self._size = data, size or SIZE

    def __len__(self) -> int:
        return len(self.data)  # at most so many batches

    def __iter__(self) -> Iterator[Any]:
        together: list[Any] = []
        for place in range(len(self.data)):
            sample = _sample(self.data[place])
            if together and (len(together) == self._size or _shape(sample) != _shape(together[0])):
                yield _stacked(together)
                together = []
            together.append(sample)
        if together:
            yield _stacked(together)


def of_samples(data: Any) -> bool:
    """Whether data are a data set of single samples, not batches.

    That is one of torch, one with columns as `datasets` has them, or anything with `len` and items by number whose
    first has a single number for a target, or nothing but lists and numbers.

    Examples
    --------
    >>> of_samples(torch_data.TensorDataset(torch.eye(3))), of_samples([(torch.eye(3), torch.ones(3))])
    (True, False)
    """
    if isinstance(data, Mapping | tuple | list | str | Tensor | np.ndarray | torch_data.IterableDataset):
        return False
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        return False
    if isinstance(data, torch_data.Dataset) or hasattr(data, "column_names"):
        return True
    try:
        first = data[0] if len(data) else None
    except (TypeError, KeyError, IndexError):  # a mapping of another kind, say
        return False
    if isinstance(first, Mapping):
        return not any(isinstance(part, Tensor | np.ndarray) and part.ndim for part in first.values())
    last = first[-1] if isinstance(first, tuple | list) and len(first) == 2 else None
    return isinstance(last, Number) or (isinstance(last, Tensor | np.ndarray) and not last.ndim)


def _sample(item: Any) -> Any:
    if isinstance(item, Mapping):
        return {name: _numbers(part) for name, part in item.items() if not _is_text(part)}
    if isinstance(item, tuple | list) and len(item) == 2:
        return tuple(_sample(part) if isinstance(part, Mapping) else _numbers(part) for part in item)
    length = f" of length {len(item)}" if isinstance(item, tuple | list) else ""
    raise ValueError(
        "data must give samples (input, target), or mappings with labels, got"
        f" {type(item).__name__}{length}; wrap the data set"
    )


def _is_text(part: Any) -> bool:
    first = part[0] if isinstance(part, list | tuple) and part else part
    return first is None or isinstance(first, str | bytes)


def _numbers(part: Any) -> Tensor:
    if isinstance(part, Tensor):
        return part
    if not isinstance(part, np.ndarray | np.generic) and hasattr(part, "__array_interface__"):
        return _image(np.asarray(part))
    try:
        found = torch.as_tensor(part)
        own = isinstance(part, np.ndarray | np.generic) or not found.is_floating_point()
        return found if own else torch.as_tensor(part, dtype=torch.float64)  # as Python's floats are
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"data must give samples of numbers, got {type(part).__name__}; give the data set a transform to tensors"
        ) from None


def _image(pixels: np.ndarray) -> Tensor:
    """Channels first, bytes as floats in [0, 1]."""
    channels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    tensor = torch.from_numpy(np.ascontiguousarray(channels))
    return tensor.float() / 255 if tensor.dtype == torch.uint8 else tensor.float()


def _shape(sample: Any) -> Any:
    if isinstance(sample, Mapping):
        return {name: _shape(part) for name, part in sample.items()}
    return tuple(map(_shape, sample)) if isinstance(sample, tuple) else sample.shape


def _stacked(samples: list[Any]) -> Any:
    first = samples[0]
    if isinstance(first, Mapping):
        return {name: torch.stack([sample[name] for sample in samples]) for name in first}
    return tuple(
        _stacked([sample[i] for sample in samples])
        if isinstance(part, Mapping)
        else torch.stack([s[i] for s in samples])
        for i, part in enumerate(first)
    )
