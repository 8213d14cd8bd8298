"""Training of networks in one stack: `train` at many rates at once, `checkpoints` with a schedule of rates.

A run that is lost (a loss that is not finite, or far above the first) is removed from the stack. Runs of one network
see the same batches. To find which rates train:

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
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from simulate import _checks, _memory
from simulate.training.rules import SGD, Memory, Rule
from simulate.training.stacks import Parameters, Stack
from simulate.training.trial_training import CommonBatches, common_orders

_LOST = 1e4
"""A run is lost once its loss exceeds its first loss by this factor."""


class TrainingSets(NamedTuple):
    """Training samples of a stack of networks.

    Attributes
    ----------
    inputs, targets
        Inputs (N, ...), and classes (N,) or numbers (N, K).
    own
        Numbers of the samples of each network, (R, N'); all samples if None.
    """

    inputs: Tensor
    targets: Tensor
    own: Tensor | None = None

    @property
    def each(self) -> int:
        """Number of samples of each network."""
        return len(self.inputs) if self.own is None else self.own.shape[1]

    def at(self, networks: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of samples (n, B) of networks (n,)."""
        return self.rows(chosen if self.own is None else self.own.index_select(0, networks).gather(1, chosen))

    def rows(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of samples by their numbers, an array of any shape."""
        flat = which.flatten()  # indexing with brackets takes several times as long for whole rows
        x, y = (part.index_select(0, flat) for part in (self.inputs, self.targets))
        return x.view(*which.shape, *x.shape[1:]), y.view(*which.shape, *y.shape[1:])


class Cells(NamedTuple):
    """Runs that are not lost: their places in the grid, flattened, and their parameters (n, ...)."""

    places: Tensor
    parameters: tuple[Tensor, ...]

    def networks(self, rates: int) -> Tensor:
        """Return the number of the network of each run, in a grid with this many rates."""
        return self.places.div(rates, rounding_mode="floor")


Watch = Callable[[int, Cells], Mapping[str, Tensor]]
"""Function of the number of steps and the remaining runs to measurements of each by name, (n,) or (n, k)."""


class GridRun(NamedTuple):
    """Result of training R networks at C rates each.

    Attributes
    ----------
    losses
        Loss of the batch of each step, before the step, (R, C, steps); infinite from the step where a run is lost.
    watched
        Measurements by name at the requested steps, (R, C, requested steps, ...); NaN once a run is lost.
    cells
        Final parameters of the runs that are not lost.
    """

    losses: Tensor
    watched: dict[str, Tensor]
    cells: Cells

    @property
    def lost(self) -> Tensor:
        """Whether each run is lost, (R, C)."""
        found = torch.ones(self.losses.shape[:2], dtype=torch.bool, device=self.losses.device)
        found.view(-1)[self.cells.places] = False
        return found

    def spread(self, values: Tensor, fill: float) -> Tensor:
        """Return values of the remaining runs, (n, ...), as a grid (R, C, ...) with `fill` for lost runs."""
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
    warmup: Tensor | None = None,
    rule: Rule = SGD,
    watch: Watch | None = None,
    at: Sequence[int] = (),
    lost: float = _LOST,
) -> GridRun:
    """Train each network at each of its rates, all in one stack.

    Parameters
    ----------
    stack
        Outputs and gradients: `Perceptrons` or `Modules`.
    parameters
        Start of training, each (R, ...); not changed.
    samples
        Training samples.
    batches
        One per network, all of one size; a network sees the same batches at all its rates.
    rates
        Learning rates (R, C), positive.
    steps
        Number of steps, at least 1.
    warmup
        Numbers of steps (R, C), positive, over which each rate rises on a line: step t of them, counted from 1, has
        t / warmup of it. All steps have the whole rate if None.
    rule
        Update rule.
    watch, at
        Function that measures the runs, and the numbers of steps, from 0 to `steps`, after which it does.
    lost
        A run is lost once its loss exceeds its first loss by this factor, or is not finite.

    Raises
    ------
    ValueError
        If shapes disagree, a rate is not positive, a number in `at` is no step, or the runs do not fit into memory.

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
    if rates.ndim != 2 or rates.numel() == 0 or not _checks.all_positive(rates):
        raise ValueError(f"rates must be finite and positive, (R, C), got shape {tuple(rates.shape)}")
    if warmup is not None and (warmup.shape != rates.shape or not _checks.all_positive(warmup)):
        raise ValueError(
            f"warmup must be finite and positive, {tuple(rates.shape)}, got {tuple(warmup.shape)}"
        )
    count = len(rates)
    if any(len(p) != count for p in parameters) or len(batches) != count or len(parameters) == 0:
        got = [len(p) for p in parameters], len(batches)
        raise ValueError(f"parameters and batches must match the {count} networks that have rates, got {got}")
    if len({(b.size, b.samples, b.drop_last) for b in batches}) != 1 or batches[0].samples != samples.each:
        raise ValueError(
            f"batches must have one size and the {samples.each} samples of a network, got {batches}"
        )
    if samples.own is not None and len(samples.own) != count:
        raise ValueError(f"own must have a row for each of {count} networks, got {len(samples.own)}")
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
    lengths = None if warmup is None else warmup.reshape(-1).to(like)
    losses = torch.full((steps, rates.numel()), math.inf, dtype=like.dtype, device=like.device)
    watched, memory, network = dict[str, Tensor](), Memory(), Cells(places, ()).networks(shape[1])
    bounds: Tensor | None = None
    drawn: tuple[Tensor, Tensor] | None = None
    # a batch of all samples is the same in any order, and looked up once
    whole = size == samples.each
    orders = common_orders(batches, 1 if whole else steps, like.device)
    for step in range(steps + 1):
        columns = [i for i, when in enumerate(at) if when == step]
        seen = watch(step, Cells(places, tuple(own))) if watch and columns and len(places) else {}
        for name, values in seen.items():
            held = (rates.numel(), len(at), *values.shape[1:])
            stored = watched.setdefault(name, values.new_full(held, math.nan))
            stored[places[:, None], columns] = values[:, None]
        if step == steps or not len(places):
            break
        with torch.no_grad():
            if drawn is None or not whole:
                drawn = samples.at(network, next(orders).index_select(0, network))
            x, y = drawn
            now = each if lengths is None else each * ((step + 1) / lengths).clamp(max=1.0)
            if rule.plain:
                found = stack.descend_(own, x, y, now)
            else:
                found, gradients = stack.losses_and_gradients(own, x, y)
                memory = rule.step_(own, gradients, now, memory)
            losses[step].index_copy_(0, places, found)
            if bounds is None:
                # finite, since an infinite loss is not above an infinite bound
                bounds = (lost * losses[0, places].abs()).clamp(max=torch.finfo(found.dtype).max)
            well = found <= bounds  # false for NaN and infinity too
            if not bool(well.all()):
                losses[step, places[~well]] = math.inf
                places, each, network, bounds = places[well], each[well], network[well], None
                lengths, drawn = None if lengths is None else lengths[well], (x[well], y[well])
                own, memory = [p[well] for p in own], memory.of(well)
    return GridRun(
        losses.mT.reshape(*shape, -1),
        {name: seen.view(*shape, *seen.shape[1:]) for name, seen in watched.items()},
        Cells(places, tuple(own)),
    )


@torch.no_grad()
def ends_measured(
    stack: Stack, run: GridRun, samples: TrainingSets, *, size: int = 1024
) -> tuple[Tensor, Tensor]:
    """Return mean losses and accuracies (R, C) of a trained grid on samples: infinite and 0 where a run is lost.

    Accuracies are NaN if targets are not classes. Outputs are computed for `size` samples at a time.
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
    """Parameters, each (n, ...), after `step` steps."""

    step: int
    parameters: list[Tensor]


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
) -> list[TrainingState]:
    """Train a stack of networks, each on batches of its own, and return their states at some steps.

    Parameters
    ----------
    stack, parameters, samples, batches
        As for `train`, one run for each network; the parameters are not changed.
    rates
        Learning rate of every step, the same for all networks.
    at
        Numbers of steps to return, rising, from 0 to the number of rates.
    rule
        Update rule.
    decay
        Weight decay: this many times the parameters are added to each gradient.

    Raises
    ------
    ValueError
        If the requested steps do not rise or are not there, or the decay is negative.

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
            found.append(TrainingState(step, [p.clone() for p in own]))  # the rule moves them in place
        if step == at[-1]:
            break
        x, y = samples.at(networks, torch.stack([b.at(step) for b in batches]).to(own[0].device))
        _, gradients = stack.losses_and_gradients(own, x, y)
        if decay:
            gradients = [g.add(p, alpha=decay) for g, p in zip(gradients, own, strict=True)]
        memory = rule.step_(own, gradients, torch.full((len(own[0]),), rates[step]).to(own[0]), memory)
    return found
