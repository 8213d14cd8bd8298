"""Flows of a stack against closed forms, and the central flow against automatic differentiation of single networks."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from simulate.training import edges, flows
from simulate.training.stacks import Perceptrons, perceptrons_at_start

RATES = torch.tensor([0.3, 0.2], dtype=torch.float64)
LINEAR, ONE = Perceptrons("linear", "squared error", bias=False), torch.ones(1, 1, 1, dtype=torch.float64)


@pytest.fixture
def setting():
    start = perceptrons_at_start(
        [np.random.default_rng(seed) for seed in (1, 2)], (3, 5, 1), dtype=torch.float64
    )
    draw = torch.Generator().manual_seed(4)
    x, y = (torch.randn(2, 7, width, generator=draw, dtype=torch.float64) for width in (3, 1))
    return Perceptrons("tanh", "squared error"), [3 * p for p in start], x, y


def loss_of(setting, network):
    """Return the mean loss of one network as a function of its flat parameters."""
    stack, start, x, y = setting

    def loss(theta):
        parts = edges.shaped_like(theta[None], start)
        return stack.losses(stack.outputs(parts, x[network][None]), y[network][None]).mean()

    return loss


def test_descent_takes_steps_along_gradients(setting):
    found = flows.descent_path(*setting, rates=RATES, steps=3)
    for network, rate in enumerate(RATES):
        loss, at = loss_of(setting, network), edges.flatten(setting[1])[network]
        for step in range(3):
            assert_close(found.losses[network, step], loss(at))
            at = at - rate * torch.func.grad(loss)(at)
            assert_close(found.parameters[network, step], at)


def test_gradient_flow_on_a_quadratic_decays_exponentially():
    """One weight on w^2 x^2/2."""
    found = flows.gradient_flow(LINEAR, [ONE], ONE, 0 * ONE, rates=RATES[:1], steps=4, parts=400)
    times = 0.3 * torch.arange(1, 5, dtype=torch.float64)
    assert_close(found.parameters[0, :, 0], torch.exp(-times), rtol=1e-3, atol=0)
    assert_close(found.losses[0, 1:], torch.exp(-2 * times[:-1]) / 2, rtol=2e-3, atol=0)


def top(loss, at):
    """Return the largest eigenvalue of a Hessian and its eigenvector."""
    values, vectors = torch.linalg.eigh(torch.autograd.functional.hessian(loss, at))
    return values[-1], vectors[:, -1]


def test_sharpness_and_its_gradient_are_those_of_automatic_differentiation(setting):
    """Differences of gradients along the eigenvector, followed by power steps, against the dense Hessian.

    Rates are small: the eigenvalue is hardly separated in these networks, and the steps lag behind a moving one.
    """
    found = flows.central_flow(*setting, rates=RATES / 4000, steps=12, parts=2)
    for network in range(2):
        loss = loss_of(setting, network)
        # the last part of the last step begins one part before its end
        at = (found.path.parameters[network, -1] + found.path.parameters[network, -2]) / 2
        value, vector = top(loss, at)
        slope = torch.func.grad(along(loss, vector))(at)
        assert_close(found.sharpness[network, -1], value, rtol=1e-3, atol=0)
        assert (found.directions[network, -1] @ vector).abs() > 0.999
        assert_close(found.stabilisation[network, -1], slope @ slope, rtol=0.01, atol=0)
        sharpening = -slope @ torch.func.grad(loss)(at)
        assert_close(found.sharpening[network, -1], sharpening, rtol=0.01, atol=0)


def along(loss, vector):
    """Return the curvature along a vector as a function of the parameters."""
    slope = torch.func.grad(loss)
    return lambda at: torch.func.grad(lambda w: slope(w) @ vector)(at) @ vector


def test_below_the_edge_the_central_flow_is_gradient_flow(setting):
    course = {"rates": RATES / 40, "steps": 5, "parts": 3}
    flow, plain = flows.central_flow(*setting, **course), flows.gradient_flow(*setting, **course)
    assert (flow.sharpness < 2 / RATES[:, None] * 40).all()
    assert_close(flow.path.parameters, plain.parameters)


@pytest.mark.parametrize(("target", "edge"), [(3.0, 8.0), (2.0, 9.0)])
def test_the_central_flow_ends_where_the_constraint_meets_the_minima(target, edge):
    """Loss (u v - y)^2/2 from (3, 0.1): at a minimum S = u^2 + v^2, which is held at the edge."""
    rates = torch.tensor([2 / edge], dtype=torch.float64)
    found = flows.central_flow(
        LINEAR, [3 * ONE, 0.1 * ONE], ONE, target * ONE, rates=rates, steps=100, parts=8
    )
    u, v = found.path.parameters[0, -1]
    assert_close(u * v, torch.tensor(target).double(), rtol=1e-3, atol=0)
    assert_close(u**2 + v**2, torch.tensor(edge).double(), rtol=1e-3, atol=0)
