"""Whether a loss may be taken in parts: that of some samples is the mean, or the sum, of what parts of them have.

It is not if the loss function divides by something else than the samples, as by the weights of their classes, takes a
root of the mean or compares samples; nor if the model has other outputs for a sample beside other samples. Both are
asked of a few samples, at most `SAMPLES`, parted in three ways: at most five forward passes of so few. Where that many
may not fit into memory together, groups of them are asked. Samples may also meet in larger batches alone, as where
experts have a capacity: `mixing` asks the model for a batch as large as those that are used, in three forward passes.

Questions about an objective are asked once and kept in `Objective.answers`, as are those of `simulate.modules.sites`:

| question | what it is put to |
|---|---|
| `all_coupling` | at most 32 samples of all data, and both parts of three splits of them; then the next question |
| `model_mixing` | a batch of the largest size that a pass takes, and its first samples: as many as other passes take |
| `rows_apart` | one of a few samples, alone |
| `gives_sum` | the samples of the first question, and both halves of a batch |

Each is asked of each data, the first one once of each loss, and again of sizes that are new. What they leave out:
samples that see each other only in some batches of a size, because of what these hold, unless those are the first batch
of the largest size or the samples of the first question; and of more than four sizes of batches those in between. What
takes samples one by one, or some at a time, compares their outputs with those of the whole batch, see
`simulate.modules.sample_parts`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import partial, wraps
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from simulate.objectives.batches import (
    Batch,
    copied,
    cuttable,
    joined,
    of_several,
    placed,
    rows,
    tensors,
    window,
)
from simulate.objectives.derivatives import alike, behind
from simulate.objectives.heads import Few
from simulate.objectives.parameters import doubled
from simulate.objectives.ranks import Ranks
from simulate.objectives.restoring import as_found
from simulate.objectives.soundness import Asked, trusted

SAMPLES = 32
"""Most samples that are asked: two are those with the extremes of the targets."""

UNKNOWN = "the loss of a few samples cannot be had"
"""Of a model or a loss for one size of batch alone."""

_FEWER = "the loss of fewer samples cannot be had"
MIXED = "the model gives a sample other outputs beside other samples"
SUM = "the loss of a batch is the sum of those of its parts"
_NEITHER = {
    "mean": "the loss of a batch is not the mean of those of its parts",
    "sum": "the loss of a batch is not the sum of those of its parts",
}

_SPREAD, _CLASSES, _GROUPS = 16, 14, 32
"""Samples that are spread over the data, samples of different classes, batches that the first come from."""

_LEAST = 4
"""Samples that are asked together at least: two show no more than one each where samples are compared."""

_PRECISIONS = {torch.bfloat16: 0.1, torch.float16: 0.02, torch.float32: 3e-5, torch.float64: 1e-8}
"""Relative error of a loss by the type that it is computed in, far above the rounding of a mean over a few samples."""

_SPLITS: tuple[Callable[[int], Sequence[int]], ...] = (
    lambda count: range(count // 2),
    lambda count: range(0, count, 2),
    lambda count: sorted(np.random.default_rng(0).permutation(count)[: max(1, count // 3)].tolist()),
)
"""One part of so many pieces; the other is the rest."""

Piece = tuple[Any, Any]
"""Inputs and targets of one sample, or of a batch whose samples cannot be told apart."""

Sample = tuple[tuple[int, int], Piece]
"""One with its batch and its place there."""


# --- the samples that are asked ------------------------------------------------------------------------------------


def chosen(batches: Iterable[Piece]) -> list[Piece]:
    """A few samples of all batches, one by one; if some batch cannot be cut the first two batches, whole.

    At most `SAMPLES` that differ in what a loss may weigh them by, in the order of the data: some spread over these,
    one of each class as long as they are few, and those with the smallest and the largest number of the targets.
    """
    whole, groups, stride = list[Piece](), list[list[Sample]](), 1
    classes, ends = dict[Any, Sample](), dict[Any, tuple[float, Sample]]()
    apart = True
    for place, (inputs, targets) in enumerate(batches):
        whole = whole if len(whole) == 2 else [*whole, (inputs, targets)]
        apart = apart and cuttable(inputs, targets)
        if not apart:
            continue
        sample = partial(_sample, place, inputs, targets)
        if place % stride == 0:
            groups.append([sample(row) for row in spaced(rows(targets), 2 if place else _SPREAD)])
        if len(groups) > _GROUPS:
            groups, stride = groups[::2], 2 * stride
        for i, tensor in enumerate(t for t in tensors(targets) if t.ndim and not t.is_complex()):
            flat = tensor.reshape(len(tensor), -1)
            for value, row in _classes(flat):
                if len(classes) < _CLASSES and (i, value) not in classes:
                    classes[i, value] = sample(row)
            for sign in (-1, 1) if i == 0 else ():
                at = int((sign * flat).argmax())
                end = sign * float(flat.flatten()[at])
                end = math.inf if math.isnan(end) else end
                if end > ends.get(sign, (-math.inf, None))[0]:
                    ends[sign] = end, sample(at // flat.shape[1])
    spread = list(itertools.chain.from_iterable(groups))
    some = [*(spread[i] for i in spaced(len(spread), _SPREAD)), *classes.values()]
    some += [sample for _, sample in ends.values()]
    found = (
        [piece for _, piece in sorted(dict(some).items(), key=lambda sample: sample[0])] if apart else whole
    )
    return [piece for piece in found if _kind(piece) == _kind(found[0])]


def _sample(place: int, inputs: Any, targets: Any, row: int) -> Sample:
    at = torch.tensor([row])  # no view, which would hold on to the batch
    return (place, row), (window(inputs, at), window(targets, at))


def halves(batch: Piece) -> list[Piece]:
    """A batch in two."""
    middle = rows(batch[1]) // 2
    parts = (slice(middle), slice(middle, None)) if cuttable(*batch) and middle else ()
    return [(window(batch[0], part), window(batch[1], part)) for part in parts]


def spaced(count: int, most: int) -> list[int]:
    """At most so many numbers below a count, spread evenly."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int).tolist()


def _classes(flat: Tensor) -> list[tuple[int, int]]:
    """Whole numbers, or places of the largest of several, each with the first sample that has it."""
    if flat.is_floating_point() and flat.shape[1] < 2:
        return []
    values = flat.argmax(1, keepdim=True) if flat.is_floating_point() else flat
    found, first = np.unique(values.cpu().numpy(), return_index=True)
    return list(zip(found.tolist(), (first // values.shape[1]).tolist(), strict=True))


def _kind(piece: Piece) -> list[tuple[tuple[int, ...], torch.dtype]]:
    return [(tuple(tensor.shape[1:]), tensor.dtype) for part in piece for tensor in tensors(part)]


# --- the question --------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Some of the pieces, with the outputs that the model has for them alone."""

    outputs: Tensor
    targets: Any
    weight: float


def coupling(asked: Asked, pieces: Sequence[Piece], *, most: int = SAMPLES, loss_alone: bool = False) -> str:
    """What couples these samples, in words; nothing if the loss may be taken in parts, or draws at random.

    To be used within `parametric.as_found`. No more than `most` samples are taken together, but four. With `loss_alone`
    the outputs are those that the samples have together.
    """
    count = -(-len(pieces) // max(_LEAST, most))
    order: list[int] = (
        np.random.default_rng(0).permutation(len(pieces)).tolist()
    )  # data may come in turns, or class by class
    with torch.no_grad():
        groups = ([pieces[i] for i in sorted(order[start::count])] for start in range(count))
        return next(filter(None, (_together(asked, group, loss_alone) for group in groups)), "")


def mixing(asked: Asked, batch: Batch) -> str:
    """Return how a batch as a whole mixes its samples, in words: empty if its parts have the outputs of the whole.

    The parts are those of two splits, so that all samples take part, and a single sample. To be used within
    `parametric.as_found`.
    """
    count, leaves = rows(batch.inputs), asked.leaves()
    if count < 2:
        return ""

    def outputs(places: Sequence[int] | slice) -> Tensor:
        some = places if isinstance(places, slice) else torch.tensor(places)
        return asked.outputs(leaves, window(batch.inputs, some))

    with torch.no_grad():
        try:
            whole = outputs(slice(None))
            if whole.ndim == 0 or len(whole) != count:
                return ""  # one number for all of them, say
            for side in _sides(count):
                found, expected = outputs(side), whole[torch.tensor(side)]
                # a single sample may come without its axis
                if found.numel() == expected.numel():
                    found = found.reshape_as(expected)
                    if _same(asked, batch.inputs, found, expected):
                        continue
                return MIXED if alike(outputs(slice(None)), whole) else ""  # a model that draws
        except Exception:  # code of others, that needs more samples
            return _FEWER
    return ""


def alone(asked: Asked, batch: Batch) -> bool:
    """Return whether one of the samples has the same row of outputs without the others.

    To be used within `parametric.as_found`.
    """
    count, leaves = rows(batch.targets), asked.leaves()
    one = slice(count // 2, count // 2 + 1)
    with torch.no_grad(), suppress(Exception):  # a model may take no sample alone
        outputs = asked.outputs(leaves, batch.inputs)
        if outputs.ndim and len(outputs) == count:
            return _same(asked, batch.inputs, asked.outputs(leaves, window(batch.inputs, one)), outputs[one])
    return False


def _same(asked: Asked, inputs: Any, found: Tensor, expected: Tensor) -> bool:
    """Whether outputs agree in the narrowest type that the model computes in: single may be handed on as double."""
    if alike(found, expected) or found.dtype is not torch.float64:
        return alike(found, expected)
    with torch.enable_grad():
        nodes = behind([asked.outputs(asked.leaves(), inputs)])
    types = {m.dtype for node in nodes for m in node._input_metadata} & {torch.float32, torch.float64}
    narrowest = max(types, key=lambda dtype: torch.finfo(dtype).eps, default=found.dtype)
    return alike(found.to(narrowest), expected.to(narrowest))


def _sides(count: int) -> Iterator[list[int]]:
    """Yield both parts of two splits, at random, and a first third, as windows are cut; and one sample."""
    for first in (np.random.default_rng(0).permutation(count)[: count // 2].tolist(), range(-(-count // 3))):
        inside = set(first)
        yield sorted(inside)
        yield [i for i in range(count) if i not in inside]
    yield [count // 2]


def _together(asked: Asked, pieces: Sequence[Piece], loss_alone: bool) -> str:
    if len(pieces) < 2:
        return ""
    try:
        whole = _part(asked, pieces)
        if not whole.weight:  # the mean over nothing is no number
            return ""
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
            # a model that draws has other outputs for the same samples
            draws = found == MIXED and not alike(_part(asked, pieces).outputs, whole.outputs)
            return "" if draws else found
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
        if not loss_alone:
            found = _part(asked, taken).outputs
            if not _same(asked, joined([x for x, _ in taken]), found, outputs):
                return MIXED
        targets = joined([y for _, y in taken])
        parts.append(_Part(outputs, targets, asked.weight(targets)))
    return loss.coupled(parts)


class _Loss:
    """The loss function of given outputs, in double precision where it can be had: there rounding couples nothing."""

    def __init__(self, asked: Asked, whole: _Part) -> None:
        self._asked, self._part = asked, whole
        self._criterion = _in_double(asked.criterion, whole) or asked.criterion
        self.whole = self._of(whole)

    def coupled(self, parts: Sequence[_Part]) -> str:
        """What is wrong with the mean, or the sum, of parts of it."""
        losses = [self._of(part) for part in parts]
        every, expected = [self.whole, *losses], sum(losses)
        if self._asked.reduction == "mean":
            total = sum(part.weight for part in parts)
            adds_up = math.isclose(total, self._part.weight, rel_tol=1e-6)  # a count need not
            weighed = zip(parts, losses, strict=True)  # the mean over nothing is no number
            shares = (part.weight / total * loss for part, loss in weighed if part.weight)
            expected = sum(shares) if adds_up else math.nan
        # computed in the narrowest type that holds them: none in double precision has its last half of digits zero
        exact = (
            kind
            for kind in _PRECISIONS
            if all(float(torch.tensor(x, dtype=torch.float64).to(kind)) == x for x in every)
        )
        kind = next(exact, torch.float64)
        rounding = 10 * torch.finfo(kind).eps * float(self._part.outputs.abs().max())
        least = _PRECISIONS[kind] * max(map(abs, every)) + rounding
        close = math.isfinite(expected) and abs(self.whole - expected) <= least
        if close or self._of(self._part) != self.whole:
            return ""
        return SUM if abs(self.whole - sum(losses)) <= least else _NEITHER[self._asked.reduction]

    def _of(self, part: _Part) -> float:
        return float(self._criterion(part.outputs.clone(), part.targets))


def _in_double(criterion: Any, part: _Part) -> Callable[[Tensor, Any], Tensor] | None:
    """None of what cannot be had in double precision at all."""
    like = part.outputs.new_zeros((), dtype=torch.float64)
    for mode in (nullcontext, _Doubling):
        with suppress(
            Exception
        ):  # numbers of its own in single precision, say, that it will not mix with others
            own = doubled(criterion) if mode is nullcontext else criterion

            def made(outputs: Tensor, targets: Any, own: Any = own, mode: Any = mode) -> Tensor:
                with mode():
                    return own(outputs.to(like, copy=True), placed(targets, like))

            made(part.outputs, part.targets)
            return made
    return None


class _Doubling(TorchFunctionMode):
    """Every tensor of single precision doubled where torch takes it: also what a function closes over."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def double(value: Any) -> Any:
            return value.double() if isinstance(value, Tensor) and value.dtype is torch.float32 else value

        return func(*tree_map(double, args), **tree_map(double, kwargs or {}))


# --- questions about an objective, asked once ----------------------------------------------------------------------

_FEW = 3
"""Samples that questions about a model are put to."""

_SIZES = 4
"""Sizes of batches that are asked about at most."""

_ASKED = 128
"""Samples of all processes that are asked whether the loss may be taken in parts, two of each at least."""

_Answer = TypeVar("_Answer")


def asked_once(question: Callable[[Any], _Answer]) -> Callable[[Any], _Answer]:
    """Keep the answer with the objective: what a model does is the same each time, as `require_sound` makes sure."""

    @wraps(question)
    def answer(objective: Any) -> _Answer:
        known, name = objective.answers, question.__name__
        if name not in known:
            known[name] = question(objective)
        return known[name]

    return answer


def kept_answers(answers: dict[str, Any]) -> dict[str, Any]:
    """Return the answers that hold for other data too: what couples samples, and the sizes that were asked about."""
    return {name: answers[name] for name in ("loss_coupling", "sizes") if name in answers}


def all_coupling(objective: Asked) -> str:
    """Return what couples the samples of a batch, of any size that is used, in words; empty if nothing does."""
    known: frozenset[int] = objective.answers.get("sizes", frozenset())
    if not loss_coupling(objective) and not known.issuperset(objective.sizes):
        objective.answers["sizes"] = known.union(objective.sizes)
        if model_mixing(objective) == MIXED:
            objective.answers["loss_coupling"] = MIXED
    return loss_coupling(objective)


@asked_once
def loss_coupling(objective: Asked) -> str:
    """Return what couples a few samples of all data, in words; empty if nothing does."""
    return _asked_coupling(objective, spread_samples(objective))


@asked_once
def model_mixing(objective: Asked) -> str:
    """Return how the model mixes samples in batches of the sizes that are used, in words; empty if it does not."""
    asked = objective.at_few()
    if trusted(asked):
        return ""
    batch, sizes = largest_batch(objective), objective.sizes
    if not cuttable(batch.inputs, batch.targets):
        return ""
    with as_found(objective.model, objective.training):
        wanted = [sizes[i] for i in spaced(len(sizes), _SIZES)]
        found = [mixing(asked, batch.part(slice(0, size))) for size in wanted]
    return MIXED if MIXED in found else next(filter(None, found), "")


@asked_once
def rows_apart(objective: Asked) -> bool:
    """Return whether the model gives every sample the outputs that it has alone, as a row."""
    asked = objective.at_few()
    batch = asked.few()
    coupled = objective.several and not objective.training and objective.coupling == MIXED
    if coupled or model_mixing(objective) or not cuttable(batch.inputs, batch.targets):
        return False
    with as_found(objective.model, objective.training):
        return alone(asked, batch)


def gives_sum(objective: Asked) -> bool:
    """Return whether the loss function gives the sum over the samples of a batch, though it is taken for their mean.

    Asked of a few samples, and if it looks so of both halves of a batch: what divides by the number of something rare
    is no sum.
    """
    pieces, whole = spread_samples(objective), objective.at_few().few(whole=True)
    return objective.reduction == "mean" and all(
        _asked_coupling(objective, some, loss_alone=True) == SUM
        for some in (pieces, halves((whole.inputs, whole.targets)))
    )


def _asked_coupling(objective: Asked, pieces: Sequence[Piece], *, loss_alone: bool = False) -> str:
    with as_found(objective.model, objective.training):
        return coupling(objective.at_few(), pieces, most=objective.pass_size, loss_alone=loss_alone)


# --- the samples that questions are put to, in a group those of all processes, the same in each --------------------


def few_samples(objective: Asked, *, whole: bool = False) -> Batch:
    """Return a few samples of the first batch that has several; all of it if `whole`, or where it cannot be cut."""
    ranks, known = objective.ranks, objective.answers
    name = (
        "few" if objective.takes_few else "all"
    )  # a model that takes no few is found out by asking with few
    if ranks.several and not whole and name in known:
        return known[name]
    with ranks.together("a few samples"), as_found(objective.model, objective.training):
        own = None
        if objective.own_rows or not ranks.several:
            own = of_several(objective.weighed(*given) for given in objective.given())
            if (
                objective.takes_few
                and not (whole or objective.training)
                and cuttable(own.inputs, own.targets)
            ):
                own = own.part(slice(0, _FEW))
    if own is not None and not ranks.several:
        return own
    use = 0 if own is None else 1 + bool(own.factor) * min(rows(own.targets), 2)
    found = _of_most(ranks, own, use, objective.leaves()[0])
    if not whole:
        known[name] = found
    return found


def largest_batch(objective: Asked) -> Batch:
    """Return the first batch of the largest size that a pass takes, or so much of a larger one."""
    ranks, most = objective.ranks, objective.pass_size
    with ranks.together("a few samples"), as_found(objective.model, objective.training):
        own: Batch | None = None
        for given in objective.given():
            if own is None or rows(given[1]) > rows(own.targets):
                own = objective.weighed(*given)
            if rows(own.targets) >= most:
                break
        if own is not None and rows(own.targets) > most and cuttable(own.inputs, own.targets):
            own = own.part(slice(0, most))
    if own is not None and not ranks.several:
        return own
    return _of_most(ranks, own, 0 if own is None else rows(own.targets), objective.leaves()[0])


@asked_once
def spread_samples(objective: Asked) -> list[Piece]:
    """Return a few samples of all data, one by one; where there is a head with a few of their targets."""
    ranks, asked = objective.ranks, objective.at_few()
    with ranks.together("a few samples"), as_found(objective.model, objective.training):
        found = chosen(objective.given())
    if ranks.several:
        most = max(2, _ASKED // ranks.size)
        some, like = [found[i] for i in spaced(len(found), most)] if found else [], objective.leaves()[0]
        held = ranks.gathered("samples", _sent(some, like))
        found = [placed(piece, like) for pieces in held for piece in pieces]
    return asked.pieces(found) if isinstance(asked, Few) else found


def of_one(ranks: Ranks, rank: int, own: Any, like: Tensor) -> Any:
    """Samples of one process, on the device of a tensor here."""
    return placed(ranks.of_one("samples", rank, _sent(own, like)), like) if ranks.several else own


def _of_most(ranks: Ranks, own: Batch | None, use: int, like: Tensor) -> Batch:
    """The samples of the process that has most use for them."""
    uses = ranks.gathered("a few samples", use)
    return Batch(*of_one(ranks, uses.index(max(uses)), own, like))


def _sent(samples: Any, like: Tensor) -> Any:
    """As they go to another process: in memory of their own, without the batch that they are of."""
    return copied(placed(samples, like.new_zeros((), device="cpu")))
