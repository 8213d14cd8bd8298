"""What wheels and source archives hold beside the code: the commit they are made of, and the pages of the papers."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "verify/COMMIT"


class Hook(BuildHookInterface[Any]):
    """Adds the commit of the checkout as `FILE`, where one can be told, and the pages of the papers to wheels.

    `verify.running.commits` reads the one, `verify.claims.shipped` the other. A source archive, which is no checkout,
    holds the commit already. An editable installation gets neither: it runs from the checkout, which changes.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files of an archive are gathered."""
        if version == "editable":
            return
        root = Path(self.root)
        if self.target_name == "wheel":
            pages = {
                str(page): f"verify/claims/{page.stem}/docs.md"
                for page in (root / "docs/claims").glob("*.md")
            }
            build_data["force_include"].update(pages)
        if (root / ".git").exists():
            self._record(root, build_data)

    def _record(self, root: Path, build_data: dict[str, Any]) -> None:
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
