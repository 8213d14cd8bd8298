"""Replicates outside the calibrated laws have no verdict, and say which of three ways they leave them."""

import math

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy import stats

from simulate.monte_carlo import BLOCK
from tests.verify.judging.by_hand import claim, outcome_of
from verify.judging import guards
from verify.judging.guards import (
    FAR,
    FARTHEST,
    OUTSIDE,
    SKEWED,
    SKEWEST,
    TOGETHER,
)
from verify.judging.intervals import FEWEST, mean_interval
from verify.judging.judge import looks
from verify.model import ALPHA, Kind


def normal(n: int, seed: int = 1) -> np.ndarray:
    return default_rng(seed).normal(size=n)


def correlated(n: int, share: float, seed: int = 1) -> np.ndarray:
    """Replicates of which those of one block have this intraclass correlation."""
    rng = default_rng(seed)
    common = np.repeat(rng.normal(size=n // BLOCK), BLOCK)
    return math.sqrt(share) * common + math.sqrt(1 - share) * rng.normal(size=n)


def test_a_skewness_beyond_that_of_the_calibrated_laws_is_never_judged() -> None:
    """However many replicates there are: at 2^18 of them the widening alone would take a skewness of 30."""
    x = np.zeros(2**18)
    x[:: 2**18 // 5000] = 1.0
    assert stats.skew(x) > SKEWEST
    assert mean_interval(x, alpha=ALPHA).obstacle == SKEWED
    assert mean_interval(default_rng(5).permutation(x[::4]), alpha=ALPHA).obstacle == ""


@pytest.mark.parametrize("n", [FEWEST, 2048])
def test_a_replicate_with_more_than_a_sixth_of_the_variance_is_too_far(n: int) -> None:
    """One on either side: the skewness does not show them."""
    allowed = max(FARTHEST, math.sqrt(n / 6))
    for times, obstacle in ((0.9, ""), (1.2, FAR)):
        x = np.append(normal(n - 2), [0.0, 0.0])
        far = times * allowed / math.sqrt(max(1 - 2 * (times * allowed) ** 2 / n, 0.01))
        x[-2:] = far, -far
        assert mean_interval(x, alpha=1e-3).obstacle == obstacle


def test_a_gaussian_replicate_is_hardly_ever_far() -> None:
    """At most n times the chance of one, whose share of the sum of squares follows a beta law."""
    for n in looks(2**17):
        t = guards.farthest_allowed(n)
        share = min(1.0, t * t * n / (n - 1) ** 2)
        assert n * stats.beta.sf(share, 0.5, (n - 2) / 2) < 1e-7


@pytest.mark.parametrize("n", [FEWEST, 640])
def test_the_share_of_a_block_is_the_f_of_the_analysis_of_variance(n: int) -> None:
    x = correlated(n, 0.3)
    assert_allclose(guards.share_of_a_block(x), stats.f_oneway(*x.reshape(-1, BLOCK)).statistic, rtol=1e-12)
    assert_allclose(stats.f.sf(guards.untrusted_share(n), n // BLOCK - 1, n - n // BLOCK), 1e-6, rtol=1e-6)


@pytest.mark.parametrize(("n", "share"), [(208, 0.5), (1600, 0.1)])
def test_replicates_of_a_block_that_move_together_are_seen(n: int, share: float) -> None:
    """Reordered numbers are judged, so the guard sees the blocks and not the law."""
    x = correlated(n, share)
    assert mean_interval(x, alpha=1e-3).obstacle == TOGETHER
    assert mean_interval(default_rng(2).permutation(x), alpha=1e-3).obstacle == ""


@pytest.mark.parametrize(("n", "missed"), [(FEWEST, (0.2, 0.27)), (208, (0.004, 0.012)), (640, (0, 1e-4))])
def test_what_the_guard_on_blocks_misses_is_what_the_calibration_says(
    n: int, missed: tuple[float, float]
) -> None:
    """Half of the variance shared: a quarter of the samples unseen at the first look, none from 640 on."""
    rng = default_rng(6)
    common, own = rng.standard_normal((10000, n // BLOCK, 1)), rng.standard_normal((10000, n // BLOCK, BLOCK))
    x = math.sqrt(0.5) * (common + own)
    between = BLOCK * x.mean(2).var(1, ddof=1) / x.var(2, ddof=1).mean(1)
    unseen = float((between <= guards.untrusted_share(n)).mean())
    assert missed[0] <= unseen <= missed[1]


def test_independent_replicates_hardly_ever_seem_to_move_together() -> None:
    """Neither Gaussian ones nor those of a long tail that the other guards let pass: one in a million is promised."""
    rng = default_rng(3)
    for draw in (rng.standard_normal, rng.standard_exponential, lambda size: rng.lognormal(size=size)):
        x = draw((4000, 512))
        near = np.ptp(x, axis=1) < guards.farthest_allowed(512) * x.std(axis=1)
        blocks = x[near].reshape(-1, 512 // BLOCK, BLOCK)
        between = BLOCK * blocks.mean(2).var(1, ddof=1) / blocks.var(2, ddof=1).mean(1)
        assert len(blocks) > 100 and (between > guards.untrusted_share(512)).sum() == 0


@pytest.mark.parametrize(
    ("changes", "drawn"),
    [
        ({"predict": lambda _: 0.5, "kind": Kind.PROPORTION}, np.tile(np.repeat([1.0, 0.0], BLOCK), 8)),
        (
            {"predict": lambda _: stats.norm.cdf, "kind": Kind.DISTRIBUTION, "relative": False},
            correlated(768, 0.5),
        ),
        ({"kind": Kind.RATIO, "score": ("x", "one")}, correlated(640, 0.5)),
    ],
    ids=["probability", "distribution", "ratio"],
)
def test_every_kind_that_counts_on_independence_asks_for_it(changes: dict, drawn: np.ndarray) -> None:
    mixed, one = default_rng(4).permutation(drawn), 5 + normal(len(drawn), 5)
    assert outcome_of(claim(**changes), {"x": drawn, "one": one}).reason == TOGETHER
    assert not outcome_of(claim(**changes), {"x": mixed, "one": one}).reason.startswith(OUTSIDE)
