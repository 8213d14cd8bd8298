"""Small ReLU networks with data, and their curvature by torch.autograd and dense matrices alone."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from simulate.networks import mlp_logits, mlp_weights
from simulate.objectives import Objective
from simulate.perceptrons import curvature, trained as trained_perceptrons

WIDTHS = {1: (6, 5), 2: (6, 7, 5), 3: (6, 7, 6, 5), 4: (5, 6, 5, 6, 4)}
SCALES = [(1.0, 1.0), (0.4, 1.0), (1.3, 1.7), (2.5, 4.0)]


class Problem(NamedTuple):
    weights: tuple[Tensor, ...]
    x: np.ndarray
    labels: np.ndarray

    @property
    def size(self) -> int:
        return sum(w.numel() for w in self.weights)

    def scaled(self, alpha: float) -> Problem:
        return self._replace(weights=tuple(alpha * w for w in self.weights))

    def objective(self, alpha: float = 1.0, temperature: float = 1.0, activation: str = "relu") -> Objective:
        """Return the network and loss as an objective."""
        widths = (self.x.shape[1], *(len(w) for w in self.weights))
        found = trained_perceptrons.perceptron_objective(
            widths, alpha * flat(self), self.x, self.labels, activation
        )
        loss = functional.cross_entropy
        return Objective(found.model, found.data, lambda z, y: loss(z / temperature, y))

    def frame(self, columns: int = 4) -> Tensor:
        return curvature.haar(np.random.default_rng(9), self.size, columns)


def problem(depth: int, samples: int = 11, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    widths = WIDTHS[depth]
    labels = rng.integers(0, widths[-1], samples)
    return Problem(mlp_weights(rng, widths), rng.standard_normal((samples, widths[0])), labels)


def flat_logits(net: Problem) -> Any:
    sizes = [w.numel() for w in net.weights]

    def logits(theta: Tensor) -> Tensor:
        parts = zip(theta.split(sizes), net.weights, strict=True)
        return mlp_logits([part.view_as(w) for part, w in parts], torch.from_numpy(net.x))

    return logits


def flat(net: Problem) -> Tensor:
    return torch.cat([w.flatten() for w in net.weights])


@functools.cache
def dense(depth: int, alpha: float, temperature: float) -> tuple[Tensor, Tensor]:
    """Return mean J' (diag(p) - p p') J / T^2, and the Hessian of the loss in all parameters, scaled."""
    net = problem(depth)
    logits, theta, labels = flat_logits(net), alpha * flat(net), torch.from_numpy(net.labels)
    jacobian = torch.autograd.functional.jacobian(logits, theta)
    p = torch.softmax(logits(theta) / temperature, -1)
    covariance = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    g_term = torch.einsum("nkp,nkc,ncq->pq", jacobian, covariance, jacobian) / len(p) / temperature**2
    hessian = torch.autograd.functional.hessian(
        lambda at: functional.cross_entropy(logits(at) / temperature, labels), theta
    )
    return g_term, hessian


def assert_same(actual: Tensor, expected: Any, tolerance: float = 1e-12) -> None:
    """Relative to the Frobenius norm."""
    assert actual.shape == expected.shape
    assert float((actual - expected).norm()) <= tolerance * float(expected.norm())
