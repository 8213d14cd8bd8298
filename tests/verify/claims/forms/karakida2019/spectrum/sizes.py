"""Closed forms of `verify.claims.karakida2019.growth`."""

import numpy as np
import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "UNSEEN"]

MEAN = -1.2065335745820
"""Of the Tracy-Widom law, beta = 1."""


def _place(p: Point) -> float:
    """a at the minimum of the edge over w: where its derivative, a polynomial, has its root in (0, 1/2)."""
    w = sympy.Symbol("w")
    gamma = sympy.Rational(p["width"], p["samples"] - 1)
    a = 1 + 1 / w + 1 / (1 - w)
    numerator = sympy.numer(sympy.together(sympy.diff(a * (1 - gamma + gamma * a * w), w)))
    roots = np.roots([float(c) for c in sympy.Poly(sympy.expand(numerator), w).all_coeffs()])
    (inside,) = [float(r.real) for r in roots if abs(r.imag) < 1e-12 and 0 < r.real < 0.5]
    return 1 + 1 / inside + 1 / (1 - inside)


def _moment(p: Point, power: int) -> float:
    """Mean of (t/(a - t))^power over the population 1 + Marchenko-Pastur, in its angle."""
    angles = (np.arange(4000) + 0.5) * np.pi / 4000
    y = 2 + 2 * np.cos(angles)
    return float((np.sin(angles) ** 2 / y * ((1 + y) / (_place(p) - 1 - y)) ** power).mean() * 2)


def _shift(p: Point) -> float:
    """Of the mean from the edge, by the Tracy-Widom law."""
    n = p["samples"] - 1
    return MEAN * _place(p) * float(np.cbrt((1 + p["width"] / n * _moment(p, 3)) / n**2))


def _largest(width, samples, a, first, shift):
    return (a * (1 + width / (samples - 1) * first) + shift) / 2


LEAVES = {"a": _place, "first": lambda p: _moment(p, 1), "shift": _shift}

FORMS: dict[str, ClosedForm] = {"karakida2019/linear-edge": ClosedForm(_largest, LEAVES)}

ONE_SAMPLE = "T - 1 in place of T moves the ratio by 0.7 % at these sizes"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "karakida2019/linear-edge": {
        ONE_SAMPLE: ("without term -1", *(f"{factor} times -1" for factor in ("-1", "2", "1/2"))),
    },
}
