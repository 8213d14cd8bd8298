"""Vysogorets, Dawid and Kempe (2024): the softmax covariance, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Point
from theory import derivations, gauss_newton, softmax
from verify.claims.vysogorets2024 import PAPER
from verify.model import OURS, AnyClaim, ExactProperty, Identity, Passage, Standing
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


def _above_the_largest(p: Array) -> float:
    """By how much the largest eigenvalue stays below the largest entry, which that of + p p' exceeds."""
    return max(0.0, float(p.max() - softmax.eigenvalues(p)[0]))


def spectrum(_: np.random.Generator, point: Point) -> float:
    """The largest violation of what the spectrum of diag(p) - p p' must keep to, ties and zeros included."""
    p = _normalised(point.weights)
    support = int((p > 0).sum())
    bounds = _outside_gershgorin(p, factor=2)
    return max(_against_dense(p), _product(p, factor=support), _secular(p), bounds)


SPECTRUM = ExactProperty(
    id="vysogorets2024/softmax-spectrum",
    entries=("A43",),
    source=f"{PAPER}, appendix B; the identities and the bounds are ours",
    passage=OURS,
    statement=r"\sum_k \frac{p_k}{p_k - \tilde\lambda_i} = 0,\quad "
    r"\prod_{i < K} \tilde\lambda_i = K \prod_k p_k\ (p > 0),\quad "
    r"\max_k p_k (1 - p_k) \le \tilde\lambda_1 \le \min\{2 \max_k p_k (1 - p_k), \tfrac{1}{2}\}",
    says="Nonzero eigenvalues of the softmax covariance solve a secular equation, have a product set by that of the "
    "probabilities, and a largest one bounded by single-class variances.",
    domain={"weights": WEIGHTS},
    violation=spectrum,
    examples=(
        Point(weights=(0.7, 0.2, 0.1)),
        Point(weights=(1.0, 1.0, 0.25, 0.25, 0.25, 0.0)),
        Point(weights=(1.0, 1e-6, 1e-6, 0.3)),
    ),
    tolerance=1e-12,
    tolerance_reason="rounding of a dense eigensolver, and of forty factors",
    rivals={
        "product without K": lambda _, point: _product(_normalised(point.weights), factor=1),
        "largest eigenvalue at most max p (1 - p)": lambda _, point: _outside_gershgorin(
            _normalised(point.weights), factor=1
        ),
        "eigenvalues of + p p'": lambda _, point: _above_the_largest(_normalised(point.weights)),
    },
    seconds=0.028,
)


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
    source=f"{PAPER}, appendix C; covariances of the multinomial law, Tanabe and Sagae (1992)",
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


def _in_60_digits(small: Array) -> tuple[Any, list[Any], Any]:
    """Gamma, descending eigenvalues but the last, and the entry of the mode: no difference of large numbers."""
    import mpmath

    p = [mpmath.mpf(float(x)) for x in small]
    p.append(1 - mpmath.fsum(p))
    diagonal = [x * mpmath.fsum(p[:k] + p[k + 1 :]) for k, x in enumerate(p)]
    column = mpmath.matrix(p)
    exact = -column * column.T
    for k, x in enumerate(diagonal):
        exact[k, k] = x
    roots = sorted(mpmath.eigsy(exact, eigvals_only=True), reverse=True)
    return mpmath.fsum(diagonal) / mpmath.sqrt(mpmath.fsum(x**2 for x in exact)), roots[:-1], diagonal[-1]


def small_entries(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gamma, and eigenvalues and largest diagonal entry over the small ones: 60 digits, the product, dense floats."""
    import mpmath

    small = point.tail * np.array(point.weights)
    p = np.append(small, 1 - small.sum())
    dense = _dense(p)
    with mpmath.workdps(60):
        gamma, roots, mode = _in_60_digits(small)
        digits = [float(x) for x in (gamma, *(r / point.tail for r in roots), mode / point.tail)]
    scaled = np.append(softmax.eigenvalues(p)[:-1], softmax.covariance(p)[-1, -1]) / point.tail
    naive = np.append(np.linalg.eigvalsh(dense)[:0:-1], dense[-1, -1]) / point.tail
    return {
        "60 digits": digits,
        "theory": [softmax.gamma(p), *scaled],
        "dense": [dense_gamma(p), *naive],
    }


SMALL = Identity(
    id="vysogorets2024/small-entries",
    entries=("A59",),
    source=f"ours, beside {PAPER}, section 4",
    passage=OURS,
    statement=r"\Gamma_p,\ \tilde\lambda_i,\ M_{kk} \text{ from } p \text{ keep their digits however small } "
    r"1 - \max p \text{ is, read as the sum of the other entries}",
    says="Computed from probabilities, with the small ones taken as exact, excess, eigenvalues and diagonal of the "
    "softmax covariance keep full floating-point precision however near one-hot the prediction is.",
    routes=small_entries,
    points=tuple(Point(weights=(3.0, 2.0, 1.0, 0.3), tail=t) for t in (1e-3, 1e-11, 1e-17, 1e-150, 1e-300)),
    tolerance=4e-15,
    tolerance_reason="a dozen roundings; no digits are lost to confidence",
    seconds=0.014,
    quantity="Gamma, and eigenvalues and diagonal in units of the small entries",
)

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


PREDICTIONS = (
    ((0.90, 0.06, 0.03, 0.01), (0.05, 0.85, 0.02, 0.08), (0.30, 0.10, 0.55, 0.05)),
    ((0.97, 0.02, 0.01), (0.02, 0.95, 0.03), (0.93, 0.01, 0.06), (0.01, 0.02, 0.97), (0.45, 0.50, 0.05)),
)

BATCH = Identity(
    id="vysogorets2024/batch-excess",
    entries=("A30",),
    source=f"{PAPER}, section 4, eq. (8) corrected, for a batch",
    statement=r"\mathrm{exc}(\mathbb{E}_e G) = \mathrm{eq.\,(8)\ at\ } "
    r"\Gamma = \mathrm{exc}\Big(\tfrac{1}{N} \sum_\mu M(p^\mu)\Big)",
    says="For a batch, the closed form of the excess, evaluated at the averaged softmax covariance, gives that of the "
    "random model's exact mean Gauss-Newton matrix.",
    routes=batch,
    points=tuple(Point(p=p, dim=31, sigma_c=1.1, sigma_e=0.6) for p in PREDICTIONS),
    tolerance=1e-13,
    tolerance_reason=ROUNDING,
    seconds=0.01,
    quantity="excess of the mean G-term",
)

CLAIMS: tuple[AnyClaim, ...] = (
    SPECTRUM,
    RANK,
    MOMENTS,
    SMALL,
    BATCH,
)
