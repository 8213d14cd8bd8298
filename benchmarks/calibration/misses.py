"""Sequences that miss at any look, counted: for the interval of the suite and for others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from benchmarks.calibration.laws import (
    LAST,
    Floats,
    Ints,
    Law,
    batches,
    guarded,
    half_widths,
    least_likelihood,
    log_likelihood,
    walk,
)
from verify.judging.intervals import FEWEST, multiplier
from verify.judging.judge import BLOCK, GROWTH, looks

SUITE = 1e-3 / 1024
"""Error of one interval of the suite."""

ALPHAS = (1e-2, 1e-3, 1e-4, 1e-5, SUITE)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """An interval for the mean: multiplier of the standard error, widened for skewness or not, with the guards of the
    suite or without, and its looks.
    """

    multiplier: Callable[[int, float], float] = multiplier
    widens: bool = False
    guards: bool = False
    looks: tuple[int, ...]

    def half_widths(self, sums: Floats, n: int, alpha: float) -> Floats:
        """Half-widths of each row, infinite where there is no interval; `sums` are those of `Law.extend`."""
        if self.guards:
            return guarded(sums, n, alpha)
        return half_widths(sums[:3], n, alpha, multiplier=self.multiplier, widens=self.widens)


def looks_from(first: int, last: int) -> list[int]:
    """The looks of the suite, had it another first one.

    >>> looks_from(64, 200)
    [64, 80, 112, 144, 192, 208]
    """
    end = BLOCK * math.ceil(last / BLOCK)
    steps = [min(first, end)]
    while steps[-1] < end:
        steps.append(min(BLOCK * math.ceil(GROWTH * steps[-1] / BLOCK), end))
    return steps


LOOKS = tuple(looks(LAST))


def taken(last: int = LAST, first: int = FEWEST) -> Rule:
    """The interval of the suite with its guards, at the looks of the suite from `first` on."""
    return Rule(guards=True, looks=tuple(n for n in looks(last) if n >= first))


def misses(
    law: Law,
    sequences: int,
    rng: np.random.Generator,
    *,
    rules: Sequence[Rule],
    alphas: Sequence[float] = ALPHAS,
) -> Ints:
    """Sequences that miss at any look, and looks without an interval.

    Returns
    -------
    Shape (2, rules, alphas).
    """
    counts = np.zeros((2, len(rules), len(alphas)), dtype=np.int64)
    for rows in batches(sequences):
        counts += _misses(law, rows, rng, rules, alphas)
    return counts


def _misses(
    law: Law, rows: int, rng: np.random.Generator, rules: Sequence[Rule], alphas: Sequence[float]
) -> Ints:
    missed = np.zeros((len(rules), len(alphas), rows), dtype=bool)
    none = np.zeros((len(rules), len(alphas)), dtype=np.int64)
    for n, sums in walk(law, rows, rng, sorted({n for rule in rules for n in rule.looks})):
        for i, rule in enumerate(rules):
            for j, alpha in enumerate(alphas if n in rule.looks else ()):
                half = rule.half_widths(sums, n, alpha)
                missed[i, j] |= np.abs(sums[0]) / n > half
                none[i, j] += np.isinf(half).sum()
    return np.stack([missed.sum(axis=2), none])


def clopper_pearson(hits: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact confidence interval of a share.

    >>> [round(end, 4) for end in clopper_pearson(0, 1000)]
    [0.0, 0.0037]
    """
    tail_share = (1 - confidence) / 2
    lower = float(stats.beta.ppf(tail_share, hits, n - hits + 1)) if hits else 0.0
    return lower, float(stats.beta.isf(tail_share, hits + 1, n - hits)) if hits < n else 1.0


def event_miss_rate(p: float, alpha: float, steps: Sequence[int]) -> float:
    """Chance that `proportion_interval` misses `p` at any of the looks: the hits as a chain that stops at a miss.

    >>> event_miss_rate(0.5, 1e-2, [64]) < event_miss_rate(0.5, 1e-2, [64, 128]) < 1e-2
    True
    """
    chance, before, missed = np.ones(1), 0, 0.0
    for n in steps:
        chance = np.convolve(chance, stats.binom.pmf(np.arange(n - before + 1), n - before, p))
        hits = np.arange(n + 1.0)
        out = log_likelihood(p, hits, n) <= least_likelihood(hits, n, alpha)
        missed += float(chance[out].sum())
        chance, before = np.where(out, 0.0, chance), n
    return missed
