"""Rows of embeddings that stand for padding: they enter what is computed, and torch gives them no derivative.

That is the definition of `padding_idx`, of `nn.Embedding` and of the function of torch. Derivatives on the way back
leave them out. Forward mode, and differences along a line, move them like all others, unless they are held.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from simulate.objectives.derivatives import behind

__all__ = ["held_padding", "pads"]

_NONE = (None, 2**64 - 1)
"""What a node of the graph says where there is none: -1, without a sign."""


def pads(ends: Tensor) -> bool:
    """Whether what came out looks up embeddings of which a row stands for padding.

    Examples
    --------
    >>> words = torch.nn.Embedding(3, 2, padding_idx=0), torch.nn.Embedding(3, 2)
    >>> [pads(embedding(torch.tensor([1, 2]))) for embedding in words]
    [True, False]
    """
    return any(getattr(node, "_saved_padding_idx", None) not in _NONE for node in behind([ends]))


def held_padding(
    moved: Sequence[Tensor], originals: Sequence[Tensor], *, needed: bool
) -> AbstractContextManager[Any]:
    """While the model is called at moved parameters: its rows of padding as they are in the original ones, if needed.

    Raises
    ------
    ValueError
        From the call, where what is looked up is no parameter itself, of which nobody knows where its row was.
    """
    return _Held(moved, originals) if needed else nullcontext()


class _Held(TorchDispatchMode):
    def __init__(self, moved: Sequence[Tensor], originals: Sequence[Tensor]) -> None:
        super().__init__()
        self._originals = {m.data_ptr(): o.detach() for m, o in zip(moved, originals, strict=True)}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if (
            func is torch.ops.aten.embedding.default and len(args) > 2 and args[2] >= 0
        ):  # those of a padding row
            args = (self._with_row(args[0], args[2]), *args[1:])
        return func(*args, **kwargs)

    def _with_row(self, weight: Tensor, padding: int) -> Tensor:
        original = self._originals.get(weight.data_ptr())
        if original is None or original.shape != weight.shape:
            raise ValueError(
                "an embedding with padding_idx must look up a parameter itself, got what is made of others: its row of"
                " padding cannot be held"
            )
        held = weight.clone()
        held[padding] = original[padding].to(held)
        return held
