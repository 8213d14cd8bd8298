"""Networks trained at many rates at once: one stack of parameters, a run for each network and rate.

A run that is lost (a loss that is not finite, or far above the first) is taken off the stack. Runs of one network see
the same batches. To see which rates train:

>>> import numpy as np
>>> from simulate.training.stacks import Perceptrons, perceptrons_at_start
>>> streams = [np.random.default_rng(seed) for seed in range(3)]
>>> x = torch.linspace(-1, 1, 8)[:, None]
>>> samples = TrainingSets(x, (x[:, 0] > 0).long())
>>> batches = [CommonBatches(samples=8, size=2, seed=seed) for seed in range(3)]
>>> start = perceptrons_at_start(streams, (1, 16, 2))
>>> rates = torch.tensor([0.1, 1.0, 1000.0]).expand(3, 3)
>>> run = train(Perceptrons("relu"), start, samples, batches, rates=rates, steps=200)
>>> losses, accuracies = ends_measured(Perceptrons("relu"), run, samples)
>>> (losses < 0.3).tolist()[0], run.losses.shape
([True, True, False], torch.Size([3, 3, 200]))
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from simulate import _checks, _memory
from simulate.training.rules import SGD, Memory, Rule
from simulate.training.stacks import Parameters, Stack
from simulate.training.trial_training import CommonBatches

__all__ = ["Cells", "GridRun", "TrainingSets", "Watch", "ends_measured", "train"]

_LOST = 1e4
"""A run is lost once the loss of a batch exceeds that of its first by this factor."""

_SAVED_EVERY = 20.0
"""Seconds between two copies of a run on disk."""


class TrainingSets(NamedTuple):
    """What is trained on.

    Attributes
    ----------
    inputs, targets
        (N, ...), and classes (N,) or numbers (N, K).
    own
        Which of them each network has, (R, N'); all of them if None.
    """

    inputs: Tensor
    targets: Tensor
    own: Tensor | None = None

    @property
    def each(self) -> int:
        """How many samples a network has."""
        return len(self.inputs) if self.own is None else self.own.shape[1]

    def at(self, networks: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets of samples (n, B) of networks (n,)."""
        return self.rows(chosen if self.own is None else self.own[networks[:, None], chosen])

    def rows(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets of these of them, by their numbers, of any shape."""
        flat = which.flatten()  # brackets take several times as long for whole rows
        x, y = (part.index_select(0, flat) for part in (self.inputs, self.targets))
        return x.view(*which.shape, *x.shape[1:]), y.view(*which.shape, *y.shape[1:])


class Cells(NamedTuple):
    """Runs that are not lost: their places in the grid, flattened, and their parameters (n, ...)."""

    places: Tensor
    parameters: tuple[Tensor, ...]

    def networks(self, rates: int) -> Tensor:
        """The network that each of them began as, of a grid with so many rates."""
        return self.places.div(rates, rounding_mode="floor")


Watch = Callable[[int, Cells], Mapping[str, Tensor]]
"""From the number of steps taken and the runs that are not lost to what is seen of each, by name: (n,) or (n, k)."""


class GridRun(NamedTuple):
    """What became of a grid of R networks and C rates.

    Attributes
    ----------
    losses
        Of the batch of each step, before it, (R, C, steps); infinite from where a run is lost.
    watched
        By name what was seen at the steps asked for, (R, C, steps asked for, ...); NaN from where a run is lost.
    cells
        Where the runs that are not lost have ended.
    """

    losses: Tensor
    watched: dict[str, Tensor]
    cells: Cells

    @property
    def lost(self) -> Tensor:
        """(R, C)."""
        found = torch.ones(self.losses.shape[:2], dtype=torch.bool, device=self.losses.device)
        found.view(-1)[self.cells.places] = False
        return found

    def spread(self, values: Tensor, fill: float) -> Tensor:
        """Values of the runs that are not lost, (n, ...), in the grid (R, C, ...), filled up where they are."""
        found = values.new_full((self.losses.shape[0] * self.losses.shape[1], *values.shape[1:]), fill)
        found[self.cells.places] = values
        return found.view(*self.losses.shape[:2], *values.shape[1:])


def train(
    stack: Stack,
    parameters: Parameters,
    samples: TrainingSets,
    batches: Sequence[CommonBatches],
    *,
    rates: Tensor,
    steps: int,
    rule: Rule = SGD,
    watch: Watch | None = None,
    at: Sequence[int] = (),
    lost: float = _LOST,
    progress: Callable[[int], None] | None = None,
    archive: Path | None = None,
) -> GridRun:
    """Train each network at each of its rates, all in one stack.

    Parameters
    ----------
    stack
        How outputs and gradients are made: `Perceptrons`, or `Modules`.
    parameters
        Where to begin, each (R, ...); not changed.
    samples
        Of all networks, or some for each.
    batches
        One per network, all of one size; a network at all its rates sees the same.
    rates
        (R, C), positive.
    steps
        How many, at least 1.
    rule
        What a step is made of.
    watch, at
        What to see of the runs, and after how many steps, from 0 to `steps`.
    lost
        A run is lost once the loss of a batch exceeds that of its first by this factor, or is not finite.
    progress
        Called after every step with the number of steps taken.
    archive
        A file that keeps the run every 20 seconds, and from which a run of the same arguments goes on. It is
        removed at the end.

    Raises
    ------
    ValueError
        If shapes disagree, a rate is not positive, `at` holds no step, the runs do not fit into memory, or the
        archive is of another run.

    Examples
    --------
    One weight for each of two classes, and one sample: p - y is a half at first.

    >>> from simulate.training.stacks import Perceptrons
    >>> samples = TrainingSets(torch.ones(1, 1), torch.tensor([0]))
    >>> batches = [CommonBatches(samples=1, size=1)]
    >>> stack, start = Perceptrons("relu", bias=False), [torch.zeros(1, 2, 1)]
    >>> run = train(stack, start, samples, batches, rates=torch.tensor([[0.5, 1.0]]), steps=1)
    >>> [p.flatten(1) for p in run.cells.parameters]
    [tensor([[ 0.2500, -0.2500],
            [ 0.5000, -0.5000]])]
    """
    _require(parameters, samples, batches, rates, _checks.natural("steps", steps), at)
    walk = _begun(stack, parameters, samples, batches, rates, steps, rule, len(at), lost)
    keeper = None if archive is None else _Keeper(archive, walk)
    if keeper is not None:
        keeper.restore(walk)
    while True:
        for column in (i for i, asked in enumerate(at) if asked == walk.step and i not in walk.seen):
            walk.see(column, watch)
        if walk.step == steps:
            break
        walk.advance()
        if progress is not None:
            progress(walk.step)
        if keeper is not None:
            keeper.keep(walk)
    if keeper is not None:
        keeper.remove()
    return walk.ended()


@torch.no_grad()
def ends_measured(
    stack: Stack, run: GridRun, samples: TrainingSets, *, size: int = 1024
) -> tuple[Tensor, Tensor]:
    """Mean losses and accuracies (R, C) on samples where a grid has ended: infinite and 0 where a run is lost.

    Accuracies are NaN where targets are no classes. Outputs are made of `size` samples at a time.
    """
    cells, networks = run.cells, run.cells.networks(run.losses.shape[1])
    losses, right = run.losses.new_zeros(len(networks)), run.losses.new_zeros(len(networks))
    every = torch.arange(samples.each, device=samples.inputs.device)
    for rows in every.split(size) if len(networks) else ():  # torch has no stack of nothing
        x, y = samples.at(networks, rows.expand(len(networks), -1))
        outputs = stack.outputs(cells.parameters, x)
        losses += stack.losses(outputs, y).sum(1).to(losses)
        right += math.nan if y.is_floating_point() else (outputs.argmax(-1) == y).sum(1)
    return run.spread(losses / samples.each, math.inf), run.spread(right / samples.each, 0.0)


@dataclass
class _Walk:
    """A grid on its way."""

    stack: Stack
    samples: TrainingSets
    batches: Sequence[CommonBatches]
    shape: tuple[int, int]
    steps: int
    rule: Rule
    limit: float
    places: Tensor
    parameters: list[Tensor]
    rates: Tensor
    memory: Memory
    losses: Tensor
    columns: int
    watched: dict[str, Tensor]
    seen: list[int]
    step: int = 0
    epoch: int = -1
    orders: Tensor | None = None
    bounds: Tensor | None = None

    @torch.no_grad()
    def advance(self) -> None:
        """One step of all runs that are left, and off the stack with those that it has lost."""
        if len(self.places):
            x, y = self.samples.rows(self._chosen()[Cells(self.places, ()).networks(self.shape[1])])
            if self.rule.plain:
                found = self.stack.descend_(self.parameters, x, y, self.rates)
            else:
                found, gradients = self.stack.losses_and_gradients(self.parameters, x, y)
                self.memory = self.rule.step_(self.parameters, gradients, self.rates, self.memory)
            self.losses[self.places, self.step] = found
            if self.bounds is None:
                most = torch.finfo(found.dtype).max
                self.bounds = (self.limit * self.losses[self.places, 0].abs()).clamp(max=most)
            self._keep(found <= self.bounds)  # which no loss is that is not finite
        self.step += 1

    def _keep(self, which: Tensor) -> None:
        if bool(which.all()):
            return
        self.losses[self.places[~which], self.step :] = math.inf
        self.places, self.rates, self.bounds = self.places[which], self.rates[which], None
        self.parameters, self.memory = [p[which] for p in self.parameters], self.memory.of(which)

    def _chosen(self) -> Tensor:
        """Rows of the samples of this step, (R, B); a batch of all of them is the same in any order."""
        size = self.batches[0].size
        epoch, place = (0, 0) if size == self.samples.each else divmod(self.step, self.batches[0].per_epoch)
        if epoch != self.epoch or self.orders is None:
            orders = torch.stack([b.order(epoch) for b in self.batches]).to(self.places.device)
            own = self.samples.own
            self.orders, self.epoch = orders if own is None else own.gather(1, orders), epoch
        return self.orders[:, place * size : (place + 1) * size]

    def see(self, column: int, watch: Watch | None) -> None:
        """Notes what is to be seen now."""
        self.seen.append(column)
        if watch is None or not len(self.places):
            return
        for name, values in watch(self.step, Cells(self.places, tuple(self.parameters))).items():
            shape = (self.shape[0] * self.shape[1], self.columns, *values.shape[1:])
            kept = self.watched.setdefault(name, values.new_full(shape, math.nan))
            kept[self.places, column] = values

    def ended(self) -> GridRun:
        """What came of it."""
        watched = {name: seen.view(*self.shape, *seen.shape[1:]) for name, seen in self.watched.items()}
        return GridRun(self.losses.view(*self.shape, -1), watched, Cells(self.places, tuple(self.parameters)))


def _begun(
    stack: Stack,
    parameters: Parameters,
    samples: TrainingSets,
    batches: Sequence[CommonBatches],
    rates: Tensor,
    steps: int,
    rule: Rule,
    columns: int,
    lost: float,
) -> _Walk:
    flat, each = rates.reshape(-1), rates.shape[1]
    like = parameters[0]
    _require_memory(parameters, samples, batches[0].size, flat, steps, rule)
    return _Walk(
        stack, samples, batches, (len(rates), each), steps, rule, lost,
        places=torch.arange(len(flat), device=like.device),
        parameters=[p.detach().repeat_interleave(each, 0) for p in parameters],
        rates=flat.to(like), memory=Memory(),
        losses=torch.full((len(flat), steps), math.inf, dtype=like.dtype, device=like.device),
        columns=columns, watched={}, seen=[],
    )  # fmt: skip


class _Keeper:
    """The copy of a grid on disk, from which it goes on after it was killed."""

    def __init__(self, path: Path, walk: _Walk) -> None:
        self._path, self._saved = path, time.monotonic()
        self._mark = _mark(walk)

    def restore(self, walk: _Walk) -> None:
        if not self._path.exists():
            return
        try:
            held: Any = torch.load(self._path, weights_only=True, map_location=walk.rates.device)
            same = held["mark"] == self._mark
        except Exception as error:  # whatever the reader of a damaged file raises
            raise ValueError(
                f"archive {self._path} must be one that a grid has left, got {error}; remove it"
            ) from None
        if not same:
            raise ValueError(f"archive {self._path} must be of the same run, got that of another; remove it")
        for name in _KEPT:
            setattr(walk, name, held[name])
        walk.memory = Memory(*held["memory"])

    def keep(self, walk: _Walk) -> None:
        if time.monotonic() - self._saved < _SAVED_EVERY:
            return
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        try:
            held = {name: getattr(walk, name) for name in _KEPT}
            torch.save({"mark": self._mark, "memory": tuple(walk.memory), **held}, beside)
            beside.replace(self._path)
        finally:
            with suppress(FileNotFoundError):
                beside.unlink()
        self._saved = time.monotonic()

    def remove(self) -> None:
        with suppress(FileNotFoundError):
            self._path.unlink()


_KEPT = ("places", "parameters", "rates", "losses", "watched", "seen", "step")


def _mark(walk: _Walk) -> str:
    """What tells one run from another: all that it begins with."""
    told = sha256(
        repr((type(walk.stack).__name__, walk.stack.loss, walk.shape, walk.steps, walk.rule)).encode()
    )
    told.update(repr((walk.limit, walk.columns, tuple(walk.batches))).encode())
    own = () if walk.samples.own is None else (walk.samples.own,)
    for tensor in (*walk.parameters, walk.rates, walk.samples.inputs, walk.samples.targets, *own):
        told.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return told.hexdigest()


def _require(
    parameters: Parameters,
    samples: TrainingSets,
    batches: Sequence[CommonBatches],
    rates: Tensor,
    steps: int,
    at: Sequence[int],
) -> None:
    if rates.ndim != 2 or rates.numel() == 0 or not bool(((rates > 0) & rates.isfinite()).all()):
        raise ValueError(f"rates must be finite and positive, (R, C), got shape {tuple(rates.shape)}")
    count = len(rates)
    if any(len(p) != count for p in parameters) or len(batches) != count or len(parameters) == 0:
        got = [len(p) for p in parameters], len(batches)
        raise ValueError(f"parameters and batches must be of the {count} networks that have rates, got {got}")
    if len({(b.size, b.samples, b.drop_last) for b in batches}) != 1 or batches[0].samples != samples.each:
        raise ValueError(
            f"batches must be of one size, of the {samples.each} samples of a network, got {batches}"
        )
    if samples.own is not None and len(samples.own) != count:
        raise ValueError(f"own must be of the {count} networks, got {len(samples.own)}")
    if any(not 0 <= step <= steps for step in at):
        raise ValueError(f"at must hold steps from 0 to {steps}, got {tuple(at)}")


def _require_memory(
    parameters: Parameters, samples: TrainingSets, size: int, rates: Tensor, steps: int, rule: Rule
) -> None:
    one = sum(p[0].numel() for p in parameters)
    # parameters, gradients and what rules keep; inputs and signals of a batch with their slopes; losses
    copies = 3 + bool(rule.momentum) + 2 * (rule.second is not None)
    batch = size * (samples.inputs[0].numel() + 3 * sum(p.shape[1] for p in parameters))
    needed = len(rates) * (copies * one + batch + steps) * parameters[0].element_size()
    what = f"{len(rates)} runs of {one} parameters, {size} samples and {steps} steps"
    advice = "use fewer rates, networks or steps"
    _memory.require_free("rates", needed, what, device=parameters[0].device, advice=advice)
