"""Activations with kinks and jumps: closed forms, 30-digit conditional means, and what is refused."""

import math
from collections.abc import Callable
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.refusals import refusal
from theory.activations import Activation, gaussian_kernels, hard_tanh, single
from theory.activations.gaussian import ConvergenceError, KinkedQuadrature, PiecewiseLinear

ALPHA = 1.7
NAMES = ("relu", "leaky_relu", "linear", "tanh", "erf", "sigmoid", "softplus", "gelu")

RAMP = KinkedQuadrature("ramp", lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0), np.zeros_like, (0.0,))
SIGN = KinkedQuadrature("sign", np.sign, np.zeros_like, np.zeros_like, (0.0,))
ELU = Activation(
    "elu",
    lambda x: np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0))),
    lambda x: np.where(x > 0, 1.0, ALPHA * np.exp(np.minimum(x, 0))),
    lambda x: np.where(x > 0, 0.0, ALPHA * np.exp(np.minimum(x, 0))),
    (0.0,),
)
HARD_SIGMOID = Activation(
    "hard_sigmoid",
    lambda x: np.clip(x / 6 + 0.5, 0, 1),
    lambda x: np.where(np.abs(x) < 3, 1 / 6, 0.0),
    np.zeros_like,
    (3.0, -3.0),
)
BENT = Activation(
    "bent",
    lambda x: np.abs(np.tanh(x - 0.4)),
    lambda x: np.sign(x - 0.4) / np.cosh(x - 0.4) ** 2,
    lambda x: -2 * np.abs(np.tanh(x - 0.4)) / np.cosh(x - 0.4) ** 2,
    (0.4,),
)


def _ramp(t):
    """E max(t + zeta, 0)."""
    return t * mp.ncdf(t) + mp.npdf(t)


def clipped(low: float, high: float):
    """Averages of a ramp between two kinks, and of its slope, over u of mean x and standard deviation s."""
    return (
        lambda x, s: low + s * (_ramp((x - low) / s) - _ramp((x - high) / s)),
        lambda x, s: mp.ncdf((x - low) / s) - mp.ncdf((x - high) / s),
    )


def exponential(x, s):
    """E e^u for negative u."""
    return mp.exp(x + s * s / 2) * mp.ncdf(-x / s - s)


MEANS = {
    "hard_tanh": (hard_tanh, clipped(-1, 1)),
    "elu": (
        ELU,
        (
            lambda x, s: s * _ramp(x / s) + mp.mpf(ALPHA) * (exponential(x, s) - mp.ncdf(-x / s)),
            lambda x, s: mp.ncdf(x / s) + mp.mpf(ALPHA) * exponential(x, s),
        ),
    ),
}


def conditional_overlap(mean: Callable, a, b):
    """E m(x)^2 or E m(x) m(-x) over the shared part x: entire functions, so a plain sum converges."""
    s, scale = mp.sqrt(a - abs(b)), mp.sqrt(abs(b))
    step = mp.mpf("0.36") * min(mp.mpf(1), s / scale)
    nodes = [step * k for k in range(-int(8.7 / step), int(8.7 / step) + 1)]
    sign = 1 if b > 0 else -1
    return step * mp.fsum(mp.npdf(z) * mean(scale * z, s) * mean(sign * scale * z, s) for z in nodes)


# ------------------------------------------------------------------------- against closed forms


@pytest.mark.parametrize(
    ("a", "c"),
    [(1.3, 0.5), (1.0, 1 - 1e-3), (3.3, -0.7), (2.0, 0.0), (2.0, 1.0), (2.0, -1.0), (1e5, 0.9), (1e-40, 0.2)],
)
def test_a_rectifier_of_plain_callables_has_the_arc_cosine_kernels(a: float, c: float) -> None:
    pair, exact = (a, a * c, a - a * c), PiecewiseLinear(0.0)
    assert_allclose(RAMP.value(*pair), exact.value(*pair), rtol=1e-13, atol=1e-15 * a)
    assert_allclose(RAMP.derivative(*pair), exact.derivative(*pair), rtol=1e-13, atol=1e-15)
    if abs(c) < 1:
        assert_allclose(RAMP.curvature(*pair), exact.curvature(*pair), rtol=1e-13)
    if c >= 0:
        assert_allclose(RAMP.fluctuations(*pair[1:]), exact.fluctuations(*pair[1:]), rtol=1e-13)


def test_a_faint_kink_counts() -> None:
    bent = KinkedQuadrature(
        "bent", lambda x: x + 1e-4 * np.maximum(x, 0), lambda x: 1 + 1e-4 * (x > 0), np.zeros_like, (0.0,)
    )
    delta = 1e-8 * PiecewiseLinear(0.0).curvature(1.3, 0.4, 0.9)
    assert_allclose(bent.curvature(1.3, 0.4, 0.9), delta, rtol=1e-8)


@pytest.mark.parametrize("d", [1e-6, 1e-20, 1e-79, 1e-150])
def test_no_gap_is_too_small(d: float) -> None:
    b = 1.3
    a, exact = b + d, PiecewiseLinear(0.0)
    assert_allclose(RAMP.value(a, b, d), exact.value(a, b, d), rtol=1e-13)
    assert_allclose(RAMP.derivative(a, b, d), exact.derivative(a, b, d), rtol=1e-13)
    assert_allclose(RAMP.fluctuations(b, d), exact.fluctuations(b, d), rtol=1e-13, atol=1e-290)


@pytest.mark.parametrize("c", [-1.0, -0.999, -0.3, 0.0, 1e-5, 0.8, 1.0])
def test_a_step_has_the_arc_sine_kernel(c: float) -> None:
    """E sign u sign v = (2/pi) arcsin c."""
    overlap = 2 / math.pi * math.asin(c)
    assert_allclose(
        SIGN.value(1.9, 1.9 * c, 1.9 * (1 - c)), [1.0, overlap, 1 - overlap], rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("d", [1e-3, 1e-12, 1e-60])
def test_the_gap_of_a_step_is_an_angle(d: float) -> None:
    gap = 4 / math.pi * math.asin(math.sqrt(d / 2 / 0.8))
    assert_allclose(SIGN.value(0.8, 0.8 - d, d).gap, gap, rtol=1e-12)


# ------------------------------------------------------------------------- against thirty digits


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize(("a", "c"), [(0.7, 0.7), (5.3, -0.4)])
def test_kinked_kernels_match_thirty_digits(name: str, a: float, c: float) -> None:
    activation, (value, slope) = MEANS[name]
    k, b = gaussian_kernels(activation), c * a
    with mp.workdps(30):
        exact = [conditional_overlap(m, mp.mpf(a), mp.mpf(b)) for m in (value, slope)]
        h = mp.mpf(10) ** -9
        up, down = (conditional_overlap(slope, mp.mpf(a), mp.mpf(b) + x) for x in (h, -h))
        turn = (up - down) / (2 * h)
    assert_allclose(k.value(a, b, a - b).overlap, float(exact[0]), rtol=5e-14)
    assert_allclose(k.derivative(a, b, a - b).overlap, float(exact[1]), rtol=5e-14)
    assert_allclose(k.curvature(a, b, a - b), float(turn), rtol=1e-13)


@pytest.mark.parametrize("activation", [hard_tanh, ELU, BENT, *map(single, NAMES)], ids=lambda a: a.name)
@pytest.mark.parametrize(("b", "d"), [(0.7, 0.9), (2.0, 0.05), (0.02, 1.0)])
def test_fluctuations_match_nested_sums(activation: Activation, b: float, d: float) -> None:
    x, g = np.polynomial.legendre.leggauss(16)
    z = (np.arange(-9, 9, 0.1)[:, None] + 0.05 * (1 + x)).ravel()
    w = np.tile(0.05 * g, 180) * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    kinks = (np.array(activation.kinks or (0.0,)) - math.sqrt(b) * z[:, None]) / math.sqrt(d)
    grid = np.broadcast_to(np.linspace(-9, 9, 10), (len(z), 10))
    edges = np.sort(np.concatenate([grid, np.clip(kinks, -9, 9)], axis=1), axis=1)
    half = 0.5 * np.diff(edges, axis=1)[:, :, None]
    zeta = edges[:, :-1, None] + half * (1 + x)
    inner = half * g * np.exp(-0.5 * zeta**2) / math.sqrt(2 * math.pi)
    u = math.sqrt(b) * z[:, None, None] + math.sqrt(d) * zeta
    p, s = activation.function(u), activation.derivative(u)

    def mean(y: np.ndarray) -> np.ndarray:
        return (inner * y).sum(axis=(1, 2))

    v, turn, square, cross = mean(p * p) - mean(p) ** 2, mean(s * s) - mean(s) ** 2, mean(s * s), mean(p * s)
    rows = [v**2, turn**2, turn * square, square**2, (cross - mean(p) * mean(s)) ** 2]
    assert_allclose(
        gaussian_kernels(activation).fluctuations(b, d), np.array(rows) @ w, rtol=1e-11, atol=1e-16
    )


# ------------------------------------------------------------------------------------------ laws


def test_kinks_come_in_any_order_and_more_than_once() -> None:
    twice = KinkedQuadrature("clip", hard_tanh.function, hard_tanh.derivative, np.zeros_like, (1, -1, 1.0))
    assert twice.kinks == (-1.0, 1.0)
    assert twice.value(2.0, 0.5, 1.5) == gaussian_kernels(hard_tanh).value(2.0, 0.5, 1.5)


def test_an_odd_activation_of_independent_inputs_has_no_overlap() -> None:
    assert gaussian_kernels(hard_tanh).value(2.0, 0.0, 2.0).overlap == 0.0
    faint = gaussian_kernels(hard_tanh).value(2.0, 1e-9, 2.0 - 1e-9).overlap
    inside = math.erf(0.5)
    assert_allclose(faint, 1e-9 * inside**2, rtol=1e-12)  # Price's theorem at covariance 0


def test_at_variance_zero_a_kink_counts_half_on_either_side() -> None:
    assert_allclose(RAMP.derivative(0.0, 0.0, 0.0), [0.5, 0.5, 0.0])
    assert_allclose(RAMP.value(0.0, 0.0, 0.0), [0.0, 0.0, 0.0], atol=1e-50)
    assert_allclose(SIGN.value(0.0, 0.0, 0.0), [1.0, 1.0, 0.0])
    assert_allclose(gaussian_kernels(BENT).value(0.0, 0.0, 0.0).moment, math.tanh(0.4) ** 2, rtol=1e-14)


def test_a_kink_far_out_is_met_in_the_tails_only() -> None:
    """E max(u - 15, 0)^2 is about 2e-55 at variance 1: found where it is, not lost between nodes."""
    k = KinkedQuadrature("far", lambda x: np.maximum(x - 15, 0), lambda x: 1.0 * (x > 15), kinks=(15.0,))
    with mp.workdps(30):
        exact = (1 + 15**2) * mp.ncdf(-15) - 15 * mp.npdf(15)
    assert_allclose(k.value(1.0, 1.0, 0.0).moment, float(exact), rtol=1e-12)
    unmet = gaussian_kernels(HARD_SIGMOID).derivative(0.01, 0.005, 0.005)  # kinks at 30 standard deviations
    assert_allclose(unmet, [1 / 36, 1 / 36, 0.0], rtol=1e-14)


def test_the_tails_that_reach_a_kink_decide_the_gap_of_a_slope() -> None:
    """P(|u| < 1, |v| > 1) = 2 P(u > 1) to leading order, at ten standard deviations."""
    gap = gaussian_kernels(hard_tanh).derivative(0.01, 0.0, 0.01).gap
    outside = 2 * float(mp.ncdf(-10))
    assert_allclose(gap, outside * (1 - outside), rtol=1e-12)


# ---------------------------------------------------------------------------------------- errors


def test_a_kink_that_is_not_listed_is_found_out() -> None:
    hidden = Activation(
        "hidden", lambda x: np.abs(x - 1) + np.abs(x + 0.3), lambda x: np.sign(x - 1) + np.sign(x + 0.3)
    )
    with pytest.raises(ConvergenceError, match="'hidden' did not settle to 1e-12: is it smooth"):
        gaussian_kernels(replace(hidden, kinks=(1.0,))).value(1.0, 0.5, 0.5)
    with refusal(r"^second_derivative must be the derivative of the function"):
        gaussian_kernels(replace(hidden, kinks=(1.0,), second_derivative=np.zeros_like))
    known = gaussian_kernels(replace(hidden, kinks=(-0.3, 1.0), second_derivative=np.zeros_like))
    assert known.curvature(1.0, 0.2, 0.8) > 0


@pytest.mark.parametrize("method", ["derivative", "curvature"])
def test_the_slope_of_a_step_has_no_moments(method: str) -> None:
    with refusal(r"activation 'sign' must be continuous .*, got a jump at 0\.0"):
        getattr(SIGN, method)(1.0, 0.5, 0.5)
    with refusal("activation 'sign' must be continuous"):
        SIGN.fluctuations(0.5, 0.5)
