"""Closed forms of the claims on how outliers in rectangular noise scatter, of Granziol, Zohren and Roberts (2022)."""

from __future__ import annotations

from tests.verify.claims.mutation import ClosedForm, shared

__all__ = ["FORMS", "UNSEEN"]


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


FORMS: dict[str, ClosedForm] = {
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
