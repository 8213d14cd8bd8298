"""Fixed points, phases and depth scales: long recursions, the literature's critical points, edges of the domain."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.refusals import refusal
from theory.activations import leaky_relu
from theory.activations.gaussian import ConvergenceError
from theory.criticality import critical_weight_variance, depth_scales, variance_fixed_point
from theory.order_parameters import order_parameters

SETTINGS = [
    ("relu", 1.3, 0.4),
    ("leaky_relu", 1.1, 0.2),
    ("erf", 1.1, 0.15),
    ("erf", 2.3, 0.1),
    ("erf", 2.0, 0.0),
]


@pytest.mark.parametrize(("name", "weight", "bias"), [*SETTINGS, ("tanh", 0.9, 0.3), ("gelu", 1.1, 0.2)])
def test_deep_networks_arrive_at_the_fixed_points(name: str, weight: float, bias: float) -> None:
    """The recursion itself, started at correlated inputs, for as many layers as it needs."""
    found = depth_scales(name, weight_variance=weight, bias_variance=bias)
    depth = 3 + math.ceil(20 * max(found.variance_depth, found.correlation_depth))
    deep = order_parameters(name, depth=depth, weight_variance=weight, bias_variance=bias, input_overlap=0.3)
    variance = weight * deep.q_hat_t[-1] + bias
    assert found.variance == pytest.approx(variance, rel=1e-7)
    assert found.correlation * variance == pytest.approx(
        weight * deep.q_hat_st[-1] + bias, rel=1e-7, abs=1e-7
    )


@pytest.mark.parametrize(("name", "weight", "bias"), SETTINGS)
def test_deviations_from_the_fixed_points_shrink_by_the_slopes(name: str, weight: float, bias: float) -> None:
    """Ratios of successive differences of the recursion, after ten depth scales."""
    found = depth_scales(name, weight_variance=weight, bias_variance=bias)
    slow = math.ceil(10 * found.correlation_depth)
    deep = order_parameters(
        name, depth=slow + 4, weight_variance=weight, bias_variance=bias, input_overlap=0.4
    )
    covariance, variance = np.diff(deep.q_hat_st), np.diff(deep.q_hat_t)
    if found.phase == "chaotic":
        assert covariance[-1] / covariance[-2] == pytest.approx(found.correlation_slope, rel=1e-3)
    else:
        gaps = deep.q_hat_t - deep.q_hat_st
        assert gaps[-1] / gaps[-2] == pytest.approx(found.correlation_slope, rel=1e-3)
    fast = math.ceil(7 * found.variance_depth)
    assert variance[fast] / variance[fast - 1] == pytest.approx(found.variance_slope, rel=1e-2)


@pytest.mark.parametrize(("name", "weight", "bias"), SETTINGS)
def test_near_inputs_part_by_chi(name: str, weight: float, bias: float) -> None:
    """The recursion itself, once its variance is at the fixed point: chaos or order."""
    found = depth_scales(name, weight_variance=weight, bias_variance=bias)
    depth = math.ceil(8 * found.variance_depth) + 4
    deep = order_parameters(
        name, depth=depth, weight_variance=weight, bias_variance=bias, input_overlap=1 - 1e-5
    )
    gaps = deep.q_hat_t - deep.q_hat_st
    assert gaps[-1] / gaps[-2] == pytest.approx(found.chi, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "bias", "weight", "accuracy"),
    [
        ("tanh", 2.01e-5, 1.05, 1e-5),  # Xiao et al. (2018)
        ("gelu", 0.17292239, 1.98305826, 1e-7),  # Roberts, Yaida and Hanin (2022), section 5.3
        ("tanh", 0.0, 1.0, 1e-15),
        ("erf", 0.0, math.pi / 4, 1e-15),
        ("relu", 0.0, 2.0, 1e-15),
        ("linear", 0.0, 1.0, 1e-15),
    ],
)
def test_critical_points_of_the_literature(name: str, bias: float, weight: float, accuracy: float) -> None:
    assert critical_weight_variance(name, bias) == pytest.approx(weight, rel=accuracy)


@pytest.mark.parametrize("bias", [1e-14, 1e-18, 1e-300])
def test_tiny_biases_move_the_critical_point_by_their_cube_root(bias: float) -> None:
    """tanh: q E phi'^2 - E phi^2 = (4/3) q^3 + ..., and 1/E phi'^2 = 1 + 2 q + ..."""
    weight = critical_weight_variance("tanh", bias)
    assert weight == pytest.approx(1 + 2 * (0.75 * bias) ** (1 / 3), rel=4e-9)
    with refusal("such that gelu is critical at some weight variance"):
        critical_weight_variance("gelu", bias)  # there the fixed point repels


@given(st.just("erf"), st.floats(1e-3, 2.0))
@settings(deadline=None, max_examples=20, derandomize=True)
def test_the_critical_line_parts_order_and_chaos(name: str, bias: float) -> None:
    weight = critical_weight_variance(name, bias)
    phases = [
        depth_scales(name, weight_variance=weight * x, bias_variance=bias).phase for x in (0.99, 1.0, 1.01)
    ]
    assert phases == ["ordered", "critical", "chaotic"]


@pytest.mark.parametrize("slope", [0.0, 0.01, -1.0, 0.6])
def test_leaky_relu_is_critical_at_one_point(slope: float) -> None:
    phi = leaky_relu(slope)
    weight = critical_weight_variance(phi, 0)
    assert weight == pytest.approx(2 / (1 + slope**2), rel=1e-15)
    found = depth_scales(phi, weight_variance=weight, bias_variance=0.0)
    assert (found.phase, found.variance, found.correlation_depth) == ("critical", weight, math.inf)
    with refusal(r"bias_variance must be such that .* is critical at some weight variance"):
        critical_weight_variance(phi, 0.1)
    with refusal("weight_variance must be such that the variance has a fixed point"):
        variance_fixed_point(phi, weight_variance=weight, bias_variance=0.1)
    with refusal("weight_variance must be such that the variance has a fixed point"):
        depth_scales(phi, weight_variance=1.01 * weight, bias_variance=0.0)


def test_smooth_rectifiers_run_away_like_relu() -> None:
    with refusal(r"fixed point for softplus and bias_variance 0\.3, got 2\.5"):
        variance_fixed_point("softplus", weight_variance=2.5, bias_variance=0.3)
    with refusal("bias_variance must be such that softplus is critical"):
        critical_weight_variance("softplus", 0.3)


def test_signals_die_out_below_the_critical_point() -> None:
    found = depth_scales("tanh", weight_variance=0.6, bias_variance=0.0)
    assert found == (0.0, 0.6, 0.6, "ordered", 1.0, 0.6, -1 / math.log(0.6), -1 / math.log(0.6))


def test_without_weights_only_the_biases_are_left() -> None:
    for bias in (0.0, 0.7, 1e-300):
        found = depth_scales("sigmoid", weight_variance=0, bias_variance=bias)
        assert found == (bias, 0.0, 0.0, "ordered", 1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("bias", [1e-12, 1e-300])
def test_tiny_biases_have_tiny_fixed_points(bias: float) -> None:
    assert variance_fixed_point("tanh", weight_variance=0.5, bias_variance=bias) == pytest.approx(
        2 * bias, rel=1e-9
    )


def test_slope_of_a_tiny_variance_is_that_at_zero() -> None:
    """softplus: phi'(0)^2 + phi(0) phi''(0) = 1/4 + log(2)/4."""
    found = depth_scales("softplus", weight_variance=1e-9, bias_variance=0.0)
    assert found.variance == pytest.approx(1e-9 * math.log(2) ** 2, rel=1e-8)
    assert found.variance_slope == pytest.approx(1e-9 * (1 + math.log(2)) / 4, rel=1e-7)


@pytest.mark.parametrize("name", ["tanh", "erf", "hard_tanh"])
def test_variances_that_take_minutes_are_refused(name: str) -> None:
    for large in (
        {"weight_variance": 2.0**31, "bias_variance": 0.1},
        {"weight_variance": 1.0, "bias_variance": 2.0**31},
    ):
        argument = max(large, key=large.__getitem__)
        with pytest.raises(ConvergenceError, match=rf"{argument} 2.14748e\+09 is too large"):
            variance_fixed_point(name, **large)
