"""Granziol, Zohren and Roberts (2022): what the Lanczos method sees of a spectrum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from simulate import lanczos
from simulate.monte_carlo import Point
from theory import lanczos_bounds
from verify.claims import Array
from verify.claims.drawn_networks import Violation
from verify.claims.granziol2022 import PAPER
from verify.model import (
    ExactProperty,
    NoTheory,
    misprint,
)
from verify.model.domains import Between, Many

ORTHOGONALITY = "an exact statement; rounding with full re-orthogonalisation"


# --- Gauss quadrature: section 8, eq. (54) and theorem 13 -----------------------------------------------------


def _chebyshev(x: Array, orders: int) -> Array:
    """Polynomials 0 to orders - 1, one per row: as good as powers to compare moments with, and bounded."""
    return np.cos(np.arange(orders)[:, None] * np.arccos(np.clip(x, -1, 1)))


def _moment_errors(rng: Generator, point: Point) -> Array:
    """Errors of the quadrature for each moment, of orders 0 to 2 m + 1: dense matrices of norm one, random starts."""
    drawn = rng.standard_normal((point.dim, point.dim))
    matrix, start = drawn + drawn.T, rng.standard_normal(point.dim)
    values, vectors = np.linalg.eigh(matrix)
    norm, shares = np.abs(values).max(), (vectors.T @ start) ** 2 / (start @ start)
    nodes, found = (part[0] for part in lanczos.quadrature(matrix / norm, start[None], point.steps))
    orders = 2 * point.steps + 2
    return np.abs(_chebyshev(nodes, orders) @ found - _chebyshev(values / norm, orders) @ shares)


def moments_up_to(last: Callable[[int], int]) -> Violation:
    """Largest error among the moments that m steps are said to match."""
    return lambda rng, point: float(_moment_errors(rng, point)[: last(point.steps) + 1].max())


SEEN = 1e-9
"""An error of a moment beyond this is no rounding."""


def no_moment_from(first: Callable[[int], int]) -> Violation:
    """Whether a moment is matched that would not be if the statement were sharp: 1 if so, else 0."""
    return lambda rng, point: float(_moment_errors(rng, point)[first(point.steps)] < SEEN)


QUADRATURE_CLAIM = ExactProperty(
    id="granziol2022/matched-moments",
    no_theory=NoTheory.MEASURED,
    entries=("B36", "B62"),
    source=f"{PAPER}, section 8 and appendix D",
    statement=r"\sum_i w_i \theta_i^k = q^\top H^k q,\quad k = 0, \dots, 2m - 1\quad (m \text{ steps})",
    says="Lanczos steps match twice as many moments of the spectrum as there are steps.",
    domain={"dim": Between(16, 48), "steps": Between(1, 9)},
    violation=moments_up_to(lambda m: 2 * m - 1),
    examples=(Point(dim=40, steps=5), Point(dim=23, steps=4)),
    tolerance=1e-12,
    tolerance_reason=ORTHOGONALITY,
    rivals={
        "up to 2m": moments_up_to(lambda m: 2 * m),
        "only m moments, as our copy reads": no_moment_from(lambda m: m),
        "not the one of order 2m - 1": no_moment_from(lambda m: 2 * m - 1),
    },
    seconds=0.024,
)

# --- the bound of Kaniel, Paige and Saad: theorem 12 ----------------------------------------------------------


STARTS = 32
"""Random starts at every point: what a wrong bound allows depends on them."""


def _loss(reading: Callable[..., tuple[float, float]]) -> Violation:
    """Return the largest excess of the extreme Ritz values over their bounds, relative to the spectrum's spread."""

    def violation(rng: Generator, point: Point) -> float:
        values = np.cumsum(point.gaps) + point.shift
        starts = rng.standard_normal((STARTS, len(values)))
        angles = np.arccos(np.abs(starts / np.linalg.norm(starts, axis=1, keepdims=True)))[:, [0, -1]]
        ends = lanczos.quadrature(np.diag(values), starts, point.steps).nodes[:, [0, -1]]
        outside = [0.0]
        for angle, ritz in zip(angles, ends, strict=True):
            low, high = reading(values, angle, ritz, point.steps)
            outside += [low - ritz[1], ritz[1] - values[-1], ritz[0] - high, values[0] - ritz[0]]
        return max(outside) / (values[-1] - values[0])

    return violation


def _bounds(values: Array, angles: Array, _: Array, steps: int) -> tuple[float, float]:
    """Theorem 12, corrected: the lowest that the top Ritz value, the highest that the bottom one can be."""
    bound = lanczos_bounds.ritz_value_bound
    return (
        float(bound(values[-1], values[-2], values[0], angle=angles[1], steps=steps)),
        float(bound(values[0], values[1], values[-1], angle=angles[0], steps=steps)),
    )


def _tangent_of_the_ritz_value(values: Array, angles: Array, ritz: Array, steps: int) -> tuple[float, float]:
    low = values[-1] - _written_out(values[::-1], ritz[1], steps)
    return low, _bounds(values, angles, ritz, steps)[1]


def _bottom_as_the_top(values: Array, angles: Array, ritz: Array, steps: int) -> tuple[float, float]:
    loss = _written_out(values[::-1], angles[1], steps)
    return _bounds(values, angles, ritz, steps)[0], values[0] + loss


def _spread_for_gap(values: Array, angles: Array, _: Array, steps: int) -> tuple[float, float]:
    return (
        values[-1] - _written_out(values[::-1], angles[1], steps, more=1.0),
        values[0] - _written_out(values, angles[0], steps, more=1.0),
    )


def _written_out(values: Array, angle: float, steps: int, more: float = 0.0) -> float:
    """(lambda_1 - lambda_n) tan^2 / c_{k-1}(1 + 2 rho)^2 of an angle, whatever it is, with `more` added to rho.

    The first eigenvalue is the one at this end.
    """
    from scipy import special

    first, second, last = values[0], values[1], values[-1]
    rho = (first - second) / (second - last) + more
    return float((first - last) * (np.tan(angle) / special.eval_chebyt(steps - 1, 1 + 2 * rho)) ** 2)


SPREAD = tuple(0.07 + 0.05 * ((7 * i) % 11) for i in range(30))
TOP_APART = (*SPREAD, 2.6)
ATTAINED = ((0.3, 0.4, 9.3), (0.3, 9.3, 0.4))
"""Three eigenvalues, the last or the first far from the others: two steps all but attain its bound."""

CLAIMS = (
    QUADRATURE_CLAIM,
    ExactProperty(
        id="granziol2022/kaniel-paige-saad",
        entries=("B63",),
        source=f"{PAPER}, appendix D, theorem 12, with the angles and gaps that it needs",
        passage=misprint("λn ≤ θk ≤ λm + (λ1 − λn) tan2(θ1)", "Eq 55"),
        finding="As our copy reads, the tangent is of a Ritz value, which has a unit, and the bottom repeats the top.",
        statement=r"\lambda_1 \ge \theta_1 \ge \lambda_1 - \frac{(\lambda_1 - \lambda_n) \tan^2 \phi_1}"
        r"{c_{k-1}^2(1 + 2\rho_1)},\quad \phi_1 = \arccos |q_1^\top z_1|,\ "
        r"\rho_1 = \frac{\lambda_1 - \lambda_2}{\lambda_2 - \lambda_n};\ \text{likewise from below}",
        says="The extreme Ritz values lie within the spectrum, no further from its ends than the Kaniel-Paige-Saad "
        "bounds allow.",
        symbols={
            r"\lambda_1": "largest eigenvalue",
            r"\lambda_n": "smallest eigenvalue",
            r"\theta_1": "largest Ritz value",
            r"\phi_1": "angle between the start and the eigenvector of the largest eigenvalue",
            r"q_1": "start of the method, of length 1",
            r"z_1": "eigenvector of the largest eigenvalue",
            r"c_{k-1}": "Chebyshev polynomial of that degree, after k steps",
        },
        domain={
            "gaps": Many(Between(0.01, 3.0), 7, 30),
            "shift": Between(-20.0, 20.0),
            "steps": Between(1, 6),
        },
        violation=_loss(_bounds),
        examples=(
            Point(gaps=TOP_APART, shift=-13.7, steps=5),
            Point(gaps=TOP_APART, shift=6.28 - sum(TOP_APART), steps=4),
            Point(gaps=(0.3, 0.4, 0.5, 9.3), shift=-4.1, steps=1),
            *(Point(gaps=gaps, shift=-3.2, steps=2) for gaps in ATTAINED),
        ),
        tolerance=1e-12,
        tolerance_reason=ORTHOGONALITY,
        rivals={
            "tangent of the Ritz value, as our copy reads": _loss(_tangent_of_the_ritz_value),
            "angle and gap of the top at the bottom, as our copy reads": _loss(_bottom_as_the_top),
            "polynomial of degree k": _loss(
                lambda values, angles, ritz, steps: _bounds(values, angles, ritz, steps + 1)
            ),
            "spread in place of the gap in rho": _loss(_spread_for_gap),
        },
        seconds=0.16,
    ),
)
