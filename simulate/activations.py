"""Activations by name, each an elementwise function of tensors with its derivative."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from simulate import _checks


class Nonlinearity(NamedTuple):
    """An elementwise function of tensors and its derivative."""

    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]


ActivationLike = str | Nonlinearity | Sequence[str | Nonlinearity]
"""A `Nonlinearity` or the name of one: a single one for all hidden layers, or a sequence with one for each."""


def _step(left: float) -> Callable[[Tensor], Tensor]:
    # tensors of one number: a scalar inside where() would be single precision
    return lambda u: torch.where(u > 0, u.new_ones(()), u.new_full((), left))


def _softplus(u: Tensor) -> Tensor:
    # linear where that is exact to rounding: torch's default of 20 is 2e-9 off. Not logaddexp, whose second
    # derivative is NaN far out.
    return functional.softplus(u, threshold=40)


ACTIVATIONS: dict[str, Nonlinearity] = {
    "relu": Nonlinearity(torch.relu, _step(0.0)),
    "leaky_relu": Nonlinearity(functional.leaky_relu, _step(0.01)),
    "linear": Nonlinearity(torch.clone, torch.ones_like),
    # not 1 - tanh(u)^2, which cancels for large u
    "tanh": Nonlinearity(torch.tanh, lambda u: 1 / torch.cosh(u) ** 2),
    "erf": Nonlinearity(torch.erf, lambda u: 2 / math.sqrt(math.pi) * torch.exp(-u * u)),
    # not s (1 - s), which cancels for large u
    "sigmoid": Nonlinearity(torch.sigmoid, lambda u: torch.sigmoid(u) * torch.sigmoid(-u)),
    "softplus": Nonlinearity(_softplus, torch.sigmoid),
    "gelu": Nonlinearity(
        lambda u: u * torch.special.ndtr(u),
        lambda u: torch.special.ndtr(u) + u * torch.exp(-u * u / 2) / math.sqrt(2 * math.pi),
    ),
    "hard_tanh": Nonlinearity(functional.hardtanh, lambda u: (u.abs() < 1).to(u.dtype)),
}
"""Activations by the names that experiments use, each with its derivative (at a kink, the left one)."""


def nonlinearity(name: str) -> Nonlinearity:
    """Return the activation of that name (erf is erf(x), gelu is x Phi(x)).

    Raises
    ------
    ValueError
        If there is no such activation.

    Examples
    --------
    >>> nonlinearity("leaky_relu").derivative(torch.tensor([-1.0, 2.0]))
    tensor([0.0100, 1.0000])
    """
    _checks.one_of("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]


def by_layer(activation: ActivationLike, hidden: int) -> tuple[Nonlinearity, ...]:
    """The activation of each of so many hidden layers.

    Raises
    ------
    ValueError
        If the activation is unknown, or a sequence of them does not match the hidden layers.
    """
    each = (activation,) * hidden if isinstance(activation, str | Nonlinearity) else activation
    if len(each) != hidden:
        raise ValueError(
            f"activation must be one, or one for each of the {hidden} hidden layers, got {len(each)}"
        )
    return tuple(a if isinstance(a, Nonlinearity) else nonlinearity(a) for a in each)
