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
    known = torch.as_tensor(found.vectors, dtype=operator.dtype, device=operator.device)
    beyond = replace(operator, product=lambda rows: operator.product(rows - (rows @ known) @ known.mT))
    # H v = value v + r with r orthogonal to v, so |H v|^2 is exactly this sum.
    along = float((found.values**2 + found.residuals**2).sum())
    rest, error = frobenius_norm(beyond, rng, probes=probes)
    value = math.sqrt(along + rest**2)
    return Estimate(value, rest * error / value if value else 0.0)
