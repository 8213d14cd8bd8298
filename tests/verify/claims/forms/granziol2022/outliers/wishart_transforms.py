"""Closed forms of `verify.claims.granziol2022.outliers.wishart_transforms`: complex numbers by their two parts."""

from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from tests.verify.claims.forms.complex_parts import parts
from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS"]


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


FORMS: dict[str, Any] = {
    "granziol2022/wishart-transform-real": ClosedForm(_wishart_real, parts("root", _root)),
}
