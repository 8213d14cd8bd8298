"""Closed forms of `verify.claims.vysogorets2024.zone` and of its training."""

import sympy

from tests.verify.claims.mutation import ClosedForm, Quantity

__all__ = ["FORMS", "UNSEEN"]

CLASSES_LAST: dict[str, Quantity] = {"depth": lambda p: len(p.widths)}
"""Of networks on images, whose last layer leads to the classes."""

LAYERS: dict[str, Quantity] = {"depth": lambda p: len(p.widths) - 1}

THREE: dict[str, Quantity] = {"depth": lambda _: 3}


def _near_tie_weight(gap_density, temperature, alpha, depth):
    return gap_density * temperature / (2 * alpha**depth)


FORMS = {
    "vysogorets2024/g-term-rate": ClosedForm(lambda depth: 2 * depth - 2, CLASSES_LAST),
    "vysogorets2024/h-term-rate": ClosedForm(lambda depth: depth - 2, CLASSES_LAST),
    "vysogorets2024/sharpness-at-small-scale": ClosedForm(
        lambda h_norm, alpha, depth: h_norm * alpha ** (depth - 2), CLASSES_LAST
    ),
    "vysogorets2024/lower-edge": ClosedForm(
        lambda h_norm, g_norm, depth: (h_norm / g_norm) ** (1 / depth), THREE
    ),
    "vysogorets2024/upper-edge-growth": ClosedForm(lambda depth: 1 / depth, LAYERS),
    "vysogorets2024/upper-edge": ClosedForm(
        lambda gap_density, depth, size: (size * gap_density) ** (1 / depth), LAYERS | {"size": lambda _: 100}
    ),
    "vysogorets2024/near-tie-weight": ClosedForm(_near_tie_weight, LAYERS),
    "vysogorets2024/frobenius-law": ClosedForm(lambda excess_g, ratio: excess_g / sympy.sqrt(1 + ratio**2)),
    "vysogorets2024/base-rate-exponent-three-layers": ClosedForm(lambda depth: depth - 2),
    "vysogorets2024/base-rate-exponent-deep": ClosedForm(lambda depth: depth - 2),
}

UNSEEN = {
    "vysogorets2024/upper-edge": {
        "the density is 1.2 and stands under a root; near-tie-weight tells its power": (
            "square root of gap_density in gap_density*size",
        ),
    },
    "vysogorets2024/base-rate-exponent-three-layers": {
        "three layers have the exponent 1, which is its own power; the deeper networks tell them apart": (
            "root of the whole",
            "one over the whole",
            "square of the whole",
        ),
    },
}
