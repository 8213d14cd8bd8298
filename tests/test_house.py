"""The house: no folder too full to be overseen, no function in the place of a module, no module in a circle."""

from __future__ import annotations

import pkgutil
import re
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


def test_the_map_of_the_house_names_what_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|") and ".py`" in line]
    assert len(rows) == 5
    for row in rows:
        files = re.findall(r"`([\w/]+\.py)`", row)
        assert len(files) == 2 and all((ROOT / file).is_file() for file in files)
        for name in re.findall(r"`(\w+)`", row):
            assert f"def {name}(" in (ROOT / files[0]).read_text(encoding="utf-8")
