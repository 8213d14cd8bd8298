"""What is called ours says what others had before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verify.claims import registry

PAGES = Path(__file__).parents[1] / "docs" / "claims"
CITATION = re.compile(r"\b[A-Z]\w+ .*(19|20)\d\d\b", re.DOTALL)
"""A name and, somewhere after it, a year."""


def sections(page: str) -> dict[str, str]:
    """The text of each section of a page, by the first word of its title: the id of an entry."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    parts = re.split(r"^##? (\S+)", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def prior_art(page: str) -> dict[str, str]:
    """What follows the words "Prior art" in each section of a page, by the section's first word."""
    return {name: text.partition("**Prior art.** ")[2] for name, text in sections(page).items()}


def ours(page: str) -> list[str]:
    """Entries of a page that no paper states; all of `beyond`."""
    return [e.id for e in registry.entries()[page] if e.ours or page == "beyond"]


@pytest.mark.parametrize("page", sorted(registry.entries()))
def test_every_entry_of_ours_names_its_prior_art(page: str) -> None:
    said = prior_art(page)
    assert [name for name in ours(page) if not CITATION.search(said[name])] == []


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("vysogorets2024", ("A6", "A18", "A20", "A23", "A29", "A34", "A36", "A58")),
        ("granziol2022", ("B13", "B24", "B25", "B46", "B47", "B57", "Noise", "Largest")),
        ("karakida2019", ("C28", "C29", "C37", "C38", "C39", "C41", "C43", "C54", "C56", "C57")),
    ],
)
def test_laws_of_ours_inside_other_entries_name_theirs(page: str, names: tuple[str, ...]) -> None:
    said = prior_art(page)
    assert [name for name in names if not CITATION.search(said[name])] == []


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("docs/claims/beyond.md", ("2306.07850", "1712.06559", "2103.00065", "2003.02218")),
        ("docs/claims/catapult.md", ("2110.03677", "2311.02076", "2305.13064")),
        ("verify/claims/catapult/linear.py", ("2110.03677", "2311.02076")),
        ("verify/claims/granziol2022/networks/hessians.py", ("2106.16225",)),
        ("theory/fisher/__init__.py", ("1910.05992",)),
        ("docs/claims/vysogorets2024.md", ("1706.03662", "1807.02581", "1812.06162")),
        (
            "docs/claims/granziol2022.md",
            ("2306.07850", "1712.06559", "1812.06162", "2205.10287", "2103.00065", "2003.02218"),
        ),
        (
            "docs/claims/karakida2019.md",
            ("2103.00065", "2003.02218", "1910.05992", "1902.08129", "1903.02606", "1909.05989"),
        ),
        (
            "docs/plan.md",
            ("2306.07850", "1712.06559", "2103.00065", "2003.02218", "1812.06162", "2205.10287"),
        ),
        ("theory/learning_rates/mean_square.py", ("2306.07850", "1712.06559")),
        ("theory/learning_rates/__init__.py", ("2306.07850", "1712.06559", "2103.00065", "2003.02218")),
        ("simulate/training/optimisers.py", ("2306.07850",)),
    ],
)
def test_the_literature_that_a_reader_expects_is_named_where_it_belongs(
    place: str, names: tuple[str, ...]
) -> None:
    text = (PAGES.parents[1] / place).read_text(encoding="utf-8")
    assert [name for name in names if not re.search(rf"arXiv\s+{name}", text)] == []


def test_a_sharpness_that_weighs_batch_gradients_is_named_beside_the_limit_of_sgd() -> None:
    assert "Lee and Jang (2023" in " ".join(prior_art("beyond")["D2"].split())
