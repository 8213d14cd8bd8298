"""Vysogorets, Dawid and Kempe (2024): a low-rank part over a bulk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory.outliers import Outlier
from theory.zone import bulk as zone_bulk
from verify.claims.vysogorets2024 import PAPER
from verify.model import OURS, AnyClaim, Claim, Experiment, Tier

__all__ = ["CLAIMS"]


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
    return zone_bulk.bulk_outlier(p.spike, bulk_norm=p.bulk_norm)


def _separated(p: Point) -> bool:
    """Where the norm of the spike exceeds that of the bulk."""
    return p.spike > p.bulk_norm


TOP_CLAIM = Claim(
    id="vysogorets2024/bulk-outlier",
    symbols={r"\theta": "strength of the outlier"},
    entries=("A20",),
    source=f"ours, for the transition that {PAPER}, section 3, names",
    passage=OURS,
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

EXCESS_CLAIM = Claim(
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
    predict=lambda p: zone_bulk.spiked_excess(p.spike, rank=p.rank, bulk_norm=p.bulk_norm, dim=p.dim),
    margin=0.03,
    margin_reason="3 % for finite sizes: the law leaves out the inner product of the two parts",
    rivals={
        "in the zone, as the norms say": lambda p: max(
            1.0, zone_bulk.spiked_excess(p.spike, rank=p.rank, bulk_norm=p.bulk_norm, dim=p.dim)
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

CLAIMS: tuple[AnyClaim, ...] = (TOP_CLAIM, EXCESS_CLAIM)
