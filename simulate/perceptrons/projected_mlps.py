"""Curvature of many perceptrons at once, on the same samples and through the same frame.

As they are and at one temperature the classes need not be told apart: the H-term is the second derivative of a single
sum of logits, weighted by p - onehot. `simulate.perceptrons.curvature.ProjectedMlp` keeps what other scales and
temperatures need, of one network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from simulate import _memory, _softmax
from simulate.perceptrons import _relu
from simulate.perceptrons.curvature import Terms

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
    >>> from simulate.perceptrons.curvature import haar
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
    _require_memory([len(w) for w in first], len(x), frame)
    stacks = [w.detach().to(first[0]) for w in weights]
    found = [_terms([w[i] for w in stacks], x, labels, directions) for i in range(count)]
    return Terms(*(torch.stack(terms) for terms in zip(*found, strict=True)))


def _terms(weights: list[Tensor], x: Tensor, labels: Tensor, directions: list[Tensor]) -> Terms:
    hidden, masks, logits = _relu.forward(weights, x)
    changes = [t.transpose(0, 1) for t in _relu.tangents(weights, hidden, masks, directions)]  # (N, out, d)
    slope = _softmax.residuals(logits, labels) / len(x)
    return Terms(_g_term(changes[-1], logits), _h_term(weights, directions, changes, masks, slope))


def _g_term(jacobian: Tensor, logits: Tensor) -> Tensor:
    """Mean over samples of J' (diag(p) - p p') J, a sum of squares."""
    p = logits.softmax(-1)[..., None]
    rows = (p.sqrt() * (jacobian - (p * jacobian).sum(1, keepdim=True))).flatten(0, 1)
    return rows.T @ rows / len(logits)


def _h_term(
    weights: list[Tensor],
    directions: list[Tensor],
    changes: list[Tensor],
    masks: list[Tensor],
    slope: Tensor,
) -> Tensor:
    """Second derivative of the sum of slope (N, K) times logits: one direction moves a layer, one those below."""
    columns = directions[0].shape[-1]
    half = slope.new_zeros(columns, columns)
    for i in range(len(weights) - 1, 0, -1):
        moved = slope.T @ changes[i - 1].flatten(1)  # (out, in d)
        half += directions[i].flatten(0, 1).T @ moved.view(-1, columns)
        slope = (slope @ weights[i]) * masks[i - 1]
    return half + half.T


def _count(weights: Sequence[Tensor]) -> int:
    shapes = [tuple(w.shape) for w in weights]
    if not shapes or any(len(s) != 3 or s[0] != shapes[0][0] for s in shapes) or shapes[0][0] == 0:
        raise ValueError(f"weights must be stacks (n, out, in) of the same n >= 1, got shapes {shapes}")
    return shapes[0][0]


def _require_memory(widths: Sequence[int], samples: int, frame: Tensor) -> None:
    columns, units = frame.shape[1], sum(widths)
    # of one network: changes along all directions, copied once, and what is sent back to a layer
    needed = 8 * columns * (3 * samples * units + max(widths) * units)
    what = f"the derivatives of {samples} samples along {columns} directions"
    _memory.require("frame", needed, what, device=frame.device, advice="use fewer samples or columns")
