"""Write all public names of theory, simulate and losscurv with their signatures, for a diff before and after.

    python -m benchmarks.house.signatures before.txt

First a line for each name that a public module lists in `__all__`, and for each public method and property of a class;
a name that several modules of a package list stands once. Then, module by module, the names that it lists: where a user
may import them from.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["lines"]

PACKAGES = ("theory", "simulate", "losscurv")
OWN = (*PACKAGES, "verify")


class _Plain(str):
    """An annotation, shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def lines() -> list[str]:
    """Return the lines of the file."""
    names: set[str] = set()
    places: list[str] = []
    for package in PACKAGES:
        for module in _modules(package):
            # the front door has no list: it answers dir()
            listed = sorted(getattr(module, "__all__", dir(module) if module.__name__ == package else ()))
            listed = [name for name in listed if not name.startswith("_")]
            found = {name: getattr(module, name) for name in listed}
            names |= {
                f"{package} {line}" for name, thing in found.items() for line in _described(name, thing)
            }
            places.append(f"{module.__name__}: {', '.join(listed)}")
    return [*sorted(names), "", *sorted(places)]


def _modules(package: str) -> Iterator[ModuleType]:
    top = importlib.import_module(package)
    yield top
    for found in pkgutil.walk_packages(top.__path__, f"{package}."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield importlib.import_module(found.name)


def _described(name: str, thing: Any) -> Iterator[str]:
    if isinstance(thing, ModuleType):
        yield f"{name} (module)"
    elif inspect.isclass(thing):
        yield f"class {name}{_signature(thing)}"
        for own in sorted(name for name in dir(thing) if not name.startswith("_")):
            home = next((base.__module__ for base in thing.__mro__ if own in vars(base)), "")
            if home.partition(".")[0] not in OWN:
                continue  # inherited from torch or the standard library
            if isinstance(inspect.getattr_static(thing, own), property):
                yield f"class {name} .{own} (property)"
            elif callable(getattr(thing, own)):
                yield f"class {name} .{own}{_signature(getattr(thing, own))}"
    elif callable(thing):
        yield f"{name}{_signature(thing)}"
    else:
        yield f"{name}: {type(thing).__name__}"


def _signature(thing: Any) -> str:
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):  # of what is written in C or by hand
        return "(...)"
    plain = [p.replace(annotation=_unquoted(p.annotation)) for p in found.parameters.values()]
    text = str(found.replace(parameters=plain, return_annotation=_unquoted(found.return_annotation)))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _unquoted(annotation: Any) -> Any:
    return _Plain(annotation) if isinstance(annotation, str) else annotation


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(lines()) + "\n", encoding="utf-8")
