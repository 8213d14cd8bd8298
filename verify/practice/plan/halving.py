"""Learning-rate search by successive halving (Jamieson and Talwalkar 2016, arXiv 1502.07943) on a grid of rates.

Several rates train for an eighth of the steps, on the same batches. The best two go on to half of the steps, and the
best two of that stage to all of them; the one with the smallest loss is the answer. In each stage rates are added as
long as the best one lies at an end, in the last stage only larger ones: short runs favour small rates (Wu et al. 2018,
arXiv 1803.02021). A run is not stopped because its loss rises, unless it diverges: often the loss comes back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

FACTOR = 4.0
"""Ratio of neighbouring trial rates."""

_WIDE, _NEAR = (-2, -1, 0, 1), (-1, 0, 1)
"""Places of the first rates on the grid: around a usual rate, and around the answer for another batch size."""

_STAGES = (1 / 8, 1 / 2, 1.0)
"""Steps of the runs in each stage, over the steps for which a rate is chosen."""

_KEPT = 2
"""Number of runs that go on to the next stage."""

_LEARNED = 0.01
"""Share of the loss by which a run must end below the start, and below the best constant output."""

_STILL = 1e-3
"""Share of the loss within which a run has not moved: smaller rates would not move it either."""

_MOST = 10
"""Most rates that a stage adds: a factor of a million."""

Losses = Callable[[Collection[int], int], Iterable[tuple[int, float]]]
"""A function of places and a number of steps; returns the loss at each place, infinite if the run diverged."""


class Answer(NamedTuple):
    """Answer of a search, as places of the grid; None where there is none.

    Attributes
    ----------
    start
        Suggested place.
    trains, fails
        Largest place, from the suggested one upwards, up to which all runs trained, and the next one, which failed.
    """

    start: int | None
    trains: int | None
    fails: int | None


class Halving:
    """Search at one batch size.

    Parameters
    ----------
    losses
        Trains at places of the grid. It may raise to end the search: `found` then answers from the runs so far.
    first
        Loss before training.
    constant
        Loss of the best constant output.
    horizon
        Number of steps for which a rate is chosen.
    near
        Whether place 0 is the answer for another batch size.

    Examples
    --------
    A loss that is smallest at place 3 and diverges from place 4 on:

    >>> def losses(places, steps):
    ...     return [(k, math.inf if k > 3 else 1 - (10 - abs(k - 3)) * steps / 4000) for k in places]
    >>> Halving(losses, first=1.0, constant=1.0, horizon=200).go()
    Answer(start=3, trains=3, fails=4)
    """

    def __init__(
        self, losses: Losses, *, first: float, constant: float, horizon: int, near: bool = False
    ) -> None:
        self._losses, self._first = losses, first
        least = min(first, constant)
        self._bound = least - _LEARNED * abs(least)
        self._first_places = _NEAR if near else _WIDE
        self._stages = sorted({max(1, round(share * horizon)) for share in _STAGES})
        self.seen = dict[int, dict[int, float]]()
        """Losses of each place, by the number of steps."""

    def go(self) -> Answer:
        """Search, and return the answer."""
        places = list(self._first_places)
        for steps in self._stages:
            self._run(places, steps)
            self._move(places, steps, down=steps < self._stages[-1])
            places = sorted(places, key=lambda place: self._at(place, steps))[:_KEPT]
        return self.found()

    def found(self) -> Answer:
        """Answer from all runs so far."""
        steps = max((max(losses) for losses in self.seen.values()), default=0)
        start = min(self.seen, key=lambda place: self._at(place, steps), default=None)
        # a run that diverged has no loss at these steps, even if it had trained before
        if start is None or not self._at(start, steps)[0] < self._bound:
            return Answer(None, None, None)
        trains = start
        while self.trained(trains + 1):
            trains += 1
        return Answer(start, trains, trains + 1 if trains + 1 in self.seen else None)

    def trained(self, place: int) -> bool:
        """Return whether the run at a place ended below the start and below the best constant output."""
        return self.loss(place) < self._bound

    def loss(self, place: int) -> float:
        """Loss of a run after its last step; infinite if it diverged or was not made."""
        return list(self.seen.get(place, {0: math.inf}).values())[-1]

    def _run(self, places: Collection[int], steps: int) -> None:
        """Train at these places up to so many steps, unless they have diverged."""
        new = [k for k in places if k not in self.seen or self.loss(k) < math.inf]
        for place, loss in self._losses(new, steps) if new else ():
            self.seen.setdefault(place, {})[steps] = loss

    def _move(self, places: list[int], steps: int, *, down: bool) -> None:
        """Add places while the best one lies at an end."""
        for _ in range(_MOST):
            best = min(places, key=lambda place: self._at(place, steps))
            if best == max(places) and self.loss(best) < math.inf:
                places.append(best + 1)
            elif down and best == min(places) and not (self._still(best) and self._still(best + 1)):
                places.append(best - 1)
            else:
                break
            self._run(places[-1:], steps)

    def _at(self, place: int, steps: int) -> tuple[float, int]:
        return self.seen[place].get(steps, math.inf), place

    def _still(self, place: int) -> bool:
        """Whether the loss has not moved; a run that went up and came back is unlikely to end so near the start."""
        return abs(self.loss(place) - self._first) <= _STILL * abs(self._first)
