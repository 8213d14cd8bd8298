"""A suite that misses a planted error would miss a real one: each must come out *disagrees*."""

import pytest

from simulate.monte_carlo import SerialExecutor
from verify.judging.planted import PLANTED
from verify.model import (
    BOUNDS_EVERY_REPLICATE,
    MODEL_BASED,
    AnyClaim,
    Claim,
    ExactProperty,
    Identity,
    Kind,
    StatisticalProperty,
    Tier,
    Verdict,
)
from verify.running import suite
from verify.running.engine import Session, Settings


def kind_of(claim: AnyClaim) -> str:
    if isinstance(claim, Claim):
        if claim.along and claim.kind not in MODEL_BASED:
            return "vector"
        return "measured inputs" if claim.inputs else claim.kind.value
    return type(claim).__name__


@pytest.mark.parametrize("claim", PLANTED, ids=lambda c: c.id)
def test_a_planted_error_is_caught(claim: AnyClaim) -> None:
    (row,) = Session((claim,), Settings(), SerialExecutor()).rows(claim)
    assert (row.verdict, row.expected, row.surprise) == ("disagrees", "disagrees", False), row.error
    assert row.power and not row.error
    point = row.points[0]
    if not isinstance(claim, Claim) or claim.kind in MODEL_BASED:
        return
    assert point.replicates < claim.experiment.budget
    if claim.kind in BOUNDS_EVERY_REPLICATE:
        assert point.violations and point.lower > 0
    else:  # by the interval and not by luck: none that holds the true mean can agree
        below, above = (
            point.upper < point.predicted - point.margin,
            point.lower > point.predicted + point.margin,
        )
        assert (below and claim.kind is not Kind.AT_MOST) or (above and claim.kind is not Kind.AT_LEAST)


def test_every_kind_of_check_has_one_planted_error() -> None:
    kinds = [kind_of(claim) for claim in PLANTED]
    checks = (Identity, ExactProperty, StatisticalProperty)
    assert sorted(kinds) == sorted(
        [*(k.value for k in Kind), "measured inputs", "vector", *(c.__name__ for c in checks)]
    )
    assert all(claim.expected is Verdict.DISAGREES for claim in PLANTED)
    assert len({claim.id for claim in PLANTED}) == len(PLANTED)


def test_planted_errors_are_caught_in_a_run_of_few_replicates_too() -> None:
    """They stand in every report, whatever the options of the run."""
    settings = Settings(seed=4, replicates=16, tier=Tier.SMOKE, workers=2)
    rows = suite.planted_rows(settings)
    assert [row.claim for row in rows] == [claim.id for claim in PLANTED]
    assert {row.verdict for row in rows} == {"disagrees"}
