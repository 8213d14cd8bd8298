"""Runs what a selection of claims needs, look by look, and turns it into rows.

Every block of replicates, on whatever worker, is the same computation; a run asks only for the blocks of its next
look, and each reading of a claim keeps the verdict of the first look that decides it. So scores and verdicts
depend on the claim, the seed and the budget, and neither on the number of workers nor on what else was selected.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from simulate.monte_carlo import BLOCK, BlockResult, Point, Scores, fixture, one_thread, run_block
from verify.judging.estimands import at_component, components
from verify.judging.judge import (
    Judgement,
    Reading,
    applies,
    judge,
    labels,
    outcome,
    readings,
    replicates_fixed,
)
from verify.judging.properties import explore_exact, explore_statistical
from verify.model import (
    ALPHA,
    AnyClaim,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Tier,
    Verdict,
)
from verify.model.observation import Observation
from verify.results import Observed, PointOutcome, Row, RunRecord
from verify.running.draws import Draws, traceback_of
from verify.running.observe import Watch, kinds_of, tabulated
from verify.running.origin import Origin, drawn, key, refresh, why_not_stored
from verify.running.rows import broken_row, claim_row, identity_outcome, identity_row, property_row
from verify.running.settings import Settings
from verify.running.store import Store
from verify.running.workers import Calls

__all__ = ["Progress", "Session", "Settings", "judge_claim"]

EXAMPLES = {Tier.SMOKE: 10, Tier.DEFAULT: 10, Tier.FULL: 100}

AnyDraws = TypeVar("AnyDraws", bound=Draws)


class Progress(NamedTuple):
    """Claims and observations finished, those in all, seconds elapsed and an estimate of the seconds left."""

    done: int
    total: int
    elapsed: float
    left: float
    what: str = "claims"


@dataclass
class _Reading:
    """One reading of a claim at one point, and at one component there, until it is decided."""

    claim: Claim
    reading: Reading
    run_at: Point
    point: Point
    component: int = 0
    fixed: int | None = None
    trail: list[Judgement] = field(default_factory=list[Judgement])
    judgement: Judgement | None = None
    error: str = ""

    @property
    def settled(self) -> bool:
        """Decided, crashed, or judged as often as it may be: more replicates change nothing."""
        if self.judgement is None:
            return bool(self.error)
        return bool(self.error) or self.fixed is not None or self.judgement.verdict is not Verdict.UNDECIDED

    def look(self, scores: Scores, alpha: float) -> None:
        """Judge on all replicates so far; a crashing prediction breaks its own claim and no other."""
        try:
            mine = at_component(self.claim, self.run_at, scores, self.component)
            if self.fixed is not None:
                mine = {name: column[: self.fixed] for name, column in mine.items()}
                if len(next(iter(mine.values()))) < self.fixed:
                    return
            self.judgement = judge(self.claim, self.reading, self.point, mine, alpha)
            self.trail.append(self.judgement)
        except Exception as error:
            self.error = traceback_of(error)

    def outcome(self, scores: Scores, alpha: float) -> PointOutcome:
        """The record of the judgement."""
        if self.judgement is None:
            raise RuntimeError(f"{self.claim.id} has not been judged at {self.point}")
        mine = at_component(self.claim, self.run_at, scores, self.component)
        return outcome(self.claim, self.reading, self.point, self.judgement, mine, self.trail, alpha)


Alpha = Callable[[AnyClaim], float]


class _Run(Draws):
    """An experiment at one point: blocks in, verdicts out."""

    def __init__(
        self, experiment: Experiment, point: Point, settings: Settings, alpha: Alpha, tried_at: Sequence[int]
    ) -> None:
        super().__init__(experiment.id, experiment.simulate, point, settings.device, BLOCK)
        self.experiment, self.alpha = experiment, alpha
        self.readings: list[_Reading] = []
        self._looks = list(tried_at)

    def add(self, claim: Claim, labels: Sequence[str] = ()) -> None:
        """Judge a claim here, on the readings of these labels or on all of them."""
        fixed = replicates_fixed(claim)
        if fixed is not None:
            fixed = min(fixed, self._looks[-1])
        for reading in readings(claim):
            if not labels or reading.label in labels:
                self._add(claim, reading, fixed)

    def _add(self, claim: Claim, reading: Reading, fixed: int | None) -> None:
        try:
            at = [(i, p) for i, p in enumerate(components(claim, self.point)) if applies(claim, reading, p)]
            self.readings += [_Reading(claim, reading, self.point, p, i, fixed) for i, p in at]
        except Exception as error:  # the formula crashes here as it would at a look
            self.readings.append(_Reading(claim, reading, self.point, self.point, error=traceback_of(error)))

    @property
    def done(self) -> bool:
        return bool(self.error) or not self._looks or all(r.settled for r in self.readings)

    @property
    def wanted(self) -> int:
        """Those of the present look."""
        return self._looks[0]

    @property
    def most_blocks(self) -> int:
        """Blocks of the whole budget."""
        return math.ceil(self._looks[-1] / BLOCK)

    def receive(self, index: int, result: BlockResult) -> None:
        """Take a finished block; judge when the look is complete."""
        super().receive(index, result)
        if self.replicates == self._looks[0]:
            self._look()
            self._looks.pop(0)

    def error_of(self, claim: Claim) -> str:
        """What broke the experiment or the claim's own formulas, if anything did."""
        return self.error or next((r.error for r in self.readings if r.claim is claim and r.error), "")

    def seconds_left(self) -> float:
        return (
            0.0 if self.done else max(self.experiment.seconds - self.seconds, 0.05 * self.experiment.seconds)
        )

    def outcomes(self, claim: Claim, label: str) -> list[PointOutcome]:
        """What one reading of a claim came to, at each component."""
        scores = self.scores()
        return [
            r.outcome(scores, self.alpha(r.claim))
            for r in self.readings
            if r.claim is claim and r.reading.label == label
        ]

    def _look(self) -> None:
        scores = self.scores()
        for r in self.readings:
            if not r.settled:
                r.look(scores, self.alpha(r.claim))


class Session:
    """Judges a selection of claims on one executor.

    Parameters
    ----------
    claims
        What to judge, in the order of the report.
    settings
        Seed, tier, device and budget.
    executor
        Where blocks run; see `simulate.monte_carlo.open_executor`.
    alpha
        Error of each interval of a claim.
    store
        Where finished blocks are kept and those of earlier runs are found.
    observations
        What to report beside the claims.
    """

    def __init__(
        self,
        claims: Sequence[AnyClaim],
        settings: Settings,
        executor: Executor,
        *,
        alpha: Alpha = lambda _: ALPHA,
        store: Store | None = None,
        observations: Sequence[Observation] = (),
    ) -> None:
        self.claims, self.settings, self.alpha, self.store = tuple(claims), settings, alpha, store
        self.observations = tuple(observations)
        refresh()
        self._calls = Calls(executor, settings.workers)
        self._rows: dict[str, list[Row]] = {}
        self._observed: dict[str, Observed] = {}
        self._started = time.perf_counter()
        self._runs: dict[tuple[str, Point], _Run] = {}
        self.listener: Callable[[], None] = lambda: None
        for claim in self.claims:
            if isinstance(claim, Claim):
                for point in claim.experiment.points:
                    self._run_of(claim.experiment, point).add(claim)
        self._watched = {
            o.id: [self._stocked(Watch(o, point, settings)) for point in o.points] for o in self.observations
        }

    def rows(self, claim: AnyClaim) -> list[Row]:
        """The rows of one claim, run now as far as they have not been."""
        if claim.id not in self._rows:
            self._rows[claim.id] = self._judge(claim)
            self._finished()
        return self._rows[claim.id]

    def observed(self, observation: Observation) -> Observed:
        """The record of one observation, run now as far as it has not been."""
        if observation.id not in self._observed:
            self._observed[observation.id] = self._watch(observation)
            self._finished()
        return self._observed[observation.id]

    def _finished(self) -> None:
        if self.store is not None:
            self.store.begin()
        self.listener()

    def finished_rows(self) -> list[Row]:
        """The rows of all claims judged so far, in the order of the selection."""
        return [row for claim in self.claims for row in self._rows.get(claim.id, [])]

    def finished_observations(self) -> list[Observed]:
        """The records of all observations made so far, in the order of the selection."""
        return [self._observed[o.id] for o in self.observations if o.id in self._observed]

    def records(self) -> list[RunRecord]:
        """One record per experiment and point that ran to its end: what a replay must find again."""
        return [run.record() for run in self._all() if run.blocks and run.done and not run.error]

    def progress(self) -> Progress:
        """How far the selection is."""
        waiting = [c for c in self.claims if c.id not in self._rows]
        seconds = sum(run.seconds_left() for run in self._all())
        seconds += sum(c.seconds for c in waiting if not isinstance(c, Claim))
        elapsed = time.perf_counter() - self._started
        done, total = len(self._rows) + len(self._observed), len(self.claims) + len(self.observations)
        what = kinds_of(self.claims, self.observations)
        return Progress(done, total, elapsed, seconds / self._calls.workers, what)

    def _all(self) -> list[Draws]:
        """Everything that is drawn, claims first."""
        return [*self._runs.values(), *(run for runs in self._watched.values() for run in runs)]

    def _judge(self, claim: AnyClaim) -> list[Row]:
        try:
            if isinstance(claim, Claim):
                return self._judge_claim(claim)
            if isinstance(claim, Identity):
                return self._judge_identity(claim)
            examples = EXAMPLES[self.settings.tier]
            if isinstance(claim, ExactProperty):
                return [
                    property_row(claim, explore_exact(claim, self.settings.seed, examples), self.settings)
                ]
            explored = explore_statistical(
                claim, self._judge_example, self.settings.seed, examples, self.alpha(claim)
            )
            return [property_row(claim, explored, self.settings)]
        except Exception as error:  # a check that crashes is shown as broken, the others still run
            return [broken_row(claim, traceback_of(error), self.settings)]

    def _judge_claim(self, claim: Claim) -> list[Row]:
        runs = [self._run_of(claim.experiment, point) for point in claim.experiment.points]
        while not all(run.done for run in runs):
            self._pump(first=runs)
        failed = next((error for run in runs if (error := run.error_of(claim))), "")
        if failed:
            return [broken_row(claim, failed, self.settings)]
        seconds = sum(run.seconds for run in runs)
        found = {r.label: [o for run in runs for o in run.outcomes(claim, r.label)] for r in readings(claim)}
        return [claim_row(claim, r, found, seconds, self.settings) for r in readings(claim)]

    def _watch(self, observation: Observation) -> Observed:
        runs = self._watched[observation.id]
        while not all(run.done for run in runs):
            self._pump(first=runs)
        return tabulated(observation, runs, self.settings)

    def _judge_identity(self, claim: Identity) -> list[Row]:
        started = time.perf_counter()
        found: dict[Point, Future[dict[str, Any]]] = {}
        for point in claim.points:
            self._calls.send(
                partial(found.__setitem__, point),
                run_routes,
                routes=claim.routes,
                name=f"{claim.id}\n{point.canonical()}",
                point=point,
                seed=self.settings.seed,
            )
        while len(found) < len(set(claim.points)):
            self._calls.settle()
            self.listener()
        routes = [found[point].result() for point in claim.points]
        seconds = time.perf_counter() - started
        return [
            identity_row(
                claim,
                label,
                [
                    identity_outcome(claim, label, p, found)
                    for p, found in zip(claim.points, routes, strict=True)
                ],
                seconds,
                self.settings,
            )
            for label in labels(claim)
        ]

    def judge_alone(self, claim: Claim, replicates: int | None, alpha: float) -> list[PointOutcome]:
        """A claim by itself; see `judge_claim`."""
        tried_at = self.settings.looks(claim.experiment) if replicates is None else [replicates]
        found: list[PointOutcome] = []
        for point in claim.experiment.points:
            run = self._stocked(_Run(claim.experiment, point, self.settings, lambda _: alpha, tried_at))
            run.add(claim, labels=[readings(claim)[0].label])
            while not run.done:
                self._pump(first=[run])
            if run.error_of(claim):
                raise RuntimeError(run.error_of(claim))
            found += run.outcomes(claim, readings(claim)[0].label)
        return found

    def _judge_example(self, claim: Claim, replicates: int | None, alpha: float) -> PointOutcome:
        return self.judge_alone(claim, replicates, alpha)[0]

    def _run_of(self, experiment: Experiment, point: Point) -> _Run:
        key = (experiment.id, point)
        if key not in self._runs:
            tried_at = self.settings.looks(experiment)
            self._runs[key] = self._stocked(_Run(experiment, point, self.settings, self.alpha, tried_at))
        return self._runs[key]

    def _stocked(self, run: AnyDraws) -> AnyDraws:
        """The run with the blocks that earlier ones have left."""
        if self.store is not None:
            run.key = key(run.simulate, run.name, run.point, self.settings.seed, self.settings.device)
            if run.key is not None:
                run.stored = self.store.read(run.key, run.most_blocks, run.size)
        return run

    def _pump(self, first: Iterable[Draws]) -> None:
        """Keep the workers fed, the requested runs first, and take in what has finished."""
        self._submit([*first, *self._all()])
        self._calls.settle()
        self.listener()

    def _submit(self, runs: Iterable[Draws]) -> None:
        for run in runs:
            while self._calls.room > 0 and (index := self._next_block(run)) is not None:
                self._calls.send(
                    partial(self._take, run, index),
                    drawn,
                    draw=run_block if run.size == BLOCK else partial(run_block, size=run.size),
                    simulate=run.simulate,
                    experiment=run.name,
                    point=run.point,
                    seed=self.settings.seed,
                    index=index,
                    device=self.settings.device,
                )

    def _next_block(self, run: Draws) -> int | None:
        try:
            return run.next_block()
        except Exception as error:  # a stored block is as good or bad as one just drawn
            run.fail(error)
            return None

    def _take(self, run: Draws, index: int, future: Future[tuple[BlockResult, Origin]]) -> None:
        if run.error:
            return
        try:
            result, there = future.result()
            unfit = why_not_stored(run.origin, there)
            if self.store is not None and run.key is not None:
                self.store.leave_out(unfit) if unfit else self.store.add(run.key, index, result)
            run.receive(index, result)
        except Exception as error:  # breaks the claims on this run and no others
            run.fail(error)


def judge_claim(
    claim: Claim,
    settings: Settings,
    executor: Executor,
    *,
    replicates: int | None = None,
    alpha: float = ALPHA,
) -> list[PointOutcome]:
    """Judge one claim by itself, at each of its points, on the reading the suite stands behind.

    With `replicates` the verdict is the one after exactly so many, whatever earlier looks would have said.
    """
    return Session((), settings, executor).judge_alone(claim, replicates, alpha)


def run_routes(routes: Callable[..., Any], name: str, point: Point, seed: int) -> dict[str, Any]:
    """The routes of an identity at one point, as arrays, on one thread."""
    with one_thread():
        found = routes(fixture(seed, name), point)
    return {
        key: np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        for key, value in found.items()
    }
