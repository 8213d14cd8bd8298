"""Order parameters: closed recursions, a naive mpmath recursion, and the network they describe."""

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory.activations import Activation, resolve
from theory.fisher import kappas
from theory.order_parameters import (
    ConvergenceError,
    input_derivative,
    order_parameters,
    preactivation_moment,
    propagate,
)

NAMES = ["relu", "leaky_relu", "linear", "tanh", "erf", "sigmoid", "softplus", "gelu"]


def test_depth_one_has_only_the_input_and_the_output() -> None:
    result = order_parameters("tanh", depth=1, weight_variance=2.0, bias_variance=1.0, input_overlap=0.5)
    assert [x.tolist() for x in result] == [[1.0], [0.5], [1.0], [1.0]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "overlap"),
    # above the first layer, sigmoid, softplus and gelu have positive covariances whatever the inputs
    [(name, c) for name in NAMES for c in (0.0, -0.6, 1.0) if c or name in NAMES[:5]],
)
def test_double_precision_agrees_with_mpmath(name: str, overlap: float) -> None:
    setting = {"depth": 3, "weight_variance": 1.8, "bias_variance": 0.2, "input_overlap": overlap}
    fast = order_parameters(name, **setting)
    precise = order_parameters(name, **setting, digits=16)
    for x, y in zip(fast, precise, strict=True):
        assert x.dtype == np.float64
        assert_allclose(x, y.astype(float), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("activation", "depth", "weight", "bias", "digits", "overlap"),
    [
        ("erf", 100, 0.6, 0.3, 250, 0.0),  # ordered
        ("erf", 100, 0.3, 1.0, 400, 0.0),
        ("erf", 300, 1.05, 0.35, 150, 0.0),
        ("erf", 100, 3.0, 0.1, 60, 0.0),  # chaotic
        ("erf", 30, 1.9, 0.0, 40, -1.0),
        ("relu", 100, 1.0, 1.0, 150, 0.0),
        ("relu", 20, 1e-3, 1.0, 200, 0.0),
        ("relu", 300, 2.0, 0.0, 60, 0.0),  # critical
        ("relu", 100, 4.0, 1.0, 60, 0.0),  # growing
        ("relu", 9, 1.8, 0.3, 40, 1.0),
        ("leaky_relu", 100, 1.0, 1.0, 150, 0.0),
        ("linear", 50, 1.3, 0.4, 60, 0.0),
        ("linear", 5, 0.9, 0.0, 40, -1.0),
        (("relu", "erf", "leaky_relu", "linear", "erf"), 6, 1.7, 0.3, 60, 0.0),
    ],
)
def test_differences_keep_their_digits_in_every_phase(
    activation: Any, depth: int, weight: float, bias: float, digits: int, overlap: float
) -> None:
    """With hundreds of digits the plain recursion can afford to subtract."""
    known = {"depth": depth, "weight_variance": weight, "bias_variance": bias}
    exact = order_parameters(activation, **known, input_overlap=overlap, digits=digits)
    found = order_parameters(activation, **known, input_overlap=overlap)
    for x, y in zip(found, exact, strict=True):
        assert_allclose(x, y.astype(float), rtol=1e-12, atol=1e-16)
    if overlap == 0:
        ratios = np.array([0.7, 1.3, 2.1, 0.4, 0.9, 1.6])[:depth] if depth == 6 else np.ones(depth)
        alpha = float(ratios[1:] @ ratios[:-1])
        with mp.workdps(digits):
            own, shared = (
                r @ ratios for r in (exact.q_tilde_t * exact.q_hat_t, exact.q_tilde_st * exact.q_hat_st)
            )
            expected = [alpha, *(float(x / alpha) for x in (own, shared, own - shared))]
        assert_allclose(kappas(activation, **known, width_ratios=ratios.tolist()), expected, rtol=1e-12)


@pytest.mark.parametrize("weight_variance", [0.0, 0.5])
def test_a_saturated_erf_loses_no_digit(weight_variance: float) -> None:
    """Its slopes are those of 1 + 4 a, at a variance beside which a 1 is rounding."""
    setting = {"depth": 2, "weight_variance": weight_variance, "bias_variance": 1e17}
    plain, few = order_parameters("erf", **setting), order_parameters("erf", **setting, digits=1)
    for name in ("q_hat_t", "q_hat_st", "q_tilde_t", "q_tilde_st"):
        assert_allclose(np.asarray(getattr(few, name), float), getattr(plain, name), rtol=0.1)
    slope = 4 / np.pi / np.sqrt(1 + 4 * (weight_variance + 1e17))
    assert_allclose(float(few.q_tilde_t[0]), weight_variance * slope, rtol=0.1)


def test_coarse_digits_are_reported_when_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    from theory.activations import precise_kernels

    monkeypatch.setattr(precise_kernels, "_step", lambda scale, digits: mp.mpf(3))
    with pytest.raises(ConvergenceError, match="did not reach 20 digits") as caught:
        order_parameters("tanh", depth=2, weight_variance=1.0, bias_variance=0.0, digits=20)
    assert caught.value.estimate is not None


def test_weightless_network_forgets_its_input() -> None:
    result = order_parameters("relu", depth=3, weight_variance=0.0, bias_variance=0.7)
    assert_allclose(result.q_hat_t, [1.0, 0.35, 0.35])
    assert_allclose(result.q_hat_st, [0.0, 0.35, 0.35])


# ------------------------------------------------------------------------------------------- errors


def test_discontinuous_activation_does_not_converge() -> None:
    step = Activation("step", np.sign, np.zeros_like)
    with pytest.raises(ValueError, match="derivative must be the derivative"):
        order_parameters(step, depth=2, weight_variance=1.0, bias_variance=0.0)
    kink = Activation("abs", np.abs, np.sign)
    with pytest.raises(ConvergenceError, match="did not settle"):
        order_parameters(kink, depth=2, weight_variance=1.0, bias_variance=0.3)


def test_moments_of_the_pre_activations_are_those_that_are_propagated() -> None:
    """q^{l+1} of one input and of two, from the hats of the layer below (eq. 6)."""
    law = {"weight_variance": 1.7, "bias_variance": 0.3}
    known = propagate(resolve("tanh", 4), **law)
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
