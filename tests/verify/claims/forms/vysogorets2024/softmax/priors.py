"""Closed forms of `verify.claims.vysogorets2024.softmax.priors`."""

import sympy

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "UNSEEN", "WITHOUT_FORM"]

FORMS = {
    "vysogorets2024/prior-slope": ClosedForm(
        lambda sigma_c, parameters: sympy.log(sympy.sqrt(parameters) * sigma_c)
    ),
    "vysogorets2024/balanced-gradient-stays": ClosedForm(
        lambda sigma_e, parameters, classes, samples: parameters * sigma_e**2 / samples * (1 - 1 / classes)
    ),
}

WITHOUT_FORM = {
    "vysogorets2024/balanced-gradient-vanishes": "an exponent that is one number, no formula",
}

SMALL = "of ten classes 1/K takes off a tenth, two margins"

UNSEEN = {
    "vysogorets2024/balanced-gradient-stays": {
        SMALL: ("1/2 times -1/classes", "square root of 1 - 1/classes", "classes -> samples in 1/classes"),
    },
}
