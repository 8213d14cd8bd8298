"""A half, network by network: the grid of measured rates, what the rules say, and runs at the rates they give."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial

from benchmarks.rates.cells import SIZES, Cell, Effort, Ground, State
from benchmarks.rates.networks import Network
from benchmarks.rates.probe import Probe
from benchmarks.rates.records import Answer, Measured, Records
from benchmarks.rates.rules import EDGES, FIXED, LOOKS, Answers, Asked, Look
from benchmarks.rates.search import Outcome, best, edge, following, place, rate
from simulate.training.trial_training import TrialRun

__all__ = ["beginning", "expected", "measured", "prices", "work"]

_NEAR, _FAR = 2, 4
"""Strides in places of the grid: from the answer of the same cell of another seed, and from any other."""

_MOMENTUM = -7
"""Places from the best rate of plain descent to where momentum 0.9 begins: about a tenth."""

_LOWEST, _HIGHEST = -50, 30
"""Places beyond which no rule is followed."""

_OF_RULES = 0.7
"""Guess of what rules and the runs at their rates take, over the grid of a cell."""


def prices(ground: Ground, effort: Effort) -> dict[int, float]:
    """Seconds of a run at each batch size, by two steps of it."""
    found = {}
    for size in SIZES:
        run = TrialRun(ground.training("sgd", size), 1e-9).until(1)
        started = time.monotonic()
        found[size] = effort.horizon(size) * ((time.monotonic() - started) + _timed(run))
    return found


def _timed(run: TrialRun) -> float:
    started = time.monotonic()
    run.until(3)
    return (time.monotonic() - started) / 2


def work(
    network: Network, effort: Effort, records: Records, images: str | None = None
) -> Iterator[tuple[str, float]]:
    """Everything of a network that is not in the records yet; yields what was done, and guessed seconds of it.

    Parameters
    ----------
    network, effort
        What, and how much of it.
    records
        To be read and added to.
    images
        Path of an archive in place of the stand-in for images.
    """
    each = prices(Ground(network, "start", effort.seeds[0], images), effort)
    for seed in effort.seeds:
        for state in dict.fromkeys(state for state, _ in effort.kinds):
            ground = Ground(network, state, seed, images)
            probe = Probe(ground)
            for optimiser in [name for at, name in effort.kinds if at == state]:
                yield from _group(ground, optimiser, effort, records, probe, each)


def expected(network: Network, effort: Effort, images: str | None = None) -> float:
    """Guess of the seconds that all of a network takes."""
    each = prices(Ground(network, "start", effort.seeds[0], images), effort)
    return sum(each.values()) * effort.most * (1 + _OF_RULES) * len(effort.seeds) * len(effort.kinds)


def _group(
    ground: Ground, optimiser: str, effort: Effort, records: Records, probe: Probe, each: Mapping[int, float]
) -> Iterator[tuple[str, float]]:
    """The three cells of an optimiser on a ground, then the rules."""
    cells = {size: Cell(ground.network.name, ground.state, optimiser, ground.seed, size) for size in SIZES}
    for size, cell in cells.items():
        if cell not in records.cells:
            records.add_cell(cell, measured(ground, cell, effort, records))
        yield _told(cell, records.cells[cell]), each[size] * effort.most
    asked = Asked(ground, optimiser, effort, cells, {s: records.cells[c] for s, c in cells.items()}, probe)
    for look in LOOKS:
        if optimiser in look.optimisers:
            _answer(asked, look, records)
    for size, cell in cells.items():
        _follow(asked, cell, records)
        yield f"{_name(cell)}: rules", each[size] * effort.most * _OF_RULES


def measured(ground: Ground, cell: Cell, effort: Effort, records: Records) -> Measured:
    """The grid of a cell."""
    steps = effort.horizon(cell.batch_size)
    references = ground.references(cell.batch_size, steps)
    run = partial(ground.outcome, cell.optimiser, cell.batch_size, steps=steps, reference=min(references))
    first, stride = beginning(cell, records.cells)
    tried: dict[int, Outcome] = {}
    while len(tried) < effort.most and (at := following(tried, first=first, stride=stride)) is not None:
        tried[at] = run(at)
    return Measured(steps, *references, tried)


def beginning(cell: Cell, known: Mapping[Cell, Measured]) -> tuple[int, int]:
    """Where the search of a cell begins, and how far it steps: from what is known of cells like it."""
    for other in sorted(known):
        if other._replace(seed=cell.seed) == cell:
            return best(known[other].tried), _NEAR
    start: State = "start"
    likes = [(cell._replace(state=start), 0, _NEAR)]
    if cell.optimiser == "momentum":
        likes.append((cell._replace(optimiser="sgd"), _MOMENTUM, _NEAR))
    likes.append((cell._replace(batch_size=SIZES[0]), 0, _FAR))
    for other, shift, stride in likes:
        if other in known:
            return best(known[other].tried) + shift, stride
    return place(FIXED[cell.optimiser]), _FAR


def _answer(asked: Asked, look: Look, records: Records) -> None:
    """Ask, unless all has been answered."""
    filed = {
        (name, size): records.answers[cell, name]
        for name in look.names
        for size, cell in asked.cells.items()
        if (cell, name) in records.answers
    }
    if set(filed) != look.expected:
        for name, answers in _asked(asked, look).items():
            for size, answer in answers.items():
                records.add_answer(asked.cells[size], name, answer)
                filed[name, size] = answer
    asked.earlier.update(filed)


def _asked(asked: Asked, look: Look) -> Answers:
    """What a look gives; no rates where it refuses the network, as what needs single samples may."""
    try:
        return look.ask(asked)
    except ValueError as error:
        print(f"{asked.ground.network.name}: no {' and no '.join(look.names)}: {error}", file=sys.stderr)
        return {name: {size: Answer(None, 0.0) for size in look.sizes} for name in look.names}


def _follow(asked: Asked, cell: Cell, records: Records) -> None:
    """Runs at the rates that rules give, at the nearest place of the grid."""
    measured, size = records.cells[cell], cell.batch_size
    wanted = {
        min(max(place(answer.rate), _LOWEST), _HIGHEST)
        for (name, at), answer in asked.earlier.items()
        if at == size and answer.rate is not None and name not in EDGES
    }
    for at in sorted(wanted):
        if records.outcome(cell, at) is None:
            ground, steps = asked.ground, measured.steps
            outcome = ground.outcome(cell.optimiser, size, at, steps=steps, reference=measured.reference)
            records.add_run(cell, at, outcome)


def _name(cell: Cell) -> str:
    return f"{cell.network}, {cell.state}, {cell.optimiser}, seed {cell.seed}, B = {cell.batch_size}"


def _told(cell: Cell, measured: Measured) -> str:
    last = edge(measured.tried)
    trains = "nothing trains" if last is None else f"trains up to {rate(last):.3g}"
    return f"{_name(cell)}: best {rate(best(measured.tried)):.3g}, {trains}, {len(measured.tried)} rates"
