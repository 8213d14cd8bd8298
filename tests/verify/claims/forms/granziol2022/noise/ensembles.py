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


def _third(variance, dim, batch_size):
    return variance**3 * (dim**2 + 3 * dim + 4) / batch_size**2


def _spread(spike, sigma, dim):
    return 2 * sigma**2 / dim * (1 - sigma**2 / spike**2)


def _axis(spike, sigma, dim):
    m = shared(sigma**2 / spike**2)
    return sigma**2 / dim * (1 - m) ** 2 * (1 - 2 * m + 2 * m / (1 - m))


FORMS: dict[str, ClosedForm] = {
    "granziol2022/universal-semicircle": ClosedForm(_semicircle),
    "granziol2022/uneven-rows": ClosedForm(_uneven_rows),
    "granziol2022/few-entries": ClosedForm(_few_entries),
    "granziol2022/low-rank-kurtosis": ClosedForm(_kurtosis),
    "granziol2022/wishart-third-moment": ClosedForm(_third),
    "granziol2022/fluctuation-spread": ClosedForm(_spread),
    "granziol2022/fluctuation-axis": ClosedForm(_axis),
}

WITHOUT_FORM: dict[str, str] = {
    "granziol2022/signed-low-rank-noise": "known by its R-transform; its fourth moment has a form, low-rank-kurtosis",
}

OF_ORDER_P = "the term in 1/P is at most 5 % of the whole; a slip inside it is less than two margins"
SUBLEADING = "terms of lower order in P: smaller sizes would need a hundred times the replicates"
FLAT = "the margin is a tenth of the variance, and the slip changes it by less than two tenths"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "granziol2022/uneven-rows": {
        OF_ORDER_P: ("2 -> 3 in (contrast**2 + 1)**2", "2 -> 1 in (contrast**2 + 1)**2"),
    },
    "granziol2022/low-rank-kurtosis": {
        OF_ORDER_P: ("without term 2", "2 times 2", "1/2 times 2", "2 -> 3"),
    },
    "granziol2022/wishart-third-moment": {
        SUBLEADING: (
            "without term 4",
            "-1 times 4",
            "2 times 4",
            "1/2 times 3*dim",
            "1/2 times 4",
            "without factor 3 of 3*dim",
            "3 -> 4 in 3*dim",
            "3 -> 2 in 3*dim",
            "dim -> batch_size in 3*dim",
            "square root of dim in 3*dim",
            "4 -> 5",
            "4 -> 3",
        ),
    },
    "granziol2022/fluctuation-spread": {
        FLAT: (
            "1/2 times -sigma**2/(spike**2)",
            "square root of -sigma**2/(spike**2) + 1",
            "without factor 1/(spike**2) of -sigma**2/(spike**2)",
            "2 -> 3 in sigma**2",
            "2 -> 3 in spike**2",
            "2 -> 1 in spike**2",
        ),
    },
    "granziol2022/fluctuation-axis": {
        FLAT: (
            "1/2 times -(sigma**2/(spike**2))",
            "square root of -2*(sigma**2/(spike**2))  ...  - (sigma**2/(spike**2)))",
            "-1 -> -1/2 in 1/(1 - (sigma**2/(spike**2)))",
        ),
    },
}
