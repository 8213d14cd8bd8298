"""Lines of the fuzz table, one module for each topic of the theory.

Each may define `TABLE` (how a public name is called and what its results obey), `MODULES` (the theory's modules it
stands for, each with the public names that are not called: records and values) and `WITHOUT_ARGUMENTS` (names that a
caller can give nothing to, each with the reason).
"""

import importlib
import pkgutil
from typing import Any

__all__ = ["merged"]


def merged(name: str) -> dict[str, Any]:
    """The dictionaries of this name, of all modules; no key is in two of them."""
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(__path__):
        own = getattr(importlib.import_module(f"{__name__}.{module.name}"), name, {})
        if set(own) & set(found):
            raise ValueError(f"names must stand in one module, got {sorted(set(own) & set(found))} twice")
        found |= own
    return found
