"""Closed forms of `excess` and `projection` in `verify.claims.vysogorets2024`."""

import math

import numpy as np
import sympy
from scipy import stats

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "UNSEEN"]


def _values(p: Point) -> np.ndarray:
    return np.repeat(p.eigenvalues, p.multiplicities)


def _squared_diagonal(p: Point) -> float:
    """Of a matrix along the axes, or of one whose diagonal is everywhere its mean eigenvalue."""
    values = _values(p)
    return float((values**2).sum() if p.aligned else values.mean() ** 2 * len(values))


def _mean_inverse(p: Point) -> float:
    """Of the number of entries of a column that is not empty."""
    size = sum(p.multiplicities)
    counts = np.arange(1, size + 1)
    weights = stats.binom.pmf(counts, size, size**-0.5)
    return float((weights / counts).sum() / weights.sum())


SPECTRUM = {
    "parameters": lambda p: sum(p.multiplicities),
    "trace": lambda p: math.fsum(_values(p)),
    "square": lambda p: math.fsum(_values(p) ** 2),
}

EXCESS = {
    "parameters": SPECTRUM["parameters"],
    "excess": lambda p: SPECTRUM["trace"](p) / SPECTRUM["square"](p) ** 0.5,
}


def _sparse(dim, parameters, trace, square, own, kappa):
    one = kappa / parameters * own
    two = (1 - kappa) / (parameters * (parameters - 1)) * (trace**2 + 2 * square - 3 * own)
    return dim * (one + two) + dim * (dim - 1) / parameters**2 * square


def _haar(dim, parameters, trace, square):
    below = parameters * (parameters - 1) * (parameters + 2)
    b = dim * (parameters - dim) / below
    return (dim * (dim * (parameters + 1) - 2) / below + b) * square + b * trace**2


def _law(dim, parameters, excess):
    above = dim * (parameters - 1) * (parameters + 2) / parameters
    return above * excess**2 / ((dim + 1) * parameters - 2 + (parameters - dim) * excess**2)


FORMS = {
    "vysogorets2024/bulk-outlier": ClosedForm(lambda spike, bulk_norm: spike + bulk_norm**2 / (4 * spike)),
    "vysogorets2024/spiked-excess": ClosedForm(
        lambda spike, rank, bulk_norm, dim: (
            rank * spike / sympy.sqrt(rank * spike**2 + dim * bulk_norm**2 / 4)
        ),
    ),
    "vysogorets2024/frame-overlap": ClosedForm(lambda dim, parameters: dim * (dim - 1) / parameters),
    "vysogorets2024/sparse-dimension-law": ClosedForm(
        lambda dim, parameters, trace, square, own, kappa: (
            (dim / parameters * trace) ** 2 / _sparse(dim, parameters, trace, square, own, kappa)
        ),
        SPECTRUM | {"own": _squared_diagonal, "kappa": _mean_inverse},
    ),
    "vysogorets2024/projected-norm": ClosedForm(_haar, SPECTRUM),
    "vysogorets2024/dimension-law": ClosedForm(_law, EXCESS),
    "vysogorets2024/noise-floor": ClosedForm(
        lambda dim, parameters: 2 * (parameters - dim) / (dim * parameters + parameters - 2), SPECTRUM
    ),
    "vysogorets2024/excess-in-50-dimensions": ClosedForm(
        lambda dim, excess: excess * sympy.sqrt(dim / (dim + 1 + excess**2)),
        {"dim": lambda p: p.dims[-1]},
    ),
    "vysogorets2024/hutchinson-norm": ClosedForm(lambda square: 1 * square),
    "vysogorets2024/projection-is-not-hutchinson": ClosedForm(
        lambda dim, excess: 1 + (1 + excess**2) / dim,
    ),
}

OF_THE_ONE = ("without term 1", "-1 times 1", "2 times 1", "1/2 times 1")

UNSEEN = {
    "vysogorets2024/excess-in-50-dimensions": {
        "1 beside d + r^2 is less than two margins, at d = 50 with all that can be done to it": OF_THE_ONE,
    },
    "vysogorets2024/projection-is-not-hutchinson": {
        "1 beside r^2, in 23 dimensions, is less than two margins": OF_THE_ONE,
    },
    "vysogorets2024/sparse-dimension-law": {
        "parts of the squared norm below two margins of 5 %; unit tests hold the moments to draws": (
            "1/2 times -1",
            "square -> parameters in 2*square",
            "-3 -> -2 in -3*own",
        ),
    },
}
