"""Derivatives of the logits of a bias-free ReLU perceptron in closed form, sample by sample.

Within a linear piece the network is a product of its matrices and of the slopes (0 or 1) of its hidden units.
Samples N, classes K; a frame (P, d) holds d directions of the flat parameters.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simulate import _checks
from simulate.networks import Weights

_CHUNK_ELEMENTS = 1 << 20
"""Most numbers in an intermediate of the second derivatives: 8 MiB stay near the cache, more was slower."""


def prepared(weights: Weights, x: Any, labels: Any) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
    """Return detached weights, inputs (N, in) and classes (N,), checked and in float64."""
    weights = tuple(weight.detach().to(torch.float64) for weight in weights)
    widths = weights[0].shape[1], weights[-1].shape[0]
    return weights, *_checks.labelled(x, labels, widths, weights[0])


def linear_piece(weights: Weights, x: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Return inputs of every layer (N, in), slopes of the hidden units (N, out) and logits (N, K)."""
    hidden, masks = [x], []
    for weight in weights[:-1]:
        before = hidden[-1] @ weight.T
        masks.append((before > 0).to(before.dtype))
        hidden.append(before * masks[-1])
    return hidden, masks, hidden[-1] @ weights[-1].T


def logit_signals(weights: Weights, masks: list[Tensor], logits: Tensor) -> list[Tensor]:
    """Return the derivatives of the logits by the pre-activations of each layer, (N, K, out)."""
    signal = torch.diag_embed(torch.ones_like(logits))
    signals = [signal]
    for weight, mask in zip(reversed(weights[1:]), reversed(masks), strict=True):
        signal = (signal @ weight) * mask[:, None, :]
        signals.append(signal)
    return signals[::-1]


def unflatten(frame: Tensor, weights: Weights) -> list[Tensor]:
    """Return the rows of a frame (P, d) as one array (out, in, d) per layer."""
    parts = frame.split([weight.numel() for weight in weights])
    return [part.view(*weight.shape, -1) for part, weight in zip(parts, weights, strict=True)]


def tangents(
    weights: Weights, hidden: list[Tensor], masks: list[Tensor], directions: list[Tensor]
) -> list[Tensor]:
    """Return the derivatives of each layer's output along the d directions, (N, d, out)."""
    found: list[Tensor] = []
    for i, direction in enumerate(directions):
        wide = direction.permute(1, 2, 0).flatten(1)  # (in, d out): tall products are fastest
        change = (hidden[i] @ wide).view(len(hidden[i]), direction.shape[2], -1)
        if i > 0:
            change += found[-1] @ weights[i].T
        if i < len(masks):
            change *= masks[i][:, None]
        found.append(change)
    return found


def half_second_derivatives(
    signals: list[Tensor], directions: list[Tensor], tangents: list[Tensor]
) -> Tensor:
    """Return second derivatives (N, K, d, d), summed over layers: direction i moves a layer, j the layers below."""
    samples, columns, classes = tangents[-1].shape
    half = tangents[-1].new_zeros(samples, classes * columns, columns)
    for signal, direction, tangent in zip(signals[1:], directions[1:], tangents[:-1], strict=True):
        inputs = direction.shape[1]
        turned = direction.transpose(1, 2).reshape(len(direction), -1)  # (out, d in)
        step = max(1, _CHUNK_ELEMENTS // (classes * columns * inputs))
        for start in range(0, samples, step):
            part = slice(start, start + step)
            sent = (signal[part].flatten(0, 1) @ turned).view(-1, classes * columns, inputs)
            half[part].baddbmm_(sent, tangent[part].mT)
    return half.view(samples, classes, columns, columns)


def weighted_second_derivative(
    weights: Weights,
    directions: list[Tensor],
    tangents: list[Tensor],
    masks: list[Tensor],
    cotangent: Tensor,
) -> Tensor:
    """Return the second derivative of the sum of cotangent (N, K) times logits, (d, d)."""
    columns = directions[0].shape[-1]
    half = cotangent.new_zeros(columns, columns)
    for i in range(len(weights) - 1, 0, -1):
        moved = (cotangent.T @ tangents[i - 1].flatten(1)).view(len(weights[i]), columns, -1)  # (out, d, in)
        half += directions[i].flatten(0, 1).T @ moved.mT.flatten(0, 1)
        cotangent = (cotangent @ weights[i]) * masks[i - 1]
    return half + half.T
