"""Closed forms of `fluctuations` and `last_layer` in `verify.claims.karakida2019`."""

from collections.abc import Mapping
from typing import Any

import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.closed_forms import SETTING, order_parameters_of
from tests.verify.claims.forms.karakida2019.spectrum.spectrum import ENTRIES
from tests.verify.claims.mutation import ClosedForm, Quantity
from theory import fisher

__all__ = [
    "FORMS",
    "UNSEEN",
    "WITHOUT_FORM",
]


def _setting(p: Mapping[str, Any]) -> dict[str, Any]:
    return {name: p[name] for name in SETTING}


def _moments(name: str, shift: int = 0) -> Quantity:
    """Sum over layers of a backward order parameter, times a forward one of the layer below unless `name` is one."""

    def total(p: Point) -> float:
        found = order_parameters_of(p)
        back, fore = getattr(found, f"q_tilde_{name}"), getattr(found, f"q_hat_{name}")
        return float((back * (fore if shift else 1.0)).sum())

    return total


def _gap(p: Point) -> float:
    """A centred block of the Gram matrix on its diagonal, derivatives by the biases included."""
    weights = p.width * (_moments("t", 1)(p) - _moments("st", 1)(p))
    return weights + _moments("t")(p) - _moments("st")(p)


def _c2(p: Any) -> float:
    one, two = (fisher.fluctuation_constants(**_setting(p), outputs=c).c2 for c in (1, 2))
    return p["q2"] * one + (p["q1"] ** 2 - p["q2"]) * (two / 2 - one)


def _overlap(p: Point) -> float:
    """The constant r, from the share at a size where nothing else is left of it."""
    share = fisher.deviation_share(**_setting(p), width=1, samples=2**30)
    return (share * (2**30 - 1) - 1) / (2**30 - 2)


CONSTANTS: dict[str, Quantity] = {
    "kappa1": _moments("t", 1),
    "kappa2": _moments("st", 1),
    "gap": _gap,
    "c2": _c2,
    "r": _overlap,
    "pairs": lambda p: p.samples - 2,
}
"""The kappas come with their factor alpha."""


def _batch_normalised_mean(q1, samples, gap):
    return q1 * (1 - 1 / samples) * gap


def _batch_normalised_bound(q1, q2, samples, width, kappa1, kappa2, c2):
    return q2 / q1**2 + samples / width * c2 / (q1 * (kappa1 - kappa2)) ** 2


def _batch_normalised_root(q2, samples, width, kappa1, kappa2, c2):
    return sympy.sqrt((q2 * width / samples * (kappa1 - kappa2) ** 2 + c2) * width)


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
    "karakida2019/mean-of-nonzero": ClosedForm(lambda gap, samples: gap / samples, CONSTANTS),
    "karakida2019/batch-normalised-mean": ClosedForm(_batch_normalised_mean, CONSTANTS),
    "karakida2019/batch-normalised-bound": ClosedForm(_batch_normalised_bound, CONSTANTS),
    "karakida2019/batch-normalised-root": ClosedForm(_batch_normalised_root, CONSTANTS),
    "karakida2019/deviation-share": ClosedForm(lambda r, width, pairs: 1 + r / width * pairs, CONSTANTS),
}


WITHOUT_FORM: dict[str, str] = {
    "karakida2019/upper-bound-growth": "a power of the width, read off the bound, whose value is root-of-squares",
}

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "karakida2019/batch-normalised-root": {
        "c2' is a seventh of the sum below the root": ("1/2 times c2", "c2 -> samples"),
    },
    "karakida2019/squares-over-trace": {
        "c1 and what it stands beside are both near 0.3": ("c1 -> spike in c1*samples/((spike*width))",),
    },
    "karakida2019/root-of-squares": {
        "the part with c2 is a fifth of the sum below the root": ("1/2 times c2",),
    },
}
