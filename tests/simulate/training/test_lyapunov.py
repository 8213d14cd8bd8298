"""Lyapunov exponents of SGD at frozen parameters against closed forms and against products of dense matrices."""

import itertools

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from simulate.training.lyapunov import lyapunov_exponents, mean_square_stable_rates
from simulate.training.stacks import Perceptrons, perceptrons_at_start
from simulate.training.trial_training import CommonBatches

SAMPLES, OUTPUTS = 6, 2


@pytest.fixture
def networks():
    start = perceptrons_at_start(
        [np.random.default_rng(seed) for seed in (1, 2)], (3, 5, OUTPUTS), dtype=torch.float64
    )
    x = torch.randn(2, SAMPLES, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return Perceptrons("tanh", "squared error"), start, x


def jacobian(networks, network):
    """Return the Jacobian of all outputs of one network by a flat vector of its parameters, (N K, P)."""
    stack, start, x = networks
    sizes = [p[0].numel() for p in start]

    def outputs(theta):
        parts = [part.view(1, *p.shape[1:]) for part, p in zip(theta.split(sizes), start, strict=True)]
        return stack.outputs(parts, x[network][None]).flatten()

    theta = torch.cat([p[network].flatten() for p in start])
    return torch.autograd.functional.jacobian(outputs, theta)


def test_kernels_are_products_of_jacobians(networks):
    stack, *rest = networks
    found = stack.output_kernels(*rest)
    for network in range(2):
        rows = jacobian(networks, network)
        assert_close(found[network].flatten(2).flatten(0, 1), rows @ rows.T)


@pytest.mark.parametrize(("share", "skip"), [(1.5, 2000), (3.0, 100)])
def test_full_batches_grow_by_the_factor_of_the_largest_eigenvalue(networks, share, skip):
    """With one constant matrix the exponent is log max |1 - rate lambda|, over the eigenvalues that are not 0."""
    stack, *rest = networks
    kernels = stack.output_kernels(*rest)
    values = torch.linalg.eigvalsh(kernels.flatten(3).flatten(1, 2)) / SAMPLES
    rates = share / values[:, -1:]
    batches = [CommonBatches(samples=SAMPLES, size=SAMPLES, seed=seed) for seed in (1, 2)]
    found = lyapunov_exponents(kernels, batches, rates=rates, steps=100, skip=skip)
    expected = (1 - rates * values).abs().amax(1, keepdim=True).log()
    assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_one_weight_and_batches_of_one_sample_give_the_mean_logarithm():
    """Scalar factors 1 - rate x^2: the exponent is their mean logarithm over the samples of an epoch."""
    x = torch.tensor([0.3, 1.1, 2.0, 0.7, 1.6], dtype=torch.float64)
    kernels = (x[:, None] * x).view(1, 5, 1, 5, 1)
    rates = torch.tensor([[0.2, 0.45, 0.8, 1.3]], dtype=torch.float64)
    found = lyapunov_exponents(kernels, [CommonBatches(samples=5, size=1)], rates=rates, steps=5)
    expected = (1 - rates[0, :, None] * x.square()).abs().log().mean(1)
    assert_close(found[0], expected)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_at_the_stable_rate_the_second_moment_over_all_batches_keeps_its_size(networks, size):
    """The map of second moments, as the mean of Kronecker squares over every batch, has spectral radius 1."""
    stack, *rest = networks
    kernels = stack.output_kernels(*rest)
    found = mean_square_stable_rates(kernels, size, products=2000)
    for kernel, rate in zip(kernels.flatten(3).flatten(1, 2), found, strict=True):
        steps = []
        for batch in itertools.combinations(range(SAMPLES), size):
            seen = torch.zeros(SAMPLES, dtype=torch.float64)
            seen[list(batch)] = 1.0
            steps.append(torch.eye(len(kernel)) - rate / size * kernel * seen.repeat_interleave(OUTPUTS))
        radius = torch.linalg.eigvals(torch.stack([torch.kron(s, s) for s in steps]).mean(0)).abs().max()
        assert_close(radius.item(), 1.0, rtol=1e-5, atol=0)


def test_batches_larger_than_the_data_are_refused():
    with pytest.raises(ValueError, match="at most the 2 samples"):
        mean_square_stable_rates(torch.ones(1, 2, 1, 2, 1), 3, products=1)
