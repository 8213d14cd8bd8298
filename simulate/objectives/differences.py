"""Derivatives of a loss against differences of its values and of its gradient, where these are conclusive.

Along a line through the parameters, in double precision, the loss has a slope, and so has each part of its gradient.
Differences over a step tell both without a derivative of that order. They are trusted where steps to either side, and
of two sizes, agree much better with each other than with the derivative, and beyond what rounding does: not at kinks,
in saturation, or where the loss bends within the smallest step. What is not conclusive contradicts nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from simulate import _memory
from simulate.objectives.asked import Asked
from simulate.objectives.batches import Batch, placed
from simulate.objectives.derivatives import normal, slopes
from simulate.objectives.padding import held_padding, pads
from simulate.objectives.parameters import Leaves, doubled
from simulate.objectives.restoring import as_found

__all__ = ["contradicted"]

_TOLERANCE = 1e-3
"""Differences and derivatives that are closer, relative to the larger, agree."""
_STEPS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
"""Of differences in double precision, relative to the parameters."""
_FIRST = 1e-5
"""Step to one side that is tried first: of those where neither rounding nor curvature matters much."""
_SURE = 10.0
"""How many times the doubt about a difference makes it conclusive."""
_COPIES = 16
"""Of the parameters, in double precision, that differences take."""
_DIRECTIONS = 3
"""Along which differences must contradict: at kinks those to both sides may agree along one by chance."""
_ROUNDINGS = 1e3
"""So many of a number are lost at most where nothing but the sum of a loss is rounded."""


def contradicted(objective: Asked, batch: Batch, *, again: bool) -> set[int]:
    """Where differences contradict the derivatives: 0 for those of the loss, then the parts of its gradient.

    Parameters
    ----------
    objective
        Loss of a model, whose calls give the same each time.
    batch
        Samples that model and loss take.
    again
        Whether parts of the model may run again in a backward pass.
    """
    if not _memory.is_free(_COPIES * 8 * objective.dim, objective.device):
        return set()
    try:
        found = _wrong(_Line(objective, batch, 0, again=again))
        for seed in range(1, _DIRECTIONS):
            found = found and found & _wrong(_Line(objective, batch, seed, again=again))
    except Exception:  # code of others, which may not run in double precision, or not at other parameters
        return set()
    return found


class _Change(NamedTuple):
    """By differences of a step: slopes along the line, how far those to either side are apart, and of rounding."""

    slopes: Sequence[Tensor]
    apart: Sequence[Tensor]
    rounding: Sequence[Tensor]


class _Line:
    """The loss and the parts of its gradient on a line through the parameters, in double precision."""

    def __init__(self, objective: Asked, batch: Batch, seed: int, *, again: bool) -> None:
        self._objective, self._again = objective, again
        self._start = tuple(leaf.detach().double() for leaf in objective.leaves())
        self._inputs, self._targets = (placed(p, self._start[0]) for p in (batch.inputs, batch.targets))
        self._criterion = doubled(objective.criterion)
        parts = zip(self._start, _sizes(self._start), strict=True)
        self._along = tuple(normal(p, seed=seed) * size for p, size in parts)
        self._pads = self._asked(batch)

    def _asked(self, batch: Batch) -> bool:
        with as_found(self._objective.model, self._objective.training), torch.enable_grad():
            return pads(self._objective.outputs(self._objective.leaves(), batch.inputs))

    def derivatives(self) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """What there is at the parameters, and its derivatives along the line as torch has them."""
        with self._guard(self._start) as leaves:
            loss = self._loss(leaves)
            gradient = slopes(loss, leaves, again=True)
            first = torch.stack([(g * v).sum() for g, v in zip(gradient, self._along, strict=True)]).sum()
            second = slopes(gradient, leaves, self._along)
        return [loss.detach(), *(g.detach() for g in gradient)], [first.detach(), *second]

    def at(self, step: float) -> Sequence[Tensor]:
        """Loss and parts of its gradient."""
        ends = zip(self._start, self._along, strict=True)
        with self._guard([torch.add(p, v, alpha=step) for p, v in ends]) as leaves:
            loss = self._loss(leaves)
            return [loss.detach(), *slopes(loss, leaves)]

    def change(self, step: float, here: Sequence[Tensor], rounding: Sequence[Tensor]) -> _Change:
        """By differences to both sides."""
        ends = [(f - h, h - b) for f, h, b in zip(self.at(step), here, self.at(-step), strict=True)]
        return _Change(
            [(after + before) / (2 * step) for after, before in ends],
            [(after - before).norm() / step for after, before in ends],
            [part / step for part in rounding],
        )

    def rounding(self, here: Sequence[Tensor]) -> Sequence[Tensor]:
        """How far steps of a few roundings take it."""
        step = 4 * torch.finfo(torch.float64).eps
        ends = zip(self.at(step), self.at(-step), here, strict=True)
        return [4 * torch.maximum((f - h).norm(), (b - h).norm()) for f, b, h in ends]

    def _loss(self, leaves: Sequence[Tensor]) -> Tensor:
        return self._criterion(self._objective.outputs(leaves, self._inputs), self._targets).reshape(())

    @contextmanager
    def _guard(self, values: Sequence[Tensor]) -> Iterator[Leaves]:
        leaves = tuple(v.detach().requires_grad_() for v in values)
        with ExitStack() as stack:
            stack.enter_context(as_found(self._objective.model, self._objective.training))
            stack.enter_context(self._objective.standing(leaves, needed=self._again))
            stack.enter_context(held_padding(leaves, self._start, needed=self._pads))
            yield leaves


def _sizes(parts: Sequence[Tensor]) -> Sequence[float]:
    """Typical entry of each; that of all for one that is zero, and 1 if all are."""
    squares, counts = [float(part.norm()) ** 2 for part in parts], [part.numel() for part in parts]
    typical = math.sqrt(sum(squares) / sum(counts)) or 1.0
    return [math.sqrt(s / n) if s else typical for s, n in zip(squares, counts, strict=True)]


def _wrong(line: _Line) -> set[int]:
    """Where differences along one line contradict the derivatives."""
    here, expected = line.derivatives()
    quick = [(after - before).div_(_FIRST) for after, before in zip(line.at(_FIRST), here, strict=True)]
    if not all(bool(t.sum().isfinite()) for t in (*here, *expected, *quick)):
        return set()
    suspects = [i for i, s in enumerate(quick) if _gap(s, expected[i]) > _TOLERANCE * _larger(s, expected[i])]
    if not suspects:
        return set()
    rounding = line.rounding(here)
    changes = [line.change(step, here, rounding) for step in _STEPS]
    return {
        i
        for i in suspects
        if _contradicted(
            [_difference(c, i, here, step) for c, step in zip(changes, _STEPS, strict=True)], expected[i]
        )
    }


class _Difference(NamedTuple):
    """A slope by differences.

    Attributes
    ----------
    apart
        How far those to either side are from each other.
    noise
        More than what a few roundings of the parameters, or of the largest part of the gradient, make of it.
    lost
        What the rounding of its own part makes of it.
    """

    slope: Tensor
    apart: float
    noise: float
    lost: float


def _difference(change: _Change, i: int, here: Sequence[Tensor], step: float) -> _Difference:
    """That of part i."""
    sizes = [_ROUNDINGS * torch.finfo(h.dtype).eps * float(h.norm()) / step for h in here]
    noise = max(float(change.rounding[i]), max(sizes[1:]) if i else sizes[0])
    return _Difference(change.slopes[i], float(change.apart[i]), noise, sizes[i])


def _contradicted(found: Sequence[_Difference], expected: Tensor) -> bool:
    """Whether the two finest differences that rounding leaves have settled, on the same, and it is something else."""
    fine = [d for d in found if _SURE * d.noise < _gap(d.slope, expected)][:2]
    if len(fine) < 2:
        return False
    (one, *_), (other, *_) = fine
    doubt = max(_gap(one, other), *(d.apart for d in fine))
    settled = _SURE * doubt <= min(float(one.norm()), float(other.norm())) + max(d.lost for d in fine)
    off = min(_gap(one, expected), _gap(other, expected))
    return settled and off > _SURE * max(doubt, _TOLERANCE * _larger(other, expected))


def _gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm())


def _larger(one: Tensor, other: Tensor) -> float:
    return max(float(one.norm()), float(other.norm()))
