"""Trial runs: a search over learning rates at each batch size, which starts at the answer for the size before."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch

from simulate.objectives.batches import cuts, rows, window
from simulate.objectives.restoring import in_mode, preserve_state, seed_generators
from simulate.training.constant_outputs import constant_loss
from simulate.training.trial_training import CommonBatches, Training, TrialRun, tail
from verify.practice.loading import Problem
from verify.practice.loading.foreign import calling
from verify.practice.plan.halving import FACTOR, Halving
from verify.practice.plan.hold_out import LEARNED, hold_out
from verify.practice.plan.optimizers import Chosen

SCORES = ("training", "held-out", "online")
"""Losses that rates may be chosen by."""

STEPS = 200
"""Steps for which a rate is chosen if the user names none, at least."""

_SEEN, _EPOCHS = 5120, 5
"""Samples that these steps see at least, or so many epochs if these are fewer: 200 steps of small batches see so
little that noise decides between rates."""

_SCORED = 1000
"""Most samples of which the training or held-out loss is computed."""

_HELD_OUT = 0.2
"""Share of the samples that is held out."""

_ONLINE = 64
"""Fewest samples that an online loss averages: a tenth of few steps with small batches would be noise."""

_KEPT = 3
"""Runs whose parameters are kept, to be continued: more would take memory, and a run can be repeated."""

_COST, _CALLS = 2.7, 10
"""Guesses for one batch size: steps of all runs over those for which a rate is chosen, and computations of the loss."""

_SPARE = 0.8
"""Share of the seconds that trials are laid out for; what they guess wrong must fit into the rest."""

_FEWEST = 10
"""Steps below which trials tell nothing."""

_TIMED = 2
"""Steps that are timed, after a first one."""

_STILL = 1e-6
"""Share of the first rate at which steps are timed, so that no run diverges."""

_SHORT = 0.25
"""Share of the batch size below which a last batch gets a warning: its gradient noise is at least doubled."""

Watch = Callable[[float], None]


@dataclass(frozen=True, kw_only=True)
class RateTrial:
    """Trial run.

    Attributes
    ----------
    rate, steps
        Learning rate and number of steps.
    loss
        Loss by which rates are chosen, after these steps; None if the run diverged.
    trains
        Whether the loss ended 1 % below that before training, and below that of the best constant output.
    """

    rate: float
    steps: int
    loss: float | None
    trains: bool


@dataclass(frozen=True, kw_only=True)
class SizeTrial:
    """Result of the trial runs at one batch size.

    Attributes
    ----------
    batch_size, ahead
        B, and the number of steps for which the rate is chosen.
    start
        Suggested rate; None if no run trained.
    within
        Interval in which the best rate is expected, as in eight of ten held-out cases of this optimizer, see
        `hold_out`; it ends below the rate that failed. None for other optimizers.
    trains, fails
        Largest trial rate up to which all trained, and the next one, which failed; None if none failed.
    runs
        All trial runs by their rates.
    steps
        Number of training steps that all runs took.
    short
        Size of a much shorter batch at the end of each epoch; 0 if there is none.
    """

    batch_size: int
    ahead: int
    start: float | None
    within: tuple[float, float] | None
    trains: float | None
    fails: float | None
    runs: tuple[RateTrial, ...]
    steps: int
    short: int

    def run(self, rate: float | None) -> RateTrial:
        """Return the run at a rate; at None, the one with the smallest loss."""
        if rate is None:
            return min(self.runs, key=lambda run: (run.loss is None, run.loss or 0.0))
        return next(run for run in self.runs if run.rate == rate)


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
    """Steps for which a rate is chosen by default: 200, or five epochs of at most 5120 samples if that is more.

    Examples
    --------
    >>> looked_ahead(64, 50_000), looked_ahead(8, 50_000), looked_ahead(8, 600), looked_ahead(8, 100)
    (200, 640, 375, 200)
    """
    return max(STEPS, -(-min(_SEEN, _EPOCHS * samples) // size))


class TimeUpError(Exception):
    """Raised where the next trial runs would not fit into the time that is left."""


@dataclass
class Trials:
    """Trial runs at several batch sizes.

    Attributes
    ----------
    problem, optimizer
        Model, data and loss, and the optimizer that trains it.
    sizes
        Batch sizes, ascending.
    steps
        Steps for which a rate is chosen, by batch size.
    score
        One of `SCORES`.
    seed
        Seed of the order of the samples, and of those that are held out.
    drop_last, training
        Whether the short batch at the end of an epoch is left out, and whether the model is in training mode.
    found
        Results so far, of the largest batch size first; they remain if the search is interrupted.
    """

    problem: Problem
    optimizer: Chosen
    sizes: Sequence[int]
    steps: Mapping[int, int]
    score: str = "training"
    seed: int = 0
    drop_last: bool = False
    training: bool = True
    found: list[SizeTrial] = field(default_factory=list)

    def __post_init__(self) -> None:
        order = np.random.default_rng((self.seed, 1)).permutation(self.problem.samples)
        cut = max(1, round(_HELD_OUT * len(order))) if self.score == "held-out" else 0
        if max(self.sizes) > len(order) - cut:
            raise ValueError(
                f"batch sizes must be at most {len(order) - cut}, the samples that are not held out,"
                f" got {max(self.sizes)}"
            )
        scored = torch.from_numpy(np.sort(order[: min(cut or len(order), _SCORED)]))
        self._trained = torch.from_numpy(np.sort(order[cut:]))
        self._scored = tuple(window(part, scored) for part in (self.problem.inputs, self.problem.targets))
        self._seconds = dict[int, float]()
        training = self._training(self.sizes[0])
        with calling("model and loss", "run on the samples whose loss is compared"):
            started = time.monotonic()
            self.first = self._loss(TrialRun(training, self.optimizer.rate))
            self._score_seconds = time.monotonic() - started
        if not math.isfinite(self.first):
            raise ValueError(f"loss must be finite before training, got {self.first}")
        self.constant = self._constant()

    def cost(self) -> float:
        """Return a guess of the seconds that all trials take, from some steps at each size."""
        return sum(map(self._cost, self.sizes))

    def expected_steps(self) -> int:
        """Return a guess of the number of steps that all trials take."""
        return round(_COST * sum(self.steps.values()))

    def within(self, seconds: float) -> Trials:
        """Return the trials with fewer steps if they would take longer than so many seconds."""
        scores = len(self.sizes) * _CALLS * self._score_seconds
        share = (_SPARE * seconds - scores) / (self.cost() - scores)
        share = self.problem.objective.ranks.of_one("the time of trials", 0, share)
        if share >= 1:
            return self
        steps = {size: int(share * steps) for size, steps in self.steps.items()}
        if min(steps.values()) < _FEWEST:
            shares = (_FEWEST / min(self.steps.values())) * (self.cost() - scores)
            raise ValueError(
                f"seconds must be at least {math.ceil((shares + scores) / _SPARE)} for these batch sizes,"
                f" got {seconds:g}"
            )
        return replace(self, steps=steps)

    def run(self, watch: Watch = lambda _: None, *, deadline: float = math.inf) -> bool:
        """Search at each batch size, into `found`; return whether there was time for all. The model is left as found.

        Parameters
        ----------
        watch
            Called with the share that is done.
        deadline
            Reading of `time.monotonic` at which all must be done.

        Raises
        ------
        ValueError
            If the model cannot be trained on batches of a size.
        """
        rate, near, complete, done, whole = self.optimizer.rate, False, True, 0.0, self.cost()
        for size in reversed(self.sizes):
            now, share = time.monotonic(), self._cost(size) / whole
            runs = _Runs(self, size, rate, now + (deadline - now) * share / (1 - done))
            runs.watch = partial(_within, watch, done, share)
            search = Halving(
                runs.losses, first=self.first, constant=self.constant, horizon=self.steps[size], near=near
            )
            try:
                search.go()
            except TimeUpError:
                complete = False
            finally:
                if search.seen:
                    self.found.append(self._result(size, rate, search, runs.steps))
            if (start := search.found().start) is not None:
                rate, near = rate * FACTOR**start, True
            done = min(done + share, 1 - 1e-9)
        return complete

    # --- one batch size ---

    def _training(self, size: int) -> Training:
        model, problem = self.problem.module, self.problem
        known = dict(model.named_parameters())
        parameters = [known[name] for name in problem.objective.names]
        chosen = self._trained
        everything = len(chosen) == problem.samples
        inputs, targets = (
            part if everything else window(part, chosen) for part in (problem.inputs, problem.targets)
        )
        return Training(
            model=model,
            loss=problem.loss,
            inputs=inputs,
            targets=targets,
            form=problem.objective.form,
            batches=CommonBatches(samples=len(chosen), size=size, seed=self.seed, drop_last=self.drop_last),
            optimiser=lambda rate: self.optimizer.make(parameters, rate),
            training=self.training,
            clip=self.optimizer.clip,
            schedule=self.optimizer.schedule,
        )

    def _loss(self, run: TrialRun) -> float:
        """Loss by which rates are compared; infinite if the run diverged."""
        if run.lost:
            return math.inf
        if self.score == "online" and run.steps:
            size = run.training.batches.size
            return run.final(last=max(tail(run.steps), min(-(-_ONLINE // size), -(-run.steps // 2))))
        inputs, targets = self._scored
        problem, count = self.problem, rows(targets)
        with (
            run.trained() as model,
            torch.no_grad(),
            in_mode(model, self.training and self.score != "held-out"),
        ):
            seed_generators(self.seed)
            total = 0.0
            for part in cuts(count, min(problem.batch_size or count, count)):
                outputs = problem.objective.form.outputs(model, model, window(inputs, part))
                total += (part.stop - part.start) * float(problem.loss(outputs, window(targets, part)))
        return total / count if math.isfinite(total) else math.inf

    def _constant(self) -> float:
        """Loss of the best constant output; infinite if the loss takes none, as where it compares samples."""
        problem, (inputs, targets) = self.problem, self._scored
        with torch.no_grad(), preserve_state(problem.module, False), suppress(Exception):
            one, two = (
                problem.objective.form.outputs(
                    problem.module, problem.module, window(inputs, slice(0, count))
                )
                for count in (1, 2)
            )
            return constant_loss(problem.loss, two, targets) if one.shape[1:] == two.shape[1:] else math.inf
        return math.inf

    def _result(self, size: int, rate: float, search: Halving, steps: int) -> SizeTrial:
        places = search.found()
        start, trains, fails = (
            None if place is None else rate * FACTOR**place
            for place in (places.start, places.trains, places.fails)
        )
        seen = hold_out(self.optimizer.kind, self.first < LEARNED * self.constant)
        return SizeTrial(
            batch_size=size,
            ahead=self.steps[size],
            start=start,
            within=None
            if start is None or seen is None
            else (start * seen.best[0], min(start * seen.best[1], fails or math.inf)),
            trains=trains,
            fails=fails,
            runs=tuple(
                RateTrial(
                    rate=rate * FACTOR**place,
                    steps=max(search.seen[place]),
                    loss=search.loss(place) if math.isfinite(search.loss(place)) else None,
                    trains=search.trained(place),
                )
                for place in sorted(search.seen)
            ),
            steps=steps,
            short=short_batch(len(self._trained), size, drop_last=self.drop_last),
        )

    # --- cost ---

    def _cost(self, size: int) -> float:
        return _COST * self.steps[size] * self._step_seconds(size) + _CALLS * self._score_seconds

    def _step_seconds(self, size: int) -> float:
        if size not in self._seconds:
            with _training_on(size):
                run = TrialRun(self._training(size), _STILL * self.optimizer.rate).until(1)
                started = time.monotonic()
                run.until(1 + _TIMED)
            self._seconds[size] = (time.monotonic() - started) / _TIMED
        return self._seconds[size]


class _Runs:
    """Runs at one batch size, dealt out to the processes of a group by the place of their rates."""

    def __init__(self, trials: Trials, size: int, rate: float, end: float) -> None:
        self._trials, self._size, self._rate, self._end = trials, size, rate, end
        self._training, self._ranks = trials._training(size), trials.problem.objective.ranks
        self._kept = dict[int, tuple[float, TrialRun]]()
        self.steps = 0
        self.watch: Watch = lambda _: None

    def losses(self, places: Collection[int], steps: int) -> Iterator[tuple[int, float]]:
        """Yield each place with its loss after so many steps.

        Raises
        ------
        TimeUpError
            If there is no time for the next run.
        """
        ranks = self._ranks
        for some in [[place] for place in places] if ranks.size == 1 else [places]:
            expected = -(-len(some) // ranks.size) * steps * self._trials._step_seconds(self._size)
            if ranks.of_one("the time that is left", 0, time.monotonic() + expected > self._end):
                raise TimeUpError
            own = [(p, *self._trained(p, steps)) for p in some if p % ranks.size == ranks.rank]
            for place, loss, taken in itertools.chain(*ranks.gathered("losses of trial runs", own)):
                self.steps += taken
                yield place, loss

    def _trained(self, place: int, steps: int) -> tuple[float, int]:
        """Return the loss of a run after so many steps, and how many of them it took now."""
        with _training_on(self._size):
            run = self._kept.pop(place, (0.0, None))[1] or TrialRun(
                self._training, self._rate * FACTOR**place
            )
            before = run.steps
            loss = self._trials._loss(run.until(steps))
        self._kept[place] = loss, run
        for worst in sorted(self._kept, key=lambda p: self._kept[p][0])[_KEPT:]:
            del self._kept[worst]
        self.watch((self.steps + run.steps - before) / (_COST * self._trials.steps[self._size]))
        return loss, run.steps - before


def _within(watch: Watch, done: float, share: float, part: float) -> None:
    watch(done + share * min(1.0, part))


def _training_on(size: int) -> AbstractContextManager[None]:
    return calling("model and loss", f"train on batches of {size} samples")
