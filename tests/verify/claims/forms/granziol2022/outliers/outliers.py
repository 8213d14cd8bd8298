"""Closed forms of the claims on outliers of Granziol, Zohren and Roberts (2022)."""

from __future__ import annotations

import math

import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm, shared

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


TRACY_WIDOM = -1.2065335745820
"""Mean of the Tracy-Widom law of real symmetric matrices (Bornemann 2010)."""


def _wigner_shift(p: Point) -> float:
    """From the limit 2 to the mean at P, by Johnstone and Ma (2012)."""
    return math.sqrt(1 - 1 / (2 * p.dim)) * (2 + TRACY_WIDOM / (p.dim - 0.5) ** (2 / 3)) - 2


FORMS: dict[str, ClosedForm] = {
    "granziol2022/several-spikes": ClosedForm(_outlier),
    "granziol2022/several-overlaps": ClosedForm(_overlap),
    "granziol2022/batch-sizes": ClosedForm(_batch_sizes),
    "granziol2022/drowned-spike": ClosedForm(_drowned, {"shift": _wigner_shift}),
    "granziol2022/uneven-noise": ClosedForm(_uneven),
    "granziol2022/other-noise": ClosedForm(lambda spike, sigma: spike + sigma**2 / spike),
    "granziol2022/few-samples": ClosedForm(_few),
    "granziol2022/few-samples-overlap": ClosedForm(_few_overlap),
}

SMALL_CORRECTION = "a correction of the correction, less than two margins at these points"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
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
}
