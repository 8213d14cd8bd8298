"""Derivatives of the logits of a bias-free ReLU perceptron in closed form, sample by sample.

Within a linear piece the network is a product of its matrices and of the slopes (0 or 1) of its hidden units.
Samples N, classes K; a frame (P, d) holds d directions of the flat parameters.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from simulate import _checks
from simulate.networks import Weights

__all__ = [
    "CHUNK_BYTES",
    "backward",
    "forward",
    "half_second_derivatives",
    "problem",
    "tangents",
    "unflatten",
]

_CHUNK_ELEMENTS = 1 << 20
"""Largest intermediate of the second derivatives, in numbers: 8 MiB stay near the cache, more was slower."""

CHUNK_BYTES = 16 * _CHUNK_ELEMENTS
"""What the intermediates of the second derivatives take, float64, two at a time."""


def problem(weights: Weights, x: Any, labels: Any) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
    """Detached weights, inputs (N, in) and classes (N,), checked and in float64."""
    _check_weights(weights)
    weights = tuple(weight.detach().to(torch.float64) for weight in weights)
    width, classes = weights[0].shape[1], weights[-1].shape[0]
    return weights, *_checks.labelled(x, labels, width=width, classes=classes, like=weights[0])


def _check_weights(weights: Weights) -> None:
    shapes = [tuple(weight.shape) for weight in weights]
    if not shapes or any(len(s) != 2 for s in shapes) or any(a[0] != b[1] for a, b in pairwise(shapes)):
        raise ValueError(f"weights must be matrices (out, in) that follow each other, got {shapes}")


def forward(weights: Weights, x: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Inputs of every layer (N, in), slopes of the hidden units (N, out) and logits (N, K)."""
    hidden, masks = [x], []
    for weight in weights[:-1]:
        before = hidden[-1] @ weight.T
        masks.append((before > 0).to(before.dtype))
        hidden.append(before * masks[-1])
    return hidden, masks, hidden[-1] @ weights[-1].T


def backward(weights: Weights, masks: list[Tensor], logits: Tensor) -> list[Tensor]:
    """Derivatives of the logits in the pre-activations of each layer, (N, K, out)."""
    signal = torch.diag_embed(torch.ones_like(logits))
    signals = [signal]
    for weight, mask in zip(reversed(weights[1:]), reversed(masks), strict=True):
        signal = (signal @ weight) * mask[:, None, :]
        signals.append(signal)
    return signals[::-1]


def unflatten(frame: Tensor, weights: Weights) -> list[Tensor]:
    """The rows of a frame (P, d) as one array (out, in, d) per layer."""
    sizes = [weight.numel() for weight in weights]
    if frame.ndim != 2 or len(frame) != sum(sizes):
        raise ValueError(f"frame must be of shape ({sum(sizes)}, d), got {tuple(frame.shape)}")
    return [part.view(*weight.shape, -1) for part, weight in zip(frame.split(sizes), weights, strict=True)]


def tangents(
    weights: Weights, hidden: list[Tensor], masks: list[Tensor], directions: list[Tensor]
) -> list[Tensor]:
    """Derivatives of each layer's output along the d directions, (out, N, d); units first saves a copy."""
    tangents: list[Tensor] = []
    for i, direction in enumerate(directions):
        tangent = hidden[i] @ direction
        if i > 0:
            tangent += (weights[i] @ tangents[-1].flatten(1)).view_as(tangent)
        if i < len(masks):
            tangent *= masks[i].T[:, :, None]
        tangents.append(tangent)
    return tangents


def half_second_derivatives(
    signals: list[Tensor], directions: list[Tensor], tangents: list[Tensor]
) -> Tensor:
    """(N, K, d, d): direction i moves a layer, direction j the layers below it; summed over layers."""
    classes, samples, columns = tangents[-1].shape
    half = tangents[-1].new_zeros(samples, classes * columns, columns)
    for signal, direction, tangent in zip(signals[1:], directions[1:], tangents[:-1], strict=True):
        inputs = direction.shape[1]
        turned = direction.transpose(1, 2).reshape(len(direction), -1)  # (out, d in)
        below = tangent.transpose(0, 1)  # (N, in, d)
        step = max(1, _CHUNK_ELEMENTS // (classes * columns * inputs))
        for start in range(0, samples, step):
            part = slice(start, start + step)
            sent = (signal[part].flatten(0, 1) @ turned).view(-1, classes * columns, inputs)
            half[part].baddbmm_(sent, below[part])
    return half.view(samples, classes, columns, columns)
