"""Settings of a run: seed, tier, device, budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simulate.monte_carlo import BLOCK
from verify.claims.images import DIGITS
from verify.judging.judge import looks
from verify.model import Experiment, Tier
from verify.model.observation import Observation

FULL_FACTOR = 8
"""Replicates of the full tier to those of the default one."""

FULL_REPEATS = 4
"""Replicates of an observation in the full tier to those of the default one; eight times as many would take hours."""

STREAMS, COUNTED = "streams", "counted"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a run.

    `replicates`, where given, replaces the budget of every experiment; `data` names the images of real networks;
    `draws` says where normal tensors come from, the `STREAMS` of the CPU or the generator that is `COUNTED` on the
    device; empty, also where it says no more than that: as the device has it.
    """

    seed: int = 2024
    tier: Tier = Tier.DEFAULT
    device: str = "cpu"
    workers: int = 1
    replicates: int | None = None
    data: str = DIGITS
    draws: str = ""

    def __post_init__(self) -> None:
        # The usual source is stored as empty: whether a run names it or not, stored blocks and records are the same.
        if self.draws == self._default_source:
            object.__setattr__(self, "draws", "")

    @property
    def drawn_by(self) -> str:
        """`STREAMS` or `COUNTED`."""
        return self.draws or self._default_source

    @property
    def _default_source(self) -> str:
        return STREAMS if self.device == "cpu" else COUNTED

    def budget(self, experiment: Experiment) -> int:
        """Most replicates per point."""
        if self.replicates is not None:
            return self.replicates
        return experiment.budget * (FULL_FACTOR if self.tier is Tier.FULL else 1)

    def repeats(self, observation: Observation) -> int:
        """Replicates of an observation at each point; a number given for the run can only lower it."""
        more = self.tier is Tier.FULL and observation.cost is None
        own = observation.replicates * (FULL_REPEATS if more else 1)
        return own if self.replicates is None else min(own, self.replicates)

    def looks(self, experiment: Experiment) -> list[int]:
        """Numbers of replicates at which verdicts are tried: those of the budget, and the default one itself."""
        # A larger budget also looks where the default one ends, so both have the same looks up to there.
        found, own = looks(self.budget(experiment)), BLOCK * math.ceil(experiment.budget / BLOCK)
        return sorted({*found, own}) if own < found[-1] else found
