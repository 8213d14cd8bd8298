"""Closed forms of the claims on growing widths of Karakida, Akaho and Amari (2019)."""

from __future__ import annotations

from itertools import pairwise

from tests.verify.claims.forms.karakida2019.spectrum.spectrum import ENTRIES
from tests.verify.claims.mutation import ClosedForm, Quantity

__all__ = ["FORMS", "UNSEEN"]


def _over_alpha(name: str) -> Quantity:
    """The sum over layers over that of products of successive widths."""
    return lambda p: ENTRIES[name](p) / sum(a * b for a, b in pairwise(p.ratios))


KAPPAS: dict[str, Quantity] = {"kappa1": _over_alpha("alpha_kappa1"), "kappa2": _over_alpha("alpha_kappa2")}


def _second_moment(samples, kappa1, kappa2):
    """Sums over pairs of samples, T of them with itself."""
    squares = samples * kappa2**2 + (kappa1**2 - kappa2**2)
    return squares / (kappa1 * (samples * kappa2 + (kappa1 - kappa2)))


FORMS: dict[str, ClosedForm] = {
    "karakida2019/second-moment": ClosedForm(_second_moment, KAPPAS),
}

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "karakida2019/second-moment": {
        "that one sample in T is no pair changes both sums alike": (
            "1/2 times -kappa2**2",
            "2 -> 1 in kappa2**2",
            "square root of kappa2 in -kappa2",
        ),
    },
}
