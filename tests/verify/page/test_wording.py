"""Formulas and numbers in words: as pages and figures show them, on cards, and of logarithms."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from markupsafe import Markup

from tests.verify.page.test_findings import made
from tests.verify.results.sample_rows import point, rival, row
from verify.claims import registry
from verify.judging.admission import problems
from verify.judging.power import claim_power
from verify.model import LOGARITHMS, Claim, Kind
from verify.page import cards, terminal
from verify.page.formulas import lettered, typeset
from verify.page.statements import how_closely, how_far
from verify.results import PointOutcome, Row

CLAIMS = {claim.id: claim for claim in registry.claims() if isinstance(claim, Claim)}

# --- formulas typed on a keyboard


@pytest.mark.parametrize(
    ("typed", "shown", "drawn"),
    [
        ("sigma_c^4", "σ<sub>c</sub><sup>4</sup>", "σ_c⁴"),
        ("2 / E lambda_1(H_B)", "2 / E λ<sub>1</sub>(H<sub>B</sub>)", "2 / E λ₁(H_B)"),
        ("alpha^(L-1) norm of Ht", "α<sup>L−1</sup> norm of H̃", "α^(L-1) norm of H̃"),
        ("B^(-1/2), 10^3", "B<sup>−1/2</sup>, 10<sup>3</sup>", "B^(−1/2), 10³"),
        ("sum_k Q_k (-log Qhat_k)", "Σ<sub>k</sub> Q<sub>k</sub> (−log Q̂<sub>k</sub>)", "Σ_k Q_k (−log Q̂_k)"),
        ("dL_max of order B^-1/4", "dL<sub>max</sub> of order B<sup>−1/4</sup>", "dL_max of order B^−1/4"),
        ("1 - |p|^2: sqrt(mu/L) -> 0", "1 − |p|<sup>2</sup>: √(μ/L) → 0", "1 − |p|²: √(μ/L) → 0"),
        ("eta1 within 0.5 %", "η<sub>1</sub> within 0.5\u00a0%", "η₁ within 0.5 %"),
        ("a <b>&amp;</b> & c", "a &lt;b&gt;&amp;amp;&lt;/b&gt; &amp; c", "a <b>&amp;</b> & c"),
        ("\ue000x\ue003", "x", "\ue000x\ue003"),
        *((words, words, words) for words in (
            "chi-square, beta-binomial and inverse chi-square laws",
            "theorem_7_read of weight_variance",
            "losscurv report --claim x/y --data file",
            "one of three, well-known, in the limit; 5e-6",
        )),
    ],
)  # fmt: skip
def test_a_formula_in_a_sentence_is_set_once_and_words_stay_words(typed: str, shown: str, drawn: str) -> None:
    assert (lettered(typed), typeset(typed)) == (Markup(shown), drawn)
    assert lettered(lettered(typed)) == Markup(shown)


def test_every_tag_is_closed_in_what_claims_say() -> None:
    for claim in registry.claims():
        for text in (claim.says, claim.finding, claim.source, *getattr(claim, "rivals", ())):
            shown = lettered(text)
            assert re.sub("<(su[bp])>[^<]*</\\1>", "", shown).count("<") == 0, shown


# --- rivals on a card


@pytest.mark.parametrize(
    ("margins", "verdict", "far"),
    [((3.0, -8.0), "agrees", "8 margins away"), ((math.nan, 2.0), "agrees", "2 margins away"),
     ((math.nan,), "agrees", ""), ((3.0,), "disagrees", "")],
)  # fmt: skip
def test_a_rival_is_told_by_its_greatest_distance_from_a_theory_that_holds(
    margins: tuple[float, ...], verdict: str, far: str
) -> None:
    one = rival("near", 1.5, 1.0, 0.05)
    points = [point({"n": k}, 1.0, 0.05, 1.0, 0.1, rivals=[replace(one, margins=at)])
              for k, at in enumerate(margins)]  # fmt: skip
    shown = made("a", "theorem 4", verdict=verdict, expected=verdict, points=points)
    card = cards.ReadRow(shown, "row-a")
    assert card.rival_lines == [("near", far, one.rejected)]


# --- claims on logarithms are told in factors, exponents in their own unit, and no number as a power of ten

DEEPER = CLAIMS["catapult/relu-in-deeper-networks"]
LATER = CLAIMS["noise_scale/simple-scale-later"]
RELATIVE = CLAIMS["granziol2022/theorem-4"]


def judged(claim: Claim, *points: PointOutcome) -> str:
    return claim_power(claim, list(points)).words


def shown(claim: Claim, *points: PointOutcome, **more: Any) -> Row:
    made = row(claim.id, kind=claim.kind.value, relative=claim.relative, points=list(points), **more)
    return replace(made, margin=claim.margin, logarithm=claim.logarithm)


def test_each_claim_on_a_logarithm_says_to_which_base() -> None:
    """Its text tells which: decades are to base 10, and an exponent is a slope, whatever its score."""
    for claim in CLAIMS.values():
        log = claim.quantity.startswith(("logarithm", "decades")) and claim.kind is not Kind.EXPONENT
        assert bool(claim.logarithm) == log, claim.id
        assert ("decades" in claim.quantity) == (claim.logarithm == "10"), claim.id
    assert {claim.logarithm for claim in CLAIMS.values()} <= {"", *LOGARITHMS}


@pytest.mark.parametrize("changes", [{"logarithm": "3"}, {"relative": True}, {"kind": Kind.PROPORTION}])
def test_a_logarithm_has_a_known_base_an_absolute_margin_and_a_mean(changes: dict[str, Any]) -> None:
    assert not [said for said in problems(DEEPER) if "logarithms" in said]
    assert [said for said in problems(replace(DEEPER, **changes)) if "logarithms" in said]


def test_the_half_width_is_the_larger_side() -> None:
    uneven = replace(point({}, 1.0, 0.1, 1.0, 0.1), lower=0.7, upper=1.1)
    assert uneven.half_width == pytest.approx(0.3)


def test_deviations_of_logarithms_are_factors() -> None:
    close, closer = (point({"a": half}, 1.08, 0.2, 1.1, half) for half in (0.03, 0.01))
    words = judged(DEEPER, close, closer)
    for said in ("beyond a factor of 1.1 is excluded", "beyond a factor of 1.8 would have been caught"):
        assert said in words
    assert how_closely(shown(DEEPER, close)) == "within a factor of 1.1" and "%" not in words
    off = [point({"a": 1}, 0.53, 0.405, -1.03, 0.1), point({"a": 2}, 1.0, 0.405, 0.2, 0.1)]
    assert judged(LATER, *off).startswith("At its worst point it is off by at least a factor of 4.3.")
    assert how_far(shown(LATER, *off, verdict="disagrees")) == "4.8 times too large"  # e^1.56
    made = shown(DEEPER, point({}, math.log10(12), 0.2, 1.1, 0.03), sensitivity=0.26, verdict="disagrees")
    read = cards.ReadRow(made, "")
    said = (read.of(math.log10(12)), dict(read.numbers)["margin"])
    assert said == ("log₁₀ of 12", "a factor of 1.6")
    assert "1.07918 (log10 of 12)" in terminal.surprise_block(made)


def test_absolute_margins_are_no_share_of_a_prediction() -> None:
    log = shown(LATER, point({}, -0.172, 0.405, -0.2, 0.1))
    slope = row("karakida2019/growth", kind=Kind.EXPONENT.value, relative=False, margin=0.24,
                points=[point({}, -0.5, 0.24, 0.0, 0.1)])  # fmt: skip
    share = row("karakida2019/mean", margin=0.03, points=[point({}, 1.0, 0.03, 1.0, 0.01)])
    assert [cards.margin_width(made) for made in (log, slope, share)] == ["a factor of 1.5", "0.24", "3 %"]
    local = replace(slope, kind="mean", quantity="local exponent of the rate in the batch size")
    assert how_far(slope) == "exponent: −0.5, measured 0"
    assert how_far(local) == "exponent in the batch size: −0.5, measured 0"
