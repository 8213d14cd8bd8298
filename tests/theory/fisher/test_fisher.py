"""Fisher eigenvalue statistics: hand-made networks, naive recursions at high precision, stored values."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from tests.theory.fisher.networks import NAMES, RELU, TANH
from theory.activations import Activation
from theory.fisher import (
    eigenvalue_statistics,
    fluctuation_constants,
    kappas,
    mean_subtracted_statistics,
    parameter_count,
    rank_bound,
)
from theory.order_parameters import order_parameters


def naive_kappas(name: str, depth: int, weight: float, bias: float, digits: int) -> list[float]:
    """kappa1, kappa2 and their difference for erf or a leaky ReLU, straight from the definitions."""
    with mp.workdps(digits):
        w, b = mp.mpf(weight), mp.mpf(bias)
        slope = {"relu": mp.mpf(0), "leaky_relu": mp.mpf(0.01)}.get(name)

        def value(x: Any, a: Any) -> Any:
            if slope is None:
                return 2 / mp.pi * mp.asin(2 * x / (1 + 2 * a))
            t = mp.acos(x / a)
            one = a * (mp.sin(t) + (mp.pi - t) * mp.cos(t)) / (2 * mp.pi)
            other = a * (mp.sin(t) - t * mp.cos(t)) / (2 * mp.pi)  # E relu(u) relu(-v)
            return (1 + slope**2) * one - 2 * slope * other

        def derivative(x: Any, a: Any) -> Any:
            if slope is None:
                return 4 / mp.pi / mp.sqrt((1 + 2 * a) ** 2 - 4 * x * x)
            t = mp.acos(x / a)
            return (1 + slope**2) * (mp.pi - t) / (2 * mp.pi) + 2 * slope * t / (2 * mp.pi)

        hats, slopes = [(mp.mpf(1), mp.mpf(0))], []
        for _ in range(depth - 1):
            a, c = (w * x + b for x in hats[-1])
            hats.append((value(a, a), value(c, a)))
            slopes.append((derivative(a, a), derivative(c, a)))
        tilde, total = (mp.mpf(1), mp.mpf(1)), [mp.mpf(0), mp.mpf(0)]
        for layer in reversed(range(depth)):
            total = [s + t * h for s, t, h in zip(total, tilde, hats[layer], strict=True)]
            if layer:
                tilde = (w * tilde[0] * slopes[layer - 1][0], w * tilde[1] * slopes[layer - 1][1])
        one, two = (x / (depth - 1) for x in total)
        return [float(one), float(two), float(one - two)]


# ------------------------------------------------------------------------------------------- kappas


@pytest.mark.parametrize(
    ("setting", "kappa1", "kappa2"), [(RELU, 1.5, 0.342854), (TANH, 0.955522, 0.118615)], ids=["relu", "tanh"]
)
def test_kappas_of_the_papers_figure_one(setting: dict[str, Any], kappa1: float, kappa2: float) -> None:
    result = kappas(**setting)
    assert_allclose(result, [2.0, kappa1, kappa2, kappa1 - kappa2], atol=6e-7)


@pytest.mark.parametrize(
    ("name", "depth", "weight", "bias"),
    [
        ("erf", 100, 0.6, 0.3),
        ("erf", 100, 0.3, 1.0),
        ("erf", 100, 3.0, 0.1),
        ("erf", 3, 2.0, 0.3),
        ("relu", 100, 2.0, 0.0),
        ("relu", 100, 1.0, 1.0),
        ("relu", 20, 1e-3, 1.0),
        ("relu", 100, 4.0, 1.0),
        ("relu", 3, 2.0, 0.5),
        ("leaky_relu", 100, 1.0, 1.0),
        ("leaky_relu", 4, 2.0, 0.0),
    ],
)
def test_difference_survives_cancellation(name: str, depth: int, weight: float, bias: float) -> None:
    """Against 250 digits and no care, where double precision and no care loses up to 60 orders."""
    result = kappas(name, depth=depth, weight_variance=weight, bias_variance=bias)
    exact = naive_kappas(name, depth, weight, bias, 250)
    assert_allclose(result[1:], exact, rtol=2e-13)


@pytest.mark.parametrize(("weight", "bias", "depth"), [(0.5, 0.3, 40), (1.2, 0.4, 12), (2.5, 0.1, 12)])
def test_quadrature_route_agrees_with_the_closed_route(weight: float, bias: float, depth: int) -> None:
    """erf given as a user's activation goes through the trapezoidal rule."""
    root = 2 / math.sqrt(math.pi)
    from scipy.special import erf

    mine = Activation(
        "mine", erf, lambda x: root * np.exp(-(x**2)), lambda x: -2 * root * x * np.exp(-(x**2))
    )
    setting = {"depth": depth, "weight_variance": weight, "bias_variance": bias}
    assert_allclose(kappas(mine, **setting), kappas("erf", **setting), rtol=3e-12)


@pytest.mark.parametrize("name", ["tanh", "softplus"])
def test_smooth_kappas_match_sums_of_precise_order_parameters(name: str) -> None:
    setting = {"depth": 4, "weight_variance": 1.5, "bias_variance": 0.2}
    q = order_parameters(name, **setting, digits=18)
    ratios = np.array([0.5, 1.0, 2.0, 1.5])
    alpha = 0.5 * 1 + 1 * 2 + 2 * 1.5
    one = float((ratios * q.q_tilde_t * q.q_hat_t).sum() / alpha)
    two = float((ratios * q.q_tilde_st * q.q_hat_st).sum() / alpha)
    result = kappas(name, **setting, width_ratios=ratios.tolist())
    assert_allclose(result, [alpha, one, two, one - two], rtol=1e-12)


@pytest.mark.parametrize("depth", [2, 3, 7])
def test_critical_relu_has_kappa_one_of_depth_over_depth_minus_one(depth: int) -> None:
    result = kappas("relu", depth=depth, weight_variance=2.0, bias_variance=0.0)
    assert result.kappa1 == pytest.approx(depth / (depth - 1), rel=1e-14)


def test_eq_11_has_the_backward_moment_not_the_forward_one_twice() -> None:
    """One hidden linear layer, weights of variance w: Tr K / (C T M) = w + (w + b) exactly."""
    result = kappas("linear", depth=2, weight_variance=3.0, bias_variance=0.5)
    assert_allclose(result, [1.0, 3.0 + 3.5, 0.5, 6.0])


@given(
    st.sampled_from([*NAMES[:3], "erf", "tanh"]),
    st.integers(2, 6),
    st.floats(0.05, 4),
    st.floats(0, 2),
)
@settings(deadline=None, max_examples=50, derandomize=True)
def test_kappas_are_ordered(name: str, depth: int, weight: float, bias: float) -> None:
    result = kappas(name, depth=depth, weight_variance=weight, bias_variance=bias)
    assert result.kappa1 > result.difference * (1 - 1e-12) > 0
    assert result.kappa2 >= 0
    assert_allclose(result.kappa1 - result.kappa2, result.difference, atol=1e-12 * result.kappa1)


@pytest.mark.parametrize("name", ["tanh", "erf", "linear"])
@pytest.mark.parametrize("depth", [2, 5])
def test_odd_activation_without_bias_is_centred(name: str, depth: int) -> None:
    assert kappas(name, depth=depth, weight_variance=2.0, bias_variance=0.0).kappa2 == 0.0
    assert kappas(name, depth=depth, weight_variance=2.0, bias_variance=1e-6).kappa2 > 0


@given(st.floats(0.1, 10))
@settings(deadline=None, max_examples=20, derandomize=True)
def test_common_factor_of_the_widths_cancels(factor: float) -> None:
    """Widths alpha_l M only matter as products: alpha -> f^2 alpha, kappa -> kappa/f."""
    one = kappas(**TANH, width_ratios=[1.0, 2.0, 0.5])
    two = kappas(**TANH, width_ratios=[factor, 2 * factor, 0.5 * factor])
    assert_allclose(two, [one.alpha * factor**2, *(x / factor for x in one[1:])], rtol=1e-13)


def test_positive_homogeneity_of_relu_scales_kappas() -> None:
    """Without biases, a factor f of sigma_w^2 multiplies every term by f^(L-1)."""
    base = kappas("relu", depth=5, weight_variance=1.0, bias_variance=0.0)
    scaled = kappas("relu", depth=5, weight_variance=3.0, bias_variance=0.0)
    assert_allclose(scaled[1:], np.array(base[1:]) * 3.0**4, rtol=1e-13)


def test_without_weights_inputs_cannot_be_told_apart() -> None:
    result = kappas("relu", depth=3, weight_variance=0.0, bias_variance=0.7)
    assert_allclose(result, [2.0, 0.175, 0.175, 0.0])


# --------------------------------------------------------------------------------------- statistics


def test_leading_order_statistics_are_those_of_the_block_matrix() -> None:
    """C blocks, each kappa1 on and kappa2 off the diagonal, times alpha M / T; P - CT zeros."""
    width, t, c = 50, 7, 3
    k = kappas(**TANH, width_ratios=[1.0, 2.0, 0.5])
    block = np.full((t, t), k.kappa2) + np.eye(t) * (k.kappa1 - k.kappa2)
    values = np.tile(np.linalg.eigvalsh(block * k.alpha * width / t), c)
    parameters = k.alpha * width**2
    result = eigenvalue_statistics(**TANH, width=width, samples=t, outputs=c, width_ratios=[1.0, 2.0, 0.5])
    assert_allclose(
        result, [values.sum() / parameters, (values**2).sum() / parameters, values.max()], rtol=1e-12
    )


def test_finite_width_statistics_add_the_bias_parameters() -> None:
    width, t, c = 50, 7, 3
    k, q = kappas(**TANH), order_parameters(**TANH)
    own = k.alpha * width * k.kappa1 + q.q_tilde_t.sum()
    shared = k.alpha * width * k.kappa2 + q.q_tilde_st.sum()
    block = np.full((t, t), shared) + np.eye(t) * (own - shared)
    values = np.tile(np.linalg.eigvalsh(block / t), c)
    p = 50 * 51 + 50 * 51 + 3 * 51
    size = {"width": width, "samples": t, "outputs": c, "finite_width": True}
    result = eigenvalue_statistics(**TANH, **size)
    assert_allclose(result, [values.sum() / p, (values**2).sum() / p, values.max()], rtol=1e-12)
    centred = np.eye(t) - 1 / t
    trace = c * np.trace(centred @ block @ centred) / t / p
    assert mean_subtracted_statistics(**TANH, **size).mean == pytest.approx(trace, rel=1e-12)


def test_one_sample_statistics() -> None:
    size = {"width": 100, "samples": 1, "outputs": 2}
    result = eigenvalue_statistics(**RELU, **size)
    assert_allclose(result, [0.03, 2 * 2 * 1.5**2, 300.0])
    assert mean_subtracted_statistics(**RELU, **size) == (0.0, 0.0, 0.0)


def test_linear_network_by_sampling_its_exact_gram_matrix() -> None:
    """f = v' W x with biases: K(s, t) = (|v|^2 (x.x' + 1) + (Wx + b).(Wx' + b) + 1), averaged over draws."""
    rng, m, t, w, b = np.random.default_rng(7), 120, 5, 1.5, 0.4
    total = np.zeros((t, t))
    draws = 600
    for _ in range(draws):
        x = rng.standard_normal((m, t))
        h = rng.standard_normal((m, m)) @ x * math.sqrt(w / m) + math.sqrt(b) * rng.standard_normal((m, 1))
        v = rng.standard_normal(m) * math.sqrt(w / m)
        total += (v @ v) * (x.T @ x + 1) + h.T @ h + 1
    k = total / draws
    size = {"width": m, "samples": t, "outputs": 1, "weight_variance": w, "bias_variance": b}
    result = eigenvalue_statistics("linear", depth=2, **size, finite_width=True)
    p = parameter_count(depth=2, width=m, outputs=1)
    assert result.mean * p == pytest.approx(np.trace(k) / t, rel=0.01)
    assert result.largest == pytest.approx(k.sum() / t**2, rel=0.02)


# --------------------------------------------------------------------------------- parameter counts


def test_parameter_count_counts_weights_and_biases() -> None:
    # 6-3-12-2
    count = parameter_count(depth=3, width=6, outputs=2, width_ratios=[1.0, 0.5, 2.0])
    assert count == 6 * 3 + 3 + 3 * 12 + 12 + 12 * 2 + 2
    assert parameter_count(depth=1, width=4, outputs=3) == 15
    assert isinstance(count, int)


def test_rank_bound_is_attained_by_random_gradients() -> None:
    """A sum of C T matrices of rank one in P dimensions, drawn at random, has that rank."""
    for samples in (1, 4, 9):
        size = {"depth": 2, "width": 3, "outputs": 2, "width_ratios": [1.0, 1 / 3]}
        gradients = np.random.default_rng(samples).normal(size=(parameter_count(**size), 2 * samples))
        assert rank_bound(**size, samples=samples) == np.linalg.matrix_rank(gradients @ gradients.T)
    with pytest.raises(ValueError, match="samples must be an integer >= 1"):
        rank_bound(depth=2, width=3, outputs=2, samples=0)


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 1}, "depth must be an integer >= 2, got 1"),
        ({"width": 0}, "width must be an integer >= 1"),
        ({"samples": 0}, "samples must be an integer >= 1"),
        ({"samples": True}, "samples must be an integer"),
        ({"outputs": 0}, "outputs must be an integer >= 1"),
        ({"weight_variance": -1.0}, "weight_variance must be non-negative"),
        ({"bias_variance": math.inf}, "bias_variance must be non-negative and finite"),
        ({"width_ratios": [1.0, 1.0]}, "width_ratios must be a sequence of 3 numbers"),
        ({"width_ratios": [1.0, 0.0, 1.0]}, "width_ratios must be positive"),
        ({"width_ratios": [1.0, 0.3, 1.0], "finite_width": True}, "width_ratios must be such that width 8"),
        ({"activation": "nope"}, "activation must be one of"),
        (
            {"activation": Activation("sine", np.sin, np.cos)},
            "second_derivative must be given for activation",
        ),
        ({"activation": "linear", "weight_variance": 1e160}, "weight_variance must be small enough"),
    ],
)
@pytest.mark.parametrize("function", [eigenvalue_statistics, mean_subtracted_statistics])
def test_arguments_out_of_domain_are_refused(function: Any, change: dict[str, Any], message: str) -> None:
    setting = RELU | {"width": 8, "samples": 3, "outputs": 1} | change
    with pytest.raises(ValueError, match=message):
        function(**setting)


def test_fluctuation_constants_refuse_what_overflows_or_counts_nothing() -> None:
    setting = {"depth": 3, "bias_variance": 0.0}
    with pytest.raises(ValueError, match="weight_variance must be small enough not to overflow"):
        fluctuation_constants("relu", **setting, outputs=1, weight_variance=1e100)
    with pytest.raises(ValueError, match="outputs must be an integer >= 1"):
        fluctuation_constants("relu", **setting, outputs=0, weight_variance=1.0)


def test_parameters_are_counted_exactly_beyond_the_digits_of_a_float() -> None:
    width = 10**17 + 1
    assert parameter_count(depth=2, width=width, outputs=3) == width * (width + 1) + 3 * (width + 1)


def test_statistics_survive_overflow_of_their_parts() -> None:
    size = {"depth": 2, "width": 10**6, "samples": 10, "outputs": 1, "bias_variance": 0.0}
    found = eigenvalue_statistics("linear", weight_variance=1e149, **size)
    assert found.second_moment == pytest.approx((2e149) ** 2 / 10)  # kappa1 = 2 sigma_w^2, kappa2 = 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 10**9}, "depth must be at most 100000"),
        ({"depth": 20_000}, r"depth must be small enough for memory \(it needs about 59.6 GiB"),
        ({"width": 10**30}, "width must be at most 9223372036854775807"),
        (
            {"width_ratios": [1e200, 1e200]},
            "width_ratios must be such that alpha neither overflows nor vanishes",
        ),
        ({"width_ratios": [1e-200, 1e-200]}, "width_ratios must be such that alpha"),
        ({"finite_width": "yes"}, "finite_width must be True or False"),
        ({"weight_variance": 1e160}, "weight_variance must be small enough not to overflow"),
    ],
)
def test_absurd_networks_are_refused(change: dict[str, Any], message: str) -> None:
    setting: dict[str, Any] = {"depth": 2, "width": 10**6, "samples": 10, "outputs": 1}
    setting |= {"weight_variance": 1.0, "bias_variance": 0.0} | change
    with pytest.raises(ValueError, match=message):
        mean_subtracted_statistics("linear", **setting)
