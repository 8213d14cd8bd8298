"""Result of a plan: rates from trial runs at each batch size, and stability limits from curvature if asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from simulate.results import Columns, Result
from verify.practice.limits import Linearised
from verify.practice.plan.hold_out import LEARNED
from verify.practice.plan.trials import SizeTrial

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class State:
    """Network before the trial runs.

    Attributes
    ----------
    loss, constant
        Loss by which rates are compared, and that of the best constant output; infinite if the loss takes none.
    doubts
        Likely mistakes in model or data, see `verify.practice.setup_warnings`.
    """

    loss: float
    constant: float
    doubts: tuple[str, ...] = ()

    @property
    def learned(self) -> bool:
        """Whether the loss is more than 2 % below that of the best constant output."""
        return self.loss < LEARNED * self.constant < math.inf


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Result):
    """Result of `plan`: rates at each batch size.

    Attributes
    ----------
    name, samples, parameters
        Name of the problem, N samples and P parameters.
    state
        Network before the trial runs.
    optimizer, kind
        Optimizer with its settings, and its name in `hold_out.HOLD_OUT`; None if it was not tested.
    score
        Loss by which rates were chosen, one of `trials.SCORES`.
    trials
        One for each batch size, ascending.
    stopped
        Why trial runs ended early: "time", "interrupted", or empty.
    linearised, not_linearised
        Stability limits of plain SGD from curvature; None with the reason, which is empty if nobody asked.
    seconds, seed
        Time of the whole plan, and its seed.
    """

    name: str
    samples: int
    parameters: int
    state: State
    optimizer: str
    kind: str | None
    score: str
    trials: tuple[SizeTrial, ...]
    stopped: str
    linearised: Linearised | None
    not_linearised: str
    seconds: float
    seed: int

    @property
    def trial_steps(self) -> int:
        """Number of training steps that all trial runs took."""
        return sum(at.steps for at in self.trials)

    def _headline(self) -> str:
        size = f"P = {self.parameters}, N = {self.samples}, {self.score} loss {self.state.loss:.5g}"
        return f"{self.name}, {size}; {self.optimizer}, {self.trial_steps} trial steps, seed {self.seed}"

    def _columns(self) -> Columns:
        names = {"batch size": "batch_size", "suggested rate": "start"}
        names |= {"largest that trained": "trains", "first that failed": "fails"}
        return {name: [getattr(at, field) for at in self.trials] for name, field in names.items()}

    def _inches(self) -> tuple[float, float]:
        return 5.2, 3.4

    def _draw(self, axes: Axes) -> None:
        # by its name: the module of the picture imports this record
        import_module("verify.practice.plan.picture").draw_trials(axes, self)

    def summary(self) -> str:
        """Return what ``losscurv plan`` prints."""
        return import_module("verify.practice.plan.words").plan_text(self)
