"""Curvature of a stack of networks against dense Hessians of the same networks, one by one."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from simulate.training.edges import gradient_curvatures, hessian_products, rising_rates, top_eigenvalues
from simulate.training.stacks import Perceptrons, perceptrons_at_start

SAMPLES = 7


@pytest.fixture(params=["cross-entropy", "squared error"])
def setting(request):
    generator = torch.Generator().manual_seed(5)
    start = perceptrons_at_start(
        [np.random.default_rng(seed) for seed in (1, 2)], (3, 4, 3), dtype=torch.float64
    )
    x = torch.randn(2, SAMPLES, 3, generator=generator, dtype=torch.float64)
    y = torch.randint(3, (2, SAMPLES), generator=generator)
    return Perceptrons("tanh", request.param), start, x, y


def flat(parameters, network):
    return torch.cat([p[network].flatten() for p in parameters])


def loss_of(setting, network):
    """Return the loss of one network by its flat parameters, and of each of its samples, written by hand."""
    stack, start, x, y = setting

    def each(theta):
        first, bias, second, last = (
            part.view(p.shape[1:])
            for part, p in zip(theta.split([p[0].numel() for p in start]), start, strict=True)
        )
        outputs = torch.tanh(x[network] @ first.mT + bias) @ second.mT + last
        if stack.loss == "cross-entropy":
            return torch.nn.functional.cross_entropy(outputs, y[network], reduction="none")
        return (outputs - torch.nn.functional.one_hot(y[network], 3)).square().sum(1) / 2

    return each


def derivatives(setting, network):
    """Gradient and Hessian."""
    each, theta = loss_of(setting, network), flat(setting[1], network)
    jacobian = torch.autograd.functional.jacobian(each, theta)
    return jacobian.mean(0), torch.autograd.functional.hessian(lambda t: each(t).mean(), theta)


def test_products_and_curvature_along_gradients_are_those_of_dense_hessians(setting):
    stack, start, x, y = setting
    vectors = [torch.randn_like(p) for p in start]
    found, (along, squares) = hessian_products(stack, start, x, y, vectors), gradient_curvatures(*setting)
    for network in range(2):
        gradient, hessian = derivatives(setting, network)
        assert_close(flat(found, network), hessian @ flat(vectors, network))
        assert_close(along[network], gradient @ hessian @ gradient)
        assert_close(squares[network], gradient @ gradient)


@pytest.mark.parametrize("steps", [1, 5, 40])  # of 31 parameters
def test_largest_eigenvalues_lie_within_their_residuals(setting, steps):
    top = top_eigenvalues(*setting, steps=steps)
    for network in range(2):
        _, hessian = derivatives(setting, network)
        vector = flat(top.vectors, network)
        residual = (hessian @ vector - top.values[network] * vector).norm()
        assert vector.norm() == pytest.approx(1, rel=1e-9)
        assert float(residual) == pytest.approx(float(top.residuals[network]), abs=1e-9)
        values = torch.linalg.eigvalsh(hessian)
        assert float((values - top.values[network]).abs().min()) <= float(top.residuals[network]) + 1e-12
        if steps >= 31:
            assert_close(top.values[network], values[-1])


def test_a_space_that_closes_early_gives_its_own_largest_eigenvalue():
    """A linear output of one input has a Hessian of one value; of two inputs seen apart, of two."""
    stack = Perceptrons("relu", "squared error", bias=False)
    weights = [torch.ones(1, 2, 3, dtype=torch.float64)]
    x = torch.tensor([[[3.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], dtype=torch.float64)
    top = top_eigenvalues(stack, weights, x, torch.zeros(1, 2, 2, dtype=torch.float64), steps=6)
    assert float(top.values) == pytest.approx(4.5) and float(top.residuals) < 1e-12
    assert float(torch.cat([v.flatten() for v in top.vectors]).norm()) == pytest.approx(1)


def test_a_step_at_the_critical_rate_leaves_the_loss_as_it_was(setting):
    stack, start, x, y = setting
    tried = (0.1 * 1.01 ** torch.arange(800, dtype=torch.float64)).expand(2, -1)
    found = rising_rates(stack, start, x, y, tried=tried)
    for network in range(2):
        each, theta = loss_of(setting, network), flat(start, network)
        gradient, _ = derivatives(setting, network)
        change = [(each(theta - r * gradient) - each(theta)).mean() for r in (found[network], tried[0, 0])]
        assert abs(change[0] / change[1]) < 1e-3


def test_a_critical_rate_outside_of_what_is_tried_is_not_a_number(setting):
    tried = torch.tensor([[1e-4, 1e-3], [1e4, 1e5]], dtype=torch.float64)
    assert rising_rates(*setting, tried=tried).isnan().all()
