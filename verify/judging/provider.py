"""Draws for hypothesis that depend on the seed alone.

Its own ones mix in numbers from the source of whatever local modules are loaded, so that the examples of a property
would depend on what else was selected, and on where the package is installed.
"""

from __future__ import annotations

from typing import Any

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

BACKEND = "losscurv"
"""The name under which hypothesis finds it."""


class SeedAlone(HypothesisProvider):
    """The provider of hypothesis, without numbers from source files."""

    def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
        """Of all that was written anywhere, none."""


AVAILABLE_PROVIDERS[BACKEND] = f"{__name__}.{SeedAlone.__name__}"
