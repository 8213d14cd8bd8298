"""Cells of the grid: a network in a state, an optimiser, a batch size and a seed; their runs, and the files of these.

The search of a cell moves outwards until the best rate and the edge, the largest rate that trains, lie between tried
rates, and then bisects. Each result is a line of JSON in a file for each network; a campaign that was stopped
continues.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.rates.networks import OPTIMISERS, SAMPLES, Network, samples_of
from simulate.training.constant_outputs import constant_loss, constant_output
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


def at_an_end(tried: Tried) -> bool:
    """Whether the best rate is the smallest or largest tried one, so that a better one may lie beyond."""
    return best(tried) in (min(tried), max(tried))


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

_WARM_STEPS, _WARM_RATE, _WARM_SIZE, _WARM_SEED = 100, 1e-3, 64, 1000
"""Training with Adam that leads to the state `trained`, on batches with a seed of their own."""

_LOST = 1e4


class Effort(NamedTuple):
    """Size of a campaign: steps of a run (or epochs if more), seeds, states and optimisers, and most rates per cell."""

    steps: int
    epochs: int
    seeds: tuple[int, ...]
    kinds: tuple[tuple[str, str], ...]
    most: int

    def horizon(self, batch_size: int) -> int:
        """Return the number of steps of a run.

        >>> FULL.horizon(8), FULL.horizon(64), FULL.horizon(512)
        (640, 200, 200)
        """
        return max(self.steps, self.epochs * -(-SAMPLES // batch_size))


_START_ONLY: tuple[tuple[str, str], ...] = tuple(("start", optimiser) for optimiser in OPTIMISERS)

FULL = Effort(200, 5, (0, 1, 2), (("start", "sgd"), ("trained", "sgd"), *_START_ONLY[1:]), MOST)
QUICK = Effort(60, 1, (0,), _START_ONLY, 6)


class Cell(NamedTuple):
    """Setting in which the best rate is searched."""

    network: str
    state: str
    optimiser: str
    seed: int
    batch_size: int


def cells_of(network: Network, effort: Effort) -> Iterator[Cell]:
    """Yield all cells of a network, in the order of the runs.

    >>> from benchmarks.rates.networks import NETWORKS
    >>> len(list(cells_of(NETWORKS[0], FULL)))
    36
    """
    for seed in effort.seeds:
        for state, optimiser in effort.kinds:
            yield from (Cell(network.name, state, optimiser, seed, size) for size in SIZES)


@dataclass(frozen=True)
class Ground:
    """Network in a state, with its samples, at which the runs of several cells start.

    Attributes
    ----------
    network, state, seed
        Network, `start` or `trained`, and seed of samples and start.
    images
        Path of an archive of images, which replaces the generated ones.
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
        before = self._trial_settings(
            fresh, "adam", CommonBatches(samples=SAMPLES, size=_WARM_SIZE, seed=_WARM_SEED)
        )
        with TrialRun(before, _WARM_RATE).until(_WARM_STEPS).trained() as trained:
            return copy.deepcopy(trained)

    @cached_property
    def level(self) -> Tensor:
        """Best constant output, shaped like the output of one sample."""
        return constant_output(self.network.loss, self._outputs(), self.data[1]).float()

    @cached_property
    def constant(self) -> float:
        """Loss of the best constant output on all samples."""
        return constant_loss(self.network.loss, self._outputs(), self.data[1])

    def _outputs(self) -> Tensor:
        with torch.no_grad():
            return copy.deepcopy(self.model).eval()(self.data[0][:2])

    def training(self, optimiser: str, batch_size: int) -> Training:
        """Return the settings of trial runs at one batch size."""
        batches = CommonBatches(samples=SAMPLES, size=batch_size, seed=self.seed)
        return self._trial_settings(self.model, optimiser, batches)

    def _trial_settings(self, model: nn.Module, optimiser: str, batches: CommonBatches) -> Training:
        inputs, targets = self.data
        return Training(
            model=model,
            loss=self.network.loss,
            inputs=inputs,
            targets=targets,
            batches=batches,
            optimiser=optimiser,
            lost=_LOST * max(1.0, self._first_loss(model)),
        )

    def _first_loss(self, model: nn.Module) -> float:
        inputs, targets = self.data
        with torch.no_grad():
            return float(self.network.loss(copy.deepcopy(model).eval()(inputs[:64]), targets[:64]))

    def references(self, batch_size: int, steps: int) -> tuple[float, float]:
        """Return the losses of the untrained network and the best constant output on the last tenth of the batches."""
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
        """Run at a place of the grid; the run trains if it ends below the reference."""
        loss = TrialRun(self.training(optimiser, batch_size), rate(place)).until(steps).final()
        return Outcome(loss, loss < reference)


# --- records


class Measured(NamedTuple):
    """Results of the grid in a cell.

    Attributes
    ----------
    steps
        Number of steps of each run.
    untrained, constant
        Losses of the untrained network and of the best constant output on the last tenth of the batches.
    tried
        Outcomes by their place on the grid.
    """

    steps: int
    untrained: float
    constant: float
    tried: Mapping[int, Outcome]

    @property
    def reference(self) -> float:
        """Loss below which a run counts as training."""
        return min(self.untrained, self.constant)


class Answer(NamedTuple):
    """Rate that a rule gives, or None, and its cost in runs of the grid at this batch size."""

    rate: float | None
    cost: float


class Records:
    """File of a network: read when it is opened, with one line written for each new result.

    Examples
    --------
    >>> import tempfile
    >>> file, cell = Path(tempfile.mkdtemp()) / "a.jsonl", Cell("a", "start", "sgd", 0, 8)
    >>> Records(file).add_answer(cell, "fixed", Answer(0.1, 0.0))
    >>> _ = file.write_text(file.read_text() + '{"kind": "cell", "net')  # killed in the middle of a line
    >>> Records(file).answers
    {(Cell(network='a', state='start', optimiser='sgd', seed=0, batch_size=8), 'fixed'): Answer(rate=0.1, cost=0.0)}
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.cells: dict[Cell, Measured] = {}
        self.runs: dict[tuple[Cell, int], Outcome] = {}
        self.answers: dict[tuple[Cell, str], Answer] = {}
        for line in _complete_lines(file):
            self._store_row(json.loads(line))

    def add_cell(self, cell: Cell, measured: Measured) -> None:
        """Add the results of the grid in a cell."""
        tried = [[k, *_to_json(seen)] for k, seen in measured.tried.items()]
        self._append_row({"kind": "cell", **cell._asdict(), **measured._asdict(), "tried": tried})

    def add_run(self, cell: Cell, place: int, outcome: Outcome) -> None:
        """Add a run beyond the grid, at the rate of a rule."""
        self._append_row({"kind": "run", **cell._asdict(), "place": place, "seen": _to_json(outcome)})

    def add_answer(self, cell: Cell, rule: str, answer: Answer) -> None:
        """Add the answer of a rule."""
        self._append_row({"kind": "answer", **cell._asdict(), "rule": rule, **answer._asdict()})

    def outcome(self, cell: Cell, place: int) -> Outcome | None:
        """Return the outcome of a run, made for the grid or for a rule; None if there is none."""
        measured = self.cells.get(cell)
        if measured is not None and place in measured.tried:
            return measured.tried[place]
        return self.runs.get((cell, place))

    def _append_row(self, row: dict[str, Any]) -> None:
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row, allow_nan=False) + "\n")
        self._store_row(row)

    def _store_row(self, row: dict[str, Any]) -> None:
        cell = Cell(*(row[name] for name in Cell._fields))
        if row["kind"] == "cell":
            tried = {k: _from_json(loss, trains) for k, loss, trains in row["tried"]}
            self.cells[cell] = Measured(row["steps"], row["untrained"], row["constant"], tried)
        elif row["kind"] == "run":
            self.runs[cell, row["place"]] = _from_json(*row["seen"])
        else:
            self.answers[cell, row["rule"]] = Answer(row["rate"], row["cost"])


def _complete_lines(file: Path) -> Iterator[str]:
    """Yield the complete lines, and cut off an incomplete last one, so that the next line starts fresh."""
    if not file.exists():
        return
    text = file.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        file.write_text(whole, encoding="utf-8")
    yield from whole.splitlines()


def _to_json(seen: Outcome) -> list[Any]:
    return [seen.loss if math.isfinite(seen.loss) else None, seen.trains]


def _from_json(loss: float | None, trains: bool) -> Outcome:
    return Outcome(math.inf if loss is None else loss, trains)
