"""Closed forms for the claims on a linear network with one hidden layer and one sample."""

from __future__ import annotations

import sympy

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "WITHOUT_FORM"]

FORMS = {
    "catapult/growth": ClosedForm(lambda product, wider: sympy.log(wider) / (2 * sympy.log(product - 1))),
    "catapult/lazy": ClosedForm(lambda product: (4 - product) / (product**2 * (2 - product))),
}

WITHOUT_FORM = {
    "catapult/loss-grows-first": "a step at 2: never below, always above",
    "catapult/where-the-curvature-ends": "an integral over where a recursion ends",
}
