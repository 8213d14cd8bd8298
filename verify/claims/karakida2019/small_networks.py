"""What identities on small networks share: drawing one, its Gram by automatic differentiation, their distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import signals
from verify.model.domains import Between, Domain, Many, OneOf

__all__ = ["SMALL", "architectures", "distance", "jacobian_gram", "small_network"]

SMALL = (
    Point(activation="tanh", widths=(4, 6, 5, 3), samples=4, weight_variance=1.7, bias_variance=0.3),
    Point(activation="relu", widths=(5, 7, 2), samples=3, weight_variance=1.3, bias_variance=0.4),
)


def small_network(rng: np.random.Generator, point: Point) -> Any:
    """One network of any widths."""
    return signals.wide_network(
        Block((rng,)),
        widths=point.widths,
        samples=point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )


def jacobian_gram(
    network: Any, point: Point, transform: Callable[[Any], Any] = lambda f: f, *, scaled: bool = True
) -> Any:
    """J J' of one network by all its parameters, or by those of the tangent parameterisation."""
    import torch

    pairs = list(zip(network.weights, network.biases, strict=True))
    scales = [
        math.sqrt(v) for w, _ in pairs for v in (point.weight_variance / w.shape[-1], point.bias_variance)
    ]
    scales = scales if scaled else [1.0] * len(scales)
    start = [t[0] / scale for pair, *_ in [(pairs,)] for t, scale in zip(sum(pair, ()), scales, strict=True)]

    def outputs(*theta: torch.Tensor) -> torch.Tensor:
        moved = [scale * t[None] for scale, t in zip(scales, theta, strict=True)]
        one = signals.WideNetwork(weights=tuple(moved[::2]), biases=tuple(moved[1::2]), inputs=network.inputs)
        return transform(signals.forward(one, point.activation).preactivations[-1])[0].T

    jacobian = torch.func.jacrev(outputs, argnums=tuple(range(len(start))))(*start)
    flat = torch.cat([j.flatten(2) for j in jacobian], dim=2)
    return torch.einsum("ksp,mtp->kmst", flat, flat)


def distance(found: Any, expected: Any) -> float:
    """Largest difference, relative to the largest entry."""
    return float((found - expected).abs().max() / expected.abs().max())


def architectures(*, least_bias: float = 0.1) -> Domain:
    """Small networks of any activation and shape, down to width 1."""
    return {
        "activation": OneOf("relu", "tanh", "erf", "linear", "sigmoid", "softplus", "gelu"),
        "widths": Many(Between(1, 7), 2, 5),
        "samples": Between(1, 5),
        "weight_variance": Between(0.1, 4.0),
        "bias_variance": Between(least_bias, 2.0),
    }
