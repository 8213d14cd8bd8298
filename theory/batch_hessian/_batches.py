"""Sizes of batches and data sets, as the formulas of sub-sampling need them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import finite, positive, require, together

__all__ = ["checked_sizes", "dimension", "noise_scale", "over"]

Floats = NDArray[np.float64]


def checked_sizes(batch_size: ArrayLike, dataset_size: ArrayLike) -> tuple[Floats, Floats]:
    """B, and 1 - B/N exactly 0 at B = N: their quotient is 1/b, which may overflow where b does not."""
    batch, total = together(
        batch_size=positive("batch_size", batch_size),
        dataset_size=positive("dataset_size", dataset_size, infinite=True),
    )
    require(batch <= total, "batch_size", "at most dataset_size", batch_size)
    bounded = np.where(np.isfinite(total), total, 1.0)
    return batch, np.where(np.isfinite(total), (bounded - batch) / bounded, 1.0)


def over(value: Floats, batch: Floats, rest: Floats) -> Floats:
    """`value` / b; 0 at B = N, even where `value` / B overflows."""
    return rest * (np.where(rest > 0, value, 0.0) / batch)


def dimension(dim: ArrayLike) -> Floats:
    """A number of parameters, or several."""
    value = finite("dim", dim)
    require((value >= 1) & (value == np.floor(value)), "dim", "an integer >= 1", dim)
    return value


def noise_scale(sigma: Floats, dim: Floats, batch: Floats, rest: Floats) -> Floats:
    """Half the edge of the noise, s = sqrt(P/b) sigma, for B and 1 - B/N as `checked_sizes` gives them."""
    return np.sqrt(dim) * (np.sqrt(rest) * (np.where(rest > 0, sigma, 0.0) / np.sqrt(batch)))
