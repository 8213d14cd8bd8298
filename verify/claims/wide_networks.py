"""What the claims on wide networks share: the network of a point, its setting, the constants of its Fisher matrix."""

from __future__ import annotations

from typing import Any

from simulate.monte_carlo import Block, Point
from theory import fisher

__all__ = ["kappas", "network", "setting", "sized_network", "spike"]

SETTING = ("activation", "depth", "weight_variance", "bias_variance")


def network(block: Block, point: Point, *, width: int, samples: int, outputs: int) -> Any:
    """Random networks with inputs, all layers but the last as wide as the input."""
    from simulate import signals

    return signals.wide_network(
        block,
        widths=(width,) * point.depth + (outputs,),
        samples=samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )


def sized_network(block: Block, point: Point) -> Any:
    """The same, with the sizes of the point."""
    return network(block, point, width=point.width, samples=point.samples, outputs=point.outputs)


def setting(p: Any, *further: str) -> dict[str, Any]:
    """Arguments of the functions of `theory.fisher`, of a point with or without measured inputs."""
    return {name: getattr(p, name) for name in (*SETTING, *further)}


def kappas(p: Any) -> fisher.Kappas:
    """Constants of the Fisher matrix."""
    return fisher.kappas(**setting(p))


def spike(p: Any) -> float:
    """A centred block of the Gram matrix over M, but for its fluctuations: alpha (kappa1 - kappa2)."""
    return float(kappas(p).alpha * kappas(p).difference)
