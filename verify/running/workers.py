"""The workers of a run: deaf to Ctrl-C, replaced when they die, stopped at once when the run ends early."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from typing import Any

from simulate.monte_carlo import DaskExecutor, SerialExecutor, open_executor
from verify.signals import handling, interrupt

DEATHS = 3
"""Lost workers after which a call fails."""

PATIENCE = 1.0
"""Seconds between two looks at calls of which none has finished."""


class WorkerLostError(RuntimeError):
    """A call never came back from its worker."""


@contextlib.contextmanager
def open_workers(workers: int, address: str | None = None) -> Iterator[Executor]:
    """`simulate.monte_carlo.open_executor`, fit for a terminal.

    An exception that passes through, an interruption above all, does not wait for the blocks in progress. To be
    terminated counts as an interruption too: what is finished is kept, and no worker stays behind.
    """
    # Children that the caller started are not ours to stop.
    others = set(multiprocessing.active_children())
    with contextlib.ExitStack() as stack:
        if address is not None or workers == 1:
            executor = stack.enter_context(open_executor(workers, address))
        else:
            executor = Pool(workers)
            stack.callback(executor.shutdown, cancel_futures=True)
        stack.enter_context(handling(signal.SIGTERM, interrupt))
        try:
            if isinstance(executor, Pool):
                executor.start()
            yield executor
        except BaseException:
            # Leaving the pool would wait for the blocks in progress: end its processes first.
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise


FEW = 32
"""Number of figures that one process draws while further workers would start."""


@contextlib.contextmanager
def open_map(calls: int, workers: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """``map`` for so many calls, by local processes if they are worth starting."""
    if calls <= FEW or workers == 1:
        yield map
    else:
        with open_workers(workers) as pool:
            yield pool.map


class Pool(Executor):
    """Local processes; after one has died, the next call finds new ones.

    A pool of the standard library is of no more use once a process is killed, by whom it may be; the calls
    underway end in `BrokenExecutor`, and `Calls` sends them again.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._stack = contextlib.ExitStack()
        self._processes: Executor = self._stack.enter_context(open_executor(workers))

    def start(self) -> None:
        """Start every process now: Ctrl-C, which a terminal sends to all, must reach this process alone.

        They inherit that it is ignored.
        """
        with handling(signal.SIGINT, signal.SIG_IGN):
            # The pool starts a process when a call finds none idle: as many calls start all of them.
            for _ in range(self.workers):
                self._processes.submit(os.getpid)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` in one of the processes."""
        try:
            return self._processes.submit(fn, *args, **kwargs)
        except BrokenExecutor:
            # A pool that has lost a process refuses all further calls.
            self._stack.close()
            self._processes = self._stack.enter_context(open_executor(self.workers))
            self.start()
            return self._processes.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the processes go."""
        self._processes.shutdown(wait, cancel_futures=cancel_futures)
        self._stack.close()


@dataclass(eq=False)
class Call:
    """A function to call on a worker, and who takes its future."""

    deliver: Callable[[Future[Any]], None]
    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    deaths: int = 0


Landed = list[tuple[Call, Future[Any]]]


class Calls:
    """Calls underway on an executor: the finished ones come back, those whose worker died are sent again.

    Parameters
    ----------
    executor
        Any executor. Only a `Pool` has new workers to offer; Dask finds others by itself.
    workers
        Calls that run at a time, as far as the executor does not know better.
    """

    def __init__(self, executor: Executor, workers: int) -> None:
        self.executor, self._workers = executor, workers
        self._underway: dict[Future[Any], Call] = {}
        self._to_resend: deque[Call] = deque()

    @property
    def workers(self) -> int:
        """Calls that run at a time; on a cluster its cores, which come and go."""
        return max(1, self.executor.cores) if isinstance(self.executor, DaskExecutor) else self._workers

    @property
    def room(self) -> int:
        """Number of further calls that keep the workers busy; none while one is watched alone."""
        underway = [*self._underway.values(), *self._to_resend]
        # A call that has already lost two workers runs alone, so that it alone is to blame for a third.
        if any(call.deaths == DEATHS - 1 for call in underway):
            return 0
        one_by_one = isinstance(self.executor, SerialExecutor) or self.workers == 1
        # Two calls per worker: the next one waits at the worker when it finishes one. A serial executor
        # computes while it submits, so more than one would only delay urgent calls.
        return (1 if one_by_one else 2 * self.workers) - len(underway)

    def turn(self, calls: Iterable[Call] = (), *, wait_for_one: bool = True) -> Landed:
        """Send these calls and take in those that have finished; wait for one of all, but not for long."""
        for call in calls:
            self._submit(call)
        self._send_again()
        patience = PATIENCE if wait_for_one else 0.0
        finished, _ = wait(self._underway, timeout=patience, return_when=FIRST_COMPLETED)
        landed = [
            end
            for future in finished
            if (end := self._result_unless_resent(self._underway.pop(future), future))
        ]
        # Futures of a lost scheduler never finish: nothing would end the wait.
        if not finished and isinstance(self.executor, DaskExecutor) and self.executor.lost:
            lost = _failed_future(WorkerLostError(self.executor.lost))
            landed += [(self._underway.pop(future), lost) for future in list(self._underway)]
        return landed

    def _submit(self, call: Call) -> None:
        try:
            if isinstance(self.executor, DaskExecutor) and self.executor.lost:
                raise WorkerLostError(self.executor.lost)
            future = self.executor.submit(call.function, **call.arguments)
        except Exception as error:  # delivered like any other; a call never sent would never arrive
            future = _failed_future(error)
        self._underway[future] = call

    def _send_again(self) -> None:
        while self._to_resend:
            alone = self._to_resend[0].deaths == DEATHS - 1
            # It must run alone: wait until the others are back.
            if alone and self._underway:
                return
            self._submit(self._to_resend.popleft())
            if alone:
                return

    def _result_unless_resent(self, call: Call, future: Future[Any]) -> tuple[Call, Future[Any]] | None:
        """The call with what came of it; None if it is to be sent again."""
        # `exception()` of a cancelled future raises instead of returning.
        error = CancelledError() if future.cancelled() else future.exception()
        # Only a local pool loses every call with one process. Dask sends its own calls again.
        if not isinstance(self.executor, Pool) or not isinstance(error, BrokenExecutor):
            return call, (_failed_future(self._as_worker_lost(error)) if error else future)
        call.deaths += 1
        if call.deaths == DEATHS:
            return call, _failed_future(_worker_died(DEATHS))
        self._to_resend.append(call)
        return None

    def _as_worker_lost(self, error: BaseException) -> BaseException:
        """Explain an error that Dask reports of a worker or its scheduler."""
        if not isinstance(self.executor, DaskExecutor):
            return error
        if isinstance(error, CancelledError) or self.executor.lost:
            return WorkerLostError(self.executor.lost or "the Dask scheduler has dropped the call")
        return _worker_died(self.executor.deaths(error)) if self.executor.deaths(error) else error


def _worker_died(times: int) -> WorkerLostError:
    return WorkerLostError(f"its worker died {times} times, perhaps for want of memory")


def _failed_future(error: BaseException) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future
