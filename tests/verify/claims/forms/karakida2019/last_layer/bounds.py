"""Closed forms of `verify.claims.karakida2019.last_layer.bounds`."""

from typing import Any

import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.closed_forms import SETTING
from tests.verify.claims.forms.karakida2019.spectrum.spectrum import ENTRIES
from tests.verify.claims.mutation import ClosedForm, Quantity
from theory import fisher

__all__ = ["FORMS", "UNSEEN", "WITHOUT_FORM"]


def _spike(p: Point) -> float:
    return ENTRIES["alpha_kappa1"](p) - ENTRIES["alpha_kappa2"](p)


def _constants(p: Any) -> fisher.FluctuationConstants:
    """Their parts are told apart by `scatter-of-one-output` and `scatter-of-two-outputs`."""
    law = {name: p[name] for name in SETTING}
    return fisher.fluctuation_constants(**law, width_ratios=p["ratios"], outputs=p["outputs"])


PARTS: dict[str, Quantity] = {
    "spike": _spike,
    "c1": lambda p: _constants(p).c1,
    "c2": lambda p: _constants(p).c2,
}


def _quotient(samples, width, spike, c1):
    return 1 + c1 * samples / (width * spike)


def _root(samples, width, outputs, spike, c2):
    return sympy.sqrt((outputs * spike**2 * width / samples + c2) * width) * samples / (width * spike)


FORMS: dict[str, ClosedForm] = {
    "karakida2019/squares-over-trace": ClosedForm(_quotient, PARTS),
    "karakida2019/root-of-squares": ClosedForm(_root, PARTS),
}

WITHOUT_FORM: dict[str, str] = {
    "karakida2019/lower-bound-growth": "a power of the width, read off the bound, whose value is squares-over-trace",
    "karakida2019/upper-bound-growth": "a power of the width, read off the bound, whose value is root-of-squares",
}

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "karakida2019/squares-over-trace": {
        "c1 and what it stands beside are both near 0.3": ("c1 -> spike in c1*samples/((spike*width))",),
    },
    "karakida2019/root-of-squares": {
        "the part with c2 is a fifth of the sum below the root": ("1/2 times c2",),
        "the sum below the root is near 1": ("square root of c2 + outputs*spike**2*width/samples",),
    },
}
