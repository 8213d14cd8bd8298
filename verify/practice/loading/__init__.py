"""A model with its data and loss as one `Problem`, from Python objects or from the words of the shell.

Code of others runs here: an error of theirs becomes one line, their random draws follow the seed and leave the
generators as they were, and the model that is given is copied, never changed.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from simulate.objectives import Objective
from simulate.objectives.batches import joined, named_data, placed, rows, window
from simulate.objectives.forms import Labels
from simulate.objectives.losses import LOSSES, BatchLoss, default_loss, fitting, named_loss, require_order
from simulate.objectives.objective import require_deterministic
from simulate.objectives.parameters import parametric, require_ready, unwrapped
from simulate.objectives.ranks import Ranks
from simulate.objectives.restoring import preserve_state
from verify.escapes import escaped
from verify.practice.loading import language
from verify.practice.loading.checkpoints import restore
from verify.practice.loading.first_calls import first_outputs, placed_model
from verify.practice.loading.foreign import (
    build,
    calling,
    forward_passes,
    function,
    given_data,
    measured,
    restored,
)
from verify.practice.loading.samples import fewer, gathered, subsample
from verify.running.options import require_seed

__all__ = [
    "Problem",
    "asked_problem",
    "from_options",
    "load_problem",
    "problem",
    "problem_of",
]

BATCH = 1000
"""Samples in one pass where nobody says: more are not faster, and take more memory."""

OUTPUTS = 1 << 26
"""Numbers that the model returns in one pass where nobody says: a vocabulary at every position is many."""

_TEXT = ".txt"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A loss of a model on data: what is measured.

    Attributes
    ----------
    name
        For people: model and data.
    model
        The copy that is measured, on its device and in its type; that of an `Objective` itself, None of a function.
    objective
        The loss as a function of the parameters, on all samples.
    inputs, targets
        All samples, on the device and in the type of the parameters; inputs may be a structure of tensors, and so
        may targets where the loss takes whole batches.
    loss
        Of outputs and targets, one number for a batch.
    samples
        Rows of the targets.
    outputs
        Shape of the outputs of one sample.
    batch_size
        Most samples in one pass; None where all are one batch: in training mode, and of a loss that is no mean over
        samples which do not see each other.
    shifted
        Whether labels were moved by one position, as the model's own loss does, see `Objective.shifted`.
    loader
        The `DataLoader` that the data came from; None of other data.
    """

    name: str
    model: nn.Module | None
    objective: Objective
    inputs: Any
    targets: Any
    loss: Any
    samples: int
    outputs: tuple[int, ...]
    batch_size: int | None
    shifted: bool = False
    loader: Any = None

    @property
    def module(self) -> nn.Module:
        """The model, to be called and trained.

        Raises
        ------
        ValueError
            If the problem is an `Objective` of a function.
        """
        if self.model is None:
            raise ValueError("trial training needs a torch module, got an Objective of a function")
        return self.model

    def batch_objective(self, indices: Any) -> Objective:
        """Return the objective with the same loss on some of the samples.

        Raises
        ------
        ValueError
            If there are none, or the loss on them is not finite.
        """
        chosen = torch.as_tensor(indices, device=self.objective.device)
        return self.objective.with_data([window((self.inputs, self.targets), chosen)], alone=True)

    @property
    def unit(self) -> float:
        """Factor of the curvature of one sample, as the engine has it, that makes the mean over samples that of all.

        Not 1 where the loss divides by something else than their number: positions, or the weights of classes.
        """
        return self.samples * self.objective.share

    @property
    def classes(self) -> int | None:
        """Number of classes of the outputs; None if the targets are not classes."""
        classes = isinstance(self.loss, nn.CrossEntropyLoss) or (
            isinstance(self.targets, Tensor)
            and not self.targets.is_floating_point()
            and not isinstance(self.loss, nn.MSELoss)
        )
        return self.outputs[0] if classes and self.outputs else None


def problem(
    model: nn.Module,
    data: Any,
    *,
    loss: Any = None,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    batch_size: int | None = None,
    samples: int | None = None,
    seed: int = 0,
    parameters: Any = None,
    training: bool = False,
    field: str | int | None = None,
    name: str | None = None,
    group: Any = None,
    in_place: bool = False,
) -> Problem:
    """A model, its data and its loss, checked by a pass through all of it.

    Parameters
    ----------
    model
        Any module that returns a tensor, or `field` among others, samples along its first axis. A copy is measured.
    data
        A pair (inputs, targets) of tensors or arrays, or batches of them such as a `DataLoader`, gone through once;
        mappings with labels, data sets of single samples, the path of an ``.npz`` file and "digits", as
        `simulate.objectives.Objective` takes them. Inputs of type uint8 are divided by 255 unless they are in a
        mapping, where they may be tokens.
    loss
        A function of outputs and targets, one number for a batch; or "cross-entropy", "mse" or "bce"; or a function
        of model and batch, see `simulate.objectives.losses.BatchLoss`. By the targets if None: cross-entropy for
        integers, squared error for floats.
    dtype, device
        "float32" or "float64", and a device of torch; those of the model if None, float32 for half precision.
    batch_size
        Most samples in one pass; if None 1000, fewer where their outputs are many. The result does not hang on it: if
        the loss is no mean over the samples, or the model lets them see each other, all are one batch whatever it is.
    samples
        So many of the samples, drawn by `seed`; all if None. Of a data set, or a `DataLoader` over one, no others
        are read.
    seed
        Of that draw.
    parameters
        Names of parameters or submodules to differentiate by; all that require a gradient if None.
    training
        Whether the model is measured in training mode, all samples as one batch.
    field
        Name or number of the tensor that the loss takes, where the model returns several; `logits` or the only one
        if None.
    name
        For people; that of the class if None.
    group
        A process group of `torch.distributed`, each process of which is given all samples and takes its part of them.
    in_place
        Whether to take the model itself if it has the right device and type, as for trial runs, which restore it: then
        the loss may use the weights otherwise than by calling the model, and need not have second derivatives.

    Raises
    ------
    ValueError
        If anything of it cannot be measured, in one line that names what.

    Examples
    --------
    >>> x, y = torch.eye(3).repeat(2, 1), torch.tensor([0, 1, 2, 2, 1, 0])
    >>> found = problem(nn.Linear(3, 3), (x, y))
    >>> found.samples, found.classes, found.objective.dim
    (6, 3, 12)
    """
    if not isinstance(model, nn.Module):
        called = getattr(model, "__name__", "model").replace("<lambda>", "model")
        advice = f"; call it: {called}()" * callable(model)
        raise ValueError(f"model must be a torch.nn.Module, got {type(model).__name__}{advice}")
    model = unwrapped(model)
    require_ready(model)
    own = placed_model(model, dtype=dtype, device=device, in_place=in_place)
    itself = own is model
    loader = data if isinstance(data, DataLoader) else None
    free = parametric(own, parameters)
    like = free.parameters[0]
    if isinstance(data, str | os.PathLike):

        def run(few: Tensor) -> None:
            with preserve_state(own, training):
                first_outputs(free, placed(few, like))

        data = named_data(data, run)
    # Before anything is read, for a data set may be large.
    data = data if samples is None else fewer(data, samples, seed)
    whole = BatchLoss.takes_model(loss)
    # Such a loss reads the batch as the model takes it: nothing in it is scaled or moved.
    if whole:
        loss = BatchLoss(loss, own)
        data = loss.pairs(data, like)
    labels = Labels(own, nn.CrossEntropyLoss() if loss is None else named_loss(loss), field)

    def parted(x: Any, y: Any) -> tuple[Any, Any]:
        with calling("model", "run on a batch with its labels"):
            return labels.parted(x, y, free.call, free.parameters)

    # a generator that is the loader's own, not one of those that are restored everywhere
    generator = getattr(loader, "generator", None)
    state = generator and generator.get_state()
    inputs, targets = subsample(*gathered(data, like, parted, whole=whole), samples, seed)
    if generator:
        generator.set_state(state)
    criterion = default_loss(targets) if loss is None else named_loss(loss)
    with preserve_state(own, training):
        outputs = first_outputs(free, inputs, targets=targets, loss=criterion, field=field)
    targets = targets if whole else fitting(criterion, outputs, targets, like.dtype)
    most = max(1, min(BATCH, OUTPUTS // max(1, math.prod(outputs))))
    # In training mode samples see each other through statistics of the batch, so all are one batch.
    size = None if training else min(batch_size or most, rows(targets))
    with calling("model and loss", "run on all samples"):
        ranks = Ranks(group)
        start, stop = (rows(targets) * rank // ranks.size for rank in (ranks.rank, ranks.rank + 1))
        objective = Objective(
            own,
            [window((inputs, targets), slice(start, stop))],
            criterion,
            parameters=parameters,
            training=training,
            chunk=size,
            field=field,
            group=group,
        )
        if not itself:
            objective.disown(model)
        # A pass through all samples: what cannot run fails here, not in the middle of a measurement.
        objective.value()
    _require_mean(objective, "divide it by their number", derivatives=not itself)
    return Problem(
        name=name or type(model).__name__,
        model=own,
        objective=objective,
        inputs=inputs,
        targets=targets,
        loss=criterion,
        samples=rows(targets),
        outputs=outputs,
        batch_size=objective.chunk,
        shifted=bool(labels.shifted),
        loader=loader,
    )


def asked_problem(call: str, model: Any, data: Any, loss: Any, **options: Any) -> Problem:
    """Return the problem of a call such as ``measure(model, data, loss)`` or ``measure(objective)``.

    Raises
    ------
    ValueError
        If data are missing, or given together with an `Objective`, which has its own; also as in `problem`.
    """
    if isinstance(model, Problem):
        raise ValueError(
            f"model must be a module or an Objective, got a Problem; call {call}(model, data, loss)"
        )
    if not isinstance(model, Objective):
        require_order(call, model, data, loss)
        if data is None:
            raise ValueError(
                f"data must be given, got none: call {call}(model, data), such as (inputs, targets)"
            )
        return problem(model, data, loss=loss, **options)
    own = {"data": data, "loss": loss, **options}
    # a seed belongs to the call; what is None or False was left out
    given = ", ".join(
        n for n, value in own.items() if n != "seed" and value is not None and value is not False
    )
    if given:
        raise ValueError(
            f"an Objective has its own {given}; set them when it is made and call {call}(objective)"
        )
    return problem_of(model)


def problem_of(objective: Objective) -> Problem:
    """An `Objective` as a problem, with its own model and data.

    Raises
    ------
    ValueError
        If its loss is a sum, its batches have no shape in common, or as `problem`.

    Examples
    --------
    >>> x, y = torch.eye(3).repeat(2, 1), torch.tensor([0, 1, 2, 2, 1, 0])
    >>> found = problem_of(Objective(nn.Linear(3, 3), [(x[:4], y[:4]), (x[4:], y[4:])]))
    >>> found.samples, found.classes
    (6, 3)
    """
    with forward_passes(objective, "a problem"):
        batches = list(objective.batches(empty=True))
        inputs = joined([batch.inputs for batch in batches])
        targets = joined([batch.targets for batch in batches])
    _require_mean(objective, "say reduction='sum'")
    with forward_passes(objective, "a problem"):
        outputs = tuple(objective.outputs(objective.leaves, objective.few().inputs).shape[1:])
    model = objective.model
    return Problem(
        name=type(model).__name__ if model is not None else "function",
        model=model,
        objective=objective,
        inputs=inputs,
        targets=targets,
        loss=objective.criterion,
        samples=objective.rows,
        outputs=outputs,
        batch_size=objective.chunk,
        shifted=objective.shifted,
    )


def _require_mean(objective: Objective, advice: str, *, derivatives: bool = True) -> None:
    with measured():
        if derivatives:
            objective.require_sound()
            require_deterministic(objective)
        if objective.sums():
            raise ValueError(f"loss must be a mean over the samples of a batch, got a sum: {advice}")


def load_problem(
    model: str,
    data: str,
    *,
    loss: str | None = None,
    checkpoint: str | None = None,
    tokenizer: str | None = None,
    length: int | None = None,
    seed: int = 0,
    tell: Callable[[str], object] = lambda _: None,
    **options: Any,
) -> Problem:
    """Return the problem that the options of a command describe.

    Parameters
    ----------
    model
        ``pkg.module:build`` or ``path/to/file.py:build``: a function or class without required arguments that gives
        a module, or a module itself. The current folder is searched first. It builds with torch, numpy and Python
        seeded by `seed`. Or ``hf:config.json``, a configuration of transformers, see `language`.
    data
        An ``.npz`` archive with ``x_train, y_train`` or ``x, y``: floats and truth values as they are, uint8 inputs
        divided by 255; or ``digits``, the embedded ones, in the first shape that the model takes of (1, 28, 28),
        (784,), (1, 8, 8), (64,) and (3, 32, 32); or ``text.txt``, by a tokenizer; or ``pkg.module:name``, what
        `problem` takes or a function without required arguments that gives it.
    loss
        ``cross-entropy``, ``mse``, ``bce`` or ``pkg.module:function``.
    checkpoint
        A ``state_dict``, or a dictionary with one in it, see `checkpoints.restore`. Code in it is never run.
    tokenizer, length
        Of a text: a folder with the files of a tokenizer or ``bytes``, and how many tokens a sequence has.
    seed
        Of what `model` draws, and of the choice of `samples`.
    tell
        Called with each line on what was loaded from a checkpoint, read from a text, or done to labels.
    options
        As in `problem`.

    Raises
    ------
    ValueError
        If an argument cannot be used, in one line that names it.

    Examples
    --------
    >>> load_problem("torch.nn:Identity", "digits")
    Traceback (most recent call last):
    ValueError: model must have a parameter that requires a gradient, got none
    """
    with restored(require_seed(seed)):
        net = language.from_configuration(model) if model.startswith(language.PREFIX) else build(model)
        if checkpoint:
            tell(restore(net, checkpoint))
        criterion = loss if loss is None or loss in LOSSES else function(loss)
        if data.endswith(_TEXT):
            given, message = language.sequences(data, model, net, tokenizer=tokenizer, length=length)
            tell(message)
        elif tokenizer is not None or length is not None:
            raise ValueError(f"--tokenizer and --length need a text (FILE.txt) as --data, got {data}")
        else:
            # names of a file and of the digits stay as they are
            named = data.rpartition(":")[2].replace(".", "").isidentifier() and ":" in data
            given = given_data(data) if named and not Path(data).is_file() else data
        name = f"{model}{f' from {checkpoint}' if checkpoint else ''} on {data}"
        found = problem(net, given, loss=criterion, seed=seed, name=name, **options)
        if found.shifted:
            tell("labels: shifted by one position, as the model's own loss does")
        return found


def from_options(options: argparse.Namespace, *, in_place: bool = False) -> Problem:
    """Return the problem that the parsed options shared by all commands describe; `in_place` as in `problem`.

    Raises
    ------
    ValueError
        As `load_problem`.
    """
    for option in ("samples", "batch_size", "length"):
        value = getattr(options, option)
        if value is not None and value < 1:
            raise ValueError(f"--{option.replace('_', '-')} must be at least 1, got {value}")
    return load_problem(
        options.model,
        options.data,
        loss=options.loss,
        checkpoint=options.checkpoint,
        dtype=options.dtype,
        device=options.device,
        batch_size=options.batch_size,
        samples=options.samples,
        seed=options.seed,
        parameters=options.parameters,
        training=options.training,
        field=int(options.field) if options.field and options.field.isdigit() else options.field,
        tokenizer=options.tokenizer,
        length=options.length,
        group=getattr(options, "group", None),
        in_place=in_place,
        tell=lambda line: sys.stderr.write(f"losscurv: {escaped(line)}\n"),
    )
