"""Frobenius norm of a curvature matrix some of whose eigenvectors are known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from simulate.eigenvalues import Extremes
from simulate.lanczos import Operator
from simulate.spectra import Estimate, frobenius_norm


def frobenius(operator: Operator, found: Extremes, rng: np.random.Generator, *, probes: int) -> Estimate:
    """Root of the squares along the eigenvectors found, exact, and of an estimate of the rest, one product a probe.

    Examples
    --------
    >>> from simulate.eigenvalues import extremes
    >>> from simulate.lanczos import as_operator
    >>> matrix, rng = as_operator(np.diag([4.0, 3.0, 0.0])), np.random.default_rng(0)
    >>> norm = frobenius(matrix, extremes(matrix, rng, largest=2), rng, probes=2)
    >>> round(norm.value, 9), round(norm.standard_error, 9)
    (5.0, 0.0)
    """
    norm = GrowingNorm(operator, found, rng)
    norm.grow(probes)
    return norm.estimate


class GrowingNorm:
    """Frobenius norm of a matrix some of whose eigenvectors are known: the rest by as many probes as it takes.

    Examples
    --------
    >>> from simulate.eigenvalues import extremes
    >>> from simulate.lanczos import as_operator
    >>> matrix, rng = as_operator(np.diag([4.0, 3.0, 0.0])), np.random.default_rng(0)
    >>> norm = GrowingNorm(matrix, extremes(matrix, rng, largest=2), rng)
    >>> norm.grow(2)
    >>> round(norm.estimate.value, 9), round(norm.estimate.standard_error, 9)
    (5.0, 0.0)
    """

    def __init__(self, operator: Operator, found: Extremes, rng: np.random.Generator) -> None:
        known = torch.as_tensor(found.vectors, dtype=operator.dtype, device=operator.device)
        self._beyond = replace(
            operator, product=lambda rows: operator.product(rows - (rows @ known) @ known.mT)
        )
        # H v = value v + r with r orthogonal to v, so |H v|^2 is exactly this sum.
        self._along = float((found.values**2 + found.residuals**2).sum())
        self._rng = rng
        self._rounds: list[tuple[int, Estimate]] = []

    @property
    def probes(self) -> int:
        """Number of probes so far."""
        return sum(count for count, _ in self._rounds)

    def grow(self, probes: int) -> None:
        """Estimate the rest by so many probes more."""
        # A standard error needs two probes.
        count = max(2, probes)
        self._rounds.append((count, frobenius_norm(self._beyond, self._rng, probes=count)))

    @property
    def estimate(self) -> Estimate:
        """Current value of the norm, with its standard error."""
        square = sum(n * each.value**2 for n, each in self._rounds) / self.probes
        # standard errors of the squares: d(norm^2) = 2 norm d(norm)
        errors = [2 * each.value * each.standard_error * n for n, each in self._rounds]
        value = math.sqrt(self._along + square)
        return Estimate(value, math.hypot(*errors) / self.probes / (2 * value) if value else 0.0)
