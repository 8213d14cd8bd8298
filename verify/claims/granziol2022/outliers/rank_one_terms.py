"""Granziol, Zohren and Roberts (2022), appendix B: Wishart noise as a sum of free rank-one terms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from theory import rmt
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.law_quadrature import law_at, root
from verify.model import AnyClaim, Identity, Passage, Standing

__all__ = ["CLAIMS"]


def _roots(s: Any, spike: float, dim: int) -> tuple[Any, Any]:
    """Both roots of s z^2 + (1 - s spike) z - spike (1 - 1/P) = 0; the first is the one near -1/s."""
    root = np.sqrt((s * spike + 1) ** 2 - 4 * s * spike / dim)
    return (s * spike - 1 - root) / (2 * s), (s * spike - 1 + root) / (2 * s)


def rank_one_root(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Where the transform s of one term r r^T / N is s, in the appendix's sign, and the roots of its equation."""
    spike = point.ratio * point.variance
    _, other = _roots(point.s, spike, point.dim)
    return {
        "eigenvalues": _of_one_term(rng, point),
        "exact root": rmt.rank_one_inverse(point.s, spike=spike, dim=point.dim),
        "other root": other,
        **_left_out(point),
    }


def expanded_roots(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """The same, and the root expanded to first order in 1/P."""
    dim, s = point.dim, point.s
    spike = point.ratio * point.variance
    a, b = s * spike - 1, s * spike + 1
    step = 2 * s * spike / b
    left_out = _left_out(point)
    return {
        "eigenvalues": _of_one_term(rng, point),
        "expanded": rmt.rank_one_expansion(s, spike=spike, dim=dim),
        "expanded, wrong sign and extra P": (a - b - step) / (2 * s),
        "no correction": left_out.pop("no correction"),
        "expanded, wrong sign": (a - b - step / dim) / (2 * s),
        **left_out,
    }


def _of_one_term(rng: np.random.Generator, point: Point) -> float:
    """Where the mean of 1 / (eigenvalue - z), over the eigenvalues of one term, is s."""
    dim, s = point.dim, point.s
    r = rng.standard_normal(dim)
    r *= math.sqrt(dim * point.variance) / np.linalg.norm(r)
    eigenvalues = np.linalg.eigvalsh(np.outer(r, r) * point.ratio / dim)

    def excess(z: float) -> float:
        return float(np.mean(1 / (eigenvalues - z))) - s

    near = -1 / s
    return root(excess, *sorted((0.9 * near, 1.2 * near)))


def _left_out(point: Point) -> dict[str, float]:
    near = -1 / point.s
    correction = point.variance / (point.dim * (point.s * point.variance + 1))
    return {"no correction": near, "term over P for N": near + correction}


TERMS = (
    Point(dim=160, ratio=0.4, variance=1.3, s=-0.3),
    Point(dim=120, ratio=1.7, variance=0.6, s=0.45),
)


def sum_of_terms(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """R of the sum of N free rank-one terms, from the exact root for one of them at a large dimension."""
    s, dim = np.array(point.s), point.dim
    spike = point.ratio * point.variance
    z = rmt.rank_one_inverse(s, spike=spike, dim=dim)
    terms = dim / point.ratio
    law = law_at(point)
    return {
        "N (z + 1/s)": terms * (z + 1 / s),
        "R(-s)": law.r_transform(-s),
        "N (z - 1/s)": terms * (z - 1 / s),
        "R(s)": law.r_transform(s),
        "without the ratio": point.variance / (1 + s * point.variance),
    }


ORDERS = 6


CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/rank-one-root",
        entries=("B-B1",),
        source=f"{PAPER}, eqs. (46) to (49)",
        statement=r"s z^2 + (1 - s\lambda) z - \lambda(1 - 1/P) = 0,\quad \lambda = \beta\sigma^2,\ "
        r"W^s = \frac{r r^\top}{N}",
        says="The inverse Stieltjes transform of one rank-one term of a Wishart matrix solves a quadratic "
        "equation, exactly at finite dimension.",
        routes=rank_one_root,
        points=TERMS,
        tolerance=1e-10,
        tolerance_reason="exact; rounding of an eigensolver and of a root near 1/s",
        seconds=0.01,
        quantity="inverse of the transform of one term",
    ),
    Identity(
        id="granziol2022/rank-one-expansion",
        entries=("B-B1",),
        source=f"{PAPER}, eq. (49)",
        statement=r"z = \frac{1}{2 s}\Big[s\lambda - 1 - (s\lambda + 1) + \frac1P \frac{2 s\lambda}{s\lambda + 1}\Big] "
        r"= -\frac1s + \frac{\lambda}{P (s\lambda + 1)}",
        says="For large dimension the inverse Stieltjes transform of one rank-one term is its leading pole plus a "
        "correction of one over the dimension.",
        passage=Passage(Standing.MISPRINT, "P (sβσ2 − 1)− P (sβσ2 + 1)− 2Psβσ2 sβσ2+1", "Eq 49"),
        routes=expanded_roots,
        points=TERMS,
        printed="expanded, wrong sign and extra P",
        reads=r"z \approx \frac{P (s \beta\sigma^2 - 1) - P (s \beta\sigma^2 + 1) - \frac{2 P s \beta\sigma^2}{s "
        r"\beta\sigma^2 + 1}}{2 P s}",
        finding="As our copy reads the last term of the middle line has the wrong sign and a factor P too "
        "many; the last line is right.",
        tolerance=1e-4,
        tolerance_reason="of the order 1/P^2 that is left out, 5e-6 here",
        seconds=0.01,
        quantity="inverse of the transform of one term",
    ),
    Identity(
        id="granziol2022/sum-of-terms",
        entries=("B-B1", "B-B2"),
        source=f"{PAPER}, eq. (50)",
        statement=r"R = N\Big(z + \frac1s\Big) \to \frac{\sigma^2}{1 + s \beta\sigma^2}",
        says="The R transforms of many free rank-one terms add up to the R transform of Wishart noise.",
        passage=Passage(Standing.MISPRINT, "N × ( z − 1 s )", "Eq 50"),
        routes=sum_of_terms,
        points=(
            Point(variance=1.7, ratio=0.6, s=(-0.3, 0.2, 1.1), dim=10**6),
            Point(variance=0.8, ratio=3.1, s=(-0.12, 0.7), dim=10**6),
        ),
        printed="N (z - 1/s)",
        reads=r"R_{W_P}(s) = N \times \Big(z - \frac1s\Big)",
        finding="As our copy reads R = N (z - 1/s), which grows with N; the sign convention of the "
        "appendix gives z + 1/s, and with it the value that Eq 50 has.",
        tolerance=1e-4,
        tolerance_reason="of the order 1/P that is left out, 1e-6, and cancellation of nine digits",
        seconds=0.01,
        quantity="R transform of Wishart noise",
    ),
)
