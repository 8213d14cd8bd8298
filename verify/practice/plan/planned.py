"""The record of a plan: the state of a network, what training at each batch size has shown, and its curvature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from simulate.results import Columns, Result
from verify.practice.plan.batch_curvature import BatchCurvature
from verify.practice.plan.linearised import Linearised
from verify.practice.plan.state import State
from verify.practice.plan.trials import SizeTrial
from verify.practice.plan.walk import FACTOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROUNDING = 1e-9

SizeRate = tuple[int, float]
"""A batch size and a rate."""


def power_between(one: SizeRate, other: SizeRate) -> float:
    """Exponent of the batch size by which the rate goes from one to the other.

    >>> power_between((16, 0.1), (256, 0.4))
    0.5
    """
    return math.log(other[1] / one[1]) / math.log(other[0] / one[0])


def power_with_error(one: SizeRate, other: SizeRate) -> tuple[float, float] | None:
    """Return the exponent of the rate in the batch size, with its error from the grid of rates; None if too uncertain.

    The error is half a trial step at either end. The exponent is too uncertain if its interval is wider than 1, or has
    at most an end in common with the interval from 0 to 1, in which the laws of rates and batch sizes lie.

    >>> power_with_error((16, 0.1), (256, 0.4))
    (0.5, 0.25)
    >>> power_with_error((4, 0.1), (16, 0.8)), power_with_error((16, 0.1), (32, 0.2))
    (None, None)
    """
    found, error = power_between(one, other), math.log(FACTOR) / abs(math.log(other[0] / one[0]))
    if 2 * error > 1 + _ROUNDING or not _ROUNDING - error < found < 1 - _ROUNDING + error:
        return None
    return found, error


def along_power(one: SizeRate, other: SizeRate, batch_size: int) -> float:
    """The rate at another size along that power.

    >>> along_power((1, 1.0), (4, 4.0), 2)
    2.0
    """
    return one[1] * (batch_size / one[0]) ** power_between(one, other)


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Result):
    """Result of `plan`: the state of a network, and rates at every batch size.

    Attributes
    ----------
    name, samples, parameters
        Name of the problem, N samples and P parameters.
    state
        State of the network before any rate was tried.
    optimizer, plain
        Optimiser of the trials, and whether it is SGD without momentum and weight decay.
    kind
        Name under which the optimiser was measured on held-out networks; None if it was not.
    intended
        Steps that training is to take in all; None if not given.
    trials
        One for each batch size, ascending; empty if not asked for.
    linearised
        Dynamics linearised at the current parameters; None without them, see `not_linearised`.
    batch_curvature
        One for each batch size, for networks with batch statistics, instead of `linearised`.
    not_linearised
        Why the linearised dynamics are missing; empty if they are there or were not asked for.
    seconds, seed
        Time of the whole plan, and its seed.
    """

    name: str
    samples: int
    parameters: int
    state: State
    optimizer: str
    plain: bool
    kind: str | None
    intended: int | None
    trials: tuple[SizeTrial, ...]
    linearised: Linearised | None
    batch_curvature: tuple[BatchCurvature, ...]
    not_linearised: str
    seconds: float
    seed: int

    def start_at(self, batch_size: int) -> float:
        """The rate to start with at a batch size between two that were tried: along a power of B from one to the other.

        Raises
        ------
        ValueError
            If no trial at or on either side of the size found a rate: beyond those that were tried no power holds.

        Examples
        --------
        A plan is made by `verify.practice.plan.plan`; of rates 0.1 at B = 16 and 0.4 at B = 256:

        >>> along_power((16, 0.1), (256, 0.4), 64)
        0.2
        """
        for at in self.trials:
            if at.batch_size == batch_size and at.start is not None:
                return at.start
        for below, above in self.segments:
            if below[0] < batch_size < above[0]:
                return along_power(below, above, batch_size)
        known = ", ".join(str(at.batch_size) for at in self.trials if at.start is not None) or "none"
        raise ValueError(f"batch size must lie between those with a rate ({known}), got {batch_size}")

    @property
    def segments(self) -> tuple[tuple[SizeRate, SizeRate], ...]:
        """Neighbouring batch sizes that both have a rate to start with."""
        each = [(at.batch_size, at.start) for at in self.trials]
        return tuple(
            ((b, rate), (c, other))
            for (b, rate), (c, other) in pairwise(each)
            if rate is not None and other is not None
        )

    @property
    def trial_steps(self) -> int:
        """Steps of training that all trials took."""
        return sum(at.walked.steps for at in self.trials)

    def _headline(self) -> str:
        size = f"P = {self.parameters}, N = {self.samples}, loss {self.state.loss:.5g}"
        spent = f"{self.trial_steps} steps of trial training, " * bool(self.trials)
        return f"{self.name}, {size}; {self.optimizer}, {spent}seed {self.seed}"

    def _columns(self) -> Columns:
        rates = () if self.linearised is None else self.linearised.rates
        found = (*self.trials, *rates, *self.batch_curvature)
        sizes = sorted({at.batch_size for at in found})
        columns: dict[str, list[Any]] = {"batch size": list(sizes)}
        # names of the columns by fields: of a trial, of the bracket, of the curvature of batches
        sections: tuple[tuple[Any, dict[str, str]], ...] = (
            (self.trials, {"start": "start with", "trains": "trains at", "fails": "fails at"}),
            (rates, {"lower": "SGD stable below", "upper": "SGD unstable above"}),
            (self.batch_curvature, {"rate": "2/E l1(H_B)"}),
        )
        for section, names in sections:
            known = {at.batch_size: at for at in section}
            for field, name in names.items() if section else ():
                columns[name] = [getattr(known.get(size), field, None) for size in sizes]
        return columns

    def _inches(self) -> tuple[float, float]:
        return 5.2, 3.4

    def _draw(self, axes: Axes) -> None:
        # by its name: the module of the picture imports this record
        import_module("verify.practice.plan.picture").draw_rates(axes, self)

    def summary(self) -> str:
        """Return what ``losscurv plan`` prints."""
        return import_module("verify.practice.plan.words").plan_text(self)
