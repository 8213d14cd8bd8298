"""Rules for learning rates: from what can be seen before training, or from short runs, to a rate at each batch size.

A rule answers for the three batch sizes of a group of cells at once. Its cost is in runs of the grid: passes forward
and back over as many samples as a run at this batch size sees; what serves all sizes is shared among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from benchmarks.rates.cells import SIZES, Cell, Effort, Ground
from benchmarks.rates.probe import Probe
from benchmarks.rates.records import Answer, Measured
from benchmarks.rates.search import best, rate
from simulate.training.trial_training import OPTIMISERS, Training, TrialRun
from verify.practice.loading import problem
from verify.practice.plan.optimizers import chosen_optimizer
from verify.practice.plan.planned import along_power
from verify.practice.plan.trials import Trials

__all__ = [
    "ANCHOR",
    "EDGES",
    "FIXED",
    "LOOKS",
    "Answers",
    "Asked",
    "Look",
    "ramp",
    "smoothed",
    "steepest",
    "surge",
]

ANCHOR = 64
"""The batch size at which a rate is known, for rules that carry it to others; they do not answer for this one."""

_OTHERS = tuple(size for size in SIZES if size != ANCHOR)

FIXED = {"sgd": 0.1, "momentum": 0.01, "adam": 1e-3}
"""Where nobody knows anything; here walks begin too."""

EDGES = frozenset(("walk, largest that trains", "upper side of the bracket"))
"""Rules for the largest rate that trains, which nobody would start with."""

_WALKS = ("walk", "walk without a step back", "walk, largest that trains", "walk of fewer steps")

_BETWEEN = "walk at 8 and 512, by a power between"

_RAMP, _LOW, _HIGH, _SMOOTHING, _RAN_OFF = 100, 1e-4, 1e2, 0.9, 4.0
"""Range test: steps, first and last rate over that of `FIXED`, and how losses are averaged and where it stops."""

_UNSETTLED = 10
"""Steps of a range test that are not looked at, as in the common tools."""

Answers = Mapping[str, Mapping[int, Answer]]
"""By rule and batch size."""


@dataclass
class Asked:
    """What rules may look at: a ground, an optimiser, and cells of the grid for those that carry a known rate.

    Attributes
    ----------
    cells
        The three cells by their batch size.
    measured
        What the grid has shown of them.
    earlier
        Answers of rules that were asked before.
    """

    ground: Ground
    optimiser: str
    effort: Effort
    cells: Mapping[int, Cell]
    measured: Mapping[int, Measured]
    probe: Probe
    earlier: dict[tuple[str, int], Answer] = field(default_factory=dict)

    def training(self, size: int, ramp: float | None = None) -> Training:
        """Of the cell; with rates that grow by a factor after each step."""
        training = self.ground.training(self.optimiser, size)
        if ramp is None:
            return training
        return _with(training, lambda at: _growing(OPTIMISERS[self.optimiser](training.model)(at), ramp))

    def samples(self, size: int) -> float:
        """That a run of the grid passes through."""
        return size * self.effort.horizon(size)

    @cached_property
    def known(self) -> tuple[float, float]:
        """The best rate of the grid at the anchor, and how many runs that took."""
        tried = self.measured[ANCHOR].tried
        return rate(best(tried)), float(len(tried))


@dataclass(frozen=True)
class Look:
    """One way of looking, and the rules that answer by it, for some batch sizes."""

    names: tuple[str, ...]
    ask: Callable[[Asked], Answers]
    optimisers: tuple[str, ...] = ("sgd", "momentum", "adam")
    sizes: tuple[int, ...] = SIZES

    @property
    def expected(self) -> set[tuple[str, int]]:
        """Rules and batch sizes that it answers for."""
        return {(name, size) for name in self.names for size in self.sizes}


def _with(training: Training, optimiser: Any) -> Training:
    return replace(training, optimiser=optimiser)


def _growing(optimiser: torch.optim.Optimizer, factor: float) -> torch.optim.Optimizer:
    def grow(made: torch.optim.Optimizer, *_: Any) -> None:
        for group in made.param_groups:
            group["lr"] *= factor

    optimiser.register_step_post_hook(grow)
    return optimiser


# --- without looking ---------------------------------------------------------------------------------------------


def _fixed(asked: Asked) -> Answers:
    return {"one rate": {size: Answer(FIXED[asked.optimiser], 0.0) for size in SIZES}}


def _scaled(asked: Asked) -> Answers:
    """The best rate at the anchor, from the grid, by powers of the batch size."""
    known, runs = asked.known
    powers = {"linear from the best at 64": 1.0, "square root from the best at 64": 0.5}
    return {
        name: {size: Answer(known * (size / ANCHOR) ** power, runs / len(SIZES)) for size in _OTHERS}
        for name, power in powers.items()
    }


# --- curvature at the start --------------------------------------------------------------------------------------


def _spent(asked: Asked, measure: Callable[[], Any]) -> tuple[Any, float]:
    """What a measurement gives, and the samples that passed for it."""
    before = asked.probe.spent
    return measure(), asked.probe.spent - before


def _shared(asked: Asked, samples: float, size: int) -> float:
    return samples / len(SIZES) / asked.samples(size)


def _positive(wanted: float) -> float | None:
    return wanted if 0 < wanted < math.inf else None


def _sharpness(asked: Asked) -> Answers:
    top, spent = _spent(asked, lambda: asked.probe.top)
    each = {size: _spent(asked, lambda size=size: asked.probe.batch_top(size)) for size in SIZES}
    return {
        "2 / lambda_1": {
            size: Answer(_positive(2 / top if top else 0.0), _shared(asked, spent, size)) for size in SIZES
        },
        "2 / E lambda_1(B)": {
            size: Answer(_positive(2 / value if value else 0.0), cost / asked.samples(size))
            for size, (value, cost) in each.items()
        },
    }


def _critical(asked: Asked) -> Answers:
    each = {size: _spent(asked, lambda size=size: asked.probe.critical(size)) for size in SIZES}
    return {
        "critical sharpness": {
            s: Answer(_positive(value), cost / asked.samples(s)) for s, (value, cost) in each.items()
        }
    }


def _one_step(asked: Asked) -> Answers:
    (full, noise), spent = _spent(asked, lambda: asked.probe.one_step)
    return {
        "one step with noise scale": {
            size: Answer(_positive(full / (1 + noise / size)), _shared(asked, spent, size)) for size in SIZES
        }
    }


def _linearised(asked: Asked) -> Answers:
    _, spent = _spent(asked, lambda: asked.probe.linearised)
    costs = {size: _shared(asked, spent, size) for size in SIZES}
    sides = {size: asked.probe.bracket(size) for size in SIZES}
    return {
        "lower side of the bracket": {s: Answer(_positive(sides[s][0]), costs[s]) for s in SIZES},
        "upper side of the bracket": {s: Answer(_positive(sides[s][1]), costs[s]) for s in SIZES},
        "Theorem 4": {s: Answer(_positive(asked.probe.theorem_4(s)), costs[s]) for s in SIZES},
    }


# --- short runs --------------------------------------------------------------------------------------------------


def _range_test(asked: Asked) -> Answers:
    """Rates that grow from step to step, at every batch size: where the loss falls fastest, and a tenth of the last."""
    found: dict[str, dict[int, Answer]] = {"range test, steepest": {}, "range test, minimum / 10": {}}
    for size in SIZES:
        rates, losses = ramp(asked, size)
        cost = len(losses) / asked.effort.horizon(size)
        found["range test, steepest"][size] = Answer(steepest(rates, losses), cost)
        found["range test, minimum / 10"][size] = Answer(rates[int(np.argmin(losses))] / 10, cost)
    return found


def steepest(rates: list[float], losses: list[float]) -> float | None:
    """The rate at which a smoothed loss falls fastest, beyond the first steps, whose means are of too few batches.

    >>> steepest([1.0] * 10 + [2.0, 3.0, 4.0], [9.0, 1.0] + [1.0] * 8 + [1.0, 0.5, 0.4])
    3.0
    """
    if len(losses) < _UNSETTLED + 2:
        return None
    return rates[_UNSETTLED + int(np.argmin(np.gradient(losses)[_UNSETTLED:]))]


def ramp(asked: Asked, size: int) -> tuple[list[float], list[float]]:
    """Rates and smoothed losses of a range test, up to where they run off."""
    first, factor = FIXED[asked.optimiser] * _LOW, (_HIGH / _LOW) ** (1 / (_RAMP - 1))
    run = TrialRun(asked.training(size, factor), first).until(_RAMP)
    losses = smoothed([loss for loss in run.losses if math.isfinite(loss)])
    kept = next((k for k, loss in enumerate(losses) if loss > _RAN_OFF * min(losses[: k + 1])), len(losses))
    return [first * factor**k for k in range(kept)], losses[:kept]


def smoothed(losses: list[float]) -> list[float]:
    """Exponential means without the bias of their beginning.

    >>> smoothed([1.0, 1.0, 1.0])
    [1.0, 1.0, 1.0]
    """
    mean, found = 0.0, []
    for step, loss in enumerate(losses, start=1):
        mean = _SMOOTHING * mean + (1 - _SMOOTHING) * loss
        found.append(mean / (1 - _SMOOTHING**step))
    return [round(value, 12) for value in found]


def _walk(asked: Asked) -> Answers:
    """The walk of `losscurv plan` as it is, from the middle batch size to the others.

    Another one takes as many steps at small batch sizes as at large ones.
    """
    trials, fewer = _trials(asked, asked.effort.horizon), _trials(asked, lambda _: asked.effort.steps)
    short = {trial.batch_size: trial for trial in fewer.run()}
    answers = {name: dict[int, Answer]() for name in _WALKS}
    for trial in trials.run():
        size, fast = trial.batch_size, short[trial.batch_size]
        rates = (trial.start, trial.start and trial.walked.best.rate, trial.trains, fast.start)
        for name, at in zip(_WALKS, rates, strict=True):
            taken = (fast if name == _WALKS[-1] else trial).walked.steps
            answers[name][size] = Answer(at, taken / asked.effort.horizon(size))
    return answers


def _trials(asked: Asked, ahead: Callable[[int], int]) -> Trials:
    ground = asked.ground
    inputs, targets = ground.data
    return Trials(
        problem=problem(ground.model, (inputs, targets), loss=ground.network.loss, name=ground.network.name),
        optimiser=chosen_optimizer(asked.optimiser, rate=FIXED[asked.optimiser]),
        sizes=sorted(SIZES),
        constant=ground.constant,
        level=ground.level,
        steps={size: ahead(size) for size in SIZES},
        seed=ground.seed,
    )


# --- one size carried to the others ------------------------------------------------------------------------------

_SHAPES = {"E lambda_1(B)": "2 / E lambda_1(B)", "noise scale": "one step with noise scale"}


def _carried(asked: Asked) -> Answers:
    """Rates at the anchor times the ratio that another rule has between the sizes."""
    known, runs = asked.known
    walk = asked.earlier["walk", ANCHOR]
    anchors = {"best": (known, runs), "walk": (walk.rate, walk.cost)}
    return {
        f"{name} at 64, by {shape}": {size: _carried_to(asked, size, rule, anchor) for size in _OTHERS}
        for name, anchor in anchors.items()
        for shape, rule in _SHAPES.items()
    }


def _carried_to(asked: Asked, size: int, rule: str, anchor: tuple[float | None, float]) -> Answer:
    there, here = asked.earlier[rule, size], asked.earlier[rule, ANCHOR]
    known, cost = anchor
    total = cost / len(SIZES) + there.cost
    if known is None or there.rate is None or here.rate is None:
        return Answer(None, total)
    return Answer(known * there.rate / here.rate, total)


def _surge(asked: Asked) -> Answers:
    """The best rate at the anchor by the law of Li et al. (arXiv 2405.14578): highest where B is the noise scale."""
    known, runs = asked.known
    (_, noise), spent = _spent(asked, lambda: asked.probe.one_step)

    def carried(size: int) -> float | None:
        return known * surge(size, noise) / surge(ANCHOR, noise) if noise > 0 else None

    costs = {size: runs / len(SIZES) + _shared(asked, spent, size) for size in _OTHERS}
    return {"surge from the best at 64": {size: Answer(carried(size), costs[size]) for size in _OTHERS}}


def surge(size: float, noise: float) -> float:
    """Best rate of Adam over that at the noise scale.

    >>> surge(4.0, 1.0), surge(1.0, 4.0), surge(2.0, 2.0)
    (0.8, 0.8, 1.0)
    """
    return 2 / (math.sqrt(size / noise) + math.sqrt(noise / size))


def _between(asked: Asked) -> Answers:
    """What the walk gives at the sizes to either side, along a power of B."""
    low, high = (asked.earlier["walk", size] for size in (min(SIZES), max(SIZES)))
    cost = (low.cost + high.cost) / 2
    if low.rate is None or high.rate is None:
        return {_BETWEEN: {ANCHOR: Answer(None, cost)}}
    rate = along_power((min(SIZES), low.rate), (max(SIZES), high.rate), ANCHOR)
    return {_BETWEEN: {ANCHOR: Answer(rate, cost)}}


LOOKS = (
    Look(("one rate",), _fixed),
    Look(("linear from the best at 64", "square root from the best at 64"), _scaled, sizes=_OTHERS),
    Look(("2 / lambda_1", "2 / E lambda_1(B)"), _sharpness, ("sgd",)),
    Look(("critical sharpness",), _critical, ("sgd",)),
    Look(("one step with noise scale",), _one_step, ("sgd",)),
    Look(("lower side of the bracket", "upper side of the bracket", "Theorem 4"), _linearised, ("sgd",)),
    Look(("range test, steepest", "range test, minimum / 10"), _range_test),
    Look(_WALKS, _walk),
    Look(
        tuple(f"{name} at 64, by {shape}" for name in ("best", "walk") for shape in _SHAPES),
        _carried,
        ("sgd",),
        _OTHERS,
    ),
    Look((_BETWEEN,), _between, sizes=(ANCHOR,)),
    Look(("surge from the best at 64",), _surge, ("adam",), _OTHERS),
)
"""In the order in which they are asked: some need answers of others."""
