"""Trial of one edit: a forked process imports the edited code and judges the claims that execute it.

First one block of every experiment that executes the line is drawn again at each point and compared, number by
number, with the block of the unedited run. If no number differs, the claim is judged on the stored replicates. If one
differs, it is judged on new draws, at the budget of a report. Claims that move most are judged first.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.mutants.edits import Edit
from benchmarks.mutants.reach import ROOT, SEED

CAUGHT = ("disagrees", "undecidable", "broken", "refused", "hung")
"""Outcomes of a caught edit: an unexpected verdict, a claim that no replicates would decide, a check that crashes, a
claim that the registry does not admit, or one that never ends."""

ROUNDING = 1e-9
"""Relative change of a number below which it counts as unchanged."""

RELATIVE = ("identity", "exact property")
"""Kinds whose numbers are relative differences themselves, so that their changes count in absolute terms."""

PLAIN = 1e-2
"""Relative change of a mean that is judged at once; smaller ones follow after all experiments were compared."""

HUNG = 10.0
"""A claim that takes this many times its time without the edit, plus three times the patience, never ends."""

OWN = ("losscurv", "theory", "simulate", "verify")


@dataclass(kw_only=True)
class Finding:
    """Current knowledge about an edit.

    Attributes
    ----------
    outcome
        One of CAUGHT; "survived", "undecided", "inert" once all claims were judged; "unfinished" before.
    claim
        Claim that caught it, or that it left undecided.
    run
        Number of judged claims.
    moved
        Largest relative change of a number.
    margins, mover
        Largest change of measured minus predicted in margins, and its claim.
    doing, doing_seconds
        Current work, and its seconds without the edit.
    """

    outcome: str = "unfinished"
    claim: str = ""
    run: int = 0
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


class Told(NamedTuple):
    """Inputs for judging an edit.

    Attributes
    ----------
    drawn, judged
        Claims that execute the line while they draw, and while they are judged.
    before, costs
        Unedited run: rows by id, and seconds by claim.
    store
        Report folder with its replicates.
    seconds
        CPU seconds of the process after which no further claim is begun.
    """

    drawn: Sequence[str]
    judged: Sequence[str]
    before: Mapping[str, Row]
    costs: Mapping[str, float]
    store: Path
    seconds: float


# --- in the child


class Judging:
    """Judges claims until an edit is caught, all are judged, or the time is up; `tell` receives the finding so far."""

    def __init__(self, told: Told, tell: Callable[[dict[str, Any]], object]) -> None:
        from verify.claims import registry

        self.found = Finding()
        self.claims = {claim.id: claim for claim in registry.claims()}
        self._inputs, self._tell, self._end = told, tell, time.process_time() + told.seconds
        self._undecided = ""

    def run(self) -> None:
        """Judge claims on stored replicates first, then experiments that move by much, then the others."""
        drawn, judged, later = self._inputs.drawn, self._inputs.judged, list[tuple[float, list[str]]]()
        self._judge_groups([n] for n in judged if n not in drawn)
        for group in self._groups(drawn):
            if not self._announce(f"a block of {group[0]}", group[0]):
                return
            effect = self._block_effect(self.claims[group[0]])
            if effect == 0.0:
                self._judge_groups([[n] for n in group if n in judged])
            elif effect >= PLAIN:
                self._judge_groups([group], fresh=True)
            else:
                later.append((effect, group))
            if self.over:
                return
        self._judge_groups([group for _, group in sorted(later, key=lambda pair: -pair[0])], fresh=True)
        if not self.over:
            inert = self.found.moved <= ROUNDING
            self.found.claim = self._undecided
            self.found.outcome = "undecided" if self._undecided else "inert" if inert else "survived"

    @property
    def over(self) -> bool:
        """Whether the edit was caught or the time is up."""
        return self.found.outcome in CAUGHT or time.process_time() > self._end

    def _announce(self, what: str, name: str) -> bool:
        self.found.doing, self.found.doing_seconds = what, self._inputs.costs.get(name, 0.0)
        self._tell(asdict(self.found))
        return time.process_time() < self._end

    def _groups(self, names: Iterable[str]) -> list[list[str]]:
        """Return the claims grouped by their experiment, the cheapest first."""
        found: dict[str, list[str]] = {}
        for name in sorted(names, key=lambda n: self._inputs.costs.get(n, 0.0)):
            experiment = getattr(self.claims[name], "experiment", None)
            found.setdefault(experiment.id if experiment else f"claim {name}", []).append(name)
        return list(found.values())

    def _block_effect(self, claim: Any) -> float:
        """Return the largest change of a mean score over a block; infinite for a claim without an experiment."""
        if not hasattr(claim, "experiment"):
            return math.inf
        effect = block_effect(claim.experiment, self._inputs.store)
        self.found.moved = max(self.found.moved, effect)
        return effect

    def _judge_groups(self, groups: Iterable[list[str]], *, fresh: bool = False) -> None:
        """Judge claims, with shared draws within a group: `fresh` ones, or stored ones."""
        for group in groups:
            for name, rows, refused in self._judge_group(group, fresh):
                self.found.run += 1
                self._note(name, rows)
                self._catch(name, rows, refused)
                if self.over:
                    return

    def _judge_group(self, group: Sequence[str], fresh: bool) -> Iterator[tuple[str, list[Any], str]]:
        from simulate.monte_carlo import SerialExecutor
        from verify.claims import registry
        from verify.judging.admission import problems
        from verify.running.engine import Session
        from verify.running.settings import Settings

        with contextlib.nullcontext() if fresh else _read_only(self._inputs.store) as kept:
            session = None
            for name in group:
                if not self._announce(name, name):
                    return
                if refused := next(iter(problems(self.claims[name])), ""):
                    yield name, [], refused
                    continue
                if session is None:
                    listed, settings = [self.claims[n] for n in group], Settings(seed=SEED)
                    session = Session(listed, settings, SerialExecutor(), alpha=registry.alpha, store=kept)
                yield name, session.rows(self.claims[name]), ""

    def _catch(self, name: str, rows: Sequence[Any], refused: str) -> None:
        found = self.found
        if refused:
            found.outcome, found.claim, found.error = "refused", name, refused
        for row in rows:
            if row.surprise or row.verdict == "broken":
                crash = "broken" if row.error else "disagrees"
                found.outcome = "undecidable" if row.verdict == "undecided" else crash
                found.claim, found.error = name, row.error[-300:]
            elif row.verdict == "undecided" and self._inputs.before.get(row.id, NEW).verdict != "undecided":
                self._undecided = self._undecided or name

    def _note(self, name: str, rows: Sequence[Any]) -> None:
        """Record by how much the numbers of a claim have moved."""
        found = self.found
        for row in rows:
            before, now = self._inputs.before.get(row.id, NEW).points, five(row.points)
            if len(now) != len(before):
                found.moved = math.inf
                continue
            for new, old in zip(now, before, strict=True):
                margin = old[4]
                least = max(1.0 if row.kind in RELATIVE else 0.0, margin)
                gaps = [apart(a, b, least) for a, b in zip(new[:4], old[:4], strict=True)]
                found.moved = max(found.moved, *gaps)
                margins = abs((new[1] - new[0]) - (old[1] - old[0])) / margin if margin > 0 else 0.0
                if math.isfinite(margins) and margins > found.margins:
                    found.margins, found.mover = margins, name


def _read_only(folder: Path) -> Any:
    """Return the store of the unedited run, read-only, since edited code must never add to it."""
    from verify.running.store import Store

    class ReadOnly(Store):
        def add(self, *_: Any) -> None:
            """Do nothing."""

    return ReadOnly(folder, lambda _: None)


def block_effect(experiment: Any, store: Path) -> float:
    """Return the largest relative change of a mean score over a block; 0 if no number differs at all."""
    from simulate.monte_carlo import run_block
    from verify.running.origin import filed_under

    largest, draw, name = 0.0, experiment.simulate, experiment.id
    with _read_only(store) as kept:
        for point in experiment.points:
            try:
                new = run_block(draw, experiment=name, point=point, seed=SEED, index=0).scores
            except Exception:  # judging the claim will report it
                return math.inf
            where = filed_under(draw, name, point, SEED, "cpu")
            old = kept.read(where, 1).get(0) if where else None
            if old is None or old.scores.keys() != new.keys():
                return math.inf
            largest = max([largest, *(shift(old.scores[n], new[n]) for n in new)])
    return largest


def shift(old: np.ndarray, new: np.ndarray) -> float:
    """Return the difference of two columns, in units of their size.

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
    # 0 is kept for scores that are the same to the last bit.
    return max(found, 1e-16) if math.isfinite(found) else math.inf


def five(points: Iterable[Any]) -> list[list[float]]:
    """Return predicted, measured, lower, upper and margin of each point of a row."""
    return [[p.predicted, p.measured, p.lower, p.upper, p.margin] for p in points]


def apart(a: float, b: float, least: float = 0.0) -> float:
    """Return the difference of two numbers relative to the larger, or to `least` if that is more; 0 for two NaN.

    >>> apart(2.0, 1.0), apart(1e-16, 3e-16, least=0.1) < 1e-14, apart(math.nan, math.nan), apart(1.0, math.nan)
    (0.5, True, 0.0, inf)
    """
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) / max(abs(a), abs(b), least) if math.isfinite(a) and math.isfinite(b) else math.inf


def _import_edited(edit: Edit) -> None:
    """Have the edited source imported in place of the file, for the rest of the process."""
    get_code, edited = SourceFileLoader.get_code, str(ROOT / edit.file)

    def get_edited(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if self.path != edited:
            return get_code(self, fullname)
        # never the bytecode on disk
        return compile(edit.apply(ROOT), edited, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_edited


def judge(edit: Edit, told: Told, tell: Callable[[dict[str, Any]], object]) -> None:
    """Import the edited code in place of the loaded modules, judge the claims, and `tell` findings on the way."""
    found = Finding()
    try:
        # all modules are imported anew, since edited and loaded copies of one module must not mix
        for name in [n for n in sys.modules if n.partition(".")[0] in OWN]:
            del sys.modules[name]
        _import_edited(edit)
        judging = Judging(told, tell)
        found = judging.found
        judging.run()
    except BaseException:
        found.outcome, found.claim, found.error = "broken", "the import", traceback.format_exc()[-300:]
    found.doing = ""
    tell(asdict(found))


# --- in the parent


# A fork has the libraries that `preload` has imported, which takes seconds.
_FORK = multiprocessing.get_context("fork")


class Trial:
    """Child process that tries one edit of a file of `theory` or `simulate`, and sends findings through a pipe."""

    def __init__(self, edit: Edit, told: Told) -> None:
        self.edit, self._inputs = edit, told
        self._found: dict[str, Any] = asdict(Finding()) | {"seconds": 0.0}
        self._killed, self._last = False, time.monotonic()
        self._received, sent = _FORK.Pipe(duplex=False)
        self._child = _FORK.Process(target=_judge_in_child, args=(edit, told, sent))
        self._child.start()
        # The pipe ends when the child dies only if no other process holds this end.
        sent.close()

    def poll(self) -> dict[str, Any] | None:
        """Return the outcome, or None while the child runs."""
        try:
            while self._received.poll():
                self._found, self._last = self._received.recv(), time.monotonic()
        except EOFError:
            self._child.join()
            return self._outcome()
        longest = 3 * self._inputs.seconds + HUNG * self._found["doing_seconds"]
        if time.monotonic() - self._last > longest:
            self._killed = True
            self._child.kill()
        return None

    def stop(self) -> None:
        """End the child."""
        self._child.kill()
        self._child.join()

    def _outcome(self) -> dict[str, Any]:
        found = self._found
        if found["doing"]:  # the child did not send its last finding
            found |= {"outcome": "hung" if self._killed else "broken", "claim": found["doing"]}
            found["error"] = "" if self._killed else "the process died"
        del found["doing"], found["doing_seconds"]
        asked = len({*self._inputs.drawn, *self._inputs.judged})
        return {**self.edit._asdict(), **found, "asked": asked, "patience": self._inputs.seconds}


def _judge_in_child(edit: Edit, told: Told, sent: Any) -> None:
    # The handler of the parent, which a fork inherits, would raise in the middle of a claim.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    judge(edit, told, lambda found: sent.send(found | {"seconds": round(time.process_time(), 1)}))


def preload() -> None:
    """Import the libraries once, before any fork; each child imports the code on trial anew."""
    from verify.claims import registry

    libraries = """
        torch.func torch._dynamo torch.fx.experimental.symbolic_shapes sympy mpmath hypothesis.strategies
        scipy.stats scipy.special scipy.optimize scipy.integrate
    """
    for module in libraries.split():
        importlib.import_module(module)
    registry.papers()
