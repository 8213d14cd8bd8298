"""Objectives: a model, its loss and its data as one function of the parameters, see `simulate.objectives`."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler

from simulate.objectives import soundness
from simulate.objectives.additivity import UNKNOWN, all_coupling, gives_sum, model_mixing, rows_apart
from simulate.objectives.batches import Batch, OtherDataError, cuts, rows, window
from simulate.objectives.derivatives import slopes
from simulate.objectives.heads import Head, at_few, by_chunks, by_positions, head_of
from simulate.objectives.loss_function import LossFunction
from simulate.objectives.parameters import parametric
from simulate.objectives.ranks import Ranks
from simulate.objectives.restoring import preserve_state


class Objective(LossFunction):
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

    head: Head | None = None
    """Last layer of the model, if it gives so many logits that they come in chunks of positions."""

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

    def sums(self) -> bool:
        """Return whether the loss function sums over the samples of a batch although it is declared a mean."""
        return gives_sum(self)

    @property
    def chunk(self) -> int | None:
        """Most samples in one pass; None if batches are taken whole, say since their loss cannot be split."""
        cut = self._chunk is not None and self._largest > self._chunk
        return None if cut and not self.separable else self._chunk

    @property
    def runs_again(self) -> bool:
        """Whether a backward pass calls parts of the model again, as checkpointing does; see `require_sound`."""
        if self._runs_again is None:
            with self.ranks.together("derivatives"):
                asked = at_few(self)
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
        """Record derivatives with the model in its mode, and restore all modes afterwards.

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
        with self.own_mode(draws=draws), self.standing(self.leaves, needed=again), torch.enable_grad():
            yield

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

    def head_of(self, batch: Batch) -> Head | None:
        """Return the last layer if the logits of a batch come in chunks of positions, see `objectives.heads`."""
        return self.head if isinstance(batch.targets, Tensor) and batch.targets.ndim == 2 else None

    def value(self) -> float:
        """Return the loss of all data."""
        if not self._unchanged:
            with self.ranks.together("calls"), torch.no_grad():
                soundness.require_unchanged(at_few(self))
            self._unchanged = True
        with self.own_mode(), torch.no_grad():
            return self._pass()[0]

    def gradient(self) -> Tensor:
        """Return the gradient of the loss of all data, (dim,).

        Raises
        ------
        ValueError
            If it is not finite, though the loss is; and as `require_sound`.
        """
        with self.measured():
            found = self._pass()[1]
        if not bool(found.isfinite().all()):
            raise ValueError(
                "gradient must be finite, got NaN or infinity: check inputs, targets and parameters"
            )
        return found

    def twice(self) -> tuple[tuple[float, Tensor], tuple[float, Tensor]]:
        """Return loss and gradient of all data, computed twice with new random draws in the second pass."""
        with self.measured():
            return self._pass(), self._pass()

    def _pass(self) -> tuple[float, Tensor]:
        """Return the loss, and its gradient if gradients are recorded, else zeros."""
        value, total = 0.0, torch.zeros(self.dim, dtype=self.dtype, device=self.device)
        leaves = self.leaves
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

    def _inspect_outputs(self, inputs: Any, targets: Any) -> None:
        """Look also whether the last layer of the model gives the logits."""
        super()._inspect_outputs(inputs, targets)
        if self.form.last and not self._custom_count and by_positions(self.criterion, self.reduction):
            with self.ranks.together("outputs"), preserve_state(self.model, False):
                self.head = head_of(self, inputs)

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


# --- losses that repeat -----------------------------------------------------------------------------

_RULE = "data and model must give the same loss twice"


def require_deterministic(objective: Objective) -> None:
    """Compute the loss of all data twice and refuse one that does not repeat.

    A loader that shuffles is allowed: the sum over all samples is the same in any order. It is refused if it drops the
    last samples, or if the samples of a batch affect each other.

    Raises
    ------
    ValueError
        If loss or gradient differ by more than rounding, naming what draws at random.

    Examples
    --------
    >>> model = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))
    >>> data = (torch.ones(4, 3), torch.tensor([0, 1, 1, 0]))
    >>> require_deterministic(Objective(model, data, nn.CrossEntropyLoss()))
    >>> require_deterministic(Objective(model, data, nn.CrossEntropyLoss(), training=True))
    Traceback (most recent call last):
    ValueError: data and model must give the same loss twice, got ...: dropout in training mode ('0')
    """
    try:
        (value, gradient), (again, other) = objective.twice()
    except OtherDataError:
        raise ValueError(f"{_RULE}, got others at the second pass: {_cause(objective)}") from None
    rounding = 1e4 * torch.finfo(objective.dtype).eps  # summing in another order changes less
    same = abs(value - again) <= rounding * abs(value)
    if same and float((gradient - other).abs().max()) <= rounding * float(gradient.abs().max()):
        return
    raise ValueError(f"{_RULE}, got {value!r} and {again!r}: {_cause(objective)}")


def _cause(objective: Objective) -> str:
    def training(kind: Any) -> str:
        modules = objective.model.named_modules() if objective.model and objective.training else ()
        return ", ".join(repr(name) for name, module in modules if isinstance(module, kind))

    causes = list[str]()
    if dropping := training(_DropoutNd):
        causes.append(f"dropout in training mode ({dropping})")
    loader: Any = objective.data
    sampler = loader.sampler if isinstance(loader, DataLoader) else None
    if sampler is not None and not isinstance(sampler, SequentialSampler):
        if normalising := training(_BatchNorm):
            causes.append(
                f"a loader that shuffles under batch normalisation in training mode ({normalising})"
            )
        if loader.drop_last:
            causes.append("a loader that shuffles and drops the last samples (drop_last=True)")
        if not isinstance(sampler, RandomSampler) or (
            sampler.replacement or sampler.num_samples < len(sampler.data_source)
        ):
            causes.append("a sampler that chooses samples at random")
    return "; ".join(causes) or "the model or the data draw random numbers of their own"
