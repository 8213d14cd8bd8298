"""Vysogorets, Dawid and Kempe (2024): the softmax covariance, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Point
from theory import derivations, softmax
from verify.claims.vysogorets2024 import PAPER
from verify.model import AnyClaim, Identity, Passage, Standing

__all__ = ["CLAIMS", "dense_gamma"]

Array = NDArray[Any]


def dense_gamma(p: Array) -> Array:
    """Trace over norm of diag(p) - p p', shape (..., K) -> (...), in the precision of p."""
    covariance = p[..., None] * np.eye(p.shape[-1], dtype=p.dtype) - p[..., None] * p[..., None, :]
    trace = np.trace(covariance, axis1=-2, axis2=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return trace / np.sqrt(np.square(covariance).sum((-2, -1)))


def _normalised(weights: Any) -> Array:
    return np.array(weights) / np.sum(weights)


def _exactly(weights: Any) -> tuple[list[Any], Any]:
    """Rational probabilities in the proportions of whole numbers, and their covariance."""
    import sympy

    p = [sympy.Rational(w, sum(weights)) for w in weights]
    column = sympy.Matrix(p)
    return p, sympy.diag(*p) - column * column.T


# --- the whole spectrum --------------------------------------------------------------------------------------


def rank(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Rank of the covariance in rational arithmetic, and eigenvalues above zero."""
    return {
        "exact": _exactly(point.weights)[1].rank(),
        "theory": np.count_nonzero(softmax.eigenvalues(_normalised(point.weights))),
        "K - 1": len(point.weights) - 1,
        "support": np.count_nonzero(point.weights),
    }


RANK = Identity(
    id="vysogorets2024/softmax-rank",
    entries=("A44",),
    source=f"{PAPER}, appendix C",
    statement=r"\mathrm{rank}(\mathrm{diag}(p) - pp^\top) = |\mathrm{supp}\,p| - 1",
    says="The rank of the softmax covariance is one less than the number of classes with nonzero probability.",
    reads=r"\mathrm{rank}(\mathrm{diag}(p) - pp^\top) = K - 1",
    routes=rank,
    points=tuple(Point(weights=w) for w in ((5, 3, 2, 0, 0), (3, 0, 4, 1, 0, 0, 2), (10**9, 1, 0, 7, 0))),
    printed="K - 1",
    passage=Passage(Standing.OUTSIDE, "is identically zero when p is one-hot", "Appendix C"),
    finding="Outside of predictions without zeros, where the rank is K - 1, each absent class lowers it by one, down "
    "to the zero at one-hot p that the paper names.",
    tolerance=1e-12,
    tolerance_reason="whole numbers",
    seconds=0.01,
    quantity="rank of the softmax covariance",
)


def moment_form(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gamma^2 from the dense matrix and from sums of powers, both in rational arithmetic."""
    p, exact = _exactly(point.weights)
    s2, s3 = (sum(x**n for x in p) for n in (2, 3))
    found = derivations.gamma_squared_of_moments()
    return {
        "dense": float(exact.trace() ** 2 / (exact * exact).trace()),
        "moments": float(found.expression.subs(dict(zip(found.symbols, (s2, s3), strict=True)))),
        "s3 once": float((1 - s2) ** 2 / (s2 - s3 + s2**2)),
        "s2 not squared": float((1 - s2) ** 2 / (2 * s2 - 2 * s3)),
        "diagonal only": float((1 - s2) ** 2 / (s2 - 2 * s3 + sum(x**4 for x in p))),
    }


MOMENTS = Identity(
    id="vysogorets2024/moment-form",
    entries=("A45",),
    source=f"{PAPER}, appendix C, eq. (10), shortened",
    statement=r"\Gamma_p^2 = \frac{(1 - s_2)^2}{s_2 - 2 s_3 + s_2^2},\quad s_n = \sum_k p_k^n",
    says="The squared excess of the softmax covariance is an explicit ratio of the sums of squared and of cubed "
    "probabilities.",
    routes=moment_form,
    points=tuple(Point(weights=w) for w in ((7, 2, 1), (31, 22, 15, 11, 8, 5, 4), (10**12, 3, 2, 2, 1))),
    tolerance=1e-15,
    tolerance_reason="rational arithmetic, rounded once",
    seconds=0.01,
    quantity="squared Gamma",
)


CLAIMS: tuple[AnyClaim, ...] = (
    RANK,
    MOMENTS,
)
