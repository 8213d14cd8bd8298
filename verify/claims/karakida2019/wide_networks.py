"""Shared code of claims on wide networks: networks of a point, scores by width, constants, claims on orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from typing import Any

from numpy.random import Generator

from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, signals
from theory import fisher
from verify.model import Claim, Experiment, Kind, Prediction, Simulator

SETTING = ("activation", "depth", "weight_variance", "bias_variance")
SIZES = ("width", "samples", "outputs")

WIDE = "at most 3 % for wide networks"
HALFWAY = "less than half the way to the nearest exponent at issue"


def law(activation: str, weight_variance: float, bias_variance: float, **sizes: Any) -> Point:
    """A point of networks of this law."""
    return Point(activation=activation, weight_variance=weight_variance, bias_variance=bias_variance, **sizes)


# --- networks and their scores -------------------------------------------------------------------------------


def _widths(point: Point, width: int | None, outputs: int | None) -> tuple[int, ...]:
    """Inputs first: `width` times the ratios of the point if it has any."""
    width, ratios = width or point.width, point.get("ratios", (1,) * point.depth)
    return (*(round(ratio * width) for ratio in ratios), outputs or point.outputs)


def network_of(
    block: Block,
    point: Point,
    *,
    width: int | None = None,
    samples: int | None = None,
    outputs: int | None = None,
    widths: tuple[int, ...] = (),
    lazy: bool = False,
) -> Any:
    """Random networks with inputs; sizes of the point if not given.

    Of `lazy` ones on a few samples only what signals meet of the weights is drawn.
    """
    draw = few_signals.LazyNetwork if lazy else signals.wide_network
    return draw(
        block,
        widths=widths or _widths(point, width, outputs),
        samples=samples or point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )


def small_network(rng: Generator, point: Point) -> Any:
    """One network whose layers have the `widths` of the point."""
    return network_of(Block((rng,)), point, widths=point.widths)


lazy_network_of = partial(network_of, lazy=True)


def by_width(block: Block, point: Point, score: Callable[[Block, int], Mapping[str, Any]]) -> dict[str, Any]:
    """Scores at every width, (n, widths): the mean over so many `networks` of each, if the point says how many."""
    import torch

    columns: list[dict[str, Any]] = []
    for width, count in zip(point.widths, point.get("networks", (1,) * len(point.widths)), strict=True):
        found = score(block.repeated(count), width)
        columns.append(
            {n: torch.as_tensor(s).unflatten(0, (len(block), count)).mean(1) for n, s in found.items()}
        )
    return {name: torch.stack([column[name] for column in columns], dim=1) for name in columns[0]}


def width_by_width(one: Callable[[Block, Point, int], Mapping[str, Any]]) -> Simulator:
    """A simulator of the scores at every width of a point, from those at one width; see `by_width`."""

    @wraps(one)
    def simulate(block: Block, point: Point) -> Mapping[str, Any]:
        return by_width(block, point, lambda own, width: one(own, point, width))

    return simulate


one_network = partial(Experiment, replicate="one network with its inputs")
at_each_width = partial(
    Experiment, replicate="networks with their inputs at each width, more where they scatter most"
)


# --- theory at a point ---------------------------------------------------------------------------------------


def setting(p: Any, *further: str) -> dict[str, Any]:
    """Arguments of the functions of `theory.fisher`, of a point with or without measured inputs."""
    return {name: getattr(p, name) for name in (*SETTING, *further)}


def kappas_at(p: Any) -> fisher.Kappas:
    """Constants of the Fisher matrix."""
    return fisher.kappas(**setting(p))


def spike(p: Any) -> float:
    """A centred block of the Gram matrix over M, but for its fluctuations: alpha (kappa1 - kappa2)."""
    return kappas_at(p).alpha * kappas_at(p).difference


def statistics_of(p: Any, **changed: Any) -> fisher.FisherStatistics:
    """Theorem 2.2 with the biases counted, at sizes of the point if not given."""
    return _statistics(**setting(p, *(name for name in SIZES if name not in changed)), **changed)


@cache
def _statistics(**known: Any) -> fisher.FisherStatistics:
    """Looked up at every look at the replicates."""
    return fisher.eigenvalue_statistics(**known, finite_width=True)


def power_of_width(p: Any, value: Callable[[int], float]) -> float:
    """Power of the width by which a value grows from the narrowest network of a point to the widest."""
    narrow, wide = p.widths[0], p.widths[-1]
    return math.log(value(wide) / value(narrow)) / math.log(wide / narrow)


def parameters_of(p: Any) -> int:
    """Number of parameters of the network of a point."""
    return int(fisher.parameter_count(depth=p.depth, width=p.width, outputs=p.outputs))


# --- claims on wide networks, limits and orders ---------------------------------------------------------------

wide = partial(Claim, margin=0.03, margin_reason=WIDE)

exponent = partial(
    Claim, kind=Kind.EXPONENT, along="widths", terms=(1,), relative=False, margin_reason=HALFWAY
)
"""A claim on a power of the width."""

limit = partial(Claim, kind=Kind.LIMIT, along="widths", terms=(1, 2))


def approach(experiment: Experiment, score: str, limit: Prediction, margin: float = 0.24) -> Claim:
    """Return the `order` that a limit rests on, an approach as width^-1; it is no claim of its own."""
    return exponent(
        id=f"{experiment.id}-order",
        entries=(),
        source="",
        statement="",
        experiment=experiment,
        score=score,
        offset=limit,
        predict=lambda _: -1.0,
        margin=margin,
    )
