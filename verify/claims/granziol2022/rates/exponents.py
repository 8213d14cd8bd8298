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
from verify.model import AnyClaim, Identity

__all__ = ["CLAIMS"]


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
