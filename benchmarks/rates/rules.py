"""Rules for learning rates: measurements before training, or short runs, give a rate at each batch size.

A rule answers for the three batch sizes of a group of cells at once. Its cost is in runs of the grid, that is forward
and backward passes over as many samples as a run at this batch size sees; the cost of a measurement for all sizes is
shared among them. Each network takes three parts: the grid of measured rates, the answers of the rules, and runs at
their rates.
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
"""Numbers of single samples, eigenvectors, heaviest samples and probes: fewer than a plan takes, to save minutes."""

_BACKWARD = 2.0
"""Cost of a product with the Hessian, in forward and backward passes."""

_FIRST, _DOUBLINGS, _HALVINGS = 0.1, 30, 4
"""First rate, most doublings and number of bisections of the search for the critical rate."""


class Probe:
    """Measurements at a `Ground`, each made once; `spent` counts samples that passed forward and back.

    Dropout is off: its draws are no property of the parameters. Batch normalisation takes the statistics of a batch.

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
        """New generator of starts and probes; it does not depend on earlier measurements."""
        return np.random.default_rng((self.ground.seed, 2))

    def objective(self, chosen: Tensor | None = None) -> Objective:
        """Return the loss on some samples as one batch, or on all samples."""
        rows = torch.arange(SAMPLES) if chosen is None else chosen
        batch = [(self.inputs[rows], self.targets[rows])]
        return Objective(self.model, batch, self.ground.network.loss, training=True)

    def batches(self, size: int, count: int) -> list[Tensor]:
        """Return disjoint batches, in an order other than that of training."""
        common = CommonBatches(samples=SAMPLES, size=size, seed=self.ground.seed + 1)
        return list(common.steps(0, count))

    @cached_property
    def top(self) -> float:
        """Largest eigenvalue of the Hessian."""
        return self._top(self.objective(), SAMPLES)

    def batch_top(self, size: int) -> float:
        """Return the mean of the largest eigenvalue over some batches."""
        drawn = self.batches(size, max(1, min(_BATCHES, SAMPLES // size)))
        return float(np.mean([self._top(self.objective(chosen), size) for chosen in drawn]))

    def _top(self, objective: Objective, samples: int) -> float:
        found = extremes(hessian(objective), self.rng, largest=1, tolerance=_RITZ, steps=60)
        self.spent += _BACKWARD * found.products * samples
        return float(found.values[0])

    def critical(self, size: int) -> float:
        """Return the rate at which a gradient step no longer lowers the loss of its batch; mean over batches."""
        found = [self._critical(self.objective(chosen), size) for chosen in self.batches(size, _BATCHES)]
        return math.exp(float(np.mean(np.log(found))))

    def _critical(self, objective: Objective, size: int) -> float:
        gradient = objective.gradient()
        self.spent += size
        start = objective.value()

        def rises(rate: float) -> bool:
            self.spent += size / 3  # a forward pass alone
            return not _loss_after_step(objective, gradient, rate) <= start

        return threshold(rises)

    @cached_property
    def one_step(self) -> tuple[float, float]:
        """Best rate of a full step, |g|^2 / g'Hg, and noise scale tr(H S) / g'Hg; (inf, 0) without curvature."""
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
        """Bracket of `losscurv plan`, in evaluation mode with fewer samples, and the variance of Theorem 4."""
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
        """Return 2 over the eigenvalue of a batch by Theorem 4."""
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
        """Return the rates below which training is stable, and above which it is not."""
        lower, upper = self.linearised[0].rates(size)
        return float(lower), float(upper)


def _without_dropout(model: nn.Module) -> nn.Module:
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = 0.0
    return model


def _loss_after_step(objective: Objective, gradient: Tensor, rate: float) -> float:
    """Return the loss of a batch after a step along its gradient; infinite if it is not finite."""
    pairs = zip(objective.leaves(), objective.split(gradient), strict=True)
    with preserve_state(objective.model, objective.training), torch.no_grad():
        leaves = [p - rate * slope for p, slope in pairs]
        batch = next(objective.batches())
        loss = float(objective.criterion(objective.outputs(leaves, batch.inputs), batch.targets))
    return loss if math.isfinite(loss) else math.inf


def threshold(rises: Callable[[float], bool]) -> float:
    """Return the smallest rate with a property, searched by factors of 2 from 0.1 and then by bisection.

    >>> found = [threshold(lambda rate: rate > at) for at in (3.0, 0.003)]
    >>> bool(np.allclose(found, [3.0, 0.003], rtol=0.03))
    True
    """
    rate = _FIRST
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
"""Batch size with a known rate, for rules that carry it to others; they do not answer for this size."""

_OTHERS = tuple(size for size in SIZES if size != ANCHOR)

FIXED = {"sgd": 0.1, "momentum": 0.01, "adam": 1e-3}
"""Usual default rates; searches start here too."""

EDGES = frozenset(("walk, largest that trains", "upper side of the bracket"))
"""Rules for the largest rate that trains, not for a rate to train with."""

_WALKS = ("walk", "walk without a step back", "walk, largest that trains", "walk of fewer steps")

_BETWEEN = "walk at 8 and 512, by a power between"

_RAMP, _LOW, _HIGH, _SMOOTHING, _RAN_OFF = 100, 1e-4, 1e2, 0.9, 4.0
"""Range test: steps, first and last rate over `FIXED`, weight of the mean loss, and its growth at which it stops."""

_UNSETTLED = 10
"""First steps of a range test that are ignored, as in the common tools."""

Answers = Mapping[str, Mapping[int, Answer]]
"""Answers by rule and batch size."""


@dataclass
class Asked:
    """Input of rules: a `Ground`, an optimiser, and results of the grid for rules that carry a known rate.

    Attributes
    ----------
    cells
        The three cells by their batch size.
    measured
        Results of the grid in these cells.
    earlier
        Answers of earlier rules.
    """

    ground: Ground
    optimiser: str
    effort: Effort
    cells: Mapping[int, Cell]
    measured: Mapping[int, Measured]
    probe: Probe
    earlier: dict[tuple[str, int], Answer] = field(default_factory=dict)

    def training(self, size: int, ramp: float | None = None) -> Training:
        """Return the settings of trial runs; with `ramp`, rates grow by this factor after each step."""
        training = self.ground.training(self.optimiser, size)
        if ramp is None:
            return training
        made = OPTIMISERS[self.optimiser]
        return replace(training, optimiser=lambda at: _with_growing_rate(made(training.model)(at), ramp))

    def samples(self, size: int) -> float:
        """Return the number of samples that a run of the grid passes through."""
        return size * self.effort.horizon(size)

    @cached_property
    def known(self) -> tuple[float, float]:
        """Best rate of the grid at the anchor, and its number of runs."""
        tried = self.measured[ANCHOR].tried
        return rate(best(tried)), float(len(tried))


@dataclass(frozen=True)
class Look:
    """A measurement, and the rules that answer from it, for some batch sizes."""

    names: tuple[str, ...]
    ask: Callable[[Asked], Answers]
    optimisers: tuple[str, ...] = ("sgd", "momentum", "adam")
    sizes: tuple[int, ...] = SIZES

    @property
    def expected(self) -> set[tuple[str, int]]:
        """Rules and batch sizes for which it answers."""
        return {(name, size) for name in self.names for size in self.sizes}


def _with_growing_rate(optimiser: torch.optim.Optimizer, factor: float) -> torch.optim.Optimizer:
    def grow(made: torch.optim.Optimizer, *_: Any) -> None:
        for group in made.param_groups:
            group["lr"] *= factor

    optimiser.register_step_post_hook(grow)
    return optimiser


# --- without measurement -----------------------------------------------------------------------------------------


def _fixed(asked: Asked) -> Answers:
    return {"one rate": {size: Answer(FIXED[asked.optimiser], 0.0) for size in SIZES}}


def _scaled(asked: Asked) -> Answers:
    """Carry the best rate of the grid at the anchor to other batch sizes, by powers of the batch size."""
    known, runs = asked.known
    powers = {"linear from the best at 64": 1.0, "square root from the best at 64": 0.5}
    return {
        name: {size: Answer(known * (size / ANCHOR) ** power, runs / len(SIZES)) for size in _OTHERS}
        for name, power in powers.items()
    }


# --- curvature at the start --------------------------------------------------------------------------------------


def _answer(wanted: float, cost: float) -> Answer:
    return Answer(wanted if 0 < wanted < math.inf else None, cost)


def _measure_shared(asked: Asked, measure: Callable[[], Any]) -> tuple[Any, dict[int, float]]:
    """Return the result of a measurement for all batch sizes, and its share of the cost at each of them."""
    before = asked.probe.spent
    found, spent = measure(), asked.probe.spent - before
    return found, {size: spent / len(SIZES) / asked.samples(size) for size in SIZES}


def _measure_by_size(asked: Asked, measure: Callable[[int], float]) -> dict[int, Answer]:
    """Repeat a measurement for every batch size."""
    found: dict[int, Answer] = {}
    for size in SIZES:
        rate, costs = _measure_shared(asked, lambda size=size: measure(size))
        found[size] = _answer(rate, costs[size] * len(SIZES))
    return found


def _sharpness(asked: Asked) -> Answers:
    top, costs = _measure_shared(asked, lambda: asked.probe.top)
    return {
        "2 / lambda_1": {size: _answer(2 / (top or math.inf), costs[size]) for size in SIZES},
        "2 / E lambda_1(B)": _measure_by_size(
            asked, lambda size: 2 / (asked.probe.batch_top(size) or math.inf)
        ),
    }


def _critical(asked: Asked) -> Answers:
    return {"critical sharpness": _measure_by_size(asked, asked.probe.critical)}


def _one_step(asked: Asked) -> Answers:
    (full, noise), costs = _measure_shared(asked, lambda: asked.probe.one_step)
    return {
        "one step with noise scale": {s: _answer(full / (1 + noise / s), costs[s]) for s in SIZES},
    }


def _linearised(asked: Asked) -> Answers:
    _, costs = _measure_shared(asked, lambda: asked.probe.linearised)
    rules: dict[str, Callable[[int], float]] = {
        "lower side of the bracket": lambda size: asked.probe.bracket(size)[0],
        "upper side of the bracket": lambda size: asked.probe.bracket(size)[1],
        "Theorem 4": asked.probe.theorem_4,
    }
    return {name: {s: _answer(rate(s), costs[s]) for s in SIZES} for name, rate in rules.items()}


# --- short runs --------------------------------------------------------------------------------------------------


def _range_test(asked: Asked) -> Answers:
    """Range test at every batch size: the rate with the steepest loss, and a tenth of the rate with the smallest."""
    found: dict[str, dict[int, Answer]] = {"range test, steepest": {}, "range test, minimum / 10": {}}
    for size in SIZES:
        rates, losses = ramp(asked, size)
        both = steepest(rates, losses), rates[int(np.argmin(losses))] / 10
        for answers, given in zip(found.values(), both, strict=True):
            answers[size] = Answer(given, len(losses) / asked.effort.horizon(size))
    return found


def steepest(rates: list[float], losses: list[float]) -> float | None:
    """Return the rate at which a smoothed loss falls fastest, without the first steps, which average too few batches.

    >>> steepest([1.0] * 10 + [2.0, 3.0, 4.0], [9.0, 1.0] + [1.0] * 8 + [1.0, 0.5, 0.4])
    3.0
    """
    if len(losses) < _UNSETTLED + 2:
        return None
    return rates[_UNSETTLED + int(np.argmin(np.gradient(losses)[_UNSETTLED:]))]


def ramp(asked: Asked, size: int) -> tuple[list[float], list[float]]:
    """Return rates and smoothed losses of a range test, up to where the loss runs off."""
    first, factor = FIXED[asked.optimiser] * _LOW, (_HIGH / _LOW) ** (1 / (_RAMP - 1))
    run = TrialRun(asked.training(size, factor), first).until(_RAMP)
    losses = smoothed([loss for loss in run.losses if math.isfinite(loss)])
    kept = next((k for k, loss in enumerate(losses) if loss > _RAN_OFF * min(losses[: k + 1])), len(losses))
    return [first * factor**k for k in range(kept)], losses[:kept]


def smoothed(losses: list[float]) -> list[float]:
    """Return exponential means, corrected for the bias of their start.

    >>> smoothed([1.0, 1.0, 1.0])
    [1.0, 1.0, 1.0]
    """
    mean, found = 0.0, []
    for step, loss in enumerate(losses, start=1):
        mean = _SMOOTHING * mean + (1 - _SMOOTHING) * loss
        found.append(mean / (1 - _SMOOTHING**step))
    return [round(value, 12) for value in found]


def _walk(asked: Asked) -> Answers:
    """Run the rate search of `losscurv plan`, from the middle batch size to the others.

    A second search takes as many steps at small batch sizes as at large ones.
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
    """Return rates at the anchor times the ratio of another rule between the sizes."""
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
    """Carry the best rate at the anchor by the law of Li et al. (arXiv 2405.14578), which peaks at the noise scale."""
    known, runs = asked.known
    (_, noise), costs = _measure_shared(asked, lambda: asked.probe.one_step)

    def carried(size: int) -> float | None:
        return known * surge(size, noise) / surge(ANCHOR, noise) if noise > 0 else None

    cost = runs / len(SIZES)
    return {"surge from the best at 64": {s: Answer(carried(s), cost + costs[s]) for s in _OTHERS}}


def surge(size: float, noise: float) -> float:
    """Return the best rate of Adam over the best rate at the noise scale.

    >>> surge(4.0, 1.0), surge(1.0, 4.0), surge(2.0, 2.0)
    (0.8, 0.8, 1.0)
    """
    return 2 / (math.sqrt(size / noise) + math.sqrt(noise / size))


def _between(asked: Asked) -> Answers:
    """Interpolate the searched rates at 8 and 512 by a power of B."""
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
"""Measurements in their order: some rules need answers of earlier ones."""


# --- a network

_NEAR, _FAR = 2, 4
"""Strides in places of the grid, from the result of a similar cell, and from any other start."""

_MOMENTUM = -7
"""Places from the best rate of gradient descent to the start for momentum 0.9: about a tenth."""

_LOWEST, _HIGHEST = -50, 30
"""Places beyond which rates of rules are not run."""


def work(network: Network, effort: Effort, records: Records, images: str | None = None) -> Iterator[str]:
    """Run everything of a network that is not in the records yet, and add it; yield a line for each part.

    `images` is the path of an archive of images, which replaces the generated ones.
    """
    for seed in effort.seeds:
        for state in dict.fromkeys(state for state, _ in effort.kinds):
            ground = Ground(network, state, seed, images)
            probe = Probe(ground)
            for optimiser in [name for at, name in effort.kinds if at == state]:
                yield from _run_group(ground, optimiser, effort, records, probe)


def _run_group(
    ground: Ground, optimiser: str, effort: Effort, records: Records, probe: Probe
) -> Iterator[str]:
    """Run the three cells of an optimiser at a `Ground`, then the rules."""
    cells = {size: Cell(ground.network.name, ground.state, optimiser, ground.seed, size) for size in SIZES}
    for cell in cells.values():
        if cell not in records.cells:
            records.add_cell(cell, measured(ground, cell, effort, records))
        yield _describe(cell, records.cells[cell])
    asked = Asked(ground, optimiser, effort, cells, {s: records.cells[c] for s, c in cells.items()}, probe)
    for look in LOOKS:
        if optimiser in look.optimisers:
            ask(asked, look, records)
    for cell in cells.values():
        _run_answers(asked, cell, records)
        yield f"{_name(cell)}: rules"


def measured(ground: Ground, cell: Cell, effort: Effort, records: Records) -> Measured:
    """Return the results of the grid in a cell."""
    steps = effort.horizon(cell.batch_size)
    references = ground.references(cell.batch_size, steps)
    run = partial(ground.outcome, cell.optimiser, cell.batch_size, steps=steps, reference=min(references))
    first, stride = beginning(cell, records.cells)
    tried: dict[int, Outcome] = {}
    while len(tried) < effort.most and (at := following(tried, first=first, stride=stride)) is not None:
        tried[at] = run(at)
    return Measured(steps, *references, tried)


def beginning(cell: Cell, known: Mapping[Cell, Measured]) -> tuple[int, int]:
    """Return first place and stride of the search of a cell, from results of similar cells."""
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
    """Make a measurement and add the answers of its rules, unless all are in the records."""
    filed = {
        (name, size): records.answers[cell, name]
        for name in look.names
        for size, cell in asked.cells.items()
        if (cell, name) in records.answers
    }
    if set(filed) != look.expected:
        for name, answers in _ask_or_none(asked, look).items():
            for size, answer in answers.items():
                records.add_answer(asked.cells[size], name, answer)
                filed[name, size] = answer
    asked.earlier.update(filed)


def _ask_or_none(asked: Asked, look: Look) -> Answers:
    """Return the answers of a measurement; without rates if it raises, as single samples may for a network."""
    try:
        return look.ask(asked)
    except ValueError as error:
        print(f"{asked.ground.network.name}: no {' and no '.join(look.names)}: {error}", file=sys.stderr)
        return {name: {size: Answer(None, 0.0) for size in look.sizes} for name in look.names}


def _run_answers(asked: Asked, cell: Cell, records: Records) -> None:
    """Run at the nearest places of the grid to the rates of the rules."""
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


def _describe(cell: Cell, measured: Measured) -> str:
    last = edge(measured.tried)
    trains = "nothing trains" if last is None else f"trains up to {rate(last):.3g}"
    return f"{_name(cell)}: best {rate(best(measured.tried)):.3g}, {trains}, {len(measured.tried)} rates"
