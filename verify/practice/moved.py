"""Which parameters of a model an optimiser of torch moves, and with what settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn


def moved_groups(optimizer: torch.optim.Optimizer, model: Any) -> dict[str, Mapping[str, Any]]:
    """Names of the parameters that the optimiser moves, each with its parameter group.

    Raises
    ------
    ValueError
        If `model` is no module, or the optimiser holds what is no parameter of it, or none that requires a gradient.

    Examples
    --------
    >>> model = nn.Linear(2, 1)
    >>> found = moved_groups(torch.optim.SGD([model.weight], lr=0.1), model)
    >>> {name: group["lr"] for name, group in found.items()}
    {'weight': 0.1}
    """
    if not isinstance(model, nn.Module):
        raise ValueError(f"model must be a module, got {type(model).__name__}")
    held: dict[Any, Mapping[str, Any]] = {
        p: group for group in optimizer.param_groups for p in group["params"]
    }
    known = dict(model.named_parameters())
    strangers = len(held) - sum(p in held for p in known.values())
    if strangers:
        raise ValueError(
            f"optimizer holds {strangers} tensors that are not parameters of the model; "
            "build it from model.parameters()"
        )
    moved = {name: held[p] for name, p in known.items() if p in held and p.requires_grad}
    if not moved:
        raise ValueError("optimizer holds no parameter that requires a gradient")
    return moved
