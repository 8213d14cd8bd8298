"""Closed forms of `verify.claims.vysogorets2024.excess.bulk`."""

import sympy

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "WITHOUT_FORM"]

FORMS = {
    "vysogorets2024/bulk-outlier": ClosedForm(lambda spike, bulk_norm: spike + bulk_norm**2 / (4 * spike)),
    "vysogorets2024/bulk-overlap": ClosedForm(lambda spike, bulk_norm: 1 - bulk_norm**2 / (4 * spike**2)),
    "vysogorets2024/spiked-excess": ClosedForm(
        lambda spike, rank, bulk_norm, dim: (
            rank * spike / sympy.sqrt(rank * spike**2 + dim * bulk_norm**2 / 4)
        ),
    ),
}

WITHOUT_FORM = {"vysogorets2024/bulk-edge": "the prediction is a parameter, the norm of the bulk"}
