"""What a run is doing and how far it is, on the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rich.progress import BarColumn, Progress as Bar, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from verify.heartbeat import Heartbeat
from verify.page.terminal import console
from verify.running.engine import Session

__all__ = ["Activity", "Watched"]


class Watched:
    """How far a session is, in words, also between two of its own reports: meanwhile the clock runs down."""

    def __init__(self, session: Session, told: Callable[[], None] = lambda: None) -> None:
        self._session, self._told = session, told
        self.progress, self._at = session.progress(), time.monotonic()
        session.listener = self._update

    def __str__(self) -> str:
        return str(self.progress.after(time.monotonic() - self._at))

    def _update(self) -> None:
        self.progress, self._at = self._session.progress(), time.monotonic()
        self._told()


class Activity:
    """A live line on a terminal; elsewhere a line after every three seconds of silence."""

    def __init__(self, what: str) -> None:
        terminal = console(sys.stderr)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            _State(),
            TimeElapsedColumn(),
            console=terminal,
            transient=True,
            disable=not terminal.is_terminal,
        )
        self._task = self._bar.add_task(what, total=None, state="")
        self._heart = None if terminal.is_terminal else Heartbeat(_say, what)

    def __enter__(self) -> Activity:
        self._bar.start()
        if self._heart is not None:
            self._heart.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._heart is not None:
            self._heart.__exit__()
        self._bar.stop()

    def doing(self, what: str | Callable[[], str]) -> None:
        """From now on something else is being done; a function is asked whenever it is shown."""
        words, state = ("", what) if callable(what) else (what, "")
        self._bar.reset(self._task, description=words, total=None, state=state)
        if self._heart is not None:
            self._heart.doing(what)

    def judging(self, session: Session) -> None:
        """From now on a session is judged."""
        watched = Watched(session, lambda: self._judged(watched))
        state = watched.__str__
        self._bar.reset(self._task, description="judging", total=watched.progress.total, state=state)
        if self._heart is not None:
            self._heart.doing(state)

    def _judged(self, watched: Watched) -> None:
        self._bar.update(self._task, completed=watched.progress.done)
        if self._heart is not None:
            self._heart.beat()


class _State(ProgressColumn):
    """How far it is, asked anew whenever the line is drawn."""

    def render(self, task: Task) -> Text:
        state: str | Callable[[], str] = task.fields["state"]
        return Text(state() if callable(state) else state)


def _say(line: str) -> None:
    sys.stderr.write(f"  {line}\n")
