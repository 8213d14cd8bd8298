"""A session: the claims and observations of one run, each judged by the runner of its kind.

Every block of replicates, on whatever worker, is the same computation; a run asks only for the blocks of its next
look, and each reading of a claim keeps the verdict of the first look that decides it. So scores and verdicts
depend on the claim, the seed and the budget, and neither on the number of workers nor on what else was selected.

| kind of claim | runner |
|---|---|
| `Claim` | `verify.running.sampled` |
| `Identity` | `verify.running.identities` |
| `ExactProperty`, `StatisticalProperty` | `verify.running.explored` |
| `Observation` | `verify.running.observe` |
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import chain
from typing import NamedTuple

from verify.model import ALPHA, AnyClaim, Claim, ExactProperty, Identity
from verify.model.observation import Observation
from verify.results import Observed, Row, RunRecord
from verify.running.explored import exact_row, exact_row_by_name, statistical_row
from verify.running.identities import Routes, identity_rows
from verify.running.observe import Watch, watched
from verify.running.origin import refresh
from verify.running.pump import Asked, Pump, traceback_of
from verify.running.replays import Again, draw_again
from verify.running.rows import broken_row
from verify.running.sampled import Alpha, Sampled
from verify.running.settings import Settings
from verify.running.store import Store


class Progress(NamedTuple):
    """Claims and observations finished, those in all, seconds elapsed and an estimate of the seconds left."""

    done: int
    total: int
    elapsed: float
    left: float

    def __str__(self) -> str:
        """Return progress in one line.

        >>> str(Progress(1, 2, 3.0, 4.0))
        '1 of 2 claims and observations, 3 s, about 4 s left'
        """
        done = f"{self.done} of {self.total} claims and observations"
        return f"{done}, {self.elapsed:.0f} s, about {self.left:.0f} s left"


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
    registered
        Whether workers find the claims in their registry, as they are here.
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
        registered: bool = False,
    ) -> None:
        self.claims, self.settings, self.alpha, self.store = tuple(claims), settings, alpha, store
        self.observations = tuple(observations)
        # A notebook lives long: code may have been reloaded and images replaced since the last session.
        refresh()
        self.pump = Pump(executor, settings, store)
        self._rows: dict[str, list[Row]] = {}
        self._observed: dict[str, Observed] = {}
        self._started, self._cpu_before = time.perf_counter(), _cpu_seconds()
        self._drawn = [claim for claim in self.claims if isinstance(claim, Claim)]
        self.sampled = Sampled(self._drawn, self.pump, settings, alpha)
        self._watches = {
            o.id: [self.pump.stocked(Watch(o, point, settings)) for point in o.points]
            for o in self.observations
        }
        self.pump.runs += chain.from_iterable(self._watches.values())
        self.pump.runs.sort(key=lambda run: -run.expected)  # or the longest would end alone
        identities = [claim for claim in self.claims if isinstance(claim, Identity)]
        self._routes = {claim.id: Routes(claim, self.pump, settings) for claim in identities}
        self._exact = {
            c.id: Asked(self.pump, exact_row_by_name, name=c.id, settings=settings)
            for c in self.claims
            if registered and isinstance(c, ExactProperty)
        }

    def rows(self, claim: AnyClaim) -> list[Row]:
        """The rows of one claim, run now as far as they have not been."""
        if claim.id not in self._rows:
            self._rows[claim.id] = self._judge(claim)
            self._after_each()
        return self._rows[claim.id]

    def observed(self, observation: Observation) -> Observed:
        """The record of one observation, run now as far as it has not been."""
        if observation.id not in self._observed:
            self._observed[observation.id] = watched(
                observation, self._watches[observation.id], self.pump, self.settings
            )
            self._after_each()
        return self._observed[observation.id]

    def judge_all(self) -> None:
        """Judge every claim and make every observation, in the order of the selection."""
        for claim in self.claims:
            self.rows(claim)
        for observation in self.observations:
            self.observed(observation)

    def _after_each(self) -> None:
        # From the first finished row on there is a file that another run can be locked out of.
        if self.store is not None:
            self.store.begin()
        if self.pump.listener:
            self.pump.listener()

    def finished_rows(self) -> list[Row]:
        """The rows of all claims judged so far, in the order of the selection."""
        return [row for claim in self.claims for row in self._rows.get(claim.id, [])]

    def finished_observations(self) -> list[Observed]:
        """The records of all observations made so far, in the order of the selection."""
        return [self._observed[o.id] for o in self.observations if o.id in self._observed]

    def records(self) -> list[RunRecord]:
        """One record per experiment and point that ran to its end: what a replay must find again."""
        # A run that was cut short stops where timing left it, so a replay could not find its hash again.
        return [run.record() for run in self.pump.runs if run.scores and run.done and not run.error]

    def drawn_again(self) -> Again:
        """A share of the blocks of this run drawn again on the CPU, but for sizes that no CPU draws."""
        large = {o.id for o in self.observations if o.cost is not None}
        return draw_again(self.pump.runs, self.settings, self._drawn, without=large)

    def progress(self) -> Progress:
        """Return progress and time left, by the declared seconds and the pace so far."""
        elapsed = time.perf_counter() - self._started
        done, total = len(self._rows) + len(self._observed), len(self.claims) + len(self.observations)
        parts = [(run.expected, run.share, run.fresh) for run in self.pump.runs]
        parts += [
            (c.seconds, float(c.id in self._rows), 1.0) for c in self.claims if not isinstance(c, Claim)
        ]
        # Blocks read from the store took no time now, so they say nothing about the pace.
        made = sum(seconds * share * fresh for seconds, share, fresh in parts)
        left = sum(seconds * (1 - share) for seconds, share, _ in parts)
        # Before the first block there is no pace: trust the declared seconds, shared by all workers.
        left *= elapsed / made if made else 1 / self.pump.workers
        return Progress(done, total, elapsed, left if done < total else 0.0)

    def cpu_seconds(self) -> float:
        """Seconds of all processors here since the start; of local workers only once they have stopped."""
        return _cpu_seconds() - self._cpu_before

    def _judge(self, claim: AnyClaim) -> list[Row]:
        try:
            if isinstance(claim, Claim):
                return self.sampled.rows(claim)
            if isinstance(claim, Identity):
                return identity_rows(self._routes[claim.id], self.settings)
            if isinstance(claim, ExactProperty):
                asked = self._exact.get(claim.id)
                return [asked.result() if asked else exact_row(claim, self.settings)]
            return [statistical_row(claim, self.pump, self.settings, self.alpha(claim))]
        except Exception as error:  # a check that crashes is shown as broken, the others still run
            return [broken_row(claim, traceback_of(error), self.settings)]


def _cpu_seconds() -> float:
    """Seconds of processors that this process and those it has seen the end of have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
