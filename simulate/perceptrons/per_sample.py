"""Derivatives of every single sample of a small perceptron, by automatic differentiation alone.

They are the reference for closed forms. The flat parameters hold, layer by layer from the input, each matrix row by row
and then its biases, if any. The loss is the softmax cross-entropy at temperature 1. There are N samples, K classes and
P parameters.

For Hessians times vectors, of perceptrons of any size, see `simulate.perceptrons.sample_products`; for derivatives of
the logits of any model along a few directions `simulate.modules.logit_derivatives`, which for all P coordinates takes a
hundred times as long. `simulate.operators`, one sample after the other, takes 30 times (gradients) to 90 times
(Gauss-Newton matrices) as long for seven samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from simulate import _checks
from simulate.modules import softmax
from simulate.modules.logit_derivatives import LogitDerivatives
from simulate.networks import Weights
from simulate.perceptrons import _flat
from simulate.perceptrons.curvature import hessian_of

_CHUNK = 64
"""Number of samples that are differentiated twice at once."""


def flattened(weights: Weights) -> tuple[tuple[int, ...], Tensor]:
    """Return widths and flat float64 parameters of a perceptron without biases given as matrices (out, in).

    Examples
    --------
    >>> flattened([torch.tensor([[2.0, 1.0]]), torch.tensor([[3.0], [4.0]])])
    ((2, 1, 2), tensor([2., 1., 3., 4.], dtype=torch.float64))
    """
    theta = torch.cat([weight.detach().to(torch.float64).flatten() for weight in weights])
    return (weights[0].shape[1], *map(len, weights)), theta


def initial_parameters(rng: np.random.Generator, widths: Sequence[int]) -> Tensor:
    """Draw flat parameters of a perceptron: per layer weights of variance 1/fan_in, then biases, all zero.

    Raises
    ------
    ValueError
        If there are fewer than two widths, or one is not positive.
    """
    blocks = [
        np.concatenate([rng.standard_normal(fan_in * out) / math.sqrt(fan_in), np.zeros(out)])
        for fan_in, out in _checks.layer_sizes(widths)
    ]
    return torch.from_numpy(np.concatenate(blocks))


def all_logit_derivatives(
    widths: Sequence[int], theta: Tensor, x: Any, activation: str = "tanh"
) -> LogitDerivatives:
    """Return logits of every sample and their dense derivatives in all parameters, with the identity as frame.

    Parameters
    ----------
    widths, theta, x, activation
        As for `hessians`.

    Raises
    ------
    ValueError
        If shapes disagree, or the activation is unknown.

    Examples
    --------
    >>> weights = [torch.tensor([[2.0], [-3.0]]), torch.tensor([[5.0, 7.0], [1.0, 1.0]])]
    >>> found = all_logit_derivatives(*flattened(weights), [[1.0]], "relu")
    >>> found.logits.tolist()  # the second hidden unit is off
    [[10.0, 2.0]]
    >>> found.second[0, 0, 0].tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """
    labels = torch.zeros(torch.as_tensor(x).shape[:1], dtype=torch.long)
    logits, inputs, _ = _problem(widths, theta, x, labels, activation)
    each = torch.func.jacrev(logits)
    return LogitDerivatives(
        logits(theta, inputs),
        torch.func.vmap(each, in_dims=(None, 0))(theta, inputs),
        torch.func.vmap(torch.func.jacrev(each), in_dims=(None, 0), chunk_size=_CHUNK)(theta, inputs),
    )


def loss_gradients(
    widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str = "tanh"
) -> Tensor:
    """Return the gradient of the cross-entropy of every single sample, (N, P); arguments as for `hessians`.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, or the activation is unknown.

    Examples
    --------
    >>> loss_gradients((1, 2), torch.zeros(2), [[4.0]], [1])
    tensor([[ 2., -2.]])
    """
    logits, inputs, targets = _problem(widths, theta, x, labels, activation)
    gradient = torch.func.grad(_loss(logits))
    return torch.func.vmap(gradient, in_dims=(None, 0, 0))(theta, inputs, targets)


def hessians(widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str = "tanh") -> Tensor:
    """Return the Hessian of the cross-entropy of every single sample, (N, P, P).

    Parameters
    ----------
    widths
        Units of the input, of each hidden layer and of the output.
    theta
        Flat parameters (P,), ordered as `initial_parameters` draws them; or those of the weights alone, see
        `flattened`.
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
    >>> rng = np.random.default_rng(0)
    >>> theta = initial_parameters(rng, (3, 2, 4))
    >>> hessians((3, 2, 4), theta, rng.standard_normal((5, 3)), [0, 1, 2, 3, 0]).shape
    torch.Size([5, 20, 20])
    """
    logits, inputs, targets = _problem(widths, theta, x, labels, activation)
    each = hessian_of(_loss(logits))
    return torch.func.vmap(each, in_dims=(None, 0, 0), chunk_size=_CHUNK)(theta, inputs, targets)


def gauss_newtons(
    widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str = "tanh"
) -> Tensor:
    """Return the Gauss-Newton matrix of every single sample, (N, P, P); the labels are checked, but have no effect.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, or the activation is unknown.
    """
    logits, inputs, _ = _problem(widths, theta, x, labels, activation)
    jacobians = torch.func.vmap(torch.func.jacrev(logits), in_dims=(None, 0))(theta, inputs)
    values = logits(theta, inputs)
    rows, log_scale = softmax.covariance_factor(values, softmax.contrasts(jacobians, values))
    return rows.mT @ rows * log_scale.exp()


def _loss(logits: _flat.Logits) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    # one-hot targets: picking the label's entry has no rule under vmap
    def loss(theta: Tensor, x: Tensor, target: Tensor) -> Tensor:
        return -(functional.log_softmax(logits(theta, x), -1) * target).sum()

    return loss


def _problem(
    widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str
) -> tuple[_flat.Logits, Tensor, Tensor]:
    """Return the logits as a function of flat parameters, inputs (N, in) and one-hot labels (N, K)."""
    logits = _flat.flat_logits(widths, theta, activation)
    inputs, classes = _checks.labelled(x, labels, widths, theta)
    return logits, inputs, functional.one_hot(classes, widths[-1]).to(theta.dtype)
