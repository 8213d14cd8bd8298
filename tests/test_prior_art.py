"""Statements called ours name what others had before."""

import re
from pathlib import Path

import pytest

from verify.claims import registry

PAGES = Path(__file__).parents[1] / "docs" / "claims"
CITATION = re.compile(r"\b[A-Z]\w+ .*(19|20)\d\d\b", re.DOTALL)
"""A name and, somewhere after it, a year."""


def prior_art(page: str) -> dict[str, str]:
    """Return the text after "Prior art" in each section of a page, by the section's first word: the id of an entry."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    parts = re.split(r"^##? (\S+)", text, flags=re.MULTILINE)[1:]
    found = zip(parts[::2], parts[1::2], strict=True)
    return {name: section.partition("**Prior art.** ")[2] for name, section in found}


OURS_INSIDE = {
    "vysogorets2024": "A6 A18 A20 A23 A29 A34 A36 A58",
    "granziol2022": "B13 B24 B25 B46 B47 B57 Noise Largest",
    "karakida2019": "C28 C29 C37 C38 C39 C41 C43 C54 C56 C57",
}
"""Entries of papers that hold a law of ours."""


@pytest.mark.parametrize("page", sorted(registry.entries()))
def test_every_entry_of_ours_names_its_prior_art(page: str) -> None:
    """Check entries that no paper states, all of `beyond`, and laws of ours inside other entries."""
    ours = [e.id for e in registry.entries()[page] if e.ours or page == "beyond"]
    said = prior_art(page)
    silent = [name for name in (*ours, *OURS_INSIDE.get(page, "").split()) if not CITATION.search(said[name])]
    assert silent == []
