"""Errors of the suggested rates on the held-out networks of `benchmarks/rates` (docs/trials.md)."""

from __future__ import annotations

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
        Best rate over the suggested one: eight of ten cases lie between.
    good
        Share of cases in which the suggested rate lost at most a tenth of the possible loss decrease.
    """

    cases: int
    best: tuple[float, float]
    good: float


HOLD_OUT = {
    ("sgd", False): HoldOut(16, (0.74, 1.8), 1.00),
    ("sgd", True): HoldOut(16, (0.53, 2.1), 0.88),
    ("momentum", False): HoldOut(16, (0.28, 1.6), 0.88),
    ("momentum", True): HoldOut(16, (0.55, 2.2), 0.81),
    ("adam", False): HoldOut(16, (0.69, 1.4), 1.00),
    ("adam", True): HoldOut(16, (0.58, 3.3), 0.94),
    ("adamw", False): HoldOut(16, (0.69, 2.0), 1.00),
    ("adamw", True): HoldOut(16, (0.58, 3.3), 0.62),
}
"""Errors by optimizer, and by whether the network had learned something."""


def hold_out(kind: str | None, learned: bool) -> HoldOut | None:
    """Return the errors of this optimizer in this state; None if it was not tested.

    Examples
    --------
    >>> hold_out("rmsprop", True) is None
    True
    """
    return HOLD_OUT.get((kind or "", learned))
