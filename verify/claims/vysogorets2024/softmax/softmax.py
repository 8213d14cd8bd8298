"""Vysogorets, Dawid and Kempe (2024): the softmax covariance, exactly: Gamma, eigenvalues, rank and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Point
from theory import derivations, gauss_newton, softmax
from verify.claims.vysogorets2024 import PAPER
from verify.model import AnyClaim, ExactProperty, Identity, Passage, Standing
from verify.model.domains import Between, Either, Many, OneOf

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


# --- rank and moments ----------------------------------------------------------------------------------------


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


# --- its range, and limits at collapse -----------------------------------------------------------------------


def weighted_collapse(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gamma^2 with unlikely classes in given proportions: the limit by algebra, and at a huge gap."""
    import sympy

    limit = derivations.collapse_limit_weighted()
    weights = np.array(point.weights)
    concentration = (weights**2).sum() / weights.sum() ** 2
    count = len(weights)
    return {
        "numeric": softmax.gamma_from_logits(np.append(point.gap, np.log(weights))) ** 2,
        "symbolic": float(sympy.lambdify(limit.symbols, limit.expression)(concentration)),
        "1": 1.0,
        "equal runners-up": 4 * count / (count + 3),
    }


WEIGHTS = Many(
    Either(OneOf(0.0), OneOf(0.25, 1.0), Between(1e-6, 1.0)), 2, 9, where=lambda w: sum(x > 0 for x in w) > 1
)


def gamma_and_interlacing(_: np.random.Generator, point: Point) -> float:
    """By how much Gamma leaves [1, sqrt(K - 1)], or an eigenvalue its interval, ties and zeros included."""
    p = _normalised(point.weights)
    largest = float(gauss_newton.largest_excess(len(p) - 1))
    return max(_outside_gamma(p, largest), _outside_interlacing(p, above=0, below=1))


def _outside_gamma(p: Array, largest: float) -> float:
    found = float(softmax.gamma(p))
    return max(1 - found, found / largest - 1, 0.0)


def _outside_interlacing(p: Array, *, above: int, below: int) -> float:
    """By how much dense eigenvalue i leaves [p_(i + below), p_(i + above)], i = 1..K-1."""
    found = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[::-1][:-1]
    ordered = np.sort(p)[::-1]
    upper, lower = ordered[above : above + len(found)], ordered[below : below + len(found)]
    return float(max((found - upper).max(), (lower - found).max(), 0.0))


CORRECTION = "a few roundings; the correction exp(-60) is below them"

CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="vysogorets2024/weighted-collapse",
        entries=("A33",),
        source=f"{PAPER}, section 4 and appendix C",
        statement=r"\lim \Gamma_p^2 = \frac{4}{1 + 3h},\quad h = \frac{\sum_i w_i^2}{(\sum_i w_i)^2}\quad "
        r"\text{for small entries in the proportions } w",
        says="As a prediction becomes one-hot with its small entries in fixed proportions, the excess of its softmax "
        "covariance tends to a limit set by how concentrated these proportions are.",
        reads=r"\Gamma_p^2 \to 1",
        routes=weighted_collapse,
        points=tuple(
            Point(weights=w, gap=90.0) for w in ((1.0, 0.5), (1.0, 0.1, 0.01), (3.0, 2.0, 1.0, 1.0))
        ),
        printed="1",
        passage=Passage(
            Standing.OUTSIDE, "Assuming no two logits are identically the same", "Appendix C, below Eq 11"
        ),
        finding="Outside of the paper's condition, distinct logits that are scaled up, the limit of Gamma^2 is not 1: "
        "it depends on the proportions of the runners-up and can be anything up to 4 (S - 1) / (S + 2).",
        tolerance=1e-14,
        tolerance_reason=CORRECTION,
        quantity="squared Gamma at collapse",
    ),
    ExactProperty(
        id="vysogorets2024/gamma-and-interlacing",
        entries=("A32", "A43"),
        source=f"{PAPER}, section 4 and appendix B",
        statement=r"1 \le \Gamma_p \le \sqrt{K - 1},\qquad p_{(i)} \ge \tilde\lambda_i \ge p_{(i+1)}",
        says="The excess of the softmax covariance lies between one and the root of the class count less one, and its "
        "eigenvalues interlace the sorted probabilities.",
        domain={"weights": WEIGHTS},
        violation=gamma_and_interlacing,
        examples=(
            Point(weights=(0.7, 0.2, 0.1)),
            Point(weights=(1.0, 1.0, 1.0, 1.0)),
            Point(weights=(0.9, 0.3)),
        ),
        tolerance=1e-13,
        tolerance_reason="rounding of a dense eigensolver",
        rivals={
            "Gamma at most sqrt(K / 2)": lambda _, point: _outside_gamma(
                _normalised(point.weights), (len(point.weights) / 2) ** 0.5
            ),
            "eigenvalues equal to the probabilities": lambda _, point: _outside_interlacing(
                _normalised(point.weights), above=0, below=0
            ),
        },
        seconds=0.017,
    ),
    RANK,
    MOMENTS,
)
