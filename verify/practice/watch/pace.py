"""When a watcher measures, so that it takes no more than a share of the time."""

from __future__ import annotations

from collections.abc import Callable

import torch


class Pace:
    """When to measure, so that it takes no more than a share of the time."""

    def __init__(self, every: int, most: float, clock: Callable[[], float]) -> None:
        self._every, self._most, self._clock = every, most, clock
        self._left: float | None = None
        self._began = self._cost = 0.0
        self._trained = self._spent = 0.0
        self._since, self._interval = 0, 0

    def due(self, device: torch.device) -> bool:
        """Count a step of training, and tell whether to measure after it."""
        now, first = self._clock(), self._left is None
        if self._left is not None:
            self._trained += now - self._left
            self._since += 1
        self._left = now
        total = self._trained + self._spent
        # The last measurement stands for what the next one costs.
        affordable = self._spent + self._cost <= self._most * (total + self._cost)
        if not first and (self._since < self._every or not affordable):
            return False
        # A GPU works behind: wait, or the work of training would count as that of measuring.
        self._began = _finished(device, self._clock)
        self._trained += self._began - now
        self._interval, self._since = self._since, 0
        return True

    def measured(self, device: torch.device) -> tuple[float, float, int]:
        """Seconds of this measurement, share of all of them in the time so far, and steps since the one before."""
        self._left = _finished(device, self._clock)
        self._cost = self._left - self._began
        self._spent += self._cost
        total = self._spent + self._trained
        return self._cost, self._spent / total if total > 0 else 0.0, self._interval

    def written(self) -> None:
        """Count the time spent on the file."""
        if self._left is not None:
            now = self._clock()
            self._spent, self._left = self._spent + now - self._left, now


def _finished(device: torch.device, clock: Callable[[], float]) -> float:
    """The time when all that was asked of a device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return clock()
