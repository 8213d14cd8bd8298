"""Gram matrix of the gradients of a network whose outputs are normalised over the samples.

Every output k is centred over the T samples and may be divided by its standard deviation sigma_k (divisor T, nothing
added). The Jacobian becomes A_k J_k with A_k symmetric (T, T), so the Gram K becomes A K A:

=================================  =================================================================
last layer                         A_k, with f_k the outputs centred and divided by their deviation
=================================  =================================================================
`mean_subtraction`                 I - 1 1^T / T
`batch_normalisation`              (I - 1 1^T / T - f_k f_k^T / T) / sigma_k
the same, `fixed_deviation=True`   (I - 1 1^T / T) / sigma_k, with sigma_k taken as a constant
=================================  =================================================================

Outputs are of shape (n, C, T), replicates first; Grams as in `simulate.wide.fisher_gram`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from simulate.activations import ActivationLike
from simulate.wide.signals import Network, forward

_ROUNDINGS = 16
"""Roundings of the outputs, below which a deviation counts as rounding of their mean."""


class Normalisation(NamedTuple):
    """Matrices A_k: they remove orthonormal `directions` (n, C, T, r) and multiply the rest by `scale` (n, C)."""

    directions: Tensor
    scale: Tensor


def outputs_of(network: Network, activation: ActivationLike) -> Tensor:
    """Return the outputs f, shape (n, C, T)."""
    return forward(network, activation).preactivations[-1].mT


def mean_subtraction(outputs: Tensor) -> Normalisation:
    """Return the normalisation that subtracts from every output its mean over the samples.

    Examples
    --------
    >>> projected_gram(torch.eye(2).view(1, 1, 1, 2, 2), mean_subtraction(torch.zeros(1, 1, 2))).squeeze()
    tensor([[ 0.5000, -0.5000],
            [-0.5000,  0.5000]])
    """
    return Normalisation(_constant(outputs), torch.ones_like(outputs[..., 0]))


def batch_normalisation(outputs: Tensor, *, fixed_deviation: bool = False) -> Normalisation:
    """Return the normalisation that subtracts from every output its mean and divides it by its deviation.

    Parameters
    ----------
    outputs
        Shape (n, C, T).
    fixed_deviation
        Whether sigma_k counts as a number when differentiating, and not as a function of the parameters.

    Raises
    ------
    ValueError
        If an output is the same for all samples.

    Examples
    --------
    With two samples the outputs are 1 and -1, whatever the parameters.

    >>> outputs = torch.tensor([[[0.3, 1.7]]])
    >>> gram = torch.eye(2).view(1, 1, 1, 2, 2)
    >>> projected_gram(gram, batch_normalisation(outputs)).squeeze().round(decimals=5).abs()
    tensor([[0., 0.],
            [0., 0.]])
    """
    unit = normalised(outputs)
    directions = _constant(outputs)
    if not fixed_deviation:
        directions = torch.cat([directions, unit[..., None] / math.sqrt(outputs.shape[-1])], dim=-1)
    return Normalisation(directions, 1 / _deviation(outputs))


def normalised(outputs: Tensor) -> Tensor:
    """Return outputs minus their mean over the samples, divided by their deviation: shape (n, C, T).

    Raises
    ------
    ValueError
        If an output is the same for all samples.
    """
    return _less_mean(outputs) / _deviation(outputs)[..., None]


def projected_gram(gram: Tensor, normalisation: Normalisation) -> Tensor:
    """Return A K A, the Gram of the gradients of the normalised outputs: same shape."""
    n, outputs = gram.shape[:2]
    # contiguous, so that both flattened forms are views of the same numbers
    total = gram.transpose(2, 3).clone(memory_format=torch.contiguous_format)
    rows, columns = total.flatten(3, 4), total.flatten(1, 2)
    for k in range(outputs):
        basis = normalisation.directions[:, k]
        rows[:, k].baddbmm_(basis, basis.mT @ rows[:, k], alpha=-1)
        columns[:, :, k].baddbmm_(columns[:, :, k] @ basis, basis.mT, alpha=-1)
    scale = normalisation.scale
    total.mul_(scale.view(n, outputs, 1, 1, 1)).mul_(scale.view(n, 1, 1, outputs, 1))
    return total.transpose(2, 3)


def _less_mean(outputs: Tensor) -> Tensor:
    return outputs - outputs.mean(-1, keepdim=True)


def _deviation(outputs: Tensor) -> Tensor:
    deviation = _less_mean(outputs).square().mean(-1).sqrt()
    # the mean of a large constant output leaves rounding, which would count as a deviation
    rounding = _ROUNDINGS * torch.finfo(outputs.dtype).eps * outputs.abs().amax(-1)
    if not bool((deviation > rounding).all()):
        raise ValueError(
            "outputs must differ between samples to be divided by their deviation, got a constant output"
        )
    return deviation


def _constant(outputs: Tensor) -> Tensor:
    """Return the direction 1 / sqrt(T) for every output, (n, C, T, 1)."""
    return torch.full_like(outputs, 1 / math.sqrt(outputs.shape[-1]))[..., None]
