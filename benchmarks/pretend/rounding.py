"""Rounding as another machine may do it: every sum, function and decomposition is off by as much as its type rounds.

Sums and products of matrices are added up in another order on a GPU, functions come from another library, and a
decomposition may choose other signs, and another basis where eigenvalues are equal or columns depend on each other.
What is added, multiplied or compared entry by entry is rounded alike everywhere, and is left alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import flop_registry

from benchmarks.pretend.counts import DECOMPOSITIONS

__all__ = ["Rounding"]

REDUCED = (
    "sum",
    "mean",
    "prod",
    "var",
    "std",
    "norm",
    "logsumexp",
    "softmax",
    "log_softmax",
    "cumsum",
    "logcumsumexp",
)
FUNCTIONS = (
    "exp",
    "log",
    "sin",
    "cos",
    "tan",
    "erf",
    "pow",
    "sigmoid",
    "gelu",
    "silu",
    "softplus",
    "lgamma",
    "digamma",
)
"""What the names of such operations contain."""


class Rounding:
    """Errors of one unit in the last place, drawn anew for every operation.

    Examples
    --------
    >>> x = torch.full((2, 2), 1.0, dtype=torch.float64)
    >>> moved = Rounding().moved(x) - 1
    >>> bool(moved.any()), float(moved.abs().max()) < 1e-14
    (True, True)
    """

    def __init__(self, seed: int = 0) -> None:
        self._rng = torch.Generator().manual_seed(seed)

    def operated(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The operation as another machine would round it."""
        name = func._overloadpacket.__name__
        if name.startswith(DECOMPOSITIONS):
            args = (self.moved(args[0]), *args[1:]) if isinstance(args[0], Tensor) else args
            return self._other_signs(name, func(*args, **kwargs))
        made = func(*args, **kwargs)
        if func._overloadpacket in flop_registry or any(part in name for part in REDUCED + FUNCTIONS):
            return self._each(made, in_place=func._schema.is_mutable)
        return made

    def moved(self, tensor: Tensor) -> Tensor:
        """Every entry off by what its type rounds, up or down."""
        if not tensor.is_floating_point():
            return tensor
        return tensor * (1 + torch.finfo(tensor.dtype).eps * self._drawn(tensor))

    def _each(self, made: Any, *, in_place: bool) -> Any:
        if isinstance(made, list | tuple):
            return type(made)(self._each(one, in_place=in_place) for one in made)
        if not isinstance(made, Tensor) or not made.is_floating_point():
            return made
        return made.copy_(self.moved(made)) if in_place else self.moved(made)

    def _other_signs(self, name: str, made: Any) -> Any:
        if name != "_linalg_eigh" or not made[1].numel():
            return made
        values, vectors = made
        return values, vectors * self._signs(vectors[..., :1, :].shape)

    def _drawn(self, like: Tensor) -> Tensor:
        return self._signs(like.shape).to(like.dtype)

    def _signs(self, shape: Any) -> Tensor:
        return torch.randint(0, 2, shape, generator=self._rng) * 2 - 1
