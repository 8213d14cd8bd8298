"""Closed forms of the claims on outliers of Granziol, Zohren and Roberts (2022)."""

from __future__ import annotations

import math

import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm, shared

__all__ = ["FORMS", "UNSEEN"]


def _outlier(spikes, sigma):
    return spikes + sigma**2 / spikes


def _batch_sizes(eigenvalue, sigma, dim, batch_size, dataset_size):
    return eigenvalue + dim * (1 / batch_size - 1 / dataset_size) * sigma**2 / eigenvalue


def _drowned(sigma, dim, batch_size, dataset_size, shift):
    """Twice the standard deviation of the noise, and what its edge lacks to that."""
    return sympy.sqrt(dim * (1 / batch_size - 1 / dataset_size)) * sigma * (2 + shift)


def _few(eigenvalue, rank, variance, dim, batch_size):
    a = shared(dim * variance / batch_size)
    return eigenvalue + batch_size * rank / dim * a**2 * eigenvalue / (eigenvalue**2 - a**2)


TRACY_WIDOM = -1.2065335745820
"""Mean of the Tracy-Widom law of real symmetric matrices (Bornemann 2010)."""


def _wigner_shift(p: Point) -> float:
    """From the limit 2 to the mean at P, by Johnstone and Ma (2012)."""
    return math.sqrt(1 - 1 / (2 * p.dim)) * (2 + TRACY_WIDOM / (p.dim - 0.5) ** (2 / 3)) - 2


FORMS: dict[str, ClosedForm] = {
    "granziol2022/several-spikes": ClosedForm(_outlier),
    "granziol2022/batch-sizes": ClosedForm(_batch_sizes),
    "granziol2022/drowned-spike": ClosedForm(_drowned, {"shift": _wigner_shift}),
    "granziol2022/other-noise": ClosedForm(lambda spike, sigma: spike + sigma**2 / spike),
    "granziol2022/few-samples": ClosedForm(_few),
}

SMALL_CORRECTION = "a correction of the correction, less than two margins at these points"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "granziol2022/few-samples": {SMALL_CORRECTION: ("1/2 times -(dim*variance/batch_size)**2",)},
}
