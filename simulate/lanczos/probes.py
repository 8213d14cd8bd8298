"""Random probe vectors for estimates of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulate import _checks


def random_signs(rng: np.random.Generator, shape: int | tuple[int, int]) -> _checks.Floats:
    """Return entries that are 1 or -1, each with probability 1/2.

    Examples
    --------
    >>> np.unique(random_signs(np.random.default_rng(0), (20, 3)))
    array([-1.,  1.])
    """
    return np.asarray(2.0 * rng.integers(0, 2, shape) - 1.0, dtype=np.float64)


def probe_count(probes: Any) -> int:
    """Return the number of probes if it is enough for a standard error.

    Raises
    ------
    ValueError
        If they are fewer than two, or no integer.
    """
    if _checks.natural("probes", probes) < 2:
        raise ValueError(f"probes must be at least 2 for a standard error, got {probes}")
    return int(probes)
