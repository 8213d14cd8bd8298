"""Quick answers stay quick: what a theorist or a shell asks for loads neither torch nor other heavy packages."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from collections.abc import Sequence

import pytest

import theory

HEAVY = (
    "torch",
    "sympy",
    "mpmath",
    "matplotlib",
    "scipy.stats",
    "scipy.integrate",
    "scipy.optimize",
    "hypothesis",
    "pytest",
    "jinja2",
    "distributed",
)
MODULES = sorted(module.name for module in pkgutil.iter_modules(theory.__path__))
COMMANDS = (
    ["estimate"],
    ["estimate", "outliers.additive_wigner", "-2", "--sigma", "1"],
    ["estimate", "softmax.gamma_from_logits", "3,1,0"],
    ["--help"],
    ["report", "--help"],
    ["claims"],
    ["claims", "--json"],
)


def heavy_after(*programs: str) -> list[list[str]]:
    """Which heavy packages a fresh interpreter holds after each of the programs, whatever those print."""
    told = f"\nimport sys, json; print('\\nheld', json.dumps([m for m in {HEAVY!r} if m in sys.modules]))\n"
    run = subprocess.run(
        [sys.executable, "-c", told.join([*programs, ""])],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stderr == ""
    held = [line.removeprefix("held ") for line in run.stdout.splitlines() if line.startswith("held ")]
    assert len(held) == len(programs)
    return [json.loads(line) for line in held]


@pytest.fixture(scope="module")
def after_commands() -> dict[str, list[str]]:
    """All commands in one interpreter, the lightest first: what one of them loads stays for those behind it."""
    return dict(zip(map(" ".join, COMMANDS), heavy_after(*map(command, COMMANDS)), strict=True))


def command(words: Sequence[str]) -> str:
    return f"from verify.cli import main\nassert main({list(words)!r}) == 0"


def test_there_are_theory_modules_to_look_at() -> None:
    assert {"rmt", "outliers", "softmax", "fisher", "order_parameters"} <= set(MODULES)


def test_theory_is_light() -> None:
    assert heavy_after("import theory\n" + "\n".join(f"import theory.{name}" for name in MODULES)) == [[]]


@pytest.mark.parametrize("words", [" ".join(words) for words in COMMANDS])
def test_commands_that_judge_nothing_are_light(words: str, after_commands: dict[str, list[str]]) -> None:
    """The inventory registers every claim, so that is light too but for the roots that some predictions are."""
    allowed = {"scipy.optimize"} if words.startswith("claims") else set()
    assert set(after_commands[words]) <= allowed


def test_what_is_heavy_is_seen() -> None:
    assert heavy_after("import jinja2", command(["--version"])) == [["jinja2"], ["jinja2"]]
