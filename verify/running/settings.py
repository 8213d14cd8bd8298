"""How a selection of claims is run: seed, tier, device, budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simulate.monte_carlo import BLOCK
from verify.judging.judge import looks
from verify.model import Experiment, Tier
from verify.model.observation import Observation

__all__ = ["Settings"]

FULL_FACTOR = 8
"""Replicates of the full tier to those of the default one."""

FULL_REPEATS = 4
"""The same for observations, of which eight times as many would take hours."""

DEFAULT_DATA = "digits"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a selection is run.

    `replicates`, where given, replaces the budget of every experiment; `data` names the images of real networks.
    """

    seed: int = 2024
    tier: Tier = Tier.DEFAULT
    device: str = "cpu"
    workers: int = 1
    replicates: int | None = None
    data: str = DEFAULT_DATA

    def budget(self, experiment: Experiment) -> int:
        """Most replicates per point."""
        if self.replicates is not None:
            return self.replicates
        return experiment.budget * (FULL_FACTOR if self.tier is Tier.FULL else 1)

    def repeats(self, observation: Observation) -> int:
        """Replicates of an observation at each point; a number given for the run can only lower it."""
        own = observation.replicates * (FULL_REPEATS if self.tier is Tier.FULL else 1)
        return own if self.replicates is None else min(own, self.replicates)

    def looks(self, experiment: Experiment) -> list[int]:
        """Numbers of replicates at which verdicts are tried: those of the budget, and the default one itself."""
        found, own = looks(self.budget(experiment)), BLOCK * math.ceil(experiment.budget / BLOCK)
        return sorted({*found, own}) if own < found[-1] else found
