"""Closed forms of `verify.claims.karakida2019.spectrum.sizes`."""

from tests.verify.claims.closed_forms import SETTING
from tests.verify.claims.forms.karakida2019.spectrum.spectrum import ENTRIES
from tests.verify.claims.mutation import ClosedForm, Quantity
from tests.verify.claims.unseen import ONE_OUTPUT
from theory import fisher

__all__ = ["FORMS", "UNSEEN"]

PARTS: dict[str, Quantity] = {
    "spike": lambda p: ENTRIES["alpha_kappa1"](p) - ENTRIES["alpha_kappa2"](p),
    "c2": lambda p: fisher.fluctuation_constants(outputs=p["outputs"], **{key: p[key] for key in SETTING}).c2,
}


def _lower_bound_of_wide(width, samples, outputs, spike, c2):
    return width / samples * spike + c2 / (outputs * spike)


FORMS: dict[str, ClosedForm] = {"karakida2019/lower-bound-of-wide": ClosedForm(_lower_bound_of_wide, PARTS)}

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "karakida2019/lower-bound-of-wide": {
        ONE_OUTPUT: (
            "without factor outputs of outputs*spike",
            *(f"{power} of outputs in outputs*spike" for power in ("square root", "inverse", "square")),
        ),
        "c1 is 1.27 and would be 1: 5.8 % of the bound, less than two margins": (
            "c2 -> spike in c2/((outputs*spike))",
        ),
    },
}
