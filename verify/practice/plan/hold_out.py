"""Errors of the suggested rates on the held-out networks of `benchmarks/rates` (docs/trials.md)."""

from __future__ import annotations

from typing import NamedTuple

LEARNED = 0.98
"""Share of the best constant loss below which a network has learned something."""


class HoldOut(NamedTuple):
    """Errors over all held-out cases (network, batch size, seed) of one optimizer in one state.

    Attributes
    ----------
    cases
        Number of cases.
    best
        Best rate over the suggested one: eight of ten cases lie between.
    good
        Share of cases in which the suggested rate lost at most a tenth of the possible loss decrease.
    """

    cases: int
    best: tuple[float, float]
    good: float


HOLD_OUT = {
    ("sgd", False): HoldOut(99, (0.44, 2.5), 0.88),
    ("sgd", True): HoldOut(99, (0.62, 3.5), 0.62),
    ("momentum", False): HoldOut(99, (0.39, 1.6), 0.87),
    ("adam", False): HoldOut(99, (0.24, 1.4), 0.93),
}
"""Errors by optimizer, and by whether the network had learned something."""


def hold_out(kind: str | None, learned: bool) -> HoldOut | None:
    """Return the errors of this optimizer in this state; None if it was not tested.

    Examples
    --------
    >>> hold_out("adam", True) is None
    True
    """
    return HOLD_OUT.get((kind or "", learned))
