r"""Guards against replicates unlike those on which the intervals were calibrated: no verdict then, and why.

| guard | no verdict where |
|---|---|
| `SKEWED` | the skewness is beyond `SKEWEST`, or the interval can no longer be widened for it |
| `FAR` | one replicate carries more than a sixth of the variance, and lies beyond `FARTHEST` standard deviations |
| `TOGETHER` | means of blocks of sixteen scatter more than replicates that share nothing could |

`TOGETHER` misses an intraclass correlation of 0.5 in one sample of four at 96 replicates. Only from some 640 on does it
miss less often than the promise allows, and most verdicts come earlier. Until then the safeguard is that replicates
share nothing, which `benchmarks.blocks` tests.

A guard only ever withholds a verdict, so the promises of intervals hold with it as without it. The numbers are
calibrated in docs/calibration.md. What no guard can see are events too rare to occur among n replicates:
`unseen_rate`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import BLOCK

Floats = NDArray[np.float64]

OUTSIDE = "outside the calibrated laws"

TOLD_FROM = 640
"""Replicates from which on `TOGETHER` misses an intraclass correlation of 0.5 as rarely as is promised."""

SKEWED = f"{OUTSIDE}: too skewed"
FAR = f"{OUTSIDE}: one replicate far from all others"
TOGETHER = f"{OUTSIDE}: replicates of a block move together"
STILL = "zero variance"
REFUTED = "order of its correction refuted"

UNCONFIRMED = "order of its correction not confirmed"
UNTRUSTED = "size model not trusted"
MISFIT = "size model refuted"

BY_CHANCE = frozenset((UNTRUSTED, UNCONFIRMED))
"""Obstacles of a model of the size that is right: its test of fit is wrong once in a thousand."""

REMEDIES: Mapping[str, str] = {
    SKEWED: "judge its logarithm or the share of replicates beyond a threshold; more replicates help while the "
    "skewness is below 6.2",
    FAR: "more replicates help if there are others like it; else judge a bounded score, such as the share of "
    "replicates beyond a threshold",
    TOGETHER: "no number of replicates helps: something is shared by replicates drawn together. Below some "
    f"{TOLD_FROM} replicates even a correlation of 0.5 may go unseen, so other claims on this experiment are in doubt "
    "too: `python -m benchmarks.blocks --claim ID` names what moves",
    STILL: "all replicates are equal: nothing is drawn, or the quantity is deterministic and to be stated as exact",
    REFUTED: "the correction falls with another power than declared: look at it over the sizes",
    UNTRUSTED: "the test of fit is wrong once in 1000: another seed tells",
    MISFIT: "more than chance lies between sizes and the declared powers: look at it over the sizes",
}
"""Remedy for each obstacle to a verdict."""

SKEWEST = 6.2
"""Largest absolute skewness that is judged: that of lognormal(1), the most skewed law of the calibration."""

FARTHEST = 6.0
"""Standard deviations within which a replicate is never far: of 96 Gaussian ones one in 10^8 lies beyond."""

SIXTH = 1 / 6
"""Part of the variance that one replicate may carry; alone on its side it is then also as skewed as may be."""

CHANCE = 1e-6
"""Chance that replicates which share nothing seem to move together: once in a thousand reports."""

RARE = 1.0
"""Events, or their opposites, per block of replicates from which on their clumping is evidence."""


def departure(values: Floats, skewness: float) -> str:
    """Return the reason why the mean of these replicates is not judged; empty where it may be.

    Parameters
    ----------
    values
        Shape (n,), finite, not all equal.
    skewness
        Skewness of the values.

    Examples
    --------
    >>> x = np.random.default_rng(1).normal(size=160)
    >>> departure(x, 0.0), departure(x, 7.0)
    ('', 'outside the calibrated laws: too skewed')
    >>> departure(np.append(x, [40.0, -40.0]), 0.0)
    'outside the calibrated laws: one replicate far from all others'
    >>> departure(np.repeat(x, 16), 0.0)
    'outside the calibrated laws: replicates of a block move together'
    """
    if abs(skewness) > SKEWEST:
        return SKEWED
    off = float(np.abs(values - values.mean()).max())
    if off > farthest_allowed(len(values)) * float(values.std(ddof=1)):
        return FAR
    return TOGETHER if share_of_a_block(values) > untrusted_share(len(values)) else ""


def farthest_allowed(n: int) -> float:
    r"""Standard deviations beyond which a replicate of n is too far: :math:`\max(6, \sqrt{n/6})`.

    >>> farthest_allowed(96), farthest_allowed(600)
    (6.0, 10.0)
    """
    return max(FARTHEST, math.sqrt(SIXTH * n))


def share_of_a_block(values: Floats) -> float:
    """F of the analysis of variance: 16 times the variance of the means of blocks, over the mean variance within.

    About 1 if replicates are independent; 1 + 16 r/(1 - r) for an intraclass correlation r. Infinite where those of a
    block are all equal; 1 where there are less than two whole blocks.

    >>> share_of_a_block(np.repeat([1.0, 2.0], BLOCK)), share_of_a_block(np.ones(BLOCK))
    (inf, 1.0)
    """
    whole = len(values) // BLOCK
    if whole < 2:
        return 1.0
    blocks = values[: whole * BLOCK].reshape(whole, BLOCK)
    between = BLOCK * float(blocks.mean(axis=1).var(ddof=1))
    within = float(blocks.var(axis=1, ddof=1).mean())
    return between / within if within > 0 else (math.inf if between > 0 else 1.0)


@cache
def untrusted_share(n: int) -> float:
    """`share_of_a_block` that n independent Gaussian replicates exceed with a chance of one in a million.

    >>> [round(untrusted_share(n), 2) for n in (96, 1600)]
    [8.65, 1.88]
    """
    blocks = max(n // BLOCK, 2)
    return float(import_module("scipy.special").fdtri(blocks - 1, blocks * (BLOCK - 1), 1 - CHANCE))


def events_together(events: Floats) -> bool:
    """Whether the events of a share clump by block; False for rare events, of which two may meet by chance.

    >>> events_together(np.repeat([0.0, 1.0] * 8, BLOCK)), events_together(np.eye(1, 1600)[0])
    (True, False)
    """
    rarer = min(float(events.sum()), float(len(events) - events.sum()))
    return rarer >= RARE * len(events) / BLOCK and share_of_a_block(events) > untrusted_share(len(events))


def unseen_rate(n: int, alpha: float) -> float:
    r"""Rate below which an event may be missing from n replicates altogether: :math:`\ln(1/\alpha)/n`.

    n replicates show none of a rate p with the chance :math:`(1-p)^n \le e^{-np}`, which is alpha at this rate. No
    interval of a mean accounts for events that did not occur.

    >>> round(unseen_rate(1384, 1e-3 / 1024), 4)
    0.01
    """
    return -math.log(alpha) / n
