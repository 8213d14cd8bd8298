"""Why tests of a run were left out, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

__all__ = ["reasons"]


def reasons(items: Iterable[pytest.Item], config: pytest.Config) -> Counter[str]:
    """How many tests were deselected, by what left them out.

    What needs a device that is not there says so; the rest is pytest's own selection, of which pytest does not tell
    which option left out which test where several were given.
    """
    prefixes = tuple(getattr(config.option, "deselect", None) or ())
    asked = [
        f"{flag} {value!r}"
        for flag, value in (("-k", config.option.keyword), ("-m", config.option.markexpr))
        if value
    ]
    chosen = " and ".join(asked) or "another plugin"

    def reason(item: pytest.Item) -> str:
        if prefixes and item.nodeid.startswith(prefixes):
            return "--deselect"
        if item.get_closest_marker("cuda") and not _cuda():
            return "no CUDA device"
        return "slow" if item.get_closest_marker("slow") and not asked else chosen

    return Counter(map(reason, items))


def _cuda() -> bool:
    import torch

    return torch.cuda.is_available()
