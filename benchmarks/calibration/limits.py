"""Intervals of `verify.judging.intervals` for many sequences at once, and how often that of a probability misses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from simulate.monte_carlo import BLOCK
from verify.judging.guards import SKEWEST, farthest_allowed, untrusted_share
from verify.judging.intervals import multiplier

__all__ = [
    "Floats",
    "Ints",
    "added",
    "event_miss_rate",
    "guarded",
    "half_widths",
    "power_sums",
    "proportion_limits",
    "summaries",
    "widened_each",
]

Floats = NDArray[np.float64]

Ints = NDArray[np.int64]


def power_sums(x: Floats) -> Floats:
    """Sums of x, x^2 and x^3 over each row, shape (3, rows).

    >>> power_sums(np.array([[1.0, 2.0]])).ravel()
    array([3., 5., 9.])
    """
    square = x * x
    return np.stack([x.sum(axis=1), square.sum(axis=1), np.einsum("ij,ij->i", square, x)])


def summaries(x: Floats) -> Floats:
    """What an interval and its guards read off each row, shape (6, rows): `power_sums`, the largest and the smallest
    replicate, and the sum of squares of the sums of blocks; whole blocks.

    >>> summaries(np.arange(32.0)[None]).ravel().tolist()
    [496.0, 10416.0, 246016.0, 31.0, 0.0, 155776.0]
    """
    blocks = x.reshape(len(x), -1, BLOCK).sum(axis=2)
    ends = np.stack([x.max(axis=1), x.min(axis=1), np.einsum("ij,ij->i", blocks, blocks)])
    return np.concatenate([power_sums(x), ends])


def added(sums: Floats, more: Floats) -> Floats:
    """The summaries of rows joined end to end.

    >>> x = np.arange(64.0)[None]
    >>> bool((added(summaries(x[:, :32]), summaries(x[:, 32:])) == summaries(x)).all())
    True
    """
    found = sums + more
    found[3], found[4] = np.maximum(sums[3], more[3]), np.minimum(sums[4], more[4])
    return found


def guarded(sums: Floats, n: int, alpha: float) -> Floats:
    """Half-width of `mean_interval` of each row, infinite wherever a guard leaves it without an interval.

    Parameters
    ----------
    sums
        Shape (6, rows): `summaries` of `n` replicates.
    """
    mean, square, cube = sums[:3] / n
    sd = np.sqrt((square - mean**2) * (n / (n - 1)))
    skewness = (cube - 3 * mean * square + 2 * mean**3) / sd**3
    far = np.maximum(sums[3] - mean, mean - sums[4]) > farthest_allowed(n) * sd
    among, blocks = sums[5] / BLOCK, n // BLOCK
    between = (among - n * mean**2) / (blocks - 1)
    within = (sums[1] - among) / (n - blocks)
    outside = (np.abs(skewness) > SKEWEST) | far | (between > untrusted_share(n) * within)
    return np.where(outside, math.inf, half_widths(sums[:3], n, alpha))


def half_widths(
    sums: Floats,
    n: int,
    alpha: float,
    *,
    multiplier: Callable[[int, float], float] = multiplier,
    widens: bool = True,
) -> Floats:
    """Half-width of `mean_interval` of each row of replicates without its guards, infinite where it cannot be widened.

    Parameters
    ----------
    sums
        Shape (3, rows): sums of x, x^2 and x^3 over `n` replicates, counted from near their mean.
    multiplier, widens
        Of the standard error, and whether it grows with the skewness, where another interval is meant.
    """
    mean, square, cube = sums / n
    sd = np.sqrt((square - mean**2) * (n / (n - 1)))
    k = multiplier(n, alpha)
    if math.isinf(k) or not widens:
        return k * sd / math.sqrt(n)
    skewness = (cube - 3 * mean * square + 2 * mean**3) / sd**3
    return widened_each(k, n, skewness) * sd / math.sqrt(n)


def widened_each(k: float, n: int, skewness: Floats) -> Floats:
    r"""`widened` of an array: with u = 1/k' the cubic is :math:`u^3 - u/k^2 + 2c/k^2 = 0`, solved by Viete.

    >>> widened_each(6.0, 100, np.array([0.0, 0.5, 9.0])).round(3)
    array([6.   , 6.827,   inf])
    """
    c = np.abs(skewness) / (3 * math.sqrt(n))
    trusted = c * math.sqrt(1.5) * k <= 1 / 6
    angle = np.arccos(-3 * math.sqrt(3) * k * np.where(trusted, c, 0.0))
    return np.where(trusted, math.sqrt(3) / 2 * k / np.cos(angle / 3), math.inf)


def proportion_limits(hits: Floats, n: int, alpha: float) -> tuple[Floats, Floats]:
    """`proportion_interval` of each number of hits, shape (rows,) each.

    >>> np.round(proportion_limits(np.array([256.0]), 256, 1e-6), 3).ravel()
    array([0.935, 1.   ])
    """
    floor = _least_likelihood(hits, n, alpha)
    ends = [_last_inside(hits, n, floor, end) for end in (0.0, 1.0)]
    return np.where(hits == 0, 0.0, ends[0]), np.where(hits == n, 1.0, ends[1])


def _least_likelihood(hits: Floats, n: int, alpha: float) -> Floats:
    return special.betaln(hits + 0.5, n - hits + 0.5) - special.betaln(0.5, 0.5) + math.log(alpha)


def _likelihood(p: Floats | float, hits: Floats, n: int) -> Floats:
    return special.xlogy(hits, p) + special.xlog1py(n - hits, -np.asarray(p))


def _last_inside(hits: Floats, n: int, floor: Floats, end: float) -> Floats:
    inside, outside = hits / n, np.full(hits.shape, end)
    for _ in range(60):
        middle = (inside + outside) / 2
        out = _likelihood(middle, hits, n) <= floor
        inside, outside = np.where(out, inside, middle), np.where(out, middle, outside)
    return outside


def event_miss_rate(p: float, alpha: float, steps: Sequence[int]) -> float:
    """Chance that `proportion_interval` misses `p` at any of the looks: the hits as a chain that stops at a miss.

    >>> event_miss_rate(0.5, 1e-2, [64]) < event_miss_rate(0.5, 1e-2, [64, 128]) < 1e-2
    True
    """
    chance, before, missed = np.ones(1), 0, 0.0
    for n in steps:
        chance = np.convolve(chance, stats.binom.pmf(np.arange(n - before + 1), n - before, p))
        hits = np.arange(n + 1.0)
        out = _likelihood(p, hits, n) <= _least_likelihood(hits, n, alpha)
        missed += float(chance[out].sum())
        chance, before = np.where(out, 0.0, chance), n
    return missed
