"""What a forked process does with one edit: draw a little and compare, then judge what may have moved.

First one block of every experiment that executes the line is drawn again at each point and compared, number by
number, with that of the unedited run. Where no number differs, the replicates of that run stand for the claim's; where
one does, the claim is judged on new draws, at the budget of a report. What moves most is judged first.
"""

from __future__ import annotations

import contextlib
import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["CAUGHT", "ROUNDING", "Finding", "Row", "apart", "block_effect", "five", "judge", "shift"]

CAUGHT = ("disagrees", "undecidable", "broken", "refused", "hung")
"""Verdicts that were not expected, claims that no replicates would decide any more, checks that crash, claims that the
registry does not let in or that never end."""

ROUNDING = 1e-9
"""Numbers that have moved by less, relative to themselves, have not."""

SEED = 2024

RELATIVE = ("identity", "exact property")
"""Kinds whose numbers are relative differences already: rounding to rounding."""

PLAIN = 1e-2
"""A change of a mean by this much is judged at once, smaller ones after all experiments have been looked at."""

Tell = Callable[[dict[str, Any]], None]


@dataclass(kw_only=True)
class Finding:
    """What is known of an edit so far.

    Attributes
    ----------
    outcome
        One of CAUGHT; "survived", "undecided", "inert" once all claims were judged; "unfinished" before.
    claim
        That caught it, or that it left undecided.
    run, blocks
        Claims judged, and experiments of which a block was compared.
    moved
        The largest change of a number, relative to it.
    margins, mover
        The largest change of measured minus predicted in margins, and the claim that saw it.
    doing, doing_seconds
        What is under way, and how long it took without the edit.
    """

    outcome: str = "unfinished"
    claim: str = ""
    run: int = 0
    blocks: int = 0
    moved: float = 0.0
    margins: float = 0.0
    mover: str = ""
    error: str = ""
    doing: str = ""
    doing_seconds: float = 0.0


class Row(NamedTuple):
    """Verdict and numbers (`five`) of a row of the unedited run."""

    verdict: str
    points: list[list[float]]


NEW = Row("", [])


def judge(
    drawn: Sequence[str],
    judged: Sequence[str],
    before: Mapping[str, Row],
    costs: Mapping[str, float],
    store: Path,
    seconds: float,
    tell: Tell,
) -> None:
    """Judge until an edit is caught, all claims have been, or `seconds` have passed; tell what is known as it grows.

    Parameters
    ----------
    drawn, judged
        Claims that execute the line while they draw, and while they are judged.
    before, costs
        The unedited run: rows by id, and seconds by claim.
    store
        The report folder with its replicates.
    seconds
        Of this process: after so many no further claim is begun, however much else runs on the machine.
    tell
        Takes the `Finding` so far.
    """
    found = Finding()
    try:
        trial = _Trial(before, costs, store, time.process_time() + seconds, tell)
        found = trial.found
        trial.run(drawn, judged)
    except BaseException:
        found.outcome, found.claim, found.error = "broken", "the import", traceback.format_exc()[-300:]
    found.doing = ""
    tell(asdict(found))


class _Trial:
    """The state of `judge`."""

    def __init__(
        self, before: Mapping[str, Row], costs: Mapping[str, float], store: Path, end: float, tell: Tell
    ) -> None:
        from verify.claims import registry

        self.found = Finding()
        self.claims = {claim.id: claim for claim in registry.claims()}
        self._before, self._costs, self._store, self._end, self._tell = before, costs, store, end, tell
        self._undecided = ""

    def run(self, drawn: Sequence[str], judged: Sequence[str]) -> None:
        """Claims that read stored replicates first, then experiments, those that move by much as they come."""
        later: list[tuple[float, list[str]]] = []
        self._each([n] for n in judged if n not in drawn)
        for group in self._groups(drawn):
            if not self._begin(f"a block of {group[0]}", group[0]):
                return
            effect = self._effect(self.claims[group[0]])
            if effect == 0.0:
                self._each([[n] for n in group if n in judged])
            elif effect >= PLAIN:
                self._each([group], fresh=True)
            else:
                later.append((effect, group))
            if self.over:
                return
        self._each([group for _, group in sorted(later, key=lambda pair: -pair[0])], fresh=True)
        if not self.over:
            inert = self.found.moved <= ROUNDING
            self.found.claim = self._undecided
            self.found.outcome = "undecided" if self._undecided else "inert" if inert else "survived"

    @property
    def over(self) -> bool:
        """Whether the edit was caught or the time is up."""
        return self.found.outcome in CAUGHT or time.process_time() > self._end

    def _begin(self, what: str, name: str) -> bool:
        self.found.doing, self.found.doing_seconds = what, self._costs.get(name, 0.0)
        self._tell(asdict(self.found))
        return time.process_time() < self._end

    def _groups(self, names: Iterable[str]) -> list[list[str]]:
        """Claims by what they draw, the cheapest first."""
        found: dict[str, list[str]] = {}
        for name in sorted(names, key=lambda n: self._costs.get(n, 0.0)):
            experiment = getattr(self.claims[name], "experiment", None)
            found.setdefault(experiment.id if experiment else f"claim {name}", []).append(name)
        return list(found.values())

    def _effect(self, claim: Any) -> float:
        """The largest change of the mean of a score over a block; of a claim that draws by itself, infinite."""
        if not hasattr(claim, "experiment"):
            return math.inf
        self.found.blocks += 1
        effect = block_effect(claim.experiment, self._store)
        self.found.moved = max(self.found.moved, effect)
        return effect

    def _each(self, groups: Iterable[list[str]], *, fresh: bool = False) -> None:
        """Judge claims, those of a group on the same draws: new ones, or those of the store."""
        for group in groups:
            for name, rows, refused in self._judged(group, fresh):
                self.found.run += 1
                self._note(name, rows)
                self._catch(name, rows, refused)
                if self.over:
                    return

    def _judged(self, group: Sequence[str], fresh: bool) -> Iterator[tuple[str, list[Any], str]]:
        from simulate.monte_carlo import SerialExecutor
        from verify.claims import registry
        from verify.judging.admission import problems
        from verify.running.engine import Session
        from verify.running.settings import Settings

        with contextlib.nullcontext() if fresh else _read_only(self._store) as kept:
            session = None
            for name in group:
                if not self._begin(name, name):
                    return
                if refused := next(iter(problems(self.claims[name])), ""):
                    yield name, [], refused
                    continue
                if session is None:
                    listed = [self.claims[n] for n in group]
                    settings = Settings(seed=SEED)
                    session = Session(listed, settings, SerialExecutor(), alpha=registry.alpha, store=kept)
                yield name, session.rows(self.claims[name]), ""

    def _catch(self, name: str, rows: Sequence[Any], refused: str) -> None:
        found = self.found
        if refused:
            found.outcome, found.claim, found.error = "refused", name, refused
        for row in rows:
            if row.surprise or row.verdict == "broken":
                found.outcome, found.claim = ("broken" if row.error else "disagrees"), name
                found.outcome = "undecidable" if row.verdict == "undecided" else found.outcome
                found.error = row.error[-300:]
            elif row.verdict == "undecided" and self._before.get(row.id, NEW).verdict != "undecided":
                self._undecided = self._undecided or name

    def _note(self, name: str, rows: Sequence[Any]) -> None:
        """By how much the numbers of a claim have moved."""
        found = self.found
        for row in rows:
            before, now = self._before.get(row.id, NEW).points, five(row.points)
            if len(now) != len(before):
                found.moved = math.inf
                continue
            unit = 1.0 if row.kind in RELATIVE else 0.0
            for new, old in zip(now, before, strict=True):
                least = max(unit, old[4])
                found.moved = max(
                    [found.moved, *(apart(a, b, least) for a, b in zip(new[:4], old[:4], strict=True))]
                )
                margins = abs((new[1] - new[0]) - (old[1] - old[0])) / old[4] if old[4] > 0 else 0.0
                if math.isfinite(margins) and margins > found.margins:
                    found.margins, found.mover = margins, name


def _read_only(folder: Path) -> Any:
    """The store of the unedited run, to which edited code must never add."""
    from verify.running.store import Store

    class ReadOnly(Store):
        def add(self, *_: Any) -> None:
            """Nothing."""

    return ReadOnly(folder, lambda _: None)


def block_effect(experiment: Any, store: Path) -> float:
    """The largest change of the mean of a score over a block, in its size; 0 where no number differs at all."""
    from simulate.monte_carlo import run_block
    from verify.running.origin import filed_under

    largest = 0.0
    with _read_only(store) as kept:
        for point in experiment.points:
            try:
                new = run_block(
                    experiment.simulate, experiment=experiment.id, point=point, seed=SEED, index=0
                ).scores
            except Exception:  # judging will say so
                return math.inf
            where = filed_under(experiment.simulate, experiment.id, point, SEED, "cpu")
            old = kept.read(where, 1).get(0) if where else None
            if old is None or old.scores.keys() != new.keys():
                return math.inf
            largest = max([largest, *(shift(old.scores[n], new[n]) for n in new)])
    return largest


def shift(old: np.ndarray, new: np.ndarray) -> float:
    """By how much two columns differ, in units of their size.

    >>> shift(np.array([1.0, 3.0]), np.array([1.0, 3.0])), shift(np.array([1.0, 3.0]), np.array([1.0, 3.5]))
    (0.0, 0.125)
    """
    if old.shape != new.shape:
        return math.inf
    if np.array_equal(old, new, equal_nan=True):
        return 0.0
    gap = np.abs(new.mean(axis=0) - old.mean(axis=0))
    size = np.maximum(np.abs(old.mean(axis=0)), np.abs(old).max(axis=0) / 8)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = float(np.max(gap / size))
    return max(found, 1e-16) if math.isfinite(found) else math.inf


def five(points: Iterable[Any]) -> list[list[float]]:
    """Predicted, measured, lower, upper and margin of each point of a row."""
    return [[p.predicted, p.measured, p.lower, p.upper, p.margin] for p in points]


def apart(a: float, b: float, least: float = 0.0) -> float:
    """The difference of two numbers relative to them, or to `least` if that is more; 0 of two that are not one.

    >>> apart(2.0, 1.0), apart(1e-16, 3e-16, least=0.1) < 1e-14, apart(math.nan, math.nan), apart(1.0, math.nan)
    (0.5, True, 0.0, inf)
    """
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) / max(abs(a), abs(b), least) if math.isfinite(a) and math.isfinite(b) else math.inf
