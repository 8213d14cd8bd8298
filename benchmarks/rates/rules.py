"""Rules for learning rates: from what can be seen before training, or from short runs, to a rate at each batch size.

A rule answers for the three batch sizes of a group of cells at once. Its cost is in runs of the grid: passes forward
and back over as many samples as a run at this batch size sees; what serves all sizes is shared among them. Networks are
gone through one by one: the grid of measured rates, what the rules say, and runs at the rates they give.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.rates.cells import (
    SIZES,
    Answer,
    Cell,
    Effort,
    Ground,
    Measured,
    Outcome,
    Records,
    best,
    edge,
    following,
    place,
    rate,
)
from benchmarks.rates.networks import SAMPLES, Network
from simulate.eigenvalues import extremes
from simulate.modules.sample_directions import sample_directions
from simulate.objectives import Objective
from simulate.objectives.restoring import preserve_state
from simulate.operators import gauss_newton, hessian
from simulate.training.trial_training import OPTIMISERS, CommonBatches, Training, TrialRun
from theory import learning_rates
from theory.batch_hessian import element_variance
from verify.practice.loading import problem
from verify.practice.measure.norms import frobenius
from verify.practice.plan.optimizers import chosen_optimizer
from verify.practice.plan.planned import along_power
from verify.practice.plan.rate_bracket import MeasuredBracket, measured_bracket
from verify.practice.plan.trials import Trials

_RITZ = 1e-2
_BATCHES, _NOISE_SIZE, _NOISE_BATCHES = 4, 64, 16
_SINGLE, _DIRECTIONS, _HEAVY, _PROBES = 256, 5, 10, 8
"""Samples that are looked at one by one, and how they are: fewer than a plan takes, which costs minutes."""

_BACKWARD = 2.0
"""Of a product with the Hessian, in passes forward and back."""

_FROM, _DOUBLINGS, _HALVINGS = 0.1, 30, 4
"""Of the search for the critical rate."""


class Probe:
    """Measurements at a ground, each made once; `spent` counts samples that passed forward and back.

    Dropout is off: what it draws is no property of the parameters. Batch normalisation takes the statistics of a batch.

    Parameters
    ----------
    ground
        Network, state and samples.
    """

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.inputs, self.targets = ground.data
        self.model = _without_dropout(copy.deepcopy(ground.model))
        self.spent = 0.0

    @property
    def rng(self) -> np.random.Generator:
        """Source of starts and probes, anew for each measurement: they do not hang on which were made before."""
        return np.random.default_rng((self.ground.seed, 2))

    def objective(self, chosen: Tensor | None = None) -> Objective:
        """The loss on some samples as one batch, or on all."""
        rows = torch.arange(SAMPLES) if chosen is None else chosen
        batch = [(self.inputs[rows], self.targets[rows])]
        return Objective(self.model, batch, self.ground.network.loss, training=True)

    def batches(self, size: int, count: int) -> list[Tensor]:
        """Different ones, of an order of their own."""
        common = CommonBatches(samples=SAMPLES, size=size, seed=self.ground.seed + 1)
        return list(common.steps(0, count))

    @cached_property
    def top(self) -> float:
        """Largest eigenvalue of the Hessian."""
        return self._top(self.objective(), SAMPLES)

    def batch_top(self, size: int) -> float:
        """The mean of it over some batches."""
        drawn = self.batches(size, max(1, min(_BATCHES, SAMPLES // size)))
        return float(np.mean([self._top(self.objective(chosen), size) for chosen in drawn]))

    def _top(self, objective: Objective, samples: int) -> float:
        found = extremes(hessian(objective), self.rng, largest=1, tolerance=_RITZ, steps=60)
        self.spent += _BACKWARD * found.products * samples
        return float(found.values[0])

    def critical(self, size: int) -> float:
        """Rate at which one step along the gradient of a batch no longer lowers its loss, geometric mean over some."""
        found = [self._critical(self.objective(chosen), size) for chosen in self.batches(size, _BATCHES)]
        return math.exp(float(np.mean(np.log(found))))

    def _critical(self, objective: Objective, size: int) -> float:
        gradient = objective.gradient()
        self.spent += size
        start = objective.value()

        def rises(rate: float) -> bool:
            self.spent += size / 3  # forward alone
            return not _moved(objective, gradient, rate) <= start

        return threshold(rises)

    @cached_property
    def one_step(self) -> tuple[float, float]:
        """Best rate of one full step, |g|^2 / g'Hg, and the noise scale tr(H S) / g'Hg; no rate without curvature."""
        objective = self.objective()
        gradient, matrix = objective.gradient(), hessian(objective)
        along = float(gradient @ (matrix @ gradient))
        self.spent += SAMPLES * (
            1 + _BACKWARD * (1 + _NOISE_BATCHES) + _NOISE_BATCHES * _NOISE_SIZE / SAMPLES
        )
        noises = []
        for chosen in self.batches(_NOISE_SIZE, _NOISE_BATCHES):
            off = self.objective(chosen).gradient() - gradient
            noises.append(float(off @ (matrix @ off)))
        left = _NOISE_SIZE * (SAMPLES - 1) / (SAMPLES - _NOISE_SIZE)
        if along <= 0:
            return math.inf, 0.0
        return float(gradient @ gradient) / along, max(0.0, float(np.mean(noises)) * left / along)

    @cached_property
    def linearised(self) -> tuple[MeasuredBracket, float]:
        """The bracket of `losscurv plan`, in evaluation mode, of fewer samples; and the variance of Theorem 4."""
        rows = torch.arange(_SINGLE)
        few = problem(
            self.model,
            (self.inputs[rows], self.targets[rows]),
            loss=self.ground.network.loss,
            name=self.ground.network.name,
        )
        top = extremes(gauss_newton(few.objective), self.rng, largest=_DIRECTIONS, tolerance=_RITZ, steps=60)
        found = sample_directions(few.objective, top.vectors, self.rng, heavy=_HEAVY)
        bracket = measured_bracket(top, found, few.unit)
        whole = frobenius(gauss_newton(few.objective), top, self.rng, probes=_PROBES)
        self.spent += _SINGLE * (_BACKWARD * (top.products + _PROBES + _DIRECTIONS + _HEAVY) + 10)
        spread = few.unit**2 * float(found.grams.squares.mean()) - whole.value**2
        return replace(bracket, samples=SAMPLES), max(spread, 0.0) * _SINGLE / (_SINGLE - 1)

    def theorem_4(self, size: int) -> float:
        """2 over the eigenvalue of a batch."""
        bracket, variance = self.linearised
        dim = sum(p.numel() for p in self.model.parameters())
        return float(
            learning_rates.sgd_limit(
                bracket.largest,
                sigma=math.sqrt(element_variance(variance / dim, dim=dim)),
                dim=dim,
                batch_size=size,
                dataset_size=SAMPLES,
            )
        )

    def bracket(self, size: int) -> tuple[float, float]:
        """Stable below the first, not above the second."""
        lower, upper = self.linearised[0].rates(size)
        return float(lower), float(upper)


def _without_dropout(model: nn.Module) -> nn.Module:
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = 0.0
    return model


def _moved(objective: Objective, gradient: Tensor, rate: float) -> float:
    """Loss of a batch after a step along its gradient; infinite where it is no number."""
    pairs = zip(objective.leaves(), objective.split(gradient), strict=True)
    with preserve_state(objective.model, objective.training), torch.no_grad():
        leaves = [p - rate * slope for p, slope in pairs]
        batch = next(objective.batches())
        loss = float(objective.criterion(objective.outputs(leaves, batch.inputs), batch.targets))
    return loss if math.isfinite(loss) else math.inf


def threshold(rises: Callable[[float], bool]) -> float:
    """Where a property of rates begins, looked for by factors of 2 from 0.1 on and then between them.

    >>> found = [threshold(lambda rate: rate > at) for at in (3.0, 0.003)]
    >>> bool(np.allclose(found, [3.0, 0.003], rtol=0.03))
    True
    """
    rate = _FROM
    up = not rises(rate)
    for _ in range(_DOUBLINGS):
        rate *= 2.0 if up else 0.5
        if rises(rate) == up:
            break
    low = rate / 2 if up else rate
    high = 2 * low
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rises(middle) else (middle, high)
    return math.sqrt(low * high)


# --- rules

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
        made = OPTIMISERS[self.optimiser]
        return replace(training, optimiser=lambda at: _growing(made(training.model)(at), ramp))

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


def _answer(wanted: float, cost: float) -> Answer:
    return Answer(wanted if 0 < wanted < math.inf else None, cost)


def _shared(asked: Asked, measure: Callable[[], Any]) -> tuple[Any, dict[int, float]]:
    """What a measurement gives that serves all batch sizes, and its cost at each of them."""
    before = asked.probe.spent
    found, spent = measure(), asked.probe.spent - before
    return found, {size: spent / len(SIZES) / asked.samples(size) for size in SIZES}


def _each(asked: Asked, measure: Callable[[int], float]) -> dict[int, Answer]:
    """A measurement made anew for every batch size."""
    found: dict[int, Answer] = {}
    for size in SIZES:
        rate, costs = _shared(asked, lambda size=size: measure(size))
        found[size] = _answer(rate, costs[size] * len(SIZES))
    return found


def _sharpness(asked: Asked) -> Answers:
    top, costs = _shared(asked, lambda: asked.probe.top)
    return {
        "2 / lambda_1": {size: _answer(2 / (top or math.inf), costs[size]) for size in SIZES},
        "2 / E lambda_1(B)": _each(asked, lambda size: 2 / (asked.probe.batch_top(size) or math.inf)),
    }


def _critical(asked: Asked) -> Answers:
    return {"critical sharpness": _each(asked, asked.probe.critical)}


def _one_step(asked: Asked) -> Answers:
    (full, noise), costs = _shared(asked, lambda: asked.probe.one_step)
    return {
        "one step with noise scale": {s: _answer(full / (1 + noise / s), costs[s]) for s in SIZES},
    }


def _linearised(asked: Asked) -> Answers:
    _, costs = _shared(asked, lambda: asked.probe.linearised)
    rules: dict[str, Callable[[int], float]] = {
        "lower side of the bracket": lambda size: asked.probe.bracket(size)[0],
        "upper side of the bracket": lambda size: asked.probe.bracket(size)[1],
        "Theorem 4": asked.probe.theorem_4,
    }
    return {name: {s: _answer(rate(s), costs[s]) for s in SIZES} for name, rate in rules.items()}


# --- short runs --------------------------------------------------------------------------------------------------


def _range_test(asked: Asked) -> Answers:
    """Rates that grow from step to step, at every batch size: where the loss falls fastest, and a tenth of the last."""
    found: dict[str, dict[int, Answer]] = {"range test, steepest": {}, "range test, minimum / 10": {}}
    for size in SIZES:
        rates, losses = ramp(asked, size)
        both = steepest(rates, losses), rates[int(np.argmin(losses))] / 10
        for answers, given in zip(found.values(), both, strict=True):
            answers[size] = Answer(given, len(losses) / asked.effort.horizon(size))
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
    found: dict[str, dict[int, Answer]] = {}
    for name, anchor in {"best": Answer(*asked.known), "walk": asked.earlier["walk", ANCHOR]}.items():
        for shape, rule in _SHAPES.items():
            here, answers = (
                asked.earlier[rule, ANCHOR].rate,
                found.setdefault(f"{name} at 64, by {shape}", {}),
            )
            for size in _OTHERS:
                there = asked.earlier[rule, size]
                rate = anchor.rate * there.rate / here if anchor.rate and there.rate and here else None
                answers[size] = Answer(rate, anchor.cost / len(SIZES) + there.cost)
    return found


def _surge(asked: Asked) -> Answers:
    """The best rate at the anchor by the law of Li et al. (arXiv 2405.14578): highest where B is the noise scale."""
    known, runs = asked.known
    (_, noise), costs = _shared(asked, lambda: asked.probe.one_step)

    def carried(size: int) -> float | None:
        return known * surge(size, noise) / surge(ANCHOR, noise) if noise > 0 else None

    cost = runs / len(SIZES)
    return {"surge from the best at 64": {s: Answer(carried(s), cost + costs[s]) for s in _OTHERS}}


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


# --- a network

_NEAR, _FAR = 2, 4
"""Strides in places of the grid: from the answer of the same cell of another seed, and from any other."""

_MOMENTUM = -7
"""Places from the best rate of plain descent to where momentum 0.9 begins: about a tenth."""

_LOWEST, _HIGHEST = -50, 30
"""Places beyond which no rule is followed."""


def work(network: Network, effort: Effort, records: Records, images: str | None = None) -> Iterator[str]:
    """Everything of a network that is not in the records yet, added to them; yields what was done.

    `images` is the path of an archive in place of the stand-in for images.
    """
    for seed in effort.seeds:
        for state in dict.fromkeys(state for state, _ in effort.kinds):
            ground = Ground(network, state, seed, images)
            probe = Probe(ground)
            for optimiser in [name for at, name in effort.kinds if at == state]:
                yield from _group(ground, optimiser, effort, records, probe)


def _group(ground: Ground, optimiser: str, effort: Effort, records: Records, probe: Probe) -> Iterator[str]:
    """The three cells of an optimiser on a ground, then the rules."""
    cells = {size: Cell(ground.network.name, ground.state, optimiser, ground.seed, size) for size in SIZES}
    for cell in cells.values():
        if cell not in records.cells:
            records.add_cell(cell, measured(ground, cell, effort, records))
        yield _told(cell, records.cells[cell])
    asked = Asked(ground, optimiser, effort, cells, {s: records.cells[c] for s, c in cells.items()}, probe)
    for look in LOOKS:
        if optimiser in look.optimisers:
            ask(asked, look, records)
    for cell in cells.values():
        _follow(asked, cell, records)
        yield f"{_name(cell)}: rules"


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
    likes = [(cell._replace(state="start"), 0, _NEAR)]
    if cell.optimiser == "momentum":
        likes.append((cell._replace(optimiser="sgd"), _MOMENTUM, _NEAR))
    likes.append((cell._replace(batch_size=SIZES[0]), 0, _FAR))
    for other, shift, stride in likes:
        if other in known:
            return best(known[other].tried) + shift, stride
    return place(FIXED[cell.optimiser]), _FAR


def ask(asked: Asked, look: Look, records: Records) -> None:
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
