"""Errors of the suggested rates on the held-out networks of `benchmarks/rates`.

The rule was frozen before it met them (docs/benchmarks.md, learning rates): eleven networks, batch sizes 8, 64 and
512, three seeds. A row for plain SGD at the start and after some training, for momentum 0.9 and for Adam at the start.
"""

from __future__ import annotations

from typing import NamedTuple


class HoldOut(NamedTuple):
    """Errors over all runs (network, batch size, seed) of one optimiser and state.

    Attributes
    ----------
    cells
        Runs that gave a rate, and all runs.
    best
        Best rate over the suggested one: eight of ten runs lie between.
    twice
        Share of all runs in which the best rate was within 2x of the suggested one.
    cheap
        Share in which the suggested rate lost at most a tenth of what training gains.
    above
        Share in which training failed at the suggested rate, and would not have at a smaller one.
    edge
        Largest rate that trains over the largest trial rate that did: eight of ten runs lie between.
    """

    cells: tuple[int, int]
    best: tuple[float, float]
    twice: float
    cheap: float
    above: float
    edge: tuple[float, float]


HOLD_OUT = {
    ("sgd", False): HoldOut((99, 99), (0.44, 2.5), 0.76, 0.88, 0.00, (0.88, 1.8)),
    ("sgd", True): HoldOut((94, 99), (0.62, 3.5), 0.63, 0.62, 0.01, (0.88, 2.5)),
    ("momentum", False): HoldOut((99, 99), (0.39, 1.6), 0.77, 0.87, 0.02, (0.55, 1.6)),
    ("adam", False): HoldOut((99, 99), (0.24, 1.4), 0.57, 0.93, 0.00, (0.49, 2.0)),
}
"""Errors by optimiser, and by whether the network had learned something."""


def hold_out(kind: str | None, learned: bool) -> tuple[HoldOut, bool]:
    """The row that is nearest, and whether it is of this optimiser and state.

    Examples
    --------
    >>> found, own = hold_out("momentum", True)
    >>> found is HOLD_OUT["sgd", True], own
    (True, False)
    """
    own = (kind or "", learned) in HOLD_OUT
    return HOLD_OUT[(kind or "", learned) if own else ("sgd", learned)], own
