"""Rules for learning rates: measurements before training, or short runs, give a rate at each batch size.

`work` runs everything of a network: the grid of measured rates, the answers of the rules, and runs at their rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from verify.practice.plan.linearised import Linearised
from verify.practice.plan.rules import BatchRates

from benchmarks.rates.cells import (
    KINDS,
    MOST,
    SEEDS,
    SIZES,
    Cell,
    Ground,
    Outcome,
    Result,
    Results,
    best,
    following,
    load,
    place,
    rate,
    save,
)
from benchmarks.rates.networks import OPTIMISERS, SAMPLES, Network
from verify.practice.loading import problem
from verify.practice.plan import plan_problem
from verify.practice.plan.planned import Plan, along_power
from verify.practice.plan.trials import SizeTrial, looked_ahead

# --- rules

ANCHOR = 64
"""Batch size with a known rate, for rules that carry it to others; they do not answer for this size."""

FIXED = {"sgd": 0.1, "momentum": 0.01, "adam": 1e-3}
"""Usual default rates; searches start here too."""


@dataclass(frozen=True)
class Asked:
    """Input of rules: a `Ground`, an optimiser, and the best rate of the grid at the anchor."""

    ground: Ground
    optimiser: str
    known: float

    @cached_property
    def plan(self) -> Plan:
        """Result of `losscurv plan`."""
        network, rate = self.ground.network, FIXED[self.optimiser]
        trained = problem(self.ground.model, self.ground.data, loss=network.loss, name=network.name)
        return plan_problem(
            trained, sorted(SIZES), optimizer=self.optimiser, rate=rate, seed=self.ground.seed
        )

    def trial(self, size: int) -> SizeTrial:
        """Return the trial runs of the plan at a batch size."""
        return next(trial for trial in self.plan.trials if trial.batch_size == size)


def _from_curvature(
    read: Callable[[Linearised, BatchRates], float | None],
) -> Callable[[Asked, int], float | None]:
    """Return a rule that reads the linearised dynamics of the plan; it has no rate where the plan has none."""

    def rate(asked: Asked, size: int) -> float | None:
        found = asked.plan.linearised
        return found and read(found, next(at for at in found.rates if at.batch_size == size))

    return rate


def _single_batches(asked: Asked, size: int) -> float:
    if asked.plan.linearised is None:
        return next(at.rate for at in asked.plan.batch_curvature if at.batch_size == size)
    return next(at.sharpness.value for at in asked.plan.linearised.rates if at.batch_size == size)


def _best_trial(asked: Asked, size: int) -> float | None:
    trial = asked.trial(size)
    return trial.start and trial.walked.best.rate


def _between(asked: Asked, size: int) -> float | None:
    """Interpolate the rates of trial runs at 8 and 512 by a power of B."""
    low, high = (asked.trial(at).start for at in (min(SIZES), max(SIZES)))
    return along_power((min(SIZES), low), (max(SIZES), high), size) if low and high else None


class Rule(NamedTuple):
    """Rule: its rate at a batch size, and the optimisers and batch sizes for which it answers."""

    rate: Callable[[Asked, int], float | None]
    optimisers: tuple[str, ...] = OPTIMISERS
    sizes: tuple[int, ...] = SIZES


_OTHERS = tuple(size for size in SIZES if size != ANCHOR)
_SGD = ("sgd",)

WALK, WALK_EDGE = "walk", "walk, largest that trains"

RULES: Mapping[str, Rule] = {
    "one rate": Rule(lambda a, _: FIXED[a.optimiser]),
    "linear from the best at 64": Rule(lambda a, size: a.known * size / ANCHOR, sizes=_OTHERS),
    "square root from the best at 64": Rule(lambda a, size: a.known * (size / ANCHOR) ** 0.5, sizes=_OTHERS),
    "2 / lambda_1": Rule(_from_curvature(lambda found, _: 2 / found.hessian), _SGD),
    "2 / E lambda_1(B)": Rule(_single_batches, _SGD),
    "lower side of the bracket": Rule(_from_curvature(lambda _, at: at.lower), _SGD),
    "upper side of the bracket": Rule(_from_curvature(lambda _, at: at.upper), _SGD),
    "Theorem 4": Rule(_from_curvature(lambda _, at: at.theorem_4.value), _SGD),
    WALK: Rule(lambda a, size: a.trial(size).start),
    "walk without a step back": Rule(_best_trial),
    WALK_EDGE: Rule(lambda a, size: a.trial(size).trains),
    "walk at 8 and 512, by a power between": Rule(_between, sizes=(ANCHOR,)),
}

EDGES = frozenset((WALK_EDGE, "upper side of the bracket"))
"""Rules for the largest rate that trains, not for a rate to train with."""


def answers(asked: Asked, size: int) -> dict[str, float | None]:
    """Return the rate of each rule at a batch size; None where a rule has no rate."""
    found: dict[str, float | None] = {}
    for name, rule in RULES.items():
        if asked.optimiser in rule.optimisers and size in rule.sizes:
            given = rule.rate(asked, size)
            found[name] = given if given and 0 < given < math.inf else None
    return found


# --- a network

_NEAR, _FAR = 2, 4
"""Strides in places of the grid, from the result of a similar cell, and from any other start."""

_LOWEST, _HIGHEST = -50, 30
"""Places beyond which rates of rules are not run."""


def nearest_run(wanted: float) -> int:
    """Return the place at which the rate of a rule is run."""
    return min(max(place(wanted), _LOWEST), _HIGHEST)


def work(network: Network, folder: Path, images: str | None = None) -> Iterator[str]:
    """Run everything of a network that has no file in the folder yet; yield a line for each cell.

    `images` is the path of the archive of colour images, for networks that take them.
    """
    known: Results = {}
    for seed in SEEDS:
        for state, optimiser in KINDS:
            file = folder / f"{network.name}-{state}-{optimiser}-{seed}.json"
            if not file.exists():
                save(file, _run_group(Ground(network, state, seed, images), optimiser, known))
            found = load(file)
            known |= found
            yield from (_describe(cell, result) for cell, result in found.items())


def _run_group(ground: Ground, optimiser: str, known: Results) -> Results:
    """Run the three cells of an optimiser at a `Ground`, then the rules."""
    found: Results = {}
    for size in SIZES:
        cell = Cell(ground.network.name, ground.state, optimiser, ground.seed, size)
        reference = ground.reference(size, looked_ahead(size, SAMPLES))
        first, stride = beginning(cell, known | found)
        run, tried = _runner(ground, cell, reference), dict[int, Outcome]()
        while len(tried) < MOST and (at := following(tried, first=first, stride=stride)) is not None:
            tried[at] = run(at)
        found[cell] = Result(reference, tried, {}, {}, 0.0)
    anchor = next(result for cell, result in found.items() if cell.batch_size == ANCHOR)
    asked = Asked(ground, optimiser, rate(best(anchor.tried)))
    for cell, result in found.items():
        given = answers(asked, cell.batch_size)
        run, wanted = _runner(ground, cell, result.reference), {r for n, r in given.items() if n not in EDGES}
        # A rate that the search of the grid has tried need not be run again.
        runs = {at: result.tried.get(at) or run(at) for at in sorted({nearest_run(r) for r in wanted if r})}
        cost = asked.trial(cell.batch_size).walked.steps / looked_ahead(cell.batch_size, SAMPLES)
        found[cell] = result._replace(runs=runs, answers=given, cost=cost)
    return found


def _runner(ground: Ground, cell: Cell, reference: float) -> Callable[[int], Outcome]:
    steps = looked_ahead(cell.batch_size, SAMPLES)
    return partial(ground.outcome, cell.optimiser, cell.batch_size, steps=steps, reference=reference)


def beginning(cell: Cell, known: Results) -> tuple[int, int]:
    """Return first place and stride of the search of a cell, from results of similar cells of the network."""
    for size, stride in ((cell.batch_size, _NEAR), (SIZES[0], _FAR)):
        for other, result in known.items():
            if (other.optimiser, other.batch_size) == (cell.optimiser, size):
                return best(result.tried), stride
    return place(FIXED[cell.optimiser]), _FAR


def _describe(cell: Cell, result: Result) -> str:
    found = f"best {rate(best(result.tried)):.3g} of {len(result.tried)} rates"
    return f"{cell.network}, {cell.state}, {cell.optimiser}, seed {cell.seed}, B = {cell.batch_size}: {found}"
