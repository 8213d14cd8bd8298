"""What is no activation, or none that can be averaged, is told."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from theory.activations import Activation, _quadrature, gaussian_kernels, leaky_relu, resolve, single
from theory.activations.gaussian import ConvergenceError, Kernels, NumericalKernels


def kernel(name: str) -> Kernels:
    return gaussian_kernels(single(name))


def test_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"activation must be one of .*, got 'swish'"):
        single("swish")


def test_sequence_must_fit_the_layers() -> None:
    assert resolve("tanh", 0) == ()
    with pytest.raises(ValueError, match=r"activation must be one or one per hidden layer \(3\), got 2"):
        resolve(["relu", "tanh"], 3)
    with pytest.raises(ValueError, match="activation must be an Activation, a name or a sequence"):
        resolve(3.0, 2)
    with pytest.raises(ValueError, match="activation must be an Activation or its name, got <ufunc 'tanh'>"):
        resolve([np.tanh, "relu"], 2)


@pytest.mark.parametrize("slope", [math.nan, math.inf])
def test_slope_must_be_finite(slope: float) -> None:
    with pytest.raises(ValueError, match="slope must be finite"):
        leaky_relu(slope)


def test_undeclared_kink_is_found_out() -> None:
    hidden = Activation("hidden", lambda x: np.maximum(x, 0), lambda x: np.where(x > 0, 1.0, 0.5 * (x == 0)))
    with pytest.raises(ConvergenceError, match="did not settle to 1e-12: is it smooth") as caught:
        gaussian_kernels(hidden).value(1.0, 0.5, 0.5)
    assert caught.value.estimate[0] == pytest.approx(kernel("relu").value(1.0, 0.5, 0.5).overlap, rel=1e-2)


def test_wrong_derivatives_are_found_out() -> None:
    with pytest.raises(ValueError, match=r"^derivative must be the derivative of what stands before it"):
        gaussian_kernels(Activation("bad", np.tanh, np.cos))
    with pytest.raises(ValueError, match=r"^second_derivative must be the derivative of what"):
        gaussian_kernels(Activation("bad", np.sin, np.cos, np.sin))


def test_callables_must_be_elementwise_and_finite() -> None:
    with pytest.raises(ValueError, match="activation 'sum' must be elementwise, got shape"):
        NumericalKernels("sum", np.sum, np.cos).value(1.0, 0.5, 0.5)
    with pytest.raises(ValueError, match="activation 'log' must be finite with its derivatives"):
        NumericalKernels("log", np.log, lambda x: 1 / x).value(1.0, 0.5, 0.5)


def test_missing_second_derivative_is_refused_where_it_is_needed() -> None:
    bare = gaussian_kernels(Activation("sine", np.sin, np.cos))
    assert bare.derivative(1.0, 0.5, 0.5).overlap == pytest.approx(math.exp(-1) * math.cosh(0.5), rel=1e-12)
    for wanted in (lambda: bare.curvature(1.0, 0.5, 0.5), lambda: bare.fluctuations(0.5, 0.5)):
        with pytest.raises(ValueError, match="second_derivative must be given for activation 'sine'"):
            wanted()


def test_curvature_at_a_kink_needs_a_gap() -> None:
    with pytest.raises(ValueError, match="gap must be positive for an activation with a kink"):
        kernel("relu").curvature(1.0, 1.0, 0.0)


@pytest.mark.parametrize("arguments", [(1e13, 5e12, 5e12), (1e14, 1e14, 1e-9), (1e14, 0.0, 1e14)])
def test_variance_beyond_the_rule_is_refused(arguments: tuple[float, float, float]) -> None:
    with pytest.raises(ConvergenceError, match=r"activation 'tanh': variance 1e\+1. is too large"):
        kernel("tanh").value(*arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: leaky_relu(1e80), r"slope must be at most 1e\+75 in size"),
        (lambda: leaky_relu([1.0, 2.0]), "slope must be a scalar"),
        (lambda: single(["relu"]), r"activation must be an Activation or its name, got \['relu'\]"),
        (lambda: resolve("relu", -1), "layers must be an integer >= 0"),
        (lambda: resolve(itertools.count(), 2), r"one per hidden layer \(2\), got more"),
        (lambda: resolve(np.array(3), 2), "activation must be an Activation, a name"),
        (lambda: gaussian_kernels("relu"), "activation must be an Activation, got 'relu'"),
        (lambda: Activation("f", None, np.cos), "function must be callable on arrays, got None"),
        (lambda: Activation("f", np.sin, np.cos, 3.0), "second_derivative must be callable"),
        (lambda: Activation(3, np.sin, np.cos), "name must be a string"),
        (lambda: Activation("f", np.sin, np.cos, kinks=0.0), "kinks must be a sequence of points"),
        (lambda: Activation("f", np.sin, np.cos, kernels="closed"), "kernels must be Kernels or None"),
        (lambda: NumericalKernels("f", None, np.cos), "function must be callable on arrays"),
        (
            lambda: NumericalKernels("f", lambda x: 1j * x, np.cos).value(1.0, 0.5, 0.5),
            "'f' must be real .* complex128",
        ),
        (lambda: kernel("relu").value(1.0, 2.0, 0.0), "covariance must be between -variance and variance"),
        (lambda: kernel("relu").value(1.0, 1.0 + 1e-6, 0.0), "covariance must be between -variance"),
        (lambda: kernel("erf").value(1.0, 0.5, 0.2), "gap must be variance - covariance, got 0.2"),
        (lambda: kernel("erf").value(1.0, 0.5, 0.5 + 1e-6), "gap must be variance - covariance"),
        (lambda: kernel("erf").value(3e307, 0.0, 3e307), "variance must be .* below 2e307"),
        (lambda: kernel("erf").derivative(None, 0.5, 0.2), "variance must be real numbers, got None"),
        (lambda: kernel("relu").curvature(1.0, -1.0, 2.0), "covariance must be above -variance"),
        (
            lambda: kernel("tanh").fluctuations(math.inf, 1.0),
            "covariance must be non-negative, finite and below",
        ),
    ],
)
def test_what_is_no_activation_or_no_pair_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", ["relu", "erf", "tanh"])
def test_rounding_of_a_recursion_is_forgiven(name: str) -> None:
    k = kernel(name)
    assert k.value(2.0, 2.0 + 1e-12, 0.0) == k.value(2.0, 2.0, 0.0)
    assert k.derivative(2.0, -2.0 - 1e-12, 4.0 + 1e-12) == k.derivative(2.0, -2.0, 4.0)


def test_overflow_of_a_closed_form_is_infinite_and_of_a_quadrature_unsettled() -> None:
    assert leaky_relu(-1e75).kernels is not None
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
