"""Curvature of single samples: against that of any model, finite differences and the linear model."""

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from numpy.testing import assert_allclose

from simulate import networks
from simulate.operators import gauss_newton, hessian
from simulate.perceptrons import curvature, per_sample, sample_products
from simulate.perceptrons.trained import perceptron_objective
from tests.simulate.small_perceptrons import WIDTHS, assert_same, problem

FLAT = torch.zeros(networks.weight_count((4, 3), biases=True), dtype=torch.float64)


@pytest.mark.parametrize("depth", WIDTHS)
def test_derivatives_of_logits_are_the_closed_ones_of_a_relu_network(depth: int) -> None:
    net = problem(depth, samples=3)
    closed = curvature.ProjectedMlp(net.weights, net.x, net.labels, torch.eye(net.size, dtype=torch.float64))
    found = per_sample.all_logit_derivatives(*per_sample.flattened(net.weights), net.x, "relu")
    assert_same(found.logits, closed.logits)
    assert_same(found.jacobian, closed.jacobian)
    assert found.second.shape == closed.second_derivatives.shape
    assert_allclose(found.second, closed.second_derivatives, atol=1e-12 * float(found.jacobian.abs().max()))


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize(
    ("widths", "activation"), [((4, 3, 5), "tanh"), ((4, 6, 3, 3), "gelu"), ((4, 3), "relu")]
)
def test_derivatives_of_samples_are_those_of_their_losses_and_average_to_those_of_the_mean(
    widths: tuple[int, ...], activation: str, biases: bool
) -> None:
    rng = default_rng(0)
    theta = torch.from_numpy(0.5 * rng.standard_normal(networks.weight_count(widths, biases=biases)))
    x, labels = rng.standard_normal((70, 4)), rng.integers(0, widths[-1], 70)
    given, mean = (
        (widths, theta, x, labels, activation),
        perceptron_objective(widths, theta, x, labels, activation),
    )
    hessians = per_sample.hessians(*given)
    assert hessians.shape == (70, len(theta), len(theta))
    assert_same(hessians.mean(0), hessian(mean).dense())
    assert_same(per_sample.loss_gradients(*given).mean(0), mean.gradient())
    one = perceptron_objective(widths, theta, x[3:4], labels[3:4], activation)
    assert_same(hessians[3], hessian(one).dense())
    assert_same(per_sample.gauss_newtons(*given)[3], gauss_newton(one).dense())


def test_flat_networks_start_with_lecun_weights_and_zero_biases() -> None:
    theta = per_sample.initial_parameters(default_rng(0), (100, 50, 20))
    assert len(theta) == networks.weight_count((100, 50, 20), biases=True) == 6070
    first, first_bias, second, second_bias = theta.split([5000, 50, 1000, 20])
    assert not first_bias.any() and not second_bias.any()
    assert abs(float(first.square().mean()) * 100 - 1) < 5 * np.sqrt(2 / 5000)
    assert abs(float(second.square().mean()) * 50 - 1) < 5 * np.sqrt(2 / 1000)


def test_probe_pieces_are_the_quadratic_forms_they_are_named_after() -> None:
    rng = default_rng(0)
    raw = torch.from_numpy(rng.standard_normal((70, 6, 6)))
    hessians = raw + raw.mT
    probes = curvature.haar(rng, 6, 6).T
    pieces = sample_products.algorithm_1_probes(sample_products.DenseSamples(hessians), probes)
    mean, v = hessians.mean(0), probes[2]
    assert_allclose(float(pieces.mean_square[2]), float((hessians @ v).square().sum(1).mean()), rtol=1e-13)
    assert_allclose(float(pieces.square_of_mean[2]), float(v @ mean @ mean @ v), rtol=1e-12)
    assert_allclose(float(pieces.quadratic_form_squared[2]), float(v @ mean @ v) ** 2, rtol=1e-12)
    # an orthonormal basis of probes gives the Frobenius norms
    assert_allclose(float(pieces.mean_square.sum()), float(hessians.square().sum() / 70), rtol=1e-13)
    assert_allclose(float(pieces.square_of_mean.sum()), float(mean.square().sum()), rtol=1e-13)
