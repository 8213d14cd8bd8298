"""Perceptrons with flat parameters: layer by layer from the input, each matrix row by row, then its biases, if any."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from simulate import _checks, activations, networks

Logits = Callable[[Tensor, Tensor], Tensor]
"""Function of flat parameters (P,) and inputs (..., in) to logits (..., out)."""


def biased(widths: Sequence[int], theta: Tensor) -> bool:
    """Whether flat parameters belong to a perceptron with biases.

    Raises
    ------
    ValueError
        If their number fits a perceptron neither with biases nor without.
    """
    plain, full = networks.weight_count(widths), networks.weight_count(widths, biases=True)
    if theta.shape not in ((plain,), (full,)):
        raise ValueError(
            f"theta must be of shape ({plain},), or with biases ({full},), got {tuple(theta.shape)}"
        )
    return len(theta) == full


def flat_logits(widths: Sequence[int], theta: Tensor, activation: str) -> Logits:
    """Return the logits (..., out) as a differentiable function of parameters like `theta` and inputs.

    Raises
    ------
    ValueError
        If `theta` has another shape, or the activation is unknown.
    """
    activations.nonlinearity(activation)  # raise here, not at the first call
    parts = matrices_and_biases(widths, theta)

    def logits(theta: Tensor, x: Tensor) -> Tensor:
        weights, biases = parts(theta)
        return networks.mlp_logits(weights, x, activation, biases=biases or None)

    return logits


def matrices_and_biases(
    widths: Sequence[int], theta: Tensor
) -> Callable[[Tensor], tuple[list[Tensor], Sequence[Tensor]]]:
    """Return a function of parameters like `theta` to matrices (out, in) and biases, () without biases.

    Raises
    ------
    ValueError
        If `theta` has another shape.
    """
    with_biases = biased(widths, theta)
    shapes = list(_checks.layer_sizes(widths))
    entries = [size for i, out in shapes for size in ((i * out, out) if with_biases else (i * out,))]

    def parts(theta: Tensor) -> tuple[list[Tensor], Sequence[Tensor]]:
        found = theta.split(entries)
        matrices = found[:: 1 + with_biases]
        weights = [part.view(out, -1) for part, (_, out) in zip(matrices, shapes, strict=True)]
        return weights, found[1::2] if with_biases else ()

    return parts
