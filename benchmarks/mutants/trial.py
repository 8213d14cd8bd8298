"""One edit on trial: a forked process imports the edited code and judges the claims that execute it.

First one block of every experiment that executes the line is drawn again at each point and compared, number by
number, with that of the unedited run. Where no number differs, the replicates of that run stand for the claim's; where
one does, the claim is judged on new draws, at the budget of a report. What moves most is judged first.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.mutants.edits import Edit
from benchmarks.mutants.reach import ROOT, SEED

CAUGHT = ("disagrees", "undecidable", "broken", "refused", "hung")
"""Verdicts that were not expected, claims that no replicates would decide any more, checks that crash, claims that the
registry does not let in or that never end."""

ROUNDING = 1e-9
"""Numbers that have moved by less, relative to themselves, have not."""

RELATIVE = ("identity", "exact property")
"""Kinds whose numbers are relative differences already: rounding to rounding."""

PLAIN = 1e-2
"""A change of a mean by this much is judged at once, smaller ones after all experiments have been looked at."""

HUNG = 10.0
"""A claim that takes this many times as long as without the edit, and thrice the patience, never ends."""

OWN = ("losscurv", "theory", "simulate", "verify")


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


class Told(NamedTuple):
    """What an edit is judged by.

    Attributes
    ----------
    drawn, judged
        Claims that execute the line while they draw, and while they are judged.
    before, costs
        The unedited run: rows by id, and seconds by claim.
    store
        The report folder with its replicates.
    seconds
        Of the process: after so many no further claim is begun, however much else runs on the machine.
    """

    drawn: Sequence[str]
    judged: Sequence[str]
    before: Mapping[str, Row]
    costs: Mapping[str, float]
    store: Path
    seconds: float


# --- in the child


class Judging:
    """Claims judged until an edit is caught, all have been, or the time is up; `tell` takes the finding so far."""

    def __init__(self, told: Told, tell: Callable[[dict[str, Any]], object]) -> None:
        from verify.claims import registry

        self.found = Finding()
        self.claims = {claim.id: claim for claim in registry.claims()}
        self._told, self._tell, self._end = told, tell, time.process_time() + told.seconds
        self._undecided = ""

    def run(self) -> None:
        """Claims that read stored replicates first, then experiments, those that move by much as they come."""
        drawn, judged, later = self._told.drawn, self._told.judged, list[tuple[float, list[str]]]()
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
        self.found.doing, self.found.doing_seconds = what, self._told.costs.get(name, 0.0)
        self._tell(asdict(self.found))
        return time.process_time() < self._end

    def _groups(self, names: Iterable[str]) -> list[list[str]]:
        """Claims by what they draw, the cheapest first."""
        found: dict[str, list[str]] = {}
        for name in sorted(names, key=lambda n: self._told.costs.get(n, 0.0)):
            experiment = getattr(self.claims[name], "experiment", None)
            found.setdefault(experiment.id if experiment else f"claim {name}", []).append(name)
        return list(found.values())

    def _effect(self, claim: Any) -> float:
        """The largest change of the mean of a score over a block; of a claim that draws by itself, infinite."""
        if not hasattr(claim, "experiment"):
            return math.inf
        self.found.blocks += 1
        effect = block_effect(claim.experiment, self._told.store)
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

        with contextlib.nullcontext() if fresh else _read_only(self._told.store) as kept:
            session = None
            for name in group:
                if not self._begin(name, name):
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
            elif row.verdict == "undecided" and self._told.before.get(row.id, NEW).verdict != "undecided":
                self._undecided = self._undecided or name

    def _note(self, name: str, rows: Sequence[Any]) -> None:
        """By how much the numbers of a claim have moved."""
        found = self.found
        for row in rows:
            before, now = self._told.before.get(row.id, NEW).points, five(row.points)
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

    largest, draw, name = 0.0, experiment.simulate, experiment.id
    with _read_only(store) as kept:
        for point in experiment.points:
            try:
                new = run_block(draw, experiment=name, point=point, seed=SEED, index=0).scores
            except Exception:  # judging will say so
                return math.inf
            where = filed_under(draw, name, point, SEED, "cpu")
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


class _Edited(MetaPathFinder, SourceFileLoader):
    """Finds one module, with the edited source."""

    def __init__(self, edit: Edit) -> None:
        self._edit = edit
        parts = Path(edit.file).with_suffix("").parts
        self._package = parts[-1] == "__init__"
        super().__init__(".".join(parts[:-1] if self._package else parts), str(ROOT / edit.file))

    def find_spec(self, fullname: str, _path: Any, _target: Any = None) -> ModuleSpec | None:
        """The edited module and no other."""
        if fullname != self.name:
            return None
        inside = [str(Path(self.path).parent)] if self._package else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=inside
        )

    def get_code(self, _fullname: str) -> CodeType:
        """Never the bytecode of the file on disk."""
        return compile(self._edit.apply(ROOT), self.path, "exec", dont_inherit=True)


def judge(edit: Edit, told: Told, tell: Callable[[dict[str, Any]], object]) -> None:
    """Import the edited code in place of what is loaded, judge by it, and tell what is known as it grows."""
    found = Finding()
    try:
        for name in [n for n in sys.modules if n.partition(".")[0] in OWN]:  # two copies of a module go wrong
            del sys.modules[name]
        sys.meta_path.insert(0, _Edited(edit))
        judging = Judging(told, tell)
        found = judging.found
        judging.run()
    except BaseException:
        found.outcome, found.claim, found.error = "broken", "the import", traceback.format_exc()[-300:]
    found.doing = ""
    tell(asdict(found))


# --- beside it


class Trial:
    """A child that tries one edit of a file of `theory` or `simulate`; what it found comes through a pipe."""

    def __init__(self, edit: Edit, told: Told) -> None:
        self.edit, self._told = edit, told
        self._heard, self._killed, self._last = b"", False, time.monotonic()
        self._read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                null = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(null, stream)
                judge(edit, told, lambda found: os.write(write, (json.dumps(found) + "\n").encode()))
            finally:
                os._exit(0)
        os.close(write)

    def poll(self) -> dict[str, Any] | None:
        """What came out, or None while the child runs."""
        while select.select([self._read], [], [], 0)[0]:
            chunk = os.read(self._read, 1 << 16)
            if not chunk:
                _, _, used = os.wait4(self.pid, 0)
                os.close(self._read)
                return self._outcome(used.ru_utime + used.ru_stime)
            self._heard += chunk
            self._last = time.monotonic()
        doing = self._finding()["doing_seconds"]
        if not self._killed and time.monotonic() - self._last > 3 * self._told.seconds + HUNG * doing:
            self._killed = True
            os.kill(self.pid, signal.SIGKILL)
        return None

    def stop(self) -> None:
        """End the child."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _finding(self) -> dict[str, Any]:
        lines = [line for line in self._heard.decode().splitlines() if line.endswith("}")]
        return json.loads(lines[-1]) if lines else asdict(Finding())

    def _outcome(self, cpu: float) -> dict[str, Any]:
        found = self._finding()
        if found["doing"]:  # the child has not said its last word
            found |= {"outcome": "hung" if self._killed else "broken", "claim": found["doing"]}
            found["error"] = "" if self._killed else "the process died"
        del found["doing"], found["doing_seconds"]
        asked, seconds = len({*self._told.drawn, *self._told.judged}), round(cpu, 1)
        more = {"asked": asked, "seconds": seconds, "patience": self._told.seconds}
        return {**self.edit._asdict(), **found, **more}


def preload() -> None:
    """Import the libraries once, before any fork; each child imports the code on trial anew."""
    from verify.claims import registry

    for module in ("torch.func", "torch._dynamo", "torch.fx.experimental.symbolic_shapes", "scipy.stats",
                   "scipy.special", "scipy.optimize", "scipy.integrate", "sympy", "hypothesis.strategies",
                   "mpmath"):  # fmt: skip
        importlib.import_module(module)
    registry.papers()
