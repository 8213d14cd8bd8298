"""Moments over all batches of a population of whole numbers, as rationals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory import batch_hessian

__all__ = [
    "RATIONAL",
    "central_moment",
    "fluctuation_of",
    "inverse_batch",
    "mean_power",
    "whole_numbers",
]

Array = NDArray[Any]

RATIONAL = "computed in whole numbers and rationals, rounded once"


def fluctuation_of(variance: Any, batch_size: Any, dataset_size: Any) -> Array:
    """Variance of an element of the noise, of that of the samples."""
    return batch_hessian.element_fluctuation(
        variance=variance, batch_size=batch_size, dataset_size=dataset_size
    )


def inverse_batch(batch_size: float, dataset_size: float) -> float:
    """1/b."""
    return 1 / batch_size - 1 / dataset_size


def whole_numbers(rng: np.random.Generator, count: int) -> Array:
    """Whole numbers, not all equal."""
    return np.append(rng.integers(-20, 20, count - 1), 31)


def mean_power(sums: Array, size: int, mean: Fraction, power: int) -> Fraction:
    """Mean over batches of a power of the batch mean less `mean`, as a rational."""
    total = sum((Fraction(int(s), size) - mean) ** power for s in sums)
    return Fraction(total) / len(sums)


def central_moment(values: Array, power: int, divisor: int) -> Fraction:
    """Sum of a power of the deviations from the mean, over `divisor`."""
    mean = Fraction(int(values.sum()), len(values))
    return sum(((Fraction(int(v)) - mean) ** power for v in values), Fraction(0)) / divisor
