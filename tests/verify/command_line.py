"""Running `losscurv` in a test: in a folder of its own, with one worker, and reading the page it leaves."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from verify.cli import main

__all__ = ["ROOT", "Planter", "elsewhere", "judged", "words_of"]

Planter = Callable[..., None]
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the modules that import it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # what runs tests side by side sets it


def judged(*words: str) -> int:
    """The status of a report of everything planted."""
    return main(["report", "--workers", "1", *words])


def words_of(page: Path) -> str:
    """The text of a page, without its tags."""
    return " ".join(re.sub(r"<[^>]*>", " ", page.read_text(encoding="utf-8")).split())
