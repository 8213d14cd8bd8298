"""A copy of a model, and its first call: where its classes lie, and of which shape inputs and outputs are."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from simulate import data as archives
from simulate.monte_carlo import resolve_device
from simulate.objectives.batches import placed, rows, window
from simulate.objectives.forms import asked_form
from simulate.objectives.parameters import Parametric, parametric, require_ready
from simulate.objectives.restoring import as_found
from verify.practice.loading.foreign import calling
from verify.practice.loading.samples import each

__all__ = ["digits_for", "dtype_of", "first_outputs", "own_copy"]

_DTYPES = {"float32": torch.float32, "float64": torch.float64}

_FEW = 2
"""Samples of a first call: batch normalisation in training mode needs two."""

_DIGIT_SHAPES = ((1, 28, 28), (784,), (1, 8, 8), (64,), (3, 32, 32))


def own_copy(model: nn.Module, *, dtype: str, device: str = "cpu") -> nn.Module:
    """A copy to be measured.

    Raises
    ------
    ValueError
        If it cannot be copied, or be so placed.
    """
    place, kind = resolve_device(device), dtype_of(dtype)
    with calling("model", "be such that it can be copied"):
        own = copy.deepcopy(model)
    with calling("model", f"move to {place} as {dtype}"):
        return own.to(device=place, dtype=kind)


def dtype_of(name: str) -> torch.dtype:
    """By its name.

    Raises
    ------
    ValueError
        If it is none to measure in.

    Examples
    --------
    >>> dtype_of("float64")
    torch.float64
    """
    if name not in _DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(_DTYPES)}, got {name!r}")
    return _DTYPES[name]


def first_outputs(
    free: Parametric, inputs: Any, *, targets: Any = None, loss: Any = None, field: str | int | None = None
) -> tuple[int, ...]:
    """Shape of what the loss takes of the outputs for one sample, by a first call of the model.

    To be used within `as_found`. Where `targets` and `loss` are given classes are moved to the front, see `forms`.

    Raises
    ------
    ValueError
        If the model cannot be called with such inputs, or its outputs are not of as many samples.
    """
    few = window(inputs, slice(_FEW))
    with calling("model", f"run on inputs of shape {_shapes(few)}"), torch.no_grad():
        found = free.call(free.parameters, few)
        some = None if targets is None else targets[:_FEW]
        outputs = asked_form(lambda _: found, few, some, loss=loss, field=field).read(found)
    if outputs.ndim == 0 or len(outputs) != rows(few):
        got = f"outputs {tuple(outputs.shape)} for {rows(few)} samples"
        raise ValueError(f"model must return outputs with samples along the first axis, got {got}")
    return tuple(outputs.shape[1:])


def _shapes(part: Any) -> str:
    found: list[str] = []
    each(part, lambda tensor: found.append(f"{tuple(tensor.shape)}{_kind(tensor)}"))
    return " and ".join(found)


def _kind(part: Tensor) -> str:
    if part.dtype == torch.bool:
        return " of truth values"
    return "" if part.is_floating_point() else " of whole numbers"


def digits_for(net: nn.Module, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """The embedded digits in the first shape that the model takes.

    Raises
    ------
    ValueError
        If it takes none of them.
    """
    require_ready(net)
    own = own_copy(net, dtype=options.get("dtype", "float32"))
    free, first = parametric(own), ""
    for shape in _DIGIT_SHAPES:
        size = {784: (1, 28, 28), 64: (1, 8, 8)}.get(shape[0], shape)
        images = archives.digits(size)
        pixels = images.images.reshape(-1, *shape)
        try:
            with as_found(own, bool(options.get("training"))):
                first_outputs(free, placed(torch.tensor(pixels[:_FEW]), free.parameters[0]))
        except ValueError as error:
            first = first or str(error)
            continue
        return pixels, images.labels
    shapes = ", ".join(map(str, _DIGIT_SHAPES))
    raise ValueError(f"data digits must fit the model in one of the shapes {shapes}; the first: {first}")
