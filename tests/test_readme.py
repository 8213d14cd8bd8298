"""What README shows is what the code says."""

from __future__ import annotations

import doctest
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulate.monte_carlo import SerialExecutor
from verify import model
from verify.claims import registry
from verify.running.engine import Session, Settings

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def test_the_examples_give_what_they_show() -> None:
    found = doctest.testfile(str(README), module_relative=False, encoding="utf-8")

    assert found.attempted >= 5
    assert found.failed == 0


def test_the_commands_exist() -> None:
    named = set(
        re.findall(r"^ +(?:.*&& )?losscurv ([a-z]+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    )

    assert named == {"report", "claims", "gallery", "replay", "estimate", "measure", "plan"}


def test_the_number_of_statements_is_that_of_the_inventory() -> None:
    counted = sum(len(listed) for listed in registry.entries().values())

    assert f"all {counted} statements" in README.read_text(encoding="utf-8")


def test_the_claim_shown_to_contributors_is_admitted_and_agrees() -> None:
    """The block is run as it stands, with the names that a module of claims imports."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"Any": Any, "Mapping": Mapping, **vars(model)}
    exec(text.partition("```python\n")[2].partition("```")[0], names)
    shown = names["FOURTH_MOMENT"]

    registry.admit((shown,), registry.entries())
    (row,) = Session((shown,), Settings(), SerialExecutor()).rows(shown)

    assert row.verdict == "agrees"
    assert all(rival.rejected for point in row.points for rival in point.rivals)
