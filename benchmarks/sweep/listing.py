"""Record of one model of the sweep: its builder, its data, and the outcome that is expected."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

N, D, H, C = 20, 5, 4, 3
"""Samples, inputs, hidden units and classes."""


class Net(nn.Module):
    """Parts with names, and a function of them and the inputs."""

    def __init__(self, call: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.call = call
        for name, part in parts.items():
            setattr(self, name, nn.Linear(*part) if isinstance(part, tuple) else part())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Whatever the function returns."""
        return self.call(self, *args, **kwargs)


def net(call: Callable[..., Any], **parts: Any) -> Callable[[], Any]:
    """Two linear layers `a` and `b`, other parts, and a function: a pair of sizes is a linear layer."""
    return lambda: Net(call, **{"a": (D, H), "b": (H, C), **parts})


def plain(m: Any, x: Tensor) -> Tensor:
    """The perceptron of both layers."""
    return m.b(m.a(x).tanh())


def drawn(*shape: int) -> Callable[[], Tensor]:
    """Normal numbers for every sample."""
    return lambda: torch.randn(N, *shape)


def in_turns() -> Tensor:
    """Classes of the samples."""
    return torch.arange(N) % C


@dataclass(frozen=True)
class Listed:
    """A model of the sweep.

    `build`, `inputs` and `targets` are called in this order, after torch was seeded and set to double precision.
    `mixed`: samples see each other, so that nothing can be asked of single ones. `sited`: layers act on every sample
    apart, so that there are Kronecker factors. `refuses`: other entries without an answer. `cut`: samples in a batch;
    all in one if None. `refused`: words of the refusal, where no number is right. `tolerance`: of relative errors, by
    the precision that the model computes in.
    """

    build: Callable[[], Any]
    inputs: Callable[[], Any] = lambda: torch.randn(N, D)
    targets: Callable[[], Any] = in_turns
    loss: Any = nn.functional.cross_entropy
    mixed: bool = False
    sited: bool = True
    refuses: tuple[str, ...] = ()
    cut: int | None = None
    refused: str = ""
    tolerance: float = 1e-8


def seed_of(name: str) -> int:
    """Seed of a model and its data: by its name, so that none can be chosen."""
    return zlib.crc32(name.encode())


def built(name: str, listed: Listed) -> tuple[Any, Any, Any]:
    """Return the model, its inputs and its targets; the same each time."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(seed_of(name))
        torch.set_default_dtype(torch.float64)
        try:
            return listed.build(), listed.inputs(), listed.targets()
        finally:
            torch.set_default_dtype(torch.float32)
