"""Passes through data, of which everything measured rests on their being the same: what loads anew is summed up.

A `Tally` counts in what a pass gave, whatever its order, for comparison with the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from simulate.objectives.batches import (
    Labelling,
    bounded,
    carries_labels,
    cuttable,
    pair,
    placed,
    rows,
    sample_counts,
    tensors,
)

__all__ = ["OtherDataError", "Tally", "given"]

_AT_ONCE = 1 << 22
"""Numbers that are made double at a time."""

_SAME = 1e-9
"""Relative difference of sums over the same rows in another order, far above rounding in float64."""


def given(
    data: Iterable[Any], tally: Tally, *, like: Tensor, most: int | None, labels: Labelling
) -> Iterator[tuple[Any, Any]]:
    """The batches as they are given, without empty ones, on the device of a tensor; counted in as they go.

    Of a mapping with labels `labels` makes inputs and targets.

    Raises
    ------
    ValueError
        If one is larger than `most` and cannot be cut, or is none.
    """
    loaded = not isinstance(data, tuple | list)
    for item in bounded(data):
        first, second = pair(item)
        inputs, targets = placed(first, like), placed(second, like)
        if carries_labels(item):
            inputs, targets = labels(inputs, targets)
        size = rows(targets)
        _require_no_list_of_samples(first, inputs, targets)
        if most is not None and size > most and not cuttable(inputs, targets):
            got = " and ".join(map(str, sample_counts(inputs, targets)))
            raise ValueError(f"inputs and targets must be of one number of samples to be cut, got {got}")
        tally.add(inputs, targets, numbers=loaded)
        if size:  # of an empty batch nothing is left
            yield inputs, targets


def _require_no_list_of_samples(item: Any, inputs: Any, targets: Any) -> None:
    """A list of inputs stands for several that a model takes, not for its samples."""
    if isinstance(item, list) and len(item) == rows(targets) and not cuttable(inputs, targets):
        raise ValueError(
            f"inputs must be tensors with samples along the first axis, got a list of {len(item)} samples; stack them"
        )


class OtherDataError(ValueError):
    """Data that are not the same when they are gone through again."""


@dataclass
class Tally:
    """What a pass through data gave, whatever its order: samples, and two sums over their numbers.

    Examples
    --------
    >>> first, second, third = Tally(), Tally(), Tally()
    >>> x, y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1])
    >>> first.add(x, y), second.add(x.flip(0), y.flip(0)), third.add(x, y.flip(0))
    (None, None, None)
    >>> first.agrees(second), first.agrees(third)
    (True, False)
    """

    samples: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    scale: float = 0.0

    def add(self, inputs: Any, targets: Any, *, numbers: bool = True) -> None:
        """Count in a batch, with its numbers or without."""
        self.samples += rows(targets)
        if not numbers:
            return
        each = _folded(rows(targets), [*tensors(inputs), *tensors(targets)])
        self.sums[0] += float(each.sum())
        self.sums[1] += float(each.square().sum())
        self.scale += float(each.abs().sum())

    def agrees(self, other: Tally) -> bool:
        """Whether both were of the same samples."""
        pairs = zip(self.sums, other.sums, (self.scale, self.sums[1]), strict=True)
        return self.samples == other.samples and all(
            abs(one - two) <= _SAME * scale or (math.isnan(one) and math.isnan(two))
            for one, two, scale in pairs
        )

    def require(self, other: Tally) -> None:
        """Refuse a later pass that was not of the same samples."""
        if self.agrees(other):
            return
        first, now = self.samples, other.samples
        got = f"{now} samples after {first}" if now != first else f"{now} others"
        raise OtherDataError(
            f"data must be the same at every pass, got {got}: hold what changes, as by list(data)"
        )


def _folded(samples: int, tensors: list[Tensor]) -> Tensor:
    """One number for every sample, into which all of its numbers go with weights of their own."""
    total = torch.zeros(samples, dtype=torch.float64)
    for place, tensor in enumerate(tensors, start=1):
        numbers = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        aligned = numbers.ndim > 0 and len(numbers) == samples
        flat = numbers.reshape(samples if aligned else 1, -1)
        weights = place + torch.arange(1.0, flat.shape[1] + 1, dtype=torch.float64, device=flat.device).cos()
        parts = [part.double() @ weights for part in flat.split(max(1, _AT_ONCE // max(1, flat.shape[1])))]
        total += torch.cat(parts).cpu()  # one that is the same for all samples goes to each
    return total
