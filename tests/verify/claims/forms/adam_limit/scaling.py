"""Closed forms of `verify.claims.adam_limit.scaling` and of the networks beside it."""

from __future__ import annotations

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "WITHOUT_FORM"]

FORMS = {
    "adam_limit/half-life": ClosedForm(lambda second, lag, known: second ** (lag / known)),
}

EQUATIONS = "five linear differential equations; the tests of theory hold them to a recursion over steps"

WITHOUT_FORM = {
    "adam_limit/second-moment": EQUATIONS,
}
