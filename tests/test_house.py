"""The house: no folder too full to be overseen, no module in a circle, no name for two things."""

import pkgutil
import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from tokenize import EXACT_TOKEN_TYPES, Number
from types import ModuleType

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("losscurv", "theory", "simulate", "verify")
MOST = 24


def folders() -> list[Path]:
    return [
        path
        for top in (*PACKAGES, "tests", "benchmarks", "docs", "examples")
        for path in (ROOT / top, *(ROOT / top).rglob("*"))
        if path.is_dir() and path.name != "__pycache__"
    ]


@pytest.mark.parametrize("folder", folders(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_can_be_overseen(folder: Path) -> None:
    entries = [path for path in folder.iterdir() if path.name != "__pycache__"]
    assert 0 < len(entries) <= MOST


def packages() -> list[str]:
    inside = (m for top in PACKAGES for m in pkgutil.walk_packages(import_module(top).__path__, f"{top}."))
    return [*PACKAGES, *(module.name for module in inside if module.ispkg)]


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
    homes = defaultdict(set)
    for top in ("theory", "simulate", "verify"):
        for file in (ROOT / top).rglob("*.py"):
            # hooks have the names that pytest gives them
            text = file.read_text(encoding="utf-8")
            for name in re.findall(r"(?m)^(?:def|class) (?!_|pytest_)(\w+)", text):
                homes[name].add(str(file.relative_to(ROOT)))
    assert {name: sorted(files) for name, files in homes.items() if len(files) > 1} == {}


SIZES = {
    "theory": 78.1,
    "simulate": 142.4,
    "verify": 31.2,
    "verify/claims": 198.2,
    "verify/practice": 49.5,
    "verify/page": 49.1,
    "verify/judging": 15.3,
    "verify/running": 25.3,
    "tests": 428.2,
    "benchmarks": 54.3,
}
"""Size of each folder in thousands: tokens of code without docstrings and comments, and an eighth of the characters of
strings, templates and data. A folder that grows by more than 1 % changes its number here; another one shrinks.
"""

TEXTS = {".csv", ".css", ".html", ".j2", ".js", ".json"}
SIGNS = "|".join(map(re.escape, sorted(EXACT_TOKEN_TYPES, reverse=True)))
STRING = r"""(?i:\b[urbf]{1,2})?(?P<mark>'''|\"""|['"])(?:[^\\'"]+|\\.|(?!(?P=mark)).)*(?P=mark)"""
DOCSTRING = r'''(?m:^) *r?"""(?:[^\\"]|\\.|"(?!""))*"""(?m:$)'''
TOKEN = re.compile(rf"(?s)#[^\n]*|{DOCSTRING}|(?P<string>{STRING})|(?P<other>{Number}|\w+|{SIGNS})")


def size(path: Path) -> float:
    if path.suffix != ".py":
        return path.stat().st_size / 8 if path.suffix in TEXTS else 0
    tokens = [token for token in TOKEN.finditer(path.read_text(encoding="utf-8")) if token.lastgroup]
    return len(tokens) + sum(len(token["string"] or "") for token in tokens) / 8


@pytest.mark.slow
def test_no_room_has_grown() -> None:
    found = dict.fromkeys(SIZES, 0.0)
    for top in ("theory", "simulate", "verify", "tests", "benchmarks"):
        for path in (ROOT / top).rglob("*.*"):
            if path.is_file() and "__pycache__" not in path.parts:
                parts = path.relative_to(ROOT).parts
                room = "/".join(parts[:2])
                found[room if room in found else parts[0]] += size(path) / 1000
    assert {room: round(now, 1) for room, now in found.items() if now > 1.01 * SIZES[room]} == {}
