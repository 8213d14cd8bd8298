"""Quick answers stay quick: what a theorist or a shell asks for loads neither torch nor other heavy packages."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import theory
from verify.claims import registry

HEAVY = (
    "torch",
    "sympy",
    "mpmath",
    "matplotlib",
    "scipy.stats",
    "scipy.integrate",
    "scipy.optimize",
    "sklearn",
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


def modules_after(*words: str, status: int) -> set[str]:
    """Names of the modules that a command has loaded by its end."""
    program = f"""
import sys
from verify.cli import main
assert main({list(words)!r}) == {status}
print("held", *sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.splitlines()[-1].split()[1:])


def papers_of(modules: set[str]) -> set[str]:
    """Papers of which more is loaded than their names: modules of a paper that hold claims."""
    rooms = {
        name.split(".")[2] for name in modules if name.startswith("verify.claims.") and name.count(".") > 2
    }
    return rooms & set(registry.OWN)


def test_a_named_claim_loads_its_paper_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    modules = modules_after("report", "--claim", "edge/oscillation", "--workers", "1", status=0)
    assert papers_of(modules) == {"edge"}


def test_a_mistyped_id_is_refused_before_anything_heavy_is_loaded() -> None:
    modules = modules_after("report", "--claim", "edge/oscilation", status=2)
    assert not {"torch", "sympy", "mpmath", "matplotlib", "hypothesis", "jinja2"} & modules


def test_completion_is_light() -> None:
    told = "from verify import completion\nassert completion.claim_ids('edge/')\nassert completion.paper_names('')"
    (held,) = heavy_after(told)
    assert set(held) <= {"scipy.optimize"}
