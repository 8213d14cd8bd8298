"""Derivatives of single samples of a bias-free perceptron, by automatic differentiation and nothing else.

What closed forms are held against. The flat parameters theta hold the layers in order, each matrix row by row;
the loss is the softmax cross-entropy at temperature 1. Samples N, classes K, parameters P; float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from simulate import _memory
from simulate.networks import Weights, mlp_logits
from simulate.perceptrons import _relu
from simulate.perceptrons.curvature import hessian

__all__ = ["LogitDerivatives", "logit_derivatives", "loss_gradients", "loss_hessians"]

_CHUNK = 64
"""Samples that are differentiated twice at once."""

Logits = Callable[[Tensor, Tensor], Tensor]
"""Of flat parameters (P,) and inputs (..., in)."""


class LogitDerivatives(NamedTuple):
    """Logits (N, K) with their first (N, K, P) and second (N, K, P, P) derivatives in theta."""

    logits: Tensor
    jacobian: Tensor
    second: Tensor


def logit_derivatives(weights: Weights, x: Any, activation: str = "relu") -> LogitDerivatives:
    """Logits of every sample and their derivatives in all parameters, dense.

    Parameters
    ----------
    weights
        Matrices of shape (out, in), see `networks.mlp_weights`.
    x
        Inputs (N, in).
    activation
        Name of the activation of the hidden layers.

    Raises
    ------
    ValueError
        If shapes disagree, the activation is unknown, or the derivatives do not fit into memory.

    Examples
    --------
    >>> weights = [torch.tensor([[2.0], [-3.0]]), torch.tensor([[5.0, 7.0], [1.0, 1.0]])]
    >>> found = logit_derivatives(weights, [[1.0]])
    >>> found.logits.tolist()  # the second hidden unit is off
    [[10.0, 2.0]]
    >>> found.second[0, 0, 0].tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """
    theta, logits, inputs, _ = _problem(weights, x, None, activation)
    _require_memory(len(weights[-1]), inputs, theta, "second derivatives of the logits")
    each = torch.func.jacrev(logits)
    return LogitDerivatives(
        logits(theta, inputs),
        torch.func.vmap(each, in_dims=(None, 0))(theta, inputs),
        torch.func.vmap(torch.func.jacrev(each), in_dims=(None, 0), chunk_size=_CHUNK)(theta, inputs),
    )


def loss_gradients(weights: Weights, x: Any, labels: Any, activation: str = "relu") -> Tensor:
    """Gradient of the loss of every sample in all parameters, (N, P).

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, the activation is unknown, or the gradients do not fit into
        memory.

    Examples
    --------
    >>> loss_gradients([torch.zeros(2, 1)], [[4.0]], [1])
    tensor([[ 2., -2.]], dtype=torch.float64)
    """
    theta, logits, inputs, classes = _problem(weights, x, labels, activation)
    _require(3 * len(inputs) * len(theta), inputs, theta, "gradients of the losses")
    gradient = torch.func.grad(_loss(logits))
    return torch.func.vmap(gradient, in_dims=(None, 0, 0))(theta, inputs, classes)


def loss_hessians(weights: Weights, x: Any, labels: Any, activation: str = "relu") -> Tensor:
    """Hessian of the loss of every sample in all parameters, (N, P, P).

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, the activation is unknown, or the Hessians do not fit into
        memory.

    Examples
    --------
    >>> loss_hessians([torch.zeros(2, 1)], [[4.0]], [1])
    tensor([[[ 4., -4.],
             [-4.,  4.]]], dtype=torch.float64)
    """
    theta, logits, inputs, classes = _problem(weights, x, labels, activation)
    _require_memory(1, inputs, theta, "Hessians of the samples")
    each = hessian(_loss(logits))
    return torch.func.vmap(each, in_dims=(None, 0, 0), chunk_size=_CHUNK)(theta, inputs, classes)


def _loss(logits: Logits) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    # one-hot weights: picking the label's entry has no rule under vmap
    def loss(theta: Tensor, x: Tensor, target: Tensor) -> Tensor:
        log_p = functional.log_softmax(logits(theta, x), -1)
        return -(log_p * target).sum() / math.prod(log_p.shape[:-1])

    return loss


def _problem(weights: Weights, x: Any, labels: Any, activation: str) -> tuple[Tensor, Logits, Tensor, Tensor]:
    """Flat parameters, the logits as a function of them, inputs (N, in) and one-hot labels (N, K)."""
    if labels is None:
        labels = torch.zeros(torch.as_tensor(x).shape[:1], dtype=torch.long)
    weights, inputs, classes = _relu.problem(weights, x, labels)
    sizes = [weight.numel() for weight in weights]

    def logits(theta: Tensor, x: Tensor) -> Tensor:
        parts = zip(theta.split(sizes), weights, strict=True)
        return mlp_logits([part.view_as(weight) for part, weight in parts], x, activation)

    theta = torch.cat([weight.flatten() for weight in weights])
    return theta, logits, inputs, functional.one_hot(classes, len(weights[-1])).to(theta.dtype)


def _require_memory(outputs: int, inputs: Tensor, theta: Tensor, name: str) -> None:
    # all of them twice, since their parts are joined, and what one part is made from
    matrices = 2 * len(inputs) + min(len(inputs), _CHUNK)
    _require(matrices * outputs * len(theta) ** 2, inputs, theta, name)


def _require(numbers: int, inputs: Tensor, theta: Tensor, name: str) -> None:
    what = f"the {name} of {len(inputs)} samples by {len(theta)} parameters"
    advice = "use fewer samples or smaller layers"
    _memory.require("x", theta.element_size() * numbers, what, device=theta.device, advice=advice)
