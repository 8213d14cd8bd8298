"""Curvature of many perceptrons at once, on the same samples and through the same frame.

As they are and at one temperature the classes need not be told apart: the H-term is the second derivative of a single
sum of logits, weighted by p - onehot. `simulate.curvature.ProjectedMlp` keeps what other scales and temperatures need,
of one network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from simulate import _memory, _relu, _softmax
from simulate.curvature import Terms

__all__ = ["projected_mlps"]


def projected_mlps(weights: Sequence[Tensor], x: Any, labels: Any, frame: Tensor) -> Terms:
    """Both parts of the Hessian of the mean cross-entropy of bias-free ReLU perceptrons, seen through a frame.

    Parameters
    ----------
    weights
        One stack (n, out, in) per layer, from the input.
    x, labels
        Inputs (N, in) and classes (N,), the same for all networks.
    frame
        (P, d), any matrix; its rows are ordered as the flat parameters of a network.

    Returns
    -------
    R'GR and R'HtR, each (n, d, d).

    Raises
    ------
    ValueError
        If shapes disagree, a label is not a class, or the derivatives do not fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from simulate.curvature import haar
    >>> from simulate.networks import mlp_weights
    >>> rng = np.random.default_rng(0)
    >>> layers = zip(*(mlp_weights(rng, (6, 5, 4)) for _ in range(2)), strict=True)
    >>> stacks, x = [torch.stack(layer) for layer in layers], rng.standard_normal((7, 6))
    >>> projected_mlps(stacks, x, np.arange(7) % 4, haar(rng, 50, 3)).hessian.shape
    torch.Size([2, 3, 3])
    """
    count = _count(weights)
    first, x, labels = _relu.problem([w[0] for w in weights], x, labels)
    directions = _relu.unflatten(frame.to(first[0]), first)
    _require_memory(count, [len(w) for w in first], len(x), frame)
    weights = [w.detach().to(first[0]) for w in weights]
    tangents, masks, logits = _tangents(weights, x, directions)
    slope = _softmax.residuals(logits.flatten(0, 1), labels.repeat(count)).view_as(logits) / len(x)
    return Terms(_g_term(tangents[-1], logits), _h_term(weights, directions, tangents, masks, slope))


def _tangents(
    weights: Sequence[Tensor], x: Tensor, directions: Sequence[Tensor]
) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Changes of the outputs of each layer along the directions, (n, N, d, out); slopes of the units; logits."""
    hidden, found, masks = x, list[Tensor](), list[Tensor]()
    for weight, direction in zip(weights, directions, strict=True):
        wide = direction.permute(1, 2, 0).flatten(1)  # (in, d out)
        change = (hidden @ wide).unflatten(-1, (-1, len(direction)))  # the first: one for all networks
        if found:
            change = change + found[-1] @ weight.mT[:, None]
        hidden = hidden @ weight.mT
        if len(found) < len(weights) - 1:
            masks.append((hidden > 0).to(hidden))
            hidden, change = hidden * masks[-1], change * masks[-1][..., None, :]
        found.append(change.expand(*hidden.shape[:2], *change.shape[-2:]))
    return found, masks, hidden


def _g_term(change: Tensor, logits: Tensor) -> Tensor:
    """Mean over samples of J' (diag(p) - p p') J, a sum of squares; J' is (n, N, d, K)."""
    p = logits.softmax(-1)[..., None, :]
    rows = (p.sqrt() * (change - (p * change).sum(-1, keepdim=True))).transpose(1, 2).flatten(2)
    return rows @ rows.mT / logits.shape[1]


def _h_term(
    weights: Sequence[Tensor],
    directions: Sequence[Tensor],
    tangents: Sequence[Tensor],
    masks: Sequence[Tensor],
    slope: Tensor,
) -> Tensor:
    """Second derivative of the sum of slope (n, N, K) times logits: one direction moves a layer, one those below."""
    count, columns = len(slope), directions[0].shape[-1]
    half = slope.new_zeros(count, columns, columns)
    for i in range(len(weights) - 1, 0, -1):
        moved = (slope.mT @ tangents[i - 1].flatten(2)).unflatten(-1, (columns, -1))  # (n, out, d, in)
        half += directions[i].flatten(0, 1).T @ moved.mT.flatten(1, 2)
        slope = (slope @ weights[i]) * masks[i - 1]
    return half + half.mT


def _count(weights: Sequence[Tensor]) -> int:
    shapes = [tuple(w.shape) for w in weights]
    if not shapes or any(len(s) != 3 or s[0] != shapes[0][0] for s in shapes) or shapes[0][0] == 0:
        raise ValueError(f"weights must be stacks (n, out, in) of the same n >= 1, got shapes {shapes}")
    return shapes[0][0]


def _require_memory(count: int, widths: Sequence[int], samples: int, frame: Tensor) -> None:
    columns = frame.shape[1]
    # changes along all directions, twice while they are summed, and what is sent back to a layer
    needed = 8 * (3 * count * samples * columns * sum(widths) + 2 * count * max(widths) ** 2 * columns)
    what = f"the derivatives of {count} networks at {samples} samples along {columns} directions"
    _memory.require(
        "frame", needed, what, device=frame.device, advice="use fewer networks, samples or columns"
    )
