"""Multi-head attention with its projections as separate layers, which torch's module hides in one function.

| symbol | shape | meaning |
|---|---|---|
| q, k, v | (N, heads, positions, size) | projections of query, key and value |
| p | (N, heads, positions, positions) | softmax(q k' / sqrt(size) + mask) |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from simulate.objectives.fingerprints import hooked

Attention = Callable[..., tuple[Tensor, Tensor | None]]
"""Replacement for the forward pass of a `torch.nn.MultiheadAttention`."""


def is_plain(layer: nn.Module) -> bool:
    """Whether the parameters of an attention only make one packed projection of inputs and one of outputs.

    False if keys or values have another size than queries (separate matrices and a common bias), if keys and values
    are parameters, if weights are computed, if dropout is active, or if a hook waits for the projection of outputs,
    which torch never calls as a module.

    Examples
    --------
    >>> is_plain(nn.MultiheadAttention(4, 2)), is_plain(nn.MultiheadAttention(4, 2, kdim=3))
    (True, False)
    """
    if (
        not isinstance(layer, nn.MultiheadAttention)
        or type(layer).forward is not nn.MultiheadAttention.forward
    ):
        return False
    whole: Any = layer
    untouched = "forward" not in vars(layer) and not (layer.training and layer.dropout)
    own = {"in_proj_weight", "in_proj_bias"} <= layer._parameters.keys() and not hooked(layer.out_proj)
    packed = whole._qkv_same_embed_dim and layer.bias_k is None and not layer.add_zero_attn
    return untouched and own and packed


def projection(layer: nn.MultiheadAttention) -> nn.Linear:
    """Return a linear layer for the packed projection of inputs, on the meta device; `lend` gives it its numbers."""
    return nn.Linear(layer.embed_dim, 3 * layer.embed_dim, bias=layer.in_proj_bias is not None, device="meta")


def lend(layer: nn.MultiheadAttention, packed: nn.Linear) -> None:
    """Give a `projection` the tensors that the attention has now."""
    packed._parameters.update({name: layer._parameters[f"in_proj_{name}"] for name in packed._parameters})


def attention(layer: nn.MultiheadAttention, packed: nn.Linear) -> Attention:
    """Return a forward pass for an attention that `is_plain`, from a `projection` of inputs and its own of outputs.

    Both projections have the samples along the first axis, (N, positions, size), however the attention itself has
    them. One tensor that is query, key and value is projected once. A tensor that is only some of them is projected
    to all three, and the unused parts are dropped.

    References
    ----------
    Vaswani et al. (2017), Attention is all you need, section 3.2.

    Examples
    --------
    >>> layer, x = nn.MultiheadAttention(4, 2, batch_first=True), torch.randn(3, 5, 4)
    >>> ours, theirs = attention(layer, projection(layer))(x, x, x), layer(x, x, x)
    >>> torch.allclose(ours[0], theirs[0], atol=1e-6), torch.allclose(ours[1], theirs[1], atol=1e-6)
    (True, True)
    """

    def forward(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,  # noqa: ARG001 (a hint on what the mask is)
    ) -> tuple[Tensor, Tensor | None]:
        batched = query.ndim == 3
        # at every call: the parameters may be other tensors by now
        lend(layer, packed)
        projected = {id(x): packed(_samples_first(layer, x)).chunk(3, -1) for x in (query, key, value)}
        parts = (projected[id(x)][i] for i, x in enumerate((query, key, value)))
        q, k, v = (part.unflatten(-1, (layer.num_heads, -1)).transpose(1, 2) for part in parts)
        scores = q @ k.mT / math.sqrt(layer.head_dim)
        if attn_mask is not None:  # of pairs of positions, (L, S), or (N heads, L, S)
            mask = attn_mask if attn_mask.ndim == 2 else attn_mask.view(scores.shape)
            scores = scores + _additive_mask(mask, scores)
        if key_padding_mask is not None:  # of positions of keys, (N, S)
            scores = scores + _additive_mask(key_padding_mask.reshape(len(scores), 1, 1, -1), scores)
        # as torch: a row that is masked throughout gives NaN with weights, and zeros without
        weights = scores.softmax(-1) if need_weights else _masked_softmax(scores)
        output = layer.out_proj((weights @ v).transpose(1, 2).flatten(2))
        weights = weights.mean(1) if average_attn_weights else weights
        if not batched:
            output, weights = output[0], weights[0]
        elif not layer.batch_first:
            output = output.transpose(0, 1)
        return output, weights if need_weights else None

    return forward


def _masked_softmax(scores: Tensor) -> Tensor:
    """Softmax with zeros in rows where every position is masked, as torch computes it without `need_weights`."""
    hidden = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(hidden, 0.0).softmax(-1).masked_fill(hidden, 0.0)


def _samples_first(layer: nn.MultiheadAttention, x: Tensor) -> Tensor:
    if x.ndim == 2:
        return x[None]
    return x if layer.batch_first else x.transpose(0, 1)


def _additive_mask(mask: Tensor, scores: Tensor) -> Tensor:
    """Return a mask as numbers to be added to the scores; a boolean mask hides positions where it is true."""
    if mask.dtype != torch.bool:
        return mask.to(scores)
    return torch.zeros_like(mask, dtype=scores.dtype).masked_fill(mask, -math.inf)
