"""One eigenvalue of a small symmetric tridiagonal matrix: what takes the time of so small ones is to ask for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

__all__ = ["eigenpair", "eigenvalue"]

Floats = NDArray[np.float64]

_BY_INDEX = 2
_FOUND: Any = linalg.get_lapack_funcs(("stebz", "stein"), dtype=np.float64)
_STEBZ, _STEIN = _FOUND


def eigenpair(diagonal: Floats, beside: Floats, place: int) -> tuple[float, float]:
    """The eigenvalue at this place, counted upwards from 0, and the squared first component of its eigenvector.

    As `scipy.linalg.eigh_tridiagonal` finds them, by the same routines, without its looks at the arguments.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a routine does not converge.

    Examples
    --------
    >>> value, squared = eigenpair(np.array([2.0, 2.0]), np.array([1.0]), 1)
    >>> round(value, 9), round(squared, 9)
    (3.0, 0.5)
    """
    if len(diagonal) == 1:  # which the routines refuse
        return float(diagonal[0]), 1.0
    _, values, blocks, splits, info = _STEBZ(
        diagonal, beside, _BY_INDEX, 0.0, 1.0, place + 1, place + 1, 0.0, "B"
    )
    _require_converged(info)
    vectors, info = _STEIN(diagonal, beside, values[:1], blocks, splits)
    _require_converged(info)
    return float(values[0]), float(vectors[0, 0] ** 2)


def eigenvalue(diagonal: Floats, beside: Floats, place: int) -> float:
    """The eigenvalue of `eigenpair` by itself."""
    if len(diagonal) == 1:
        return float(diagonal[0])
    _, values, _, _, info = _STEBZ(diagonal, beside, _BY_INDEX, 0.0, 1.0, place + 1, place + 1, 0.0, "E")
    _require_converged(info)
    return float(values[0])


def _require_converged(info: int) -> None:
    if info:
        raise np.linalg.LinAlgError(
            f"tridiagonal matrix must have an eigenpair that converges, got code {info}"
        )
