"""What README shows is what the code says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from verify import registry

README = Path(__file__).parents[1] / "README.md"


def test_the_examples_give_what_they_show() -> None:
    found = doctest.testfile(str(README), module_relative=False, encoding="utf-8")

    assert found.attempted >= 5
    assert found.failed == 0


def test_the_commands_exist() -> None:
    named = set(
        re.findall(r"^ +(?:.*&& )?losscurv ([a-z]+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    )

    assert named == {"report", "claims", "replay", "estimate"}


def test_the_number_of_statements_is_that_of_the_inventory() -> None:
    counted = sum(len(listed) for listed in registry.entries().values())

    assert f"all {counted} statements" in README.read_text(encoding="utf-8")
