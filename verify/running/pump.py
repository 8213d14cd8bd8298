"""The pump of a run: which blocks are drawn next, what has come back of them, and where they are kept.

Whoever waits for replicates turns the pump, and lets each run that has all it asked for look at them:

    while not run.done:
        for complete in pump.turn([run]):
            complete.look()
"""

from __future__ import annotations

import hashlib
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, TypeVar

import numpy as np

from simulate.monte_carlo import BLOCK, BlockResult, Point, Scores, run_block
from verify.model import Simulator
from verify.results import RunRecord
from verify.running.origin import Key, Origin, OtherCodeError, draw_here, filed_under, origin, why_not_stored
from verify.running.settings import COUNTED, Settings
from verify.running.store import Store
from verify.running.workers import Call, Calls, WorkerLostError

SHORT = 0.02
"""Seconds of a call worth its way to a worker and back: as many blocks are drawn in one, once their cost is known."""

MOST_AT_ONCE = 32
"""Most blocks of a call."""


class Draws(ABC):
    """Blocks of one simulator at one point; what is made of them is up to those who ask.

    Parameters
    ----------
    name
        What streams and blocks are filed under.
    simulate, point, device
        What is drawn.
    size
        Replicates of one block.
    most_blocks
        Blocks of the whole budget.

    Attributes
    ----------
    wanted
        Replicates that are asked for now.
    done
        Whether no more of them will be.
    scores
        All that was there at the last look, in the order of the replicates.
    expected, seconds
        What it takes by declaration, and has taken.
    """

    def __init__(
        self, name: str, simulate: Simulator, point: Point, device: str, size: int, most_blocks: int
    ) -> None:
        self.name, self.simulate, self.point, self.size = name, simulate, point, size
        self.most_blocks = most_blocks
        self.scores: Scores = {}
        self.stored: dict[int, BlockResult] = {}
        self.seconds, self.expected = 0.0, 0.0
        self.error = ""
        self.wanted, self.done = 0, False
        self.key: Key | None = None
        self.origin = origin(simulate, point, device)
        self._submitted, self._received, self.drawn = 0, 0, 0
        self._blocks: dict[int, Scores] = {}

    @abstractmethod
    def look(self) -> None:
        """Ask for more replicates or end the run, now that all requested ones have arrived."""

    @property
    def replicates(self) -> int:
        """Replicates so far."""
        return self.size * self._received

    @property
    def blocks(self) -> int:
        """Blocks whose scores are there."""
        return len(next(iter(self.scores.values()), ())) // self.size

    @property
    def share(self) -> float:
        """Share of the budget that is finished; 1 if the run is done."""
        return 1.0 if self.done else min(self._received / self.most_blocks, 1.0)

    @property
    def fresh(self) -> float:
        """Share of the finished blocks that were drawn in this run, not read from the store."""
        return self.drawn / self._received if self._received else 0.0

    @property
    def at_once(self) -> int:
        """Number of blocks that one call draws: at most as many as were drawn before."""
        # A clock may be too coarse to show that a block takes any time.
        pace = self._received / max(self.seconds, 1e-9)
        return max(1, min(self.drawn, MOST_AT_ONCE, int(SHORT * pace)))

    def next_blocks(self) -> list[int]:
        """Return the indices of the blocks that the next call draws; stored ones on the way are received at once."""
        found: list[int] = []
        while not self.done and self.size * self._submitted < self.wanted and len(found) < self.at_once:
            index = self._submitted
            self._submitted += 1
            if index in self.stored:
                self.receive(index, self.stored.pop(index))
            else:
                found.append(index)
        return found

    def receive(self, index: int, result: BlockResult) -> None:
        """Add a finished block; once all requested ones have arrived, join their scores."""
        # A simulator whose scores depend on the draw would leave arrays of different lengths.
        first = self.scores or next(iter(self._blocks.values()), result.scores)
        if result.scores.keys() != first.keys():
            raise ValueError(
                f"scores must be {', '.join(first)} in every block, got {', '.join(result.scores)}"
            )
        self._blocks[index] = result.scores
        self._received += 1
        self.seconds += result.seconds
        if self.replicates == self.wanted:
            # Blocks arrive in any order. Joined in the order of replicates, they do not depend on timing.
            new = [self._blocks.pop(i) for i in sorted(self._blocks)]
            parts = [self.scores, *new] if self.scores else new
            self.scores = {name: np.concatenate([part[name] for part in parts]) for name in first}

    def fail(self, error: BaseException) -> None:
        """End this run with an error."""
        # These errors say all there is to say; a traceback would only show code of ours.
        one_line = isinstance(error, WorkerLostError | OtherCodeError)
        self.error = f"{error}\n" if one_line else traceback_of(error)
        self.done = True

    def record(self) -> RunRecord:
        """Return the record of a run that a replay must reproduce."""
        return RunRecord(
            experiment=self.name,
            parameters=dict(self.point),
            replicates=self.replicates,
            seconds=round(self.seconds, 3),
            sha256=_digest(self.scores),
        )


_AnyDraws = TypeVar("_AnyDraws", bound=Draws)


class Pump:
    """Has the blocks of many runs drawn, and other calls made, on one executor.

    Parameters
    ----------
    executor
        Where blocks are drawn; see `simulate.monte_carlo.open_executor`.
    settings
        Seed, device and workers.
    store
        Where finished blocks are kept and those of earlier runs are found.

    Attributes
    ----------
    runs
        All that is drawn unless something more urgent is, in this order.
    listener
        Called after every turn.
    """

    def __init__(self, executor: Executor, settings: Settings, store: Store | None = None) -> None:
        self.settings, self.store = settings, store
        self._drawn_by = settings.drawn_by
        self.runs: list[Draws] = []
        self.listener: Callable[[], None] | None = None
        self._calls = Calls(executor, settings.workers)
        self._queued_calls: deque[Call] = deque()
        self._complete: list[Draws] = []

    @property
    def workers(self) -> int:
        """Blocks drawn at a time."""
        return self._calls.workers

    def stocked(self, run: _AnyDraws) -> _AnyDraws:
        """The run with the blocks that earlier ones have left."""
        if self.store is not None:
            s = self.settings
            place = f"{s.device}, {self._drawn_by}" if s.draws else s.device
            run.key = filed_under(run.simulate, run.name, run.point, s.seed, s.device, place)
            if run.key is not None:
                run.stored = self.store.read(run.key, run.most_blocks, run.size)
        return run

    def call(
        self, deliver: Callable[[Future[Any]], None], function: Callable[..., Any], **arguments: Any
    ) -> None:
        """Queue a call, ahead of blocks that nobody waits for; a later turn delivers its future."""
        self._queued_calls.append(Call(deliver, function, arguments))

    def turn(self, first: Sequence[Draws] = ()) -> list[Draws]:
        """Keep the workers fed, these runs first, and take in what has finished.

        Returns the runs that now have all they asked for, each of them once: it is their turn to look.
        """
        room = self._calls.room
        calls = self._blocks(first, room)
        # A run with all it asked for looks first: what it asks for next is more urgent than what follows.
        while self._queued_calls and len(calls) < room and not self._complete:
            calls.append(self._queued_calls.popleft())
        if not self._complete:
            calls += self._blocks(self.runs, room - len(calls))
        for call, future in self._calls.turn(calls, wait_for_one=not self._complete):
            call.deliver(future)
        if self.listener:
            self.listener()
        complete, self._complete = self._complete, []
        return complete

    def _blocks(self, runs: Iterable[Draws], most: int) -> list[Call]:
        """Return calls for at most `most` blocks that these runs want."""
        wanted: list[Call] = []
        for run in runs:
            while len(wanted) < most and (indices := self._next_blocks(run)):
                wanted.append(self._call(run, indices))
            # Stored blocks may have completed this run: it must not wait for more blocks to be sent.
            if self._complete:
                break
        return wanted

    def _next_blocks(self, run: Draws) -> list[int]:
        before = run.replicates
        try:
            indices = run.next_blocks()
        except Exception as error:  # a stored block is as good or bad as one just drawn
            run.fail(error)
            return []
        if before < run.replicates:
            self._mark_if_complete(run)
        return indices

    def _call(self, run: Draws, indices: list[int]) -> Call:
        arguments = {
            "draw": run_block if run.size == BLOCK else partial(run_block, size=run.size),
            "simulate": run.simulate,
            "experiment": run.name,
            "point": run.point,
            "seed": self.settings.seed,
            "indices": indices,
            "device": self.settings.device,
            "counted": self._drawn_by == COUNTED,
        }
        return Call(partial(self._receive, run, indices), draw_here, arguments)

    def _receive(
        self, run: Draws, indices: list[int], future: Future[tuple[list[BlockResult], Origin]]
    ) -> None:
        # Another block broke this run: its claims are broken whatever this one says.
        if run.error:
            return
        try:
            results, there = future.result()
            # Raises if the worker has other code: then the blocks count for nothing.
            unfit = why_not_stored(run.origin, there)
            for index, result in zip(indices, results, strict=True):
                if self.store is not None and run.key is not None:
                    self.store.leave_out(unfit) if unfit else self.store.add(run.key, index, result)
                run.drawn += 1
                run.receive(index, result)
            self._mark_if_complete(run)
        except Exception as error:  # breaks the claims on this run and no others
            run.fail(error)

    def _mark_if_complete(self, run: Draws) -> None:
        if run.replicates == run.wanted:
            self._complete.append(run)


class Asked:
    """The result of a function that the workers call while other results are waited for.

    Parameters
    ----------
    pump
        What has it called.
    function, arguments
        A function that workers find by its name, and what it is called with.
    """

    def __init__(self, pump: Pump, function: Callable[..., Any], **arguments: Any) -> None:
        self._pump, self._arrived = pump, list[Future[Any]]()
        pump.call(self._arrived.append, function, **arguments)

    def result(self) -> Any:
        """Run the pump until the call has ended; return its result, or raise its error."""
        while not self._arrived:
            for complete in self._pump.turn():
                complete.look()
        return self._arrived[0].result()


def traceback_of(error: BaseException) -> str:
    """An exception as Python prints it."""
    return "".join(traceback.format_exception(error))


def _digest(scores: Scores) -> str:
    digest = hashlib.sha256()
    # Sorted names, the width and a fixed byte order: the hash depends neither on the machine nor on the order
    # in which the simulator returns its scores.
    for name in sorted(scores):
        width = f"[{scores[name].shape[1]}]" if scores[name].ndim == 2 else ""
        digest.update(
            f"{name}{width}".encode() + b"\0" + np.ascontiguousarray(scores[name], dtype="<f8").tobytes()
        )
    return digest.hexdigest()
