"""Draws for hypothesis that depend on the seed alone.

Hypothesis itself mixes in numbers from the source of all local modules that are loaded. The examples of a property
would then depend on what else was selected, and on where the package is installed.
"""

from __future__ import annotations

from typing import Any

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

BACKEND = "losscurv"
"""Name of the provider in hypothesis."""


class SeedAlone(HypothesisProvider):
    """The provider of hypothesis, without numbers from source files."""

    def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
        """Draw no constants from source files."""


AVAILABLE_PROVIDERS[BACKEND] = f"{__name__}.{SeedAlone.__name__}"
