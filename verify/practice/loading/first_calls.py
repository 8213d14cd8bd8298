"""A copy of a model, and its first call: where its classes lie, and of which shape inputs and outputs are."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from simulate._checks import one_of
from simulate.monte_carlo import resolve_device
from simulate.objectives.batches import rows, tensors, window
from simulate.objectives.forms import asked_form
from simulate.objectives.parameters import HALVES, Parametric
from verify.practice.loading.foreign import calling

_DTYPES = {"float32": torch.float32, "float64": torch.float64}

_FEW, _MANY = 2, 1000
"""Samples of a first call (batch normalisation in training mode needs two), and of another if that fails."""


def placed_model(
    model: nn.Module,
    *,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    in_place: bool,
) -> nn.Module:
    """Return a copy of a model on a device and in a type, by default its own; if `in_place`, itself where it has both.

    Raises
    ------
    ValueError
        If it cannot be copied, or be so placed.

    Examples
    --------
    >>> line = nn.Linear(1, 1)
    >>> [placed_model(line, dtype=kind, in_place=True) is line for kind in ("float32", "float64")]
    [True, False]
    """
    place = None if device is None else resolve_device(str(device))
    kind = None if dtype is None else dtype_of(dtype)
    if in_place and all(
        p.dtype == (kind or p.dtype)
        and p.dtype not in HALVES
        and place in (None, str(p.device), p.device.type)
        for p in model.parameters()
    ):
        return model
    first = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    kind = kind or (torch.float32 if first in HALVES else first)
    with calling("model", "be copied"):
        own = copy.deepcopy(model)
    with calling("model", f"move to {place or 'its device'} as {kind}"):
        return own.to(device=place, dtype=kind)


def dtype_of(name: str | torch.dtype) -> torch.dtype:
    """The type of this name, or the type itself.

    Raises
    ------
    ValueError
        If it is none to measure in.

    Examples
    --------
    >>> dtype_of("float64")
    torch.float64
    """
    name = str(name).removeprefix("torch.")
    one_of("dtype", name, _DTYPES)
    return _DTYPES[name]


def first_outputs(
    free: Parametric, inputs: Any, *, targets: Any = None, loss: Any = None, field: str | int | None = None
) -> tuple[int, ...]:
    """Shape of what the loss takes of the outputs for one sample, by a first call of the model.

    Call it within `preserve_state`. If `targets` and `loss` are given, classes move to the front, see `forms`.

    Raises
    ------
    ValueError
        If the model cannot be called with such inputs, or its outputs are not of as many samples.
    """

    def asked(count: int | None) -> tuple[int, ...]:
        few = window(inputs, slice(count))
        with calling("model", f"run on inputs of shape {_shapes(few)}"), torch.no_grad():
            found = free.call(free.parameters, few)
            some = None if targets is None else window(targets, slice(count))
            outputs = asked_form(lambda _: found, few, some, loss=loss, field=field).read(found)
        if outputs.ndim == 0 or len(outputs) != rows(few):
            got = f"outputs {tuple(outputs.shape)} for {rows(few)} samples"
            raise ValueError(f"model must return outputs with samples along the first axis, got {got}")
        return tuple(outputs.shape[1:])

    try:
        found = asked(_FEW)
        # as many outputs as samples may be how alike these are: then there are more of them in a larger batch
        return found if _FEW not in found or asked(_FEW + 1) == found else asked(None)
    except ValueError:
        if rows(inputs) <= _FEW:
            raise
        with suppress(ValueError):  # samples may have to come in threes, say
            return asked(_MANY)
        raise


def _shapes(part: Any) -> str:
    return " and ".join(f"{tuple(tensor.shape)}{_kind(tensor)}" for tensor in tensors(part))


def _kind(part: Tensor) -> str:
    if part.dtype == torch.bool:
        return " of truth values"
    return "" if part.is_floating_point() else " of whole numbers"
