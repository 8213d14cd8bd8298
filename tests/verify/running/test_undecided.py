"""Claims that may end undecided; wrong theories fail the run even if a guard prevents a verdict."""

from typing import Any

import numpy as np
import pytest

from simulate.monte_carlo import SerialExecutor
from theory import fisher
from verify.claims import registry
from verify.claims.karakida2019 import follow_ups
from verify.model import Claim, Tier
from verify.results import Row
from verify.running.engine import Session, Settings

pytestmark = pytest.mark.slow

MOST = 0.05
"""Part of the default tier that may end undecided."""


def of(name: str) -> Claim:
    (claim,) = registry.select(claim=[f"karakida2019/{name}"])
    return claim


def judged(claim: Claim) -> Row:
    return Session((claim,), Settings(), SerialExecutor()).rows(claim)[0]


def test_few_claims_may_end_undecided_and_each_says_why() -> None:
    default = registry.select(Tier.DEFAULT)
    may = [claim.may_be_undecided for claim in default if claim.may_be_undecided]
    assert len(may) <= MOST * len(default) and all(len(why.split()) > 3 for why in may)


@pytest.mark.parametrize(
    ("kept", "verdict"), [(slice(None, 0, -1), "agrees"), (slice(-2, None, -1), "undecided")]
)
def test_a_wrong_slice_of_the_outliers_fails_the_run(
    kept: slice, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All eigenvalues but the smallest, which is 0, descending; or all but the largest."""
    right = fisher.cross_entropy_outliers

    def outliers(*words: Any, **more: Any) -> Any:
        return np.append(0.0, right(*words, **more)[::-1])[kept]

    monkeypatch.setattr(follow_ups.fisher, "cross_entropy_outliers", outliers)
    row = judged(of("cross-entropy-top-outlier"))
    assert (row.verdict, row.surprise) == (verdict, verdict == "undecided")
    if row.surprise:
        (at,) = row.points
        assert abs(at.measured - at.predicted) > 20 * at.margin and "outside the calibrated laws" in at.reason
