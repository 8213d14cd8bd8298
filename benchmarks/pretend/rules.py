"""Rules of the pretended device: refusals of CUDA, waits of the CPU, and rounding of another machine.

Rounding changes every sum, function and decomposition by the rounding of its type. On a GPU sums and products of
matrices are added up in another order, functions come from another library, and a decomposition may choose other signs,
or another basis if eigenvalues are equal or columns dependent. Entrywise sums, products and comparisons round alike
everywhere and are not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import flop_registry

from benchmarks.pretend.counts import DECOMPOSITIONS, aten

INDEXED = aten("index _unsafe_index index_put index_put_ _index_put_impl_ _unsafe_index_put")
"""Operations that take indices from the CPU too; masks among them are counted first, so the CPU waits."""

SCALARS_OF_THE_CPU = aten("clamp fill fill_ lerp lerp_ where masked_fill masked_fill_ index_fill index_fill_")
"""Operations that take a CPU tensor without dimensions, in addition to pointwise ones."""

SIZE_UNKNOWN = aten("nonzero masked_select repeat_interleave bincount _unique2 unique_dim unique_consecutive")
"""Operations whose result has a size that the device has to find first."""

READ_BY_THE_CPU = aten("_local_scalar_dense equal is_nonzero")

STATUS_READ = ("aten::linalg_", "aten::_linalg_")
"""Prefixes of decompositions, whose status the CPU reads."""


class RefusedError(RuntimeError):
    """Raised for operations that CUDA refuses."""


def require_one_device(func: Any, args: Sequence[Any], strangers: Sequence[Tensor]) -> None:
    """Raise if CPU tensors are mixed with device tensors, unless CUDA takes them.

    Parameters
    ----------
    func, args
        Operation, and its positional arguments.
    strangers
        CPU tensors among all of its arguments.

    Raises
    ------
    RefusedError
        Naming the operation and the shapes of the strangers.
    """
    if not strangers:
        return
    name = func._schema.name
    if name in INDEXED:
        values = [t for t in (args[0], *args[2:3]) if isinstance(t, Tensor)]
        if any(t is other and (t.dim() or t is args[0]) for t in values for other in strangers):
            raise RefusedError(
                f"{name} must have the indexed tensor and the values on the device of the indices"
            )
        return
    written = args[0] if args and func._schema.is_mutable else None
    numbers = all(t.dim() == 0 and t is not written for t in strangers)
    if numbers and (torch.Tag.pointwise in func.tags or name in SCALARS_OF_THE_CPU):
        return
    shapes = ", ".join(str(tuple(t.shape)) for t in strangers)
    raise RefusedError(f"{name} must have all tensors on one device, got some on the CPU, of shape {shapes}")


def require_generator(func: Any, kwargs: Any) -> None:
    """Raise if a generator of the CPU draws on the device.

    Raises
    ------
    RefusedError
        Naming the operation.
    """
    generator = kwargs.get("generator")
    if isinstance(generator, torch.Generator) and generator.device.type == "cpu":
        raise RefusedError(f"{func._schema.name} must have a generator of the device, got one of the CPU")


def waits(func: Any, args: Sequence[Any]) -> bool:
    """Whether the CPU waits for the device after an operation there."""
    name = func._schema.name
    if name in INDEXED:
        return any(isinstance(i, Tensor) and i.dtype in (torch.bool, torch.uint8) for i in args[1])
    return name in SIZE_UNKNOWN or name in READ_BY_THE_CPU or name.startswith(STATUS_READ)


# --- rounding

ROUNDED = (
    *("sum", "mean", "prod", "var", "std", "norm", "logsumexp", "softmax", "cumsum", "logcumsumexp"),
    *("exp", "log", "sin", "cos", "tan", "erf", "pow", "sigmoid", "gelu", "silu", "softplus", "gamma"),
)
"""Parts of the names of operations that round."""


class Rounding:
    """Random errors of one unit in the last place for every operation.

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
        """Return the result of an operation, rounded as on another machine."""
        name = func._overloadpacket.__name__
        if name.startswith(DECOMPOSITIONS):
            args = (self.moved(args[0]), *args[1:]) if isinstance(args[0], Tensor) else args
            return self._flip_signs(name, func(*args, **kwargs))
        made = func(*args, **kwargs)
        if func._overloadpacket in flop_registry or any(part in name for part in ROUNDED):
            return self._round_all(made, in_place=func._schema.is_mutable)
        return made

    def moved(self, tensor: Tensor) -> Tensor:
        """Return the tensor with every entry moved up or down by the rounding of its type."""
        if not tensor.is_floating_point():
            return tensor
        return tensor * (
            1 + torch.finfo(tensor.dtype).eps * self._random_signs(tensor.shape).to(tensor.dtype)
        )

    def _round_all(self, made: Any, *, in_place: bool) -> Any:
        if isinstance(made, list | tuple):
            return type(made)(self._round_all(one, in_place=in_place) for one in made)
        if not isinstance(made, Tensor) or not made.is_floating_point():
            return made
        return made.copy_(self.moved(made)) if in_place else self.moved(made)

    def _flip_signs(self, name: str, made: Any) -> Any:
        if name != "_linalg_eigh" or not made[1].numel():
            return made
        values, vectors = made
        return values, vectors * self._random_signs(vectors[..., :1, :].shape)

    def _random_signs(self, shape: Any) -> Tensor:
        return torch.randint(0, 2, shape, generator=self._rng) * 2 - 1
