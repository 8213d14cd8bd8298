"""What earlier runs have left in the folder of a report."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path

from verify.page.report.links import ABOUT, CARDS

__all__ = ["MADE_BY", "remove_stale"]

MADE_BY = '<meta name="generator" content="losscurv'
"""What the head of every page says, within so many letters of its start."""

HEAD = 2000


def remove_stale(folder: Path, kept: Collection[str]) -> None:
    """Remove the pages of an earlier report that this one has no use for; files of others stay."""
    found = [folder / ABOUT, *sorted((folder / CARDS).glob("*.html"))]
    for path in found:
        if path.relative_to(folder).as_posix() not in kept and path.is_file() and _ours(path):
            path.unlink()
    with contextlib.suppress(OSError):  # not there, or not empty
        (folder / CARDS).rmdir()


def _ours(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return MADE_BY in file.read(HEAD)
