"""Order parameters: closed recursions, a naive mpmath recursion, and the network they describe."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from theory.activations import Activation, leaky_relu, resolve
from theory.order_parameters import (
    ConvergenceError,
    input_derivative,
    order_parameters,
    preactivation_moment,
    propagate,
)

NAMES = ["relu", "leaky_relu", "linear", "tanh", "erf", "sigmoid", "softplus", "gelu"]
SINE = Activation("sine", np.sin, np.cos, lambda x: -np.sin(x))


def test_relu_at_the_critical_variance_keeps_unit_moments() -> None:
    """sigma_w^2 = 2, no bias: q_t^l = 2, and the overlap iterates the arc-cosine map."""
    result = order_parameters("relu", depth=6, weight_variance=2.0, bias_variance=0.0)
    assert_allclose(result.q_hat_t, 1.0, rtol=1e-15)
    assert_allclose(result.q_tilde_t, 1.0, rtol=1e-15)
    c, slopes = 0.0, [1.0]
    for layer in range(6):
        assert_allclose(result.q_hat_st[layer], c, atol=1e-15)
        slopes.append(slopes[-1] * (math.pi - math.acos(c)) / math.pi)
        c = (math.sqrt(1 - c * c) + c * (math.pi - math.acos(c))) / math.pi
    backward = np.array([slopes[6 - 1] / x for x in slopes[:6]])
    assert_allclose(result.q_tilde_st, backward, rtol=1e-13)


def test_linear_network_has_geometric_moments() -> None:
    w, b, x = 1.3, 0.4, -0.2
    result = order_parameters("linear", depth=4, weight_variance=w, bias_variance=b, input_overlap=x)
    own, shared = [1.0], [x]
    for _ in range(3):
        own.append(w * own[-1] + b)
        shared.append(w * shared[-1] + b)
    assert_allclose(result.q_hat_t, own, rtol=1e-14)
    assert_allclose(result.q_hat_st, shared, rtol=1e-13)
    assert_allclose(result.q_tilde_t, w ** np.arange(3, -1, -1.0), rtol=1e-14)
    assert_allclose(result.q_tilde_st, result.q_tilde_t, rtol=1e-14)


def test_sine_network_follows_its_own_closed_form() -> None:
    """E sin u sin v = exp(-a) sinh b, E cos u cos v = exp(-a) cosh b."""
    w, b = 1.5, 0.2
    result = order_parameters(SINE, depth=4, weight_variance=w, bias_variance=b, input_overlap=0.3)
    own, shared, slopes = [1.0], [0.3], []
    for _ in range(3):
        a, c = w * own[-1] + b, w * shared[-1] + b
        own.append(math.exp(-a) * math.sinh(a))
        shared.append(math.exp(-a) * math.sinh(c))
        slopes.append((w * math.exp(-a) * math.cosh(a), w * math.exp(-a) * math.cosh(c)))
    assert_allclose(result.q_hat_t, own, rtol=1e-13)
    assert_allclose(result.q_hat_st, shared, rtol=1e-12)
    t, s = np.array(slopes).T
    assert_allclose(result.q_tilde_t, np.append(np.cumprod(t[::-1])[::-1], 1.0), rtol=1e-12)
    assert_allclose(result.q_tilde_st, np.append(np.cumprod(s[::-1])[::-1], 1.0), rtol=1e-12)


def test_layers_use_their_own_activation() -> None:
    mixed = order_parameters(["relu", "linear"], depth=3, weight_variance=1.0, bias_variance=0.5)
    assert_allclose(mixed.q_hat_t, [1.0, 0.75, 1.25])
    assert_allclose(mixed.q_tilde_t, [0.5, 1.0, 1.0])


def test_depth_one_has_only_the_input_and_the_output() -> None:
    result = order_parameters("tanh", depth=1, weight_variance=2.0, bias_variance=1.0, input_overlap=0.5)
    assert [x.tolist() for x in result] == [[1.0], [0.5], [1.0], [1.0]]


@pytest.mark.parametrize("name", [*NAMES, "hard_tanh"])
@pytest.mark.parametrize("overlap", [0.0, -0.6, 1.0])
def test_double_precision_agrees_with_mpmath(name: str, overlap: float) -> None:
    setting = {"depth": 3, "weight_variance": 1.8, "bias_variance": 0.2, "input_overlap": overlap}
    fast = order_parameters(name, **setting)
    precise = order_parameters(name, **setting, digits=16)
    for x, y in zip(fast, precise, strict=True):
        assert x.dtype == np.float64
        assert_allclose(x, y.astype(float), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("weight_variance", [0.0, 0.5])
def test_a_saturated_erf_loses_no_digit(weight_variance: float) -> None:
    """Its slopes are those of 1 + 4 a, at a variance beside which a 1 is rounding."""
    setting: dict[str, Any] = {"depth": 2, "weight_variance": weight_variance, "bias_variance": 1e17}
    plain, few = order_parameters("erf", **setting), order_parameters("erf", **setting, digits=1)
    for name in ("q_hat_t", "q_hat_st", "q_tilde_t", "q_tilde_st"):
        assert_allclose(np.asarray(getattr(few, name), float), getattr(plain, name), rtol=0.1)
    slope = 4 / np.pi / np.sqrt(1 + 4 * (weight_variance + 1e17))
    assert_allclose(float(few.q_tilde_t[0]), weight_variance * slope, rtol=0.1)


def test_thirty_digits_of_tanh_match_an_independent_quadrature() -> None:
    """Variances in rotated coordinates, adaptive quadrature: nothing shared but the definition."""
    result = order_parameters("tanh", depth=2, weight_variance=0.5, bias_variance=0.25, digits=30)
    with mp.workdps(34):
        a, b = mp.mpf(3) / 4, mp.mpf(1) / 4
        cuts = [-13, -5, -2, 0, 2, 5, 13]
        own = mp.quad(lambda z: mp.tanh(mp.sqrt(a) * z) ** 2 * mp.npdf(z), cuts)
        assert abs(result.q_hat_t[1] - own) < mp.mpf(10) ** -30
        plus, minus, h = mp.sqrt((a + b) / 2), mp.sqrt((a - b) / 2), mp.mpf(1) / 8
        x = [h * k for k in range(-102, 103)]
        w = [mp.npdf(z) * h for z in x]
        first, second = [mp.tanh(plus * z) for z in x], [mp.tanh(minus * z) for z in x]
        # tanh(s + t) tanh(s - t) = (S^2 - T^2)/(1 - S^2 T^2)
        rows = [
            mp.fdot(w, [(s * s - t * t) / (1 - s * s * t * t) for t in second]) * v
            for s, v in zip(first, w, strict=True)
        ]
        assert abs(result.q_hat_st[1] - mp.fsum(rows)) < mp.mpf(10) ** -30


def test_coarse_digits_are_reported_when_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    from theory.activations import precise_kernels

    monkeypatch.setattr(precise_kernels, "_step", lambda scale, digits: mp.mpf(3))
    with pytest.raises(ConvergenceError, match="did not reach 20 digits") as caught:
        order_parameters("tanh", depth=2, weight_variance=1.0, bias_variance=0.0, digits=20)
    assert caught.value.estimate is not None


@given(
    st.sampled_from(["relu", "erf", "linear", "leaky_relu"]),
    st.integers(1, 30),
    st.floats(0, 3),
    st.floats(0, 2),
    st.floats(-1, 1),
)
@settings(deadline=None, max_examples=50, derandomize=True)
def test_differences_are_those_of_the_moments(
    name: str, depth: int, weight: float, bias: float, overlap: float
) -> None:
    p = propagate(resolve(name, depth - 1), weight_variance=weight, bias_variance=bias, input_overlap=overlap)
    for own, shared, gap in (
        (p.variance, p.covariance, p.gap),
        (p.q_hat_t, p.q_hat_st, p.forward_gap),
        (p.q_tilde_t, p.q_tilde_st, p.backward_gap),
    ):
        assert np.all(np.array(gap) >= 0)
        assert_allclose(np.array(own) - np.array(shared), gap, atol=1e-12 * (1 + max([0, *own])))


def test_identical_inputs_have_no_difference() -> None:
    p = propagate(resolve("tanh", 3), weight_variance=2.0, bias_variance=0.1, input_overlap=1.0)
    assert p.gap == [0.0] * 3 and p.backward_gap == [0.0] * 4
    assert_allclose(p.q_hat_t, p.q_hat_st, rtol=1e-15)


@pytest.mark.parametrize("name", ["relu", "tanh", "erf", "linear", "gelu"])
def test_silent_network_has_zero_moments(name: str) -> None:
    result = order_parameters(name, depth=3, weight_variance=0.0, bias_variance=0.0)
    assert_allclose(result.q_hat_t, [1.0, 0.0, 0.0], atol=1e-300)
    assert_allclose(result.q_tilde_t, [0.0, 0.0, 1.0], atol=1e-300)


def test_weightless_network_forgets_its_input() -> None:
    result = order_parameters("relu", depth=3, weight_variance=0.0, bias_variance=0.7)
    assert_allclose(result.q_hat_t, [1.0, 0.35, 0.35])
    assert_allclose(result.q_hat_st, [0.0, 0.35, 0.35])


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 0}, "depth must be an integer >= 1, got 0"),
        ({"depth": 2.5}, "depth must be an integer"),
        ({"weight_variance": -1.0}, "weight_variance must be non-negative and finite, got -1.0"),
        ({"weight_variance": math.nan}, "weight_variance must be non-negative"),
        ({"weight_variance": [1.0, 2.0]}, "weight_variance must be a scalar"),
        ({"bias_variance": -0.1}, "bias_variance must be non-negative"),
        ({"bias_variance": [[1.0]]}, "bias_variance must be a scalar"),
        ({"input_overlap": 1.5}, r"input_overlap must be in \[-1, 1\]"),
        ({"input_overlap": [0.5]}, "input_overlap must be a scalar"),
        ({"activation": "swish"}, "activation must be one of"),
        ({"activation": ["relu"]}, r"one per hidden layer \(2\), got 1"),
        ({"digits": 0}, "digits must be an integer >= 1"),
        ({"digits": 20, "activation": SINE}, "activation must be a named one where digits are asked for"),
        ({"weight_variance": 1e200}, "weight_variance must be small enough not to overflow"),
        (
            {"weight_variance": 1e120, "depth": 4, "activation": "relu"},
            "weight_variance must be small enough",
        ),
    ],
)
def test_arguments_out_of_domain_are_refused(change: dict[str, object], message: str) -> None:
    setting: dict[str, object] = {
        "activation": "linear",
        "depth": 3,
        "weight_variance": 1.0,
        "bias_variance": 0.1,
    }
    setting |= change
    with pytest.raises(ValueError, match=message):
        order_parameters(setting.pop("activation"), **setting)


def test_discontinuous_activation_does_not_converge() -> None:
    step = Activation("step", np.sign, np.zeros_like)
    with pytest.raises(ValueError, match="derivative must be the derivative"):
        order_parameters(step, depth=2, weight_variance=1.0, bias_variance=0.0)
    kink = Activation("abs", np.abs, np.sign)
    with pytest.raises(ConvergenceError, match="did not settle"):
        order_parameters(kink, depth=2, weight_variance=1.0, bias_variance=0.3)


def test_extreme_but_finite_settings_stay_finite() -> None:
    result = order_parameters("erf", depth=2, weight_variance=1e300, bias_variance=0.0)
    assert all(np.isfinite(x).all() for x in result[:2])
    assert np.isfinite(
        order_parameters(leaky_relu(1e-3), depth=200, weight_variance=4, bias_variance=1).q_hat_t
    ).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 10**9}, "depth must be at most 100000, got 1000000000"),
        ({"digits": 10**9}, "digits must be at most 1000"),
        ({"bias_variance": 1e308}, r"bias_variance must be small enough not to overflow, got 1e\+308"),
        (
            {"activation": "tanh", "digits": 30, "weight_variance": 1e12},
            r"digits must be fewer .* variance 1\.0e\+12",
        ),
        ({"activation": leaky_relu(-1e70), "weight_variance": 1e200}, "weight_variance must be small enough"),
        ({"activation": None}, "activation must be an Activation, a name"),
    ],
)
def test_what_would_overflow_or_never_end_is_refused(change: dict[str, object], message: str) -> None:
    setting: dict[str, object] = {
        "depth": 2,
        "weight_variance": 1.0,
        "bias_variance": 0.0,
        "activation": "relu",
    }
    setting |= change
    with pytest.raises(ValueError, match=message):
        order_parameters(setting.pop("activation"), **setting)


def test_activations_of_a_propagation_come_as_a_sequence() -> None:
    with pytest.raises(ValueError, match="activations must be a sequence of Activation, got 3"):
        propagate(3, weight_variance=1.0, bias_variance=0.0)


@pytest.mark.parametrize("name", ["erf", "tanh", "relu"])
def test_moments_of_the_pre_activations_are_those_that_are_propagated(name: str) -> None:
    """q^{l+1} of one input and of two, from the hats of the layer below (eq. 6)."""
    law = {"weight_variance": 1.7, "bias_variance": 0.3}
    known = propagate(resolve(name, 4), **law)
    assert_allclose(preactivation_moment(known.q_hat_t[:-1], **law), known.variance, rtol=1e-15)
    assert_allclose(preactivation_moment(known.q_hat_st[:-1], **law), known.covariance, rtol=1e-15)


def test_the_derivative_by_the_inputs_of_erf_in_mpmath() -> None:
    """One hidden layer: sigma_w^4 E erf'(u)^2 with u of variance sigma_w^2 + sigma_b^2, by quadrature."""
    weight, bias = 1.7, 0.3
    scale = mp.sqrt(weight + bias)
    slope = mp.quad(
        lambda z: (2 / mp.sqrt(mp.pi) * mp.exp(-((scale * z) ** 2))) ** 2 * mp.npdf(z), [-mp.inf, mp.inf]
    )
    found = input_derivative("erf", depth=2, weight_variance=weight, bias_variance=bias)
    assert_allclose(found, float(weight**2 * slope), rtol=1e-12)
    assert input_derivative("relu", depth=1, weight_variance=weight, bias_variance=bias) == weight


def test_what_follows_the_order_parameters_refuses_what_overflows() -> None:
    with pytest.raises(ValueError, match="weight_variance"):
        preactivation_moment(1e200, weight_variance=1e200, bias_variance=0.0)
    with pytest.raises(ValueError, match="q_hat must be finite"):
        preactivation_moment(math.nan, weight_variance=1.0, bias_variance=0.0)
    with pytest.raises(ValueError, match="weight_variance must be small enough not to overflow"):
        input_derivative("linear", depth=3, weight_variance=1e140, bias_variance=0.0)
