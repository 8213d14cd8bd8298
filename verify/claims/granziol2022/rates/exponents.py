"""Granziol, Zohren and Roberts (2022), sections 10.1 and 11: local exponents of rates in the batch size, crossovers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from theory import batch_hessian, learning_rates
from theory.rmt import Semicircle
from verify.claims.granziol2022 import PAPER
from verify.model import OURS, AnyClaim, Identity

__all__ = ["CLAIMS"]

STEP = 1e-4
MULAYOFF = "Mulayoff and Michaeli (2024), arXiv 2306.07850"


def _slope(rate: Callable[[float], Any], p: Point) -> float:
    """Of the log of a rate in the log of the effective batch size, at the batch size of a point."""
    sizes = [p.batch_size * math.exp(step) for step in (-STEP, STEP)]
    low, high = (math.log(float(rate(size))) for size in sizes)
    less, more = (math.log(float(batch_hessian.effective_batch_size(size, p.dataset_size))) for size in sizes)
    return (high - low) / (more - less)


def crossing(_: np.random.Generator, p: Point) -> Mapping[str, Any]:
    """Eigenvalue of the batch at the crossover of theorem 4, where the outlier meets the edge."""
    noise = {"sigma": p.sigma, "dim": p.dim, "dataset_size": p.dataset_size}
    size = float(batch_hessian.crossover_batch_size(p.eigenvalue, **noise))
    top, above, below = (
        float(batch_hessian.batch_eigenvalue(p.eigenvalue, batch_size=size * step, **noise))
        for step in (1.0, 1.05, 0.95)
    )
    return {"data set": 2 * p.eigenvalue, "at the crossover": top, "5 % above": above, "5 % below": below}


def mean_square_slope(_: np.random.Generator, p: Point) -> Mapping[str, Any]:
    """Slope of the limit in the mean square in log b."""
    noise = {"noise": p.noise, "dataset_size": p.dataset_size}
    exponent = learning_rates.mean_square_exponent(p.eigenvalue, batch_size=p.batch_size, **noise)
    return {
        "slope": _slope(
            lambda size: learning_rates.mean_square_limit(p.eigenvalue, batch_size=size, **noise), p
        ),
        "exponent": exponent,
        "linear": 1.0,
        "square root": 0.5,
        "of the other side": 1 - exponent,
    }


def mean_square_crossing(_: np.random.Generator, p: Point) -> Mapping[str, Any]:
    """Limit in the mean square at its crossover: half of what it is for the whole data set."""
    noise = {"noise": p.noise, "dataset_size": p.dataset_size}
    size = float(learning_rates.mean_square_crossover(p.eigenvalue, **noise))
    half, above, below = (
        float(learning_rates.mean_square_limit(p.eigenvalue, batch_size=size * step, **noise))
        for step in (1.0, 1.05, 0.95)
    )
    whole = learning_rates.stability_limit(p.eigenvalue)
    return {"half of the whole": whole / 2, "at the crossover": half, "5 % above": above, "5 % below": below}


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


NOISE = {"sigma": 0.07, "dim": 640, "dataset_size": 310}
SIZES = tuple(Point(eigenvalue=0.33, batch_size=size, **NOISE) for size in (7, 23, 37, 190))
LIMITS = tuple(Point(eigenvalue=1.7, noise=31.0, dataset_size=190, batch_size=size) for size in (3, 11, 70))
QUOTIENT = "a difference quotient of step 1e-4"

CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="beyond/mean-square-exponent",
        entries=("D2",),
        source=f"ours; the limit is that of {MULAYOFF}",
        statement=r"\frac{d \log \alpha}{d \log b} = \frac{1}{1 + b/b^*}",
        says="On logarithmic axes the slope of the mean-square rate from one noise term falls from one to zero as "
        "the batch size passes its crossover.",
        passage=OURS,
        routes=mean_square_slope,
        points=LIMITS,
        tolerance=1e-6,
        tolerance_reason=QUOTIENT,
        seconds=0.01,
        quantity="local exponent of the rate in the batch size",
    ),
    Identity(
        id="beyond/mean-square-crossover",
        entries=("D2",),
        source=f"ours; the limit is that of {MULAYOFF}",
        statement=r"\alpha(B^*) = \tfrac12 \cdot \frac{2}{\lambda}",
        says="At its crossover batch size the mean-square rate is half of the stability limit of the whole data "
        "set.",
        passage=OURS,
        routes=mean_square_crossing,
        points=(
            Point(eigenvalue=1.7, noise=31.0, dataset_size=190),
            Point(eigenvalue=0.3, noise=7.0, dataset_size=4700),
        ),
        tolerance=1e-12,
        tolerance_reason="rounding of a few products",
        seconds=0.01,
        quantity="learning rate",
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
