"""Lines of JSON in a file that grows while training runs: whole ones only, whatever becomes of process or disk."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import warnings
from pathlib import Path
from typing import BinaryIO

from verify.practice.watch.record import CurvatureRecord, record_of


class Journal:
    """A file that lines are appended to, each in one write.

    A line that does not go into it, as on a full disk, is taken back, kept, and tried again with the next one; a
    warning says so once. What the file held before stays.

    Raises
    ------
    ValueError
        If the file cannot be written at all.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._waiting: list[str] = []
        self._warned = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Tried now, before hours of training.
            with self.path.open("ab"):
                pass
        except OSError as error:
            raise ValueError(f"cannot write file {self.path}: {_cause(error)}") from None

    def write(self, line: str) -> None:
        """Append a line, and those that are waiting before it."""
        self._waiting.append(line)
        try:
            self._append("".join(f"{waiting}\n" for waiting in self._waiting).encode())
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"cannot write records to {self.path}: {_cause(error)}; training continues, they are kept",
                    stacklevel=2,
                )
            return
        self._waiting.clear()

    def _append(self, data: bytes) -> None:
        # Unbuffered, so that each line is one write of the system.
        with self.path.open("a+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if end and not _ends_a_line(file, end):  # of another program, or a machine that went down
                data = b"\n" + data
            try:
                written = file.write(data)
                # A full disk takes a part of the line: take it back.
                if written != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                with contextlib.suppress(OSError):
                    file.truncate(end)
                raise


def _ends_a_line(file: BinaryIO, end: int) -> bool:
    file.seek(end - 1)
    return file.read(1) == b"\n"


def read_records(file: str | os.PathLike[str], *, run: int = -1) -> tuple[CurvatureRecord, ...]:
    """The records of a file that a watcher wrote, also of a training that was killed.

    Parameters
    ----------
    file
        Lines of JSON.
    run
        Which of the runs that were appended one after the other, as the index of a list; the latest if left out.

    Raises
    ------
    ValueError
        If the file cannot be read, or holds no such run.
    """
    try:
        # A line may be cut within a character.
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ValueError(f"cannot read file {file}: {_cause(error)}") from None
    runs: list[list[CurvatureRecord]] = []
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue  # cut off by a machine that went down
        if isinstance(found, dict) and "watch" in found:
            runs.append([])
        elif isinstance(found, dict) and runs and "step" in found and "outcome" in found:
            runs[-1].append(record_of(found))
    try:
        return tuple(runs[run])
    except IndexError:
        raise ValueError(f"run must be one of the {len(runs)} runs in {file}, got {run}") from None


def _cause(error: OSError) -> str:
    return error.strerror or str(error)
