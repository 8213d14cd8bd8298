"""Closed forms of `verify.claims.vysogorets2024.excess.hutchinson`."""

from tests.verify.claims.closed_forms import A_NUMBER
from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "UNSEEN", "WITHOUT_FORM"]

FORMS = {
    "vysogorets2024/hutchinson-trace": ClosedForm(lambda trace: 1 * trace),
    "vysogorets2024/hutchinson-norm": ClosedForm(lambda square: 1 * square),
    "vysogorets2024/hutchinson-sign-trace-variance": ClosedForm(
        lambda square, diagonal_square: 2 * (square - diagonal_square),
    ),
    "vysogorets2024/hutchinson-normal-trace-variance": ClosedForm(lambda square: 2 * square),
    "vysogorets2024/hutchinson-sign-norm-variance": ClosedForm(
        lambda fourth, diagonal_fourth: 2 * (fourth - diagonal_fourth),
    ),
    "vysogorets2024/hutchinson-normal-norm-variance": ClosedForm(lambda fourth: 2 * fourth),
    "vysogorets2024/projection-is-not-hutchinson": ClosedForm(
        lambda dim, excess: 1 + (1 + excess**2) / dim,
    ),
}

WITHOUT_FORM = {"vysogorets2024/hutchinson-norm-on-networks": A_NUMBER}

UNSEEN = {
    "vysogorets2024/projection-is-not-hutchinson": {
        "1 beside r^2, in 23 dimensions, is less than two margins": (
            "without term 1",
            "-1 times 1",
            "2 times 1",
            "1/2 times 1",
        ),
    },
}
