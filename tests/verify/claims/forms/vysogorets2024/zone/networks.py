"""Closed forms of `verify.claims.vysogorets2024.zone.networks`."""

import sympy

from tests.verify.claims.mutation import ClosedForm

__all__ = [
    "FORMS",
]

FORMS = {
    "vysogorets2024/frobenius-law": ClosedForm(
        lambda excess_g, ratio: excess_g / sympy.sqrt(1 + ratio**2),
    ),
}
