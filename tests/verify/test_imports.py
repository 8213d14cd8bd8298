"""Quick answers stay quick: what a theorist or a shell asks for loads neither torch nor other heavy packages."""

import pkgutil
import sys
from pathlib import Path

import pytest

import theory
from tests.interpreters import forked, fresh
from verify import cli
from verify.claims import registry
from verify.running import suite

HEAVY = [
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
]
MODULES = sorted(module.name for module in pkgutil.iter_modules(theory.__path__))
COMMANDS = (
    "estimate",
    "estimate outliers.additive_wigner -2 --sigma 1",
    "estimate softmax.gamma_from_logits 3,1,0",
    "--help",
    "report --help",
    "claims",
    "claims --json",
)


def heavy_after(*programs: str) -> list[set[str]]:
    """Which heavy packages a fresh interpreter holds after each of the programs, whatever those print."""
    told = f"\nimport sys; print('\\nheld', *(m for m in {HEAVY!r} if m in sys.modules))\n"
    held = [
        line.split()
        for line in fresh(told.join([*programs, ""])).splitlines()
        if line.split()[:1] == ["held"]
    ]
    assert len(held) == len(programs)
    return [set(line[1:]) for line in held]


def command(words: str, status: int = 0) -> str:
    return f"from verify.cli import main\nassert main({words.split()!r}) == {status}"


def test_theory_is_light() -> None:
    assert {"rmt", "outliers", "softmax", "fisher", "order_parameters"} <= set(MODULES)
    assert heavy_after("import theory\n" + "\n".join(f"import theory.{name}" for name in MODULES)) == [set()]


@pytest.mark.slow
def test_what_judges_nothing_is_light() -> None:
    """The inventory registers every claim, so that is light too but for the roots that some predictions are.

    All in one interpreter, the lightest first: what one of them loads stays for those behind it.
    """
    mistyped = command("report --claim edge/oscilation", 2)
    *quick, claims, listed, mistyped, seen = heavy_after(*map(command, COMMANDS), mistyped, "import jinja2")
    assert not set().union(*quick)
    assert claims | listed | mistyped <= {"scipy.optimize"} and "jinja2" in seen


def rooms_after_a_claim() -> set[str]:
    """Judge a claim, write the report, and return the papers and other modules of `verify.claims` that are loaded."""
    suite.PLANTED = ()
    assert cli.main(["report", "--claim", "catapult/step", "--workers", "1"]) == 0
    loaded = [name.split(".") for name in sys.modules if name.startswith("verify.claims.")]
    return {name[2] for name in loaded if len(name) > 3}


@pytest.mark.slow
def test_a_named_claim_loads_its_paper_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other papers contribute their names only; modules of a paper hold its claims."""
    monkeypatch.chdir(tmp_path)
    assert forked(rooms_after_a_claim) & set(registry.OWN) == {"catapult"}
