"""Closed forms of `verify.claims.granziol2022.outliers.transforms`: complex numbers by their two parts."""

from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from tests.verify.claims.forms.complex_parts import parts
from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "UNSEEN"]


def _semicircle(p: Point) -> complex:
    """The root of sigma^2 S^2 - z S + 1 = 0 of smaller modulus."""
    return min(np.roots([p.sigma**2, -complex(*p.z), 1]), key=abs)


def _slope(p: Point) -> complex:
    """Derivative of that equation: S' = S / (2 sigma^2 S - z)."""
    s = _semicircle(p)
    return s / (2 * p.sigma**2 * s - complex(*p.z))


SPIKE = {**parts("s", _semicircle), **parts("slope", _slope)}


def _spike_real(spike, s_re, s_im, slope_re, slope_im):
    real, imaginary = 1 - spike * s_re, spike * s_im
    return -spike * (slope_re * real - slope_im * imaginary) / (real**2 + imaginary**2)


def _beyond(p: Point) -> float:
    """What is left of the mixed moment beyond order 1/P."""
    return float(np.polyval([33, 54, 39, 0, 0], 1 / p.dim))


def _mixed_moment(sigma_a, sigma_b, dim, beyond):
    return sigma_a**4 * sigma_b**4 * (3 + 15 / dim + beyond)


FORMS: dict[str, Any] = {
    "granziol2022/mixed-moment": ClosedForm(_mixed_moment, {"beyond": _beyond}),
    "granziol2022/spike-in-transform-real": ClosedForm(_spike_real, SPIKE),
}

BEYOND = "what is beyond order 1/P is 0.1 % at this size, a fifteenth of the term of that order 0.4 %"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "granziol2022/mixed-moment": {
        BEYOND: (
            "without term beyond",
            *(f"{factor} times beyond" for factor in ("-1", "2", "1/2")),
            "square of beyond",
            "15 -> 14 in 15/dim",
            "15 -> 16 in 15/dim",
        ),
    },
}


def _root(p: Point) -> complex:
    """Root of (z - v (1 - q))^2 - 4 q v z, of the sign that makes the transform small."""
    z, q = complex(p.x, p.height), p.dim / p.samples
    middle = z - p.variance * (1 - q)
    found = np.sqrt(middle**2 - 4 * q * p.variance * z)
    return found if abs(middle - found) < abs(middle + found) else -found


def _wishart_real(x, height, variance, dim, samples, root_re, root_im):
    ratio = dim / samples
    real, imaginary = x - variance * (1 - ratio) - root_re, height - root_im
    return (real * x + imaginary * height) / (2 * ratio * variance * (x**2 + height**2))


FORMS |= {
    "granziol2022/wishart-transform-real": ClosedForm(_wishart_real, parts("root", _root)),
}
