"""How models of every kind that people bring are listed, small enough for finite differences.

Each entry makes a model in double precision with its inputs; `refused` is what an error must say where there is no
right value, `apart` whether single samples have values of their own, and `padding` how many of the first parameters
stand for padding, which by definition has no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

N, WIDTH, OUT = 5, 3, 2

DERIVATIVES = "derivatives of their own values"
STILL = "must not write into its parameters"
"""What errors say."""


class Swept(NamedTuple):
    """How a model is made and asked."""

    build: Callable[[], Any]
    inputs: Callable[[], Any] = lambda: torch.randn(N, WIDTH)
    loss: Callable[[Any], Any] = lambda _: nn.MSELoss()
    options: Mapping[str, Any] = MappingProxyType({})
    refused: str = ""
    apart: bool = True
    padding: int = 0


class Calls(nn.Module):
    """Layers, and what is done with them."""

    def __init__(self, forward: Callable[..., Tensor], **layers: Any) -> None:
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)
        self.how = forward

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.how(self, *args, **kwargs)


def two(**more: Any) -> dict[str, Any]:
    return {"a": nn.Linear(WIDTH, WIDTH), "b": nn.Linear(WIDTH, OUT), **more}


def calls(forward: Callable[..., Tensor], **layers: Callable[[], Any]) -> Callable[[], nn.Module]:
    return lambda: Calls(forward, **two(), **{name: make() for name, make in layers.items()})


def plain(*layers: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(*(make() for make in layers))


def sized(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(N, *shape)


def tokens() -> Tensor:
    return torch.randint(4, (N, 3))
