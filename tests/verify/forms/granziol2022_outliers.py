"""Closed forms of the claims on outliers of Granziol, Zohren and Roberts (2022)."""

from __future__ import annotations

import math

import sympy

from simulate.monte_carlo import Point
from tests.verify.mutation import ClosedForm, shared

__all__ = ["FORMS", "UNSEEN"]


def _outlier(spikes, sigma):
    return spikes + sigma**2 / spikes


def _overlap(spikes, sigma):
    return 1 - sigma**2 / spikes**2


def _batch_sizes(eigenvalue, sigma, dim, batch_size, dataset_size):
    return eigenvalue + dim * (1 / batch_size - 1 / dataset_size) * sigma**2 / eigenvalue


def _drowned(sigma, dim, batch_size, dataset_size, shift):
    """Twice the standard deviation of the noise, and what its edge lacks to that."""
    return sympy.sqrt(dim * (1 / batch_size - 1 / dataset_size)) * sigma * (2 + shift)


def _uneven(spike, sigma, along):
    """Half of the spikes are larger, half smaller."""
    up, down = spike + along, spike - along
    return spike + sigma**2 / (2 * up) + sigma**2 / (2 * down)


def _few(eigenvalue, rank, variance, dim, batch_size):
    a = shared(dim * variance / batch_size)
    return eigenvalue + batch_size * rank / dim * a**2 * eigenvalue / (eigenvalue**2 - a**2)


def _few_overlap(eigenvalue, rank, variance, dim, batch_size):
    a = shared(dim * variance / batch_size)
    gap = eigenvalue**2 - a**2
    return 1 - batch_size * rank / dim * a**2 * (eigenvalue**2 + a**2) / gap**2


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


def _additive_map(relative_spike, variance, dim, samples):
    root = shared(sympy.sqrt(dim / samples))
    spike = shared(relative_spike * root * (1 + root))
    return variance * (spike + spike / (spike - root**2))


def _information_map(relative_spike, variance, dim, samples):
    root = shared(sympy.sqrt(dim / samples))
    return variance * (1 + relative_spike * root) * (1 + root / relative_spike)


TRACY_WIDOM = -1.2065335745820
"""Mean of the Tracy-Widom law of real symmetric matrices (Bornemann 2010)."""


def _wigner_shift(p: Point) -> float:
    """From the limit 2 to the mean at P, by Johnstone and Ma (2012)."""
    return math.sqrt(1 - 1 / (2 * p.dim)) * (2 + TRACY_WIDOM / (p.dim - 0.5) ** (2 / 3)) - 2


def _wishart_shift(p: Point) -> float:
    """The same of Wishart noise, by Ma (2012)."""
    rows, columns = math.sqrt(p.dim - 0.5), math.sqrt(p.samples - 0.5)
    width = (rows + columns) * (1 / rows + 1 / columns) ** (1 / 3)
    limit = (math.sqrt(p.dim) + math.sqrt(p.samples)) ** 2
    return ((rows + columns) ** 2 + TRACY_WIDOM * width - limit) / p.samples


FORMS: dict[str, ClosedForm] = {
    "granziol2022/several-spikes": ClosedForm(_outlier),
    "granziol2022/several-overlaps": ClosedForm(_overlap),
    "granziol2022/batch-sizes": ClosedForm(_batch_sizes),
    "granziol2022/drowned-spike": ClosedForm(_drowned, {"shift": _wigner_shift}),
    "granziol2022/uneven-noise": ClosedForm(_uneven),
    "granziol2022/other-noise": ClosedForm(lambda spike, sigma: spike + sigma**2 / spike),
    "granziol2022/few-samples": ClosedForm(_few),
    "granziol2022/few-samples-overlap": ClosedForm(_few_overlap),
    "granziol2022/theorem-7-ratios": ClosedForm(_additive),
    "granziol2022/theorem-7-overlap": ClosedForm(_additive_overlap),
    "granziol2022/theorem-7-edge": ClosedForm(_wishart_edge, {"shift": _wishart_shift}),
    "granziol2022/information-plus-noise": ClosedForm(_information),
    "granziol2022/information-overlap": ClosedForm(_information_overlap),
    "granziol2022/spiked-covariance": ClosedForm(_information),
    "granziol2022/one-broadening-for-all": ClosedForm(_additive),
    "granziol2022/additive-scatter": ClosedForm(_additive_scatter),
    "granziol2022/information-scatter": ClosedForm(_information_scatter),
    "granziol2022/covariance-scatter": ClosedForm(_covariance_scatter),
    "granziol2022/additive-wishart-map": ClosedForm(_additive_map),
    "granziol2022/information-map": ClosedForm(_information_map),
}

SMALL_CORRECTION = "a correction of the correction, less than two margins at these points"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "granziol2022/drowned-spike": {
        "170 samples and 200 dimensions: 1/N is small against 1/B": (
            "dataset_size -> dim in 1/dataset_size",
        ),
    },
    "granziol2022/uneven-noise": {
        SMALL_CORRECTION: (
            "2 -> 3 in 2*(along + spike)",
            "2 times along",
            "1/2 times along",
            "along -> sigma",
            "along -> spike",
            "square root of along",
        ),
    },
    "granziol2022/few-samples": {SMALL_CORRECTION: ("1/2 times -(dim*variance/batch_size)**2",)},
    "granziol2022/few-samples-overlap": {
        SMALL_CORRECTION: (
            "without term (dim*variance/batch_size)**2",
            "2 times (dim*variance/batch_size)**2",
            "1/2 times (dim*variance/batch_size)**2",
        ),
    },
    "granziol2022/theorem-7-edge": {
        "half of the shift is 1.5 margins at the smallest size": ("1/2 times shift",),
    },
}
