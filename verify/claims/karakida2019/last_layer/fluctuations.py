"""Karakida, Akaho and Amari (2019): how order parameters fluctuate, and how the bounds grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory.activations import gaussian_kernels, resolve
from theory.order_parameters import Propagation, propagate
from verify.claims.karakida2019.spectrum.spectrum import network_at
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind

__all__ = ["CLAIMS"]

PAPER = "Karakida, Akaho and Amari (2019)"

ORDERS = "less than half the way to the nearest exponent at issue"

# --- order parameters of two networks ------------------------------------------------------------------------


def pairs_of_networks(block: Block, point: Point) -> Mapping[str, Any]:
    """Distance of the order parameters of two networks at every width, forward in the last, backward in the first."""
    import torch

    found = [_pair(block, point, width) for width in point.widths]
    return {name: torch.stack([f[name] for f in found], dim=1) for name in found[0]}


def _pair(block: Block, point: Point, width: int) -> dict[str, Any]:
    from simulate.wide import signals

    networks = [network_at(block, point, width) for _ in range(2)]
    passed = [signals.forward(network, point.activation) for network in networks]
    hats = [p.activations[-1] @ p.activations[-1].mT / p.activations[-1].shape[-1] for p in passed]
    tildes = [_overlaps(network, point, p) for network, p in zip(networks, passed, strict=True)]
    return {"forward": _distance(hats, (1, 2)), "backward": _distance(tildes, (1, 2, 3))}


def _overlaps(network: Any, point: Point, passed: Any) -> Any:
    """Inner products of the derivatives by the first layer, (n, C, T, T), back through this network's weights."""
    from simulate.wide import signals

    *_, delta = signals.backward(network, point.activation, passed)
    return delta @ delta.mT


def _off_diagonal(entries: Any) -> Any:
    import torch

    return entries - torch.diag_embed(entries.diagonal(dim1=-2, dim2=-1))


def _distance(pair: Sequence[Any], dims: tuple[int, ...]) -> Any:
    """Root mean square of the differences, s != t."""
    one, two = pair
    samples = one.shape[-1]
    return (_off_diagonal(one - two).square().mean(dims) * samples / (samples - 1)).sqrt()


PAIRS = Experiment(
    id="karakida2019/pairs-of-networks",
    replicate="two networks with their inputs at each width",
    simulate=pairs_of_networks,
    points=(
        Point(
            activation="erf",
            weight_variance=2.7,
            bias_variance=0.6,
            depth=3,
            widths=(16, 32, 64, 128, 256),
            ratios=(1.25, 0.75, 1.5),
            samples=10,
            outputs=9,
        ),
    ),
    budget=512,
    seconds=4.0,
)


def _rate(name: str, score: str, statement: str, quantity: str) -> Claim:
    return Claim(
        id=f"karakida2019/{name}",
        entries=("C31",),
        source=f"{PAPER}, section 3.2, q = 1/2 in order parameters that converge as M^(-q)",
        statement=statement,
        experiment=PAIRS,
        kind=Kind.EXPONENT,
        score=score,
        along="widths",
        terms=(1,),
        predict=lambda _: -0.5,
        margin=0.12,
        relative=False,
        margin_reason=ORDERS,
        rivals={"1/4": lambda _: -0.25, "1": lambda _: -1.0},
        quantity=quantity,
    )


PAIR_CLAIMS: tuple[AnyClaim, ...] = (
    _rate(
        "forward-rate",
        "forward",
        r"\mathbb{E}\, \|\hat q_{st}^{L-1} - \hat q_{st}^{L-1 \prime}\| \sim M^{-1/2} \text{ for two networks}",
        "distance of the forward order parameters of two networks",
    ),
    _rate(
        "backward-rate",
        "backward",
        r"\mathbb{E}\, \|\tilde q_{st}^1 - \tilde q_{st}^{1 \prime}\| \sim M^{-1/2} \text{ for two networks}",
        "distance of the backward order parameters of two networks",
    ),
)

# --- fresh weights on the way back ---------------------------------------------------------------------------


def fresh_weights(block: Block, point: Point) -> Mapping[str, Any]:
    """Backward order parameter and the variance of its cosines over pairs, with true and with other weights."""
    from simulate.wide import pair_scatter, signals

    network, other = (network_at(block, point, point.width) for _ in range(2))
    passed = signals.forward(network, point.activation)
    scores = {}
    for name, weights in (("true", network), ("fresh", other)):
        overlaps = _overlaps(weights, point, passed)
        samples = overlaps.shape[-1]
        norms = overlaps.diagonal(dim1=-2, dim2=-1).mean(-1, keepdim=True)
        scores[f"{name}_mean"] = _off_diagonal(overlaps).mean((1, 2, 3)) * samples / (samples - 1)
        scores[f"{name}_scatter"] = pair_scatter.pair_variance(overlaps / norms[..., None]).mean(1)
    return scores


FRESH = Experiment(
    id="karakida2019/fresh-weights",
    replicate="one network with its inputs, and other weights",
    simulate=fresh_weights,
    points=(
        Point(
            activation="erf",
            weight_variance=2.7,
            bias_variance=0.6,
            depth=3,
            width=192,
            ratios=(1.25, 0.75, 1.5),
            samples=20,
            outputs=5,
        ),
    ),
    budget=3072,
    seconds=6.0,
)


def _moments(p: Point) -> Propagation:
    activations = resolve(p.activation, p.depth - 1)
    return propagate(activations, weight_variance=p.weight_variance, bias_variance=p.bias_variance)


def _independent_gates(p: Point) -> float:
    """Slopes averaged for every sample by itself, over those averaged for the pair."""
    m, kernel = _moments(p), gaussian_kernels(resolve(p.activation, 1)[0])
    triples = zip(m.variance, m.covariance, m.gap, strict=True)
    return float(
        np.prod(
            [kernel.derivative(a, b, d).overlap / kernel.derivative(a, 0.0, a).overlap for a, b, d in triples]
        )
    )


FRESH_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/gradient-independence",
        entries=("C22",),
        source=f"{PAPER}, assumption 3.2",
        statement=r"\mathbb{E}\, \tilde q_{st}^1 \text{ with the weights of the forward pass} = "
        r"\mathbb{E}\, \tilde q_{st}^1 \text{ with fresh ones}",
        experiment=FRESH,
        kind=Kind.RATIO,
        score=("true_mean", "fresh_mean"),
        predict=lambda _: 1.0,
        margin=0.03,
        margin_reason="at most 3 % for wide networks; they differ by O(1/M)",
        rivals={"fresh slopes as well": _independent_gates, "half": lambda _: 0.5},
        quantity="backward order parameter, true over fresh weights",
    ),
    Claim(
        id="karakida2019/gradient-independence-of-scatter",
        entries=("C22",),
        source=f"ours, beside assumption 3.2 of {PAPER}",
        passage=OURS,
        statement=r"\mathbb{E}\, \mathrm{Var}\, \frac{\tilde q_{st}^1}{\tilde q_t^1} \text{ over pairs of samples, "
        r"weights of the forward pass} = \text{the same with fresh ones}",
        experiment=FRESH,
        kind=Kind.RATIO,
        score=("true_scatter", "fresh_scatter"),
        predict=lambda _: 1.0,
        margin=0.03,
        margin_reason="at most 3 % for wide networks; they differ by O(1/M)",
        rivals={"twice": lambda _: 2.0, "half": lambda _: 0.5, "a tenth more": lambda _: 1.1},
        quantity="variance of the backward order parameter, true over fresh weights",
    ),
)

# --- growth of the bounds ------------------------------------------------------------------------------------


def bounds_by_width(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean square over mean of the eigenvalues after mean subtraction and root of their squared sum, T = M / rho."""
    import torch

    found = []
    for width, count in zip(point.widths, point.networks, strict=True):
        several = [_bounds(block, point, width) for _ in range(count)]
        found.append({name: torch.stack([one[name] for one in several]).mean(0) for name in several[0]})
    return {name: torch.stack([f[name] for f in found], dim=1) for name in found[0]}


def _bounds(block: Block, point: Point, width: int) -> dict[str, Any]:
    from simulate.wide import fisher_gram

    network = network_at(block, point | {"samples": round(width / point.rho)}, width)
    gram = fisher_gram.centred(fisher_gram.gram(network, point.activation))
    squares = fisher_gram.trace_of_square(gram)
    return {"root_of_squares": squares.sqrt(), "squares_over_trace": squares / fisher_gram.trace(gram)}


BOUNDS = Experiment(
    id="karakida2019/bounds-by-width",
    replicate="one network with its inputs at each width, several at the small ones",
    simulate=bounds_by_width,
    points=(
        Point(
            activation="tanh",
            weight_variance=1.6,
            bias_variance=0.3,
            depth=3,
            widths=(16, 32, 64, 128),
            networks=(6, 3, 2, 1),
            ratios=(1.25, 0.75, 1.5),
            rho=1.6,
            outputs=2,
        ),
    ),
    budget=768,
    seconds=3.0,
)

BOUND_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/lower-bound-growth",
        entries=("C30",),
        source=f"{PAPER}, section 3.2, order of the lower bound, q* = 1/2",
        statement=r"\mathbb{E} \frac{\mathrm{Tr}\, \bar F^2}{\mathrm{Tr}\, \bar F} \sim M^{1 - 2 q^*} = M^0 "
        r"\quad (T = M / \rho)",
        experiment=BOUNDS,
        kind=Kind.EXPONENT,
        score="squares_over_trace",
        along="widths",
        terms=(1,),
        predict=lambda _: 0.0,
        margin=0.2,
        relative=False,
        margin_reason=ORDERS,
        rivals={"q* = 1/4": lambda _: 0.5, "q* = 0": lambda _: 1.0},
        quantity="lower bound of the largest eigenvalue after mean subtraction",
    ),
    Claim(
        id="karakida2019/upper-bound-growth",
        entries=("C30",),
        source=f"{PAPER}, section 3.2, order of the upper bound, q* = 1/2",
        statement=r"\mathbb{E} \sqrt{\mathrm{Tr}\, \bar F^2} \sim M^{1 - q^*} = M^{1/2} \quad (T = M / \rho)",
        experiment=BOUNDS,
        kind=Kind.EXPONENT,
        score="root_of_squares",
        along="widths",
        terms=(1,),
        predict=lambda _: 0.5,
        margin=0.1,
        relative=False,
        margin_reason=ORDERS,
        rivals={"q* = 1/4": lambda _: 0.75, "q* = 0": lambda _: 1.0, "as the eigenvalue": lambda _: 0.0},
        quantity="upper bound of the largest eigenvalue after mean subtraction",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*PAIR_CLAIMS, *FRESH_CLAIMS, *BOUND_CLAIMS)
