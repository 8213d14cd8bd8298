"""Activations by name, each an elementwise function of tensors with its derivative."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["ACTIVATIONS", "Activation", "named"]


class Activation(NamedTuple):
    """An elementwise function of tensors and its derivative."""

    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]


def _step(left: float) -> Callable[[Tensor], Tensor]:
    # full_like: a scalar inside where() would be single precision
    return lambda u: torch.where(u > 0, torch.ones_like(u), torch.full_like(u, left))


def _softplus(u: Tensor) -> Tensor:
    # linear where that is exact to rounding: torch's default of 20 is 2e-9 off. Not logaddexp, whose second
    # derivative is NaN far out.
    return functional.softplus(u, threshold=40)


def _gelu_slope(u: Tensor) -> Tensor:
    return torch.special.ndtr(u) + u * torch.exp(-u * u / 2) / math.sqrt(2 * math.pi)


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(torch.relu, _step(0.0)),
    "leaky_relu": Activation(functional.leaky_relu, _step(0.01)),
    "linear": Activation(torch.clone, torch.ones_like),
    "tanh": Activation(torch.tanh, lambda u: 1 / torch.cosh(u) ** 2),
    "erf": Activation(torch.erf, lambda u: 2 / math.sqrt(math.pi) * torch.exp(-u * u)),
    "sigmoid": Activation(torch.sigmoid, lambda u: torch.sigmoid(u) * torch.sigmoid(-u)),
    "softplus": Activation(_softplus, torch.sigmoid),
    "gelu": Activation(lambda u: u * torch.special.ndtr(u), _gelu_slope),
    "hard_tanh": Activation(functional.hardtanh, lambda u: (u.abs() < 1).to(u.dtype)),
}
"""Names that experiments use, each with its derivative (of a kink: that of its left side)."""


def named(name: str) -> Activation:
    """The activation of that name (erf is erf(x), gelu is x Phi(x)).

    Raises
    ------
    ValueError
        If there is no such activation.

    Examples
    --------
    >>> named("leaky_relu").derivative(torch.tensor([-1.0, 2.0]))
    tensor([0.0100, 1.0000])
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {name!r}")
    return ACTIVATIONS[name]
