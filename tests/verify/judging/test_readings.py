"""Readings: a claim as the suite stands behind it, and as our copy of the paper reads."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate.monte_carlo import Point
from tests.verify.judging.by_hand import POINT, claim, scores, verdict_of
from verify.judging.judge import (
    PRINTED,
    applies,
    labels,
    passage,
    readings,
    separation,
)
from verify.model import OURS, Passage, Standing, Verdict


def test_a_printed_form_is_a_second_reading() -> None:
    """A formula against the same score, or a score against the same formula."""
    plain = claim(expected=Verdict.DISAGREES)
    assert readings(plain) == (("theory", plain.predict, "x"),)

    def printed(p):
        return 2 * p.scale

    tested = claim(printed=printed)
    assert readings(tested) == (("corrected", tested.predict, "x"), (PRINTED, printed, "x"))
    of_score = claim(printed="as_read")
    assert readings(of_score)[1] == (PRINTED, of_score.predict, "as_read")
    both = scores() | {"as_read": scores(4.0)["x"]}
    for one in (tested, of_score):
        assert [verdict_of(one, both, i).verdict for i in (0, 1)] == [Verdict.AGREES, Verdict.DISAGREES]
    assert verdict_of(of_score, both, 1).interval.estimate == pytest.approx(4.0)
    assert applies(of_score, readings(of_score)[1], POINT)


@pytest.mark.parametrize(
    ("told", "names", "standings"),
    [
        (Standing.MISPRINT, ("corrected", PRINTED), (Standing.CORRECTED, Standing.MISPRINT)),
        (Standing.OUTSIDE, ("theory", PRINTED), (Standing.OURS, Standing.OUTSIDE)),
        (Standing.AS_STATED, ("theory", PRINTED), (Standing.OURS, Standing.AS_STATED)),
    ],
)
def test_only_what_stands_beside_a_misprint_is_called_corrected(
    told: Standing, names: tuple[str, str], standings: tuple[Standing, Standing]
) -> None:
    tested = claim(printed=lambda p: 0.0, finding="wrong", passage=Passage(told, "if wide", "Section 1"))
    assert labels(tested) == names == tuple(reading.label for reading in readings(tested))
    assert tuple(passage(tested, name).standing for name in names) == standings
    assert passage(tested, PRINTED) == tested.passage and not passage(tested, names[0]).words


@pytest.mark.parametrize(
    ("source", "standing"),
    [
        ("Paper (2024), eq. (1)", Standing.OURS),
        ("Paper (2024), eq. (1); Tracy and Widom (1996)", Standing.KNOWN),
        ("eq. (1); Kalra et al. (2023)", Standing.KNOWN),
    ],
)
def test_what_stands_beside_an_error_is_known_from_those_whom_its_source_names(
    source: str, standing: Standing
) -> None:
    told = Passage(Standing.AS_STATED, "if wide", "Section 1")
    tested = claim(id="paper2024/claim", source=source, printed=lambda p: 0.0, finding="wrong", passage=told)
    assert passage(tested, "theory").standing is standing
    assert passage(tested, PRINTED) == told


def test_a_misprint_without_a_form_to_be_judged_leaves_the_corrected_one_with_the_words() -> None:
    words = Passage(Standing.MISPRINT, "if wide", "Section 1")
    assert passage(claim(), "theory").standing is Standing.AS_STATED
    tested = claim(passage=words)
    assert labels(tested) == ("corrected",) == tuple(reading.label for reading in readings(tested))
    assert passage(tested, "corrected") == words._replace(standing=Standing.CORRECTED)
    itself = claim(passage=words, expected=Verdict.DISAGREES, finding="wrong")
    for plain, told in ((itself, words), (claim(passage=OURS), OURS)):
        assert labels(plain) == ("theory",) and passage(plain, "theory") == told


def test_a_reading_that_coincides_with_the_theory_is_not_judged_there() -> None:
    tested = claim(predict=lambda p: p.scale, printed=lambda p: p.scale if p.scale < 5 else 2 * p.scale)
    corrected, printed = readings(tested)
    assert [applies(tested, printed, Point(scale=s)) for s in (3.0, 6.0)] == [False, True]
    assert applies(tested, corrected, POINT)


def test_separation_counts_margins() -> None:
    tested = claim()
    assert_allclose(separation(tested, POINT, lambda p: 3.9), 3.0)
    assert_allclose(separation(claim(relative=False), POINT, lambda p: 3.9), 9.0)
    assert separation(tested, POINT, tested.predict) == 0.0
    for no_number in (math.inf, math.nan, 1j, np.complex128(1j)):
        assert separation(tested, POINT, lambda p, v=no_number: v) == math.inf


def test_separation_reads_measured_inputs_at_their_typical_values() -> None:
    tested = claim(inputs={"y": 2.0}, predict=lambda p: p.scale * p.y)
    assert tested.prediction(POINT) == 6.0 and tested.margin_at(POINT) == pytest.approx(0.6)
    assert_allclose(separation(tested, POINT, lambda p: p.scale + p.y), 1 / 0.6)
