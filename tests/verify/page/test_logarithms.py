"""Claims on logarithms are told in factors, exponents in their own unit, and no number as a power of ten."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from tests.verify.results.sample_rows import point, row
from verify.claims import registry
from verify.judging.admission import problems
from verify.judging.estimands import Estimand, slack
from verify.judging.power import claim_power
from verify.model import LOGARITHMS, Claim, Kind
from verify.page import cards, terminal, wording
from verify.page.report import queries
from verify.page.report.queries import how_closely, how_far
from verify.results import PointOutcome, Row

CLAIMS = {claim.id: claim for claim in registry.claims() if isinstance(claim, Claim)}
ADAM = CLAIMS["granziol2022/unit-damping-adam"]
DEEPER = CLAIMS["catapult/relu-in-deeper-networks"]
ABOVE = dataclasses.replace(DEEPER, kind=Kind.AT_LEAST, margin=0.1)
BELOW = dataclasses.replace(DEEPER, kind=Kind.AT_MOST, margin=0.05, predict=lambda _: math.log10(6))
LATER = CLAIMS["noise_scale/simple-scale-later"]


def judged(claim: Claim, *points: PointOutcome) -> str:
    return claim_power(claim, list(points)).words


def shown(claim: Claim, *points: PointOutcome, **more: Any) -> Row:
    made = row(claim.id, kind=claim.kind.value, relative=claim.relative, points=list(points), **more)
    return dataclasses.replace(made, margin=claim.margin, logarithm=claim.logarithm)


def test_each_claim_on_a_logarithm_says_to_which_base() -> None:
    """Its text tells which: decades are to base 10, and an exponent is a slope, whatever its score."""
    for claim in CLAIMS.values():
        log = claim.quantity.startswith(("logarithm", "decades")) and claim.kind is not Kind.EXPONENT
        assert bool(claim.logarithm) == log, claim.id
        assert ("decades" in claim.quantity) == (claim.logarithm == "10"), claim.id
    assert {claim.logarithm for claim in CLAIMS.values()} < {"", *LOGARITHMS}


@pytest.mark.parametrize("changes", [{"logarithm": "3"}, {"relative": True}, {"kind": Kind.PROPORTION}])
def test_a_logarithm_has_a_known_base_an_absolute_margin_and_a_mean(changes: dict[str, Any]) -> None:
    assert not [said for said in problems(DEEPER) if "logarithms" in said]
    assert [said for said in problems(dataclasses.replace(DEEPER, **changes)) if "logarithms" in said]


@pytest.mark.parametrize(
    ("claim", "bound", "measured", "said"),
    [
        (ADAM, math.log10(3), 0.759, 1.9),  # 0.759 / 0.477 is 1.6
        (ABOVE, math.log10(12), 1.19, 1.3),
        (BELOW, math.log10(6), 0.701, 1.2),
    ],
)
def test_a_bound_on_a_logarithm_is_loose_by_the_factor_after_raising(
    claim: Claim, bound: float, measured: float, said: float
) -> None:
    at = claim.experiment.points[0]
    found = slack(
        Estimand(claim, claim.predict, claim.score, at, {str(claim.score): np.full(4, measured)}, 0.05)
    )
    assert found == pytest.approx(10 ** (measured - bound), rel=1e-6)
    words = judged(claim, point({}, bound, claim.margin, measured, 0.05, slack=found, verdict="agrees"))
    assert words.endswith(f"loose by a factor of {said}.")
    assert f"the bound {round(10**bound)};" in words and "stronger by a factor of " in words


def test_the_slack_of_a_logarithm_on_the_page_is_that_of_what_it_is_of() -> None:
    kept = point({}, math.log10(6), 0.05, 0.701, 0.05, verdict="agrees", slack=10 ** (0.701 - math.log10(6)))
    assert how_closely(shown(BELOW, kept)) == "kept, at most 0.84 of the bound"


def test_deviations_of_logarithms_are_factors() -> None:
    close = point({"a": 1}, 1.08, 0.2, 1.1, 0.03)
    closer = point({"a": 2}, 1.08, 0.2, 1.1, 0.01)
    words = judged(DEEPER, close, closer)
    assert (
        "beyond a factor of 1.1 is excluded" in words
        and "beyond a factor of 1.8 would have been caught" in words
    )
    assert "A theory off by a factor of 1.7 at every point" in words and "%" not in words
    assert how_closely(shown(DEEPER, close)) == "within a factor of 1.1"
    off = [point({"a": 1}, 0.53, 0.405, -1.03, 0.1), point({"a": 2}, 1.0, 0.405, 0.2, 0.1)]
    assert judged(LATER, *off).startswith("At its worst point it is off by at least a factor of 4.3.")
    assert how_far(shown(LATER, *off, verdict="disagrees")) == "4.8 times too large"  # e^1.56
    relu = CLAIMS["catapult/relu-in-one-layer"]
    assert how_far(shown(relu, point({}, 1.08, 0.2, 0.633, 0.01))) == "2.8 times too large"


def test_a_card_names_the_logarithm_beside_its_number() -> None:
    made = shown(DEEPER, point({}, math.log10(12), 0.2, 1.1, 0.03), sensitivity=0.26)
    read = cards.ReadRow(made, "", made.points[0], wording.rival_tally(made), None)
    assert (read.of(math.log10(12)), read.wide, read.sensitivity) == (
        "log₁₀ of 12",
        "a factor of 1.6",
        "a factor of 1.8",
    )
    told = terminal.surprise_block(dataclasses.replace(made, verdict="disagrees", surprise=True))
    assert "1.07918 (log10 of 12)" in told


def test_absolute_margins_are_no_share_of_a_prediction() -> None:
    log = shown(LATER, point({}, -0.172, 0.405, -0.2, 0.1))
    slope = row("karakida2019/growth", kind=Kind.EXPONENT.value, relative=False, margin=0.24,
                points=[point({}, -0.5, 0.24, -0.5, 0.1)])  # fmt: skip
    flat = row("karakida2019/flat", kind=Kind.EXPONENT.value, relative=False, margin=0.2,
               points=[point({}, 0.0, 0.2, 0.01, 0.1)])  # fmt: skip
    share = row("karakida2019/mean", margin=0.03, points=[point({}, 1.0, 0.03, 1.0, 0.01)])
    listed = [(made.width, made.declared) for made in queries.margins([share, flat, slope, log])]
    assert listed == [
        ("a factor of 1.5", "0.4055 in ln"),
        ("0.24", "in its own unit"),
        ("0.2", "in its own unit"),
        ("3 %", "of the prediction"),
    ]
    wrong = dataclasses.replace(slope, points=[point({}, -0.5, 0.24, 0.0, 0.1)])
    assert how_far(wrong) == "exponent −0.5 where 0 is measured"
    local = dataclasses.replace(wrong, kind="mean", quantity="local exponent of the rate in the batch size")
    assert how_far(local) == "exponent −0.5 where 0 is measured"


def test_an_exponent_is_off_by_a_difference() -> None:
    claim = CLAIMS["karakida2019/span-of-top"]
    words = judged(claim, point({"a": 1}, -0.5, 0.24, -0.5, 0.1), point({"a": 2}, -0.5, 0.24, -0.5, 0.05))
    assert words.endswith(" A theory off by 0.34 at every point would have been told from the truth.")


RELATIVE = CLAIMS["granziol2022/theorem-4"]


def test_large_numbers_are_written_plainly() -> None:
    assert "off by at least 170 % of what was measured" in judged(RELATIVE, point({}, 2.7, 0.01, 1.0, 0.005))
    assert "off by at least 240 times what was measured" in judged(
        RELATIVE, point({}, 243.0, 0.01, 1.0, 0.005)
    )
    bound = dataclasses.replace(RELATIVE, kind=Kind.AT_LEAST)
    words = judged(bound, point({}, 1000.0, 10.0, 1950.0, 20.0, verdict="agrees"))
    assert "the mean is 1950, the bound 1000; a bound above 1980, stronger by 98 %" in words
    assert "stronger by 100 %" in judged(bound, point({}, 1000.0, 10.0, 1950.0, 36.0, verdict="agrees"))


def test_at_least_is_said_of_the_worst_of_several_points() -> None:
    """Others may be off by less: 32 % beside 74 %."""
    worst, other = point({"a": 1}, 1.75, 0.05, 1.0, 0.01), point({"a": 2}, 1.33, 0.05, 1.0, 0.01)
    assert judged(RELATIVE, worst, other).startswith(
        "At its worst point it is off by at least 74 % of what was measured."
    )
    assert judged(RELATIVE, other).startswith("It is off by at least 32 % of what was measured.")
