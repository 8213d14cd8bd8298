"""The record of a plan: the state of a network, what training at each batch size has shown, and its curvature."""

from __future__ import annotations

from dataclasses import dataclass

from verify.practice.plan.batch_curvature import BatchCurvature
from verify.practice.plan.linearised import Linearised
from verify.practice.plan.state import State
from verify.practice.plan.trials import SizeTrial

__all__ = ["Plan"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What was found about a network, and the rates at every batch size.

    Attributes
    ----------
    name, samples, parameters
        Of the problem: N samples, P parameters.
    state
        Of the network before any rate was tried.
    optimiser, plain
        That was tried, and whether it is SGD without momentum and weight decay.
    intended
        Steps that training is to take in all; None if nobody said.
    trials
        One for each batch size, ascending; none if they were not asked for.
    linearised
        The dynamics linearised at the parameters as they are; None without, see `not_linearised`.
    batch_curvature
        Of networks with batch statistics, in the place of that: one for each batch size.
    not_linearised
        Why there is no such section; empty if there is, or was not asked for.
    seconds, seed
        Of all of it.
    """

    name: str
    samples: int
    parameters: int
    state: State
    optimiser: str
    plain: bool
    intended: int | None
    trials: tuple[SizeTrial, ...]
    linearised: Linearised | None
    batch_curvature: tuple[BatchCurvature, ...]
    not_linearised: str
    seconds: float
    seed: int

    @property
    def trial_steps(self) -> int:
        """Steps of training that all trials took."""
        return sum(at.walked.steps for at in self.trials)
