"""Closed forms of `verify.claims.vysogorets2024.zone.initialisations`."""

import sympy

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "WITHOUT_FORM"]

FORMS = {
    "vysogorets2024/real-initial-loss": ClosedForm(
        lambda classes: -sympy.log(1 / classes) * classes / classes
    ),
}

WITHOUT_FORM = {
    f"vysogorets2024/together-{pair}": "a declared bound, no formula"
    for pair in ("entropy-loss", "entropy-gradient", "entropy-excess", "loss-excess", "gradient-distance")
}
