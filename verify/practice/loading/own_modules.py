"""Modules of the user's own beside the model, also those with the name of one of our packages.

`theory.py`, `simulate.py` and `verify.py` are names that anyone may give. Who imports decides what is meant: a file of
the user gets the user's, our files get ours, in whatever order and however late. The user's module of such a name is
kept as ``_losscurv_theory``, so that the two are never one entry of `sys.modules`.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

PREFIX = "_losscurv_"
"""Prefix of the names of modules that are loaded by file, or that share a name with one of our packages."""

_OURS = ("simulate", "theory", "verify")
_ROOT = Path(__file__).resolve().parents[3]

_folders: list[Path] = []
"""Folders of model and loss, which are searched for their imports, now or while they run."""

_kept: dict[str, str] = {}
"""Files, or folders of packages, and the names under which they are kept."""

_import, _import_module = builtins.__import__, importlib.import_module


def imported(place: str) -> ModuleType:
    """The module ``path/file.py``, run anew, or ``pkg.module``, searched first in its folder or in the current one.

    Raises
    ------
    ValueError
        If there is no such file.
    Exception
        Whatever the import raises.
    """
    path = Path(place) if place.endswith(".py") else None
    folder = (path.parent if path else Path()).resolve()
    with _searched(folder):
        if path is None:
            return importlib.import_module(_resolve_name(place, folder / "__init__.py"))
        if not path.is_file():
            raise ValueError(f"file not found: {place}")
        name = _name(str(path.resolve()), path.stem)
        return _loaded(spec_from_file_location(name, path.resolve()))


@contextlib.contextmanager
def _searched(folder: Path) -> Iterator[None]:
    """A folder, searched first for what is imported, and last for what is imported later."""
    if folder not in _folders:
        _folders.append(folder)
    if _UserFolderFinder not in sys.meta_path:
        sys.meta_path.append(_UserFolderFinder)
    # Only if there is such a module: from here on every import of the process goes through these two.
    if any(_find_user_module(name, folder) for name in _OURS):
        builtins.__import__, importlib.import_module = _import_as_meant, _import_module_as_meant
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()  # a file may be younger than the last look
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # taken out by what was imported
            sys.path.remove(str(folder))


class _UserFolderFinder:
    """Finder of last resort for imports while a model runs: it searches the folders of the user."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, _: Any = None) -> ModuleSpec | None:
        """As the import system asks for it."""
        # With a path it is a submodule, which its package finds.
        return None if path is not None else PathFinder.find_spec(name, [str(folder) for folder in _folders])


def _import_as_meant(name: str, *others: Any, **named: Any) -> ModuleType:
    """As `builtins.__import__`, whose further arguments are globals, locals, fromlist and level."""
    given = dict(zip(("globals", "locals", "fromlist", "level"), others, strict=False)) | named
    if not given.get("level") and name.partition(".")[0] in _OURS:
        name = _resolve_name(name, _file(given.get("globals")))
    return _import(name, **given)


def _import_module_as_meant(name: str, package: str | None = None) -> ModuleType:
    return _import_module(_resolve_name(name, _file(sys._getframe(1).f_globals)), package)


def _file(importer: Mapping[str, Any] | None) -> Path:
    return Path((importer or {}).get("__file__") or "/").resolve()


def _resolve_name(name: str, importer: Path) -> str:
    """Return the name under which the module is kept that a file imports by this name."""
    top, dot, rest = name.partition(".")
    if top not in _OURS or not _is_theirs(importer):
        return name
    for folder in sorted(_folders, key=lambda f: not importer.is_relative_to(f)):
        if spec := _find_user_module(top, folder):
            return f"{_kept_as(spec)}{dot}{rest}"
    return name


def _is_theirs(file: Path) -> bool:
    if "site-packages" in file.parts or any(file.is_relative_to(_ROOT / name) for name in _OURS):
        return False
    return any(file.is_relative_to(folder) for folder in _folders)


def _find_user_module(top: str, folder: Path) -> ModuleSpec | None:
    """Return the user's module in a folder that has the name of one of our packages, if there is one."""
    spec = PathFinder.find_spec(top, [str(folder)])
    if spec is None or Path(_place(spec)).is_relative_to(_ROOT / top):
        return None
    # a folder without code, of results perhaps
    empty = spec.origin is None and not any(Path(_place(spec)).glob("*.py"))
    return None if empty else spec


def _place(spec: ModuleSpec) -> str:
    return spec.origin or next(iter(spec.submodule_search_locations or []))


def _kept_as(spec: ModuleSpec) -> str:
    name = _name(_place(spec), spec.name)
    if name not in sys.modules:
        inside = list(spec.submodule_search_locations or [])
        kept = ModuleSpec(name, None, is_package=True)
        if spec.origin:
            found = spec_from_file_location(name, spec.origin, submodule_search_locations=inside or None)
            kept = found or kept
        # A folder without `__init__.py` has no file to load.
        else:
            kept.submodule_search_locations = inside
        _loaded(kept)
    return name


def _name(place: str, stem: str) -> str:
    """Files of one name in several folders are kept apart."""
    if place not in _kept:
        name, taken = f"{PREFIX}{stem}", set(_kept.values())
        _kept[place] = next(
            n for n in (name, *(f"{name}_{k}" for k in range(2, len(taken) + 3))) if n not in taken
        )
    return _kept[place]


def _loaded(spec: ModuleSpec | None) -> ModuleType:
    if spec is None:
        raise ImportError("no module")
    module = sys.modules[spec.name] = module_from_spec(spec)  # dataclasses look their module up
    try:
        if spec.loader is not None:
            spec.loader.exec_module(module)
    # As an import does it: a module that is half loaded must not be found again.
    except BaseException:
        sys.modules.pop(spec.name, None)
        raise
    return module
