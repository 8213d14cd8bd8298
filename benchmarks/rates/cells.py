"""Cells of the grid: a network in a state, an optimiser, a batch size and a seed, with the runs that start there.

The search of a cell moves outwards until the best rate and the edge, the largest rate that trains, lie between tried
rates, and then bisects.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.rates.networks import SAMPLES, Network, samples_of
from simulate.training.constant_outputs import constant_output
from simulate.training.trial_training import CommonBatches, Training, TrialRun, tail

MOST = 8
"""Largest number of rates in a cell."""


class Outcome(NamedTuple):
    """Result of a run at one rate: its final loss, infinite if lost, and whether it trains."""

    loss: float
    trains: bool


Tried = Mapping[int, Outcome]
"""Outcomes by place on the grid; the rate at place k is 2^(k/2)."""


def rate(place: int) -> float:
    """Return the rate at a place of the grid.

    >>> rate(-4), rate(0)
    (0.25, 1.0)
    """
    return 2.0 ** (place / 2)


def place(wanted: float) -> int:
    """Return the place whose rate has the smallest ratio to a given rate.

    >>> place(0.25), place(0.3), place(1.6)
    (-4, -3, 1)
    """
    return round(2 * math.log2(wanted))


def best(tried: Tried) -> int:
    """Return the place with the smallest loss, and of equal ones the smallest rate."""
    return min(tried, key=lambda k: (tried[k].loss, k))


def edge(tried: Tried) -> int | None:
    """Return the place of the largest rate that trains; None if none does."""
    return max((k for k, seen in tried.items() if seen.trains), default=None)


def following(tried: Tried, *, first: int, stride: int) -> int | None:
    """Return the next place to try; None once best rate and edge are known to one place.

    Parameters
    ----------
    tried
        Outcomes so far.
    first, stride
        First place, and step width while the best rate or the edge lies at an end.

    Examples
    --------
    A loss that is least at 3 and infinite from 6 on:

    >>> seen: dict[int, Outcome] = {}
    >>> while (k := following(seen, first=0, stride=4)) is not None:
    ...     seen[k] = Outcome(math.inf if k > 5 else abs(k - 3), k <= 5)
    >>> list(seen), best(seen), edge(seen)
    ([0, 4, 8, 6, 2, 3, 5], 3, 5)
    """
    if not tried:
        return first
    low, high, least = min(tried), max(tried), best(tried)
    if least == high and math.isfinite(tried[high].loss):
        return high + stride
    if least == low:
        return low - stride
    if tried[high].trains:
        return high + stride
    # the widest gap above the best, above the edge, or below the best; of equally wide ones the first in this order
    pairs, last = list(pairwise(sorted(tried))), edge(tried)
    gaps = [pair for pair in pairs if pair[0] == least]
    gaps += [pair for pair in pairs if pair[0] == last != least]
    gaps += [pair for pair in pairs if pair[1] == least]
    widest = max(gaps, key=lambda gap: gap[1] - gap[0], default=(0, 0))
    return sum(widest) // 2 if widest[1] - widest[0] >= 2 else None


# --- cells

SIZES = (64, 512, 8)
"""Batch sizes in the order of the runs: the middle one first."""

SEEDS = (0, 1, 2)

KINDS = (("start", "sgd"), ("trained", "sgd"), ("start", "momentum"), ("start", "adam"))
"""States and optimisers of each network and seed."""

_WARM_STEPS, _WARM_RATE, _WARM_SIZE, _WARM_SEED = 100, 1e-3, 64, 1000
"""Training with Adam that leads to the state `trained`, on batches with a seed of their own."""

_LOST = 1e4


class Cell(NamedTuple):
    """Setting in which the best rate is searched."""

    network: str
    state: str
    optimiser: str
    seed: int
    batch_size: int


@dataclass(frozen=True)
class Ground:
    """Network in a state, with its samples, at which the runs of several cells start.

    Attributes
    ----------
    network, state, seed
        Network, `start` or `trained`, and seed of samples and start.
    images
        Path of the archive of colour images; None if the network takes other samples.
    """

    network: Network
    state: str
    seed: int
    images: str | None = None

    @cached_property
    def data(self) -> tuple[Tensor, Tensor]:
        """Inputs and targets in the form that the loss takes."""
        drawn = samples_of(self.network.source, self.seed, images=self.images)
        return drawn.inputs, self.network.targets(drawn.targets)

    @cached_property
    def model(self) -> nn.Module:
        """Model with its parameters in this state."""
        fresh = self.network.built(self.seed)
        if self.state == "start":
            return fresh
        before = self._training(fresh, "adam", _WARM_SIZE, _WARM_SEED)
        with TrialRun(before, _WARM_RATE).until(_WARM_STEPS).trained() as trained:
            return copy.deepcopy(trained)

    @cached_property
    def level(self) -> Tensor:
        """Best constant output, shaped like the output of one sample."""
        return constant_output(
            self.network.loss, _outputs(self.model, self.data[0][:2]), self.data[1]
        ).float()

    def training(self, optimiser: str, batch_size: int) -> Training:
        """Return the settings of trial runs at one batch size."""
        return self._training(self.model, optimiser, batch_size, self.seed)

    def _training(self, model: nn.Module, optimiser: str, batch_size: int, seed: int) -> Training:
        (inputs, targets), loss = self.data, self.network.loss
        return Training(
            model=model,
            loss=loss,
            inputs=inputs,
            targets=targets,
            batches=CommonBatches(samples=SAMPLES, size=batch_size, seed=seed),
            optimiser=optimiser,
            lost=_LOST * max(1.0, float(loss(_outputs(model, inputs[:64]), targets[:64]))),
        )

    def reference(self, batch_size: int, steps: int) -> float:
        """Return the loss of the untrained network or the best constant output, whichever is smaller.

        Both are means over the last tenth of the batches.
        """
        training, start = self.training("sgd", batch_size), steps - tail(steps)
        loss, targets = self.network.loss, self.data[1]
        of_constant = [
            float(loss(self.level.expand(len(chosen), -1), targets[chosen]))
            for _, chosen in training.drawn(start, steps)
        ]
        return min(training.untrained(start, steps), sum(of_constant) / len(of_constant))

    def outcome(
        self, optimiser: str, batch_size: int, place: int, *, steps: int, reference: float
    ) -> Outcome:
        """Run at a place of the grid; the run trains if it ends below the reference."""
        loss = TrialRun(self.training(optimiser, batch_size), rate(place)).until(steps).final()
        return Outcome(loss, loss < reference)


def _outputs(model: nn.Module, inputs: Tensor) -> Tensor:
    with torch.no_grad():
        return copy.deepcopy(model).eval()(inputs)


# --- files


class Result(NamedTuple):
    """Results in a cell.

    Attributes
    ----------
    reference
        Loss below which a run counts as training.
    tried
        Outcomes of the grid.
    runs
        Outcomes at the rates of rules.
    answers
        Rates by rule; None where a rule has no answer.
    cost
        Cost of the trial runs, in runs of the grid.
    """

    reference: float
    tried: dict[int, Outcome]
    runs: dict[int, Outcome]
    answers: dict[str, float | None]
    cost: float


Results = dict[Cell, Result]


def save(file: Path, results: Results) -> None:
    """Write the results of some cells, so that a file is whole or absent."""
    text = json.dumps([{"cell": cell, **result._asdict()} for cell, result in results.items()])
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)


def load(file: Path) -> Results:
    """Read the results of some cells.

    >>> import tempfile
    >>> file, cell = Path(tempfile.mkdtemp()) / "a.json", Cell("a", "start", "sgd", 0, 8)
    >>> result = Result(2.3, {0: Outcome(math.inf, False)}, {}, {"one rate": None}, 3.0)
    >>> save(file, {cell: result})
    >>> load(file) == {cell: result}
    True
    """
    found: Results = {}
    for row in json.loads(file.read_text(encoding="utf-8")):
        cell = Cell(*row.pop("cell"))
        outcomes: dict[str, Any] = {
            name: {int(k): Outcome(*seen) for k, seen in row[name].items()} for name in ("tried", "runs")
        }
        found[cell] = Result(**row | outcomes)
    return found
