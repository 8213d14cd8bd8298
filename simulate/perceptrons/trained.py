"""Perceptrons on labelled inputs after some steps of training, as points at which curvature is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from simulate import _checks, activations
from simulate.networks import Mlp
from simulate.objectives import Objective
from simulate.perceptrons import _flat

_DECAYS = (0.9, 0.999)
_SMALL = 1e-8


def perceptron_objective(
    widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str = "tanh"
) -> Objective:
    """Return the mean softmax cross-entropy of a perceptron, as an `Objective`.

    Parameters
    ----------
    widths
        Units of the input, of each hidden layer and of the output.
    theta
        Flat parameters (P,): layer by layer from the input, the matrix row by row and then the biases, if any.
    x, labels
        Inputs (N, in) and classes (N,).
    activation
        Name of the activation of the hidden layers.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, or the activation is unknown.

    Examples
    --------
    >>> round(perceptron_objective((3, 2), torch.zeros(6), torch.ones(4, 3), [0, 1, 1, 0]).value(), 4)
    0.6931
    """
    biased = _flat.biased(widths, theta)
    data = _checks.labelled(x, labels, widths, theta)
    network = Mlp(widths, activation, bias=biased, rng=np.random.default_rng(0))  # draws overwritten
    network = network.to(theta.device)
    nn.utils.vector_to_parameters(theta.detach(), network.parameters())
    return Objective(network, data, nn.CrossEntropyLoss())


def trained(
    widths: Sequence[int],
    theta: Tensor,
    x: Any,
    labels: Any,
    activation: str = "tanh",
    *,
    steps: int,
    rate: float = 0.01,
) -> Tensor:
    """Return the parameters after some steps of Adam on all samples, from `theta`.

    Parameters
    ----------
    widths, theta, x, labels, activation
        As for `perceptron_objective`.
    steps
        Number of steps; 0 returns a copy.
    rate
        Learning rate.

    Raises
    ------
    ValueError
        As `perceptron_objective`.
    """
    # in numpy, in place: torch.optim loads a compiler, and for tensors this small calls cost more than arithmetic
    found = theta.detach().cpu().clone()
    slope = _gradient(widths, found, x, labels, activation)
    moving = found.numpy()
    mean, square = np.zeros_like(moving), np.zeros_like(moving)
    for step in range(1, steps + 1):
        gradient = slope()
        mean += (1 - _DECAYS[0]) * (gradient - mean)
        square += (1 - _DECAYS[1]) * (gradient * gradient - square)
        unbiased = np.sqrt(square / (1 - _DECAYS[1] ** step)) + _SMALL
        moving[:] = moving - rate * (mean / (1 - _DECAYS[0] ** step)) / unbiased
    return found.to(theta.device)


def _gradient(
    widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str
) -> Callable[[], NDArray[Any]]:
    """Return a function that gives the gradient of the loss at the current values of `theta`, which is on the CPU."""
    inputs, classes = _checks.labelled(x, labels, widths, theta)
    weights, biases = (
        [part.numpy() for part in parts] for parts in _flat.matrices_and_biases(widths, theta)(theta)
    )
    function, derivative = activations.nonlinearity(activation)
    # one row per unit: long rows, over samples, are fastest
    inputs, own = np.ascontiguousarray(inputs.numpy().T), (classes.numpy(), np.arange(len(classes)))

    def gradient() -> NDArray[Any]:
        below, pre = [inputs], list[NDArray[Any]]()
        for i, weight in enumerate(weights):
            pre.append(weight @ below[-1])
            if biases:
                pre[-1] += biases[i][:, None]
            if i + 1 < len(weights):
                tanh = activation == "tanh"  # numpy's takes half the time of torch's
                below.append(np.tanh(pre[-1]) if tanh else function(torch.from_numpy(pre[-1])).numpy())
        rate, found = _residuals(pre[-1], own) / inputs.shape[1], list[NDArray[Any]]()
        for i in reversed(range(len(weights))):
            found += [rate.sum(1), (rate @ below[i].T).ravel()][not biases :]
            if i:
                rate = weights[i].T @ rate
                if activation == "tanh":
                    rate *= 1 - below[i] * below[i]
                else:
                    rate *= derivative(torch.from_numpy(pre[i - 1])).numpy()
        return np.concatenate(found[::-1])

    return gradient


def _residuals(logits: NDArray[Any], own: tuple[NDArray[Any], NDArray[Any]]) -> NDArray[Any]:
    """Return `simulate.modules.softmax.residuals` for logits (K, N) and the places of the labels."""
    powers = np.exp(logits - logits.max(0))
    powers /= powers.sum(0)
    powers[own] = 0.0
    powers[own] = -powers.sum(0)
    return powers
