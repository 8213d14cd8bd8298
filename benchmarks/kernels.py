"""Gaussian averages of a pair of pre-activations beside other quadratures, in one run of some seconds.

    python -m benchmarks.kernels

Prints tables of errors and of milliseconds. Plain Gauss-Hermite is a product rule of n nodes in two independent
variables, which crosses every kink (it is how neural-tangents averages an activation that it knows no closed form of);
scipy is `dblquad` with its own tolerance. Errors are relative to closed forms in mpmath, for tanh to a fine trapezoidal
rule in long double. Times are CPU milliseconds for one average, the best of three.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import scipy
from scipy import integrate

from benchmarks.timing import machine, percent, seconds, table
from theory.activations import Activation, gaussian_kernels, leaky_relu, single

Average = Callable[["Pair"], float]

HERMITE = (25, 50, 100, 200)
VARIANCES = (0.3, 3.64, 50.0)
CORRELATIONS = (-0.5, 0.3, 0.95)


class Pair(NamedTuple):
    """An activation (or its slope) and two pre-activations."""

    name: str
    slope: bool = False
    variance: float = 3.64
    correlation: float = 0.3


def function_of(pair: Pair) -> Callable[[Any], Any]:
    """The activation or its slope."""
    activation = FUNCTIONS[pair.name][0]
    return activation.derivative if pair.slope else activation.function


def pairs(name: str, slope: bool) -> list[Pair]:
    """Every variance with every correlation."""
    return [Pair(name, slope, a, c) for a in VARIANCES for c in CORRELATIONS]


# ------------------------------------------------------------------------------------------- averages


def ours(pair: Pair) -> float:
    """The kernel of this library."""
    a, c = pair.variance, pair.correlation
    kernels = gaussian_kernels(FUNCTIONS[pair.name][0])
    return (kernels.derivative if pair.slope else kernels.value)(a, a * c, a - a * c).overlap


def gauss_hermite(nodes: int) -> Average:
    """The product rule."""

    def average(pair: Pair) -> float:
        x, w = _hermite(nodes)
        scale, c, f = np.sqrt(pair.variance), pair.correlation, function_of(pair)
        second = c * x[:, None] + np.sqrt(1 - c * c) * x
        return float(w @ (f(scale * x)[:, None] * f(scale * second)) @ w)

    return average


def scipy_dblquad(pair: Pair) -> float:
    """Adaptive quadrature over a square of nine standard deviations."""
    scale, c, f = np.sqrt(pair.variance), pair.correlation, function_of(pair)

    def integrand(y: float, x: float) -> float:
        both = f(np.array([scale * x, scale * (c * x + np.sqrt(1 - c * c) * y)]))
        return float(both[0] * both[1] * np.exp(-0.5 * (x * x + y * y)) / (2 * np.pi))

    return float(integrate.dblquad(integrand, -9, 9, -9, 9)[0])


@cache
def _hermite(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    x, w = scipy.special.roots_hermitenorm(nodes)
    return x, w / np.sqrt(2 * np.pi)


# ------------------------------------------------------------------------------------------- references


@cache
def exact(pair: Pair) -> float:
    """The average, rounded to double precision."""
    with mp.workdps(30):
        a, b = mp.mpf(pair.variance), mp.mpf(pair.variance * pair.correlation)
        return float(FUNCTIONS[pair.name][1](a, b, pair.slope))


def _rectified(a: Any, b: Any, slope: bool) -> Any:
    angle = mp.pi - mp.acos(b / a)
    return angle / (2 * mp.pi) if slope else (mp.sqrt(a * a - b * b) + b * angle) / (2 * mp.pi)


def _absolute(a: Any, b: Any, slope: bool) -> Any:
    angle = mp.asin(b / a)
    return 2 / mp.pi * (angle if slope else mp.sqrt(a * a - b * b) + b * angle)


def _clipped(a: Any, b: Any, slope: bool) -> Any:
    """Average over the shared part of products of conditional means: a plain sum of an entire function."""
    scale, s, sign = mp.sqrt(abs(b)), mp.sqrt(a - abs(b)), mp.sign(b)
    step = mp.mpf("0.3") * min(mp.mpf(1), s / scale)

    def mean(x: Any) -> Any:
        ends = (x + 1) / s, (x - 1) / s
        if slope:
            return mp.ncdf(ends[0]) - mp.ncdf(ends[1])
        upper, lower = (end * mp.ncdf(end) + mp.npdf(end) for end in ends)
        return s * (upper - lower) - 1

    nodes = [step * k for k in range(-int(11 / step), int(11 / step) + 1)]
    return step * mp.fsum(mp.npdf(z) * mean(scale * z) * mean(sign * scale * z) for z in nodes)


def _double_sum(a: Any, b: Any, slope: bool) -> Any:
    """Of tanh, on one grid for half the sum and half the difference, which are independent."""
    plus, minus = (np.sqrt(np.longdouble(float((a + x * b) / 2))) for x in (1, -1))
    step = min(np.longdouble(0.09), plus / 4, minus / 4)
    n, k = (int(9 * x / step) + 1 for x in (plus, minus))
    u = step * np.arange(-n - k, n + k + 1)
    y = 1 / np.cosh(u) ** 2 if slope else np.tanh(u)
    outer, inner = (_weights(m, step / x) for m, x in ((n, plus), (k, minus)))
    rows = [inner @ (y[i : i + 2 * k + 1] * y[i : i + 2 * k + 1][::-1]) for i in range(2 * n + 1)]
    return float(outer @ np.array(rows))


def _weights(n: int, step: np.longdouble) -> np.ndarray:
    w = np.exp(-0.5 * (step * np.arange(-n, n + 1)) ** 2)
    return w / w.sum()


FUNCTIONS: dict[str, tuple[Activation, Callable[[Any, Any, bool], Any]]] = {
    "relu": (single("relu"), _rectified),
    "absolute value": (leaky_relu(-1.0), _absolute),
    "hard_tanh": (single("hard_tanh"), _clipped),
    "absolute value, as callables": (Activation("abs", np.abs, np.sign, np.zeros_like, (0.0,)), _absolute),
    "tanh": (single("tanh"), _double_sum),
}
"""Activations, each with its average and that of its slope by the variance and the covariance."""


# ------------------------------------------------------------------------------------------- the report


def _error(average: Average, listed: Sequence[Pair]) -> str:
    return percent(max(abs(average(pair) / exact(pair) - 1) for pair in listed))


def _milliseconds(average: Average, listed: Sequence[Pair], repeats: int = 3) -> str:
    return f"{seconds(lambda: [average(pair) for pair in listed], repeats) / len(listed) * 1e3:.3g}"


def main() -> None:
    """Print the tables."""
    found = {"losscurv": ours, **{f"Gauss-Hermite {n}": gauss_hermite(n) for n in HERMITE}}
    errors = [
        [f"{name}{', slope' * slope}", *(_error(f, pairs(name, slope)) for f in found.values())]
        for name in FUNCTIONS
        for slope in (False, True)
    ]
    times = [[name, *(_milliseconds(f, pairs(name, False)) for f in found.values())] for name in FUNCTIONS]
    print(machine("numpy", "scipy"), end="\n\n")
    print(table(["largest relative error", *found], errors), end="\n\n")
    print(table(["CPU milliseconds an average", *found], times), end="\n\n")
    both = ours, scipy_dblquad
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scipy, that it does not converge
        rows = [
            [p.name, *(_error(f, [p]) for f in both), *(_milliseconds(f, [p], 1) for f in both)]
            for p in (Pair("relu"), Pair("tanh"))
        ]
    head = ["variance 3.64, correlation 0.3", "error", "error of dblquad", "milliseconds", "those of dblquad"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
