"""Closed forms of `verify.claims.vysogorets2024.excess.columns`."""

import sympy

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS"]

FORMS = {
    "vysogorets2024/frame-overlap": ClosedForm(lambda dim, parameters: dim * (dim - 1) / parameters),
    "vysogorets2024/frame-largest-eigenvalue": ClosedForm(
        lambda dim, parameters: (1 + sympy.sqrt(dim / parameters)) ** 2,
    ),
    "vysogorets2024/frame-smallest-eigenvalue": ClosedForm(
        lambda dim, parameters: (1 - sympy.sqrt(dim / parameters)) ** 2,
    ),
}
