"""Vysogorets, Dawid and Kempe (2024): the excess of positive curvature, exact properties."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from simulate.monte_carlo import Point
from simulate.perceptrons import curvature
from theory import gauss_newton, softmax
from verify.claims.vysogorets2024 import PAPER
from verify.model import OURS, AnyClaim, ExactProperty, Identity
from verify.model.domains import Between

__all__ = ["CLAIMS"]

# --- the excess itself ---------------------------------------------------------------------------------------


def _excess(matrix: Any) -> float:
    return float(curvature.positive_excess(matrix))


def _turned(rng: np.random.Generator, matrix: Any) -> Any:
    frame = curvature.haar(rng, len(matrix), len(matrix))
    return frame.T @ matrix @ frame


def excess_against_share(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Excess of a rotated spectrum, its share of positive eigenvalues, and what that would make of the excess."""
    import torch

    values = np.repeat(point.eigenvalues, point.multiplicities)
    share = float((values > 0).mean())
    return {
        "excess": _excess(_turned(rng, torch.diag(torch.from_numpy(values)))),
        "sum over root of squares": gauss_newton.spectrum_excess(values),
        "all of one size": (2 * share - 1) * math.sqrt(len(values)),
        "share": share,
    }


EXCESS_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="vysogorets2024/excess-is-no-share",
        entries=("A4",),
        source=f"ours, beside section 2 of {PAPER}, which has either detect the zone",
        passage=OURS,
        statement=r"\mathrm{exc}(\mathrm{diag}(1 \times 98, -100, -50)) = -52/\sqrt{12598} "
        r"\text{ with } 98\,\% \text{ positive eigenvalues}",
        says="A matrix with nearly all eigenvalues positive can have a negative excess of positive curvature, as an "
        "explicit spectrum shows.",
        routes=excess_against_share,
        points=(Point(eigenvalues=(1.0, -100.0, -50.0), multiplicities=(98, 1, 1)),),
        tolerance=1e-12,
        tolerance_reason="rounding of a rotation in a hundred dimensions",
        seconds=0.01,
        quantity="excess of positive curvature",
    ),
)

# --- larger dimensions, larger excess ------------------------------------------------------------------------


class _Growth(NamedTuple):
    """Excess of the mean G-term as a dense matrix in d and in d + 1 dimensions; Gamma; Eq. (8) and its ceiling."""

    here: float
    further: float
    gamma: float
    law: float
    ceiling: float


def _expected(rng: np.random.Generator, point: Point) -> _Growth:
    import torch

    p = torch.softmax(torch.from_numpy(point.sharpness * rng.standard_normal(point.classes)), 0)
    covariance, dim = torch.diag(p) - torch.outer(p, p), point.classes + point.beyond

    def dense(size: int) -> float:
        means = math.sqrt(size) * point.sigma_c * curvature.haar(rng, size, point.classes)
        noise = point.sigma_e**2 * covariance.trace() * torch.eye(size, dtype=p.dtype)
        return _excess(means @ covariance @ means.T + noise)

    gamma = float(softmax.gamma(p.numpy()))
    law, ceiling = (
        float(of(gamma, dim=dim, sigma_c=point.sigma_c, sigma_e=point.sigma_e))
        for of in (gauss_newton.expected_excess, gauss_newton.excess_ceiling)
    )
    return _Growth(dense(dim), dense(dim + 1), gamma, law, ceiling)


def _not_growing(rng: np.random.Generator, point: Point) -> float:
    found = _expected(rng, point)
    flat = float(found.further <= found.here)  # it is to grow, not just not to fall
    return max(flat, found.here / found.ceiling - 1, abs(found.here / found.law - 1))


def _changes(rng: np.random.Generator, point: Point) -> float:
    found = _expected(rng, point)
    return abs(found.further - found.here)


def _beyond_gamma(rng: np.random.Generator, point: Point) -> float:
    found = _expected(rng, point)
    return found.here / found.gamma - 1


def _not_as_the_root(rng: np.random.Generator, point: Point) -> float:
    found = _expected(rng, point)
    dim = point.classes + point.beyond
    return abs(found.further / found.here - math.sqrt((dim + 1) / dim))


GROWTH_CLAIM = ExactProperty(
    id="vysogorets2024/growth-with-dimension",
    entries=("A31",),
    source=f"{PAPER}, section 4, figure 4 left; the ceilings are ours",
    statement=r"\mathrm{exc}(\mathbb{E}_e G)\big|_{d + 1} > \mathrm{exc}(\mathbb{E}_e G)\big|_d,\quad "
    r"\mathrm{exc}(\mathbb{E}_e G) \le \min\big(\Gamma_p (1 + \sigma_e^2/\sigma_c^2), \sqrt d\big)",
    says="The excess of the random model's mean Gauss-Newton term grows strictly with the dimension, below ceilings "
    "set by the dimension and by the gradient variances.",
    domain={
        "classes": Between(2, 6),
        "beyond": Between(0, 40),
        "sigma_c": Between(0.1, 3.0),
        "sigma_e": Between(0.1, 3.0),
        "sharpness": Between(0.0, 4.0),
    },
    violation=_not_growing,
    examples=(
        Point(classes=5, beyond=45, sigma_c=1.0, sigma_e=2.0, sharpness=0.7),
        Point(classes=3, beyond=6, sigma_c=1.6, sigma_e=0.7, sharpness=2.3),
    ),
    tolerance=1e-11,
    tolerance_reason="rounding of a dense matrix in up to fifty dimensions",
    rivals={
        "the same in every dimension": _changes,
        "at most Gamma": _beyond_gamma,
        "as the root of the dimension": _not_as_the_root,
    },
    seconds=0.017,
)

CLAIMS: tuple[AnyClaim, ...] = (*EXCESS_CLAIMS, GROWTH_CLAIM)
