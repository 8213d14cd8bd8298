"""Closed forms of the claims on batch normalised hidden layers of Karakida, Akaho and Amari (2019)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.closed_forms import A_NUMBER
from tests.verify.claims.mutation import ClosedForm, Quantity, shared
from theory import activations
from theory._roots import bracketed_root

__all__ = ["FORMS", "UNSEEN", "WITHOUT_FORM"]


def _arc_cosine(samples):
    c = shared(-1 / (samples - 1))
    return (sympy.sqrt(1 - c**2) + c * (sympy.pi / 2 + sympy.asin(c))) / (2 * sympy.pi)


def _bound(units, samples, own, product):
    return units * ((samples - 1) / samples * product + own / samples)


def _excess(scatter, inputs, units, turn, samples, slope_scatter):
    return 1 + scatter + units / inputs * turn / 2 + inputs / samples * (slope_scatter - turn)


def _largest(units, samples, own, product, excess):
    return units * ((samples - 1) / samples * product + own / samples) + excess


# --- averages by other means than the claims ------------------------------------------------------------------

NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)
Z = np.linspace(-12.0, 12.0, 4801)
MEAN = -1.2065335745820  # of the Tracy-Widom law, beta = 1
DENSITY = np.exp(-(Z**2) / 2) * (Z[1] - Z[0]) / math.sqrt(2 * math.pi)


def _relu_moments(samples: int) -> tuple[float, float]:
    c = -1 / (samples - 1)
    return 0.5, (math.sqrt(1 - c * c) + c * (math.pi / 2 + math.asin(c))) / (2 * math.pi)


def _gaussian(name: str, samples: int) -> tuple[float, float]:
    """Mean square, and mean product at correlation -1/(T - 1)."""
    if name == "relu":
        return _relu_moments(samples)
    phi, c = activations.single(name).function, -1 / (samples - 1)
    z, w = Z[::20], 20 * DENSITY[::20]
    pair = phi(z[:, None]) * phi(c * z[:, None] + math.sqrt(1 - c * c) * z)
    return float(w @ phi(z) ** 2), float(w @ pair @ w)


def _angle(dim: int) -> tuple[Any, Any]:
    """Cosines of the angle with an axis in `dim` >= 2 dimensions, by Gauss-Legendre in the angle, and weights."""
    angle = math.pi / 2 * (1 + NODES)
    weights = WEIGHTS * np.sin(angle) ** (dim - 2)
    return np.cos(angle), weights / weights.sum()


def _on_sphere(name: str, samples: int) -> tuple[float, float]:
    """The same over the sphere of radius sqrt(T) orthogonal to (1, ..., 1)."""
    if name == "relu":
        return _relu_moments(samples)
    dim, phi = samples - 1, activations.single(name).function
    (x, w), (y, v) = _angle(dim), _angle(dim - 1)
    c, root = -1 / dim, math.sqrt(dim)
    second = c * x[:, None] + math.sqrt(1 - c * c) * np.sqrt(1 - x[:, None] ** 2) * y
    return float(w @ phi(root * x) ** 2), float((w * phi(root * x)) @ phi(root * second) @ v)


def _variance(name: str) -> float:
    if name == "relu":
        return 0.5 - 1 / (2 * math.pi)
    values = activations.single(name).function(Z)
    return float(DENSITY @ values**2 - (DENSITY @ values) ** 2)


def _slopes(name: str) -> tuple[float, float]:
    """Variance of the derivative, and the squared mean of the second one, by parts."""
    if name == "relu":
        return 0.25, 1 / (2 * math.pi)
    slope = activations.single(name).derivative(Z)
    return float(DENSITY @ slope**2 - (DENSITY @ slope) ** 2), float(DENSITY @ (Z * slope)) ** 2


def _of(moments: Callable[[str, int], tuple[float, float]]) -> dict[str, Quantity]:
    return {
        "own": lambda p: moments(p.activation, p.samples)[0],
        "product": lambda p: moments(p.activation, p.samples)[1],
    }


def _excess_of(p: Point) -> float:
    inputs, units = p.layers
    slope_scatter, turn = _slopes(p.activation)
    return _excess(_variance(p.activation), inputs, units, turn, p.samples, slope_scatter)


# --- the edge of odd units -------------------------------------------------------------------------------------


@cache
def _odd(name: str, inputs: int, units: int, samples: int) -> tuple[float, float, float]:
    """Where the edge is reached, and the means of t/(a - t) and its cube over the population of one input."""
    linear = float(DENSITY @ activations.single(name).derivative(Z)) ** 2
    rest, r = float(DENSITY @ activations.single(name).function(Z) ** 2) - linear, units / inputs
    angles = (np.arange(4000) + 0.5) * math.pi / 4000
    y = 1 + r + 2 * math.sqrt(r) * np.cos(angles)
    cross = math.sqrt(linear * rest) * np.sqrt(y)
    pairs = np.array([[linear * (1 + y), cross], [cross, np.full_like(y, rest)]])
    t = np.append(np.linalg.eigvalsh(pairs.transpose(2, 0, 1)).ravel(), linear if r < 1 else rest)
    weights = np.append(np.repeat(2 * r * np.sin(angles) ** 2 / y / 4000, 2), abs(1 - r))
    shape = inputs / (samples - 1)
    a = bracketed_root(
        lambda a: float(shape * weights @ (t / (a - t)) ** 2 - 1), 1.0001 * t.max(), 9 * t.max()
    )
    return a, float(weights @ (t / (a - t))), float(weights @ (t / (a - t)) ** 3)


def _largest_odd(share, a, first, gap, shift):
    return a * (1 + share * first) + share * gap + shift


def _odd_leaf(place: int) -> Quantity:
    return lambda p: _odd(p.activation, *p.layers, p.samples)[place]


def _shift(p: Point) -> float:
    """Of the mean of the Tracy-Widom law from the edge."""
    a, _, third = _odd(p.activation, *p.layers, p.samples)
    return (
        _kept(p)
        * MEAN
        * a
        * math.cbrt(1 + p.layers[0] / (p.samples - 1) * third)
        * (p.samples - 1) ** (-2 / 3)
    )


def _kept(p: Point) -> float:
    """Share of the samples that normalisation leaves."""
    return (p.samples - 1) / p.samples


SIZES: dict[str, Quantity] = {"inputs": lambda p: p.layers[0], "units": lambda p: p.layers[-1]}
AS_MANY: dict[str, Quantity] = {
    "units": lambda p: p.widths,
    "samples": lambda p: p.widths,
    "own": lambda p: _relu_moments(p.widths)[0],
    "product": lambda p: _relu_moments(p.widths)[1],
}

FORMS: dict[str, ClosedForm] = {
    "karakida2019/batch-norm-covariance": ClosedForm(_arc_cosine),
    "karakida2019/batch-norm-bound": ClosedForm(_bound, {**SIZES, **_of(_gaussian)}),
    "karakida2019/batch-norm-largest": ClosedForm(
        _largest, {**SIZES, **_of(_on_sphere), "excess": _excess_of}
    ),
    "karakida2019/batch-norm-odd": ClosedForm(
        _largest_odd,
        {
            "share": lambda p: p.layers[0] / (p.samples - 1),
            "a": lambda p: _kept(p) * _odd_leaf(0)(p),
            "first": _odd_leaf(1),
            "gap": lambda p: _kept(p) * _slopes(p.activation)[0],
            "shift": _shift,
        },
    ),
    "karakida2019/batch-norm-theorem": ClosedForm(_bound, AS_MANY),
    "karakida2019/batch-norm-any-width": ClosedForm(
        _bound, {"units": lambda p: p.widths[-1], **_of(_on_sphere)}
    ),
}

WITHOUT_FORM: dict[str, str] = {
    "karakida2019/batch-norm-variance": A_NUMBER,
}

ONE_SAMPLE = "one sample of some hundred counts for less than two margins of the whole"
AS_FEW = "there are as many samples as units"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "karakida2019/batch-norm-largest": {
        ONE_SAMPLE: (
            "1/2 times own/samples",
            "without term -1",
            "2 times -1",
            "1/2 times -1",
            "square root of own in own/samples",
            "square of own in own/samples",
            "samples -> units in 1/samples",
        ),
        "the root of 1.3 or 1.7 is less than two margins of the whole away": ("square root of excess",),
    },
    "karakida2019/batch-norm-odd": {
        "the shift from the edge is 3 % of the whole": (
            "without term shift",
            "-1 times shift",
            "2 times shift",
            "1/2 times shift",
            "square of shift",
        ),
        "the spread of slopes is two margins": (
            "1/2 times gap*share",
            "without factor share of gap*share",
            "share -> a in gap*share",
            "share -> first in gap*share",
            "square root of share in gap*share",
            "inverse of share in gap*share",
            "shift -> gap",
        ),
    },
    "karakida2019/batch-norm-theorem": {
        AS_FEW: (
            "units -> samples in units*(own/samples + prod ... ct*(samples - 1)/samples)",
            "samples -> units",
            "samples -> units in 1/samples",
            "samples -> units in 1/samples (2)",
        ),
        ONE_SAMPLE: (
            "without term -1",
            "-1 times -1",
            "1/2 times -1",
            "square root of own in own/samples",
        ),
    },
}
