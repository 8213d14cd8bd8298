"""Granziol, Zohren and Roberts (2022), sections 10.1 and 11: local exponents of rates in the batch size, crossovers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from theory import batch_hessian, learning_rates
from theory.rmt import Semicircle
from verify.claims.granziol2022 import PAPER
from verify.model import OURS, AnyClaim, Identity

__all__ = ["CLAIMS"]


def crossing(_: np.random.Generator, p: Point) -> Mapping[str, Any]:
    """Eigenvalue of the batch at the crossover of theorem 4, where the outlier meets the edge."""
    noise = {"sigma": p.sigma, "dim": p.dim, "dataset_size": p.dataset_size}
    size = float(batch_hessian.crossover_batch_size(p.eigenvalue, **noise))
    top, above, below = (
        float(batch_hessian.batch_eigenvalue(p.eigenvalue, batch_size=size * step, **noise))
        for step in (1.0, 1.05, 0.95)
    )
    return {"data set": 2 * p.eigenvalue, "at the crossover": top, "5 % above": above, "5 % below": below}


def bulk_rates(_: np.random.Generator, p: Point) -> Mapping[str, Any]:
    """Rates from the edge of the noise alone, at one batch size and carried over from another."""

    def rate(size: float) -> float:
        scale = p.sigma * math.sqrt(p.dim / float(batch_hessian.effective_batch_size(size, p.dataset_size)))
        return float(learning_rates.stability_limit(Semicircle(sigma=scale).edges[1]))

    known = rate(p.known)
    sizes = {"known": p.known, "batch_size": p.batch_size, "dataset_size": p.dataset_size}
    return {
        "from the edge": rate(p.batch_size),
        "square root": learning_rates.square_root(known, **sizes),
        "linear": learning_rates.linear_then_flat(known, crossover=math.inf, **sizes),
        "B for b": known * math.sqrt(p.batch_size / p.known),
    }


CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/crossover-batch-size",
        entries=("B45", "B46"),
        source=f"{PAPER}, theorem 4, eq. (9), at its threshold",
        statement=r"\lambda_1'(B_c) = 2 \lambda_1",
        says="At the crossover batch size of Theorem 4 the top eigenvalue of the batch is twice that of the data "
        "set.",
        passage=OURS,
        routes=crossing,
        points=(
            Point(eigenvalue=0.33, sigma=0.07, dim=640, dataset_size=310),
            Point(eigenvalue=4.1, sigma=1.3, dim=97, dataset_size=1700),
        ),
        tolerance=1e-12,
        tolerance_reason="rounding of a few products",
        seconds=0.01,
        quantity="largest eigenvalue of the batch Hessian",
    ),
    Identity(
        id="granziol2022/square-root-rule",
        entries=("B48", "B61"),
        source=f"{PAPER}, footnote 6 and section 11",
        statement=r"\frac{\alpha(b')}{\alpha(b)} = \sqrt{b'/b}\quad (\text{noise without outliers})",
        says="Where no outlier leaves the noise, the rate carried from one batch size to another scales as the "
        "square root of the effective size.",
        routes=bulk_rates,
        points=(
            Point(sigma=0.07, dim=640, dataset_size=310, known=7, batch_size=110),
            Point(sigma=1.3, dim=97, dataset_size=1700, known=900, batch_size=31),
        ),
        tolerance=1e-12,
        tolerance_reason="rounding of a few products",
        seconds=0.01,
        quantity="learning rate",
    ),
)
