"""Vysogorets, Dawid and Kempe (2024): the excess of positive curvature, and a low-rank part over a bulk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature
from theory import gauss_newton, softmax, zone
from theory.outliers import Outlier
from verify.claims.vysogorets2024 import PAPER
from verify.model import KNOWN, OURS, AnyClaim, Claim, ExactProperty, Experiment, Identity, Tier
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


SHARE_CLAIM = Identity(
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

# --- an outlier over a bulk -----------------------------------------------------------------------------------


def top_over_bulk(block: Block, point: Point) -> Mapping[str, Any]:
    """Top eigenvalue of one spike over a semicircle of a given norm."""
    half = point.bulk_norm / 2  # the matrices drawn have norm 2
    return {"eigenvalue": half * ensembles.goe_top_eigenvalue(block, point.dim, spike=point.spike / half)}


BULK_NORM = 1.7

ABOVE = Experiment(
    id="vysogorets2024/top-over-bulk",
    replicate="one Wigner matrix with a spike",
    simulate=top_over_bulk,
    on_host="eigenvalues of tridiagonal matrices, by LAPACK",
    points=tuple(
        Point(spike=share * BULK_NORM, bulk_norm=BULK_NORM, dim=300_000) for share in (0.6, 0.7, 1.3)
    ),
    budget=2048,
    seconds=0.1,
    tier=Tier.SMOKE,
)


def _top(p: Point) -> Outlier:
    return zone.bulk_outlier(p.spike, bulk_norm=p.bulk_norm)


def _separated(p: Point) -> bool:
    """Where the norm of the spike exceeds that of the bulk."""
    return p.spike > p.bulk_norm


TOP_CLAIM = Claim(
    id="vysogorets2024/bulk-outlier",
    symbols={r"\theta": "strength of the outlier"},
    entries=("A20",),
    source=f"Peche (2006), for the transition that {PAPER}, section 3, names",
    passage=KNOWN,
    statement=r"\lambda_1(\theta\,v v^\top + W) \to \theta + \frac{h^2}{4 \theta} \text{ if } \theta > h/2,\quad "
    r"h = \lVert W\rVert_2",
    says="In high dimension, a spike above half the norm of a semicircle bulk gives a largest eigenvalue of the "
    "spike plus a quarter of squared bulk norm over spike.",
    experiment=ABOVE,
    score="eigenvalue",
    predict=lambda p: _top(p).eigenvalue,
    margin=0.01,
    margin_reason="1 % for random matrices; fluctuations and the finite size are O(n^(-1/2))",
    rivals={
        "only beyond the whole norm": lambda p: _top(p).eigenvalue if _separated(p) else p.bulk_norm,
        "no push by the bulk": lambda p: max(p.spike, p.bulk_norm),
        "whole norm for half": lambda p: p.spike + p.bulk_norm**2 / p.spike,
        "sum of the norms": lambda p: p.spike + p.bulk_norm,
    },
    axis="spike",
    quantity="largest eigenvalue",
)

# --- spectral norms decide nothing ---------------------------------------------------------------------------


def excess_over_bulk(block: Block, point: Point) -> Mapping[str, Any]:
    """Excess of k equal spikes over a semicircle of a given norm."""
    half = point.bulk_norm / 2
    trace, square = ensembles.goe_moments(block, point.dim, spike=point.spike / half, rank=point.rank)
    return {"excess": trace / square.sqrt()}


SPIKED = Experiment(
    id="vysogorets2024/excess-over-bulk",
    replicate="one Wigner matrix with nine equal spikes",
    simulate=excess_over_bulk,
    points=tuple(Point(spike=2.6, bulk_norm=1.3, rank=9, dim=dim) for dim in (501, 5003, 20_011)),
    budget=65_536,
    seconds=0.012,
)

SPIKED_CLAIM = Claim(
    id="vysogorets2024/spiked-excess",
    symbols={r"\theta": "strength of the outlier"},
    entries=("A20",),
    source=f"ours, beside {PAPER}, eq. (6), in spaces larger than its d = 50",
    passage=OURS,
    statement=r"\lVert G\rVert_2 = 2 \lVert \tilde H\rVert_2,\ \mathrm{rank}\,G = k:\quad \mathrm{exc}(G + \tilde H) = "
    r"\frac{k \theta}{\sqrt{k \theta^2 + n h^2/4}} \to 0",
    says="With a few equal spikes of twice the bulk's spectral norm, the excess is set by Frobenius norms and so "
    "shrinks as the dimension grows.",
    experiment=SPIKED,
    score="excess",
    predict=lambda p: zone.spiked_excess(p.spike, rank=p.rank, bulk_norm=p.bulk_norm, dim=p.dim),
    margin=0.03,
    margin_reason="3 % for finite sizes: the law leaves out the inner product of the two parts",
    rivals={
        "in the zone, as the norms say": lambda p: max(
            1.0, zone.spiked_excess(p.spike, rank=p.rank, bulk_norm=p.bulk_norm, dim=p.dim)
        ),
        "excess of G": lambda p: math.sqrt(p.rank),
        "spectral norms": lambda p: math.sqrt(p.rank) / math.hypot(1, p.bulk_norm / p.spike),
        "whole norm for half": lambda p: (
            p.rank * p.spike / math.sqrt(p.rank * p.spike**2 + p.dim * p.bulk_norm**2)
        ),
    },
    axis="dim",
    quantity="excess of positive curvature",
)

CLAIMS: tuple[AnyClaim, ...] = (SHARE_CLAIM, GROWTH_CLAIM, TOP_CLAIM, SPIKED_CLAIM)
