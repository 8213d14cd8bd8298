"""Wide networks that are small enough for Jacobians, and these by autograd."""

from collections.abc import Callable
from typing import Any

import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate.monte_carlo import Block, Point, stream
from simulate.wide import signals
from simulate.wide.signals import WideNetwork

Outputs = Callable[[WideNetwork], Tensor]


def network_of(widths=(4, 6, 5, 3), samples: int = 4, count: int = 2) -> WideNetwork:
    block = Block(tuple(stream(0, "test", Point(), i) for i in range(count)))
    return signals.wide_network(block, widths=widths, samples=samples, weight_variance=1.9, bias_variance=0.3)


def jacobian(network: WideNetwork, outputs: Outputs) -> Tensor:
    """Derivatives (n, C, T, P) of outputs (1, T, C) of one network by its weights, then its biases."""
    depth = network.depth

    def of(n: int) -> Tensor:
        def function(*theta: Tensor) -> Tensor:
            weights, biases = (tuple(t[None] for t in part) for part in (theta[:depth], theta[depth:]))
            return outputs(WideNetwork(weights=weights, biases=biases, inputs=network.inputs[n : n + 1]))[
                0
            ].mT

        theta = [t[n] for t in (*network.weights, *network.biases)]
        parts = torch.func.jacrev(function, argnums=tuple(range(2 * depth)))(*theta)
        return torch.cat([part.flatten(2) for part in parts], dim=2)

    return torch.stack([of(n) for n in range(len(network.inputs))])


def plain(activation: Any) -> Outputs:
    """The last preactivations."""
    return lambda one: signals.forward(one, activation).preactivations[-1]


def assert_gram(found: Tensor, j: Tensor, scale: float | None = None) -> None:
    """K = J J', to 1e-13 of its largest entry or of what else it is small beside."""
    expected = torch.einsum("nksp,nmtp->nkmst", j, j)
    assert found.shape == expected.shape
    assert_allclose(found, expected, rtol=0, atol=1e-13 * (scale or expected.abs().max().item()))
