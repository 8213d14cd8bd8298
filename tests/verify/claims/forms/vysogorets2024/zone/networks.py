"""Closed forms of `verify.claims.vysogorets2024.zone.networks`."""

import sympy

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "WITHOUT_FORM"]

FORMS = {
    "vysogorets2024/frobenius-law": ClosedForm(
        lambda excess_g, ratio: excess_g / sympy.sqrt(1 + ratio**2),
    ),
}

WITHOUT_FORM = {
    "vysogorets2024/zone-edges": "a declared bound, no formula",
    "vysogorets2024/zone-criterion": "a declared bound, no formula",
    "vysogorets2024/zone-against-never": "a declared bound, no formula",
}
