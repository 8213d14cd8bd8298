"""Where things stand on the pages of a report, and how one page leads to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["ABOUT", "CARDS", "REPORT", "Links"]

REPORT, ABOUT, CARDS = "report.html", "about.html", "cards"
"""The first page, what is known of the whole run, and the folder of the pages of cards, as seen from the report."""


class Links(NamedTuple):
    """Links from one page, at `here`, to anchors, whose files are known; all paths are as the report sees them."""

    here: str
    files: Mapping[str, str]

    def to(self, anchor: str) -> str:
        """To an anchor; on this page if it stands in no file of its own.

        >>> Links("cards/a.html", {"x": "cards/b.html", "y": "about.html"}).to("x")
        'b.html#x'
        """
        file = self.files.get(anchor, self.here)
        return f"#{anchor}" if file == self.here else f"{self.beside(file)}#{anchor}"

    def beside(self, path: str) -> str:
        """To a file beside the report, or a place in it.

        >>> Links("cards/a.html", {}).beside("claims/b.html#c"), Links("report.html", {}).beside("cards/a.html")
        ('../claims/b.html#c', 'cards/a.html')
        """
        folder = self.here.rpartition("/")[0]
        if folder and path.startswith(f"{folder}/"):
            return path.removeprefix(f"{folder}/")
        return f"{'../' * bool(folder)}{path}"
