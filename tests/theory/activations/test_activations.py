"""Activations and their Gaussian averages, against two-dimensional mpmath quadrature and series."""

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.refusals import refusal
from theory import activations
from theory.activations import Activation, _quadrature, gaussian_kernels, leaky_relu, single
from theory.activations.gaussian import (
    ConvergenceError,
    Kernels,
    Moments,
    NumericalKernels,
    PiecewiseLinear,
)

NAMES = ["relu", "leaky_relu", "linear", "tanh", "erf", "sigmoid", "softplus", "gelu"]


SMOOTH = ["tanh", "sigmoid", "softplus", "gelu"]


EXACT = {
    "tanh": (mp.tanh, lambda x: mp.sech(x) ** 2, lambda x: -2 * mp.tanh(x) * mp.sech(x) ** 2),
    "sigmoid": (
        lambda x: 1 / (1 + mp.exp(-x)),
        lambda x: mp.exp(-x) / (1 + mp.exp(-x)) ** 2,
        lambda x: mp.exp(-x) * (mp.exp(-x) - 1) / (1 + mp.exp(-x)) ** 3,
    ),
    "softplus": (
        lambda x: mp.log(1 + mp.exp(x)),
        lambda x: 1 / (1 + mp.exp(-x)),
        lambda x: mp.exp(-x) / (1 + mp.exp(-x)) ** 2,
    ),
    "gelu": (
        lambda x: x * mp.ncdf(x),
        lambda x: mp.ncdf(x) + x * mp.npdf(x),
        lambda x: (2 - x * x) * mp.npdf(x),
    ),
    "erf": (
        mp.erf,
        lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x),
        lambda x: -4 * x / mp.sqrt(mp.pi) * mp.exp(-x * x),
    ),
}


def plain_moments(f: Callable[[np.ndarray], np.ndarray], a: float, b: float) -> Moments:
    """Dense trapezoidal rule on the plane, no trick; half the step moves nothing by 5 % of what is allowed below."""
    z = np.arange(-12, 12.0001, 0.08)
    w = np.exp(-0.5 * z**2) * 0.08 / math.sqrt(2 * math.pi)
    u = math.sqrt((a + b) / 2) * z[:, None] + math.sqrt((a - b) / 2) * z
    v = math.sqrt((a + b) / 2) * z[:, None] - math.sqrt((a - b) / 2) * z
    overlap = float(w @ (f(u) * f(v)) @ w)
    moment = float(w @ f(math.sqrt(a) * z) ** 2)
    return Moments(moment, overlap, 0.5 * float(w @ (f(u) - f(v)) ** 2 @ w))


def kernel(name: str) -> Kernels:
    return gaussian_kernels(single(name))


# ------------------------------------------------------------------------------------ the functions


def test_every_named_function_without_pieces_has_its_reference() -> None:
    pieces = {name for name, a in activations._NAMED.items() if isinstance(a.kernels, PiecewiseLinear)}
    assert set(EXACT) == set(activations._NAMED) - pieces - {"hard_tanh"}


@pytest.mark.parametrize("name", EXACT)
def test_functions_match_mpmath_far_into_their_tails(name: str) -> None:
    x = np.array([-30.0, -3.0, 0.0, 0.7, 4.0, 30.0])
    activation = single(name)
    with mp.workdps(60):
        for got, exact in zip(
            (activation.function, activation.derivative, activation.second_derivative),
            EXACT[name],
            strict=True,
        ):
            assert_allclose(got(x), [float(exact(mp.mpf(t))) for t in x], rtol=1e-12, atol=1e-300)


# ------------------------------------------------------------------------------------------ kernels


def test_small_gaps_at_large_variances_still_settle() -> None:
    """Squares of size 2500 must not be subtracted to find a gap of 1; there softplus is nearly a ReLU."""
    a, c = 2.5e3, 0.999
    gaps = [kernel(name).value(a, c * a, (1 - c) * a).gap for name in ("softplus", "relu")]
    assert_allclose(*gaps, rtol=2e-2)


@pytest.mark.parametrize("name", [*SMOOTH, "erf"])
@pytest.mark.parametrize("c", [-1.0, -0.7, -1e-4, 0.0, 1e-4, 0.4, 0.98, 1.0])
@pytest.mark.parametrize("a", [0.01, 1.0, 3.0])
def test_kernels_match_the_plain_product_rule(name: str, c: float, a: float) -> None:
    activation = single(name)
    k, b, d = gaussian_kernels(activation), c * a, (1 - c) * a
    assert_allclose(k.value(a, b, d), plain_moments(activation.function, a, b), rtol=1e-12, atol=3e-15)
    assert_allclose(k.derivative(a, b, d), plain_moments(activation.derivative, a, b), rtol=1e-12, atol=3e-15)
    turn = plain_moments(activation.second_derivative, a, b).overlap
    assert_allclose(k.curvature(a, b, d), turn, rtol=1e-11, atol=3e-15)


@pytest.mark.parametrize("name", ["tanh", "softplus"])
@pytest.mark.parametrize(("a", "c"), [(100.0, 0.5), (400.0, 0.02), (2000.0, 0.5), (900.0, 0.97)])
def test_large_variances_match_the_plain_product_rule_on_a_fine_grid(name: str, a: float, c: float) -> None:
    f = single(name).derivative
    b, d = a * c, a - a * c
    # conditional mean by direct sums of step 0.05 in u
    z = np.arange(-8.5, 8.5, 0.05 / math.sqrt(a))[::7]
    zeta = np.arange(-8.5, 8.5, 0.06 / math.sqrt(d))
    w = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    inner = np.exp(-0.5 * zeta**2) / np.exp(-0.5 * zeta**2).sum()
    means = np.array([f(math.sqrt(b) * x + math.sqrt(d) * zeta) @ inner for x in z])
    assert_allclose(kernel(name).derivative(a, b, d).overlap, w @ means**2, rtol=1e-11)


each_name = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize("d", [1e-2, 1e-4, 1.1e-4, 1e-6, 1e-10, 1e-20, 1e-60])
@each_name
def test_gap_of_nearly_equal_inputs_keeps_its_digits(name: str, d: float) -> None:
    r"""E phi^2 - I_phi = d E phi'^2 - d^2 E phi''^2/2 + ... by Price's theorem at covariance a."""
    k, a = kernel(name), 2.0
    gap = k.value(a, a - d, d).gap
    assert gap > 0
    order = 0.51 if name in ("relu", "leaky_relu") else 1.0  # a kink corrects at relative order sqrt(d)
    assert_allclose(gap, d * k.derivative(a, a, 0.0).moment, rtol=5 * d**order + 1e-12)


@pytest.mark.parametrize("b", [1e-7, -1e-8, 1e-20])
def test_a_small_covariance_keeps_its_digits(b: float) -> None:
    """E tanh u tanh v = b (E tanh')^2 up to relative order b^2."""
    k, a = kernel("tanh"), 1.7
    assert_allclose(k.value(a, b, a - b).overlap, b * k.derivative(a, 0.0, a).overlap, rtol=3e-13)


@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_arccosine_gap_matches_mpmath_where_it_cancels(slope: float) -> None:
    a = mp.mpf(2)
    for d in (3.6e-2, 1e-2, 1e-8, 1e-25):
        with mp.workdps(80):
            c = 1 - mp.mpf(d) / a
            even = ((1 - mp.mpf(slope)) / 2) ** 2 * 2 * a / mp.pi * (mp.sqrt(1 - c * c) + c * mp.asin(c))
            exact = a * (1 + mp.mpf(slope) ** 2) / 2 - ((1 + mp.mpf(slope)) / 2) ** 2 * c * a - even
            angle = 2 * ((1 - mp.mpf(slope)) / 2) ** 2 * mp.acos(c) / mp.pi
        k = PiecewiseLinear(slope)
        assert_allclose(k.value(2.0, 2.0 - d, d).gap, float(exact), rtol=4e-15)
        assert_allclose(k.derivative(2.0, 2.0 - d, d).gap, float(angle), rtol=4e-15)


def test_relu_series_meets_its_closed_form() -> None:
    """Opposite inputs leave only sin x - x cos x, here on both sides of the change at x = 0.2."""
    for angle in (0.19999, 0.20001, 0.1):
        c = -math.cos(angle)
        with mp.workdps(40):
            x = mp.acos(-mp.mpf(c))
            exact = float((mp.sin(x) - x * mp.cos(x)) / (2 * mp.pi))
        assert_allclose(kernel("relu").value(1.0, c, 1 - c).overlap, exact, rtol=5e-14)


@each_name
def test_curvature_is_the_derivative_of_the_overlap_of_slopes(name: str) -> None:
    k, a, b, h = kernel(name), 1.3, 0.6, 1e-4
    difference = k.derivative(a, b + h, a - b - h).overlap - k.derivative(a, b - h, a - b + h).overlap
    assert_allclose(k.curvature(a, b, a - b), difference / (2 * h), rtol=1e-6, atol=1e-10)


@each_name
def test_fluctuations_vanish_with_the_gap(name: str) -> None:
    k = kernel(name)
    nothing = k.fluctuations(1.5, 0.0)
    assert_allclose([nothing.value, nothing.derivative, nothing.mixed, nothing.cross], 0.0, atol=1e-300)
    small = k.fluctuations(1.5, 1e-14)
    assert_allclose(small.square, nothing.square, rtol=1e-6)
    assert small.value == pytest.approx(1e-28 * nothing.square, rel=1e-5)  # V = d phi'^2


@each_name
def test_zero_variance_evaluates_at_zero(name: str) -> None:
    activation = single(name)
    at_zero = float(activation.function(np.zeros(1))[0])
    value = kernel(name).value(0.0, 0.0, 0.0)
    assert_allclose(value, [at_zero**2, at_zero**2, 0.0], atol=1e-16)


def test_derivatives_of_a_named_activation_are_looked_at_once_and_of_others_at_every_call() -> None:
    """A function of the user's own may give other values at the next call."""
    slope = {"of x": np.cos}
    own = activations.Activation("own", np.sin, lambda x: slope["of x"](x))
    assert gaussian_kernels(activations.tanh) is gaussian_kernels(activations.tanh)
    assert gaussian_kernels(own) is not gaussian_kernels(own)
    slope["of x"] = np.sin
    with refusal("derivative must be the derivative of the function before it"):
        gaussian_kernels(own)


# ----- what cannot be averaged


def test_wrong_derivatives_are_found_out() -> None:
    with refusal(r"^derivative must be the derivative of the function before it"):
        gaussian_kernels(Activation("bad", np.tanh, np.cos))
    with refusal(r"^second_derivative must be the derivative of the function"):
        gaussian_kernels(Activation("bad", np.sin, np.cos, np.sin))


@pytest.mark.parametrize("arguments", [(1e13, 5e12, 5e12), (1e14, 1e14, 1e-9), (1e14, 0.0, 1e14)])
def test_variance_beyond_the_rule_is_refused(arguments: tuple[float, float, float]) -> None:
    with pytest.raises(ConvergenceError, match=r"activation 'tanh': variance 1e\+1. is too large"):
        kernel("tanh").value(*arguments)


@pytest.mark.parametrize("name", ["relu", "erf", "tanh"])
def test_rounding_of_a_recursion_is_forgiven(name: str) -> None:
    k = kernel(name)
    assert k.value(2.0, 2.0 + 1e-12, 0.0) == k.value(2.0, 2.0, 0.0)
    assert k.derivative(2.0, -2.0 - 1e-12, 4.0 + 1e-12) == k.derivative(2.0, -2.0, 4.0)


def test_overflow_of_a_closed_form_is_infinite_and_of_a_quadrature_unsettled() -> None:
    assert leaky_relu(-1e75).kernels.value(1e200, 0.0, 1e200) == (math.inf, math.inf, math.inf)
    with pytest.raises(ConvergenceError, match="did not settle"):
        NumericalKernels("huge", lambda x: 1e300 * np.tanh(x), lambda x: 1e300 / np.cosh(x) ** 2).value(
            1.0, 0.5, 0.5
        )


def test_a_small_share_of_a_variance_does_not_make_the_grid_long() -> None:
    """One grid for both parts would take its step from the smaller part and its length from the larger one."""
    for level in range(5):
        grid = _quadrature._trapezoid(1e-8, 1.0, level)
        assert isinstance(grid, _quadrature._Tensor)
        assert len(grid.weights) * len(grid._zeta) < 1 << 21
