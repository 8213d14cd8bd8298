"""Closed forms of the claims on rectangular noise of Granziol, Zohren and Roberts (2022)."""

from __future__ import annotations

import math

import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm

__all__ = [
    "FORMS",
]


def _additive(spike, variance, dim, samples):
    return spike + variance * spike / (spike - dim / samples * variance)


def _additive_overlap(spike, variance, dim, samples):
    beta = dim / samples
    return 1 - beta * variance**2 / (spike - beta * variance) ** 2


def _wishart_edge(variance, dim, samples, shift):
    return variance * ((1 + sympy.sqrt(dim / samples)) ** 2 + shift)


def _information(spike, variance, dim, samples):
    return (spike + variance) * (spike + dim / samples * variance) / spike


def _information_overlap(spike, variance, dim, samples):
    beta = dim / samples
    return (1 - beta * variance**2 / spike**2) / (1 + beta * variance / spike)


TRACY_WIDOM = -1.2065335745820
"""Mean of the Tracy-Widom law of real symmetric matrices (Bornemann 2010)."""


def _wishart_shift(p: Point) -> float:
    """Mean of the largest eigenvalue of Wishart noise less its edge, over the variance, by Ma (2012)."""
    rows, columns = math.sqrt(p.dim - 0.5), math.sqrt(p.samples - 0.5)
    width = (rows + columns) * (1 / rows + 1 / columns) ** (1 / 3)
    limit = (math.sqrt(p.dim) + math.sqrt(p.samples)) ** 2
    return ((rows + columns) ** 2 + TRACY_WIDOM * width - limit) / p.samples


FORMS: dict[str, ClosedForm] = {
    "granziol2022/theorem-7-ratios": ClosedForm(_additive),
    "granziol2022/theorem-7-overlap": ClosedForm(_additive_overlap),
    "granziol2022/theorem-7-edge": ClosedForm(_wishart_edge, {"shift": _wishart_shift}),
    "granziol2022/information-plus-noise": ClosedForm(_information),
    "granziol2022/information-overlap": ClosedForm(_information_overlap),
    "granziol2022/spiked-covariance": ClosedForm(_information),
    "granziol2022/mean-of-the-square": ClosedForm(
        lambda eigenvalue, sigma, squared_cosines: eigenvalue * squared_cosines + sigma**2
    ),
}
