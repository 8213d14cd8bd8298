"""Modules that are loaded when something of them is first used: torch takes seconds.

``from simulate.matrices import ensembles`` at the head of a file then costs nothing, and reads like any other import.
The lazy loader of the standard library does the same, but before Python 3.12 not for two threads at once.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """Stands for a module: what is asked of it or set in it is handed on, and loads it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what tools ask of everything they meet
            raise AttributeError(f"module {self.__name__!r} is not loaded and has no attribute {name!r}")
        return getattr(import_module(self.__name__), name)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # what is patched is looked up here
        return import_module(self.__name__).__dict__

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(import_module(self.__name__), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(import_module(self.__name__), name)

    def __dir__(self) -> list[str]:
        return dir(import_module(self.__name__))


def submodules(package: str) -> Callable[[str], ModuleType]:
    """The ``__getattr__`` of a package whose modules are loaded when they are first used."""

    def found(name: str) -> ModuleType:
        if name.startswith("_") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return _Later(f"{package}.{name}")

    return found
