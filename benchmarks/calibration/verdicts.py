"""Claims judged look by look until decided, alone and in synthetic reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.laws import BATCH, LAWS, PROMISED, Event, Floats, Ints, Law
from benchmarks.calibration.misses import SUITE
from verify.judging.judge import looks

AGREES, DISAGREES = 1, -1


def decided(lower: Floats, upper: Floats, low: Floats, high: Floats) -> Ints:
    """`decide` of arrays: `AGREES`, `DISAGREES`, 0 for undecided.

    >>> decided(np.array([0.9, 0.7, 1.3]), np.array([1.1, 0.9, 1.5]), np.full(3, 0.8), np.full(3, 1.2))
    array([ 1,  0, -1])
    """
    agrees = (low < lower) & (upper < high)
    return agrees * AGREES + ((upper < low) | (lower > high)) * DISAGREES


class Verdicts(NamedTuple):
    """First verdicts and the replicates they took (the budget where undecided), shape (alphas, claims) each."""

    verdict: Ints
    replicates: Ints


def judged(
    law: Law | Event,
    theta: Floats,
    delta: Floats,
    *,
    alphas: Sequence[float],
    budget: int,
    rng: np.random.Generator,
) -> Verdicts:
    """Claims about the mean of one law, judged look by look until decided.

    Parameters
    ----------
    theta, delta
        Offset of the theory from the truth, and margin; shape (claims,).
    """
    verdict = np.zeros((len(alphas), len(theta)), dtype=np.int64)
    replicates = np.full(verdict.shape, budget)
    active, sums, before = np.arange(len(theta)), law.empty(len(theta)), 0
    for n in looks(budget):
        sums, before = law.extend(sums, rng, n - before), n
        low, high = theta[active] - delta[active], theta[active] + delta[active]
        for alpha, row, took in zip(alphas, verdict, replicates, strict=True):
            now = decided(*law.limits(sums, n, alpha), low, high)
            first = (row[active] == 0) & (now != 0)
            row[active[first]], took[active[first]] = now[first], n
        open_ = (verdict[:, active] == 0).any(axis=0)
        active, sums = active[open_], sums[:, open_]
        if not len(active):
            break
    return Verdicts(verdict, replicates)


def wrong(verdict: Ints, theta: Floats, delta: Floats) -> NDArray[np.bool_]:
    """Verdicts that the truth contradicts, `theta` being the theory less the truth.

    *Agrees* says |mu - theta| < delta and is wrong where |mu - theta| >= delta. *Disagrees* says
    |mu - theta| > delta and is wrong where |mu - theta| <= delta. So with the theory exactly one margin off either
    verdict is wrong, and undecided, which is never wrong, is all that is left.

    >>> wrong(np.array([1, -1, 0, 1]), np.array([0.1, 0.1, 0.1, 0.0]), np.full(4, 0.1))
    array([ True,  True, False, False])
    """
    off = np.abs(theta)
    return ((verdict == AGREES) & (off >= delta)) | ((verdict == DISAGREES) & (off <= delta))


CLAIMS = 100

FRACTIONS = (1 / 2, 1 / 3, 1 / 4, 1 / 6, 1 / 8)

OFFSETS = (0.0, 0.5, 0.95, 1.0, 1.05, 2.0, 4.0)

REPORT_LAWS: tuple[Law | Event, ...] = (*(LAWS[name] for name in PROMISED), Event(0.5), Event(0.05))

REPORT_ALPHAS = (1e-1 / CLAIMS, 1e-2 / CLAIMS, SUITE)


class Claims(NamedTuple):
    """Claims of synthetic reports, shape (claims,) each: law, offset and margin in units of its deviation."""

    law: Ints
    offset: Floats
    theta: Floats
    delta: Floats


def synthetic(reports: int, rng: np.random.Generator) -> Claims:
    """`CLAIMS` claims for each report: law, margin, offset and its side drawn at random, each as often."""
    size = reports * CLAIMS
    law = rng.integers(len(REPORT_LAWS), size=size)
    offset = rng.choice(OFFSETS, size)
    delta = rng.choice(FRACTIONS, size)
    return Claims(law, offset, rng.choice([-1.0, 1.0], size) * offset * delta, delta)


def judge_reports(reports: int, budget: int, rng: np.random.Generator) -> tuple[Claims, Verdicts]:
    """Synthetic reports, judged at each of `REPORT_ALPHAS` on the same replicates."""
    claims = synthetic(reports, rng)
    verdict = np.zeros((len(REPORT_ALPHAS), len(claims.law)), dtype=np.int64)
    replicates = np.zeros_like(verdict)
    for i, law in enumerate(REPORT_LAWS):
        chosen = np.flatnonzero(claims.law == i)
        for batch in np.array_split(chosen, math.ceil(len(chosen) / BATCH) or 1):
            theta, delta = law.sd * claims.theta[batch], law.sd * claims.delta[batch]
            found = judged(law, theta, delta, alphas=REPORT_ALPHAS, budget=budget, rng=rng)
            verdict[:, batch], replicates[:, batch] = found
    return claims, Verdicts(verdict, replicates)
