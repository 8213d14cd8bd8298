"""No silence: what is being done is said every three seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Heartbeat:
    """Says from a thread of its own what the main one is at, so that long calls are not silent.

    Parameters
    ----------
    write
        Takes one line.
    what
        What is being done, in words; a function is asked at every line.

    Examples
    --------
    >>> said = []
    >>> with Heartbeat(said.append, "loading") as heart:
    ...     heart.doing("writing the page")
    >>> said  # neither took three seconds
    []
    """

    EVERY = 3.0
    """Seconds between two lines."""

    def __init__(self, write: Callable[[str], None], what: str | Callable[[], str]) -> None:
        self._write, self._end = write, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.doing(what)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def doing(self, what: str | Callable[[], str]) -> None:
        """Set the text of what is being done."""
        # One assignment: the other thread never sees a text with the time of another.
        self._doing = what, time.monotonic()

    def _run(self) -> None:
        while not self._end.wait(self.EVERY):
            what, since = self._doing
            self._write(what() if callable(what) else f"{what}, {time.monotonic() - since:.0f} s")
