"""What CUDA refuses, and where the CPU has to wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["INDEXED", "RefusedError", "require_generator", "require_one_device", "waits"]

INDEXED = frozenset(
    {
        "aten::index",
        "aten::_unsafe_index",
        "aten::index_put",
        "aten::index_put_",
        "aten::_index_put_impl_",
        "aten::_unsafe_index_put",
    }
)
"""Take indices from the CPU too; masks among them are counted first, for which the CPU waits."""

SCALARS_OF_THE_CPU = frozenset(
    {"aten::clamp", "aten::fill", "aten::fill_", "aten::lerp", "aten::lerp_", "aten::where"}
    | {"aten::masked_fill", "aten::masked_fill_", "aten::index_fill", "aten::index_fill_"}
)
"""Take a tensor of the CPU without dimensions, beside all that are pointwise."""

SIZE_UNKNOWN = frozenset(
    {"aten::nonzero", "aten::masked_select", "aten::repeat_interleave", "aten::bincount"}
    | {"aten::_unique2", "aten::unique_dim", "aten::unique_consecutive"}
)
"""Whose results have a size that the device has to find first."""

READ_BY_THE_CPU = frozenset({"aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero"})

STATUS_READ = ("aten::linalg_", "aten::_linalg_")
"""Decompositions, whose success the CPU asks for."""


class RefusedError(RuntimeError):
    """Something that CUDA does not do."""


def require_one_device(func: Any, args: Sequence[Any], strangers: Sequence[Tensor]) -> None:
    """Refuse tensors of the CPU among those of a device, but where CUDA takes them.

    Parameters
    ----------
    func, args
        An operation, and its positional arguments.
    strangers
        The tensors of the CPU among all of its arguments.

    Raises
    ------
    RefusedError
        Naming the operation and the shapes of the strangers.
    """
    if not strangers:
        return
    name = func._schema.name
    if name in INDEXED:
        _require_indexed_there(name, args, strangers)
        return
    written = args[0] if args and func._schema.is_mutable else None
    numbers = all(t.dim() == 0 and t is not written for t in strangers)
    if numbers and (torch.Tag.pointwise in func.tags or name in SCALARS_OF_THE_CPU):
        return
    shapes = ", ".join(str(tuple(t.shape)) for t in strangers)
    raise RefusedError(f"{name} must have all tensors on one device, got some on the CPU, of shape {shapes}")


def _require_indexed_there(name: str, args: Sequence[Any], strangers: Sequence[Tensor]) -> None:
    values = [t for t in (args[0], *args[2:3]) if isinstance(t, Tensor)]
    if any(t is other and (t.dim() or t is args[0]) for t in values for other in strangers):
        raise RefusedError(
            f"{name} must have what is indexed and what is put there on the device of the indices"
        )


def require_generator(func: Any, kwargs: Any) -> None:
    """Refuse to draw on the device by a generator of the CPU.

    Raises
    ------
    RefusedError
        Naming the operation.
    """
    generator = kwargs.get("generator")
    if isinstance(generator, torch.Generator) and generator.device.type == "cpu":
        raise RefusedError(f"{func._schema.name} must have a generator of the device, got one of the CPU")


def waits(func: Any, args: Sequence[Any]) -> bool:
    """Whether the CPU has to wait for the device to go on after an operation there."""
    name = func._schema.name
    if name in INDEXED:
        return any(isinstance(i, Tensor) and i.dtype in (torch.bool, torch.uint8) for i in args[1])
    return name in SIZE_UNKNOWN or name in READ_BY_THE_CPU or name.startswith(STATUS_READ)
