"""Budget of a measurement, and the rule that stops its estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from simulate._checks import at_least
from simulate.lanczos import Operator
from simulate.spectra import Estimate, xtrace
from verify.practice.measure.measurement import Number

_AT_ONCE = 40
"""Probes of one estimate of a trace: each needs eight vectors at a time."""


@dataclass(frozen=True, kw_only=True)
class StoppingRule:
    """Budget and tolerance of estimates.

    Attributes
    ----------
    probes
        Random vectors that estimates of traces and norms begin with, at least 2.
    tolerance
        Standard error to go on to: of a trace over the larger of trace and Frobenius norm, of that norm over itself.
    budget
        Products with a vector of the whole measurement, eigenvalues and densities included. What each part takes at
        first is spent all the same, and laid aside until then: beyond it no probe is added and no eigenvalue refined.

    Raises
    ------
    ValueError
        If a value is out of its range.
    """

    probes: int = 20
    tolerance: float = 0.05
    budget: int = 3000

    def __post_init__(self) -> None:
        at_least("probes", self.probes, 2)
        at_least("budget", self.budget, 0)
        if not (isinstance(self.tolerance, int | float) and 0 < self.tolerance < math.inf):
            raise ValueError(f"tolerance must be a positive number, got {self.tolerance!r}")


class GrowingTrace:
    """A trace, of which one part may be known and the rest is estimated by XTrace with as many probes as it takes.

    Estimates of several rounds are independent and weighed by their probes.

    Examples
    --------
    >>> from simulate.lanczos import as_operator
    >>> found = GrowingTrace(1.0, as_operator(np.diag([5.0, 3.0, 0.0, 0.0])), np.random.default_rng(0))
    >>> found.grow(3)
    >>> round(found.number.value, 9), found.probes
    (9.0, 3)
    """

    def __init__(self, known: float, rest: Operator | None, rng: np.random.Generator) -> None:
        self._known, self._rest, self._rng = known, rest, rng
        self._rounds: list[tuple[int, Estimate]] = []

    @property
    def exact(self) -> bool:
        """Return whether nothing is left to estimate."""
        return self._rest is None

    @property
    def probes(self) -> int:
        """Number of probes so far."""
        return sum(count for count, _ in self._rounds)

    def grow(self, probes: int) -> None:
        """Estimate the rest by so many probes more; all of it is known where the matrix is not larger."""
        if self._rest is None:
            return
        if self._rest.dim <= probes:
            rows = self._rest.product(
                torch.eye(self._rest.dim, dtype=self._rest.dtype, device=self._rest.device)
            )
            self._known, self._rest = self._known + float(rows.double().trace()), None
            return
        while probes > 0:
            # A standard error needs two probes.
            count = max(2, min(probes, _AT_ONCE))
            self._rounds.append((count, xtrace(self._rest, self._rng, probes=count)))
            probes -= count

    @property
    def number(self) -> Number:
        """Current value of the trace, with its error."""
        if self._rest is None:
            return Number.exact(self._known)
        value = sum(n * each.value for n, each in self._rounds) / self.probes
        error = math.sqrt(sum((n * each.standard_error) ** 2 for n, each in self._rounds)) / self.probes
        return Number(value=self._known + value, error=error, kind="standard error")
