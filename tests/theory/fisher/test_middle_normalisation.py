"""Batch normalised hidden layers: moments on the sphere against draws and integrals, the bound, and refusals."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.refusals import refusal
from theory import activations
from theory.activations import Activation
from theory.activations.gaussian import ConvergenceError
from theory.fisher.middle_normalisation import (
    _edge,
    _population,
    batch_norm_bound,
    batch_norm_largest,
    batch_norm_largest_odd,
    batch_norm_moments,
)
from theory.linear_network import linear_network_largest

SMOOTH = ["tanh", "erf", "sigmoid", "softplus", "gelu"]
NAMES = ["relu", "leaky_relu", "linear", *SMOOTH]
SIZES = {"width": 100, "samples": 50}


def arc_cosine(c: float) -> float:
    return (math.sqrt(1 - c * c) + c * (math.pi - math.acos(c))) / math.pi


# --- moments


@pytest.mark.parametrize("samples", [2, 3, 4, 8, 50, 10**6])
def test_relu_has_the_arc_cosine_kernel_on_the_sphere_and_off_it(samples: int) -> None:
    expected = (0.5, arc_cosine(-1 / (samples - 1)) / 2)
    for finite in (False, True):
        found = batch_norm_moments("relu", samples=samples, finite_samples=finite)
        assert_allclose(found, expected, rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("name", NAMES)
def test_two_samples_are_normalised_to_one_and_minus_one(name: str) -> None:
    phi = activations.single(name).function
    up, down = phi(np.array([1.0, -1.0]))
    found = batch_norm_moments(name, samples=2, finite_samples=True)
    assert_allclose(found, ((up**2 + down**2) / 2, up * down), rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("name", SMOOTH)
def test_three_samples_lie_on_a_circle(name: str) -> None:
    """The entries are sqrt(2) times the cosines of angles 120 degrees apart."""
    phi = activations.single(name).function
    angles = np.linspace(0, 2 * math.pi, 400, endpoint=False)
    first, second = (phi(math.sqrt(2) * np.cos(angles + turn)) for turn in (0, 2 * math.pi / 3))
    found = batch_norm_moments(name, samples=3, finite_samples=True)
    assert_allclose(found, ((first**2).mean(), (first * second).mean()), rtol=1e-11)


# --- the bound


@pytest.mark.parametrize("finite", [False, True])
def test_the_bound_is_a_mean_square_of_means(finite: bool) -> None:
    own, shared = batch_norm_moments("softplus", samples=7, finite_samples=finite)
    found = batch_norm_bound("softplus", width=90, samples=7, width_ratio=1.5, finite_samples=finite)
    assert_allclose(found, 1.5 * 90 * (6 / 7 * shared + own / 7), rtol=1e-14)


# --- the largest eigenvalue


def test_the_largest_of_relu_in_closed_form() -> None:
    """Var relu = 1/2 - 1/2pi, Var relu' = 1/4, (E relu'')^2 = 1/2pi."""
    setting = {"width": 80, "samples": 60, "width_ratio": 1.5}
    turn = 1 / (2 * math.pi)
    excess = 1 + 0.5 - turn + 1.5 / 0.7 * turn / 2 + 0.7 * 80 / 60 * (0.25 - turn)
    found = batch_norm_largest("relu", input_ratio=0.7, **setting) - batch_norm_bound("relu", **setting)
    assert_allclose(found, excess, rtol=1e-12)


# --- the largest eigenvalue of odd activations


def _tanh(scale: float) -> Activation:
    return Activation(
        "scaled tanh",
        lambda x: scale * np.tanh(x),
        lambda x: scale / np.cosh(x) ** 2,
        lambda x: -2 * scale * np.tanh(x) / np.cosh(x) ** 2,
    )


@pytest.mark.parametrize(("inputs", "units"), [(1.0, 0.7), (0.6, 1.7), (0.04, 3.0), (1.3, 1.3)])
def test_linear_layers_are_as_sharp_with_normalisation_as_with_mean_subtraction(
    inputs: float, units: float
) -> None:
    found = batch_norm_largest_odd("linear", width=70, samples=100, width_ratio=units, input_ratio=inputs)
    expected = linear_network_largest(
        width=70, samples=100, weight_variance=1.0, width_ratios=[inputs, units]
    )
    assert_allclose(found, expected, rtol=1e-12)


def test_the_edge_of_equal_eigenvalues_is_that_of_marchenko_and_pastur() -> None:
    """And the scale of its fluctuations Johnstone's."""
    edge, spread = _edge(np.array([2.0]), np.array([0.49]))
    assert_allclose(edge, 2 * 1.7**2, rtol=1e-12)
    assert_allclose(spread, 2 * 1.7 * (1 + 1 / 0.7) ** (1 / 3), rtol=1e-12)


def test_of_many_odd_units_the_largest_is_the_edge_and_the_spread_of_slopes() -> None:
    """By its definition, the derivative of tanh averaged by quadrature: of one input in hundred for each sample."""
    z = np.linspace(-12, 12, 4801)
    density = np.exp(-(z**2) / 2) * (z[1] - z[0]) / math.sqrt(2 * math.pi)
    slope, square = 1 - np.tanh(z) ** 2, np.tanh(z) ** 2
    linear = float(density @ slope) ** 2
    population, share = _population(linear, float(density @ square) - linear, 5 / 3)
    edge, _ = _edge(population, share * 0.75)
    expected = edge + 0.75 * (float(density @ slope**2) - linear)
    found = batch_norm_largest_odd(
        "tanh", width=3 * 10**14, samples=4 * 10**14, width_ratio=5 / 3, input_ratio=1.0
    )
    assert_allclose(found, expected, rtol=1e-8)


def test_the_output_bias_alone_has_the_eigenvalue_1() -> None:
    assert batch_norm_largest_odd(_tanh(1e-2), **SIZES) == 1.0
    assert batch_norm_largest_odd("erf", width=1, samples=2) == 1.0


def test_the_largest_scales_with_the_square_of_an_odd_activation() -> None:
    base = batch_norm_largest_odd("tanh", **SIZES)
    for scale in (3.0, 1e100):
        assert_allclose(batch_norm_largest_odd(_tanh(scale), **SIZES), scale**2 * base, rtol=1e-11)
    with refusal("activation, width, samples must be such that the result does not overflow"):
        batch_norm_largest_odd(_tanh(1e154), **SIZES)


# --- refusals


def test_what_is_not_smooth_has_no_average_over_the_sphere() -> None:
    bump = Activation("bump", lambda x: abs(x - 1), lambda x: np.sign(x - 1), np.zeros_like, (1.0,))
    with refusal(r"activation must be smooth or a \(leaky\) ReLU on a sphere, got 'bump'"):
        batch_norm_moments(bump, samples=5, finite_samples=True)
    hidden = Activation("hidden", np.abs, np.sign)
    with pytest.raises(ConvergenceError, match="averages of activation 'hidden' did not settle") as error:
        batch_norm_moments(hidden, samples=40, finite_samples=True)
    assert_allclose(error.value.estimate[0], 1.0, rtol=1e-2)
