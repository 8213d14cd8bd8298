"""What is called ours says what others had before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verify import registry

PAGES = Path(__file__).parents[1] / "docs" / "claims"
OURS = ("beyond",)
"""Pages on which every law is ours."""


def sections(page: str) -> dict[str, str]:
    """The text of each entry of a page, by its id."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (\S+)", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("page", OURS)
def test_every_law_of_ours_names_its_prior_art(page: str) -> None:
    found = sections(page)
    assert set(found) == {entry.id for entry in registry.entries()[page]}
    for name, text in found.items():
        _, _, said = text.partition("**Prior art.** ")
        assert re.search(r"\b[A-Z]\w+ .*\((19|20)\d\d\b", said, re.DOTALL), name


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("docs/claims/beyond.md", ("2306.07850", "1712.06559", "2103.00065", "2003.02218")),
        (
            "docs/plan.md",
            ("2306.07850", "1712.06559", "2103.00065", "2003.02218", "1812.06162", "2205.10287"),
        ),
        ("theory/mean_square.py", ("2306.07850", "1712.06559")),
        ("theory/learning_rates.py", ("2306.07850", "1712.06559", "2103.00065", "2003.02218")),
        ("simulate/optimisers.py", ("2306.07850",)),
    ],
)
def test_the_literature_that_a_reader_expects_is_named_where_it_belongs(
    place: str, names: tuple[str, ...]
) -> None:
    text = (PAGES.parents[1] / place).read_text(encoding="utf-8")
    assert [name for name in names if not re.search(rf"arXiv\s+{name}", text)] == []
