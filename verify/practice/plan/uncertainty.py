"""How far the rates that a walk finds were from the best on the hold-out networks of `benchmarks/rates`.

The rule was frozen before it met them (docs/benchmarks.md, learning rates): eleven networks, batch sizes 8, 64 and
512, three seeds. A row for plain SGD at the start and after some training, for momentum 0.9 and for Adam at the start.
"""

from __future__ import annotations

from typing import NamedTuple


class HoldOut(NamedTuple):
    """What was seen in the cells (network, batch size, seed) of one optimiser and state.

    Attributes
    ----------
    cells
        In which the walk gave a rate, and all of them.
    best
        The best rate over that to start with: eight of ten cells lie between.
    twice
        Share of all cells in which the best was within 2x.
    cheap
        Share in which the rate lost at most a tenth of what training gains.
    above
        Share in which training at it failed, and a smaller one would not have.
    edge
        The largest rate that trains over the largest rung that did: eight of ten cells lie between.
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
"""By the optimiser, and whether something had been learned already."""


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
