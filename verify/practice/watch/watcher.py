"""Curvature between the steps of a training: what is measured, when, and at what price.

The largest eigenvalue of the Hessian of some fixed samples and of the batches that come by, by Lanczos from the
eigenvector found before; the gradient noise scale; and the eigenvalue that the learning rate allows
(`verify.practice.step_limits`).
"""

from __future__ import annotations

import inspect
import json
import math
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from simulate._checks import at_least
from simulate.objectives.batches import carries_labels, copied, pair, placed, rows, tensors
from simulate.objectives.losses import IGNORED, of_classes
from simulate.objectives.parameters import unwrapped
from simulate.objectives.restoring import preserve_state
from simulate.results import Columns, Result
from verify.practice.moved import moved_groups
from verify.practice.step_limits import step_limit
from verify.practice.watch.journal import Journal
from verify.practice.watch.moving import MovingCurvature, OfBatch, Spent, WrongLossError
from verify.practice.watch.pace import Pace
from verify.practice.watch.record import BRIEF, CurvatureRecord, record_columns, record_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_VERSION = 1
"""Version of the lines of JSON."""


def watch(
    optimizer: torch.optim.Optimizer,
    model: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    every: int = 100,
    *,
    samples: Any = None,
    file: str | os.PathLike[str] | None = None,
    most: float = 0.05,
    batches: int = 5,
    outputs: Callable[[Any], Tensor] | None = None,
    training: bool | None = None,
    start: int = 0,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> Watcher:
    r"""Watch the curvature of the loss while a model trains.

    Call `Watcher.step` with inputs and targets, or a batch with its labels, after every step of the optimiser. It
    returns None, or a `CurvatureRecord` where it has measured: at its first call, and then after `every` further ones
    at the earliest.
    Parameters, gradients, buffers, modes and the generators of random numbers of torch, numpy and Python are left as
    found: training goes on to the last bit as it would have without.

    Parameters
    ----------
    optimizer
        Any of torch that steps without a closure. It moves parameters of `model` alone; frozen ones, and those of
        another optimiser, are held fixed in the Hessian.
    model
        Called with inputs as `simulate.objectives.Objective` does: a tensor, a tuple, or by name. All parameters
        that are trained are float32, or all float64.
    loss
        Of outputs and targets, their mean over a batch. For a model whose own loss moves labels by one position, as
        causal language models do, give a cross-entropy of torch: it gets the labels moved, of a batch with its labels
        and of a pair whose targets are the tokens themselves. Targets that are the next tokens already stay as they
        are.
    every
        Steps from one measurement to the next, at least.
    samples
        Inputs and targets of which the curvature is followed, or a mapping with labels among its inputs, as a batch of
        transformers; the first batch if None. Held as one batch.
    file
        To append lines of JSON to, one for each measurement, behind a line that begins a run. What it holds stays.
    most
        Share of the time, from 0 to below 1, that measurements may take: they are put off until they keep to it. The
        first is made in any case and counts too.
    batches
        That means are over, the latest ones.
    outputs
        From what the model returns to the tensor that `loss` takes, such as ``lambda out: out.logits``.
    training
        Whether the curvature is that in training mode, with dropout and the statistics of each batch; if None as the
        model is found, all parts of which must then be in one mode.
    start
        Steps that were done before, in a training that goes on.
    seed
        Of the starts of Lanczos and of dropout.
    clock
        Seconds.

    Raises
    ------
    ValueError
        If an argument is not as above, the optimiser needs a closure, `loss` is a sum, or the file cannot be written.

    References
    ----------
    Cohen, Kaur, Li, Kolter and Talwalkar (2021), Gradient descent on neural networks typically occurs at the edge of
    stability, arXiv 2103.00065: :math:`\lambda_1` against :math:`2/\eta`. McCandlish, Kaplan, Amodei and the OpenAI
    Dota team (2018), An empirical model of large-batch training, arXiv 1812.06162, eqs. (2.9) and appendix A.1: the
    simple noise scale :math:`\mathrm{tr}\,\Sigma / |g|^2` from gradients of two sizes of batch.

    Examples
    --------
    Least squares with Hessian diag(9, 1), by full gradients:

    >>> model = nn.utils.skip_init(nn.Linear, 2, 1, bias=False, dtype=torch.float64)
    >>> _ = model.weight.data.fill_(1.0)
    >>> inputs, targets = torch.diag(torch.tensor([3.0, 1.0])).double(), torch.zeros(2, 1).double()
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> watcher = watch(optimizer, model, nn.MSELoss())
    >>> found = watcher.step(inputs, targets)
    >>> round(found.eigenvalue, 6), round(found.limit, 6), found.limit_note
    (9.0, 38.0, '2 (1 + momentum) / rate')
    >>> watcher.step(inputs, targets) is None
    True
    """
    whole = {"every": (every, 1), "batches": (batches, 1), "start": (start, 0), "seed": (seed, 0)}
    counts = {name: at_least(name, *given) for name, given in whole.items()}
    if isinstance(most, bool) or not isinstance(most, int | float) or not 0 < most < 1:
        raise ValueError(f"most must be a number between 0 and 1, got {most!r}")
    if training not in (None, True, False):
        raise ValueError(f"training must be True, False or None, got {training!r}")
    options = _Options(most=most, training=training, **counts)
    _require_step_alone(optimizer)
    model = unwrapped(model)
    if isinstance(model, nn.parallel.DistributedDataParallel):
        raise ValueError("model must be the module itself, got a DistributedDataParallel; pass model.module")
    kinds = {p.dtype for name, p in model.named_parameters() if name in moved_groups(optimizer, model)}
    if len(kinds) > 1 or not kinds <= {torch.float32, torch.float64}:
        got = ", ".join(sorted(map(str, kinds)))
        raise ValueError(f"parameters must all be float32 or all float64, got {got}")
    reduction = getattr(loss, "reduction", "mean")
    if reduction not in ("mean", "batchmean"):
        raise ValueError(
            f"loss must be a mean over the samples of a batch, got reduction={reduction!r}; use 'mean'"
        )
    several = isinstance(samples, tuple | list) and len(samples) == 2
    if samples is not None and not several and not carries_labels(samples):
        raise ValueError(
            f"samples must be a pair (inputs, targets), or a mapping with labels, got {type(samples).__name__}"
        )
    return Watcher(optimizer, model, loss, options, samples, file, outputs, clock)


class _Options(NamedTuple):
    """See `watch`."""

    every: int
    most: float
    batches: int
    training: bool | None
    start: int
    seed: int


class Watcher(Result):
    """Measures the curvature between steps of training; made by `watch`, which describes it."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        model: nn.Module,
        loss: Callable[[Any, Any], Tensor],
        options: _Options,
        samples: Any,
        file: str | os.PathLike[str] | None,
        outputs: Callable[[Any], Tensor] | None,
        clock: Callable[[], float],
    ) -> None:
        self._optimizer, self._model, self._loss, self._options = optimizer, model, loss, options
        self._called = model if outputs is None else _Picked(model, outputs)
        self._samples = samples
        self._followed: Any = None
        self._journal = None if file is None else Journal(file)
        self._time = Pace(options.every, options.most, clock)
        self._records: list[CurvatureRecord] = []
        self._step = options.start
        self._curvature: MovingCurvature | None = None
        self._latest: deque[OfBatch] = deque(maxlen=options.batches)
        self._warned = False

    @property
    def records(self) -> tuple[CurvatureRecord, ...]:
        """All measurements so far."""
        return tuple(self._records)

    def step(self, inputs: Any = None, targets: Any = None) -> CurvatureRecord | None:
        """Count a step of the optimiser, and measure where it is time to.

        Parameters
        ----------
        inputs, targets
            The batch of this step, samples along the first axis; or a mapping with labels among its inputs, alone.
            Without it what belongs to batches is None in the
            record, and `samples` must have been given to `watch`.

        Returns
        -------
        The record, or None. A loss or parameters that are not finite are recorded as an outcome that begins with
        "diverged"; what makes a measurement fail, once one has succeeded, as "not measured" and in one warning.

        Raises
        ------
        ValueError
            If the batch is empty or of the wrong kind, the loss is not one number, parts of the model are in different
            modes, or, at the first measurement, the derivatives that torch takes of the loss are not its own, see
            `simulate.objectives.Objective.require_sound`.
        """
        self._step += 1
        if not self._time.due(self._device):
            return None
        followed, batch = self._samples_and_batch(inputs, targets)
        products = Spent()
        found = self._measured(followed, batch, products)
        seconds, share, interval = self._time.measured(self._device)
        record = replace(
            found,
            rates=tuple(float(group["lr"]) for group in self._optimizer.param_groups),
            products=products.count,
            passes=products.rows / found.samples,
            seconds=seconds,
            share=share,
            interval=interval,
        )
        self._keep(record)
        self._time.written()
        return record

    def figure(self) -> Figure:
        """The loss, the eigenvalues with their limit, and the noise scale, against the steps.

        Raises
        ------
        ValueError
            If nothing has been measured.
        """
        from verify.practice.watch.picture import watch_figure

        return watch_figure(self._records)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture as png, svg or pdf, or a page with picture and table as html, as the name ends.

        Raises
        ------
        ValueError
            If nothing has been measured, the format is another, or the file cannot be written.
        """
        from verify.page.plots import save_as
        from verify.page.result_page import write_result
        from verify.practice.page_plots import plots_html
        from verify.practice.watch.picture import watch_plots

        path = Path(path)
        if path.suffix != ".html":
            save_as(self.figure(), path)
            return
        share = f"Measuring took {100 * self._records[-1].share:.1f} % of the time." if self._records else ""
        write_result(self, path, plots_html(watch_plots(self._records)), [share])

    _evenly_spaced = True

    def _brief(self) -> Sequence[str]:
        return BRIEF

    def _headline(self) -> str:
        count = f"{len(self._records)} measurement{'s' * (len(self._records) != 1)}"
        return f"{count} in {self._step - self._options.start} steps of {type(self._optimizer).__name__}"

    def _columns(self) -> Columns:
        return record_columns(self._records)

    def _record(self) -> Mapping[str, Any]:
        return {"records": self._records}

    def _draw(self, axes: Axes) -> None:
        from verify.practice.watch.picture import draw_top_eigenvalues

        draw_top_eigenvalues(axes, self._records)

    # --- what is measured -----------------------------------------------------------------------------------------

    @property
    def _device(self) -> torch.device:
        return self._optimizer.param_groups[0]["params"][0].device

    def _samples_and_batch(self, inputs: Any, targets: Any) -> tuple[Any, Any]:
        """Return the followed samples and the batch; without given samples the first batch is followed."""
        batch = None
        if targets is None and carries_labels(inputs):
            batch = self._on_device(inputs)
        elif inputs is not None or targets is not None:
            batch = self._on_device((inputs, targets))
        if self._followed is None:
            chosen = batch if self._samples is None else self._on_device(self._samples)
            if chosen is None:
                raise ValueError("give inputs and targets to step, or samples to watch; got neither")
            # The loop may use the memory of its batch again.
            self._followed = copied(chosen)
        return self._followed, batch

    def _on_device(self, batch: Any) -> Any:
        """Return a pair, or a mapping with labels, on the device of the parameters."""
        moved = moved_groups(self._optimizer, self._called)
        like = next(p for name, p in self._called.named_parameters() if name in moved)
        inputs, targets = (placed(part, like) for part in pair(batch))
        if not rows(targets):
            raise ValueError("targets must hold at least one sample, got none")
        if carries_labels(batch):
            return {**inputs, "labels": targets}
        _require_next_tokens(inputs, targets, self._loss)
        return inputs, targets

    def _measured(self, followed: Any, batch: Any, count: Spent) -> CurvatureRecord:
        size = rows(pair(followed if batch is None else batch)[1])
        record = CurvatureRecord(step=self._step, outcome="measured", samples=size)
        if not all(bool(p.isfinite().all()) for p in self._called.parameters()):
            return replace(record, outcome="diverged: parameters are not finite")
        mode = self._mode()
        try:
            with preserve_state(self._called, mode):
                return self._curved(record, self._moving(followed, mode), batch, count)
        except (ValueError, RuntimeError) as error:
            # A failure of the first measurement is a mistake in the call. A later one must not end the
            # training.
            if self._curvature is None or not self._curvature.succeeded or isinstance(error, WrongLossError):
                raise
            reason = f"not measured: {error}".splitlines()[0]
            if not self._warned:
                self._warned = True
                warnings.warn(f"step {self._step} was {reason}; training continues", stacklevel=3)
            return replace(record, outcome=reason)

    def _moving(self, followed: Any, mode: bool) -> MovingCurvature:
        """Return the tracked eigenvectors, continued from the last measurement at the current parameters."""
        names = tuple(moved_groups(self._optimizer, self._called))
        if self._curvature is None or not self._curvature.fits(names, mode):
            self._curvature = MovingCurvature(
                self._called, self._loss, followed, names, mode, self._options.seed
            )
        self._curvature.renew()
        return self._curvature

    def _curved(
        self,
        record: CurvatureRecord,
        curvature: MovingCurvature,
        batch: Any,
        count: Spent,
    ) -> CurvatureRecord:
        loss = curvature.value(batch)
        record = replace(record, loss=loss)
        if not math.isfinite(loss):
            return replace(record, outcome=f"diverged: the loss is {loss}")
        groups, known = moved_groups(self._optimizer, self._called), dict(self._called.named_parameters())
        limit = step_limit(self._optimizer, [(known[name], group) for name, group in groups.items()])
        top, scaled = curvature.of_samples(self._step, limit, count)
        record = replace(
            record, eigenvalue=top.value, error=top.residual, limit=limit.value, limit_note=limit.note
        )
        if limit.value is not None:
            record = replace(record, limit_of="eigenvalue" if scaled is None else "preconditioned")
        if scaled is not None:
            record = replace(record, preconditioned=scaled.value, preconditioned_error=scaled.residual)
        if batch is not None:
            found = curvature.of_batch(batch, self._step, limit, count)
            self._latest.append(found)
            record = replace(record, **_means(self._latest))
        curvature.succeeded = True
        return record

    def _mode(self) -> bool:
        if self._options.training is not None:
            return self._options.training
        modes = {module.training for module in self._model.modules()}
        if len(modes) > 1:
            other = next(
                name for name, m in self._model.named_modules() if m.training != self._model.training
            )
            raise ValueError(
                f"all modules must be in one mode, got {other!r} in another mode than the model; choose one with"
                " training=True or training=False"
            )
        return modes.pop()

    def _keep(self, record: CurvatureRecord) -> None:
        self._records.append(record)
        # A file may hold several runs, each behind a line of its own.
        if self._journal is not None:
            head = (
                "" if len(self._records) > 1 else _head(self._optimizer, self._called, self._options) + "\n"
            )
            self._journal.write(head + record_line(record))


class _Picked(nn.Module):
    """A model with a choice of what it returns, and its own loss where it gives one."""

    def __init__(self, model: nn.Module, pick: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.model, self._pick = model, pick

    def __getattr__(self, name: str) -> Any:
        """Return other attributes of a model of transformers, such as the inputs of its decoder."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the picked output; if the model was given labels, a mapping of `logits` and `loss`."""
        found = self.model(*args, **kwargs)
        loss = found.get("loss") if isinstance(found, Mapping) else getattr(found, "loss", None)
        return self._pick(found) if loss is None else {"logits": self._pick(found), "loss": loss}


def _means(latest: deque[OfBatch]) -> dict[str, Any]:
    """Return the fields of the record on the last batch and the means over the latest ones."""
    last, tops = latest[-1], [each.top.value for each in latest]
    known = [
        (each.square, each.variance)
        for each in latest
        if each.square is not None and each.variance is not None
    ]
    square, variance = (
        (sum(column) / len(known) for column in zip(*known, strict=True)) if known else (0.0, 0.0)
    )
    return {
        "batch_eigenvalue": last.top.value,
        "batch_error": last.top.residual,
        "mean_batch_eigenvalue": float(np.mean(tops)),
        "mean_batch_error": float(np.std(tops, ddof=1) / math.sqrt(len(tops))) if len(tops) > 1 else None,
        "batches": len(tops),
        "gradient_square": last.square,
        "gradient_variance": last.variance,
        "noise_scale": variance / square if square > 0 else None,
    }


def _require_next_tokens(inputs: Any, targets: Any, loss: Any) -> None:
    """Refuse labels that a causal language model would shift: in a pair the loss takes them as they are.

    >>> ids = torch.tensor([[4, 5, 6]])
    >>> _require_next_tokens({"input_ids": ids}, torch.tensor([[5, 6, -100]]), nn.CrossEntropyLoss())
    >>> _require_next_tokens(ids, torch.tensor([[4, 5, -100]]), nn.CrossEntropyLoss())
    Traceback (most recent call last):
    ValueError: targets must be the next tokens, got the tokens of the inputs: pass the whole batch with its labels
    """
    if (
        not of_classes(loss)
        or not isinstance(targets, Tensor)
        or targets.is_floating_point()
        or targets.ndim < 2
    ):
        return
    kept = targets != IGNORED
    for ids in tensors(inputs):
        if ids.shape == targets.shape and not ids.is_floating_point() and bool((ids == targets)[kept].all()):
            raise ValueError(
                "targets must be the next tokens, got the tokens of the inputs: pass the whole batch with its labels"
            )


def _require_step_alone(optimizer: Any) -> None:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ValueError(f"optimizer must be a torch optimizer, got {type(optimizer).__name__}")
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ValueError(
            f"optimizer must step without a closure, got {type(optimizer).__name__}, which moves several times a step"
        )


def _head(optimizer: Any, model: nn.Module, options: _Options) -> str:
    return json.dumps({
        "watch": _VERSION,
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "optimizer": type(optimizer).__name__,
        "parameters": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "every": options.every,
        "most": options.most,
        "seed": options.seed,
    })  # fmt: skip
