"""What a card says of rivals: far from the theory where it holds, and how they fit where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.verify.page.test_findings import made
from tests.verify.results.sample_rows import point, rival
from verify.page.cards import ReadRow
from verify.page.wording import rival_tally
from verify.results import PointOutcome


def shown(points: Sequence[PointOutcome], **changes: Any) -> ReadRow:
    row = made("a", "theorem 4", points=list(points), **changes)
    return ReadRow(row, "row-a", row.points[0], rival_tally(row), None)


def of(measured: float, near: float, far: float, *, rejected: bool) -> PointOutcome:
    """Predicted 1, and a rival near to what was measured, one far from it."""
    rivals = [rival("far", far, 1.0, 0.05), rival("near", near, 1.0, 0.05, rejected=rejected)]
    return point({"batch": measured}, 1.0, 0.05, measured, 0.1, rivals=rivals)


def test_where_theory_holds_rivals_are_told_by_their_distance_from_it() -> None:
    card = shown([point({}, 2.0, 0.1, 2.0, 0.01, rivals=[rival("half", 1.0, 2.0, 0.1)])])
    assert card.rival_lines == [("half", "10 margins", True)]


def test_where_theory_fails_they_are_told_by_how_they_fit_what_was_measured() -> None:
    """A rival beside the measurement, and rejected at one of two points, is not 40 margins off."""
    points = [of(3.0, 3.03, 6.0, rejected=False), of(2.0, 1.9, 1.0, rejected=True)]
    card = shown(points, verdict="disagrees", expected="disagrees")
    assert card.rival_lines == [
        ("far", "up to 100 % from what was measured, rejected at 2 of 2 points", True),
        ("near", "up to 5 % from what was measured, rejected at 1 of 2 points", True),
    ]


def test_a_rival_that_has_no_number_there_is_never_the_nearest() -> None:
    card = shown([of(3.0, float("nan"), 6.0, rejected=False)], verdict="disagrees", expected="disagrees")
    assert ("near", "no number everywhere", False) in card.rival_lines


def test_differences_are_plain_numbers_where_the_margin_is() -> None:
    card = shown(
        [of(3.0, 3.25, 6.0, rejected=False)], relative=False, verdict="disagrees", expected="disagrees"
    )
    assert card.rival_lines[1] == ("near", "0.25 from what was measured", False)


def test_what_is_measured_as_nothing_is_told_by_plain_distances() -> None:
    points = [
        point({}, 1.0, 0.05, 0.0, 0.1, rivals=[rival("zero", 0.0, 1.0, 0.05), rival("two", 2.0, 1.0, 0.05)])
    ]
    card = shown(points, verdict="disagrees", expected="disagrees")
    assert [told for _, told, _ in card.rival_lines] == [
        "0 from what was measured",
        "2 from what was measured",
    ]


def test_functions_keep_their_distance_from_the_theory() -> None:
    """What was measured of them is a distance from the theory, too: two alike may lie on opposite sides."""
    points = [point({}, 0.0, 0.1, 0.3, 0.02, rivals=[rival("other", 0.3, 0.0, 0.1)])]
    card = shown(points, kind="distribution", verdict="disagrees", expected="disagrees")
    assert card.rival_lines == [("other", "3 margins", True)]
