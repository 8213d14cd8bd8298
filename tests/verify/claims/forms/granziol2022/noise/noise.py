"""Closed forms of the claims on noise spectra of Granziol, Zohren and Roberts (2022)."""

from __future__ import annotations

import sympy

from tests.verify.claims.mutation import ClosedForm, shared

__all__ = ["FORMS", "UNSEEN", "WITHOUT_FORM"]


def _semicircle(x, sigma, dim, batch):
    s = shared(sympy.sqrt(dim / batch) * sigma)
    area = x * sympy.sqrt(4 * s**2 - x**2) / (4 * sympy.pi * s**2)
    return sympy.Rational(1, 2) + area + sympy.asin(x / (2 * s)) / sympy.pi


def _uneven_rows(contrast, sigma, dim):
    spread = shared(1 + contrast**2)
    return sigma**4 * (2 * spread + spread**2 / dim)


def _few_entries(per_row, sigma, dim):
    return sigma**4 * (2 + 1 / per_row - 2 / dim)


def _kurtosis(rank, variance, dim, batch_size):
    terms = shared(batch_size * rank)
    second = dim * rank * variance**2 / batch_size
    return second**2 * (dim / terms + (1 - 1 / terms) * (2 + 3 / (dim + 2)))


FORMS: dict[str, ClosedForm] = {
    "granziol2022/universal-semicircle": ClosedForm(_semicircle),
    "granziol2022/uneven-rows": ClosedForm(_uneven_rows),
    "granziol2022/few-entries": ClosedForm(_few_entries),
    "granziol2022/low-rank-kurtosis": ClosedForm(_kurtosis),
}

WITHOUT_FORM: dict[str, str] = {
    "granziol2022/signed-low-rank-noise": "known by its R-transform; its fourth moment has a form, low-rank-kurtosis",
}

OF_ORDER_P = "the term in 1/P is at most 5 % of the whole; a slip inside it is less than two margins"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "granziol2022/uneven-rows": {
        OF_ORDER_P: ("2 -> 3 in (contrast**2 + 1)**2", "2 -> 1 in (contrast**2 + 1)**2"),
    },
    "granziol2022/low-rank-kurtosis": {
        OF_ORDER_P: ("without term 2", "2 times 2", "1/2 times 2", "2 -> 3"),
    },
}
