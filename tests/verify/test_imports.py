"""Quick answers stay quick: what a theorist or a shell asks for loads neither torch nor other heavy packages."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys

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
    "sklearn",
    "hypothesis",
    "pytest",
    "jinja2",
    "distributed",
)
MODULES = sorted(module.name for module in pkgutil.iter_modules(theory.__path__))


def heavy_after(program: str) -> list[str]:
    """Which heavy packages a fresh interpreter holds after the program, whatever that prints."""
    end = f"\nimport sys, json; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    run = subprocess.run(
        [sys.executable, "-c", program + end], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stderr == ""
    return json.loads(run.stdout.splitlines()[-1])


def test_there_are_theory_modules_to_look_at() -> None:
    assert {"rmt", "outliers", "softmax", "fisher", "order_parameters"} <= set(MODULES)


def test_theory_is_light() -> None:
    assert heavy_after("import theory\n" + "\n".join(f"import theory.{name}" for name in MODULES)) == []


@pytest.mark.parametrize(
    "words",
    [
        ["estimate"],
        ["estimate", "outliers.additive_wigner", "-2", "--sigma", "1"],
        ["estimate", "softmax.gamma_from_logits", "3,1,0"],
        ["claims"],
        ["claims", "--json"],
        ["report", "--help"],
        ["--help"],
    ],
    ids=" ".join,
)
def test_commands_that_judge_nothing_are_light(words: list[str]) -> None:
    assert heavy_after(f"from verify.cli import main\nassert main({words!r}) == 0") == []


def test_registering_the_claims_is_light() -> None:
    assert heavy_after("from verify import registry\nassert registry.claims() and registry.inventory()") == []
