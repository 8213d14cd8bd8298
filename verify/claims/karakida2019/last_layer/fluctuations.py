"""Karakida, Akaho and Amari (2019): how order parameters fluctuate, and how the bounds grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import signals
from theory.activations import gaussian_kernels, resolve
from theory.order_parameters import Propagation, propagate
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.spectrum.spectrum import network_at
from verify.model import AnyClaim, Claim, Experiment, Kind, NoTheory

__all__ = ["CLAIMS", "ORDERS"]

ORDERS = "less than half the way to the nearest exponent at issue"

# --- order parameters of two networks ------------------------------------------------------------------------


def pairs_of_networks(block: Block, point: Point) -> Mapping[str, Any]:
    """Distance of the order parameters of two networks at every width, forward in the last, backward in the first."""
    import torch

    found = [_pair(block, point, width) for width in point.widths]
    return {name: torch.stack([f[name] for f in found], dim=1) for name in found[0]}


def _pair(block: Block, point: Point, width: int) -> dict[str, Any]:
    networks = [network_at(block, point, width) for _ in range(2)]
    passed = [signals.forward(network, point.activation) for network in networks]
    hats = [p.activations[-1] @ p.activations[-1].mT / p.activations[-1].shape[-1] for p in passed]
    tildes = [_overlaps(network, point, p) for network, p in zip(networks, passed, strict=True)]
    return {"forward": _distance(hats, (1, 2)), "backward": _distance(tildes, (1, 2, 3))}


def _overlaps(network: Any, point: Point, passed: Any) -> Any:
    """Inner products of the derivatives by the first layer, (n, C, T, T), back through this network's weights."""
    *_, delta = signals.backward(network, point.activation, passed.preactivations)
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
    seconds=2.9,
)


def _rate(name: str, score: str, statement: str, says: str, quantity: str) -> Claim:
    return Claim(
        id=f"karakida2019/{name}",
        entries=("C31",),
        source=f"{PAPER}, section 3.2, q = 1/2 in order parameters that converge as M^(-q)",
        no_theory=NoTheory.CONSTANT,
        statement=statement,
        says=says,
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
        "The overlaps of activations between inputs differ between two random networks by an amount that "
        "falls like one over the square root of the width.",
        "distance of the forward order parameters of two networks",
    ),
    _rate(
        "backward-rate",
        "backward",
        r"\mathbb{E}\, \|\tilde q_{st}^1 - \tilde q_{st}^{1 \prime}\| \sim M^{-1/2} \text{ for two networks}",
        "The overlaps of back-propagated gradients between inputs differ between two random networks by an "
        "amount that falls like one over the square root of the width.",
        "distance of the backward order parameters of two networks",
    ),
)

# --- fresh weights on the way back ---------------------------------------------------------------------------


def fresh_weights(block: Block, point: Point) -> Mapping[str, Any]:
    """Backward order parameter, with true and with other weights."""
    network, other = (network_at(block, point, point.width) for _ in range(2))
    passed = signals.forward(network, point.activation)
    scores = {}
    for name, weights in (("true", network), ("fresh", other)):
        overlaps = _overlaps(weights, point, passed)
        samples = overlaps.shape[-1]
        scores[f"{name}_mean"] = _off_diagonal(overlaps).mean((1, 2, 3)) * samples / (samples - 1)
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
    seconds=1.3,
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
        no_theory=NoTheory.MEASURED,
        statement=r"\mathbb{E}\, \tilde q_{st}^1 \text{ with the weights of the forward pass} = "
        r"\mathbb{E}\, \tilde q_{st}^1 \text{ with fresh ones}",
        says="In wide networks, back-propagating through fresh random weights in place of those of the "
        "forward pass leaves the mean overlap of two samples' gradients unchanged.",
        experiment=FRESH,
        kind=Kind.RATIO,
        score=("true_mean", "fresh_mean"),
        predict=lambda _: 1.0,
        margin=0.03,
        margin_reason="at most 3 % for wide networks; they differ by O(1/M)",
        rivals={"fresh slopes as well": _independent_gates, "half": lambda _: 0.5},
        quantity="backward order parameter, true over fresh weights",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*PAIR_CLAIMS, *FRESH_CLAIMS)
