"""What the claims on wide networks share: the network of a point, its setting, the constants of its Fisher matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, signals
from theory import fisher

__all__ = [
    "QUANTITIES",
    "kappas_at",
    "mean_over_networks",
    "network_of",
    "passed_at",
    "setting",
    "small_network",
    "spike",
]

SETTING = ("activation", "depth", "weight_variance", "bias_variance")

QUANTITIES = {
    "forward_variance": "mean square of the activations",
    "forward_covariance": "mean product of the activations of two samples",
    "backward_variance": "squared back-propagated gradient",
    "backward_covariance": "product of the back-propagated gradients of two samples",
    "above": "variance of the pre-activations",
    "by_inputs": "squared derivative of an output by the inputs",
}
"""What the scores of signals are, in words."""


def network_of(
    block: Block,
    point: Point,
    *,
    width: int | None = None,
    samples: int | None = None,
    outputs: int | None = None,
) -> Any:
    """Random networks with inputs, all layers but the last as wide as the input; sizes of the point if not given."""
    return signals.wide_network(
        block,
        widths=(width or point.width,) * point.depth + (outputs or point.outputs,),
        samples=samples or point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
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


def passed_at(block: Block, point: Point, widths: Sequence[int] | None = None) -> few_signals.Passed:
    """What passes through networks of that law, as `network_of` draws them unless widths are given, on few samples."""
    return few_signals.passed(
        block,
        widths=widths or (point.width,) * point.depth + (point.outputs,),
        samples=point.samples,
        activation=point.activation,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )


def mean_over_networks(block: Block, count: int, score: Callable[[Block], Any]) -> Any:
    """Mean of a score (n, ...) over so many networks of each replicate: small ones cost little and scatter the most."""
    several = block.repeated(count)
    return score(several).unflatten(0, (len(block), count)).mean(1)


def setting(p: Any, *further: str) -> dict[str, Any]:
    """Arguments of the functions of `theory.fisher`, of a point with or without measured inputs."""
    return {name: getattr(p, name) for name in (*SETTING, *further)}


def kappas_at(p: Any) -> fisher.Kappas:
    """Constants of the Fisher matrix."""
    return fisher.kappas(**setting(p))


def spike(p: Any) -> float:
    """A centred block of the Gram matrix over M, but for its fluctuations: alpha (kappa1 - kappa2)."""
    return float(kappas_at(p).alpha * kappas_at(p).difference)
