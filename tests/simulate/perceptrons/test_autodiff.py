"""Automatic differentiation of bias-free perceptrons: against closed forms, and products of any model."""

from __future__ import annotations

import pytest
import torch
from numpy.testing import assert_allclose

from simulate.operators import hessian
from simulate.perceptrons import curvature, per_sample
from simulate.perceptrons.per_sample import all_logit_derivatives, flattened
from tests.simulate.small_perceptrons import WIDTHS, assert_same, problem


@pytest.mark.parametrize("depth", WIDTHS)
def test_derivatives_of_logits_are_the_closed_ones_of_a_relu_network(depth: int) -> None:
    net = problem(depth, samples=3)
    closed = curvature.ProjectedMlp(net.weights, net.x, net.labels, torch.eye(net.size, dtype=torch.float64))
    found = all_logit_derivatives(*flattened(net.weights), net.x, "relu")
    assert_same(found.logits, closed.logits)
    assert_same(found.jacobian, closed.jacobian)
    assert found.second.shape == closed.second_derivatives.shape
    assert_allclose(found.second, closed.second_derivatives, atol=1e-12 * float(found.jacobian.abs().max()))


def test_the_activation_counts() -> None:
    net = problem(2, samples=4)
    first, last = net.weights
    hidden = torch.from_numpy(net.x) @ first.T
    found = all_logit_derivatives(*flattened(net.weights), net.x, "tanh")
    assert_same(found.logits, hidden.tanh() @ last.T)
    assert_same(found.jacobian[:, 0, first.numel() : first.numel() + len(first)], hidden.tanh())
    assert float(found.second[:, :, : first.numel(), : first.numel()].abs().max()) > 0.01  # tanh is curved


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_gradients_and_hessians_of_samples_average_to_those_of_the_mean_loss(activation: str) -> None:
    net = problem(3, samples=70)
    mean = net.objective(activation=activation)
    samples = *flattened(net.weights), net.x, net.labels, activation
    assert_same(per_sample.hessians(*samples).mean(0), hessian(mean).dense())
    assert_same(per_sample.loss_gradients(*samples).mean(0), mean.gradient())
