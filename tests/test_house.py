"""The house: no folder too full to be overseen, no module in a circle, no name for two things."""

from __future__ import annotations

import ast
import pkgutil
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import ModuleType

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("losscurv", "theory", "simulate", "verify")
MOST = 24


def folders() -> list[Path]:
    found = [
        path
        for top in (*PACKAGES, "tests", "benchmarks", "docs", "examples")
        for path in (ROOT / top, *(ROOT / top).rglob("*"))
    ]
    return [path for path in found if path.is_dir() and path.name != "__pycache__"]


@pytest.mark.parametrize("folder", folders(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_can_be_overseen(folder: Path) -> None:
    entries = [path for path in folder.iterdir() if path.name != "__pycache__"]
    assert 0 < len(entries) <= MOST


def packages() -> list[str]:
    tops = [import_module(name) for name in PACKAGES]
    rooms = [
        m.name for top in tops for m in pkgutil.walk_packages(top.__path__, f"{top.__name__}.") if m.ispkg
    ]
    return [*PACKAGES, *rooms]


@pytest.mark.parametrize("name", packages())
def test_nothing_hides_a_module_of_its_name(name: str) -> None:
    package = import_module(name)
    inside = [module.name for module in pkgutil.iter_modules(package.__path__)]
    hiding = [module for module in inside if not isinstance(getattr(package, module, package), ModuleType)]
    assert not hiding


def test_no_module_reaches_itself() -> None:
    graph = grimp.build_graph(*PACKAGES)
    circles = [
        (one, other)
        for one in graph.modules
        for other in graph.find_modules_directly_imported_by(one)
        if graph.find_shortest_chain(other, one) is not None
    ]
    assert not circles


def test_a_public_name_is_defined_once() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for top in ("theory", "simulate", "verify"):
        for file in (ROOT / top).rglob("*.py"):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                # hooks have the names that pytest gives them
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith(
                    ("_", "pytest_")
                ):
                    homes[node.name].add(str(file.relative_to(ROOT)))
    twice = {name: sorted(files) for name, files in homes.items() if len(files) > 1}
    assert twice == {}
