"""Location of the pages that the papers of this package bring, in a checkout and in an installation.

A link in the checkout would make the two one, but not every file system and not every copy of a tree keeps links.
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
CHECKOUT = Path(__file__).parents[2] / "docs/claims"


def page(paper: str) -> Path:
    """The Markdown file of a paper, there or not: `hatch_build.py` puts it next to the paper in wheels.

    >>> page("granziol2022").read_text(encoding="utf-8").splitlines()[0][:10]
    '# Granziol'
    """
    installed = HERE / paper / "docs.md"
    return installed if installed.exists() else CHECKOUT / f"{paper}.md"
