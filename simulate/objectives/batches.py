"""Data as batches: pairs of inputs and targets, each a tensor or a structure of tensors with samples first.

Data are iterated many times. An iterator is held in memory and refused if it does not end, and a `Tally` detects data
that change between passes. Data may also be a name, or a data set of single samples with `len` and items by number, as
`torch.utils.data.DataLoader` takes it. A sample is a pair (input, target) or a mapping with labels, of tensors, arrays,
numbers, lists of numbers, or images with an array interface, which become (C, H, W) in [0, 1] as in torchvision's
`ToTensor`. Text in a mapping is left out. Consecutive samples of one shape are stacked.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils import data as torch_data
from torch.utils._pytree import tree_map

from simulate import _memory, data as archives

_MOST_BATCHES = 20_000
"""Most batches of data of unknown length: more are taken for endless."""

_LABELS = ("labels", "label", "label_ids")
"""Names of the targets in a mapping, the usual one first."""

# --- iterating over data -----------------------------------------------------------------------------------------


def repeatable(data: Any, size: int | None = None) -> Iterable[Any]:
    """Return data that can be iterated repeatedly; one pair (inputs, targets) is one batch.

    A data set of single samples comes in batches of `size`, see `Stacked`.

    Raises
    ------
    ValueError
        If data cannot be iterated, or are an iterator of more than 20,000 batches or of more than half of the free
        memory.
    """
    if _is_pair(data) or carries_labels(data):
        return [data]
    if of_samples(data):
        return Stacked(data, size)
    if isinstance(data, Tensor | np.ndarray):
        raise ValueError(
            f"data must be a pair (inputs, targets) or batches of such pairs, got a single {type(data).__name__}"
        )
    if isinstance(data, Mapping):
        return [pair(data)]  # raises if labels are missing
    if not isinstance(data, Iterable):
        raise ValueError(
            f"data must be batches (inputs, targets) or one such pair, got {type(data).__name__}"
        )
    return held(data) if isinstance(data, Iterator) else data


def is_batch(data: Any) -> bool:
    """Return whether data are a single batch: a tuple, a mapping, a tensor or an array."""
    return isinstance(data, tuple | Mapping | Tensor | np.ndarray)


def _is_pair(data: Any) -> bool:
    if not isinstance(data, tuple) or len(data) != 2:
        return False
    if not all(isinstance(part, tuple | list) for part in data):
        return not all(isinstance(part, tuple | list) or carries_labels(part) for part in data)
    return _is_pair_of_several(*data)


def _is_pair_of_several(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Return whether a pair is several inputs and several targets of the same samples, not two batches.

    Raises
    ------
    ValueError
        If it may be either.
    """
    every = [*first, *second]
    if not all(isinstance(part, Tensor | np.ndarray) and part.ndim for part in every):
        return False
    same_samples = len({len(part) for part in every}) == 1
    if len(first) != 2 or len(second) != 2:  # no batch is a triple
        return same_samples
    if any(a.shape[1:] != b.shape[1:] or a.dtype != b.dtype for a, b in zip(first, second, strict=True)):
        return same_samples
    if same_samples:
        raise ValueError(
            "data must be a list where it holds two batches, got a tuple, which may also be two inputs and two targets:"
            " give [(a, b), (y, t)] for two batches, [((a, b), (y, t))] for one"
        )
    return False


def held(data: Iterable[Any]) -> list[Any]:
    """Return all batches of data in a list.

    Raises
    ------
    ValueError
        If data do not end, see `repeatable`.

    Examples
    --------
    >>> import itertools
    >>> held(itertools.repeat((torch.ones(2, 1), torch.ones(2))))
    Traceback (most recent call last):
    ValueError: data must end, got more than 20000 batches; pass fewer and larger ones, or a list
    """
    if _sized(data):
        return list(data)
    most, total, found, addresses = _memory.available("cpu") / 2, 0, list[Any](), set[int]()
    for item in bounded(data):
        found.append(item)
        new = {place: size for place, size in _bytes_by_address(item).items() if place not in addresses}
        addresses.update(new)
        total += sum(new.values())
        if total > most:
            raise ValueError(
                f"data must end and fit into half of the free memory, {most / 2**30:.1f} GiB, got more after"
                f" {len(found)} batches; pass something to go through again, such as a DataLoader"
            )
    return found


def bounded(data: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches; refuse data of unknown length beyond a limit, see `repeatable`."""
    for count, item in enumerate(data):
        if count >= _MOST_BATCHES and not _sized(data):
            raise ValueError(
                f"data must end, got more than {_MOST_BATCHES} batches; pass fewer and larger ones, or a list"
            )
        yield item


def _sized(data: Any) -> bool:
    try:
        len(data)
    except (TypeError, NotImplementedError):  # as for a DataLoader of an iterable data set
        return False
    return True


def _bytes_by_address(item: Any) -> dict[int, int]:
    """Return the bytes of a batch by address, so that shared memory counts once."""
    if isinstance(item, Mapping | tuple | list):
        parts = item.values() if isinstance(item, Mapping) else item
        return dict(chain.from_iterable(_bytes_by_address(part).items() for part in parts))
    if isinstance(item, np.ndarray):
        return {item.ctypes.data: item.nbytes}
    return {item.data_ptr(): item.nbytes} if isinstance(item, Tensor) else {}


# --- batches -----------------------------------------------------------------------------------------------------


def carries_labels(item: Any) -> bool:
    """Return whether a batch, or a sample, is a mapping with labels.

    Examples
    --------
    >>> carries_labels({"input_ids": 1, "labels": 2}), carries_labels({"x": 1})
    (True, False)
    """
    return isinstance(item, Mapping) and any(name in item for name in _LABELS)


def pair(item: Any) -> tuple[Any, Any]:
    """Return inputs and targets of one batch.

    Raises
    ------
    ValueError
        If it is neither a pair nor a mapping with labels.
    """
    if isinstance(item, Mapping):
        name = next((name for name in _LABELS if name in item), None)
        if name is None:
            got = ", ".join(map(str, item))
            raise ValueError(
                f"data must give batches (inputs, targets), or mappings with {_LABELS[0]}, got {type(item).__name__}"
                f" of {got}"
            )
        return {key: part for key, part in item.items() if key != name}, item[name]
    if not isinstance(item, tuple | list) or len(item) != 2:
        length = f" of length {len(item)}" if isinstance(item, tuple | list) else ""
        raise ValueError(
            f"data must give batches (inputs, targets), got {type(item).__name__}{length}; one pair is a"
            " tuple (inputs, targets); for batches of another form give loss(model, batch)"
        )
    return item[0], item[1]


def placed(part: Any, like: Tensor) -> Any:
    """Move tensors and arrays to the device of `like`, floats in its type, narrow signed integers as int64."""
    if not isinstance(part, Tensor | np.ndarray):
        return _map_entries(part, lambda value: placed(value, like))
    tensor = as_tensor(part)
    if tensor.is_floating_point():
        return tensor.to(device=like.device, dtype=like.dtype)
    return tensor.to(device=like.device, dtype=torch.int64 if tensor.dtype in _NARROW else tensor.dtype)


_NARROW = (torch.int8, torch.int16, torch.int32)
"""Integer types that torch's losses do not take for classes. Bytes and booleans are kept: they may be masks."""


def as_tensor(part: Tensor | np.ndarray) -> Tensor:
    """Return an array of any byte order, strides and width as a tensor.

    Raises
    ------
    ValueError
        If the array is masked, since masked numbers would be taken for data; is on the meta device or sparse; or does
        not hold numbers.
    """
    if isinstance(part, Tensor):
        if part.is_meta:
            raise ValueError("data must hold numbers, got a tensor on the meta device, which has none")
        if part.layout != torch.strided:
            raise ValueError(f"data must hold dense tensors, got {part.layout}")
        return part.detach()
    if isinstance(part, np.ma.MaskedArray):
        raise ValueError(
            "data must hold plain arrays, got a masked one; leave the masked samples out, or fill them"
        )
    kind, width = part.dtype.kind, part.dtype.itemsize
    if kind not in "biufc":
        raise ValueError(f"data must hold arrays of numbers, got {part.dtype}")
    wide = {"f": np.float64, "c": np.complex128, "u": np.int64}.get(kind)
    odd = width > (1 if kind == "u" else 8)  # torch has few or none of these types
    # torch takes the byte order of the machine and no negative strides
    plain = np.ascontiguousarray(part, dtype=wide if odd and wide else part.dtype.newbyteorder("="))
    # torch warns of arrays that it cannot write into
    return torch.from_numpy(plain if plain.flags.writeable else plain.copy()).reshape(part.shape)


def _map_entries(part: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to the entries of a mapping or sequence; return anything else as it is."""
    if isinstance(part, Mapping):
        return {name: change(value) for name, value in part.items()}
    return tuple(change(value) for value in part) if isinstance(part, tuple | list) else part


def tensors(part: Any) -> Iterator[Tensor]:
    """Yield all tensors of inputs or targets, in order."""
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, Mapping | tuple):
        for value in part.values() if isinstance(part, Mapping) else part:
            yield from tensors(value)


def rows(part: Any) -> int:
    """Return the number of samples: the length of the first axis of the first tensor."""
    first = next(tensors(part), None)
    if first is None or first.ndim == 0:
        got = type(part).__name__ if first is None else "a single number; stack samples, as a DataLoader does"
        raise ValueError(f"data must hold tensors with samples along the first axis, got {got}")
    return len(first)


def sample_counts(*parts: Any) -> list[int]:
    """Return the distinct lengths of the tensors of inputs and targets, leaving out single numbers."""
    return list(dict.fromkeys(len(tensor) for part in parts for tensor in tensors(part) if tensor.ndim))


def cuttable(inputs: Any, targets: Any) -> bool:
    """Return whether samples are rows of all tensors, so that a batch can be cut."""
    return bool(sample_counts(inputs)) and len(sample_counts(inputs, targets)) == 1


Labelling = Callable[[Mapping[str, Any], Any], tuple[Any, Any]]
"""Function from a mapping and its labels to inputs and targets, see `simulate.objectives.forms.Labels`."""


class Batch(NamedTuple):
    """Inputs and targets, and the factor of their loss in the loss of all data."""

    inputs: Any
    targets: Any
    factor: float

    @property
    def samples(self) -> int:
        """Number of samples, the rows of the targets."""
        return rows(self.targets)

    @property
    def cuttable(self) -> bool:
        """Whether its samples can be taken apart."""
        return cuttable(self.inputs, self.targets)

    def part(self, samples: slice) -> Batch:
        """Return some of the samples with the same factor."""
        return self._replace(inputs=window(self.inputs, samples), targets=window(self.targets, samples))


def of_several(batches: Iterator[Batch]) -> Batch:
    """Return the first batch with several samples that adds to the loss; if there is none, one that adds to it."""
    found = next(batches)
    for batch in chain([found], batches):
        if batch.factor and batch.samples > 1:
            return batch
        found = found if found.factor else batch
    return found


def window(part: Any, samples: Any) -> Any:
    """Return some samples of inputs or targets, by a slice or a tensor of indices."""
    if isinstance(part, Tensor):
        return part[samples] if part.ndim else part
    return _map_entries(part, lambda value: window(value, samples))


def joined(parts: list[Any]) -> Any:
    """Concatenate inputs or targets of several batches.

    Raises
    ------
    ValueError
        If their structures or shapes differ.
    """
    first = parts[0]
    if isinstance(first, Mapping) and all(isinstance(p, Mapping) and p.keys() == first.keys() for p in parts):
        return {name: joined([part[name] for part in parts]) for name in first}
    if isinstance(first, tuple) and all(isinstance(p, tuple) and len(p) == len(first) for p in parts):
        return tuple(joined(list(each)) for each in zip(*parts, strict=True))
    if isinstance(first, Tensor) and all(
        isinstance(p, Tensor) and p.shape[1:] == first.shape[1:] for p in parts
    ):
        return torch.cat(parts) if first.ndim else first
    if any(isinstance(p, Mapping | tuple | Tensor) for p in parts):
        shown = (str(tuple(p.shape[1:])) if isinstance(p, Tensor) else type(p).__name__ for p in parts)
        shapes = " and ".join(dict.fromkeys(shown))
        raise ValueError(f"data must hold samples of one shape, got {shapes}; pad them, or take one batch")
    return first


def cuts(samples: int, most: int) -> Iterator[slice]:
    """Return consecutive slices of at most `most` samples."""
    return (slice(start, min(start + most, samples)) for start in range(0, samples, most))


def copied(part: Any) -> Any:
    """Return a copy of inputs or targets."""
    return part.clone() if isinstance(part, Tensor) else _map_entries(part, copied)


# --- passes through data, which must all give the same samples ------------------------------------------

_AT_ONCE = 1 << 22
"""Numbers converted to double precision at a time."""

_SAME = 1e-9
"""Tolerance of sums over the same rows in another order, relative: far above rounding in float64."""


class OtherDataError(ValueError):
    """Raised for data that change between passes."""


@dataclass
class Tally:
    """Order-independent summary of a pass through data: number of samples, and two sums over their numbers.

    Examples
    --------
    >>> first, second, third = Tally(), Tally(), Tally()
    >>> x, y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1])
    >>> first.add(x, y), second.add(x.flip(0), y.flip(0)), third.add(x, y.flip(0))
    (None, None, None)
    >>> first.require(second)
    >>> first.require(third)
    Traceback (most recent call last):
    simulate.objectives.batches.OtherDataError: data must be the same at every pass, got 2 others: hold what ...
    """

    samples: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    scale: float = 0.0

    def add(self, inputs: Any, targets: Any, *, numbers: bool = True) -> None:
        """Add a batch, with or without its numbers."""
        self.samples += rows(targets)
        if not numbers:
            return
        each = _row_checksums(rows(targets), [*tensors(inputs), *tensors(targets)])
        self.sums[0] += float(each.sum())
        self.sums[1] += float(each.square().sum())
        # checksums of both signs cancel in their sum, so its rounding is measured against their sizes
        self.scale += float(each.abs().sum())

    def require(self, other: Tally) -> None:
        """Refuse a later pass over other samples."""
        pairs = zip(self.sums, other.sums, (self.scale, self.sums[1]), strict=True)
        first, now = self.samples, other.samples
        if first == now and all(
            abs(one - two) <= _SAME * scale or (math.isnan(one) and math.isnan(two))
            for one, two, scale in pairs
        ):
            return
        got = f"{now} samples after {first}" if now != first else f"{now} others"
        raise OtherDataError(
            f"data must be the same at every pass, got {got}: hold what changes, as by list(data)"
        )


def _row_checksums(samples: int, tensors: list[Tensor]) -> Tensor:
    """Return a checksum of every sample: the sum of its numbers with distinct weights."""
    total = torch.zeros(samples, dtype=torch.float64)
    for place, tensor in enumerate(tensors, start=1):
        numbers = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        aligned = numbers.ndim > 0 and len(numbers) == samples
        flat = numbers.reshape(samples if aligned else 1, -1)
        weights = place + torch.arange(1.0, flat.shape[1] + 1, dtype=torch.float64, device=flat.device).cos()
        parts = [part.double() @ weights for part in flat.split(max(1, _AT_ONCE // max(1, flat.shape[1])))]
        total += torch.cat(parts).cpu()  # a number for all samples is added to each
    return total


# --- data by name, and data sets of single samples -------------------------------------------------------------

DIGITS = "digits"
"""Name of the embedded images."""

_DIGIT_SHAPES = {
    (1, 28, 28): (1, 28, 28),
    (784,): (1, 28, 28),
    (1, 8, 8): (1, 8, 8),
    (64,): (1, 8, 8),
    (3, 32, 32): (3, 32, 32),
}
"""Input shapes that a model may take, with the image size that each is made from."""

SIZE = 128
"""Default number of samples in a batch."""


def named_data(name: str | os.PathLike[str], run: Callable[[Tensor], object]) -> tuple[Any, Any]:
    """Return inputs and targets of an ``.npz`` file, or the embedded digits in the first shape that a model takes.

    Parameters
    ----------
    name
        The path of a file with ``x_train, y_train`` or ``x, y``, whose inputs of type uint8 are divided by 255; or
        ``"digits"``.
    run
        Calls the model on two images, and raises if it takes another shape.

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
    for shape, size in _DIGIT_SHAPES.items():
        images = archives.digits(size)
        pixels = images.images.reshape(-1, *shape)
        try:
            run(torch.tensor(pixels[:2]))  # two: batch normalisation in training mode needs them
        except Exception as error:  # a model may raise anything on a wrong shape
            first = first or " ".join(f"{type(error).__name__}: {error}".split())
            continue
        return pixels, images.labels
    shapes = ", ".join(map(str, _DIGIT_SHAPES))
    raise ValueError(f"data digits must fit the model in one of the shapes {shapes}; the first: {first}")


class Stacked:
    """Iterable of batches of consecutive samples of a data set.

    Parameters
    ----------
    data
        Data set with `len` and samples by number.
    size
        Most samples in a batch.

    Raises
    ------
    ValueError
        When iterated, if an item is not a sample.

    Examples
    --------
    >>> samples = torch_data.TensorDataset(torch.eye(3), torch.tensor([0, 1, 2]))
    >>> [tuple(x.shape) for x, _ in Stacked(samples, 2)]
    [(2, 3), (1, 3)]
    """

    def __init__(self, data: Any, size: int | None = None) -> None:
        self.data, self._size = data, size or SIZE

    def __len__(self) -> int:
        return len(self.data)  # an upper bound of the number of batches

    def __iter__(self) -> Iterator[Any]:
        together, before = list[Any](), None
        for place in range(len(self.data)):
            sample = _sample(self.data[place])
            shapes = tree_map(lambda part: part.shape, sample)
            if together and (len(together) == self._size or shapes != before):
                yield torch_data.default_collate(together)
                together = []
            before = shapes
            together.append(sample)
        if together:
            yield torch_data.default_collate(together)


def of_samples(data: Any) -> bool:
    """Return whether data are a data set of single samples, not batches.

    These are a torch data set, one with columns as in `datasets`, or anything with `len` and items by number whose
    first item has a single number as target, or is a mapping without arrays.

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
    except (TypeError, KeyError, IndexError):  # some other kind of mapping, say
        return False
    if isinstance(first, Mapping):
        return not any(isinstance(part, Tensor | np.ndarray) and part.ndim for part in first.values())
    last = first[-1] if isinstance(first, tuple | list) and len(first) == 2 else None
    return isinstance(last, Number) or (isinstance(last, Tensor | np.ndarray) and not last.ndim)


def _sample(item: Any) -> Any:
    if isinstance(item, Mapping):
        # text is left out
        first = {n: part[0] if isinstance(part, list | tuple) and part else part for n, part in item.items()}
        kept = (
            name for name, part in first.items() if part is not None and not isinstance(part, str | bytes)
        )
        return {name: _numbers(item[name]) for name in kept}
    if isinstance(item, tuple | list) and len(item) == 2:
        return tuple(_sample(part) if isinstance(part, Mapping) else _numbers(part) for part in item)
    length = f" of length {len(item)}" if isinstance(item, tuple | list) else ""
    raise ValueError(
        "data must give samples (input, target), or mappings with labels, got"
        f" {type(item).__name__}{length}; wrap the data set"
    )


def _numbers(part: Any) -> Tensor:
    if isinstance(part, Tensor):
        return part
    own = isinstance(part, np.ndarray | np.generic)
    if not own and hasattr(
        part, "__array_interface__"
    ):  # an image: channels first, bytes as floats in [0, 1]
        pixels = np.asarray(part)
        pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
        image = torch.from_numpy(np.ascontiguousarray(pixels))
        return image.float() / 255 if image.dtype == torch.uint8 else image.float()
    try:
        return torch.as_tensor(part if own else np.asarray(part))  # Python floats stay in double precision
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"data must give samples of numbers, got {type(part).__name__}; give the data set a transform to tensors"
        ) from None
