"""A cell of the grid: a network in a state, an optimiser, a batch size and a seed; and its runs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.rates.networks import NETWORKS, OPTIMISERS, Network
from benchmarks.rates.samples import SAMPLES, samples_of
from benchmarks.rates.search import MOST, Outcome, rate
from simulate.training.constant_outputs import constant_loss, constant_output
from simulate.training.trial_training import CommonBatches, Training, TrialRun, tail

__all__ = ["FULL", "QUICK", "SIZES", "Cell", "Effort", "Ground", "State", "cells_of", "named"]

SIZES = (64, 512, 8)
"""Batch sizes, in the order in which they are run: the middle one first."""

State = Literal["start", "trained"]

_WARM_STEPS, _WARM_RATE, _WARM_SIZE, _WARM_SEED = 100, 1e-3, 64, 1000
"""Training that leads to the later state, by Adam, on batches of a seed of their own."""

_LOST = 1e4


class Effort(NamedTuple):
    """How much is run: steps, or epochs if these are more, seeds, what of each network, and at most how many rates."""

    steps: int
    epochs: int
    seeds: tuple[int, ...]
    kinds: tuple[tuple[State, str], ...]
    most: int

    def horizon(self, batch_size: int) -> int:
        """Steps of a run.

        >>> FULL.horizon(8), FULL.horizon(64), FULL.horizon(512)
        (640, 200, 200)
        """
        return max(self.steps, self.epochs * -(-SAMPLES // batch_size))


_EACH: tuple[tuple[State, str], ...] = tuple(("start", optimiser) for optimiser in OPTIMISERS)

FULL = Effort(200, 5, (0, 1, 2), (("start", "sgd"), ("trained", "sgd"), *_EACH[1:]), MOST)
QUICK = Effort(60, 1, (0,), _EACH, 6)


class Cell(NamedTuple):
    """Where a rate is looked for."""

    network: str
    state: State
    optimiser: str
    seed: int
    batch_size: int


def named(name: str) -> Network:
    """The network of a name."""
    return next(network for network in NETWORKS if network.name == name)


def cells_of(network: Network, effort: Effort) -> Iterator[Cell]:
    """All of a network, in the order in which they are run.

    >>> len(list(cells_of(NETWORKS[0], FULL)))
    36
    """
    for seed in effort.seeds:
        for state, optimiser in effort.kinds:
            yield from (Cell(network.name, state, optimiser, seed, size) for size in SIZES)


@dataclass(frozen=True)
class Ground:
    """A network in a state, with its samples: where the runs of several cells begin.

    Attributes
    ----------
    network, state, seed
        Which.
    images
        Path of an archive in place of the stand-in for images.
    """

    network: Network
    state: State
    seed: int
    images: str | None = None

    @cached_property
    def data(self) -> tuple[Tensor, Tensor]:
        """Inputs and targets, as the loss wants them."""
        drawn = samples_of(self.network.source, self.seed, images=self.images)
        return drawn.inputs, self.network.targets(drawn.targets)

    @cached_property
    def model(self) -> nn.Module:
        """With its parameters in this state."""
        fresh = self.network.built(self.seed)
        if self.state == "start":
            return fresh
        before = self._of(fresh, "adam", CommonBatches(samples=SAMPLES, size=_WARM_SIZE, seed=_WARM_SEED))
        with TrialRun(before, _WARM_RATE).until(_WARM_STEPS).trained() as trained:
            return copy.deepcopy(trained)

    @cached_property
    def level(self) -> Tensor:
        """The best constant output, shaped as that of one sample."""
        return constant_output(self.network.loss, self._outputs(), self.data[1]).float()

    @cached_property
    def constant(self) -> float:
        """Its loss on all samples."""
        return constant_loss(self.network.loss, self._outputs(), self.data[1])

    def _outputs(self) -> Tensor:
        with torch.no_grad():
            return copy.deepcopy(self.model).eval()(self.data[0][:2])

    def training(self, optimiser: str, batch_size: int) -> Training:
        """What runs at one batch size have in common."""
        batches = CommonBatches(samples=SAMPLES, size=batch_size, seed=self.seed)
        return self._of(self.model, optimiser, batches)

    def _of(self, model: nn.Module, optimiser: str, batches: CommonBatches) -> Training:
        inputs, targets = self.data
        return Training(
            model=model,
            loss=self.network.loss,
            inputs=inputs,
            targets=targets,
            batches=batches,
            optimiser=optimiser,
            lost=_LOST * max(1.0, self._first(model)),
        )

    def _first(self, model: nn.Module) -> float:
        inputs, targets = self.data
        with torch.no_grad():
            return float(self.network.loss(copy.deepcopy(model).eval()(inputs[:64]), targets[:64]))

    def references(self, batch_size: int, steps: int) -> tuple[float, float]:
        """Loss over the batches of the last tenth of a run that learns nothing, and of the best constant output."""
        training, start = self.training("sgd", batch_size), steps - tail(steps)
        loss, targets = self.network.loss, self.data[1]
        of_constant = [
            float(loss(self.level.expand(len(chosen), -1), targets[chosen]))
            for _, chosen in training.drawn(start, steps)
        ]
        return training.untrained(start, steps), sum(of_constant) / len(of_constant)

    def outcome(
        self, optimiser: str, batch_size: int, place: int, *, steps: int, reference: float
    ) -> Outcome:
        """A run at a place of the grid, which trains if it ends below the reference."""
        loss = TrialRun(self.training(optimiser, batch_size), rate(place)).until(steps).final()
        return Outcome(loss, loss < reference)
