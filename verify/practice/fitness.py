"""What model and loss must be like for their curvature to be measured, asked of a few samples."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from simulate.batches import window
from simulate.objectives import Objective
from simulate.parametric import as_found

__all__ = ["FEW", "require_initialised", "require_second_derivatives"]

FEW = 2
"""Samples of a call: batch normalisation in training mode needs two."""


def require_initialised(model: nn.Module) -> None:
    """Refuse layers that have no parameters before their first call.

    Raises
    ------
    ValueError
        If there is one.
    """
    for name, p in model.named_parameters():
        if is_lazy(p):
            raise ValueError(
                f"model must have initialised parameters, got a lazy {name!r}; call the model once where it is built"
            )


def require_second_derivatives(objective: Objective) -> None:
    """Refuse what has no derivatives, and what torch would silently take for zero.

    Raises
    ------
    ValueError
        If the loss does not depend on the parameters, or by a function that may be differentiated once only.
    """
    batch, leaves = next(objective.batches()), objective.leaves()
    # a loss that couples samples may need more of them
    few = slice(FEW) if objective.training or objective.separable else slice(None)
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
