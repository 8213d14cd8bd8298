"""Strategies of all tests: odd numbers and texts of hypothesis, and none from the source code.

Those it would look for in every local module that is loaded, so that examples hung on what else a process had run,
and each process read through a thousand files.
"""

from functools import cached_property

from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
from hypothesis.internal.constants_ast import Constants

__all__ = ["load"]

NAME = "losscurv-tests"


class WithoutSource(HypothesisProvider):
    """The provider of hypothesis, which finds no number in source files."""

    @cached_property
    def _local_constants(self) -> Constants:
        return Constants()


def load() -> None:
    """All settings that are made from now on draw so."""
    AVAILABLE_PROVIDERS[NAME] = f"{__name__}.{WithoutSource.__name__}"
    # what the plugin of hypothesis reads at the end of collection, though nothing draws from it
    providers._get_local_constants = Constants
    settings.register_profile(NAME, backend=NAME)
    settings.load_profile(NAME)
