"""Closed forms of `verify.claims.karakida2019.layer_norm.etas`."""

import sympy
from scipy.special import hyp2f1

from simulate.monte_carlo import Point
from tests.verify.claims.forms.karakida2019.layer_norm.layer_norm import unit_moments
from tests.verify.claims.mutation import ClosedForm, Quantity, shared

__all__ = ["FORMS", "UNSEEN"]


def _variance(name: str) -> Quantity:
    """Of the outputs: of one, or of those of two samples together."""
    return lambda p: p.weight_variance * unit_moments(p)[name][-1] + p.bias_variance


def _pairs(p: Point) -> float:
    return float(hyp2f1(1, 1, (p.outputs - 1) / 2, (_variance("cross")(p) / _variance("own")(p)) ** 2))


OUTPUTS: dict[str, Quantity] = {"q": _variance("own"), "pairs": _pairs}


def _eta1(outputs, q):
    return outputs / ((outputs - 3) * q)


def _scatter(outputs, samples, pairs):
    return (outputs - 3) / (samples * (outputs - 5)) + (samples - 1) / samples * pairs - 1


def _tail(outputs, q, threshold):
    """For 3 and 5 outputs: chi-square of 2 and 4 degrees of freedom."""
    t = shared(outputs / (2 * q * threshold))
    return 1 - sympy.exp(-t) * (1 + (outputs - 3) / 2 * t)


FORMS = {
    "karakida2019/layer-norm-eta1": ClosedForm(_eta1, OUTPUTS),
    "karakida2019/layer-norm-eta1-scatter": ClosedForm(_scatter, OUTPUTS),
    "karakida2019/layer-norm-tail": ClosedForm(_tail, OUTPUTS),
}

UNSEEN = {
    "karakida2019/layer-norm-eta1-scatter": {
        "the part that each sample has with itself is 1/T of the whole, and depends little on C": (
            "without term -3",
            *(f"{factor} times -3" for factor in ("-1", "2", "1/2")),
            "-3 -> -2",
            "-3 -> -4",
            "without term -5",
            *(f"{factor} times -5" for factor in ("2", "1/2")),
            "-5 -> -4",
            "-5 -> -6",
        ),
    },
}
