"""Networks trained in one stack: `train` at many rates at once, `checkpoints` at one that changes from step to step.

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

import copy
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from simulate import _checks, _memory
from simulate.training.rules import SGD, Memory, Rule
from simulate.training.stacks import Parameters, Stack
from simulate.training.trial_training import CommonBatches, common_orders

_LOST = 1e4
"""A run is lost once the loss of a batch exceeds that of its first by this factor."""


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

    Raises
    ------
    ValueError
        If shapes disagree, a rate is not positive, `at` holds no step, the runs do not fit into memory.

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
    steps = _checks.natural("steps", steps)
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
    shape, like, size = tuple(rates.shape), parameters[0], batches[0].size
    # parameters, gradients and what rules keep; inputs and signals of a batch with their slopes; losses
    one, runs = sum(p[0].numel() for p in parameters), rates.numel()
    copies = 3 + bool(rule.momentum) + 2 * (rule.second is not None)
    batch = size * (samples.inputs[0].numel() + 3 * sum(p.shape[1] for p in parameters))
    _memory.require_free(
        "rates",
        runs * (copies * one + batch + steps) * like.element_size(),
        f"{runs} runs of {one} parameters, {size} samples and {steps} steps",
        device=like.device,
        advice="use fewer rates, networks or steps",
    )
    places = torch.arange(rates.numel(), device=like.device)
    own, each = [p.detach().repeat_interleave(shape[1], 0) for p in parameters], rates.reshape(-1).to(like)
    losses = torch.full((rates.numel(), steps), math.inf, dtype=like.dtype, device=like.device)
    watched, memory = dict[str, Tensor](), Memory()
    bounds: Tensor | None = None
    # a batch of all samples is the same in any order
    whole = size == samples.each
    chosen = common_orders(batches, 1 if whole else steps, like.device)
    chosen = itertools.repeat(next(chosen)) if whole else chosen
    for step in range(steps + 1):
        columns = [i for i, asked in enumerate(at) if asked == step]
        seen = watch(step, Cells(places, tuple(own))) if watch and columns and len(places) else {}
        for name, values in seen.items():
            held = (rates.numel(), len(at), *values.shape[1:])
            kept = watched.setdefault(name, values.new_full(held, math.nan))
            kept[places[:, None], columns] = values[:, None]
        if step == steps:
            break
        batch = next(chosen)
        if not len(places):
            continue
        with torch.no_grad():
            network = Cells(places, ()).networks(shape[1])
            x, y = samples.at(network, batch[network])
            if rule.plain:
                found = stack.descend_(own, x, y, each)
            else:
                found, gradients = stack.losses_and_gradients(own, x, y)
                memory = rule.step_(own, gradients, each, memory)
            losses[places, step] = found
            if bounds is None:
                bounds = (lost * losses[places, 0].abs()).clamp(max=torch.finfo(found.dtype).max)
            well = found <= bounds  # which no loss is that is not finite
            if not bool(well.all()):
                losses[places[~well], step:] = math.inf
                places, each, bounds = places[well], each[well], None
                own, memory = [p[well] for p in own], memory.of(well)
    return GridRun(
        losses.view(*shape, -1),
        {name: seen.view(*shape, *seen.shape[1:]) for name, seen in watched.items()},
        Cells(places, tuple(own)),
    )


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


class TrainingState(NamedTuple):
    """Parameters, each (n, ...), and what the rule keeps, after so many steps."""

    step: int
    parameters: list[Tensor]
    memory: Memory


def checkpoints(
    stack: Stack,
    parameters: Parameters,
    samples: TrainingSets,
    batches: Sequence[CommonBatches],
    *,
    rates: Sequence[float],
    at: Sequence[int],
    rule: Rule = SGD,
    decay: float = 0.0,
    changed: Callable[[Tensor], Tensor] | None = None,
) -> list[TrainingState]:
    """Train a stack of networks, each on batches of its own, and keep where they are at some steps.

    Parameters
    ----------
    stack, parameters, samples, batches
        As for `train`, one run for each network; the parameters are not changed.
    rates
        Of every step, the same for all networks.
    at
        Numbers of steps taken, rising, from 0 to as many as there are rates.
    rule
        What a step is made of.
    decay
        Weight decay: so many times the parameters are added to each gradient.
    changed
        Makes of the inputs of a batch, (n, B, ...), those that the networks see, as augmentation does.

    Raises
    ------
    ValueError
        If the steps asked for do not rise or are not there, or the decay is negative.

    Examples
    --------
    One weight for each of two classes at 0, and one sample: p - y is a half at first.

    >>> from simulate.training.stacks import Perceptrons
    >>> samples, batches = TrainingSets(torch.ones(1, 1), torch.tensor([0])), [CommonBatches(samples=1, size=1)]
    >>> stack, start = Perceptrons("relu", bias=False), [torch.zeros(1, 2, 1)]
    >>> found = checkpoints(stack, start, samples, batches, rates=[0.5, 0.1], at=(0, 1))
    >>> [c.parameters[0].flatten() for c in found]
    [tensor([0., 0.]), tensor([ 0.2500, -0.2500])]
    """
    if not at or list(at) != sorted(set(at)) or not 0 <= at[0] <= at[-1] <= len(rates):
        raise ValueError(f"at must be rising numbers of steps from 0 to {len(rates)}, got {tuple(at)}")
    if not 0 <= decay < math.inf:
        raise ValueError(f"decay must be finite and not negative, got {decay}")
    own, memory, found = [p.detach().clone() for p in parameters], Memory(), list[TrainingState]()
    networks = torch.arange(len(batches), device=own[0].device)
    for step in range(at[-1] + 1):
        if step in at:
            found.append(TrainingState(*copy.deepcopy((step, own, memory))))
        if step == at[-1]:
            break
        chosen = torch.stack([b.at(step) for b in batches]).to(own[0].device)
        x, y = samples.at(networks, chosen)
        _, gradients = stack.losses_and_gradients(own, x if changed is None else changed(x), y)
        if decay:
            gradients = [g.add(p, alpha=decay) for g, p in zip(gradients, own, strict=True)]
        memory = rule.step_(own, gradients, torch.full((len(own[0]),), rates[step]).to(own[0]), memory)
    return found
