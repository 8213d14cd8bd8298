"""Names that somebody may have mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: str, known: Iterable[str], count: int = 1) -> str:
    """Return the end of an error message that suggests the nearest of the known names; empty if none is near.

    >>> did_you_mean("crossentropy", ["mse", "cross-entropy"])
    '; did you mean cross-entropy?'
    >>> did_you_mean("SGD", ["sgd", "adam"]), did_you_mean("hinge", ["mse", "cross-entropy"])
    ('; did you mean sgd?', '')
    """
    plain = {other.lower(): other for other in known}
    near = [plain[other] for other in difflib.get_close_matches(name.lower(), plain, n=count)]
    return f"; did you mean {' or '.join(near)}?" if near else ""
