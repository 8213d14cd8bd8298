"""Batch sizes and saturation, as the rules for learning rates need them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import Floats, positive, quiet, representable, require, together


@quiet
def inverse_size(name: str, size: ArrayLike, dataset_size: ArrayLike) -> Floats:
    """1/b = 1/B - 1/N of a batch of B; exactly 0 at B = N."""
    batch, total = together(
        **{name: positive(name, size), "dataset_size": positive("dataset_size", dataset_size, infinite=True)}
    )
    require(batch <= total, name, "at most dataset_size", size)
    whole = np.where(np.isfinite(total), total, 1.0)
    inverse = np.where(np.isfinite(total), (whole - batch) / whole, 1.0) / batch
    return representable(inverse, **{name: size})


def saturating(ratio: Floats) -> Floats:
    """The share ratio / (1 + ratio), 1 at infinity."""
    low, high = np.minimum(ratio, 1.0), np.maximum(ratio, 1.0)
    return np.where(ratio <= 1, low / (1 + low), 1 / (1 + 1 / high))
