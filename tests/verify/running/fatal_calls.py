"""Calls for workers that die; each new worker imports little else than this module."""

import os
import signal
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np

from simulate.monte_carlo import BLOCK, BlockResult
from verify.running.workers import Call, Calls, Landed


def die(here: Path | None = None) -> int:
    """Kill the worker; with a file, only if that is not there yet."""
    if here is None or not here.exists():
        if here is not None:
            here.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def nap(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def heard() -> bool:
    return signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def plain_block(simulate: Any, **arguments: Any) -> BlockResult:
    """Without the threads of torch, which takes seconds to load in every new worker."""
    return BlockResult(simulate(arguments["index"]), 0.01)


def harmless(index: int) -> dict[str, Any]:
    return {"x": np.random.default_rng(index).random(BLOCK)}


class Basket:
    """Futures as they come."""

    def __init__(self, executor: Executor, count: int = 2) -> None:
        self.calls, self.found = Calls(executor, count), {}

    def send(self, name: str, function: Any, **arguments: Any) -> None:
        call = Call(lambda future: self.found.__setitem__(name, future), function, arguments)
        self.take(self.calls.turn([call], wait_for_one=False))

    def take(self, landed: Landed) -> None:
        for call, future in landed:
            call.deliver(future)

    def all(self, count: int) -> dict[str, Future[Any]]:
        deadline = time.monotonic() + 30
        while len(self.found) < count and time.monotonic() < deadline:
            self.take(self.calls.turn())
        return self.found
