"""Progress of a computation of several parts, and its remaining time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

Tell = Callable[[str, float], None]

_EVERY = 10.0
"""Seconds between lines where there is no terminal."""


class Work:
    """Parts with guesses of their costs, and the share of all that is done.

    Examples
    --------
    >>> work = Work({"first": 3.0, "second": 1.0}, lambda what, share: print(what, share))
    >>> with work.part("first") as done:
    ...     done(0.5)
    first 0.0
    first 0.375
    >>> with work.part("second"):
    ...     pass
    second 0.75
    """

    def __init__(self, costs: Mapping[str, float], tell: Tell | None) -> None:
        self._costs, self._tell = dict(costs), tell
        self._behind = 0.0

    @contextmanager
    def part(self, name: str) -> Iterator[Callable[[float], None]]:
        """Go through one of them; what it gives is to be called with the share of it that is done."""

        def done(share: float) -> None:
            if self._tell is not None:
                total = sum(self._costs.values())
                self._tell(name, (self._behind + min(share, 1.0) * self._costs[name]) / total)

        done(0.0)
        yield done
        self._behind += self._costs[name]


@contextmanager
def progress(heading: str) -> Iterator[Tell | None]:
    """A live bar as in `on_terminal` where somebody looks at a terminal; in scripts and notebooks nothing."""
    if sys.stderr is None or not sys.stderr.isatty():  # none where Python runs without a console
        yield None
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
