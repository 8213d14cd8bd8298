"""Trial training at each batch size: the walk of `walk`, from the middle size outwards."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch import Tensor, nn

from simulate.objectives.batches import cuts, window
from simulate.training.trial_training import CommonBatches, Training, TrialRun, tail
from verify.practice.loading import Problem
from verify.practice.loading.foreign import calling
from verify.practice.plan.optimizers import Chosen
from verify.practice.plan.uncertainty import HoldOut, hold_out
from verify.practice.plan.walk import Ladder, Walked, walked

STEPS = 200
"""Default for the steps that trials look ahead, at least."""

_SEEN, _EPOCHS = 5120, 5
"""Samples that are looked ahead where nobody says, or so many epochs if these are fewer: 200 steps of small batches see
so little that noise decides between rates."""

_FIRST, _LATER = 3.0, 2.6
"""Guesses: steps at the first batch size and at each other one, over those that are looked ahead."""

_LEAST, _MOST = 1.4, 14.0
"""Steps of all sizes over those looked ahead: 1.45 for one network; up to 14 in nine of ten with random labels."""

_USUAL = 0.7
"""Share of a walk that is said to be done after the steps that were guessed: many take more, and it must not stand."""

_FEWEST = 10
"""Steps ahead below which trials tell nothing."""

_TIMED = 2
"""Steps that are timed, after a first one."""

_STILL = 1e-6
"""Share of the first rate at which untrained losses are taken, so that no run diverges."""

_SAMPLES = 64
"""Fewest samples that the loss of a trial averages: a tenth of few steps with small batches would be noise."""

_SHORT = 0.25
"""Share of the batch size below which a last batch gets a warning: its gradient noise is at least doubled."""

Watch = Callable[[float], None]

_Chain = Sequence[tuple[int, int | None]]
"""Batch sizes one after the other, each with the one from whose answer it begins."""


@dataclass(frozen=True, kw_only=True)
class SizeTrial:
    """Result of the trial runs at one batch size.

    Attributes
    ----------
    batch_size, ahead
        B, and the number of steps that the trials look ahead.
    start
        Suggested rate; None if no trial beat a constant output.
    within
        Interval in which the best rate is expected, as it was in eight of ten runs of `uncertainty.HOLD_OUT`; it ends
        below the trial that failed.
    trains, fails
        The largest rate that should train is at least `trains` and below `fails`; None if no trial failed.
    walked
        All trial runs.
    short
        Size of a much shorter batch at the end of each epoch; 0 if there is none.
    """

    batch_size: int
    ahead: int
    start: float | None
    within: tuple[float, float] | None
    trains: float | None
    fails: float | None
    walked: Walked
    short: int


def short_batch(samples: int, size: int, *, drop_last: bool = False) -> int:
    """Samples of the last batch of an epoch, where they are fewer than a quarter of the others; else 0.

    Examples
    --------
    >>> short_batch(1797, 256), short_batch(1797, 256, drop_last=True), short_batch(1797, 1000)
    (5, 0, 0)
    """
    rest = samples % size
    return rest if not drop_last and rest < _SHORT * size else 0


def looked_ahead(size: int, samples: int) -> int:
    """Steps that trials look ahead where nobody says: 200, or five epochs, of 5120 samples at most, if that is more.

    Examples
    --------
    >>> looked_ahead(64, 50_000), looked_ahead(8, 50_000), looked_ahead(8, 600), looked_ahead(8, 100)
    (200, 640, 375, 200)
    """
    return max(STEPS, -(-min(_SEEN, _EPOCHS * samples) // size))


@dataclass
class Trials:
    """Training at several batch sizes, ready to be timed and run.

    Attributes
    ----------
    problem, optimiser
        Who trains what.
    sizes
        Batch sizes, ascending.
    constant, level
        Loss of the best constant output, and that output, shaped as that of one sample.
    steps
        That are looked ahead, by batch size.
    seed
        Of the order of the samples.
    drop_last
        Whether the short batch at the end of an epoch is left out.
    training
        Whether the model is in training mode.
    learned
        Whether something has been learned already.
    """

    problem: Problem
    optimiser: Chosen
    sizes: Sequence[int]
    constant: float
    level: Tensor
    steps: Mapping[int, int]
    seed: int = 0
    drop_last: bool = False
    training: bool = True
    learned: bool = False
    _seconds: dict[int, float] = field(default_factory=dict)

    def cost(self) -> float:
        """A guess of the seconds until all steps are done, by some steps at each size."""
        return self._elapsed(lambda size: self._expected(size) * self._step_seconds(size))

    def within(self, seconds: float) -> Trials:
        """Return the trials with fewer steps ahead if they would take longer than so many seconds."""
        share = self.problem.objective.ranks.of_one("the time of trials", 0, seconds / self.cost())
        if share >= 1:
            return self
        ahead = {size: int(share * steps) for size, steps in self.steps.items()}
        if min(ahead.values()) < _FEWEST:
            need = seconds / share * _FEWEST / min(self.steps.values())
            raise ValueError(
                f"seconds must be at least {math.ceil(need)} for these batch sizes, got {seconds:g}"
            )
        return replace(self, steps=ahead)

    def span(self) -> tuple[tuple[int, int], tuple[float, float]]:
        """Least and most of steps, and of seconds: the number of trial runs is not known before."""
        steps = sum(self.steps[size] for size in self.sizes)
        seconds = self._elapsed(lambda size: self.steps[size] * self._step_seconds(size))
        return (round(_LEAST * steps), round(_MOST * steps)), (_LEAST * seconds, _MOST * seconds)

    def run(self, watch: Watch = lambda _: None) -> tuple[SizeTrial, ...]:
        """Walk at each batch size, ascending; the model is left as found.

        In a group the first process walks at the middle size, the larger and the smaller ones go to two of them.

        Raises
        ------
        ValueError
            If the model cannot be trained on batches of a size.
        """
        ranks, found = self.problem.objective.ranks, dict[int, SizeTrial]()
        progress = _Progress(watch, self.cost())
        with ranks.together("trial training"):
            for stage in ranks.of_one("the order of trials", 0, self._stages()):
                own = dict[int, SizeTrial]()
                for size, near in itertools.chain(*stage[ranks.rank :: ranks.size]):
                    known = _best_rate((found | own)[near]) if near else None
                    with progress.part(self._expected(size), self._step_seconds(size)) as seen:
                        own[size] = self._tried(size, known, seen)
                for walks in ranks.gathered("trials", own):
                    found |= walks
        return tuple(found[size] for size in self.sizes)

    def _stages(self) -> list[list[_Chain]]:
        """Return the stages of chains that may run in parallel, the longest chain first."""
        middle, *rest = self._chains()
        if self.problem.objective.ranks.size > 1:  # the first process ends last, and tells how far it is
            rest.sort(key=self._cost_of, reverse=True)
        return [[middle], rest]

    def _chains(self) -> list[_Chain]:
        """Batch sizes, the middle one first, each with the one from whose answer it begins."""
        sizes, middle = self.sizes, len(self.sizes) // 2
        above = [(sizes[place], sizes[place - 1]) for place in range(middle + 1, len(sizes))]
        below = [(sizes[place], sizes[place + 1]) for place in range(middle - 1, -1, -1)]
        return [[(sizes[middle], None)], above, below]

    def _cost_of(self, chain: _Chain) -> float:
        return sum(self._expected(size) * self._step_seconds(size) for size, _ in chain)

    def _elapsed(self, seconds: Callable[[int], float]) -> float:
        """Return the time of all sizes, with chains in parallel."""
        middle, *rest = (sum(seconds(size) for size, _ in chain) for chain in self._chains())
        return middle + (max(rest) if self.problem.objective.ranks.size > 1 else sum(rest))

    def _tried(self, size: int, known: float | None, watch: Callable[[int], None]) -> SizeTrial:
        """Run the trials of one batch size from the best rate of its neighbour, if there is one."""
        training = self._training(size)
        with calling("model and loss", f"train on batches of {size} samples"):
            found = walked(
                lambda at: _Scored(training, at),
                lambda steps: training.untrained(steps - _last(steps, size), steps),
                rate=known or self.optimiser.rate,
                constant=self.constant,
                ladder=Ladder(self.steps[size]),
                stride=1 if known else 2,
                constant_at=lambda steps: self._of_constant(training, steps - _last(steps, size), steps),
                watch=watch,
            )
        short = short_batch(self.problem.samples, size, drop_last=self.drop_last)
        seen, _ = hold_out(self.optimiser.kind, self.learned)
        return _advised(size, self.steps[size], found, short, seen)

    def _training(self, size: int) -> Training:
        model = self.problem.module
        parameters = _parameters_named(model, self.problem.objective.names)
        return Training(
            model=model,
            loss=self.problem.loss,
            inputs=self.problem.inputs,
            targets=self.problem.targets,
            form=self.problem.objective.form,
            batches=CommonBatches(
                samples=self.problem.samples, size=size, seed=self.seed, drop_last=self.drop_last
            ),
            optimiser=lambda rate: self.optimiser.make(parameters, rate),
            training=self.training,
        )

    def _of_constant(self, training: Training, start: int, stop: int) -> float:
        """Mean loss of the constant output over the batches of these steps."""
        targets, level = self.problem.targets, self.level.to(self.problem.objective.device)
        if isinstance(targets, Tensor) and targets.is_floating_point():
            level = level.to(targets.dtype)
        losses = [
            float(self.problem.loss(level.expand(len(chosen), *level.shape), window(targets, chosen)))
            for _, chosen in training.drawn(start, stop)
        ]
        return sum(losses) / len(losses)

    def _expected(self, size: int) -> float:
        return (_FIRST if size == self.sizes[len(self.sizes) // 2] else _LATER) * self.steps[size]

    def _step_seconds(self, size: int) -> float:
        if size not in self._seconds:
            with calling("model and loss", f"train on batches of {size} samples"):
                run = TrialRun(self._training(size), _STILL * self.optimiser.rate).until(1)
                started = time.monotonic()
                run.until(1 + _TIMED)
            self._seconds[size] = (time.monotonic() - started) / _TIMED
        return self._seconds[size]


class _Scored(TrialRun):
    """A run whose last loss is a mean over enough samples."""

    def final(self, *, last: int | None = None) -> float:
        return super().final(last=last or _last(self.steps, self.training.batches.size))

    def largest_change(self) -> float:
        """Largest difference, over tenths of the steps, of the mean loss and the untrained network's."""
        return max(
            abs(float(np.mean(self.losses[part])) - self.training.untrained(part.start, part.stop))
            for part in cuts(self.steps, tail(self.steps))
        )


def _last(steps: int, size: int) -> int:
    """Return the number of last steps whose loss is averaged: a tenth, more if batches are small, at most half."""
    return max(tail(steps), min(-(-_SAMPLES // size), steps // 2))


class _Progress:
    """Steps beyond those that were expected count less and less: what comes next must not fall behind them."""

    def __init__(self, watch: Watch, total: float) -> None:
        self._watch, self._total, self._behind = watch, total, 0.0

    @contextmanager
    def part(self, expected: float, seconds: float) -> Iterator[Callable[[int], None]]:
        """A walk of so many steps, of so many seconds each; what it gives is to be called with those taken."""
        each = seconds / self._total if self._total else 0.0

        def seen(steps: int) -> None:
            self._watch(self._behind + _through(steps / expected) * expected * each)

        yield seen
        self._behind += expected * each
        self._watch(self._behind)


def _through(ratio: float) -> float:
    """Share of a walk that is done, from its steps over those that were guessed: it always grows, and ends below 1.

    >>> [round(_through(ratio), 3) for ratio in (0.0, 0.5, 1.0, 2.0, 4.0)]
    [0.0, 0.35, 0.7, 0.85, 0.925]
    """
    return _USUAL * ratio if ratio <= 1 else 1 - (1 - _USUAL) / ratio


def _best_rate(found: SizeTrial) -> float | None:
    """Return the rate from which the next batch size starts, if any trial beat a constant output."""
    return found.walked.best.rate if found.start else None


def _parameters_named(model: nn.Module, names: Sequence[str]) -> list[nn.Parameter]:
    known: dict[str, Any] = dict(model.named_parameters())
    return [known[name] for name in names]


def _advised(size: int, ahead: int, found: Walked, short: int, seen: HoldOut) -> SizeTrial:
    start = None if found.start is None else found.start.rate
    fails = None if found.failed is None else found.failed.rate
    return SizeTrial(
        batch_size=size,
        ahead=ahead,
        start=start,
        within=None
        if start is None
        else (start * seen.best[0], min(start * seen.best[1], fails or math.inf)),
        trains=None if found.largest is None else found.largest.rate,
        fails=fails,
        walked=found,
        short=short,
    )
