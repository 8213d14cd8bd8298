"""Batch-normalised last layers: closed forms of linear networks, limits, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory import fisher
from theory.activations import resolve
from theory.fisher import (
    batch_normalised_constants,
    batch_normalised_statistics,
    deviation_share,
    output_variance,
)
from theory.fisher.mean_subtraction import mean_subtracted_largest
from theory.order_parameters import order_parameters, propagate

RELU = {"activation": "relu", "depth": 3, "weight_variance": 2.0, "bias_variance": 0.3}
TANH = {"activation": "tanh", "depth": 4, "weight_variance": 3.0, "bias_variance": 0.64}
SIZE = {"width": 300, "samples": 200, "outputs": 3}


# ------------------------------------------------------------------------------------------- eq. (17)


each_setting = pytest.mark.parametrize("setting", [RELU, TANH], ids=["relu", "tanh"])


@each_setting
def test_largest_at_fixed_samples_is_the_trace_over_what_is_left(setting: dict[str, Any]) -> None:
    size = {"width": 300, "samples": 7}
    statistics = fisher.mean_subtracted_statistics(**setting, **size, outputs=5, finite_width=True)
    count = fisher.parameter_count(depth=setting["depth"], width=300, outputs=5)
    largest = mean_subtracted_largest(**setting, **size, finite_width=True)
    assert largest * 5 * 6 == pytest.approx(statistics.mean * count, rel=1e-13)


def test_one_sample_leaves_nothing_and_two_leave_half() -> None:
    assert mean_subtracted_largest(**RELU, width=100, samples=1) == 0.0
    two, one_more = (mean_subtracted_largest(**RELU, width=100, samples=t) for t in (2, 3))
    assert two == pytest.approx(1.5 * one_more, rel=1e-14)


# ------------------------------------------------------------------------------------------ deviations


@each_setting
def test_output_variance_is_that_of_the_last_kernel(setting: dict[str, Any]) -> None:
    q = order_parameters(**setting)
    gap = setting["weight_variance"] * (q.q_hat_t[-1] - q.q_hat_st[-1])
    assert output_variance(**setting, samples=5) == pytest.approx(0.8 * gap, rel=1e-12)
    assert output_variance(**setting, samples=1) == 0.0


# ------------------------------------------------------------------------------------------ statistics


@each_setting
def test_unit_deviations_are_mean_subtraction(setting: dict[str, Any]) -> None:
    for finite in (False, True):
        expected = fisher.mean_subtracted_statistics(**setting, **SIZE, finite_width=finite)
        found = batch_normalised_statistics(**setting, **SIZE, finite_width=finite, q1=3.0, q2=3.0)
        assert_allclose(found, expected, rtol=1e-13)
    constants = batch_normalised_constants(**setting, outputs=3, q1=3.0, q2=3.0)
    assert_allclose(constants, fisher.fluctuation_constants(**setting, outputs=3), rtol=1e-13)


def test_statistics_are_those_of_the_weighted_blocks() -> None:
    """Traces of the expected blocks sigma_k^-1 sigma_m^-1 (M gap H 1{k = m} + fluctuations)."""
    inverse = np.array([0.7, 1.1, 2.3])  # 1 / sigma_k^2
    m, t = SIZE["width"], SIZE["samples"]
    k = fisher.kappas(**RELU)
    one, two = (fisher.fluctuation_constants(**RELU, outputs=c).c2 for c in (1, 2))
    scatter = np.full((3, 3), two / 2 - one) + np.eye(3) * (one - (two / 2 - one))
    trace = inverse.sum() * k.alpha * m * k.difference
    c2 = inverse @ scatter @ inverse
    squares = (inverse**2).sum() * (k.alpha * m * k.difference) ** 2 / t + m * c2

    sums = {"q1": inverse.sum(), "q2": (inverse**2).sum()}
    found = batch_normalised_statistics(**RELU, **SIZE, **sums)

    assert found.mean == pytest.approx((1 - 1 / t) * trace / (k.alpha * m**2), rel=1e-13)
    assert found.lower == pytest.approx(squares / trace, rel=1e-13)
    assert found.upper == pytest.approx(math.sqrt(squares), rel=1e-13)
    constants = batch_normalised_constants(**RELU, outputs=3, **sums)
    assert_allclose(constants, [m * c2 / trace, c2], rtol=1e-13)


def test_default_deviations_are_their_limit() -> None:
    inverse = 1 / output_variance(**RELU, samples=SIZE["samples"])
    found = batch_normalised_statistics(**RELU, **SIZE)
    expected = batch_normalised_statistics(**RELU, **SIZE, q1=3 * inverse, q2=3 * inverse**2)
    assert_allclose(found, expected, rtol=1e-13)


def test_one_output_has_no_scatter_of_different_ones() -> None:
    c1, c2 = batch_normalised_constants(**RELU, outputs=1, q1=0.5, q2=0.25)
    one = fisher.fluctuation_constants(**RELU, outputs=1)
    assert_allclose([c1, c2], [0.5 * one.c1, 0.25 * one.c2], rtol=1e-13)


# ----------------------------------------------------------------------------------------------- share


@pytest.mark.parametrize("depth", [2, 3, 5, 8])
@pytest.mark.parametrize("bias", [0.0, 0.7])
def test_linear_networks_lose_half_of_depth_plus_one(depth: int, bias: float) -> None:
    """sigma_w^2 = 1: signals share l noises up to layer l, so r = (L + 1)/2."""
    setting = {"depth": depth, "width": 70, "samples": 9, "weight_variance": 1.0, "bias_variance": bias}
    share = deviation_share("linear", **setting)
    assert 8 * share == pytest.approx(1 + (depth + 1) / 2 / 70 * (9 - 2), rel=1e-13)


def test_share_of_layers_of_different_widths() -> None:
    ratios = np.array([0.7, 1.3, 0.4])
    above = ratios[::-1].cumsum()[::-1]
    setting = {"depth": 3, "weight_variance": 1.0, "bias_variance": 0.3, "width_ratios": ratios.tolist()}
    share = deviation_share("linear", **setting, width=70, samples=9)
    assert 8 * share == pytest.approx(1 + (above / ratios).sum() / above[0] / 70 * 7, rel=1e-12)


def test_read_out_weights_are_in_the_outputs_and_in_the_backward_signal() -> None:
    """Three ReLU layers: every covariance of noises written out, that of the last layer's units thrice."""
    w, b = 2.0, 0.3
    q = propagate(resolve("relu", 2), weight_variance=w, bias_variance=b)
    z, zeta = np.linspace(-8, 8, 401)[:, None], np.linspace(-8, 8, 4001)
    normal = [np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum() for x in (z[:, 0], zeta)]

    def conditional(layer: int) -> tuple[float, float]:
        """Squares of Var(relu) and of Cov(relu, step), given z and averaged over it."""
        u = math.sqrt(q.covariance[layer]) * z + math.sqrt(q.gap[layer]) * zeta
        value, step = np.maximum(u, 0), (u > 0).astype(float)
        mean, slope = value @ normal[1], step @ normal[1]
        variance, covariance = value**2 @ normal[1] - mean**2, mean * (1 - slope)
        return normal[0] @ variance**2, normal[0] @ covariance**2

    correlation = [c / v for c, v in zip(q.covariance, q.variance, strict=True)]
    s1, s2 = (w * (math.pi - math.acos(c)) / (2 * math.pi) for c in correlation)
    curvature = 1 / (2 * math.pi * math.sqrt(q.variance[1] ** 2 - q.covariance[1] ** 2))
    (v1, _), (v2, cross) = conditional(0), conditional(1)
    turn = w * w * curvature * q.q_hat_st[1]
    # coefficients of the input overlap, of the units of layer 1 and 2 in f(s) f(t) / w and in K / M
    outputs = np.array([s1 * s2, s2, 1.0])
    gram = np.array([q.q_tilde_st[0] + s1 * (q.q_tilde_st[1] + turn + s2), q.q_tilde_st[1] + turn + s2, 1.0])
    overlap = outputs * gram @ np.array([1.0, v1, v2]) + 3 * w * cross * q.q_hat_st[1]
    k = fisher.kappas("relu", depth=3, weight_variance=w, bias_variance=b)
    r = overlap / q.forward_gap[-1] / k.alpha / k.difference

    share = deviation_share("relu", depth=3, width=500, samples=9, weight_variance=w, bias_variance=b)
    assert 8 * share == pytest.approx(1 + r / 500 * (9 - 2), rel=1e-6)


# ---------------------------------------------------------------------------------------------- errors
