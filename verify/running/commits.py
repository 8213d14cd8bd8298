"""Which commit the running code is of: that of its checkout, or the one it was built from."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

FILE = "COMMIT"
"""File next to the packages of `verify` that a build writes; see hatch_build.py."""


@cache
def commit() -> str:
    """Return the short commit of the running code, empty if it is unknown; see `commit_of`."""
    return commit_of(Path(__file__).parents[2])


def commit_of(root: Path) -> str:
    """Return the short commit of the code in a folder, with a plus sign if it has changes; empty if unknown."""
    try:
        # An installed package has no checkout to ask: the build wrote the commit into a file.
        if not (root / ".git").exists():
            return (root / "verify" / FILE).read_text(encoding="ascii").strip()
        run = subprocess.run(  # noqa: S603 - fixed words, no shell
            ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],  # noqa: S607 - the user's own git
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
        return run.stdout.strip()
    # The commit is information for a reader of the report: a missing or slow git stops no run.
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
