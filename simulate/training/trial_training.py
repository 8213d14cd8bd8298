"""Trial runs: short training from the current parameters at given rates, on common batches, which can be continued.

They take any module with any torch optimiser, in training mode. During a run the model itself holds the run's
parameters and buffers, so that optimisers, tied weights, hooks and losses that use them see the real ones. Afterwards
the model is restored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from simulate import _checks
from simulate.objectives.batches import cuts, placed, rows, window
from simulate.objectives.forms import Form
from simulate.objectives.losses import Loss, mean_denominator, one_number
from simulate.objectives.parameters import require_ready
from simulate.objectives.restoring import in_mode, preserve_state, seed_generators

OptimiserOf = Callable[[float], Optimizer]
"""Function of a learning rate to a new optimiser of the parameters of the model."""

_LOST = 1e4
"""By default a run is lost once its loss exceeds the loss of its first batch by this factor."""

_TAIL = 10
"""The final loss is the mean over the number of steps divided by this."""


def _trainable(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


OPTIMISERS: Mapping[str, Callable[[nn.Module], OptimiserOf]] = {
    "sgd": lambda model: lambda rate: torch.optim.SGD(_trainable(model), lr=rate),
    "momentum": lambda model: lambda rate: torch.optim.SGD(_trainable(model), lr=rate, momentum=0.9),
    "adam": lambda model: lambda rate: torch.optim.Adam(_trainable(model), lr=rate),
}
"""Gradient descent, momentum 0.9, and torch's Adam, of all parameters that require a gradient."""


_KEPT = 1 << 16
"""Most samples of an order that is kept: all kept ones then take 16 MiB."""


@lru_cache(maxsize=32)
def _order(seed: int, epoch: int, samples: int) -> Tensor:
    # cached, since a stack of networks asks for the batches of an epoch step by step
    return torch.from_numpy(np.random.default_rng((seed, epoch)).permutation(samples))


@dataclass(frozen=True, kw_only=True)
class CommonBatches:
    """Samples of each step, in epochs with an order of their own each; the same for all runs.

    Attributes
    ----------
    samples, size
        N, and B from 1 to N.
    seed
        Seed of the orders: the batch of a step depends on the seed and the step only.
    drop_last
        Whether the short batch at the end of an epoch is left out.

    Raises
    ------
    ValueError
        If the seed is negative, or `size` is not from 1 to `samples`.

    Examples
    --------
    >>> batches = CommonBatches(samples=5, size=2)
    >>> batches.per_epoch, [len(batches.at(step)) for step in range(4)]
    (3, [2, 2, 1, 2])
    >>> sorted(torch.cat([batches.at(step) for step in range(3, 6)]).tolist())
    [0, 1, 2, 3, 4]
    """

    samples: int
    size: int
    seed: int = 0
    drop_last: bool = False

    def __post_init__(self) -> None:
        _checks.natural_or_zero("seed", self.seed)
        if not _checks.natural("size", self.size) <= _checks.natural("samples", self.samples):
            raise ValueError(f"size must be at most the {self.samples} samples there are, got {self.size}")

    @property
    def per_epoch(self) -> int:
        """Number of steps of an epoch, without the short last batch if it is dropped."""
        whole, rest = divmod(self.samples, self.size)
        return whole + (rest > 0 and not self.drop_last)

    @property
    def rest(self) -> int:
        """Number of samples of a smaller last batch of an epoch; 0 if there is none."""
        return 0 if self.drop_last else self.samples % self.size

    def at(self, step: int) -> Tensor:
        """Return the numbers of the samples of a step, counted from 0: (B,), or fewer at the end of an epoch."""
        epoch, place = divmod(step, self.per_epoch)
        return self.order(epoch)[place * self.size : (place + 1) * self.size]

    def order(self, epoch: int) -> Tensor:
        """Return the order of all samples in an epoch, (N,), which callers share and must not change."""
        draw = _order if self.samples <= _KEPT else _order.__wrapped__
        return draw(self.seed, epoch, self.samples)

    def steps(self, start: int, stop: int) -> Iterator[Tensor]:
        """Yield the numbers of the samples of the steps from `start` to `stop`; each order is drawn once.

        Examples
        --------
        >>> batches = CommonBatches(samples=5, size=2)
        >>> [len(chosen) for chosen in batches.steps(1, 4)]
        [2, 1, 2]
        """
        while start < stop:
            epoch, place = divmod(start, self.per_epoch)
            order = self.order(epoch)
            here = min(self.per_epoch - place, stop - start)
            yield from order[place * self.size :].split(self.size)[:here]
            start += here


def common_orders(batches: Sequence[CommonBatches], steps: int, device: torch.device) -> Iterator[Tensor]:
    """Yield the numbers of the samples of each step for several runs, (R, B); each order is drawn once.

    Examples
    --------
    >>> batches = [CommonBatches(samples=5, size=2, seed=seed, drop_last=True) for seed in range(3)]
    >>> [tuple(chosen.shape) for chosen in common_orders(batches, 3, torch.device("cpu"))]
    [(3, 2), (3, 2), (3, 2)]
    """
    size = batches[0].size
    for start in range(0, steps, batches[0].per_epoch):
        orders = torch.stack([b.order(start // batches[0].per_epoch) for b in batches]).to(device)
        here = min(batches[0].per_epoch, steps - start)
        yield from (orders[:, place * size : (place + 1) * size] for place in range(here))


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of trial runs, without the learning rate.

    Attributes
    ----------
    model
        A module; every run starts at its current parameters.
    loss
        A function of outputs and targets, one number for a batch.
    inputs, targets
        All samples, along the first axis; inputs may be a tuple or a mapping of tensors.
    form
        Part of the model's result that the loss takes, if that is not the returned tensor.
    batches
        Batches of all runs, whatever their rate.
    optimiser
        One of `OPTIMISERS`, or a function that makes a new optimiser of the model's own parameters for a rate.
    training
        Whether the model is in training mode: dropout, statistics of each batch. Random draws of a step are the same
        at all rates.
    lost
        A run is lost once its loss on a batch exceeds this; 1e4 times that on its first batch if None.
    clip
        Largest norm of the gradient, to which larger ones are scaled; None if gradients are not clipped.
    schedule
        Function of an optimiser to a scheduler of torch, which steps after each step of the optimiser.

    Raises
    ------
    ValueError
        If the name of the optimiser is unknown, the batches have another number of samples, or the model cannot be
        trained: lazy, compiled, or without parameters that require a gradient.

    Examples
    --------
    >>> model = nn.utils.skip_init(nn.Linear, 1, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> x = torch.ones(4, 1)
    >>> batches = CommonBatches(samples=4, size=2)
    >>> training = Training(model=model, loss=nn.MSELoss(), inputs=x, targets=x, batches=batches)
    >>> TrialRun(training, 0.25).until(3).losses  # the distance to 1 is halved each time
    [1.0, 0.25, 0.0625]
    >>> TrialRun(training, 500.0).until(9).lost, model.weight.item()
    (True, 0.0)
    """

    model: nn.Module
    loss: Loss
    inputs: Any
    targets: Any
    batches: CommonBatches
    form: Form = Form()  # noqa: RUF009 (a tuple)
    optimiser: str | OptimiserOf = "sgd"
    training: bool = True
    lost: float | None = None
    clip: float | None = None
    schedule: Callable[[Optimizer], Any] | None = None

    def __post_init__(self) -> None:
        require_ready(self.model)
        if not _trainable(self.model):
            raise ValueError("model must have a parameter that requires a gradient, got none")
        if isinstance(self.optimiser, str) and self.optimiser not in OPTIMISERS:
            known = ", ".join(OPTIMISERS)
            raise ValueError(f"optimiser must be one of {known} or a function, got {self.optimiser!r}")
        if rows(self.targets) != self.batches.samples:
            raise ValueError(
                f"batches must have the {rows(self.targets)} samples of the targets, got {self.batches.samples}"
            )

    def made(self, rate: float) -> Optimizer:
        """Return a new optimiser at this rate.

        Raises
        ------
        ValueError
            If the rate is not positive and finite, or the optimiser is of other parameters than the model's.
        """
        _checks.positive_numbers("rate", rate)
        given = self.optimiser
        optimiser = (OPTIMISERS[given](self.model) if isinstance(given, str) else given)(rate)
        own = {id(p) for p in self.model.parameters()}
        if not all(id(p) in own for group in optimiser.param_groups for p in group["params"]):
            raise ValueError("optimiser must hold the parameters of the model itself, got others")
        return optimiser


class TrialRun:
    """Trial run at one learning rate, which can be continued.

    Parameters
    ----------
    training
        Settings without the rate.
    rate
        Learning rate, positive.

    Raises
    ------
    ValueError
        As `Training.made`.

    Examples
    --------
    >>> model = nn.Linear(1, 2)
    >>> x, y = torch.linspace(-1, 1, 8)[:, None], torch.tensor([0, 1]).repeat_interleave(4)
    >>> batches = CommonBatches(samples=8, size=4)
    >>> training = Training(
    ...     model=model, loss=nn.CrossEntropyLoss(), inputs=x, targets=y, batches=batches, optimiser="momentum"
    ... )
    >>> whole, parts = TrialRun(training, 0.1).until(40), TrialRun(training, 0.1).until(15).until(40)
    >>> whole.losses == parts.losses, len(parts.losses), parts.final() < parts.losses[0]
    (True, 40, True)
    """

    def __init__(self, training: Training, rate: float) -> None:
        self.training, self.rate = training, float(rate)
        self.losses: list[float] = []
        """Loss of the batch of each step, before the step."""
        self.lost = False
        """Whether the run has ended because a loss was not finite, or far above the first."""
        self._optimiser: Optimizer | None = training.made(self.rate)
        self._schedule = training.schedule(self._optimiser) if training.schedule else None
        self._state: _State | None = None

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return len(self.losses)

    def final(self, *, last: int | None = None) -> float:
        """Return the mean loss over the last tenth of the steps, or over the `last` ones; infinite if the run is lost.

        Raises
        ------
        ValueError
            If no step was taken.
        """
        if self.lost:
            return math.inf
        if not self.losses:
            raise ValueError("run must have taken at least one step")
        return float(np.mean(self.losses[-(last or tail(self.steps)) :]))

    def until(self, steps: int) -> TrialRun:
        """Continue until `steps` steps were taken in all, or the run is lost; return the run itself.

        Raises
        ------
        ValueError
            If `steps` is no positive integer, or the loss is not one number for a batch.
        """
        _checks.natural("steps", steps)
        if self.lost or steps <= self.steps:
            return self
        with _swap_state(self.training, self._state) as model, torch.enable_grad():
            for step, chosen in enumerate(self.training.batches.steps(self.steps, steps), self.steps):
                loss = _step(self.training, model, self._optimiser, step, chosen)
                self.losses.append(loss)
                most = self.training.lost
                most = _LOST * abs(self.losses[0]) if most is None else most
                self.lost = not math.isfinite(loss) or loss > most
                if self.lost:
                    break
                if self._schedule is not None:
                    self._schedule.step()
            self._state = None if self.lost else _copy_state(model)
        if self.lost:
            self._optimiser = self._schedule = None  # a lost run is not continued: free its memory
        return self

    def loss_on(self, inputs: Any, targets: Any, *, training: bool, most: int) -> float:
        """Return the loss of this run on given samples; infinite if the run is lost or the loss is not finite.

        Parameters
        ----------
        inputs, targets
            Samples along the first axis.
        training
            Whether the model is in training mode; its buffers are left as they are.
        most
            Largest number of samples in one pass.
        """
        if self.lost:
            return math.inf
        own, denominator, total, weight = self.training, mean_denominator(self.training.loss), 0.0, 0.0
        with self.trained() as model, torch.no_grad(), in_mode(model, training):
            seed_generators(own.batches.seed)
            for part in cuts(rows(targets), most):
                chosen = window(targets, part)
                loss = own.loss(own.form.outputs(model, model, window(inputs, part)), chosen)
                total += denominator(chosen) * float(loss)
                weight += denominator(chosen)
        return total / weight if math.isfinite(total) else math.inf

    def trained(self) -> AbstractContextManager[nn.Module]:
        """Return a context in which the model has the parameters of this run, in the mode of training.

        Raises
        ------
        ValueError
            If the run is lost.
        """
        if self.lost:
            raise ValueError("run is lost: its parameters were not kept")
        own = self._state  # a pass in training mode would change the buffers of the run
        return _swap_state(self.training, own and own._replace(buffers=_copy_buffers(own.buffers)))


def tail(steps: int) -> int:
    """Return a tenth of a number of steps, rounded up.

    Examples
    --------
    >>> tail(200), tail(3)
    (20, 1)
    """
    return -(-steps // _TAIL)


def _step(training: Training, model: nn.Module, optimiser: Any, step: int, chosen: Tensor) -> float:
    """Make one step of an optimiser; return the loss before it."""
    found, like = list[float](), next(model.parameters())

    def closure() -> Tensor:
        optimiser.zero_grad(set_to_none=True)
        # dropout and the like draw the same at a step for all rates; the generators are restored when a run pauses
        seed_generators((1_000_003 * training.batches.seed + step) % 2**32)
        inputs, targets = (placed(window(part, chosen), like) for part in (training.inputs, training.targets))
        loss = one_number(training.loss(training.form.outputs(model, model, inputs), targets))
        found.append(loss.item())
        loss.backward()
        if training.clip is not None:
            moved = [p for group in optimiser.param_groups for p in group["params"]]
            nn.utils.clip_grad_norm_(moved, training.clip)
        return loss

    optimiser.step(
        closure
    )  # it may call the closure several times; the first loss is the one before the step
    if not found:
        raise ValueError(
            f"optimizer must call the closure that its step is given, got {type(optimiser).__name__} that does not:"
            " begin step with loss = closure() under torch.enable_grad()"
        )
    return found[0]


class _State(NamedTuple):
    """Values of all parameters, and the buffers of each part of a model."""

    values: tuple[Tensor, ...]
    buffers: tuple[dict[str, Tensor | None], ...]


@contextmanager
def _swap_state(training: Training, state: _State | None) -> Iterator[nn.Module]:
    """Put the state of a run into the model, in the mode of training, and restore the model afterwards."""
    model, own = training.model, _copy_state(training.model)
    gradients = [p.grad for p in model.parameters()]
    try:
        with preserve_state(model, training.training):
            _load_state(model, own._replace(buffers=_copy_buffers(own.buffers)) if state is None else state)
            yield model
    finally:
        _load_state(model, own)
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient


def _copy_state(model: nn.Module) -> _State:
    """Return copies of the values, and the buffers themselves: a run writes into buffers of its own."""
    values = tuple(p.detach().clone() for p in model.parameters())
    return _State(values, tuple(dict(part._buffers) for part in model.modules()))


def _load_state(model: nn.Module, state: _State) -> None:
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), state.values, strict=True):
            parameter.copy_(value)
            parameter.grad = None
    for part, buffers in zip(model.modules(), state.buffers, strict=True):
        part._buffers.clear()
        part._buffers.update(buffers)


def _copy_buffers(buffers: tuple[dict[str, Tensor | None], ...]) -> tuple[dict[str, Tensor | None], ...]:
    """Return copies of the buffers; a buffer that several modules share is copied once."""
    copies = {id(b): b.clone() for each in buffers for b in each.values() if b is not None}
    return tuple({name: copies.get(id(b)) for name, b in each.items()} for each in buffers)
