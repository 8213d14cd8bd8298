"""Import of a user's module, with the modules next to it."""

from __future__ import annotations

import importlib
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import simulate
import theory

PREFIX = "_losscurv_"
"""Prefix of the names of modules that are loaded by file."""

_OURS = ("verify", simulate.__name__, theory.__name__)
"""Names that stand for our packages in every import, since these are loaded here."""


def imported(place: str) -> ModuleType:
    """Return the module ``path/file.py``, run anew, or ``pkg.module``, searched first in its or the current folder.

    Raises
    ------
    ValueError
        If there is no such file, or it imports a module of its folder that is named as one of our packages.
    Exception
        Whatever the import raises.
    """
    path = Path(place) if place.endswith(".py") else None
    folder = (path.parent if path else Path()).resolve()
    if path is not None and not path.is_file():
        raise ValueError(f"file not found: {place}")
    _require_other_names(
        place, f"import {place}" if path is None else path.read_text(errors="replace"), folder
    )
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()  # a file may be younger than the last look
    try:
        return importlib.import_module(place) if path is None else _loaded(path.resolve())
    finally:
        if str(folder) in sys.path:  # taken out by what was imported
            sys.path.remove(str(folder))
        sys.path.append(str(folder))  # for imports while the model runs


def _require_other_names(place: str, text: str, folder: Path) -> None:
    for name in re.findall(rf"^\s*(?:from|import)\s+({'|'.join(_OURS)})\b", text, re.MULTILINE):
        found = [folder / f"{name}.py", *(folder / name).glob("*.py")]
        ours = Path(str(sys.modules[name].__file__)).parent
        if any(file.is_file() and file.parent != ours for file in found):
            raise ValueError(
                f"{place} imports {name} of its folder, but losscurv has a package {name}: rename yours"
            )


def _loaded(path: Path) -> ModuleType:
    name = f"{PREFIX}{path.stem}"
    spec: Any = spec_from_file_location(name, path)
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    # As an import does it: a module that is half loaded must not be found again.
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
