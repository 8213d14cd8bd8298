"""Search over learning rates in factors of 2 by short trial runs: which rate to start with, up to which it trains.

A trial run (a *rung*) takes some steps at one rate, all of them on the same batches. The walk goes from a first rate up
or down as long as the loss gets better, and continues the best two runs. Where the best of them still lies near the
loss of a constant output, they go on, since a plateau rewards rates that diverge later. Of two neighbours that hardly
differ it takes the higher, since short runs favour low rates (Wu et al. 2018, arXiv 1803.02021). Then it climbs until a
run fails, and takes one step back if that is the very next one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

FACTOR = 2.0
"""Ratio of neighbouring trial rates."""

_LEADERS = 2
"""Number of trial runs that are continued."""

_TRIAL, _LONGER, _PATIENCE = 0.5, 0.6, 2.0
"""Steps of a trial run, of a continued one, and of the longest on a plateau, over those that a user looks ahead."""

_NEAR = 0.05
"""Share of the best gain that a larger rate may lose and still replace the best."""

_PLATEAU = 0.9
"""A loss that is not below this share of a constant's is on a plateau."""

_BEATS = 0.99
"""A loss that is not below this share of a constant's, or of the first, is not told apart from it."""

_MOVED = 0.99
"""A trial run that leaves the loss above this share of the first has hardly moved: below it nothing is looked for."""

_STILL = 1e-3
"""A trial run whose loss is within this share of the first throughout has not moved: lower ones would not either."""

_MOST = 14
"""Most trial runs in one direction: a factor of 16,000."""


class Continued(Protocol):
    """Training at one rate that can be taken further, such as `simulate.training.trial_training.TrialRun`."""

    lost: bool

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        ...

    def until(self, steps: int) -> Any:
        """Train on until so many were taken, or the run is lost."""
        ...

    def final(self) -> float:
        """Mean loss of the last steps; infinite if it is lost."""
        ...

    def largest_change(self) -> float:
        """Largest difference, over the parts of the run, of its mean loss and the untrained network's."""
        ...


@dataclass(frozen=True)
class Ladder:
    """Lengths of trial runs, from the number of steps that a user looks ahead.

    Examples
    --------
    >>> ladder = Ladder(200)
    >>> ladder.rung, ladder.longer, ladder.longest
    (100, 120, 400)
    """

    horizon: int

    @property
    def rung(self) -> int:
        """Steps of a trial run."""
        return max(1, round(_TRIAL * self.horizon))

    @property
    def longer(self) -> int:
        """Steps of the best two."""
        return max(1, round(_LONGER * self.horizon))

    @property
    def longest(self) -> int:
        """Steps on a plateau, at most."""
        return max(1, round(_PATIENCE * self.horizon))


@dataclass(frozen=True, kw_only=True)
class Rung:
    """Trial run at one rate.

    Attributes
    ----------
    rate, steps
        Learning rate, and the steps taken, until divergence if the run diverged.
    loss
        Mean over the last tenth of the steps, or 64 samples if these are more; None if the run diverged.
    trains
        Whether `loss` is 1 % below the loss of the untrained network on the same batches and below the best
        constant's.
    """

    rate: float
    steps: int
    loss: float | None
    trains: bool

    def fate(self) -> str:
        """Return how the run ended, in words."""
        if self.loss is None:
            return f"diverged at step {self.steps}"
        return f"loss {self.loss:.3g} after {self.steps} steps"


@dataclass(frozen=True, kw_only=True)
class Walked:
    """Where a walk has led.

    Attributes
    ----------
    start
        The trial run to start with; None where no run beats a constant output.
    best
        The trial run with the lowest loss: `start` itself, or the one above it.
    largest
        The highest up to which all runs from `best` on trained.
    failed
        The next one above it; None if there was no end.
    rungs
        All, by their rate.
    """

    start: Rung | None
    best: Rung
    largest: Rung | None
    failed: Rung | None
    rungs: tuple[Rung, ...]

    @property
    def steps(self) -> int:
        """Steps of all trial runs."""
        return sum(rung.steps for rung in self.rungs)


def walked(
    begin: Callable[[float], Continued],
    untrained: Callable[[int], float],
    *,
    rate: float,
    constant: float,
    ladder: Ladder,
    stride: int = 1,
    constant_at: Callable[[int], float] | None = None,
    watch: Callable[[int], None] = lambda _: None,
) -> Walked:
    """Walk from a first rate.

    Parameters
    ----------
    begin
        A new run at a rate.
    untrained
        Loss of the untrained network on the last batches of a run of so many steps.
    rate
        Where the walk begins, positive.
    constant
        Loss of the best constant output.
    ladder
        Lengths of the trial runs.
    stride
        Factors of 2 at once at first: 1 where the first rate is expected to be near, 2 where nobody knows.
    constant_at
        Loss of that output on the last batches of a run of so many steps, whose targets are not those of all data;
        `constant` if None.
    watch
        Called with the steps that were taken so far.

    Examples
    --------
    A loss that is lowest at 0.4, lost from 2 on:

    >>> class Run:
    ...     def __init__(self, rate):
    ...         self.rate, self.lost, self.steps = rate, rate > 2, 0
    ...     def until(self, steps):
    ...         self.steps = steps
    ...     def final(self):
    ...         return math.inf if self.lost else abs(math.log(self.rate / 0.4)) / 10
    ...     def largest_change(self):
    ...         return abs(self.final() - 1.0)
    >>> found = walked(Run, lambda _: 1.0, rate=0.1, constant=1.0, ladder=Ladder(200))
    >>> found.start.rate, found.largest.rate, found.failed.rate, found.steps
    (0.4, 1.6, 3.2, 660)
    """
    return _Walk(begin, untrained, rate, constant, ladder, constant_at or (lambda _: constant), watch).go(
        stride
    )


class _Walk:
    def __init__(
        self,
        begin: Callable[[float], Continued],
        untrained: Callable[[int], float],
        rate: float,
        constant: float,
        ladder: Ladder,
        constant_at: Callable[[int], float],
        watch: Callable[[int], None],
    ) -> None:
        self.constant_at = cache(constant_at)
        self.begin, self._at_first, self.rate = begin, cache(untrained), rate
        self.constant, self.ladder, self.watch = constant, ladder, watch
        self.runs = dict[int, Continued]()

    def go(self, stride: int) -> Walked:
        best = self._climb(0, stride)
        if stride > 1:
            best = self._climb(best, 1)
        if not self._score(best) < _BEATS * self.constant:
            self._look_everywhere(best)
        best = self._continue_leaders()
        if not self._trains(best):
            return self._result(None, best, None)
        best = self._take_higher(best)
        edge = self._edge(best)
        best = self._second_valley(best, edge)
        return self._result(self._step_back(best) if edge == best else best, best, edge)

    # --- the steps ---

    def _climb(self, at: int, stride: int) -> int:
        """Return the best place by the losses of short runs, up first, else down."""
        up = not self._failed(at) and self._better(at + stride, at)
        way = stride if up else -stride
        for _ in range(_MOST):
            if way < 0 and self._still(at):
                break
            if not (way < 0 and self._failed(at)) and not self._better(at + way, at):
                break
            at += way
        return at

    def _look_everywhere(self, best: int) -> None:
        """Try all rates that move the loss, where no run has left the constant, as with dead units."""
        for place in range(best - 1, best - _MOST, -1):
            hardly = self._score(place) > _MOVED * self._at_first(self.ladder.rung)
            if hardly and not self._came_back(place):
                break
        for place in range(best + 1, best + _MOST):
            if self._failed(place):
                break

    def _continue_leaders(self) -> int:
        """Continue the best two runs, on a plateau until it ends, and return the best place."""
        steps, leaders = self.ladder.longer, self._leaders(list(self.runs))
        leaders = self._continue_runs(leaders, steps)
        while steps < self.ladder.longest and self._on_plateau(leaders):
            steps = min(2 * steps, self.ladder.longest)
            leaders = self._continue_runs(self._leaders(leaders), steps)
        return self._best(leaders)

    def _take_higher(self, best: int) -> int:
        """Return the place above, if its run has lost little by as many steps."""
        steps, above = self.runs[best].steps, best + 1
        self._extend([above], steps)
        bound = min(self._at_first(steps), self.constant_at(steps))
        lost = self._score(above) - self._score(best)
        return above if lost <= _NEAR * (bound - self._score(best)) else best

    def _continue_runs(self, places: list[int], steps: int) -> list[int]:
        """Continue these runs; add lower places as long as they are better, if higher ones diverged or took longer."""
        self._extend(places, steps)
        late = steps > self.ladder.longer or any(self.runs[place].lost for place in places)
        found = list(places)
        for _ in range(_MOST if late else 0):
            if self._best(found) != min(found) or self._still(min(found)):
                break
            found.append(min(found) - 1)
            self._extend(found[-1:], steps)
        return found

    def _second_valley(self, best: int, edge: int) -> int:
        """Return a better place on the way to the edge, if the loss has a second valley there."""
        steps, found = self.runs[best].steps, self._best(list(range(best, edge + 1)))
        if found == best:
            return best
        places = [place for place in (found - 1, found, found + 1) if best <= place <= edge]
        self._extend(places, steps)
        return self._best([best, *places])

    def _step_back(self, best: int) -> int:
        """Return the place below if that trains; called if the place above failed."""
        back = best - 1
        self._extend([back], self.runs[best].steps)
        return back if self._trains(back) else best

    def _edge(self, best: int) -> int:
        """Return the highest place up to which all train."""
        edge = best
        for _ in range(_MOST):
            if not self._trains(edge + 1, like=best):
                break
            edge += 1
        return edge

    # --- one place ---

    def _run(self, place: int) -> Continued:
        if place not in self.runs:
            self.runs[place] = self.begin(self.rate * FACTOR**place)
            self._until(place, self.ladder.rung)
        return self.runs[place]

    def _until(self, place: int, steps: int) -> None:
        self.runs[place].until(steps)
        self.watch(sum(run.steps for run in self.runs.values()))

    def _extend(self, places: list[int], steps: int) -> None:
        for place in places:
            self._run(place)
            self._until(place, steps)

    def _leaders(self, places: list[int]) -> list[int]:
        order = sorted(places, key=lambda place: (self._score(place), place))
        return [place for place in order[:_LEADERS] if not self.runs[place].lost] or order[:1]

    def _on_plateau(self, places: list[int]) -> bool:
        return not self._score(self._best(places)) < _PLATEAU * self.constant

    def _best(self, places: list[int]) -> int:
        return min(places, key=lambda place: (self._score(place), place))

    def _score(self, place: int) -> float:
        return self._run(place).final()

    def _better(self, place: int, than: int) -> bool:
        return self._score(place) < self._score(than)

    def _failed(self, place: int) -> bool:
        """Lost, or not below where it came from."""
        run = self._run(place)
        return run.lost or not run.final() < self._at_first(run.steps)

    def _still(self, place: int) -> bool:
        """Whether the loss stayed at the first one throughout."""
        run = self._run(place)
        return self._ends_at_first(place) and run.largest_change() <= _STILL * abs(self._at_first(run.steps))

    def _came_back(self, place: int) -> bool:
        """Whether the loss left the first one and ended there: such a rate is too high, and lower ones may train."""
        return self._ends_at_first(place) and not self._still(place)

    def _ends_at_first(self, place: int) -> bool:
        first = self._at_first(self._run(place).steps)
        return abs(self._score(place) - first) <= _STILL * abs(first)

    def _trains(self, place: int, like: int | None = None) -> bool:
        """Below where it came from and below a constant; on a plateau after as many steps as another place had."""
        run = self._run(place)
        if like is not None and not run.lost and not self._below(run):
            self._until(place, self.runs[like].steps)
        return self._below(run)

    def _below(self, run: Continued) -> bool:
        bound = min(self._at_first(run.steps), self.constant_at(run.steps))
        return not run.lost and run.final() < _BEATS * bound

    # --- the result ---

    def _result(self, start: int | None, best: int, edge: int | None) -> Walked:
        records = {place: self._record(place) for place in sorted(self.runs)}
        return Walked(
            start=None if start is None else records[start],
            best=records[best],
            largest=None if edge is None else records[edge],
            failed=None if edge is None else records.get(edge + 1),
            rungs=tuple(records.values()),
        )

    def _record(self, place: int) -> Rung:
        run = self.runs[place]
        return Rung(
            rate=self.rate * FACTOR**place,
            steps=run.steps,
            loss=run.final() if math.isfinite(run.final()) else None,
            trains=self._below(run),
        )
