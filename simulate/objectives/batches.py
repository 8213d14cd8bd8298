"""Batches of data: pairs of inputs and targets, each a tensor or a structure of tensors with samples first.

Data are gone through many times: what can be gone through once is held, and what does not end is refused. That they are
the same each time is seen in `simulate.objectives.passes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from simulate import _memory
from simulate.objectives.datasets import Stacked, of_samples

__all__ = [
    "Batch",
    "Labelling",
    "as_tensor",
    "bounded",
    "carries_labels",
    "copied",
    "cuts",
    "cuttable",
    "held",
    "is_batch",
    "joined",
    "of_several",
    "pair",
    "placed",
    "repeatable",
    "rows",
    "sample_counts",
    "tensors",
    "window",
]

_MOST = 20_000
"""Batches that data may give which do not tell their number: more are taken for endless."""

_LABELS = ("labels", "label", "label_ids")
"""Names of the targets in a mapping, the usual one first."""

# --- going through data ------------------------------------------------------------------------------------------


def repeatable(data: Any, size: int | None = None) -> Iterable[Any]:
    """Data that can be gone through again and again; one pair (inputs, targets) is one batch.

    A data set of single samples comes in batches of `size`, see `simulate.objectives.datasets`.

    Raises
    ------
    ValueError
        If they cannot be gone through at all, or are an iterator that does not end: that gives more than 20,000
        batches, or more than half of the free memory holds.
    """
    if _is_pair(data) or carries_labels(data):
        return [data]
    if of_samples(data):
        return Stacked(data, size)
    if isinstance(data, Tensor | np.ndarray):
        raise ValueError(
            f"data must be a pair (inputs, targets) or batches of such pairs, got a single {type(data).__name__};"
            " for other batches give loss(model, batch)"
        )
    if isinstance(data, Mapping):
        return [pair(data)]  # which says what it lacks
    if not isinstance(data, Iterable):
        raise ValueError(
            f"data must be batches (inputs, targets) or one such pair, got {type(data).__name__}"
        )
    return held(data) if isinstance(data, Iterator) else data


def is_batch(data: Any) -> bool:
    """Whether data are one batch of whatever kind, not several: a tuple, a mapping, a tensor or an array."""
    return isinstance(data, tuple | Mapping | Tensor | np.ndarray)


def _is_pair(data: Any) -> bool:
    if not isinstance(data, tuple) or len(data) != 2:
        return False
    if not all(isinstance(part, tuple | list) for part in data):
        return not all(isinstance(part, tuple | list) or carries_labels(part) for part in data)
    return _is_pair_of_several(*data)


def _is_pair_of_several(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether these are several inputs and several targets of the same samples, not two batches.

    Raises
    ------
    ValueError
        If they may be either.
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
            "data must be a list where it holds two batches, got ((a, b), (y, t)), which may also be two inputs and two"
            " targets: give [(a, b), (y, t)] for two batches, [((a, b), (y, t))] for one"
        )
    return False


def held(data: Iterable[Any]) -> list[Any]:
    """All batches at once, of data that end.

    Raises
    ------
    ValueError
        If they do not, see `repeatable`.

    Examples
    --------
    >>> import itertools
    >>> held(itertools.repeat((torch.ones(2, 1), torch.ones(2))))
    Traceback (most recent call last):
    ValueError: data must end, got more than 20000 batches; pass fewer and larger ones, or a list
    """
    if _sized(data):
        return list(data)
    most, sizes, found = _memory.available("cpu") / 2, dict[int, int](), list[Any]()
    total = 0
    for item in bounded(data):
        found.append(item)
        for place, size in _stored(item):
            total += size - sizes.get(place, 0)
            sizes[place] = size
        if total > most:
            raise ValueError(
                f"data must end and fit into half of the free memory, {most / 2**30:.1f} GiB, got more after"
                f" {len(found)} batches; pass something to go through again and again, such as a DataLoader"
            )
    return found


def bounded(data: Iterable[Any]) -> Iterator[Any]:
    """The batches; those of data that do not tell their number up to a limit, see `repeatable`."""
    for count, item in enumerate(data):
        if count >= _MOST and not _sized(data):
            raise ValueError(
                f"data must end, got more than {_MOST} batches; pass fewer and larger ones, or a list"
            )
        yield item


def _sized(data: Any) -> bool:
    try:
        len(data)
    except (TypeError, NotImplementedError):  # so a DataLoader of a data set that does not tell
        return False
    return True


def _stored(item: Any) -> Iterator[tuple[int, int]]:
    """Where the numbers of a batch lie, and how many bytes they are."""
    if isinstance(item, np.ndarray):
        yield item.__array_interface__["data"][0], item.nbytes
    elif isinstance(item, Tensor):
        yield item.data_ptr(), item.nbytes
    elif isinstance(item, Mapping | tuple | list):
        for part in item.values() if isinstance(item, Mapping) else item:
            yield from _stored(part)


# --- batches -----------------------------------------------------------------------------------------------------


def carries_labels(item: Any) -> bool:
    """Whether a batch, or a sample, is a mapping with its labels in it.

    Examples
    --------
    >>> carries_labels({"input_ids": 1, "labels": 2}), carries_labels({"x": 1})
    (True, False)
    """
    return isinstance(item, Mapping) and any(name in item for name in _LABELS)


def pair(item: Any) -> tuple[Any, Any]:
    """Inputs and targets of one batch.

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
        alone = "; one pair is a tuple (inputs, targets)" if isinstance(item, Tensor | np.ndarray) else ""
        raise ValueError(
            f"data must give batches (inputs, targets), got {type(item).__name__}{length}{alone}; for batches of"
            " another form give loss(model, batch)"
        )
    return item[0], item[1]


def placed(part: Any, like: Tensor) -> Any:
    """Tensors on the device of another, floating ones of its type, whole numbers wide; arrays as tensors."""
    if not isinstance(part, Tensor | np.ndarray):
        return _each(part, lambda value: placed(value, like))
    tensor = as_tensor(part)
    if tensor.is_floating_point():
        return tensor.to(device=like.device, dtype=like.dtype)
    return tensor.to(device=like.device, dtype=torch.int64 if tensor.dtype in _NARROW else tensor.dtype)


_NARROW = (torch.int8, torch.int16, torch.int32)
"""What losses of torch do not take for classes. Bytes and truth values stay: they may be masks."""


def as_tensor(part: Tensor | np.ndarray) -> Tensor:
    """Numbers, in an array of whatever byte order, strides and width, as a tensor.

    Raises
    ------
    ValueError
        If they are masked, since what is behind the mask would be taken for data, are on the meta device, or sparse, or
        are no numbers.
    """
    if isinstance(part, np.ndarray):
        return _of_array(part)
    if part.is_meta:
        raise ValueError("data must hold numbers, got a tensor on the meta device, which has none")
    if part.layout != torch.strided:
        raise ValueError(f"data must hold dense tensors, got {part.layout}")
    return part.detach()


def _of_array(array: np.ndarray) -> Tensor:
    if isinstance(array, np.ma.MaskedArray):
        raise ValueError(
            "data must hold plain arrays, got a masked one; leave the masked samples out, or fill them"
        )
    if array.dtype.kind not in "biufc":
        raise ValueError(f"data must hold arrays of numbers, got {array.dtype}")
    wide = {"f": np.float64, "c": np.complex128, "u": np.int64}.get(array.dtype.kind)
    odd = array.dtype.itemsize > (1 if array.dtype.kind == "u" else 8)  # of which torch knows few or none
    plain = np.ascontiguousarray(array, dtype=wide if odd and wide else array.dtype.newbyteorder("="))
    return torch.from_numpy(plain if plain.flags.writeable else plain.copy()).reshape(array.shape)


def _each(part: Any, change: Callable[[Any], Any]) -> Any:
    """A structure of tensors with what it holds changed."""
    if isinstance(part, Mapping):
        return {name: change(value) for name, value in part.items()}
    return tuple(change(value) for value in part) if isinstance(part, tuple | list) else part


def tensors(part: Any) -> Iterator[Tensor]:
    """All tensors of inputs or targets, in their order."""
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, Mapping | tuple):
        for value in part.values() if isinstance(part, Mapping) else part:
            yield from tensors(value)


def rows(part: Any) -> int:
    """Samples of inputs or targets: length of the first axis of the first tensor."""
    first = next(tensors(part), None)
    if first is None or first.ndim == 0:
        got = type(part).__name__ if first is None else "a single number; stack samples, as a DataLoader does"
        raise ValueError(f"data must hold tensors with samples along the first axis, got {got}")
    return len(first)


def sample_counts(*parts: Any) -> list[int]:
    """Different lengths of the tensors of inputs and targets; numbers for all samples have none."""
    return list(dict.fromkeys(len(tensor) for part in parts for tensor in tensors(part) if tensor.ndim))


def cuttable(inputs: Any, targets: Any) -> bool:
    """Whether some of the samples are the same rows of all tensors."""
    return bool(sample_counts(inputs)) and len(sample_counts(inputs, targets)) == 1


Labelling = Callable[[Mapping[str, Any], Any], tuple[Any, Any]]
"""What makes inputs and targets of a mapping and its labels, see `simulate.objectives.labels`."""


class Batch(NamedTuple):
    """Inputs and targets, and the factor of their loss in the loss of all data."""

    inputs: Any
    targets: Any
    factor: float

    def part(self, samples: slice) -> Batch:
        """Some of the samples."""
        return self._replace(inputs=window(self.inputs, samples), targets=window(self.targets, samples))


def of_several(batches: Iterator[Batch]) -> Batch:
    """The first that has several samples and adds to the loss; if there is none, one that adds to it."""
    found = next(batches)
    for batch in chain([found], batches):
        if batch.factor and rows(batch.targets) > 1:
            return batch
        found = found if found.factor else batch
    return found


def window(part: Any, samples: Any) -> Any:
    """Some of the samples of inputs or targets, a slice or a tensor of their numbers."""
    if isinstance(part, Tensor):
        return part[samples] if part.ndim else part
    return _each(part, lambda value: window(value, samples))


def joined(parts: list[Any]) -> Any:
    """Inputs or targets of several batches in one.

    Raises
    ------
    ValueError
        If they are not alike.
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
        shapes = " and ".join(dict.fromkeys(_shown(part) for part in parts))
        raise ValueError(f"data must hold samples of one shape, got {shapes}; pad them, or take one batch")
    return first


def _shown(part: Any) -> str:
    return str(tuple(part.shape[1:])) if isinstance(part, Tensor) else type(part).__name__


def cuts(samples: int, most: int) -> Iterator[slice]:
    """Samples in windows of at most so many, one after the other."""
    return (slice(start, min(start + most, samples)) for start in range(0, samples, most))


def copied(part: Any) -> Any:
    """Inputs or targets in memory of their own."""
    return part.clone() if isinstance(part, Tensor) else _each(part, copied)
