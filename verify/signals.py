"""Signals: Ctrl-C and a request to terminate end a run alike, and are told from what code of others raises."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any, NoReturn


class Interrupted(KeyboardInterrupt):
    """Raised by a signal."""


def interrupt(*_: Any) -> NoReturn:
    """A handler of signals."""
    raise Interrupted


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """To be interrupted or terminated raises `Interrupted` for a while; what is ignored, as under nohup, stays so."""
    with contextlib.ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                stack.enter_context(handling(number, interrupt))
        yield


@contextlib.contextmanager
def handling(number: signal.Signals, handler: Any) -> Iterator[None]:
    """A handler of a signal for a while."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only there may a handler be set
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def by_signal(error: BaseException) -> bool:
    """Whether an interruption comes from outside: under `interruptible`, a mere `KeyboardInterrupt` was raised by code.

    >>> by_signal(Interrupted()), by_signal(ValueError())
    (True, False)
    """
    ours = signal.getsignal(signal.SIGINT) is interrupt
    return isinstance(error, Interrupted) or (isinstance(error, KeyboardInterrupt) and not ours)
