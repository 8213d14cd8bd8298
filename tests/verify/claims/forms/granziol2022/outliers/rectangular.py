"""Closed forms of the claims on rectangular noise of Granziol, Zohren and Roberts (2022)."""

from __future__ import annotations

import math

import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm, shared

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


def _additive_scatter(spike, variance, dim, samples):
    beta = shared(dim / samples)
    gap = shared(spike - beta * variance)
    return 2 * variance**2 / samples * spike**2 / gap**2 * (1 - beta * variance**2 / gap**2)


def _information_scatter(spike, variance, dim, samples):
    beta = shared(dim / samples)
    free = 2 * spike + (1 + beta) * variance
    return 2 * variance / samples * free * (1 - beta * variance**2 / spike**2)


def _covariance_scatter(spike, variance, dim, samples):
    return 2 * (spike + variance) ** 2 / samples * (1 - dim / samples * variance**2 / spike**2)


FORMS |= {
    "granziol2022/additive-scatter": ClosedForm(_additive_scatter),
    "granziol2022/information-scatter": ClosedForm(_information_scatter),
    "granziol2022/covariance-scatter": ClosedForm(_covariance_scatter),
}

FLAT = "the margin is a tenth of the variance, and the slip changes it by less than two tenths"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "granziol2022/information-scatter": {
        FLAT: (
            "1/2 times variance*((dim/samples) + 1)",
            "1/2 times 1",
            "1/2 times (dim/samples)",
            "square root of (dim/samples) + 1",
            "1/2 times -variance**2*(dim/samples)/(spike**2)",
            "square root of 1 - variance**2*(dim/samples)/(spike**2)",
            "2 -> 3 in variance**2",
            "everywhere: without factor dim of dim/samples",
            "everywhere: dim -> spike in dim/samples",
            "everywhere: dim -> variance in dim/samples",
            "everywhere: square root of dim in dim/samples",
            "everywhere: inverse of dim in dim/samples",
            "everywhere: -1 -> -2 in 1/samples",
        ),
    },
    "granziol2022/covariance-scatter": {
        FLAT: (
            "1/2 times -dim*variance**2/(samples*(spike**2))",
            "square root of -dim*variance**2/(samples*(spike**2)) + 1",
            "2 -> 3 in variance**2",
        ),
    },
}
