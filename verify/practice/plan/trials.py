"""Trial runs: a search over learning rates at each batch size, which starts at the answer for the size before."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace

import numpy as np
import torch

from simulate.objectives.batches import rows, window
from simulate.objectives.restoring import preserve_state
from simulate.training.constant_outputs import constant_loss
from simulate.training.trial_training import CommonBatches, Training, TrialRun, tail
from verify.practice.loading import Problem
from verify.practice.loading.foreign import calling
from verify.practice.plan.halving import FACTOR, Halving
from verify.practice.plan.hold_out import HOLD_OUT, LEARNED
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
        B, and the number of steps for which the rate is chosen; fewer if the search was cut short.
    start
        Suggested rate; None if no run trained.
    within
        Interval in which the best rate is expected, as in eight of ten held-out cases of this optimizer, see
        `HOLD_OUT`; it ends below the rate that failed. None for other optimizers, and if the search was cut short.
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


class Trials:
    """Trial runs at several batch sizes.

    Parameters
    ----------
    problem, optimizer
        Model, data and loss, and the optimizer that trains it.
    steps
        Steps for which a rate is chosen, by batch size, ascending.
    score
        One of `SCORES`.
    seed
        Seed of the order of the samples, and of those that are held out.
    drop_last, training
        Whether the short batch at the end of an epoch is left out, and whether the model is in training mode.

    Attributes
    ----------
    kind
        Name of the optimizer in `hold_out.HOLD_OUT`; None if it was not tested with this score, mode and loss.
    first, constant
        Loss before training, and that of the best constant output; infinite if the loss takes none.
    found
        Results so far, of the largest batch size first; they remain if the search is interrupted.

    Raises
    ------
    ValueError
        If a batch size exceeds the samples to train on, the model cannot train, or the first loss is not finite.
    """

    def __init__(
        self,
        problem: Problem,
        optimizer: Chosen,
        steps: Mapping[int, int],
        *,
        score: str,
        seed: int,
        drop_last: bool,
        training: bool,
    ) -> None:
        self.problem, self.optimizer, self.steps = problem, optimizer, dict(steps)
        self.found, self._score = list[SizeTrial](), score
        data, known = (problem.inputs, problem.targets), dict(problem.module.named_parameters())
        order = torch.from_numpy(np.random.default_rng((seed, 1)).permutation(problem.samples))
        held_out = max(1, round(_HELD_OUT * len(order))) if score == "held-out" else 0
        self._scored = window(data, order[: min(held_out or len(order), _SCORED)])
        rest = order[held_out:]
        if max(steps) > len(rest):
            raise ValueError(
                f"batch sizes must be at most {len(rest)}, the samples that are not held out, got {max(steps)}"
            )
        inputs, targets = window(data, rest) if held_out else data
        self._training = Training(
            model=problem.module,
            loss=problem.loss,
            inputs=inputs,
            targets=targets,
            form=problem.objective.form,
            batches=CommonBatches(samples=len(rest), size=max(steps), seed=seed, drop_last=drop_last),
            optimiser=lambda rate: optimizer.make([known[name] for name in problem.objective.names], rate),
            training=training,
            clip=optimizer.clip,
            schedule=optimizer.schedule,
        )
        with calling("model and loss", "run on the samples whose loss is compared"):
            self.first = self._loss(start := TrialRun(self._training, optimizer.rate))
            started = time.monotonic()
            self._loss(start)  # once more, since a first call takes longer
        self._score_seconds = time.monotonic() - started
        if not math.isfinite(self.first):
            raise ValueError(f"loss must be finite before training, got {self.first}")
        self.constant = self._constant()
        tested = training and score == SCORES[0] and self.constant < math.inf
        self.kind = optimizer.kind if tested else None
        self._step_seconds = {size: self._timed(size) for size in steps}

    def cost(self, *sizes: int) -> float:
        """Return a guess of the seconds that the trials at these batch sizes take, or at all."""
        each = (_COST * self.steps[size] * self._step_seconds[size] for size in sizes or self.steps)
        return sum(seconds + _CALLS * self._score_seconds for seconds in each)

    def expected_steps(self) -> int:
        """Return a guess of the number of steps that all trials take."""
        return round(_COST * sum(self.steps.values()))

    def shorten(self, seconds: float) -> None:
        """Take fewer steps if the trials would take longer than so many seconds.

        Raises
        ------
        ValueError
            If too few steps would be left.
        """
        scores, least = len(self.steps) * _CALLS * self._score_seconds, min(self.steps.values())
        steps_cost = self.cost() - scores
        share = (_SPARE * seconds - scores) / steps_cost
        share = min(1.0, self.problem.objective.ranks.of_one("the time of trials", 0, share))
        if share * least < _FEWEST:
            need = math.ceil((scores + _FEWEST / least * steps_cost) / _SPARE)
            raise ValueError(f"seconds must be at least {need} for these batch sizes, got {seconds:g}")
        self.steps = {size: int(share * steps) for size, steps in self.steps.items()}

    def run(self, watch: Watch = lambda _: None, *, deadline: float = math.inf) -> bool:
        """Search at each batch size; return whether there was time for all. The model is left as found.

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
        rate, near, complete, sizes = self.optimizer.rate, False, True, sorted(self.steps)
        while sizes:
            now, left = time.monotonic(), self.cost(*sizes)
            size = sizes.pop()
            runs = _Runs(self, size, rate, now + (deadline - now) * self.cost(size) / left)
            runs.watch = lambda cost, left=left: watch(1 - (left - cost) / self.cost())
            search = Halving(
                runs.losses, first=self.first, constant=self.constant, horizon=self.steps[size], near=near
            )
            whole = False
            try:
                search.go()
                whole = True
            except TimeUpError:
                complete = False
            finally:
                if search.seen:
                    self.found.append(self._result(size, rate, search, runs.steps, whole=whole))
            if (start := search.found().start) is not None:
                rate, near = rate * FACTOR**start, True
        return complete

    def _at(self, size: int) -> Training:
        return replace(self._training, batches=replace(self._training.batches, size=size))

    def _loss(self, run: TrialRun) -> float:
        """Loss by which rates are compared; infinite if the run diverged."""
        if self._score == "online" and run.steps:
            size = run.training.batches.size
            return run.final(last=max(tail(run.steps), min(-(-_ONLINE // size), -(-run.steps // 2))))
        training, most = self._score == "training" and self._training.training, self.problem.batch_size
        return run.loss_on(*self._scored, training=training, most=most or rows(self._scored[1]))

    def _constant(self) -> float:
        model, (inputs, targets) = self.problem.module, self._scored
        with torch.no_grad(), preserve_state(model, False), suppress(Exception):
            one, two = (
                self.problem.objective.form.outputs(model, model, window(inputs, slice(count)))
                for count in (1, 2)
            )
            if one.shape[1:] == two.shape[1:]:
                return constant_loss(self.problem.loss, two, targets)
        return math.inf  # a loss that compares samples takes no constant output

    def _timed(self, size: int) -> float:
        """Seconds of a step."""
        with _training_on(size):
            run = TrialRun(self._at(size), _STILL * self.optimizer.rate).until(1)
            started = time.monotonic()
            run.until(1 + _TIMED)
        return (time.monotonic() - started) / _TIMED

    def _result(self, size: int, rate: float, search: Halving, steps: int, *, whole: bool) -> SizeTrial:
        start, trains, fails = (k if k is None else rate * FACTOR**k for k in search.found())
        seen = HOLD_OUT.get((self.kind, self.first < LEARNED * self.constant))
        rest, within = self._at(size).batches.rest, None
        if start and seen and whole:  # the held-out networks had whole searches
            within = start * seen.best[0], min(start * seen.best[1], fails or math.inf)
        runs = [
            RateTrial(
                rate=rate * FACTOR**k,
                steps=max(losses),
                loss=None if math.isinf(search.loss(k)) else search.loss(k),
                trains=search.trained(k),
            )
            for k, losses in sorted(search.seen.items())
        ]
        return SizeTrial(
            batch_size=size,
            ahead=max(run.steps for run in runs),
            start=start,
            within=within,
            trains=trains,
            fails=fails,
            runs=tuple(runs),
            steps=steps,
            short=rest if rest < _SHORT * size else 0,
        )


class _Runs:
    """Runs at one batch size, dealt out to the processes of a group by the place of their rates."""

    def __init__(self, trials: Trials, size: int, rate: float, end: float) -> None:
        self._trials, self._training, self._rate, self._end = trials, trials._at(size), rate, end
        self._runs = dict[int, TrialRun]()
        self.steps = 0
        self.watch: Watch = lambda _: None

    def losses(self, places: Collection[int], steps: int) -> Iterator[tuple[int, float]]:
        """Yield each place with its loss after so many steps.

        Raises
        ------
        TimeUpError
            If there is no time for the next run.
        """
        ranks, size = self._trials.problem.objective.ranks, self._training.batches.size
        seconds = self._trials._step_seconds[size]
        for some in [[place] for place in places] if ranks.size == 1 else [places]:
            expected = -(-len(some) // ranks.size) * steps * seconds
            if ranks.of_one("the time that is left", 0, time.monotonic() + expected > self._end):
                raise TimeUpError
            with _training_on(size):
                own = [(p, *self._trained(p, steps)) for p in some if p % ranks.size == ranks.rank]
            for place, loss, taken in itertools.chain(*ranks.gathered("losses of trial runs", own)):
                self.steps += taken
                self.watch(min(seconds * self.steps, self._trials.cost(size)))
                yield place, loss

    def _trained(self, place: int, steps: int) -> tuple[float, int]:
        """Return the loss of a run after so many steps, and how many of them it took now."""
        if place not in self._runs:
            self._runs[place] = TrialRun(self._training, self._rate * FACTOR**place)
        run = self._runs[place]
        before = run.steps
        return self._trials._loss(run.until(steps)), run.steps - before


def _training_on(size: int) -> AbstractContextManager[None]:
    return calling("model and loss", f"train on batches of {size} samples")
