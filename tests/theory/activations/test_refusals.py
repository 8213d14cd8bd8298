"""What is no activation, or none that can be averaged, is told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from theory.activations import Activation, _quadrature, gaussian_kernels, leaky_relu, single
from theory.activations.gaussian import ConvergenceError, Kernels, NumericalKernels


def kernel(name: str) -> Kernels:
    return gaussian_kernels(single(name))


def test_wrong_derivatives_are_found_out() -> None:
    with pytest.raises(ValueError, match=r"^derivative must be the derivative of what stands before it"):
        gaussian_kernels(Activation("bad", np.tanh, np.cos))
    with pytest.raises(ValueError, match=r"^second_derivative must be the derivative of what"):
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
