"""Whether a loss may be taken in parts: that of some samples is the mean, or the sum, of what parts of them have.

It is not if the loss function divides by something else than the samples, as by the weights of their classes, takes a
root of the mean or compares samples; nor if the model has other outputs for a sample beside other samples. Both are
asked of a few samples, at most `SAMPLES`, parted in three ways: at most five forward passes of so few.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from simulate.batches import cuttable, joined, moved, rows, tensors, window

__all__ = ["SAMPLES", "SUM", "UNKNOWN", "Asked", "chosen", "coupling"]

SAMPLES = 32

UNKNOWN = "the loss of a few samples cannot be had"
"""Of a model or a loss for one size of batch alone."""

_FEWER = "the loss of fewer samples cannot be had"
_MIXED = "the model gives a sample other outputs beside other samples"
SUM = "the loss of a batch is the sum of those of its parts"
_NEITHER = {
    "mean": "the loss of a batch is not the mean of those of its parts",
    "sum": "the loss of a batch is not the sum of those of its parts",
}

_EACH = 4
"""Samples of a batch that is not alone."""

_ROUNDINGS = 1e4
"""Outputs that differ by more than so many roundings of the largest differ."""

_SPLITS: tuple[Callable[[int], Sequence[int]], ...] = (
    lambda count: range(count // 2),
    lambda count: range(0, count, 2),
    lambda count: sorted(np.random.default_rng(0).permutation(count)[: max(1, count // 3)].tolist()),
)
"""One part of so many pieces; the other is the rest."""

Piece = tuple[Any, Any]
"""Inputs and targets of one sample, or of a batch whose samples cannot be told apart."""


class Asked(Protocol):
    """What is needed of an `objectives.Objective`."""

    criterion: Any
    reduction: Any

    def leaves(self) -> tuple[Tensor, ...]:
        """The parameters."""
        ...

    def outputs(self, leaves: Sequence[Tensor], inputs: Any) -> Tensor:
        """Those of the model."""
        ...

    def weight(self, targets: Any) -> float:
        """What a batch counts for."""
        ...


# --- the samples that are asked ------------------------------------------------------------------------------------


def chosen(batches: Iterable[Piece]) -> list[Piece]:
    """A few samples of all batches, one by one; if some batch cannot be cut the first two batches, whole.

    Of one batch alone they are spread over it, and among them are one of every class, or the extremes of the numbers
    of the targets; of several four each, of every second, fourth, ... batch where those are too many.
    """
    groups, whole, stride, apart = list[list[Piece]](), list[Piece](), 1, True
    for place, (inputs, targets) in enumerate(batches):
        whole += [(inputs, targets)] * (place < 2)
        apart = apart and cuttable(inputs, targets)
        if apart and place % stride == 0:
            groups.append(_samples(inputs, targets, _EACH))
        if len(groups) > SAMPLES // _EACH:
            groups, stride = groups[::2], 2 * stride
    if not apart:
        whole = whole if len(whole) > 1 else []
    elif len(whole) > 1:
        whole = list(itertools.chain.from_iterable(groups))
    else:
        whole = _samples(*whole[0], SAMPLES) if whole else []
    return [piece for piece in whole if _kind(piece) == _kind(whole[0])]


def _samples(inputs: Any, targets: Any, most: int) -> list[Piece]:
    parts = [slice(row, row + 1) for row in _notable(targets, most)]
    return [(_copied(inputs, part), _copied(targets, part)) for part in parts]


def _copied(part: Any, samples: slice) -> Any:
    """Not a view, which would hold on to the whole batch."""
    return window(part, torch.arange(samples.start, samples.stop))


def _notable(targets: Any, most: int) -> list[int]:
    """Samples that differ in what a loss may weigh them by."""
    count, half = rows(targets), most // 2
    if count <= most:
        return list(range(count))
    found = set(np.linspace(0, count - 1, half).astype(int).tolist())
    for tensor in tensors(targets):
        if tensor.ndim and not tensor.is_complex():
            flat = tensor.reshape(count, -1)
            found.update((_extremes if flat.is_floating_point() else _values)(flat, half))
    return sorted(found)[:: math.ceil(len(found) / most)]


def _values(flat: Tensor, most: int) -> list[int]:
    """Of every whole number the first that has it; the lowest and the highest of many."""
    _, first = np.unique(flat.cpu().numpy(), return_index=True)
    found = (first // flat.shape[1]).tolist()
    return found if len(found) <= most else found[: most // 2] + found[-(most // 2) :]


def _extremes(flat: Tensor, most: int) -> list[int]:
    """Of some columns those with the largest and the smallest number."""
    width = flat.shape[1]
    columns = flat[:, torch.linspace(0, width - 1, min(width, most // 2)).long().to(flat.device)]
    return [int(row) for row in torch.cat([columns.argmax(0), columns.argmin(0)])]


def _kind(piece: Piece) -> list[tuple[tuple[int, ...], torch.dtype]]:
    return [(tuple(tensor.shape[1:]), tensor.dtype) for part in piece for tensor in tensors(part)]


# --- the question --------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Some of the pieces, with the outputs that the model has for them alone."""

    outputs: Tensor
    targets: Any
    weight: float


def coupling(asked: Asked, pieces: Sequence[Piece], *, loss_alone: bool = False) -> str:
    """What couples these samples, in words; nothing if the loss may be taken in parts, or draws at random.

    To be used within `parametric.as_found`. With `loss_alone` the outputs are those that the samples have together.
    """
    if len(pieces) < 2:
        return ""
    with torch.no_grad():
        try:
            whole = _part(asked, pieces)
            loss = _Loss(asked, whole)
        except Exception:  # code of others, on samples that it was not made for
            return UNKNOWN
        if not math.isfinite(loss.whole) or not bool(whole.outputs.isfinite().all()):
            return UNKNOWN
        for split in _SPLITS:
            inside = set(split(len(pieces)))
            sides = [[i for i in range(len(pieces)) if (i in inside) == side] for side in (True, False)]
            try:
                found = _coupled(asked, loss, whole, pieces, sides, loss_alone)
            except Exception:  # code of others, that needs more samples
                return _FEWER
            if found:
                return "" if found == _MIXED and _draws(asked, whole, pieces) else found
    return ""


def _part(asked: Asked, pieces: Sequence[Piece]) -> _Part:
    inputs, targets = (joined(list(each)) for each in zip(*pieces, strict=True))
    return _Part(asked.outputs(asked.leaves(), inputs), targets, asked.weight(targets))


def _coupled(
    asked: Asked,
    loss: _Loss,
    whole: _Part,
    pieces: Sequence[Piece],
    sides: Sequence[Sequence[int]],
    loss_alone: bool,
) -> str:
    sizes = [rows(targets) for _, targets in pieces]
    by_row = whole.outputs.ndim > 0 and len(whole.outputs) == sum(sizes)
    own = whole.outputs.split(sizes) if by_row else ()
    parts = list[_Part]()
    for side in sides:
        taken = [pieces[i] for i in side]
        if not by_row:  # one number for all of them, say
            parts.append(_part(asked, taken))
            continue
        outputs = torch.cat([own[i] for i in side])
        if not loss_alone and not _alike(_part(asked, taken).outputs, outputs):
            return _MIXED
        targets = joined([y for _, y in taken])
        parts.append(_Part(outputs, targets, asked.weight(targets)))
    return loss.coupled(parts)


def _alike(found: Tensor, expected: Tensor) -> bool:
    if found.shape != expected.shape:
        return False
    least = _ROUNDINGS * torch.finfo(expected.dtype).eps * float(expected.abs().max())
    return float((found - expected).abs().max()) <= least


def _draws(asked: Asked, whole: _Part, pieces: Sequence[Piece]) -> bool:
    """Whether the model has other outputs for the same samples."""
    return not _alike(_part(asked, pieces).outputs, whole.outputs)


class _Loss:
    """The loss function of given outputs, in double precision where it can be had: there rounding couples nothing."""

    def __init__(self, asked: Asked, whole: _Part) -> None:
        self._asked, self._part = asked, whole
        self._criterion = _in_double(asked.criterion, whole) or asked.criterion
        found = self._criterion(whole.outputs.clone(), whole.targets)
        self.whole, self._eps = float(found), torch.finfo(found.dtype).eps

    def coupled(self, parts: Sequence[_Part]) -> str:
        """What is wrong with the mean, or the sum, of parts of it."""
        losses = [self._of(part) for part in parts]
        expected = self._together(parts, losses)
        scale = max(map(abs, [self.whole, *losses]), default=0.0)
        least = math.sqrt(self._eps) * scale + 10 * self._eps * float(self._part.outputs.abs().max())
        if abs(self.whole - expected) <= least or self._of(self._part) != self.whole:
            return ""
        return SUM if abs(self.whole - sum(losses)) <= least else _NEITHER[self._asked.reduction]

    def _of(self, part: _Part) -> float:
        return float(self._criterion(part.outputs.clone(), part.targets))

    def _together(self, parts: Sequence[_Part], losses: Sequence[float]) -> float:
        if self._asked.reduction == "sum":
            return sum(losses)
        total = sum(part.weight for part in parts)
        if not math.isclose(total, self._part.weight, rel_tol=1e-6):  # a count that does not add up either
            return math.nan
        weighed = ((part.weight / total, loss) for part, loss in zip(parts, losses, strict=True))
        return sum(share * loss for share, loss in weighed if share)  # the mean over nothing is no number


def _in_double(criterion: Any, part: _Part) -> Callable[[Tensor, Any], Tensor] | None:
    """None of what holds numbers of its own in single precision that it will not mix with others."""
    like = part.outputs.new_zeros((), dtype=torch.float64)
    try:
        own = copy.deepcopy(criterion).double() if isinstance(criterion, nn.Module) else criterion
        own(part.outputs.to(like, copy=True), moved(part.targets, like))
    except Exception:
        return None
    return lambda outputs, targets: own(outputs.double(), moved(targets, like))
