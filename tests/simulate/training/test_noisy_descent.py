"""Full-batch descent with noise: one step against gradients of single samples, by automatic differentiation."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import default_rng

from simulate.training.noisy_descent import noisy_descent
from simulate.training.stacks import Perceptrons, perceptrons_at_start

SAMPLES, SIZE, RATE = 5, 2, 0.3


class UnitVector(np.random.Generator):
    """Generator whose normal vector is a unit vector: all of them together give the covariance exactly."""

    def __init__(self, place: int) -> None:
        super().__init__(np.random.PCG64(place))
        self.place = place

    def standard_normal(self, size: Any = None, **_: Any) -> Any:
        return np.eye(size)[self.place]


@pytest.fixture
def network():
    start = perceptrons_at_start([default_rng(1)], (3, 4, 2), dtype=torch.float64)
    x = torch.randn(1, SAMPLES, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return Perceptrons("tanh", "squared error"), start, x, torch.tensor([[0, 1, 1, 0, 1]])


def moves(network, streams, **kwargs):
    """Moves of a step over minus the rate, (streams, P): one copy of the network for each stream."""
    stack, start, x, y = network
    start, x, y = ([p.repeat(len(streams), *[1] * (p.ndim - 1)) for p in part] for part in (start, [x], [y]))
    found = noisy_descent(
        stack, start, x[0], y[0], streams=streams, rate=RATE, batch_size=SIZE, steps=1, **kwargs
    )
    return torch.cat([(p - q).flatten(1) / RATE for p, q in zip(start, found, strict=True)], 1)


def gradients_of_samples(network):
    stack, start, x, y = network
    found = [stack.losses_and_gradients(start, x[:, [i]], y[:, [i]])[1] for i in range(SAMPLES)]
    return torch.stack([torch.cat([g.flatten() for g in gs]) for gs in found])


def test_noise_has_the_covariance_of_the_gradient_of_a_batch(network):
    each = gradients_of_samples(network)
    noise = moves(network, [UnitVector(i) for i in range(SAMPLES)]) - each.mean(0)
    torch.testing.assert_close(noise.T @ noise, torch.cov(each.T) * (1 / SIZE - 1 / SAMPLES))


def test_isotropic_noise_has_the_same_length_and_other_directions(network):
    mean = gradients_of_samples(network).mean(0)
    along, turned = (
        moves(network, [default_rng(s) for s in range(40)], isotropic=isotropic) - mean
        for isotropic in (False, True)
    )
    torch.testing.assert_close(turned.norm(dim=1), along.norm(dim=1))
    assert torch.linalg.matrix_rank(along) == SAMPLES - 1
    assert torch.linalg.matrix_rank(turned) > SAMPLES
