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
        Interval of the best rate over the suggested one that holds eight of ten cases at least, and 1.
    good
        Share of cases in which the suggested rate lost at most a tenth of the possible loss decrease.
    """

    cases: int
    best: tuple[float, float]
    good: float


HOLD_OUT = {
    ("sgd", False): HoldOut(10, (1.0, 1.8), 1.0),
    ("sgd", True): HoldOut(10, (0.88, 2.6), 1.0),
    ("momentum", False): HoldOut(10, (0.28, 2.3), 1.0),
    ("momentum", True): HoldOut(10, (0.53, 1.6), 0.8),
    ("adam", False): HoldOut(10, (0.69, 1.5), 1.0),
    ("adam", True): HoldOut(10, (0.64, 3.0), 1.0),
    ("adamw", False): HoldOut(10, (0.67, 2.0), 1.0),
    ("adamw", True): HoldOut(10, (0.46, 3.0), 0.6),
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
