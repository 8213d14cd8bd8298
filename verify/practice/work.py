"""Progress of a computation, and its remaining time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, float], None]
"""Takes what is being done, and the share of all work that is done."""

_EVERY = 10.0
"""Seconds between lines where there is no terminal."""


def silent(what: str, share: float) -> None:
    """Tell nobody of the progress."""


@contextmanager
def progress(heading: str) -> Iterator[Tell]:
    """A live bar as in `on_terminal` where somebody looks at a terminal; in scripts and notebooks nothing."""
    if sys.stderr is None or not sys.stderr.isatty():  # none where Python runs without a console
        yield silent
        return
    with on_terminal(heading) as tell:
        yield tell


@contextmanager
def on_terminal(heading: str) -> Iterator[Tell]:
    """A live bar on standard error with the time left; a line every ten seconds where that is no terminal."""
    from rich.progress import BarColumn, Progress, TextColumn

    from verify.page.terminal import console as console_of

    console = console_of(sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"))
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(heading, total=1.0, left="")
    started = spoken = time.monotonic()

    def tell(what: str, share: float) -> None:
        nonlocal spoken
        now = time.monotonic()
        left = _time_left(now - started, share)
        bar.update(task, completed=share, description=what, left=left)
        if bar.disable and now - spoken > _EVERY:
            spoken = now
            sys.stderr.write(f"  {what}: {100 * share:.0f} %, {left}\n")

    with bar:
        yield tell


def _time_left(elapsed: float, share: float) -> str:
    if share <= 0 or elapsed < 1:
        return f"{elapsed:.0f} s"
    return f"{elapsed:.0f} s, about {elapsed / share - elapsed:.0f} s left"
