"""Perceptrons on labelled inputs, some steps into training: where curvature is measured, not how training goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate import _checks, activations
from simulate.networks import Mlp
from simulate.objectives import Objective
from simulate.perceptrons import _flat

__all__ = ["loss", "perceptron_objective", "trained"]

_DECAYS = (0.9, 0.999)
_SMALL = 1e-8


def loss(widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str = "tanh") -> Tensor:
    """Mean softmax cross-entropy of a perceptron.

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
    >>> loss((3, 2), torch.zeros(6), torch.ones(4, 3), [0, 1, 1, 0])
    tensor(0.6931)
    """
    logits = _flat.flat_logits(widths, theta, activation)
    inputs, classes = _checks.labelled(x, labels, width=widths[0], classes=widths[-1], like=theta)
    return functional.cross_entropy(logits(theta, inputs), classes)


def perceptron_objective(
    widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str = "tanh"
) -> Objective:
    """The same loss of a module, whose curvature `simulate.operators` and the others measure.

    Parameters
    ----------
    widths, theta, x, labels, activation
        As for `loss`.

    Raises
    ------
    ValueError
        If an argument is refused by `loss`.

    Examples
    --------
    >>> round(perceptron_objective((3, 2), torch.zeros(6), torch.ones(4, 3), [0, 1, 1, 0]).value(), 4)
    0.6931
    """
    biased = _flat.biased(widths, theta)
    data = _checks.labelled(x, labels, width=widths[0], classes=widths[-1], like=theta)
    network = Mlp(widths, activation, bias=biased, rng=np.random.default_rng(0))  # its draws are overwritten
    nn.utils.vector_to_parameters(theta.detach(), network.parameters())
    return Objective(network, nn.CrossEntropyLoss(), data)


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
    """The parameters after some steps of Adam on all samples, from `theta`.

    Parameters
    ----------
    widths, theta, x, labels, activation
        As for `loss`.
    steps
        How many; 0 returns a copy.
    rate
        Learning rate.

    Raises
    ------
    ValueError
        If an argument is refused by `loss`, or `steps` is negative.
    """
    if steps < 0:
        raise ValueError(f"steps must not be negative, got {steps}")
    slope = _gradient(widths, theta, x, labels, activation)
    theta = theta.detach().clone()
    # written out: torch.optim loads a compiler, which takes longer than the steps
    mean, square = torch.zeros_like(theta), torch.zeros_like(theta)
    for step in range(1, steps + 1):
        gradient = slope(theta)
        mean = mean.lerp(gradient, 1 - _DECAYS[0])
        square = square.lerp(gradient.square(), 1 - _DECAYS[1])
        unbiased = (square / (1 - _DECAYS[1] ** step)).sqrt() + _SMALL
        theta = theta - rate * (mean / (1 - _DECAYS[0] ** step)) / unbiased
    return theta


def _gradient(
    widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str
) -> Callable[[Tensor], Tensor]:
    """Gradient of the loss, for parameters like `theta`: written out, at a third of the time of a graph per step."""
    parts = _flat.matrices_and_biases(widths, theta)
    inputs, classes = _checks.labelled(x, labels, width=widths[0], classes=widths[-1], like=theta)
    function, derivative = activations.nonlinearity(activation)
    inputs, own = inputs.mT.contiguous(), classes[None]

    def gradient(theta: Tensor) -> Tensor:
        weights, biases = parts(theta)
        below, pre = (
            [inputs],
            list[Tensor](),
        )  # a row for each unit: rows as long as the samples are many go fastest
        for i, weight in enumerate(weights):
            pre.append(torch.addmm(biases[i][:, None], weight, below[-1]) if biases else weight @ below[-1])
            if i + 1 < len(weights):
                below.append(function(pre[-1]))
        rate, found = _residuals(pre[-1], own) / inputs.shape[1], list[Tensor]()
        for i in reversed(range(len(weights))):
            found += [rate.sum(1), (rate @ below[i].mT).flatten()][not biases :]
            if i:
                slope = 1 - below[i].square() if activation == "tanh" else derivative(pre[i - 1])
                rate = weights[i].mT @ rate * slope
        return torch.cat(found[::-1])

    return gradient


def _residuals(logits: Tensor, own: Tensor) -> Tensor:
    """As `simulate._softmax.residuals`, classes (1, N) along the columns of logits (K, N)."""
    powers = (logits - logits.amax(0)).exp_()
    others = (powers / powers.sum(0)).scatter_(0, own, 0.0)
    return others.scatter(0, own, -others.sum(0, keepdim=True))
