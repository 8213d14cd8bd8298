"""Gaussian averages of a pair of pre-activations beside other quadratures, in one run of some seconds.

    python -m benchmarks.kernels

Prints tables of errors and of milliseconds. Plain Gauss-Hermite is a product rule of n nodes in two independent
variables, which crosses every kink (it is how neural-tangents averages an activation that it knows no closed form of);
scipy is `dblquad` with its own tolerance. Errors are relative to closed forms in mpmath, for tanh to a fine trapezoidal
rule in long double. Times are CPU milliseconds for one average, the best of three.
"""

from __future__ import annotations

import argparse
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

FUNCTIONS: dict[str, Activation] = {
    "relu": single("relu"),
    "absolute value": leaky_relu(-1.0),
    "hard_tanh": single("hard_tanh"),
    "absolute value, as callables": Activation("abs", np.abs, np.sign, np.zeros_like, (0.0,)),
    "tanh": single("tanh"),
}


class Pair(NamedTuple):
    """An activation (or its slope) and two pre-activations."""

    name: str
    slope: bool
    variance: float
    correlation: float

    @property
    def function(self) -> Callable[[Any], Any]:
        """The activation or its slope."""
        activation = FUNCTIONS[self.name]
        return activation.derivative if self.slope else activation.function


def pairs(name: str, slope: bool) -> list[Pair]:
    """Every variance with every correlation."""
    return [Pair(name, slope, a, c) for a in VARIANCES for c in CORRELATIONS]


# ------------------------------------------------------------------------------------------- averages


def ours(pair: Pair) -> float:
    """The kernel of this library."""
    a, c = pair.variance, pair.correlation
    kernels = gaussian_kernels(FUNCTIONS[pair.name])
    return (kernels.derivative if pair.slope else kernels.value)(a, a * c, a - a * c).overlap


def gauss_hermite(nodes: int) -> Average:
    """The product rule."""

    def average(pair: Pair) -> float:
        x, w = _hermite(nodes)
        scale, c, f = np.sqrt(pair.variance), pair.correlation, pair.function
        second = c * x[:, None] + np.sqrt(1 - c * c) * x
        return float(w @ (f(scale * x)[:, None] * f(scale * second)) @ w)

    return average


def scipy_dblquad(pair: Pair) -> float:
    """Adaptive quadrature over a square of nine standard deviations."""
    scale, c, f = np.sqrt(pair.variance), pair.correlation, pair.function

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
        a, c = mp.mpf(pair.variance), mp.mpf(pair.variance * pair.correlation) / mp.mpf(pair.variance)
        if pair.name == "relu":
            return float(_rectified(a, c, pair.slope))
        if pair.name.startswith("absolute value"):
            return float(_absolute(a, c, pair.slope))
        if pair.name == "hard_tanh":
            return float(_clipped(a, c * a, pair.slope))
        return float(_double_sum(a, c * a, pair.slope))


def _rectified(a: Any, c: Any, slope: bool) -> Any:
    angle = mp.pi - mp.acos(c)
    return angle / (2 * mp.pi) if slope else a * (mp.sqrt(1 - c * c) + c * angle) / (2 * mp.pi)


def _absolute(a: Any, c: Any, slope: bool) -> Any:
    angle = mp.asin(c)
    return 2 / mp.pi * (angle if slope else a * (mp.sqrt(1 - c * c) + c * angle))


def _clipped(a: Any, b: Any, slope: bool) -> Any:
    """Average over the shared part of products of conditional means: a plain sum of an entire function."""
    scale, s, sign = mp.sqrt(abs(b)), mp.sqrt(a - abs(b)), mp.sign(b)
    step = mp.mpf("0.3") * min(mp.mpf(1), s / scale)

    def mean(x: Any) -> Any:
        ends = [(x + 1) / s, (x - 1) / s]
        if slope:
            return mp.ncdf(ends[0]) - mp.ncdf(ends[1])
        return (
            s
            * (ends[0] * mp.ncdf(ends[0]) + mp.npdf(ends[0]) - ends[1] * mp.ncdf(ends[1]) - mp.npdf(ends[1]))
            - 1
        )

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


# ------------------------------------------------------------------------------------------- the report


def _error(average: Average, pair: Pair) -> float:
    return abs(average(pair) / exact(pair) - 1)


def _milliseconds(average: Average, listed: Sequence[Pair], repeats: int = 3) -> str:
    return f"{seconds(lambda: [average(pair) for pair in listed], repeats) / len(listed) * 1e3:.3g}"


def main(words: list[str] | None = None) -> int:
    """Print the tables."""
    argparse.ArgumentParser(
        prog="python -m benchmarks.kernels", description=__doc__.splitlines()[0]
    ).parse_args(words)
    found = {"losscurv": ours, **{f"Gauss-Hermite {n}": gauss_hermite(n) for n in HERMITE}}
    errors = [
        [
            f"{name}{', slope' * slope}",
            *(percent(max(_error(f, p) for p in pairs(name, slope))) for f in found.values()),
        ]
        for name in FUNCTIONS
        for slope in (False, True)
    ]
    times = [
        [name, *(_milliseconds(average, pairs(name, False)) for average in found.values())]
        for name in FUNCTIONS
    ]
    print(machine("numpy", "scipy"), end="\n\n")
    print(table(["largest relative error", *found], errors), end="\n\n")
    print(table(["CPU milliseconds an average", *found], times), end="\n\n")
    both, rows = (ours, scipy_dblquad), list[list[str]]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scipy, that it does not converge
        for name in ("relu", "tanh"):
            pair = Pair(name, slope=False, variance=3.64, correlation=0.3)
            told = [percent(_error(f, pair)) for f in both], [_milliseconds(f, [pair], 1) for f in both]
            rows.append([name, *told[0], *told[1]])
    head = ["variance 3.64, correlation 0.3", "error", "error of dblquad", "milliseconds", "those of dblquad"]
    print(table(head, rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
