"""Closed forms of `verify.claims.vysogorets2024.training.rates`."""

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "UNSEEN", "WITHOUT_FORM"]

FORMS = {
    "vysogorets2024/base-rate-exponent-three-layers": ClosedForm(lambda depth: depth - 2),
    "vysogorets2024/base-rate-exponent-deep": ClosedForm(lambda depth: depth - 2),
}

WITHOUT_FORM = {
    "vysogorets2024/base-rate-exponent-two-layers": "the exponent L - 2 of the deeper networks is 0 here",
}

ONE = "three layers have the exponent 1, which is its own power; the deeper networks tell them apart"

UNSEEN = {
    "vysogorets2024/base-rate-exponent-three-layers": {
        ONE: ("root of the whole", "one over the whole", "square of the whole"),
    },
}
