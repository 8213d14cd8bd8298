"""What model and loss must be like for their curvature to be measured, asked of a few samples."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from simulate.batches import window
from simulate.objectives import Objective
from simulate.parametric import as_found

__all__ = ["FEW", "require_initialised", "require_mean", "require_second_derivatives"]

FEW = 2
"""Samples of a call: batch normalisation in training mode needs two."""

_ROUNDINGS = 1e4
"""Losses that differ by more than so many roundings differ."""


def require_initialised(model: nn.Module) -> None:
    """Refuse parameters and buffers without values: of layers before their first call, and of the meta device.

    Raises
    ------
    ValueError
        If there is one.
    """
    for name, p in (*model.named_parameters(), *model.named_buffers()):
        if is_lazy(p):
            raise ValueError(
                f"model must have initialised parameters, got a lazy {name!r}; call the model once where it is built"
            )
        if p.is_meta:
            raise ValueError(
                f"model must have values, got {name!r} on the meta device; build it elsewhere or load a checkpoint"
            )


def require_mean(objective: Objective) -> None:
    """Refuse a loss function that says nothing of its reduction and gives a sum over the samples.

    Raises
    ------
    ValueError
        If the loss of some samples is the sum, and not the mean, of the losses of either half.
    """
    if objective.reduction != "mean":
        return
    batch, left, right = next(objective.batches()), slice(FEW), slice(FEW, 2 * FEW)
    targets = batch.targets[: 2 * FEW]
    if len(targets) < 2 * FEW:
        return
    with as_found(objective.model, objective.training), torch.no_grad():
        outputs = objective.outputs(objective.leaves(), window(batch.inputs, slice(2 * FEW)))
        both, one, other = (
            float(objective.criterion(outputs[part], targets[part])) for part in (slice(None), left, right)
        )
    rounding = _ROUNDINGS * torch.finfo(objective.dtype).eps
    if math.isclose(both, one + other, rel_tol=rounding) and not math.isclose(
        both, (one + other) / 2, rel_tol=rounding
    ):
        raise ValueError(
            "loss must be a mean over the samples of a batch, got a sum: divide it by their number"
        )


def require_second_derivatives(objective: Objective) -> None:
    """Refuse what has no derivatives, and what torch would silently take for zero.

    Raises
    ------
    ValueError
        If the loss does not depend on the parameters, or by a function that may be differentiated once only.
    """
    batch, leaves = next(objective.batches()), objective.leaves()
    few = slice(FEW)
    with as_found(objective.model, objective.training), torch.enable_grad():
        outputs = objective.outputs(leaves, window(batch.inputs, few))
        loss = objective.criterion(outputs, batch.targets[few])
        if not loss.requires_grad:
            raise ValueError(
                "loss must depend on the parameters, got one that does not: look for no_grad and detach"
            )
        gradient = torch.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    if all(g is None for g in gradient):
        raise ValueError("loss must depend on the parameters by functions with derivatives, got none")
    if any(
        node.name().endswith("::Error") for node in _nodes([g.grad_fn for g in gradient if g is not None])
    ):
        raise ValueError(
            "model and loss must have second derivatives, got a function of torch marked once_differentiable"
        )


def _nodes(ends: list[Any]) -> set[Any]:
    """All of the graph behind some ends."""
    found: set[Any] = set()
    while ends:
        node = ends.pop()
        if node is not None and node not in found:
            found.add(node)
            ends.extend(before for before, _ in node.next_functions)
    return found
