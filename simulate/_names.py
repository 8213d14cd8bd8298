"""Names that somebody may have mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

__all__ = ["did_you_mean"]

_NEAR = 0.65
"""Share of their letters that two names have in common, from which one may stand for the other."""


def did_you_mean(
    name: str, known: Iterable[str], count: int = 1, *, suggest: Mapping[str, str] | None = None
) -> str:
    """Return the end of an error message that suggests the nearest known names; empty if none is near.

    Parameters
    ----------
    name
        What was given.
    known
        What it may be.
    count
        Most suggestions.
    suggest
        What to suggest for a known name where that is another word.

    Examples
    --------
    >>> did_you_mean("crossentropy", ["mse", "cross-entropy"])
    '; did you mean cross-entropy?'
    >>> did_you_mean("SGD", ["sgd", "adam"]), did_you_mean("hinge", ["mse", "cross-entropy"])
    ('; did you mean sgd?', '')
    >>> did_you_mean("gama", ["gamma"], suggest={"gamma": "softmax.gamma"})
    '; did you mean softmax.gamma?'
    """
    others = suggest or {}
    plain = {word.lower(): others.get(word, word) for word in known}
    near = [plain[word] for word in difflib.get_close_matches(name.lower(), plain, n=count, cutoff=_NEAR)]
    return f"; did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
