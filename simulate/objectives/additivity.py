"""Tests of whether a loss splits: whether the loss of a batch is the mean, or sum, of the losses of its parts.

It does not split if the loss function divides by something other than the number of samples, such as the weights of
their classes, takes a root of the mean or compares samples; nor if the outputs for a sample depend on the other
samples of the batch. Both are tested on at most 32 samples, split in three ways: at most five forward passes.
If so many samples may not fit into memory, groups of them are tested. Samples may also interact in large batches only,
as with experts of limited capacity: `mixing` runs the model on a batch of the size in use, in three forward passes.

Each answer is computed once for the same model, loss and data (`simulate.objectives.fingerprints`) and kept in
`Objective.answers`, as are those of `simulate.modules.sites`:

| function | tested on |
|---|---|
| `all_coupling` | at most 32 samples of all data, and both parts of three splits of them; then the next question |
| `model_mixing` | a batch of the largest size that a pass takes, and its first samples: as many as other passes take |
| `rows_apart` | the same |
| `gives_sum` | the samples of the first question, and both halves of a batch |

Each is computed for each data set; the first one only once for each loss, and again for new batch sizes. Two kinds of
interaction go unseen: one that depends on the contents of a batch, unless it shows in the first batch of the largest
size or in the samples of the first test; and, with more than four batch sizes, one at the sizes in between. Code that
takes samples one by one, or a few at a time, compares their outputs with those of the whole batch, see
`simulate.modules.sample_parts`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
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
    cuttable,
    joined,
    placed,
    rows,
    tensors,
    window,
)
from simulate.objectives.derivatives import alike, graph_nodes
from simulate.objectives.fingerprints import remembered
from simulate.objectives.heads import ChunkedObjective, at_few
from simulate.objectives.loss_function import LossFunction, for_transfer, from_largest_use
from simulate.objectives.parameters import doubled
from simulate.objectives.soundness import key_of, trusted

UNKNOWN = "the loss of a few samples cannot be computed"
"""Answer for a model or a loss that takes one size of batch only."""

_FEWER = "the loss of fewer samples cannot be computed"
_NO_ROWS = "the outputs have no row for each sample"
_SQUEEZED = "the outputs for a sample alone are of another shape"
MIXED = "the outputs for a sample depend on the other samples of its batch"
SUM = "the loss of a batch is the sum of the losses of its parts"
_NEITHER = {
    "mean": "the loss of a batch is not the mean of the losses of its parts",
    "sum": "the loss of a batch is not the sum of the losses of its parts",
}

_SPREAD, _CLASSES, _GROUPS = 16, 14, 32
"""Most samples spread over the data, most samples of different classes, most batches that the former come from."""

_LEAST = 4
"""Fewest samples in one test: a comparison between samples may not show with two."""

_PRECISIONS = {torch.bfloat16: 0.1, torch.float16: 0.02, torch.float32: 3e-5, torch.float64: 1e-8}
"""Tolerance of a loss by its floating type, relative: far above the rounding of a mean over a few samples."""

_SPLITS: tuple[Callable[[int], Sequence[int]], ...] = (
    lambda count: range(count // 2),
    lambda count: range(0, count, 2),
    lambda count: sorted(np.random.default_rng(0).permutation(count)[: max(1, count // 3)].tolist()),
)
"""Functions from a number of pieces to those of one part; the other part is the rest."""

Piece = tuple[Any, Any]
"""Inputs and targets of one sample, or of a batch whose samples cannot be told apart."""

Sample = tuple[tuple[int, int], Piece]
"""A piece, with the number of its batch and its row there."""


# --- the samples of the tests --------------------------------------------------------------------------------------


def chosen(batches: Iterable[Piece]) -> list[Piece]:
    """Return a few single samples of all batches; if some batch cannot be cut, the first two batches.

    These are at most 32 that a loss may weight differently, in the order of the data: some spread over the data,
    one of each class for the first classes, and those with the smallest and the largest number in the targets.
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
            # the number of batches may be unknown: when there are too many groups, every second one goes
            groups, stride = groups[::2], 2 * stride
        for i, tensor in enumerate(t for t in tensors(targets) if t.ndim and not t.is_complex()):
            flat = tensor.reshape(len(tensor), -1)
            for value, row in _classes(flat):
                if len(classes) < _CLASSES and (i, value) not in classes:
                    classes[i, value] = sample(row)
            for sign in (-1, 1) if i == 0 else ():
                at = int((sign * flat).argmax())
                end = sign * float(flat.flatten()[at])
                # a NaN counts as an extreme, so that the sample that holds it is tested
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
    """Return both halves of a batch; nothing if it cannot be cut."""
    middle = rows(batch[1]) // 2
    parts = (slice(middle), slice(middle, None)) if cuttable(*batch) and middle else ()
    return [(window(batch[0], part), window(batch[1], part)) for part in parts]


def spaced(count: int, most: int) -> list[int]:
    """Return at most `most` of the numbers below `count`, evenly spaced."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int).tolist()


def _classes(flat: Tensor) -> list[tuple[int, int]]:
    """Return each class, a whole number or the place of the largest entry, with the first sample that has it."""
    if flat.is_floating_point() and flat.shape[1] < 2:
        return []
    values = flat.argmax(1, keepdim=True) if flat.is_floating_point() else flat
    found, first = np.unique(values.cpu().numpy(), return_index=True)
    return list(zip(found.tolist(), (first // values.shape[1]).tolist(), strict=True))


def _kind(piece: Piece) -> list[tuple[tuple[int, ...], torch.dtype]]:
    return [(tuple(tensor.shape[1:]), tensor.dtype) for part in piece for tensor in tensors(part)]


# --- the tests ----------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Some of the pieces, with the outputs of the model for a batch of just these."""

    outputs: Tensor
    targets: Any
    weight: float


def mixing(objective: LossFunction, batch: Batch) -> str:
    """Return how a batch as a whole mixes its samples, in words: empty if its parts have the outputs of the whole.

    The parts are those of two splits, so that all samples take part, and a single sample. Call it within
    `preserve_state`.
    """
    count, leaves, alone = rows(batch.inputs), objective.leaves, ""

    def outputs(places: Sequence[int] | slice) -> Tensor:
        some = places if isinstance(places, slice) else torch.tensor(places)
        return objective.outputs(leaves, window(batch.inputs, some))

    with torch.no_grad():
        try:
            whole = outputs(slice(None))
            if whole.ndim == 0 or len(whole) != count:
                return _NO_ROWS
            for side in _sides(count) if count > 1 else ():
                found, expected = outputs(side), whole[torch.tensor(side)]
                # a single sample may come without its axis
                if found.numel() == expected.numel():
                    alone = "" if found.shape == expected.shape else _SQUEEZED
                    found = found.reshape_as(expected)
                    if _outputs_agree(objective, batch.inputs, found, expected):
                        continue
                return MIXED if alike(outputs(slice(None)), whole) else ""  # a model that draws
        except Exception:  # user code may need more samples
            return _FEWER
    return alone


def _outputs_agree(objective: LossFunction, inputs: Any, found: Tensor, expected: Tensor) -> bool:
    """Return whether outputs agree in the narrowest type that the model computes in, though returned as doubles."""
    if alike(found, expected) or found.dtype is not torch.float64:
        return alike(found, expected)
    with torch.enable_grad():
        nodes = graph_nodes([objective.outputs(objective.leaves, inputs)])
    types = {m.dtype for node in nodes for m in node._input_metadata} & {torch.float32, torch.float64}
    narrowest = max(types, key=lambda dtype: torch.finfo(dtype).eps, default=found.dtype)
    return alike(found.to(narrowest), expected.to(narrowest))


def _sides(count: int) -> Iterator[list[int]]:
    """Yield both parts of two splits, one random and one into a first third and the rest; then a single sample."""
    for first in (np.random.default_rng(0).permutation(count)[: count // 2].tolist(), range(-(-count // 3))):
        inside = set(first)
        yield sorted(inside)
        yield [i for i in range(count) if i not in inside]
    yield [count // 2]


def _group_coupling(objective: LossFunction, pieces: Sequence[Piece], loss_alone: bool) -> str:
    if len(pieces) < 2:
        return ""
    try:
        whole = _part(objective, pieces)
        if not whole.weight:  # the mean over no samples is NaN
            return ""
        loss = _Loss(objective, whole)
    except Exception:  # user code may not take these samples
        return UNKNOWN
    if not math.isfinite(loss.whole) or not bool(whole.outputs.isfinite().all()):
        return UNKNOWN
    for split in _SPLITS:
        inside = set(split(len(pieces)))
        sides = [[i for i in range(len(pieces)) if (i in inside) == side] for side in (True, False)]
        try:
            found = _split_coupling(objective, loss, whole, pieces, sides, loss_alone)
        except Exception:  # user code may need more samples
            return _FEWER
        if found:
            # outputs that differ for the same samples are random, not coupled
            draws = found == MIXED and not alike(_part(objective, pieces).outputs, whole.outputs)
            return "" if draws else found
    return ""


def _part(objective: LossFunction, pieces: Sequence[Piece]) -> _Part:
    inputs, targets = (joined(list(each)) for each in zip(*pieces, strict=True))
    return _Part(objective.outputs(objective.leaves, inputs), targets, objective.weight(targets))


def _split_coupling(
    objective: LossFunction,
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
        if not by_row:  # outputs have no row for each sample
            parts.append(_part(objective, taken))
            continue
        outputs = torch.cat([own[i] for i in side])
        if not loss_alone:
            found = _part(objective, taken).outputs
            if not _outputs_agree(objective, joined([x for x, _ in taken]), found, outputs):
                return MIXED
        targets = joined([y for _, y in taken])
        parts.append(_Part(outputs, targets, objective.weight(targets)))
    return loss.coupled(parts)


class _Loss:
    """The loss as a function of outputs, in double precision if possible, where rounding is not taken for coupling."""

    def __init__(self, objective: LossFunction, whole: _Part) -> None:
        self._objective, self._part = objective, whole
        self._criterion = _in_double(objective.criterion, whole) or objective.criterion
        self.whole = self._value(whole)

    def coupled(self, parts: Sequence[_Part]) -> str:
        """Return why the loss is not the mean, or sum, of these parts, in words; empty if it is."""
        losses = [self._value(part) for part in parts]
        every, expected = [self.whole, *losses], sum(losses)
        if self._objective.reduction == "mean":
            total = sum(part.weight for part in parts)
            adds_up = math.isclose(
                total, self._part.weight, rel_tol=1e-6
            )  # a user-defined count may not add up
            weighed = zip(parts, losses, strict=True)  # the mean over no samples is NaN
            shares = (part.weight / total * loss for part, loss in weighed if part.weight)
            expected = sum(shares) if adds_up else math.nan
        # the narrowest type that holds all losses exactly is the one they were computed in
        exact = (
            kind
            for kind in _PRECISIONS
            if all(float(torch.tensor(x, dtype=torch.float64).to(kind)) == x for x in every)
        )
        kind = next(exact, torch.float64)
        # outputs far larger than the loss leave their own rounding in it
        rounding = 10 * torch.finfo(kind).eps * float(self._part.outputs.abs().max())
        least = _PRECISIONS[kind] * max(map(abs, every)) + rounding
        close = math.isfinite(expected) and abs(self.whole - expected) <= least
        # a loss with another value in a second call is random, not coupled
        if close or self._value(self._part) != self.whole:
            return ""
        return SUM if abs(self.whole - sum(losses)) <= least else _NEITHER[self._objective.reduction]

    def _value(self, part: _Part) -> float:
        return float(self._criterion(part.outputs.clone(), part.targets))


def _in_double(criterion: Any, part: _Part) -> Callable[[Tensor, Any], Tensor] | None:
    """Return the loss function in double precision; None if it does not run in it."""
    like = part.outputs.new_zeros((), dtype=torch.float64)
    for mode in (nullcontext, _Doubling):
        with suppress(
            Exception
        ):  # constants of its own in single precision, say, that torch does not mix with doubles
            own = doubled(criterion) if mode is nullcontext else criterion

            def in_double(outputs: Tensor, targets: Any, own: Any = own, mode: Any = mode) -> Tensor:
                with mode():
                    return own(outputs.to(like, copy=True), placed(targets, like))

            in_double(part.outputs, part.targets)
            return in_double
    return None


class _Doubling(TorchFunctionMode):
    """Convert every single-precision argument of torch functions to double, also tensors from a closure."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def double(value: Any) -> Any:
            return value.double() if isinstance(value, Tensor) and value.dtype is torch.float32 else value

        return func(*tree_map(double, args), **tree_map(double, kwargs or {}))


# --- answers about an objective, kept with it ------------------------------------------------------------------------

_SIZES = 4
"""Most batch sizes that are tested."""

_SPREAD_SAMPLES = 128
"""Samples of all processes together in a test of whether the loss splits, at least two of each process."""

_Answer = TypeVar("_Answer")


_KNOWN: dict[Hashable, dict[str, Any]] = {}
"""Answers to questions about a model and its loss, with the data that they were asked on."""


def asked_once(question: Callable[[Any], _Answer]) -> Callable[[Any], _Answer]:
    """Decorate a function of an objective to run once for the same model, loss and data."""

    @wraps(question)
    def answer(objective: Any) -> _Answer:
        known, name = objective.answers, question.__name__
        if name not in known:
            shared = shared_answers(objective)
            if name not in shared:
                shared[name] = question(objective)
            known[name] = shared[name]
        return known[name]

    return answer


def shared_answers(objective: LossFunction) -> dict[str, Any]:
    """Return the answers about objectives with the key of this one, and with its data."""
    known = objective.answers
    if "shared" not in known:
        key = key_of(objective)
        known["shared"] = {} if key is None else remembered(_KNOWN, (key, objective.data_key()))
    return known["shared"]


def all_coupling(objective: LossFunction) -> str:
    """Return what couples the samples of a batch, of any size that is used, in words; empty if nothing does."""
    known: frozenset[int] = objective.answers.get("sizes", frozenset())
    if not loss_coupling(objective) and not known.issuperset(objective.sizes):
        objective.answers["sizes"] = known.union(objective.sizes)
        if model_mixing(objective) == MIXED:
            objective.answers["loss_coupling"] = MIXED
    return loss_coupling(objective)


@asked_once
def loss_coupling(objective: LossFunction) -> str:
    """Return what couples a few samples of all data, in words; empty if nothing does."""
    return _coupling(objective, spread_samples(objective))


@asked_once
def model_mixing(objective: LossFunction) -> str:
    """Return how the model mixes samples in batches of the sizes that are used, in words; empty if it does not."""
    asked = at_few(objective)
    if trusted(asked):
        return ""
    batch, sizes = largest_batch(objective), objective.sizes
    if not batch.cuttable:
        return ""
    with objective.own_mode():
        wanted = [sizes[i] for i in spaced(len(sizes), _SIZES)]
        found = [mixing(asked, batch.part(slice(0, size))) for size in wanted]
    return MIXED if MIXED in found else next(filter(None, found), "")


@asked_once
def rows_apart(objective: LossFunction) -> bool:
    """Return whether the model gives every sample the outputs that it has alone, as a row."""
    batch = objective.few()
    coupled = objective.several and not objective.training and all_coupling(objective) == MIXED
    return not (coupled or model_mixing(objective)) and batch.cuttable


def gives_sum(objective: LossFunction) -> bool:
    """Return whether the loss function gives the sum over the samples of a batch, though it is taken for their mean.

    Tested on a few samples and, if these suggest a sum, on both halves of a batch: a loss that divides by the count of
    something rare is not a sum.
    """
    pieces, whole = spread_samples(objective), at_few(objective).few(whole=True)
    return objective.reduction == "mean" and all(
        _coupling(objective, some, loss_alone=True) == SUM
        for some in (pieces, halves((whole.inputs, whole.targets)))
    )


def _coupling(objective: LossFunction, pieces: Sequence[Piece], *, loss_alone: bool = False) -> str:
    """Return why the loss of these samples does not split into parts, in words; empty if it does, or is random.

    At most as many samples as in a pass are taken together, or four if that is less. With `loss_alone` only the loss
    function is tested, on the outputs of the samples in one batch.
    """
    asked, count = at_few(objective), -(-len(pieces) // max(_LEAST, objective.pass_size))
    # data may be periodic, or sorted by class
    order: list[int] = np.random.default_rng(0).permutation(len(pieces)).tolist()
    with objective.own_mode(), torch.no_grad():
        groups = ([pieces[i] for i in sorted(order[start::count])] for start in range(count))
        return next(filter(None, (_group_coupling(asked, group, loss_alone) for group in groups)), "")


# --- samples for the tests: in a group, those of all processes, the same in each ----------------------


def largest_batch(objective: LossFunction) -> Batch:
    """Return the first batch of the largest size in one pass, or the first samples of a larger batch."""
    ranks, most = objective.ranks, objective.pass_size
    with ranks.together("a few samples"), objective.restored_after_reading():
        own: Batch | None = None
        for given in objective.given():
            if own is None or rows(given[1]) > own.samples:
                own = objective.weighed(*given)
            if own.samples >= most:
                break
        if own is not None and own.samples > most and own.cuttable:
            own = own.part(slice(0, most))
    if own is not None and not ranks.several:
        return own
    return from_largest_use(ranks, own, 0 if own is None else own.samples, objective.leaves[0])


def spread_samples(objective: LossFunction) -> list[Piece]:
    """Return a few single samples of all data; if the model has a language-model head, with a few of their targets."""
    known = objective.answers
    if "spread" in known:
        return known["spread"]
    ranks, asked = objective.ranks, at_few(objective)
    with ranks.together("a few samples"), objective.restored_after_reading():
        found = chosen(objective.given())
    if ranks.several:
        most = max(2, _SPREAD_SAMPLES // ranks.size)
        some, like = [found[i] for i in spaced(len(found), most)] if found else [], objective.leaves[0]
        held = ranks.gathered("samples", for_transfer(some, like))
        found = [placed(piece, like) for pieces in held for piece in pieces]
    known["spread"] = asked.pieces(found) if isinstance(asked, ChunkedObjective) else found
    return known["spread"]
