"""Curvature of every single sample of a small perceptron with biases, by automatic differentiation.

The flat parameters hold, layer by layer from the input, each matrix row by row and then its biases. The loss
is the softmax cross-entropy at temperature 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from simulate import _checks, _memory, _softmax
from simulate.perceptrons import _flat
from simulate.perceptrons.curvature import hessian

__all__ = [
    "ProbePieces",
    "algorithm_1_probes",
    "gauss_newtons",
    "hessians",
    "initial_parameters",
    "parameter_count",
]

_CHUNK = 64
"""Samples whose Hessians are taken at once."""


def parameter_count(widths: Sequence[int]) -> int:
    """Number of weights and biases of a perceptron (`networks.parameter_count` is that without biases).

    Raises
    ------
    ValueError
        If there are fewer than two widths, or one is not positive.

    Examples
    --------
    >>> parameter_count((16, 8, 10))
    226
    """
    return sum((fan_in + 1) * out for fan_in, out in _checks.layers(widths))


def initial_parameters(rng: np.random.Generator, widths: Sequence[int]) -> Tensor:
    """Flat parameters of a perceptron: per layer, weights of variance 1/fan_in, then biases, all zero.

    Raises
    ------
    ValueError
        If there are fewer than two widths, one is not positive, or the parameters do not fit into memory.
    """
    size = parameter_count(widths)
    # four times: drawn, scaled, joined with the biases, and joined to one vector
    _memory.require("widths", 32 * size, f"{size} parameters")
    blocks = [
        np.concatenate([rng.standard_normal(fan_in * out) / math.sqrt(fan_in), np.zeros(out)])
        for fan_in, out in _checks.layers(widths)
    ]
    return torch.from_numpy(np.concatenate(blocks))


def hessians(widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str = "tanh") -> Tensor:
    """Hessian of the cross-entropy of every single sample, (N, P, P).

    Parameters
    ----------
    widths
        Units of the input, of each hidden layer and of the output.
    theta
        Flat parameters (P,), ordered as `initial_parameters` draws them.
    x, labels
        Inputs (N, in) and classes (N,).
    activation
        Name of the activation of the hidden layers.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, the activation is unknown, or the Hessians do not fit into
        memory.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = initial_parameters(rng, (3, 2, 4))
    >>> hessians((3, 2, 4), theta, rng.standard_normal((5, 3)), [0, 1, 2, 3, 0]).shape
    torch.Size([5, 20, 20])
    """
    inputs, targets = _problem(widths, theta, x, labels)
    logits = _flat.flat_logits(widths, activation)
    # all of them twice, since their parts are joined, and what one part is made from
    matrices = 2 * len(inputs) + min(len(inputs), _CHUNK)
    _require_memory("Hessians", matrices * len(theta) ** 2, inputs, theta)

    def loss(theta: Tensor, x: Tensor, target: Tensor) -> Tensor:
        return -(functional.log_softmax(logits(theta, x), -1) * target).sum()

    return torch.func.vmap(hessian(loss), in_dims=(None, 0, 0), chunk_size=_CHUNK)(theta, inputs, targets)


def gauss_newtons(
    widths: Sequence[int], theta: Tensor, x: Any, labels: Any, activation: str = "tanh"
) -> Tensor:
    """Gauss-Newton matrix of every single sample, (N, P, P); the labels are checked, and do not matter.

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, the activation is unknown, or the matrices do not fit into
        memory.
    """
    inputs, _ = _problem(widths, theta, x, labels)
    logits = _flat.flat_logits(widths, activation)
    numbers = 2 * len(inputs) * len(theta) * (len(theta) + widths[-1])
    _require_memory("Gauss-Newton matrices", numbers, inputs, theta)
    jacobians = torch.func.vmap(torch.func.jacrev(logits), in_dims=(None, 0))(theta, inputs)
    values = logits(theta, inputs)
    rows, log_scale = _softmax.factor(values, _softmax.contrasts(jacobians, values))
    return rows.mT @ rows * log_scale.exp()


class ProbePieces(NamedTuple):
    """Per probe v: mean_i |H_i v|^2, |mean_i H_i v|^2 and (v' mean_i H_i v)^2, each of shape (probes,)."""

    mean_square: Tensor
    square_of_mean: Tensor
    quadratic_form_squared: Tensor


def algorithm_1_probes(hessians: Tensor, probes: Any) -> ProbePieces:
    """The pieces from which estimators of the variance of per-sample Hessians are put together.

    Parameters
    ----------
    hessians
        (N, P, P), symmetric.
    probes
        Unit vectors (probes, P).

    Raises
    ------
    ValueError
        If shapes disagree or a probe has not norm one.

    Examples
    --------
    >>> hessians = torch.stack([torch.diag(torch.tensor([1.0, 3.0])), torch.diag(torch.tensor([3.0, 3.0]))])
    >>> [piece.item() for piece in algorithm_1_probes(hessians, [[1.0, 0.0]])]
    [5.0, 4.0, 4.0]
    """
    probes = torch.as_tensor(probes, dtype=hessians.dtype, device=hessians.device)
    if hessians.ndim != 3 or probes.ndim != 2 or hessians.shape[1:] != (probes.shape[1],) * 2:
        shapes = f"{tuple(probes.shape)} and {tuple(hessians.shape)}"
        raise ValueError(f"probes must be (m, P) for hessians (N, P, P), got {shapes}")
    if not torch.allclose(probes.norm(dim=1), probes.new_ones(()), rtol=1e-6):
        raise ValueError(f"probes must have norm 1, got {probes.norm(dim=1).tolist()}")
    squares = sum((part @ probes.T).square().sum((0, 1)) for part in hessians.split(64))
    mean = probes @ hessians.mean(0)
    return ProbePieces(
        torch.as_tensor(squares) / len(hessians), mean.square().sum(1), (mean * probes).sum(1).square()
    )


def _require_memory(name: str, numbers: int, inputs: Tensor, theta: Tensor) -> None:
    what = f"the {name} of {len(inputs)} samples by {len(theta)} parameters"
    advice = "use fewer samples or smaller widths"
    _memory.require("x", theta.element_size() * numbers, what, device=theta.device, advice=advice)


def _problem(widths: Sequence[int], theta: Tensor, x: Any, labels: Any) -> tuple[Tensor, Tensor]:
    if theta.shape != (parameter_count(widths),):
        raise ValueError(f"theta must be of shape ({parameter_count(widths)},), got {tuple(theta.shape)}")
    inputs, classes = _checks.labelled(x, labels, width=widths[0], classes=widths[-1], like=theta)
    return inputs, functional.one_hot(classes, widths[-1]).to(theta.dtype)
