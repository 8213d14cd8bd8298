"""Closed forms of the claims on narrow inputs and centred networks of Karakida, Akaho and Amari (2019)."""

from __future__ import annotations

from simulate.monte_carlo import Point
from tests.verify.claims.forms.karakida2019.spectrum.spectrum import ENTRIES
from tests.verify.claims.mutation import ClosedForm, Quantity

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


FORMS: dict[str, ClosedForm] = {
    "karakida2019/narrow-inputs": ClosedForm(_narrow_inputs, NARROW),
    "karakida2019/centred-formal": ClosedForm(lambda rho, alpha_kappa1: rho * alpha_kappa1, ENTRIES),
}


UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "karakida2019/narrow-inputs": {
        "an entry off the diagonal is a tenth of one on it": ("1/2 times -off_diagonal",),
    },
}
