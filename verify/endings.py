"""End of a command: its exit status, and one line for an error.

Exit status 0 as expected, 1 not as expected (a surprise, a replay that differs, a registered claim
that is missing, too little decided), 2 bad input or a crash, 130 interrupted. With LOSSCURV_TRACEBACK=1 in the
environment the traceback stands above the line of an error.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, TextIO

from verify.escapes import escaped
from verify.signals import interruptible

AS_EXPECTED, SURPRISE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

LONGEST = 1000
"""Characters of a message."""


def ended(run: Callable[[], int]) -> int:
    """Run a command to its end, whatever that is, and return its status."""
    _prepare_streams()
    # Progress and errors may go to a pipe that nobody reads: that must not end the command.
    stream: Any = _Forgiving(sys.stderr)
    with contextlib.redirect_stderr(stream):
        try:
            with interruptible():
                return _flushed(run())
        except BrokenPipeError:  # the reader, say `head`, has what it wanted
            # Otherwise the interpreter would try to write the rest at its end, and complain.
            _discard(sys.stdout)
            return AS_EXPECTED
        except KeyboardInterrupt:
            sys.stderr.write("losscurv: interrupted\n")
            return INTERRUPTED
        except BaseException as error:  # a crash must not look like a report that came out otherwise
            show_traceback(error)
            return refuse(one_line(error))
        finally:
            stream.flush()


def refuse(line: str) -> int:
    """Say what is wrong, and return the status for it."""
    sys.stderr.write(f"losscurv: {line}\n")
    # The exit status is 2 whether or not standard output can still be written.
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        return BAD_INPUT
    _discard(sys.stdout)
    return BAD_INPUT


def show_traceback(error: BaseException) -> None:
    """Print the traceback of an error where LOSSCURV_TRACEBACK is set."""
    if os.environ.get("LOSSCURV_TRACEBACK"):
        traceback.print_exception(error)


def one_line(error: BaseException) -> str:
    """Return one line that says what went wrong and what to do."""
    # An error of the system names its file and reason; its `str` would add an error number.
    if isinstance(error, OSError) and error.strerror:
        what = f"{error.filename}" if error.filename else "the output cannot be written"
        hint = "; free some space and run again" if error.errno == errno.ENOSPC else ""
        return fit_to_line(f"{what}: {error.strerror}{hint}")
    # The message of these errors is written for the user; another type is a defect of ours.
    if isinstance(error, ValueError | OSError | ImportError):
        return fit_to_line(str(error))
    if isinstance(error, MemoryError):
        return "memory must suffice, got none left; use smaller sizes or fewer workers"
    what = " ".join(traceback.format_exception_only(error)[-1].split())
    return fit_to_line(f"stopped by a defect, {what}; LOSSCURV_TRACEBACK=1 losscurv ... shows where")


def fit_to_line(text: str) -> str:
    """Return a text as one line that a terminal can show, cut in the middle if it is too long to be read."""
    line = escaped(text.strip())
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"


class _Forgiving:
    """A stream whose reader may go: what is said of a command's work must not end it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write if that can be done."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush if that can be done; what cannot be said is not kept."""
        try:
            self._stream.flush()
        except OSError:
            _discard(self._stream)


def _prepare_streams() -> None:
    # one that was closed leads nowhere, or the next file opened would take its number
    sys.stdout, sys.stderr = (stream or _nowhere() for stream in (sys.stdout, sys.stderr))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters gets question marks


def _nowhere() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _flushed(status: int) -> int:
    """A full disk or a reader that has gone shows here, not while the interpreter ends."""
    # A full disk or a reader that has gone must show now: at the end of the
    # interpreter it is too late for an exit status.
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
    return status


def _discard(stream: TextIO) -> None:
    """Send what is still buffered nowhere: the interpreter would complain about it, or say it to others, at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        # The interpreter flushes at its end: give it a stream that takes everything.
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()
