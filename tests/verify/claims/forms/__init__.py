"""Closed forms of claims, one module for each module of claims.

Each may define `FORMS`, `WITHOUT_FORM` (as in `tests.verify.claims.closed_forms`) and `UNSEEN`: per claim a reason and
the edits that its run points do not tell apart.
"""

import importlib
from pathlib import Path
from typing import Any

__all__ = ["merged"]


def merged(name: str) -> dict[str, Any]:
    """The dictionaries of this name, of all modules; no claim is in two of them."""
    found: dict[str, Any] = {}
    here = Path(__file__).parent
    for file in sorted(here.rglob("[!_]*.py")):
        module = ".".join((__name__, *file.relative_to(here).with_suffix("").parts))
        own = getattr(importlib.import_module(module), name, {})
        if set(own) & set(found):
            raise ValueError(
                f"claims must stand in one module of forms, got {sorted(set(own) & set(found))} twice"
            )
        found |= own
    return found
