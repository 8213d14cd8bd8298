"""Vysogorets, Dawid and Kempe (2024): the softmax covariance near one-hot and near ties, and its rounding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Point
from theory import derivations, softmax
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.softmax.softmax import dense_gamma
from verify.model import OURS, AnyClaim, Identity

__all__ = ["CLAIMS"]

Array = NDArray[Any]

MANY_DIGITS = "the next term of the expansion is far below it, and so is rounding with hundreds of digits"

# --- the approach to one-hot ---------------------------------------------------------------------------------


def _mode_and_tail(point: Point) -> Array:
    s = point.support
    return np.array([1 - (s - 1) * point.tail] + [point.tail] * (s - 1))


def _gamma_squared(p: Any) -> Any:
    """Trace^2 over squared norm, from the entries, in the arithmetic of mpmath."""
    import mpmath

    trace = mpmath.fsum(x * (1 - x) for x in p)
    square = mpmath.fsum((x * (1 - x)) ** 2 for x in p)
    crossed = mpmath.fsum(x * x for x in p) ** 2 - mpmath.fsum(x**4 for x in p)
    return trace**2 / (square + crossed)


def equal_tail_slope(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Rate at which Gamma^2 leaves its limit: a difference with 300 digits, and the derivative by algebra."""
    import mpmath
    import sympy

    s = point.support
    with mpmath.workdps(300):
        tail = mpmath.mpf(10) ** -25
        found = _gamma_squared([1 - (s - 1) * tail] + [tail] * (s - 1))
        slope = (found - mpmath.mpf(4 * (s - 1)) / (s + 2)) / tail
    form = derivations.gamma_squared_equal()
    members, epsilon = form.symbols
    derivative = sympy.diff(form.expression, epsilon).subs({epsilon: 0, members: s})
    return {
        "difference": float(slope),
        "derivative": float(derivative),
        "S for S - 2": 4 * (s - 1) * s**2 / (s + 2) ** 2,
        "falling": -float(derivative),
        "S + 2 not squared": 4 * (s - 1) * (s**2 - 2 * s) / (s + 2),
    }


SLOPE = Identity(
    id="vysogorets2024/equal-tail-slope",
    entries=("A46",),
    source=f"{PAPER}, appendix C, eq. (11), first order",
    statement=r"\Gamma_p^2 = \frac{4 (S - 1)}{S + 2} + \frac{4 (S - 1)(S^2 - 2S)}{(S + 2)^2}\,\varepsilon + "
    r"O(\varepsilon^2)",
    says="Near one-hot with several equally small entries, the squared excess of the softmax covariance rises "
    "linearly from its limit, at a slope set by the number of entries.",
    routes=equal_tail_slope,
    points=tuple(Point(support=s) for s in (3, 4, 7, 23)),
    tolerance=1e-14,
    tolerance_reason=MANY_DIGITS,
    seconds=0.01,
    quantity="slope of squared Gamma at one-hot",
)


def collapse_rate(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """(Gamma^2 - 1) / rho with one runner-up and others of the weight rho beside it."""
    import mpmath
    import sympy

    with mpmath.workdps(300):
        rest = mpmath.mpf(10) ** -20 * mpmath.matrix(point.weights)
        small = mpmath.mpf(10) ** -60 * mpmath.matrix([1, *rest])
        found = _gamma_squared([1 - mpmath.fsum(small), *small])
        rate = (found - 1) / mpmath.fsum(rest)
    form = derivations.collapse_limit_weighted()
    rho = sympy.Symbol("rho")
    # h = (1 + O(rho^2)) / (1 + rho)^2
    limit = sympy.diff(form.expression.subs(form.symbols[0], (1 + rho) ** -2), rho).subs(rho, 0)
    return {"numeric": float(rate), "symbolic": float(limit), "1": 1.0, "3/4, of Gamma": 0.75, "2": 2.0}


RATE = Identity(
    id="vysogorets2024/collapse-rate",
    entries=("A33",),
    source=f"{PAPER}, section 4, for a single runner-up; the rate is ours",
    passage=OURS,
    statement=r"\Gamma_p^2 = 1 + \tfrac{3}{2} \rho + O(\rho^2),\quad "
    r"\rho = \sum_{i \ge 3} p_{(i)} / p_{(2)} \text{ as } p_{(1)} \to 1",
    says="As one class becomes certain, the squared excess of the softmax covariance approaches one in proportion to "
    "the weight of the other classes relative to the runner-up.",
    routes=collapse_rate,
    points=tuple(Point(weights=w) for w in ((1.0,), (0.7, 0.2), (3.0, 1.0, 0.4, 0.1))),
    tolerance=1e-14,
    tolerance_reason=MANY_DIGITS,
    seconds=0.017,
    quantity="rate at which squared Gamma tends to 1",
)


def equal_tail_spectrum(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Eigenvalues, descending: dense, in closed form, and of 2 x 2 blocks that are right in leading order."""
    s, eps, classes = point.support, point.tail, point.classes
    p = np.zeros(classes)
    p[:s] = _mode_and_tail(point)
    single = np.zeros(classes)
    single[0] = 2 * eps
    return {
        "dense": np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[::-1],
        "theory": softmax.equal_tail_eigenvalues(eps, members=s, classes=classes),
        "2 eps": single,
        # the multiple of I that makes the largest eigenvalue right
        "lifted": single - 2 * eps**2,
    }


SINGLE = Identity(
    id="vysogorets2024/single-eigenvalue",
    entries=("A48",),
    source=f"{PAPER}, appendix C, eq. (12), whose remainder O(eps^2) is made exact",
    statement=r"p = (1 - \varepsilon, \varepsilon, 0, \ldots):\quad "
    r"\tilde\lambda = 2 \varepsilon (1 - \varepsilon), 0, \ldots, 0",
    says="When only two classes have nonzero probability, the softmax covariance has a single nonzero eigenvalue, "
    "twice the product of the two probabilities.",
    routes=equal_tail_spectrum,
    points=tuple(Point(support=2, tail=t, classes=k) for t, k in ((0.03, 3), (0.21, 5), (0.0004, 10))),
    tolerance=1e-11,
    tolerance_reason="the dense matrix loses the digits of 1 - max p, which is 4e-4 at least",
    seconds=0.01,
    quantity="eigenvalues of the softmax covariance",
)


# --- ties and near ties --------------------------------------------------------------------------------------


def _many_digits(logits: Array) -> float:
    """Gamma from the definition, with so many digits that 1 - max p keeps 60 of them."""
    import mpmath

    reach = float(np.ptp(logits))
    with mpmath.workdps(60 + round(reach)):
        z = [mpmath.mpf(x) for x in logits]
        weights = [mpmath.exp(x - max(z)) for x in z]
        total = mpmath.fsum(weights)
        p = [w / total for w in weights]
        s2, s3 = (mpmath.fsum(x**n for x in p) for n in (2, 3))
        return float((1 - s2) / mpmath.sqrt(s2 - 2 * s3 + s2**2))


def _plateau(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gamma^-2 along a ray whose runners-up are nearly tied, beside what their proportions say."""
    behind = np.array(point.behind) / 1024  # no logit is rounded
    weights = np.exp(-np.outer(point.betas, behind))
    h = np.square(weights).sum(axis=1) / weights.sum(axis=1) ** 2
    return {
        "many digits": [
            _many_digits(beta * np.append(0.0, -point.gap - behind)) ** -2 for beta in point.betas
        ],
        "proportions": softmax.collapse_limit(weights) ** -2,
        "1 at once": np.ones(len(h)),
        "tied for ever": np.full(len(h), (len(behind) + 3) / (4 * len(behind))),
        "h in place of 3 h": (1 + h) / 4,
    }


PLATEAU = Identity(
    id="vysogorets2024/plateau",
    entries=("A47",),
    source=f"{PAPER}, appendix C, figure 4 right",
    statement=r"\Gamma_p^{-2} = \frac{1 + 3h}{4},\quad h = \frac{\sum_i w_i^2}{(\sum_i w_i)^2},\ "
    r"w_i = p_{(i)} / p_{(2)}: \text{ a plateau while } w \text{ hardly moves, in the end } 1",
    says="Along a temperature ray with nearly tied runners-up, the excess of the softmax covariance follows their "
    "proportions: nearly constant for a while, and one in the end.",
    routes=_plateau,
    points=(
        Point(gap=3.0, behind=(0, 2, 3, 4), betas=(13.0, 40.0, 150.0, 700.0)),
        Point(gap=2.0, behind=(0, 10, 700), betas=(20.0, 60.0, 300.0)),
    ),
    tolerance=1e-14,
    tolerance_reason="p_(2), exp(-39) at most, is a correction below rounding",
    seconds=0.011,
    quantity="inverse squared Gamma",
)


# --- rounding ------------------------------------------------------------------------------------------------


def dense_rounding(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """What the dense matrix says in float64 once 1 - max p is below its last digit."""
    s = point.support
    return {
        "dense float64": dense_gamma(_mode_and_tail(point)),
        "of rounding": softmax.rounded_gamma(s),
        "true": softmax.equal_tail_gamma(point.tail, members=s),
        "zero, a collapse": 0.0,
    }


DENSE = Identity(
    id="vysogorets2024/dense-rounding",
    entries=("A59",),
    source=f"ours, beside {PAPER}, section 4",
    passage=OURS,
    statement=r"\text{in float64}\quad \frac{\mathrm{Tr}}{\lVert\cdot\rVert_F}(\mathrm{diag}(p) - pp^\top) \to "
    r"\sqrt{(S - 1) / 3},\quad \text{below the bound } 1 \text{ for } S < 4",
    says="Computed from the dense matrix in double precision, the excess of a nearly one-hot softmax covariance "
    "settles at a value set by rounding, below one for few classes.",
    routes=dense_rounding,
    points=tuple(Point(support=s, tail=t) for s, t in ((2, 3e-19), (3, 1e-25), (7, 1e-40), (23, 1e-120))),
    tolerance=1e-14,
    tolerance_reason="the mode has rounded to 1, nothing else is lost",
    seconds=0.01,
    quantity="Gamma as float64 has it",
)

CLAIMS: tuple[AnyClaim, ...] = (
    RATE,
    SLOPE,
    SINGLE,
    PLATEAU,
    DENSE,
)
