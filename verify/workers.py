"""The workers of a run: started deaf to Ctrl-C, stopped at once when the run ends early."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

from simulate.monte_carlo import open_executor

__all__ = ["open_workers"]


@contextlib.contextmanager
def open_workers(workers: int, address: str | None = None) -> Iterator[Executor]:
    """`simulate.monte_carlo.open_executor`, fit for a terminal.

    An exception that passes through, an interruption above all, does not wait for the blocks in progress. To be
    terminated counts as an interruption too: what is finished is kept, and no worker stays behind.
    """
    others = set(multiprocessing.active_children())
    with open_executor(workers, address) as executor, _handling(signal.SIGTERM, _interrupt):
        try:
            if address is None and workers > 1:
                _start(executor, workers)
            yield executor
        except BaseException:
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise


def _start(executor: Executor, workers: int) -> None:
    """Start every worker now: Ctrl-C, which a terminal sends to all, must reach this process alone.

    They inherit that it is ignored.
    """
    with _handling(signal.SIGINT, signal.SIG_IGN):
        for _ in range(workers):
            executor.submit(os.getpid)


@contextlib.contextmanager
def _handling(number: signal.Signals, handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only there may a handler be set
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
