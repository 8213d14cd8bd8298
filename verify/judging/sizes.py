"""Means at infinite size, from replicates that each span several sizes.

| function | for |
|---|---|
| `extrapolated` | the limit, from declared powers of the correction |
| `exponent_replicates` | exponents between successive sizes, to be extrapolated |
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from verify.judging.guards import MISFIT, UNTRUSTED, Floats
from verify.judging.intervals import Interval, mean_interval

DROPPED = 1.25
"""Least weight, in the half-width of a limit, of the change from dropping the smallest size."""

TRUST = 1e-3
"""Chance of mistrusting a size model that is right."""

ROUNDING = 1e-13
"""Rounding error of a contrast between sizes, relative to the largest score."""


def extrapolated(
    values: Floats, sizes: Sequence[float], terms: Sequence[float], *, alpha: float, numerical: float = 0.0
) -> Interval:
    r"""Interval for theta in :math:`E y_M = \theta + \sum_k a_k M^{-p_k}`, the sizes M spanned by each replicate.

    Parameters
    ----------
    values
        Shape (n, sizes).
    sizes, terms
        M and p; one size more than there are unknowns, at least, so that the smallest can be dropped.

    Raises
    ------
    ValueError
        If there are fewer sizes.

    Examples
    --------
    >>> m = np.array([10.0, 20.0, 40.0, 80.0, 160.0])
    >>> noise = np.random.default_rng(4).normal(size=(1024, 5))
    >>> interval = extrapolated(3 + 5 / m - 7 / m**2 + 0.01 * noise, m, (1, 2), alpha=1e-6)
    >>> bool(interval.lower < 3 < interval.upper), interval.half_width < 0.01
    (True, True)
    """
    if len(sizes) < len(terms) + 2:
        raise ValueError(
            f"a fit of {len(terms)} terms needs at least {len(terms) + 2} sizes, got {len(sizes)}"
        )
    design = _design(sizes, terms)
    weights = np.linalg.pinv(design)[0]
    fewer = np.linalg.pinv(design[1:])[0]
    interval = mean_interval(
        # At worst the errors of all sizes add up with the signs of the weights.
        values @ weights,
        alpha=alpha,
        numerical=numerical * float(np.abs(weights).sum()),
    )
    if interval.obstacle:
        return interval
    if misfit := _misfit(values, design, numerical, alpha):
        return interval.blocked_by(misfit)
    changed = abs(float((values[:, 1:] @ fewer).mean()) - interval.estimate)
    return interval.widened_by(_next_term(sizes, terms, weights, fewer) * changed)


def exponent_replicates(values: Floats, sizes: Sequence[float]) -> Floats:
    """log(m_2 / m_1) / log(size_2 / size_1) of the means m at successive sizes, as replicates: shape (n, sizes - 1).

    Their mean is the exponent of the means, their covariance that of the delta method.
    """
    mean = values.mean(0)
    influence = np.log(np.abs(mean)) + values / mean - 1
    return np.diff(influence, axis=1) / np.diff(np.log(np.asarray(sizes, dtype=float)))


def _design(sizes: Sequence[float], terms: Sequence[float]) -> Floats:
    # In units of the smallest size no column of the design is tiny.
    m = np.asarray(sizes, dtype=float) / sizes[0]
    return np.column_stack([np.ones_like(m), *(m**-p for p in terms)])


def _next_term(sizes: Sequence[float], terms: Sequence[float], weights: Floats, fewer: Floats) -> float:
    """Error of a limit over the change from dropping the smallest size, for the next power of the series alone."""
    # The powers are taken to go on at the spacing of the last two.
    power = 2 * terms[-1] - (terms[-2] if len(terms) > 1 else 0.0)
    missed = (np.asarray(sizes, dtype=float) / sizes[0]) ** -power
    error = float(weights @ missed)
    return max(DROPPED, abs(error / (float(fewer @ missed[1:]) - error)))


def _misfit(values: Floats, design: Floats, numerical: float, alpha: float) -> str:
    """Return why not all contrasts that the model sets to zero may be zero, by Hotelling's test, for any basis.

    Below the error of an interval, chance is no longer an explanation: the model is wrong.
    """
    from scipy import special

    n, count = len(values), design.shape[0] - design.shape[1]
    found = values @ np.linalg.svd(design.T)[2][-count:].T
    mean = found.mean(0)
    # what no replicate averages out counts as one more standard error
    fixed = numerical * math.sqrt(len(design)) + ROUNDING * float(np.abs(values).max())
    covariance = np.cov(found, rowvar=False).reshape(count, count) / n + fixed**2 * np.eye(count)
    far = mean @ np.linalg.solve(covariance, mean) * (n - count) / (count * (n - 1))
    chance = float(special.fdtrc(count, n - count, far))
    return "" if chance >= TRUST else UNTRUSTED if chance >= alpha else MISFIT
