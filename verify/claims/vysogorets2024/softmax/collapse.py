"""Vysogorets, Dawid and Kempe (2024): Gamma and the eigenvalues of a softmax, and their limits at collapse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from theory import derivations, gauss_newton, softmax
from verify.claims.vysogorets2024 import PAPER
from verify.model import AnyClaim, ExactProperty, Identity, Passage, Standing
from verify.model.domains import Between, Either, Many, OneOf

__all__ = ["CLAIMS"]


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


def _p(point: Point) -> np.ndarray[Any, Any]:
    weights = np.array(point.weights)
    return weights / weights.sum()


def gamma_and_interlacing(_: np.random.Generator, point: Point) -> float:
    """By how much Gamma leaves [1, sqrt(K - 1)], or an eigenvalue its interval, ties and zeros included."""
    p = _p(point)
    largest = float(gauss_newton.largest_excess(len(p) - 1))
    return max(_outside_gamma(p, largest), _outside_interlacing(p, above=0, below=1))


def _outside_gamma(p: np.ndarray[Any, Any], largest: float) -> float:
    found = float(softmax.gamma(p))
    return max(1 - found, found / largest - 1, 0.0)


def _outside_interlacing(p: np.ndarray[Any, Any], *, above: int, below: int) -> float:
    """By how much dense eigenvalue i leaves [p_(i + below), p_(i + above)], i = 1..K-1."""
    found = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[::-1][:-1]
    ordered = np.sort(p)[::-1]
    upper, lower = ordered[above : above + len(found)], ordered[below : below + len(found)]
    return float(max((found - upper).max(), (lower - found).max(), 0.0))


ROUNDING = "a few roundings; the correction exp(-60) is below them"

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
        tolerance_reason=ROUNDING,
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
                _p(point), (len(point.weights) / 2) ** 0.5
            ),
            "eigenvalues equal to the probabilities": lambda _, point: _outside_interlacing(
                _p(point), above=0, below=0
            ),
        },
        seconds=0.27,
    ),
)
