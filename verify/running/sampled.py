"""Claims judged on replicates: the runs they read, look by look, up to their rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from simulate.monte_carlo import BLOCK, Point, Scores
from verify.judging.estimands import components
from verify.judging.judge import (
    Judgement,
    Reading,
    applies,
    judge,
    outcome,
    readings,
    replicates_fixed,
)
from verify.model import MODEL_BASED, AnyClaim, Claim, Experiment, Verdict
from verify.results import PointOutcome, Row
from verify.running.pump import Draws, Pump, traceback_of
from verify.running.rows import broken_row, claim_row
from verify.running.settings import Settings

Alpha = Callable[[AnyClaim], float]
"""Error of each interval of a claim."""


class Sampled:
    """The claims of a session that are judged on replicates; those of one experiment share its runs.

    Parameters
    ----------
    claims
        All of them: their runs are drawn while others are waited for.
    pump, settings, alpha
        What draws, how much of it, and the error of each interval.
    """

    def __init__(self, claims: Sequence[Claim], pump: Pump, settings: Settings, alpha: Alpha) -> None:
        self._pump, self._settings = pump, settings
        self._runs: dict[tuple[str, Point], Run] = {}
        self._claims = {claim.id: (readings(claim), self._runs_of(claim, alpha(claim))) for claim in claims}
        self._pump.runs += self.runs

    @property
    def runs(self) -> list[Run]:
        """One for each experiment and point."""
        return list(self._runs.values())

    def rows(self, claim: Claim) -> list[Row]:
        """The rows of one claim, one for each of its readings."""
        judged, runs = self._claims[claim.id]
        finish(runs, self._pump)
        self._draw_until_rivals_rejected(claim, judged[0], runs)
        failed = next((error for run in runs if (error := run.error_of(claim))), "")
        if failed:
            return [broken_row(claim, failed, self._settings)]
        seconds = sum(run.seconds for run in runs)
        found = {r: [o for run in runs for o in run.outcomes(claim, r)] for r in judged}
        return [claim_row(claim, reading, found, seconds, self._settings) for reading in found]

    def _draw_until_rivals_rejected(self, claim: Claim, own: Reading, runs: Sequence[Run]) -> None:
        """Draw further replicates of a decided claim until each rival is rejected somewhere or the budget ends.

        They are drawn at one point at a time, the one where a rival that is left lies farthest from what was
        measured, in half-widths: there it takes the fewest.
        """
        trials = [(run, trial) for run in runs for trial in run.trials_of(claim, own)]
        # The guards withhold a rival's own interval for longer: its deviations are larger and more skewed.
        while all(trial.decided for _, trial in trials):
            found = [
                (run, trial, rival) for run, trial in trials for rival in trial.outcome(run.scores).rivals
            ]
            rejected = {rival.name for *_, rival in found if rival.rejected}
            going = [
                (trial.last.half_widths_to(rival, claim.kind), n, run, trial)
                for run, trial, rival in found
                if rival.name not in rejected and (n := run.next_look(trial.last.replicates))
            ]
            if not going:
                return
            _, n, run, trial = max(going, key=lambda at: (at[0], -at[1]))
            run.draw_on(n)
            finish([run], self._pump)
            if run.error:
                return
            trial.look(run.scores, n)

    def _runs_of(self, claim: Claim, alpha: float) -> list[Run]:
        experiment, runs = claim.experiment, list[Run]()
        for point in experiment.points:
            key = experiment.id, point
            if key not in self._runs:
                run = Run(experiment, point, self._settings, self._settings.looks(experiment))
                self._runs[key] = self._pump.stocked(run)
            self._runs[key].add(claim, readings(claim), alpha)
            runs.append(self._runs[key])
        return runs


def judged_alone(
    claim: Claim, pump: Pump, settings: Settings, replicates: int | None, alpha: float
) -> list[PointOutcome]:
    """A claim by itself, at each of its points, on the reading the suite stands behind.

    With `replicates` the verdict is the one after exactly so many, whatever earlier looks would have said.

    Raises
    ------
    RuntimeError
        If the experiment or a formula crashes.
    """
    tried_at = settings.looks(claim.experiment) if replicates is None else [replicates]
    own, found = readings(claim)[0], list[PointOutcome]()
    for point in claim.experiment.points:
        run = pump.stocked(Run(claim.experiment, point, settings, tried_at))
        run.add(claim, [own], alpha)
        finish([run], pump)
        if error := run.error_of(claim):
            raise RuntimeError(error)
        found += run.outcomes(claim, own)
    return found


def finish(runs: Sequence[Draws], pump: Pump) -> None:
    """Turn the pump until none of these runs asks for more."""
    while not all(run.done for run in runs):
        for complete in pump.turn(runs):
            complete.look()


@dataclass
class _Trial:
    """One reading of a claim at one point, and at one component there, until it is decided."""

    claim: Claim
    reading: Reading
    alpha: float
    run_at: Point
    point: Point
    component: int = 0
    fixed: int | None = None
    trail: list[Judgement] = field(default_factory=list[Judgement])
    judgement: Judgement | None = None
    later: Judgement | None = None
    recorded: PointOutcome | None = None
    error: str = ""

    @property
    def decided(self) -> bool:
        """Whether it agrees or disagrees, and nothing crashed."""
        return bool(self.judgement) and self.judgement.verdict is not Verdict.UNDECIDED and not self.error

    @property
    def last(self) -> Judgement:
        """The last judgement of a trial that was judged."""
        if (last := self.later or self.judgement) is None:
            raise RuntimeError(f"{self.claim.id} has not been judged at {self.point}")
        return last

    @property
    def settled(self) -> bool:
        """Decided, crashed, or judged as often as it may be: more replicates change nothing."""
        return bool(self.error) or self.decided or (self.judgement is not None and self.fixed is not None)

    def look(self, scores: Scores, later: int | None = None) -> None:
        """Judge on all replicates so far, or `later` on so many again, for the rivals: the verdict stays."""
        try:
            mine, count = self._component_scores(scores), later or self.fixed
            # Other claims may have asked for more of these replicates: a kind
            # judged at a fixed number must not see them.
            if count is not None:
                mine = {name: column[:count] for name, column in mine.items()}
                if len(next(iter(mine.values()))) < count:
                    return
            found = judge(self.claim, self.reading, self.point, mine, self.alpha)
        except Exception as error:  # a crashing prediction breaks its own claim and no other
            self.error = traceback_of(error)
            return
        if later is None:
            self.judgement = found
            self.trail.append(found)
        else:
            # The record has the rivals of the last look, so it must be made anew.
            self.later, self.recorded = found, None

    def outcome(self, scores: Scores) -> PointOutcome:
        """Return the record of the last judgement; it is kept until the next one."""
        if self.recorded is None:
            mine = self._component_scores(scores)
            arguments = (self.claim, self.reading, self.point, self.judgement or self.last, mine, self.trail)
            self.recorded = outcome(*arguments, self.alpha, later=self.later)
        return self.recorded

    def _component_scores(self, scores: Scores) -> Scores:
        return at_component(self.claim, self.run_at, scores, self.component)


class Run(Draws):
    """An experiment at one point, with all readings that are judged on its replicates."""

    def __init__(
        self, experiment: Experiment, point: Point, settings: Settings, tried_at: Sequence[int]
    ) -> None:
        most = math.ceil(tried_at[-1] / BLOCK)
        super().__init__(experiment.id, experiment.simulate, point, settings.device, BLOCK, most)
        self.experiment, self.expected = experiment, experiment.seconds
        self.trials: list[_Trial] = []
        self._tried_at = tried_at

    def add(self, claim: Claim, judged: Sequence[Reading], alpha: float) -> None:
        """Judge a claim here, on these readings, with this error of each interval."""
        fixed = replicates_fixed(claim)
        if fixed is not None:
            # A lowered budget ends before the usual number.
            fixed = min(fixed, self._tried_at[-1])
        for reading in judged:
            trial = partial(_Trial, claim, reading, alpha, self.point)
            try:
                at = [
                    (p, i) for i, p in enumerate(components(claim, self.point)) if applies(claim, reading, p)
                ]
                self.trials += [trial(*place, fixed) for place in at]
            except Exception as error:  # the formula crashes here as it would at a look
                self.trials.append(trial(self.point, error=traceback_of(error)))
        self._request_look(self._tried_at[0])

    def look(self) -> None:
        """Judge what is not settled; ask for the replicates of the next look if anything is left."""
        try:
            for trial in self.trials:
                if not trial.settled:
                    trial.look(self.scores)
        except Exception as error:  # breaks the claims on this run and no others
            self.fail(error)
            return
        self._request_look(self.next_look(self.wanted))

    def next_look(self, replicates: int) -> int | None:
        """The number of replicates at which a verdict is tried after so many; None where the budget ends."""
        return next((n for n in self._tried_at if n > replicates), None)

    def draw_on(self, replicates: int) -> None:
        """Request this many replicates, for the rivals, although every verdict is decided."""
        # More may be there already, because another claim shares this run.
        if replicates > self.replicates:
            self.done, self.wanted = False, replicates

    def _request_look(self, replicates: int | None) -> None:
        self.done = not replicates or all(trial.settled for trial in self.trials)
        self.wanted = 0 if self.done else replicates or 0

    def error_of(self, claim: Claim) -> str:
        """Return the error that broke the experiment or the claim's own formulas, if any."""
        return self.error or next((t.error for t in self.trials if t.claim is claim and t.error), "")

    def trials_of(self, claim: Claim, reading: Reading) -> list[_Trial]:
        """One reading of a claim, at each component."""
        return [t for t in self.trials if t.claim is claim and t.reading.label == reading.label]

    def outcomes(self, claim: Claim, reading: Reading) -> list[PointOutcome]:
        """Return the outcomes of one reading of a claim, at each component."""
        return [trial.outcome(self.scores) for trial in self.trials_of(claim, reading)]


def at_component(claim: Claim, point: Point, scores: Scores, index: int) -> Scores:
    """The scores of one component; what is one number per replicate belongs to all of them.

    Raises
    ------
    ValueError
        If the claim's score has no such components.
    """
    if not claim.along or claim.kind in MODEL_BASED:
        return scores
    width = len(point[claim.along])
    names = (claim.score,) if isinstance(claim.score, str) else claim.score
    shapes = [scores[name].shape for name in names if name in scores]
    if shapes and not any(shape[1:] == (width,) for shape in shapes):
        raise ValueError(
            f"score {claim.score!r} must have one component for each of {width} values of {claim.along}, "
            f"got shape {', '.join(map(str, shapes))}"
        )
    return {name: v[:, index] if v.shape[1:] == (width,) else v for name, v in scores.items()}
