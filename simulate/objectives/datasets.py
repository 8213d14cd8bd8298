"""Data by name, and data sets of single samples as batches: what `torch.utils.data.DataLoader` takes by number.

A sample is a pair (input, target), or a mapping with labels, of tensors, arrays, numbers, lists of numbers, or images
that are none of these but give an array, which become (C, H, W) in [0, 1] as torchvision's `ToTensor` has them. What
is text in a mapping is left out. Samples of one shape that follow each other are stacked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import data as torch_data

from simulate import data as archives

__all__ = ["DIGITS", "Stacked", "named_data", "of_samples"]

DIGITS = "digits"
"""Name of the embedded images."""

_DIGIT_SHAPES = ((1, 28, 28), (784,), (1, 8, 8), (64,), (3, 32, 32))

SIZE = 128
"""Samples in a batch where nobody says."""


def named_data(name: str | os.PathLike[str], run: Callable[[Tensor], object]) -> tuple[Any, Any]:
    """Inputs and targets of an ``.npz`` file, or the embedded digits in the first shape that a model takes.

    Parameters
    ----------
    name
        The path of a file with ``x_train, y_train`` or ``x, y``, whose inputs of type uint8 are divided by 255; or
        ``"digits"``.
    run
        Calls the model on two images; what it raises says that the model takes another shape.

    Raises
    ------
    ValueError
        If the file is missing, damaged or without such arrays, or the model takes digits of no shape.

    Examples
    --------
    >>> images, labels = named_data("digits", torch.nn.Linear(64, 10).double())
    >>> images.shape, labels.shape
    ((1797, 64), (1797,))
    """
    if name != DIGITS:
        inputs, targets = archives.arrays(name, ("x_train", "y_train"), ("x", "y"))
        return inputs / 255 if inputs.dtype == np.uint8 else inputs, targets
    first = ""
    for shape in _DIGIT_SHAPES:
        size = {784: (1, 28, 28), 64: (1, 8, 8)}.get(shape[0], shape)
        images = archives.digits(size)
        pixels = images.images.reshape(-1, *shape)
        try:
            run(torch.tensor(pixels[:2]))  # two: batch normalisation in training mode needs them
        except Exception as error:  # code of others raises whatever it likes where shapes do not fit
            first = first or " ".join(f"{type(error).__name__}: {error}".split())
            continue
        return pixels, images.labels
    shapes = ", ".join(map(str, _DIGIT_SHAPES))
    raise ValueError(f"data digits must fit the model in one of the shapes {shapes}; the first: {first}")


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
