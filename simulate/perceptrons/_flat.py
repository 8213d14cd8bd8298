"""Perceptrons by flat parameters: layer by layer from the input, the matrix row by row and then biases, if any."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from simulate import _checks, activations, networks

Logits = Callable[[Tensor, Tensor], Tensor]
"""Of flat parameters (P,) and inputs (..., in)."""


def biased(widths: Sequence[int], theta: Tensor) -> bool:
    """Whether the parameters are those of a perceptron with biases, or without.

    Raises
    ------
    ValueError
        If they are neither.
    """
    plain, full = networks.weight_count(widths), networks.weight_count(widths, biases=True)
    if theta.shape not in ((plain,), (full,)):
        raise ValueError(
            f"theta must be of shape ({plain},), or with biases ({full},), got {tuple(theta.shape)}"
        )
    return len(theta) == full


def flat_logits(widths: Sequence[int], theta: Tensor, activation: str) -> Logits:
    """The logits (..., out), as automatic differentiation asks for them, for parameters like `theta`.

    Raises
    ------
    ValueError
        If `theta` has another shape, or the activation is unknown.
    """
    activations.nonlinearity(activation)  # refused here, not at the first call
    parts = matrices_and_biases(widths, theta)

    def logits(theta: Tensor, x: Tensor) -> Tensor:
        weights, biases = parts(theta)
        return networks.mlp_logits(weights, x, activation, biases=biases or None)

    return logits


def matrices_and_biases(
    widths: Sequence[int], theta: Tensor
) -> Callable[[Tensor], tuple[list[Tensor], Sequence[Tensor]]]:
    """The matrices (out, in) of parameters like `theta`, and the biases: none if it has none.

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
