"""What is asked of an objective before its derivatives are believed, by modules that it is built on itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from simulate.objectives.batches import Batch

__all__ = ["Asked"]


class Asked(Protocol):
    """What is needed of an `Objective`; its attributes are described there."""

    criterion: Any
    reduction: Any
    model: nn.Module | None
    training: bool
    device: torch.device
    dim: int
    names: tuple[str, ...]
    originals: tuple[tuple[str, Tensor], ...]
    fixed: Mapping[str, Tensor]
    takes_few: bool

    def leaves(self) -> tuple[Tensor, ...]:
        """The parameters."""
        ...

    def outputs(self, leaves: Sequence[Tensor], inputs: Any) -> Tensor:
        """Those of the model."""
        ...

    def weight(self, targets: Any) -> float:
        """What a batch counts for."""
        ...

    def few(self, *, whole: bool = False) -> Batch:
        """A few samples."""
        ...

    def standing(self, leaves: Sequence[Tensor], *, needed: bool = True) -> AbstractContextManager[None]:
        """Parameters in their places in the module."""
        ...
