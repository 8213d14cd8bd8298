"""Derivatives of the softmax cross-entropy in the logits, accurate near one-hot probabilities."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


def contrasts(jacobian: Tensor, logits: Tensor) -> Tensor:
    """Return rows (N, K, d) minus the row of the likeliest class; the softmax covariance depends on them only."""
    top = logits.argmax(-1)
    return jacobian - jacobian.gather(1, top[:, None, None].expand(-1, 1, jacobian.shape[-1]))


def covariance_factor(
    logits: Tensor, contrasts: Tensor, moved: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return rows F and logarithm s such that exp(s) F_n' F_n = J_n' (diag(p) - p p') J_n for every sample.

    With q the probabilities of all but the likeliest class, whose own is 1 - sum q = t, and D the contrasts,
    F_k = sqrt(q_k) (D_k - sum_j q_j D_j / (1 + sqrt(t))). No small number arises as a difference of large
    ones, and exp(s), the largest q of all, is taken out first, so that the largest rows never underflow.

    Classes that move with the likeliest, by default those without contrasts, count as one with it: they are tied at
    any scale and must not set s. `moved` (N, K) or (N, 1) says which classes move apart, if the contrasts are of one
    layer of several.
    """
    moved = contrasts.any(-1) if moved is None else moved
    log_p = functional.log_softmax(logits, -1)
    top = torch.zeros_like(log_p, dtype=torch.bool).scatter_(-1, logits.argmax(-1, keepdim=True), value=True)
    # tied to the likeliest class at any scale, so their probabilities must not set the scale
    top = top | ~moved
    log_q = log_p.masked_fill(top, -math.inf)
    log_scale = log_q.amax((-2, -1)) if moved.any() else torch.zeros_like(log_q[..., 0, 0])
    # in logarithms and relative to the largest, so that no root underflows
    roots = ((log_q - log_scale[..., None, None]) / 2).exp()
    top_root = (log_p.masked_fill(~top, -math.inf).logsumexp(-1) / 2).exp()
    mean = log_q.exp()[..., None, :] @ contrasts / (1 + top_root)[..., None, None]
    return roots[..., None] * (contrasts - mean), log_scale


def residuals(logits: Tensor, labels: Tensor) -> Tensor:
    """Return probabilities minus one-hot labels, (..., N, K)."""
    index = labels[:, None].expand(*logits.shape[:-1], 1)
    others = functional.softmax(logits, -1).scatter(-1, index, 0.0)
    # p - 1 would cancel where the label is nearly certain
    return others.scatter(-1, index, -others.sum(-1, keepdim=True))
