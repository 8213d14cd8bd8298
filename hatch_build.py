"""Writes into wheels and source archives which commit they are made of; `verify.running.commits` reads it."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "verify/COMMIT"


class CommitHook(BuildHookInterface[Any]):
    """Adds `FILE` with the commit of the checkout; nothing where none can be told.

    A source archive, which is no checkout, holds the file already. An editable installation has none: what it runs
    is the checkout, which changes.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files of an archive are gathered."""
        root = Path(self.root)
        if version == "editable" or not (root / ".git").exists():
            return
        # read as a file: to import the package takes numpy and more, which a build has not
        commit = runpy.run_path(str(root / "verify/running/commits.py"))["commit_of"](root)
        if commit:
            self._folder = tempfile.TemporaryDirectory()
            made = Path(self._folder.name, "COMMIT")
            made.write_text(f"{commit}\n", encoding="ascii")
            build_data["force_include"][str(made)] = FILE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - as hatchling calls it
        """Called when the archive is written."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
