"""Small networks with each of the last layers: outputs as functions of the parameters, and normalised Gram matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, last_layer, signals

__all__ = [
    "LAST_LAYERS",
    "NormalisedGram",
    "SmallOutputs",
    "normalised_gram",
    "normalising_matrices",
    "small_outputs",
]

LAST_LAYERS = ("mean subtraction", "fixed deviation", "batch normalisation")


class SmallOutputs(NamedTuple):
    """One network, its outputs (C, T) as a function of all parameters in one vector, and that vector.

    A second argument stands in for the inputs (1, T, M).
    """

    network: Any
    outputs: Callable[..., Any]
    theta: Any


def small_outputs(rng: np.random.Generator, point: Point) -> SmallOutputs:
    """A network as drawn."""
    import torch

    network = signals.wide_network(
        Block((rng,)),
        widths=point.widths,
        samples=point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )
    tensors = (*network.weights, *network.biases)

    def outputs(theta: Any, inputs: Any = network.inputs) -> Any:
        parts = theta.split([t.numel() for t in tensors])
        shaped = [part.view(t.shape) for part, t in zip(parts, tensors, strict=True)]
        moved = signals.WideNetwork(
            weights=tuple(shaped[: network.depth]),
            biases=tuple(shaped[network.depth :]),
            inputs=inputs,
        )
        return signals.forward(moved, point.activation).preactivations[-1][0].T

    return SmallOutputs(network, outputs, torch.cat([t.flatten() for t in tensors]))


def normalising_matrices(outputs: Any, kind: str) -> Any:
    """What the last layer multiplies the outputs by."""
    if kind == "mean subtraction":
        return last_layer.mean_subtraction(outputs)
    return last_layer.batch_normalisation(outputs, fixed_deviation=kind == "fixed deviation")


class NormalisedGram(NamedTuple):
    """A K A by layers and projectors (1, C, C, T, T), what its entries would be unprojected, and the outputs."""

    gram: Any
    scale: float
    outputs: Any


def normalised_gram(small: SmallOutputs, point: Point, kind: str) -> NormalisedGram:
    """That of one network, by layers and projectors."""
    outputs = last_layer.outputs_of(small.network, point.activation)
    gram, matrices = fisher_gram.gram(small.network, point.activation), normalising_matrices(outputs, kind)
    scale = float(gram.abs().max() * matrices.scale.max() ** 2)
    return NormalisedGram(last_layer.projected_gram(gram, matrices), scale, outputs)
