"""Vysogorets, Dawid and Kempe (2024): the softmax covariance, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Point
from theory import derivations, gauss_newton, softmax
from verify.claims.vysogorets2024 import PAPER
from verify.model import AnyClaim, Identity, Passage, Standing
from verify.model.domains import Between, Either, Many, OneOf

__all__ = ["CLAIMS", "dense_gamma"]

Array = NDArray[Any]

ROUNDING = "exact; a few roundings in float64"


def _dense(p: Array) -> Array:
    return np.diag(p) - np.outer(p, p)


def dense_gamma(p: Array) -> Array:
    """Trace over norm of diag(p) - p p', shape (..., K) -> (...), in the precision of p."""
    covariance = p[..., None] * np.eye(p.shape[-1], dtype=p.dtype) - p[..., None] * p[..., None, :]
    trace = np.trace(covariance, axis1=-2, axis2=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return trace / np.sqrt(np.square(covariance).sum((-2, -1)))


def _excess(matrix: Array) -> float:
    return float(np.trace(matrix) / np.linalg.norm(matrix))


def _normalised(weights: Any) -> Array:
    return np.array(weights) / np.sum(weights)


def _exactly(weights: Any) -> tuple[list[Any], Any]:
    """Rational probabilities in the proportions of whole numbers, and their covariance."""
    import sympy

    p = [sympy.Rational(w, sum(weights)) for w in weights]
    column = sympy.Matrix(p)
    return p, sympy.diag(*p) - column * column.T


# --- the whole spectrum --------------------------------------------------------------------------------------


WEIGHTS = Many(
    Either(OneOf(0.0), OneOf(0.25, 1.0), Between(1e-6, 1.0)), 2, 40, where=lambda w: sum(x > 0 for x in w) > 1
)


def _against_dense(p: Array) -> float:
    """Largest difference of the matrix and of its eigenvalues."""
    dense = _dense(p)
    spectrum = np.abs(np.linalg.eigvalsh(dense)[::-1] - softmax.eigenvalues(p)).max()
    return float(max(spectrum, np.abs(softmax.covariance(p) - dense).max()))


def _product(p: Array, *, factor: float) -> float:
    """Relative difference of the product of the nonzero eigenvalues from `factor` times the product of p."""
    inside = p[p > 0]
    found = softmax.eigenvalues(p)[: len(inside) - 1]
    return float(np.abs(np.expm1(np.log(found).sum() - np.log(factor) - np.log(inside).sum())))


def _secular(p: Array) -> float:
    """Relative distance to the roots of sum p_k / (p_k - x), by Newton, from eigenvalues x > 0 apart from all p."""
    found = softmax.eigenvalues(p)
    away = found[(found > 0) & (np.abs(found[:, None] - p).min(axis=1) > 1e-6 * found)]
    gaps = p - away[:, None]
    steps = (p / gaps).sum(axis=1) / (away * (p / gaps**2).sum(axis=1))
    return float(np.abs(steps).max(initial=0.0))


def _outside_gershgorin(p: Array, *, factor: float) -> float:
    """By how much the largest eigenvalue leaves [v, min(factor v, 1/2)], v the largest p (1 - p), over v."""
    top, variance = softmax.eigenvalues(p)[0], float((p * (1 - p)).max())
    return max(variance - top, top - min(factor * variance, 0.5), 0.0) / variance


def spectrum(_: np.random.Generator, point: Point) -> float:
    """The largest violation of what the spectrum of diag(p) - p p' must keep to, ties and zeros included."""
    p = _normalised(point.weights)
    support = int((p > 0).sum())
    bounds = _outside_gershgorin(p, factor=2)
    return max(_against_dense(p), _product(p, factor=support), _secular(p), bounds)


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


# --- near one-hot --------------------------------------------------------------------------------------------


# --- a batch -------------------------------------------------------------------------------------------------


def batch(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Excess of the dense mean of eq. (7) over a batch of predictions, around orthogonal class means."""
    p = np.array(point.p)
    frame = np.linalg.qr(rng.standard_normal((point.dim, p.shape[1])))[0].T
    means = point.dim**0.5 * point.sigma_c * frame
    noise = point.sigma_e**2 * (1 - np.square(p).sum(axis=1).mean())
    expected = means.T @ np.mean([_dense(q) for q in p], axis=0) @ means + noise * np.eye(point.dim)

    def eq_8(gamma: Any) -> Any:
        return gauss_newton.expected_excess(
            gamma, dim=point.dim, sigma_c=point.sigma_c, sigma_e=point.sigma_e
        )

    return {
        "dense": _excess(expected),
        "Gamma of the mean matrix": eq_8(softmax.gamma(p, average=True)),
        "mean of Gamma": eq_8(softmax.gamma(p).mean()),
        "Gamma of the mean prediction": eq_8(softmax.gamma(p.mean(axis=0))),
        "Gamma side by side": eq_8(softmax.batch_gammas(p).separate),
    }


CLAIMS: tuple[AnyClaim, ...] = (
    RANK,
    MOMENTS,
)
