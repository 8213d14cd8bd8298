"""Entries of a list of models of every kind, small enough for finite differences."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

N, WIDTH, OUT = 5, 3, 2

DERIVATIVES = "must agree with finite differences"
STILL = "must not write into its parameters"
"""What errors say."""


class Calls(nn.Module):
    """Layers, and what is done with them."""

    def __init__(self, forward: Callable[..., Any], layers: dict[str, Callable[[], Any]]) -> None:
        super().__init__()
        for name, make in layers.items():
            setattr(self, name, make())
        self.how = forward

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.how(self, *args, **kwargs)


def own(forward: Callable[..., Any], **layers: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: Calls(forward, layers)


def calls(forward: Callable[..., Any], **layers: Callable[[], Any]) -> Callable[[], Any]:
    """With two linear layers at hand."""
    return own(forward, a=lambda: nn.Linear(WIDTH, WIDTH), b=lambda: nn.Linear(WIDTH, OUT), **layers)


def plain(*layers: Callable[[], nn.Module]) -> Callable[[], Any]:
    return lambda: nn.Sequential(*(make() for make in layers))


USUAL = calls(lambda m, x: m.b(m.a(x).tanh()))


class Swept(NamedTuple):
    """A model in double precision, with its data, loss and expected answers.

    `refused` is what an error must say where there is no right value, `apart` whether single samples have values of
    their own, and `padding` how many of the first parameters stand for padding, which by definition has no derivative.
    """

    build: Callable[[], Any] = USUAL
    inputs: Callable[[], Any] = lambda: torch.randn(N, WIDTH)
    loss: Callable[[Any], Any] = lambda _: nn.MSELoss()
    parameters: Any = None
    training: bool = False
    refused: str = ""
    apart: bool = True
    padding: int = 0


def sized(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(N, *shape)


def tokens() -> Tensor:
    return torch.randint(4, (N, 3))


def two_sides() -> dict[str, Tensor]:
    return {"left": torch.randn(N, WIDTH), "right": torch.randn(N, WIDTH)}
