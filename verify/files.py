"""Files that are there whole or not at all, and leave nothing behind when the process is killed."""

from __future__ import annotations

import contextlib
import glob
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from verify.signals import handling, interrupt

try:
    import fcntl
except ImportError:  # on Windows a file that is open cannot be removed anyway
    fcntl = None


def replace_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write texts or bytes to files, all of them or none, each in one step: a reader sees the old file or the new.

    What a killed process has left of an earlier call is removed.

    Raises
    ------
    OSError
        If one of them cannot be written.
    """
    parts = {path: path.with_name(f"{path.name}.{os.getpid()}.part") for path in contents}
    for path in contents:
        _remove_stale(path)
    with contextlib.ExitStack() as stack, handling(signal.SIGTERM, interrupt):
        try:
            for path, part in parts.items():
                _write(stack.enter_context(_opened(part)), contents[path])
            for path, part in parts.items():
                part.replace(path)
        except BaseException:
            for part in parts.values():
                part.unlink(missing_ok=True)
            raise


def _write(file: BinaryIO, content: str | bytes) -> None:
    file.write(content.encode() if isinstance(content, str) else content)
    file.flush()
    os.fsync(file.fileno())
    if fcntl is None:  # there what is open cannot be renamed either
        file.close()


def _opened(path: Path) -> BinaryIO:
    """The file, locked as long as it is open: who removes stale ones leaves it alone."""
    while True:
        file = path.open("wb")
        _lock(file, wait=True)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # removed between being opened and being locked


def _remove_stale(path: Path) -> None:
    for part in path.parent.glob(f"{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(OSError), part.open("rb") as file:
            if _lock(file, wait=False):
                part.unlink()


def _lock(file: BinaryIO, *, wait: bool) -> bool:
    """Whether it could be had; not on every file system."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
