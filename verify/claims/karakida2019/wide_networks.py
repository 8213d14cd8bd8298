"""What the claims on wide networks share: the network of a point, its setting, the constants of its Fisher matrix."""

from __future__ import annotations

from typing import Any

from simulate.monte_carlo import Block, Point
from theory import fisher

__all__ = ["PAPER", "kappas", "setting", "spike", "wide_network"]

PAPER = "Karakida, Akaho and Amari (2019)"

SETTING = ("activation", "depth", "weight_variance", "bias_variance")


def wide_network(
    block: Block,
    point: Point,
    *,
    width: int | None = None,
    samples: int | None = None,
    outputs: int | None = None,
) -> Any:
    """Random networks with inputs, all layers but the last as wide as the input; sizes of the point if not given."""
    from simulate.wide import signals

    return signals.wide_network(
        block,
        widths=(width or point.width,) * point.depth + (outputs or point.outputs,),
        samples=samples or point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )


def setting(p: Any, *further: str) -> dict[str, Any]:
    """Arguments of the functions of `theory.fisher`, of a point with or without measured inputs."""
    return {name: getattr(p, name) for name in (*SETTING, *further)}


def kappas(p: Any) -> fisher.Kappas:
    """Constants of the Fisher matrix."""
    return fisher.kappas(**setting(p))


def spike(p: Any) -> float:
    """A centred block of the Gram matrix over M, but for its fluctuations: alpha (kappa1 - kappa2)."""
    return float(kappas(p).alpha * kappas(p).difference)
