"""Samples of all kinds as one pair of inputs and targets: joined and drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, Subset

from simulate.objectives.batches import (
    Labelling,
    as_tensor,
    carries_labels,
    cuttable,
    held,
    joined,
    of_samples,
    pair,
    placed,
    repeatable,
    rows,
    sample_counts,
    window,
)
from simulate.objectives.restoring import preserve_state
from verify.practice.loading.foreign import calling


def fewer(data: Any, samples: int, seed: int) -> Any:
    """Return a random subset of a data set, or of a loader over one, as drawn by `subsample`; other data unchanged.

    Examples
    --------
    >>> from torch.utils.data import TensorDataset
    >>> [len(fewer(TensorDataset(torch.ones(9, 2), torch.ones(9)), n, seed=0)) for n in (4, 20)]
    [4, 9]
    """
    loader = data if isinstance(data, DataLoader) else None
    source: Any = data if loader is None else loader.dataset
    if not of_samples(source) or not (loader is None or _covers_data_set(loader)):
        return data
    if type(samples) is bool or not isinstance(samples, int | np.integer) or not 1 <= samples < len(source):
        return data
    some = Subset(source, _sample_indices(len(source), samples, seed).tolist())
    if loader is None:
        return some
    return DataLoader(some, batch_size=loader.batch_size, collate_fn=loader.collate_fn)


def _covers_data_set(loader: DataLoader[Any]) -> bool:
    """Return whether a loader gives all samples of its data set, in whatever order, in batches that it makes itself."""
    if type(loader).__iter__ is not DataLoader.__iter__ or loader.batch_size is None:
        return False
    known = type(loader.sampler) in (SequentialSampler, RandomSampler)
    return known and not getattr(loader.sampler, "replacement", False)


def gathered(data: Any, like: Tensor, labels: Labelling, *, whole: bool = False) -> tuple[Any, Any]:
    """All samples of the batches in one, on the device and in the type of the parameters.

    Of a mapping with labels `labels` makes inputs and targets. With `whole` targets are structures of tensors, as they
    are to stay.
    """
    # A loader may shuffle or augment: its draws leave no trace.
    with preserve_state(None, training=False), calling("data", "be read as batches (inputs, targets)"):
        items = list(held(repeatable(data)))
        batches = [pair(item) for item in items]
    if not batches:
        raise ValueError("data must hold at least one sample, got no batch")
    inputs = [_to_model_inputs(x, like, scaled=not whole) for x, _ in batches]
    targets = [y if whole else placed(_integers_as_int64(_tensor("targets", y)), like) for _, y in batches]
    for place, item in enumerate(items):
        if carries_labels(item):
            inputs[place], targets[place] = labels(inputs[place], targets[place])
    for x, y in zip(inputs, targets, strict=True):
        if not cuttable(x, y):
            got = " and ".join(map(str, sample_counts(x, y)))
            raise ValueError(f"inputs and targets must have the same number of samples, got {got}")
    if not sum(map(rows, targets)):
        raise ValueError("data must hold at least one sample, got none")
    return joined(inputs), joined(targets)


def _to_model_inputs(part: Any, like: Tensor, *, scaled: bool) -> Any:
    """Return inputs as the model gets them; bytes in a mapping may be tokens and become integers."""
    if isinstance(part, Mapping):
        return {name: _to_model_inputs(value, like, scaled=False) for name, value in part.items()}
    if isinstance(part, tuple | list):
        return tuple(_to_model_inputs(value, like, scaled=scaled) for value in part)
    tensor = _tensor("inputs", part)
    if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
        raise ValueError("inputs must be finite, got NaN or infinity")
    if scaled and tensor.dtype == torch.uint8:
        return placed(tensor.double() / 255, like)
    return placed(tensor if tensor.dtype == torch.bool else _integers_as_int64(tensor), like)


def _tensor(name: str, part: Any) -> Tensor:
    """Return an array or tensor of real numbers as a tensor that keeps its number type."""
    if isinstance(part, Tensor) or (isinstance(part, np.ndarray) and part.dtype.kind in "biuf"):
        part = as_tensor(part)
    if not isinstance(part, Tensor) or part.is_complex() or part.ndim == 0:
        got = f"an array of {part.dtype}" if isinstance(part, Tensor | np.ndarray) else type(part).__name__
        if isinstance(part, Tensor) and not part.is_complex():
            got = "a single number; stack samples, as a DataLoader does"
        raise ValueError(f"{name} must be tensors or arrays of real numbers, samples first, got {got}")
    return part


def _integers_as_int64(part: Tensor) -> Tensor:
    """Return floats unchanged, integers and truth values as int64."""
    return part if part.is_floating_point() else part.long()


def subsample(inputs: Any, targets: Any, samples: int | None, seed: int) -> tuple[Any, Any]:
    """Return a random subset of the samples in their order; all of them if `fewer` has already drawn."""
    if samples is None:
        return inputs, targets
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer):
        raise ValueError(f"samples must be an integer, got {samples!r}")
    if rows(targets) == samples:
        return inputs, targets
    if not 1 <= samples <= rows(targets):
        raise ValueError(f"samples must be from 1 to {rows(targets)}, the number in the data, got {samples}")
    chosen = torch.as_tensor(_sample_indices(rows(targets), samples, seed))
    return window((inputs, targets), chosen)


def _sample_indices(count: int, samples: int, seed: int) -> NDArray[np.int64]:
    return np.sort(np.random.default_rng(seed).choice(count, samples, replace=False))
