"""Granziol, Zohren and Roberts (2022): one element of the noise of a batch, counted over all batches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.matrices import populations
from simulate.monte_carlo import Point
from theory import batch_hessian
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.noise.rational_moments import (
    RATIONAL,
    central_moment,
    fluctuation_of,
    mean_power,
    whole_numbers,
)
from verify.model import AnyClaim, Identity, NoTheory

__all__ = ["CLAIMS"]

Array = NDArray[Any]

# --- eqs. (4) and (5): the noise, sample by sample -----------------------------------------------------------


def batch_and_rest(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Noise of every batch of a population of matrices: as defined, and from the batch and the rest of it."""
    total, size = point.dataset_size, point.batch_size
    samples = populations.symmetric_matrices(rng, total, point.dim)
    inside = populations.batch_sums(samples, size)
    outside = samples.sum(axis=0) - inside
    return {
        "noise": inside / size - samples.mean(axis=0),
        "two sums": (1 / size - 1 / total) * inside - outside / total,
        "the factor before both sums": (1 / size - 1 / total) * (inside - outside),
        "the rest with a plus": (1 / size - 1 / total) * inside + outside / total,
    }


def element_moments(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Mean and mean square of one noise element over all batches of a population of whole numbers."""
    total, size = point.dataset_size, point.batch_size
    values = whole_numbers(rng, total)
    sums, mean = populations.batch_sums(values, size), Fraction(int(values.sum()), total)
    drift, square = (float(mean_power(sums, size, mean, power)) for power in (1, 2))
    variance = float(central_moment(values, 2, total - 1))
    exact = fluctuation_of(variance, size, total)
    return {
        "all batches": [drift, square],
        "(1/B - 1/N) S^2": [0.0, exact],
        "variance of divisor N": [0.0, (total - 1) / total * exact],
        "with N/(N - 1) once more": [0.0, total / (total - 1) * exact],
        "1/B": [0.0, variance / size],
        "square of the mean": [0.0, 0.0],
    }


def against_the_true_mean(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """The same about the mean of what the populations are drawn from."""
    values, drawn, variance = _redrawn(rng, point)
    total, size = point.dataset_size, point.batch_size
    truth = Fraction(int(values.sum()), point.outcomes)
    return {
        "against the true mean": float(mean_power(drawn[:, :size].sum(axis=1), size, truth, 2)),
        "Var / B": fluctuation_of(variance, size, math.inf),
        "(1/B - 1/N) Var": fluctuation_of(variance, size, total),
        "with N/(N - 1)": total / (total - 1) * fluctuation_of(variance, size, total),
    }


def _redrawn(rng: np.random.Generator, point: Point) -> tuple[Any, Any, float]:
    """The values, every population that can be drawn from them, and their variance."""
    values = whole_numbers(rng, point.outcomes)
    return (
        values,
        populations.redrawn(values, point.dataset_size),
        float(central_moment(values, 2, point.outcomes)),
    )


def effective_sizes(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Variance of the samples over mean square of the noise, at every batch size below N."""
    total = point.dataset_size
    values, sizes = whole_numbers(rng, total), np.arange(1, total)
    mean, variance = Fraction(int(values.sum()), total), central_moment(values, 2, total - 1)
    squares = [mean_power(populations.batch_sums(values, size), size, mean, 2) for size in sizes.tolist()]
    return {
        "variance over mean square": [float(variance / square) for square in squares],
        "b": batch_hessian.effective_batch_size(sizes, total),
        "B": sizes,
        "variance of divisor N": [float((total - 1) * variance / (total * square)) for square in squares],
        "B / (1 + B/N)": sizes / (1 + sizes / total),
    }


SIZES = tuple(Point(dataset_size=n, batch_size=b) for n, b in ((5, 2), (7, 3), (8, 5), (8, 7)))

CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/batch-and-rest",
        no_theory=NoTheory.MEASURED,
        entries=("B4", "B5"),
        source=f"{PAPER}, eqs. (4) and (5), first line",
        statement=r"\varepsilon = \left(\frac1B - \frac1N\right) \sum_{i \in \text{batch}} H_i - "
        r"\frac1N \sum_{i \notin \text{batch}} H_i",
        says="The noise of every batch is a positive weight on the samples inside it and a negative one on the "
        "samples outside.",
        routes=batch_and_rest,
        points=(Point(dataset_size=8, batch_size=3, dim=4), Point(dataset_size=7, batch_size=5, dim=3)),
        tolerance=1e-13,
        tolerance_reason="exact; sums of eight numbers in float64",
        seconds=0.01,
        quantity="noise of every batch",
    ),
    Identity(
        id="granziol2022/element-moments",
        entries=("B6",),
        source=f"{PAPER}, eq. (5), second line",
        statement=r"\mathbb{E}\,\varepsilon_{jk} = 0,\quad \mathbb{E}\,\varepsilon_{jk}^2 = "
        r"\left(\frac1B - \frac1N\right) S_{jk}^2\quad (S^2 \text{ with divisor } N - 1)",
        says="Over all batches, a noise element has mean zero and a mean square of the sample variance, with "
        "divisor one less, over the effective batch size.",
        routes=element_moments,
        points=SIZES,
        tolerance=1e-14,
        tolerance_reason=RATIONAL,
        seconds=0.01,
        quantity="mean and mean square of a noise element",
    ),
    Identity(
        id="granziol2022/true-risk",
        symbols={"H": "Hessian of one sample, drawn from the law psi of the data"},
        entries=("B11",),
        source=f"{PAPER}, remark 6, eq. (11)",
        statement=r"\mathbb{E}\,(H_B - H_{\text{true}})_{jk}^2 = \mathrm{Var}_\psi\,(H)_{jk} / B",
        says="Measured from the Hessian of the true risk, an element of the batch Hessian has the variance of its "
        "source over the batch size itself.",
        routes=against_the_true_mean,
        points=(
            Point(outcomes=3, dataset_size=6, batch_size=2),
            Point(outcomes=4, dataset_size=5, batch_size=3),
        ),
        tolerance=1e-14,
        tolerance_reason=RATIONAL,
        seconds=0.01,
        quantity="mean square of an element",
    ),
    Identity(
        id="granziol2022/effective-batch-size",
        entries=("B7",),
        source=f"{PAPER}, theorem 4 and its footnote; the noise scale of section 2.2",
        statement=r"\frac{S_{jk}^2}{\mathbb{E}\,\varepsilon_{jk}^2} = b = \frac{B}{1 - B/N} = \frac{N B}{N - B}",
        says="The sample variance over the mean square of the noise is the effective batch size, for every batch "
        "smaller than the data set.",
        routes=effective_sizes,
        points=(Point(dataset_size=6), Point(dataset_size=8)),
        tolerance=1e-14,
        tolerance_reason=RATIONAL,
        seconds=0.01,
        quantity="effective batch size at every B < N",
    ),
)
