"""The front door: every name leads to its room, nothing is loaded before it is asked for, and tools know the names."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import losscurv
import simulate
import theory
from simulate import operators


@pytest.mark.parametrize("name", [name for name in losscurv.__all__ if name != "theory"])
def test_a_name_is_that_of_its_room(name: str) -> None:
    assert getattr(losscurv, name) is getattr(import_module(losscurv._ROOMS[name]), name)


def test_formulas_and_operators_of_one_name_are_kept_apart() -> None:
    assert losscurv.theory is theory
    assert losscurv.fisher is operators.fisher
    assert losscurv.theory.fisher.kappas is import_module("theory.fisher").kappas


@pytest.mark.parametrize("package", [losscurv, theory, simulate])
def test_what_there_is_shows_and_what_is_not_is_refused(package: object) -> None:
    assert dir(package) == sorted(package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'curvature_of_all'"):
        getattr(package, "curvature_of_all")  # noqa: B009 - the attribute is what is asked for


@pytest.mark.parametrize("package", [losscurv, theory, simulate])
def test_tools_know_the_names(package: object) -> None:
    """Completion and type checkers read what is imported for them alone."""
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    found = [
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        for statement in node.body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for name in statement.names
    ]
    assert sorted(found) == sorted(package.__all__)


@pytest.mark.parametrize("package", [theory, simulate])
def test_every_topic_is_at_hand_and_on_the_map(package: object) -> None:
    folder = Path(package.__file__).parent
    topics = {p.stem for p in folder.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert {name for name in topics if not name.startswith("_")} == set(package.__all__)
    assert all(f"`{name}`" in package.__doc__ for name in package.__all__)


def test_the_map_names_everything() -> None:
    assert all(f"`{name}`" in losscurv.__doc__ for name in losscurv.__all__)


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    program = (
        "import sys, losscurv, theory, simulate\n"
        "assert not {'numpy', 'torch', 'scipy'} & set(sys.modules)\n"
        "assert float(losscurv.estimate('stability_limit', 4.0)) == 0.5\n"
        "assert losscurv.theory.rmt.Semicircle(sigma=1.0).edges == (-2.0, 2.0)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
