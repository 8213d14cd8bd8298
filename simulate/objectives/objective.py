"""Objectives: a model, its loss and its data as one function of the parameters, see `simulate.objectives`."""

from __future__ import annotations

import copy
import itertools
import math
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from simulate import _checks
from simulate.objectives import soundness
from simulate.objectives.additivity import (
    UNKNOWN,
    all_coupling,
    gives_sum,
    kept_answers,
    model_mixing,
    of_one,
    rows_apart,
    shared_probe_batch,
)
from simulate.objectives.batches import (
    Batch,
    Stacked,
    Tally,
    bounded,
    carries_labels,
    cuts,
    cuttable,
    is_batch,
    named_data,
    pair,
    placed,
    repeatable,
    rows,
    sample_counts,
    window,
)
from simulate.objectives.derivatives import slopes
from simulate.objectives.forms import Form, Labels, asked_form, picked, returned_parts
from simulate.objectives.heads import ChunkedObjective, Head, by_chunks, by_positions, head_of
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

__all__ = ["Objective", "Reduction", "require_objective"]


class Objective:
    """Loss of a model on all data, as a function of its parameters.

    Parameters
    ----------
    model
        A module, or a function of a sequence of parameters and of inputs. What it returns is a tensor, or has one, see
        `field`. For the arguments of a module, and the axis of classes of a language model, see
        `simulate.objectives.forms`. Parameters of half precision are measured in single precision; of a model that is
        compiled, the module inside, and its compiled parts as they were written.
    data
        Batches (inputs, targets), such as a `DataLoader` or a list; or one such pair, of tensors or arrays, which is
        one batch; or the path of an ``.npz`` file with ``x_train, y_train`` or ``x, y``; or ``"digits"``. Inputs may
        be a tuple or, by name, a mapping of tensors; targets may be a tuple too, and what could then be two batches is
        refused. A batch may also be a mapping with `labels` among its inputs, as transformers have it; those of a
        causal language model are moved by one position, see `shifted`. A data set of single samples is stacked, see
        `simulate.objectives.batches`. An iterator is held in memory, and must end. What loads anew for every pass
        must give the same samples, in whatever order.
    loss
        A function of outputs and targets, one number for a batch, such as `nn.CrossEntropyLoss()`, or its name:
        "cross-entropy", "mse" or "bce". If None, cross-entropy for targets that are whole numbers, else the squared
        error. Where batches are no pairs, a function ``loss(model, batch)`` whose first argument is named ``model``,
        see `simulate.objectives.losses.BatchLoss`.
    parameters
        Of a module: names of parameters or of submodules, all that require a gradient if None. Of a function: its
        parameters, a sequence of tensors.
    reduction
        Whether `loss` is the mean or the sum over a batch; what its attribute of this name says if None, else "mean".
    count
        How many samples the mean over a batch is over, from its targets: their number if None; for a
        cross-entropy that ignores an index or weights classes, what it divides by. The loss of several batches is
        then their mean with these weights, whatever the loss is within one.
    training
        Whether the model is measured in training mode, with dropout and the statistics of each batch. A batch is the
        unit then: the loss is the mean over the batches as they are given. What the model draws at random is one draw,
        the same in every pass; a loss that draws is refused.
    chunk
        Most samples in one pass: a larger batch is cut if that changes nothing, else taken whole. Not in training
        mode, where samples of a batch may depend on each other.
    field
        Name or number of the tensor that the loss takes, where the model returns several; `logits`, or the only one,
        if None.
    group
        A process group of `torch.distributed`, each process of which holds some of the samples, or none: the loss is
        that of all samples, and what is measured the same in every process, in all of which it must be called. What
        is no sum over samples is refused. See `simulate.objectives.ranks`.

    Raises
    ------
    ValueError
        If there are no parameters or no data, an argument is of the wrong kind, parameters are not finite, of several
        types or devices, or in the memory of others, the loss of a batch is not one finite number, or the mode is
        `torch.inference_mode`; in a group if a process fails, has other parameters, or is in training mode; if data do
        not end, are others at the next pass, or come in batches that cannot be put
        together; from what takes derivatives, as `require_sound`.

    Examples
    --------
    >>> model = nn.utils.skip_init(nn.Linear, 2, 1, bias=False, dtype=torch.float64)
    >>> _ = model.weight.data.copy_(torch.tensor([[1.0, 2.0]]))
    >>> x, y = torch.eye(2, dtype=torch.float64), torch.zeros(2, 1, dtype=torch.float64)
    >>> objective = Objective(model, [(x, y), (x, y), (x[:1], y[:1])], nn.MSELoss())
    >>> round(objective.value(), 12)  # (1 + 4 + 1 + 4 + 1) / 5
    2.2
    >>> objective.gradient()
    tensor([1.2000, 1.6000], dtype=torch.float64)
    """

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
        if isinstance(model, Objective):
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
            self._head: Head | None = None
            self._runs_again: bool | None = None
            self._unchanged, self.takes_few = False, True
            self.recordable: dict[str, bool] = {}
            self.proven: dict[str, bool] = {}
            self.training, self.criterion = training, loss
            self._count, self._custom_count = (
                mean_denominator(loss) if count is None else count,
                count is not None,
            )
            self.answers: dict[str, Any] = {}
            self.shapes = tuple(p.shape for p in self._parameters)
            self.dtype, self.device = self._parameters[0].dtype, self._parameters[0].device
            self._sizes = [p.numel() for p in self._parameters]
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
        self.names, self._parameters = found.names, found.parameters
        self._call = found.call
        self.fixed, self.state = found.fixed, found.state
        self.originals = tuple(zip(found.names, found.originals, strict=True))
        self._leaves: Leaves = tuple(p.detach().requires_grad_() for p in self._parameters)

    def _with_loss(
        self, model: Any, data: Any, loss: Any, like: Tensor, chunk: int | None
    ) -> tuple[Any, Loss]:
        """Return data as pairs (inputs, targets), and the loss as a function of outputs and targets."""
        if BatchLoss.takes_model(loss):
            if not isinstance(model, nn.Module):
                raise ValueError("model must be a module where loss takes (model, batch), got a function")
            loss = BatchLoss(loss, model)
            return loss.pairs(repeatable([data] if is_batch(data) else data, chunk), like), loss
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
            self.answers = kept_answers(self.answers)
            if self.training and isinstance(self.data, Stacked):
                raise ValueError(
                    "data must be batches in training mode, got single samples: give DataLoader(data, batch_size)"
                )
            sizes, first = list[tuple[int, float]](), None
            with self.restored_after_reading():
                for inputs, targets in self.given():
                    first = first or (inputs, targets)
                    sizes.append((rows(targets), self._count(targets)))
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
            self._inspect_outputs(*of_one(self.ranks, holder, first, self._parameters[0]))
            self._inspected = True
        if not self.samples > 0:
            raise ValueError("data must hold at least one sample, got none")

    def with_data(self, data: Any, *, alone: bool = False) -> Objective:
        """Return the same loss on other data; `alone` if each process of a group holds all of these data."""
        other = copy.copy(self)
        if alone:
            other.ranks = Ranks()
        other._set_data(data)
        return other

    def at_current_parameters(self) -> Objective:
        """Return the same loss on the same data at the module's current parameters, as between two training steps.

        The checks of model and loss are not repeated: neither `require_sound`, nor `coupling`, nor the search for the
        layers in which the parameters act.

        Raises
        ------
        ValueError
            If the objective is of a function, whose parameters are those that were given, or the parameters are no
            longer finite.

        Examples
        --------
        >>> model = nn.utils.skip_init(nn.Linear, 1, 1, bias=False)
        >>> _ = model.weight.data.fill_(1.0)
        >>> objective = Objective(model, (torch.ones(3, 1), torch.zeros(3, 1)), nn.MSELoss())
        >>> _ = model.weight.data.fill_(2.0)
        >>> objective.value(), objective.at_current_parameters().value()
        (1.0, 4.0)
        """
        if self.model is None:
            raise ValueError(
                "model must be a module to take its current parameters, got a function; build another objective"
            )
        other = copy.copy(self)
        with self.ranks.together("an objective"):
            other._set_parameters(parametric(self.model, list(self.names)))
        return other

    @property
    def shifted(self) -> bool:
        """Whether labels from mappings were shifted by one position, as the model's own loss does.

        See `simulate.objectives.forms`.
        """
        return bool(self._labels.shifted)

    @property
    def share(self) -> float:
        """Factor of the loss of one sample in the loss of all data."""
        return 1 / self.samples if self.reduction == "mean" else 1.0

    @property
    def separable(self) -> bool:
        """Whether the loss of a batch is the mean, or sum, of the losses of any parts of it: `coupling` is empty."""
        return not self.coupling

    @property
    def coupling(self) -> str:
        """Reason why the loss of a batch does not split into losses of its parts; empty if it does.

        Tested once on at most 32 samples, no more at a time than fit in one pass: five forward passes, and one pass
        through the data to pick the samples. Whole batches are tested too, see `mixing`, and again for other data with
        batches of other sizes. Nothing is tested in training mode, where samples of a batch may affect each other.
        """
        if self.training:
            return "in training mode samples of a batch may affect each other"
        return all_coupling(self)

    @property
    def mixing(self) -> str:
        """Description of how the model mixes samples of a batch; empty if parts of it have the same outputs.

        Tested once for each data set, on batches of at most four of the sizes in use: three forward passes for each,
        and one of a single sample. `simulate.objectives.additivity` says which models pass unseen.
        """
        return model_mixing(self)

    @property
    def apart(self) -> bool:
        """Whether every sample has the same row of outputs in a batch as alone: `mixing` is empty.

        Examples
        --------
        >>> data = torch.randn(5, 3), torch.zeros(5, 2)
        >>> Objective(nn.Sequential(nn.Linear(3, 2), nn.Softmax(0)), data, nn.MSELoss()).apart
        False
        """
        return rows_apart(self)

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
        counted = self._custom_count and self._count
        return self.sizes, self.pass_size, self.own_rows, self.samples, counted, self.form, *tally.sums

    def sums(self) -> bool:
        """Return whether the loss function sums over the samples of a batch although it is declared a mean."""
        return gives_sum(self)

    @property
    def chunk(self) -> int | None:
        """Most samples in one pass; None if batches are taken whole, say since their loss cannot be split."""
        cut = self._chunk is not None and self._largest > self._chunk
        return None if cut and not self.separable else self._chunk

    def weight(self, targets: Any) -> float:
        """Return the weight of a batch with these targets: the denominator of its mean, up to a constant factor."""
        return self._count(targets)

    def leaves(self) -> Leaves:
        """Return the parameters as tensors that require gradients; the same tensors each time."""
        return self._leaves

    @property
    def runs_again(self) -> bool:
        """Whether a backward pass calls parts of the model again, as checkpointing does; see `require_sound`."""
        if self._runs_again is None:
            with self.ranks.together("derivatives"):
                asked = self.at_few()
                self._runs_again = soundness.runs_again(asked)
                self.proven = asked.proven
        return self._runs_again

    def require_sound(self) -> None:
        """Refuse models and losses whose derivatives are silently wrong; checked once, before any derivative.

        Raises
        ------
        ValueError
            If torch's derivatives of the loss are wrong, see `simulate.objectives.soundness`.
        """
        _ = self.runs_again

    def disown(self, model: nn.Module) -> None:
        """Refuse also a loss that uses the parameters of this module, of which the objective's module is a copy."""
        known = dict(model.named_parameters())
        self.originals += tuple((name, known[name]) for name in self.names)

    @contextmanager
    def measured(self, *, draws: bool = True) -> Iterator[None]:
        """Put the model into its mode while derivatives are taken or graphs are built, and restore it afterwards.

        Parameters
        ----------
        draws
            Whether anything may draw random numbers: then the states of the generators are restored.

        Raises
        ------
        ValueError
            As `require_sound`.
        """
        again = self.runs_again
        mode = preserve_state if draws else in_mode
        with mode(self.model, self.training), self.standing(self._leaves, needed=again):
            yield

    def standing(self, leaves: Sequence[Tensor], *, needed: bool = True) -> AbstractContextManager[None]:
        """Put the parameters into the module for the duration of a context, if `needed`; see `parameters.in_place`."""
        if self.model is None or not needed:
            return nullcontext()
        return in_place(self.model, self.state(leaves))

    def few(self, *, whole: bool = False) -> Batch:
        """Return a few samples of the first batch that has several, for tests of model and loss.

        Return the whole batch if `whole`, in training mode, or if it cannot be cut. Whether the loss splits into parts
        is not tested.
        """
        return shared_probe_batch(self, whole=whole)

    def batches(self, *, empty: bool = False) -> Iterator[Batch]:
        """Yield all data once, on the device of the parameters. Call it within `preserve_state`.

        With `empty`, also yield batches that add nothing to the loss, such as one of ignored classes only.

        Raises
        ------
        ValueError
            If the data differ from those of the first pass, or come in several batches whose losses do not add up; in a
            group, if called for a quantity that is not a sum over its processes.
        """
        if not self.ranks.inside:
            raise ValueError(
                "group must be None for a quantity that is not a sum over samples, got samples in several processes"
            )
        # several batches can only be combined by the mean of their losses, which is wrong where samples are coupled
        if self.several and not (self.training or self._custom_count) and self.coupling not in ("", UNKNOWN):
            raise ValueError(
                f"loss must be a {self.reduction} over samples, each for itself, of data in several batches, got"
                f" another: {self.coupling}; pass all samples as one batch"
            )
        for inputs, targets in self.given():
            count = rows(targets)
            for part in cuts(count, self.chunk or count):
                cut = count > part.stop - part.start
                own = (window(inputs, part), window(targets, part)) if cut else (inputs, targets)
                batch = self.weighed(*own)
                if batch.factor or empty:  # the mean over no samples is NaN
                    yield batch

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

    def head_of(self, batch: Batch) -> Head | None:
        """Return the last layer if the logits of a batch come in chunks of positions, see `objectives.heads`."""
        return self._head if isinstance(batch.targets, Tensor) and batch.targets.ndim == 2 else None

    def at_few(self) -> Any:
        """Return this objective, or one at a few positions if the model has a language-model head."""
        return self if self._head is None else ChunkedObjective(self, self._head)

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return the term of the loss that this batch adds.

        Raises
        ------
        ValueError
            If the loss function does not give one finite number.
        """
        loss = loss_of(self.criterion, outputs, batch.targets)
        if not isinstance(loss, Tensor) or loss.numel() != 1 or loss.is_complex():
            shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise ValueError(
                f"loss must be one number for a batch, got {shape}; reduce it to its mean or sum"
            )
        if batch.factor and not bool(loss.isfinite()):
            raise ValueError(f"loss must be finite, got {loss.item()}: check inputs, targets and parameters")
        return loss.reshape(()) * batch.factor

    def value(self) -> float:
        """Return the loss of all data."""
        if not self._unchanged:
            with self.ranks.together("calls"), torch.no_grad():
                soundness.require_unchanged(self.at_few())
            self._unchanged = True
        with preserve_state(self.model, self.training), torch.no_grad():
            return self._pass()[0]

    def gradient(self) -> Tensor:
        """Return the gradient of the loss of all data, (dim,).

        Raises
        ------
        ValueError
            If it is not finite, though the loss is; and as `require_sound`.
        """
        with self.measured(), torch.enable_grad():
            found = self._pass()[1]
        if not bool(found.isfinite().all()):
            raise ValueError(
                "gradient must be finite, got NaN or infinity: check inputs, targets and parameters"
            )
        return found

    def twice(self) -> tuple[tuple[float, Tensor], tuple[float, Tensor]]:
        """Return loss and gradient of all data, computed twice with new random draws in the second pass."""
        with self.measured(), torch.enable_grad():
            return self._pass(), self._pass()

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
        ends = itertools.accumulate(s.numel() for s in self.shapes)
        return {
            name: slice(end - s.numel(), end)
            for name, s, end in zip(self.names, self.shapes, ends, strict=True)
        }

    def _pass(self) -> tuple[float, Tensor]:
        """Return the loss, and its gradient if gradients are recorded, else zeros."""
        value, total = 0.0, torch.zeros(self.dim, dtype=self.dtype, device=self.device)
        leaves = self.leaves()
        with self.ranks.together("a pass"):
            for batch in self.batches():
                head = self.head_of(batch)
                if head is not None:
                    part, gradient = by_chunks(self, head, batch)
                else:
                    loss = self.loss(self.outputs(leaves, batch.inputs), batch)
                    part, gradient = loss.item(), slopes(loss, leaves) if torch.is_grad_enabled() else ()
                value += part
                total += self.flat(gradient) if gradient else 0.0
        return self.ranks.sum(value), self.ranks.total(total) if torch.is_grad_enabled() else total

    def weighed(self, inputs: Any, targets: Any) -> Batch:
        """Return a batch with its factor in the loss of all data."""
        factor = self._count(targets) / self.samples if self.reduction == "mean" else 1.0
        return Batch(inputs, targets, factor)

    def restored_after_reading(self) -> AbstractContextManager[None]:
        """Restore the generators from which a loader may draw; data in memory draw nothing."""
        guard = in_mode if isinstance(self.data, tuple | list) else preserve_state
        return guard(self.model, self.training)

    def given(self) -> Iterator[tuple[Any, Any]]:
        """Yield the batches of the data, uncut and without empty ones."""
        tally, loaded, like = Tally(), not isinstance(self.data, tuple | list), self._parameters[0]
        for item in bounded(self.data):
            first, second = pair(item)
            inputs, targets = placed(first, like), placed(second, like)
            if carries_labels(item):
                inputs, targets = self._labels.parted(inputs, targets, self._call, self._parameters)
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
        """Call the model on one sample to find the axis of the classes, and whether its last layer gives the logits."""
        with self.ranks.together("outputs"), preserve_state(self.model, False):
            self.form = asked_form(
                lambda given: self._call(self._parameters, given),
                inputs,
                targets,
                loss=self.criterion,
                field=self.form.field,
            )
            if isinstance(self.criterion, BatchLoss):
                found = self._call(self._parameters, inputs)
                self.criterion.look_at(returned_parts(found), picked(found, self.form.field))
            single = isinstance(targets, Tensor) and targets.numel() == len(targets)
            if single and by_element(self.criterion):
                with torch.no_grad():
                    shape = tuple(self.form.read(self._call(self._parameters, inputs)).shape[1:])
                # with an explicit loss, one target for several outputs may be meant; torch warns of it
                if shape != targets.shape[1:] and not (self._explicit_loss and math.prod(shape) > 1):
                    self._shape = tuple(shaped(targets, shape).shape[1:])
            if self.form.last and not self._custom_count and by_positions(self.criterion, self.reduction):
                self._head = head_of(self, inputs)

    def __repr__(self) -> str:
        """Return one line: model, number of parameters, number of samples, loss."""
        model = "a function" if self.model is None else type(self.model).__name__
        loss = getattr(self.criterion, "__name__", type(self.criterion).__name__)
        return f"Objective({model}, P = {self.dim}, N = {self.rows}, loss {loss})"


def require_objective(call: str, objective: Any) -> None:
    """Refuse anything but an `Objective`.

    Raises
    ------
    ValueError
        If it is something else, naming the intended call.

    Examples
    --------
    >>> require_objective("hessian", nn.Linear(1, 1))
    Traceback (most recent call last):
    ValueError: hessian takes an Objective, got Linear: call hessian(Objective(model, data, loss))
    """
    if not isinstance(objective, Objective):
        got = type(objective).__name__
        raise ValueError(f"{call} takes an Objective, got {got}: call {call}(Objective(model, data, loss))")
