"""Modules that are imported when first used, since torch takes seconds.

``from simulate.matrices import ensembles`` at the head of a file then costs nothing, and reads like any other import.
The lazy loader of the standard library is not safe for several threads before Python 3.12.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    """Placeholder of a module, which is imported when an attribute is read or set."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # tools look these up in every module
            raise AttributeError(f"module {self.__name__!r} is not loaded and has no attribute {name!r}")
        return getattr(import_module(self.__name__), name)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # patches of tests are looked up here
        return import_module(self.__name__).__dict__

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(import_module(self.__name__), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(import_module(self.__name__), name)

    def __dir__(self) -> list[str]:
        return dir(import_module(self.__name__))


def submodules(package: str) -> Callable[[str], ModuleType]:
    """Return a ``__getattr__`` for a package whose modules are imported when first used."""

    def lazy_module(name: str) -> ModuleType:
        # find_spec only looks for the file: a misspelt name fails here, and nothing is imported yet
        if name.startswith("_") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return _LazyModule(f"{package}.{name}")

    return lazy_module
