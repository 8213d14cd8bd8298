"""A model, its loss and its data as one function of the parameters, without the checks of `Objective`."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from simulate import _checks
from simulate.objectives.batches import (
    Batch,
    Stacked,
    Tally,
    bounded,
    carries_labels,
    copied,
    cuts,
    cuttable,
    named_data,
    of_several,
    pair,
    placed,
    repeatable,
    rows,
    sample_counts,
    window,
)
from simulate.objectives.forms import Form, Labels, asked_form, picked, returned_parts
from simulate.objectives.losses import (
    BatchLoss,
    Count,
    Loss,
    Reduction,
    by_element,
    default_loss,
    loss_of,
    mean_denominator,
    named_loss,
    one_number,
    reduction_of,
    require_order,
    shaped,
)
from simulate.objectives.parameters import (
    Leaves,
    Parametric,
    in_place,
    parametric,
    unwrapped,
)
from simulate.objectives.ranks import Ranks
from simulate.objectives.restoring import in_mode, preserve_state

_OF_ALL_DATA = ("loss_coupling", "sizes")
"""Answers that hold for other data too: what couples samples, and the batch sizes that were tested."""

_TEST_SAMPLES = 3
"""Samples in a test of the model."""


class LossFunction:
    """Model, loss and data as one function of the parameters, before any check: see `Objective`."""

    def __init__(
        self,
        model: nn.Module | Callable[[Sequence[Tensor], Any], Tensor],
        data: Any,
        loss: Loss | str | None = None,
        *,
        parameters: Any = None,
        reduction: Reduction | None = None,
        count: Count | None = None,
        training: bool = False,
        chunk: int | None = None,
        field: str | int | None = None,
        group: Any = None,
    ) -> None:
        self.ranks = Ranks(group)
        if training and self.ranks.several:
            raise ValueError(
                "training must be False with a group: random draws would differ between processes"
            )
        if isinstance(model, LossFunction):
            raise ValueError("model must be a module or a function, got an Objective: use it as it is")
        require_order("Objective", model, data, loss)
        with self.ranks.together("an objective"):
            model = unwrapped(model)
            self.definition, self.model = model, model if isinstance(model, nn.Module) else None
            found = parametric(model, parameters)
            if isinstance(data, str | os.PathLike):

                def run(inputs: Tensor) -> None:
                    with preserve_state(self.model, training), torch.no_grad():
                        found.call(found.parameters, placed(inputs, found.parameters[0]))

                data = named_data(data, run)
            self._explicit_loss = loss is not None
            data, loss = self._with_loss(model, data, loss, found.parameters[0], chunk)
            self.reduction = reduction_of(loss, reduction)
            self._set_parameters(found)
            self.form, self._inspected = Form(field), False
            self._shape: tuple[int, ...] | None = None
            self._runs_again: bool | None = None
            self._unchanged, self.takes_few = False, True
            self.recordable: dict[str, bool] = {}
            self.proven: dict[str, bool] = {}
            self.training, self.criterion = training, loss
            self.weight = mean_denominator(loss) if count is None else count
            """Weight of a batch by its targets: the denominator of its mean, up to a constant factor."""
            self._custom_count = count is not None
            self.answers: dict[str, Any] = {}
            self.shapes = tuple(p.shape for p in self.leaves)
            self.dtype, self.device = self.leaves[0].dtype, self.leaves[0].device
            self._sizes = [p.numel() for p in self.leaves]
            self.dim = sum(self._sizes)
            self._chunk = None if chunk is None else _checks.natural("chunk", chunk)
            if self._chunk is not None and training:
                raise ValueError(
                    "chunk must be None in training mode, where samples of a batch may affect each other"
                )
            self._labels = Labels(self.model, loss, field)
            self._set_data(data)

    def _set_parameters(self, found: Parametric) -> None:
        self.ranks.require_reachable(found.parameters[0].device)
        held = tuple(found.state(found.parameters).values()) or found.parameters
        self.ranks.require_same(parameters=(found.names, *held), reduction=(self.reduction,))
        self.names = found.names
        self._call = found.call
        self.fixed, self.state = found.fixed, found.state
        self.originals = tuple(zip(found.names, found.originals, strict=True))
        self.leaves: Leaves = tuple(p.detach().requires_grad_() for p in found.parameters)
        """Parameters as tensors that require gradients."""

    def _with_loss(
        self, model: Any, data: Any, loss: Any, like: Tensor, chunk: int | None
    ) -> tuple[Any, Loss]:
        """Return data as pairs (inputs, targets), and the loss as a function of outputs and targets."""
        if BatchLoss.takes_model(loss):
            if not isinstance(model, nn.Module):
                raise ValueError("model must be a module where loss takes (model, batch), got a function")
            loss = BatchLoss(loss, model)
            return loss.pairs(data, like, chunk), loss
        if loss is not None:
            return data, named_loss(loss)
        with self.ranks.together("a loss"), preserve_state(None, training=False):
            data = repeatable(data, chunk)
            own = next((type(default_loss(pair(item)[1])) for item in data), None)
            # a process of a group may hold no samples: it takes the loss of the others
            found = next((kind for kind in self.ranks.gathered("a loss", own) if kind is not None), None)
        if found is None:
            raise ValueError("data must hold at least one sample, got none")
        return data, found()

    def _set_data(self, data: Any) -> None:
        with self.ranks.together("the data"):
            self.data, self._tally = repeatable(data, self._chunk), None
            # a new dictionary: objectives on other data share the old one
            self.answers = {n: self.answers[n] for n in _OF_ALL_DATA if n in self.answers}
            if self.training and isinstance(self.data, Stacked):
                raise ValueError(
                    "data must be batches in training mode, got single samples: give DataLoader(data, batch_size)"
                )
            sizes, first = list[tuple[int, float]](), None
            with self.restored_after_reading():
                for inputs, targets in self.given():
                    first = first or (inputs, targets)
                    sizes.append((rows(targets), self.weight(targets)))
        self.own_rows = sum(n for n, _ in sizes)
        own = (self.own_rows, sum(n for _, n in sizes), len(sizes), sorted({n for n, _ in sizes}))
        rows_of, samples_of, batches_of, sizes_of = zip(*self.ranks.gathered("sizes", own), strict=True)
        self.rows, self.samples = sum(rows_of), sum(samples_of)
        batch_sizes = sorted(set(itertools.chain(*sizes_of)), reverse=True)
        self.several, self._largest = sum(batches_of) > 1, max(batch_sizes, default=0)
        parts = (part.stop - part.start for n in batch_sizes for part in cuts(n, self._chunk or n))
        self.sizes = tuple(sorted(set(parts), reverse=True))
        if self.rows and not self._inspected:
            holder = next(rank for rank, count in enumerate(rows_of) if count)
            if first is not None:  # one sample, or all of a batch that cannot be cut
                one = slice(0, 1) if cuttable(*first) else slice(None)
                first = tuple(window(part, one) for part in first)
            self._inspect_outputs(*of_one(self.ranks, holder, first, self.leaves[0]))
            self._inspected = True
        if not self.samples > 0:
            raise ValueError("data must hold at least one sample, got none")

    @property
    def share(self) -> float:
        """Factor of the loss of one sample in the loss of all data."""
        return 1 / self.samples if self.reduction == "mean" else 1.0

    @property
    def pass_size(self) -> int:
        """Largest number of samples in one pass, since more may not fit into memory."""
        return self._largest if self._chunk is None else min(self._chunk, self._largest)

    def data_key(self) -> Hashable:
        """Return what tells the data from others: sizes, counts, and sums over all numbers."""
        tally = self._tally
        if tally is None or not tally.scale:  # without numbers, as of data in memory
            tally = Tally()
            for inputs, targets in self.given():
                tally.add(inputs, targets)
        counted = self._custom_count and self.weight
        return self.sizes, self.pass_size, self.own_rows, self.samples, counted, self.form, *tally.sums

    def standing(self, leaves: Sequence[Tensor], *, needed: bool) -> AbstractContextManager[None]:
        """Put the parameters into the module for the duration of a context, if `needed`; see `parameters.in_place`."""
        if self.model is None or not needed:
            return nullcontext()
        return in_place(self.model, self.state(leaves))

    def few(self, *, whole: bool = False) -> Batch:
        """Return a few samples of the first batch that has several, for tests of model and loss.

        Return the whole batch if `whole`, in training mode, or if it cannot be cut. Whether the loss splits into parts
        is not tested.
        """
        ranks, known = self.ranks, self.answers
        name = (
            "few" if self.takes_few else "all"
        )  # the first test with few samples shows whether the model takes them, so both answers are kept
        if ranks.several and not whole and name in known:
            return known[name]
        with ranks.together("a few samples"), self.restored_after_reading():
            own = None
            if self.own_rows or not ranks.several:
                own = of_several(self.weighed(*given) for given in self.given())
                if self.takes_few and not (whole or self.training) and own.cuttable:
                    own = own.part(slice(0, _TEST_SAMPLES))
        if own is not None and not ranks.several:
            return own
        use = 0 if own is None else 1 + bool(own.factor) * min(own.samples, 2)
        found = from_largest_use(ranks, own, use, self.leaves[0])
        if not whole:
            known[name] = found
        return found

    def outputs(self, leaves: Sequence[Tensor], inputs: Any) -> Tensor:
        """Return the outputs of the model for these parameters.

        Raises
        ------
        ValueError
            If the model returns no tensor or several, see `field`, or outputs that do not depend on the parameters
            although they are to be differentiated.
        """
        outputs = self.form.turned(self.returned(leaves, inputs))
        if outputs.is_complex():
            raise ValueError(
                f"model must return real numbers, got {outputs.dtype}; give real and imaginary parts"
            )
        if torch.is_grad_enabled() and not outputs.requires_grad and any(p.requires_grad for p in leaves):
            raise ValueError(
                "model must give outputs that depend on the parameters, got constants: look for no_grad and detach"
            )
        return outputs

    def returned(self, leaves: Sequence[Tensor], inputs: Any) -> Tensor:
        """Return the tensor that the loss takes, with the axes in the model's order."""
        return picked(self._call(leaves, inputs), self.form.field)

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return the term of the loss that this batch adds.

        Raises
        ------
        ValueError
            If the loss function does not give one finite number.
        """
        loss = one_number(loss_of(self.criterion, outputs, batch.targets))
        if batch.factor and not bool(loss.isfinite()):
            raise ValueError(f"loss must be finite, got {loss.item()}: check inputs, targets and parameters")
        return loss * batch.factor

    def flat(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return tensors shaped like the parameters as one vector (dim,)."""
        return torch.cat([t.reshape(-1) for t in tensors])

    def split(self, vector: Tensor) -> Leaves:
        """Return a vector (dim,) as tensors shaped like the parameters; a block (k, dim) adds a first axis."""
        # one call of torch, without the checks in Python around it, which take as long as a small product
        parts, first = vector.split_with_sizes(self._sizes, dim=-1), vector.shape[:-1]
        return tuple(part.view(first + shape) for part, shape in zip(parts, self.shapes, strict=True))

    def blocks(self) -> Mapping[str, slice]:
        """Return the slice of each parameter in a vector (dim,), by name."""
        each = zip(self.names, self._sizes, itertools.accumulate(self._sizes), strict=True)
        return {name: slice(end - size, end) for name, size, end in each}

    def weighed(self, inputs: Any, targets: Any) -> Batch:
        """Return a batch with its factor in the loss of all data."""
        factor = self.weight(targets) / self.samples if self.reduction == "mean" else 1.0
        return Batch(inputs, targets, factor)

    def own_mode(self, *, draws: bool = True) -> AbstractContextManager[None]:
        """Put the model into its mode; afterwards restore all modes and, if anything may draw, the generators."""
        return (preserve_state if draws else in_mode)(self.model, self.training)

    def restored_after_reading(self) -> AbstractContextManager[None]:
        """Restore the generators from which a loader may draw; data in memory draw nothing."""
        return self.own_mode(draws=not isinstance(self.data, tuple | list))

    def given(self) -> Iterator[tuple[Any, Any]]:
        """Yield the batches of the data, uncut and without empty ones."""
        tally, loaded, like = Tally(), not isinstance(self.data, tuple | list), self.leaves[0]
        for item in bounded(self.data):
            first, second = pair(item)
            inputs, targets = placed(first, like), placed(second, like)
            if carries_labels(item):
                inputs, targets = self._labels.parted(inputs, targets, self._call, self.leaves)
            size = rows(targets)
            if not cuttable(inputs, targets):
                # a list of inputs means several arguments of the model, not a list of samples
                if isinstance(first, list) and len(first) == size:
                    raise ValueError(
                        "inputs must be tensors with samples along the first axis,"
                        f" got a list of {size} samples; stack them"
                    )
                if self._chunk is not None and size > self._chunk:
                    got = " and ".join(map(str, sample_counts(inputs, targets)))
                    raise ValueError(
                        f"inputs and targets must have the same number of samples to be cut, got {got}"
                    )
            tally.add(inputs, targets, numbers=loaded)
            if size:  # an empty batch adds nothing
                yield inputs, targets if self._shape is None else targets.reshape(size, *self._shape)
        self._tally = tally if self._tally is None else self._tally
        self._tally.require(tally)

    def _inspect_outputs(self, inputs: Any, targets: Any) -> None:
        """Call the model on one sample to find the axis of the classes."""
        with self.ranks.together("outputs"), preserve_state(self.model, False):
            self.form = asked_form(
                lambda given: self._call(self.leaves, given),
                inputs,
                targets,
                loss=self.criterion,
                field=self.form.field,
            )
            if isinstance(self.criterion, BatchLoss):
                found = self._call(self.leaves, inputs)
                self.criterion.look_at(returned_parts(found), picked(found, self.form.field))
            single = isinstance(targets, Tensor) and targets.numel() == len(targets)
            if single and by_element(self.criterion):
                with torch.no_grad():
                    shape = tuple(self.form.read(self._call(self.leaves, inputs)).shape[1:])
                # with an explicit loss, one target for several outputs may be meant; torch warns of it
                if shape != targets.shape[1:] and not (self._explicit_loss and math.prod(shape) > 1):
                    self._shape = tuple(shaped(targets, shape).shape[1:])


def of_one(ranks: Ranks, rank: int, own: Any, like: Tensor) -> Any:
    """Return the samples of one process in all of them, on the device of `like`."""
    return placed(ranks.of_one("samples", rank, for_transfer(own, like)), like) if ranks.several else own


def from_largest_use(ranks: Ranks, own: Batch | None, use: int, like: Tensor) -> Batch:
    """Return the samples of the process whose `use` is largest, in all processes."""
    uses = ranks.gathered("a few samples", use)
    return Batch(*of_one(ranks, uses.index(max(uses)), own, like))


def for_transfer(samples: Any, like: Tensor) -> Any:
    """Return samples ready for another process: copied out of their batch, on the CPU."""
    return copied(placed(samples, like.new_zeros((), device="cpu")))
