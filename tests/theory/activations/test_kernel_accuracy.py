"""Order parameters and kappas to 1e-12, against a plain recursion with hundreds of digits.

The recursion here subtracts, in as many digits as it takes, where the library carries differences; moments of tanh
and softplus are double sums over half the sum and half the difference of the two pre-activations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory.fisher import kappas
from theory.order_parameters import order_parameters

Overlap = Callable[[Any, Any], Any]


def rectifier(slope: float) -> tuple[Overlap, Overlap]:
    """I_phi and I_phi' of x for x > 0 and slope x below, by the arc-cosine of the correlation."""

    def parts() -> tuple[Any, Any]:
        return ((1 + mp.mpf(slope)) / 2) ** 2, ((1 - mp.mpf(slope)) / 2) ** 2

    def value(a: Any, b: Any) -> Any:
        (o, e), c = parts(), b / a
        return o * b + e * 2 * a / mp.pi * (mp.sqrt(1 - c * c) + c * mp.asin(c))

    def derivative(a: Any, b: Any) -> Any:
        o, e = parts()
        return o + e * 2 / mp.pi * mp.asin(b / a)

    return value, derivative


def error_function() -> tuple[Overlap, Overlap]:
    return (
        lambda a, b: 2 / mp.pi * mp.asin(2 * b / (1 + 2 * a)),
        lambda a, b: 4 / mp.pi / mp.sqrt((1 + 2 * a) ** 2 - 4 * b * b),
    )


def double_sums(f: Callable[[Any], Any], df: Callable[[Any], Any]) -> tuple[Overlap, Overlap]:
    """E f(m + h) f(m - h) on one grid for both, m of variance (a + b)/2 and h of variance (a - b)/2."""

    def weights(variance: Any, n: int, step: Any) -> list[Any]:
        if variance == 0:
            return [mp.mpf(k == 0) for k in range(-n, n + 1)]
        raw = [mp.exp(-((step * k) ** 2) / variance / 2) for k in range(n + 1)]
        total = 2 * mp.fsum(raw) - raw[0]
        return [raw[abs(k)] / total for k in range(-n, n + 1)]

    def overlap(g: Callable[[Any], Any], a: Any, b: Any) -> Any:
        step, reach = mp.mpf(4) / mp.mp.dps, mp.sqrt(2 * mp.log(10) * (mp.mp.dps - 5))
        n, k = (int(mp.sqrt(x / 2) * reach / step) + 1 for x in (a + b, a - b))
        y = [g(step * j) for j in range(-n - k, n + k + 1)]
        centre, outer, inner = n + k, weights((a + b) / 2, n, step), weights((a - b) / 2, k, step)
        rows = (
            w
            * mp.fdot(
                inner[k:],
                [(1 if j == 0 else 2) * y[centre + m + j] * y[centre + m - j] for j in range(k + 1)],
            )
            for m, w in zip(range(-n, n + 1), outer, strict=True)
        )
        return mp.fsum(rows)

    return lambda a, b: overlap(f, a, b), lambda a, b: overlap(df, a, b)


def logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


EXACT: dict[str, tuple[Overlap, Overlap]] = {
    "relu": rectifier(0.0),
    "leaky_relu": rectifier(0.01),
    "linear": (lambda _, b: b, lambda *_: mp.mpf(1)),
    "erf": error_function(),
    "tanh": double_sums(mp.tanh, lambda x: 1 - mp.tanh(x) ** 2),
    "softplus": double_sums(lambda x: mp.log(1 + mp.exp(x)), logistic),
}


class Setting(NamedTuple):
    activation: Any
    depth: int
    weight: float
    bias: float
    digits: int
    ratios: tuple[float, ...] | None = None
    overlap: float = 0.0


def recursion(s: Setting) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Eqs. (5) to (7), as they stand."""
    names: Sequence[str] = [s.activation] * (s.depth - 1) if isinstance(s.activation, str) else s.activation
    w, bias = mp.mpf(s.weight), mp.mpf(s.bias)
    own, shared, slopes = [mp.mpf(1)], [mp.mpf(s.overlap)], []
    for name in names:
        value, derivative = EXACT[name]
        a, b = w * own[-1] + bias, w * shared[-1] + bias
        same = b == a
        own.append(value(a, a))
        shared.append(own[-1] if same else value(a, b))
        first = derivative(a, a)
        slopes.append((w * first, w * (first if same else derivative(a, b))))
    back, back_shared = [mp.mpf(1)], [mp.mpf(1)]
    for t, u in reversed(slopes):
        back.insert(0, back[0] * t)
        back_shared.insert(0, back_shared[0] * u)
    return own, shared, back, back_shared


REGIMES = {
    "erf, ordered": Setting("erf", 100, 0.6, 0.3, 250),
    "erf, deeply ordered": Setting("erf", 100, 0.3, 1.0, 400),
    "erf, chaotic": Setting("erf", 100, 3.0, 0.1, 60),
    "erf, a thousand layers, ordered": Setting("erf", 1000, 1.05, 0.35, 400),
    "erf, a thousand layers, chaotic": Setting("erf", 1000, 1.9, 0.05, 60),
    "relu, ordered": Setting("relu", 100, 1.0, 1.0, 150),
    "relu, faint weights": Setting("relu", 20, 1e-3, 1.0, 200),
    "relu, critical": Setting("relu", 100, 2.0, 0.0, 60),
    "relu, a thousand layers, critical": Setting("relu", 1000, 2.0, 0.0, 60),
    "relu, growing": Setting("relu", 100, 4.0, 1.0, 60),
    "leaky relu, ordered": Setting("leaky_relu", 100, 1.0, 1.0, 150),
    "linear": Setting("linear", 50, 1.3, 0.4, 60),
    "one activation per layer, unequal widths": Setting(
        ("relu", "erf", "leaky_relu", "linear", "erf"), 6, 1.7, 0.3, 60, (0.7, 1.3, 2.1, 0.4, 0.9, 1.6)
    ),
    "tanh and softplus": Setting(("tanh", "softplus"), 3, 1.4, 0.2, 25, (1.2, 0.8, 1.9)),
    "linear, opposite inputs": Setting("linear", 5, 0.9, 0.0, 40, None, -1.0),
    "erf, opposite inputs": Setting("erf", 30, 1.9, 0.0, 40, None, -1.0),
    "relu, equal inputs": Setting("relu", 9, 1.8, 0.3, 40, None, 1.0),
}


@pytest.mark.parametrize("regime", REGIMES)
def test_order_parameters_and_kappas_match_hundreds_of_digits(regime: str) -> None:
    s = REGIMES[regime]
    with mp.workdps(s.digits):
        exact = recursion(s)
        ratios = [mp.mpf(x) for x in s.ratios or [1.0] * s.depth]
        alpha = mp.fsum(x * y for x, y in pairwise(ratios))
        hats, shared, tildes, back = exact
        kappa1, kappa2 = (
            mp.fsum(r * t * h for r, t, h in zip(ratios, x, y, strict=True)) / alpha
            for x, y in ((tildes, hats), (back, shared))
        )
        expected = [float(x) for x in (alpha, kappa1, kappa2, kappa1 - kappa2)]
        rounded = [np.array([float(x) for x in column]) for column in exact]
    known = {"depth": s.depth, "weight_variance": s.weight, "bias_variance": s.bias}
    found = order_parameters(s.activation, **known, input_overlap=s.overlap)
    for x, y in zip((found.q_hat_t, found.q_hat_st, found.q_tilde_t, found.q_tilde_st), rounded, strict=True):
        assert_allclose(x, y, rtol=1e-12, atol=1e-16)
    if s.overlap == 0:
        assert_allclose(kappas(s.activation, **known, width_ratios=s.ratios), expected, rtol=1e-12)


def test_thirty_digits_of_named_activations_match_the_plain_recursion() -> None:
    for s in (REGIMES["tanh and softplus"], REGIMES["one activation per layer, unequal widths"]):
        with mp.workdps(38):
            exact = recursion(s)
            found = order_parameters(
                s.activation, depth=s.depth, weight_variance=s.weight, bias_variance=s.bias, digits=30
            )
            for column, expected in zip(found, exact, strict=True):
                errors = [abs(x - y) / abs(y or 1) for x, y in zip(column, expected, strict=True)]
                assert max(errors) < mp.mpf(10) ** -30
