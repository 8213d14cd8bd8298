"""Logits of a perceptron as a function of its flat parameters, which is what automatic differentiation asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from simulate import _checks, activations

__all__ = ["flat_logits", "sizes"]


def sizes(widths: Sequence[int], *, biased: bool) -> list[int]:
    """Entries of each matrix and, if there are any, of the biases after it."""
    layers = list(_checks.layers(widths))
    return [size for fan_in, out in layers for size in ((fan_in * out, out) if biased else (fan_in * out,))]


def flat_logits(
    widths: Sequence[int], activation: str, *, biased: bool = True
) -> Callable[[Tensor, Tensor], Tensor]:
    """Logits (..., out) of parameters (P,), ordered as `sizes` counts them, and inputs (..., in).

    Raises
    ------
    ValueError
        If the activation is unknown.
    """
    nonlinearity = activations.named(activation).function
    entries, outs = sizes(widths, biased=biased), list(widths[1:])

    def logits(theta: Tensor, x: Tensor) -> Tensor:
        parts = theta.split(entries)
        biases = parts[1::2] if biased else (0.0,) * len(outs)
        for i, (out, weight, bias) in enumerate(zip(outs, parts[:: 1 + biased], biases, strict=True)):
            x = (nonlinearity(x) if i else x) @ weight.view(out, -1).mT + bias
        return x

    return logits
