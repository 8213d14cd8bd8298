"""Lines of JSON in a file that grows while training runs."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

from verify.practice.watch.record import CurvatureRecord, record_of


class Journal:
    """A file that lines are appended to, each at once. If that fails, as on a full disk, one warning says so.

    Raises
    ------
    ValueError
        If the file cannot be written at all.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._warned = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Tried now, before hours of training.
            with self.path.open("ab"):
                pass
        except OSError as error:
            raise ValueError(f"cannot write file {self.path}: {_cause(error)}") from None

    def write(self, line: str) -> None:
        """Append a line."""
        try:
            self._append(line.encode())
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"cannot write records to {self.path}: {_cause(error)}; training continues, the watcher has them",
                    stacklevel=2,
                )

    def _append(self, line: bytes) -> None:
        # Unbuffered, so that each line is one write of the system.
        with self.path.open("a+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - 1, 0))
            # A machine that went down, or a full disk, leaves a part of a line.
            ended = file.read(1) in (b"", b"\n")
            file.write(b"\n" * (not ended) + line + b"\n")


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
