"""Errors of the suggested rates on the held-out networks of `benchmarks/rates` (docs/trials.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

LEARNED = 0.98
"""Share of the best constant loss below which a network has learned something."""


class HoldOut(NamedTuple):
    """Errors over all held-out cases (network, batch size) of one optimizer in one state.

    Attributes
    ----------
    cases
        Number of cases.
    best
        Best rate over the suggested one: eight of ten cases of the first eight networks, and 13 of 16 of the ninth, lie
        between.
    good
        Share of cases in which the suggested rate lost at most a tenth of the possible loss decrease.
    """

    cases: int
    best: tuple[float, float]
    good: float


HOLD_OUT: Mapping[tuple[str | None, bool], HoldOut] = {
    ("sgd", False): HoldOut(18, (0.74, 1.8), 1.00),
    ("sgd", True): HoldOut(18, (0.53, 2.1), 0.83),
    ("momentum", False): HoldOut(18, (0.28, 1.6), 0.83),
    ("momentum", True): HoldOut(18, (0.55, 2.2), 0.83),
    ("adam", False): HoldOut(18, (0.69, 1.4), 0.94),
    ("adam", True): HoldOut(18, (0.58, 3.3), 0.89),
    ("adamw", False): HoldOut(18, (0.69, 2.0), 0.94),
    ("adamw", True): HoldOut(18, (0.58, 3.3), 0.61),
}
"""Errors by optimizer, and by whether the network had learned something; others were not tested."""
