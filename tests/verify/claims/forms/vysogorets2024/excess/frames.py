"""Closed forms of `verify.claims.vysogorets2024.excess.frames`."""

import sympy

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "UNSEEN"]

FORMS = {
    "vysogorets2024/dimension-law-on-networks": ClosedForm(
        lambda dims, excess: (dims + 1 + excess**2) / dims,
    ),
    "vysogorets2024/excess-in-50-dimensions": ClosedForm(
        lambda dim, excess: excess * sympy.sqrt(dim / (dim + 1 + excess**2)),
        {"dim": lambda p: p.dims[-1]},
    ),
    "vysogorets2024/noise-floor-on-networks": ClosedForm(
        lambda dims: 2 / (dims + 1),
    ),
}

ONE_OF_MANY = "1 beside d + r^2 is less than two margins, at d = 50 with all that can be done to it"

UNSEEN = {
    "vysogorets2024/dimension-law-on-networks": {ONE_OF_MANY: ("1/2 times 1",)},
    "vysogorets2024/excess-in-50-dimensions": {
        ONE_OF_MANY: ("without term 1", "-1 times 1", "2 times 1", "1/2 times 1"),
    },
    "vysogorets2024/noise-floor-on-networks": {
        "half or twice the 1 in d + 1 is 10 % at d = 4, one margin": ("2 times 1", "1/2 times 1"),
    },
}
