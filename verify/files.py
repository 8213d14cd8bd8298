"""Files that are there whole or not at all; what a killed process leaves is removed later."""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from verify.signals import handling, interrupt

STALE = 3600.0
"""Seconds after which a part is one that a killed process has left: nothing takes as long to be written."""


@contextlib.contextmanager
def writing(what: str, place: Path) -> Iterator[None]:
    """Refuse what cannot be written, by its name and place.

    Raises
    ------
    ValueError
        In place of an `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise ValueError(f"{what} cannot be written to {place}: {error.strerror or error}") from None


def replace_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write texts or bytes to files, all of them or none, each in one step: a reader sees the old file or the new.

    What a killed process has left of an earlier call is removed an hour later.

    Raises
    ------
    OSError
        If one of them cannot be written.
    """
    # In the folder of the file, for a rename is atomic only within a file
    # system. The process id keeps two runs apart.
    parts = {path: path.with_name(f"{path.name}.{os.getpid()}.part") for path in contents}
    for path in contents:
        for part in path.parent.glob(f"{glob.escape(path.name)}.*.part"):
            with contextlib.suppress(OSError):
                # Another run may be writing its part right now: only an old one belongs to a killed process.
                if time.time() - part.stat().st_mtime > STALE:
                    part.unlink()
    # SIGTERM would end the process at once and leave the parts behind.
    with handling(signal.SIGTERM, interrupt):
        try:
            for path, part in parts.items():
                content = contents[path]
                with part.open("wb") as file:
                    file.write(content.encode() if isinstance(content, str) else content)
                    file.flush()
                    # On disk before the rename: a power cut could otherwise leave an empty file under the
                    # final name.
                    os.fsync(file.fileno())
            # All parts are complete before the first file is replaced.
            for path, part in parts.items():
                # A kill between two of these leaves files of two runs next to each other.
                part.replace(path)
        except BaseException:
            for part in parts.values():
                part.unlink(missing_ok=True)
            raise
