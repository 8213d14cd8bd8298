"""Closed forms of the claims on narrow inputs and centred networks of Karakida, Akaho and Amari (2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulate.monte_carlo import Point
from tests.verify.claims.forms.karakida2019.spectrum.spectrum import ENTRIES
from tests.verify.claims.mutation import ClosedForm, Quantity
from theory import fisher

__all__ = [
    "FORMS",
    "UNSEEN",
]


def _narrow(name: str, bias: str) -> Quantity:
    """The sum over layers where only the inputs have a width of their own, with the biases."""

    def value(p: Point) -> float:
        ratios = (p.inputs / p.widths, *(1.0,) * (p.depth - 1))
        return ENTRIES[name](p | {"ratios": ratios}) + ENTRIES[bias](p) / p.widths

    return value


NARROW: dict[str, Quantity] = {
    "diagonal": _narrow("alpha_kappa1", "bias1"),
    "off_diagonal": _narrow("alpha_kappa2", "bias2"),
}


def _narrow_inputs(samples, diagonal, off_diagonal):
    return off_diagonal + (diagonal - off_diagonal) / samples


def _mean_bias(p: Point) -> float:
    """One pair of samples in T is a sample with itself."""
    own, shared = ENTRIES["bias1"](p), ENTRIES["bias2"](p)
    return shared + (own - shared) / p.samples


def _centred_rayleigh(samples, width, alpha_kappa1, bias):
    return alpha_kappa1 * width / samples + bias


def _centred_mean_square(samples, width, alpha_kappa1, c1):
    return alpha_kappa1 * width / samples + c1


def _c1(p: Point) -> float:
    """Of odd activations without biases: every centred entry is one layer's, none is shared by two outputs."""
    constants: Callable[..., Any] = fisher.fluctuation_constants
    return constants(
        p.activation, depth=p.depth, outputs=1, weight_variance=p.weight_variance, bias_variance=0.0
    ).c1


FORMS: dict[str, ClosedForm] = {
    "karakida2019/narrow-inputs": ClosedForm(_narrow_inputs, NARROW),
    "karakida2019/centred-rayleigh": ClosedForm(_centred_rayleigh, ENTRIES | {"bias": _mean_bias}),
    "karakida2019/centred-mean-square": ClosedForm(_centred_mean_square, ENTRIES | {"c1": _c1}),
    "karakida2019/centred-formal": ClosedForm(lambda rho, alpha_kappa1: rho * alpha_kappa1, ENTRIES),
}


UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "karakida2019/narrow-inputs": {
        "an entry off the diagonal is a tenth of one on it": ("1/2 times -off_diagonal",),
    },
    "karakida2019/centred-mean-square": {"c1 is near 1 in these networks": ("square root of c1",)},
}
