"""Karakida, Akaho and Amari (2019): what holds of the matrix of every network, and where kappa1 is known."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, signals
from theory import fisher
from verify.claims.karakida2019 import PAPER
from verify.model import AnyClaim, ExactProperty
from verify.model.domains import Between, Many, OneOf

__all__ = ["CLAIMS", "output_gradients"]


def output_gradients(network: Any, activation: str) -> Any:
    """Derivatives of all outputs at all samples of one network by all parameters, (C T, P), by autograd."""
    import torch

    def outputs(weights: list[torch.Tensor], biases: list[torch.Tensor]) -> torch.Tensor:
        moved = signals.WideNetwork(
            weights=tuple(w[None] for w in weights),
            biases=tuple(b[None] for b in biases),
            inputs=network.inputs,
        )
        return signals.forward(moved, activation).preactivations[-1][0].T

    parameters = [w[0] for w in network.weights], [b[0] for b in network.biases]
    parts = torch.func.jacrev(outputs, argnums=(0, 1))(*parameters)
    return torch.cat([part.flatten(2) for part in parts[0] + parts[1]], dim=2).flatten(0, 1)


def _beyond(rng: np.random.Generator, point: Point, rank: int) -> float:
    """The most negative eigenvalue, or the first that a matrix of such a rank would not have, over the largest.

    Of the Gram matrix, layer by layer, and of the Fisher matrix itself: neither has the size of the other.
    """
    import torch

    network = signals.wide_network(
        Block((rng,)),
        widths=point.widths,
        samples=point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )
    gradients = output_gradients(network, point.activation)
    dual = fisher_gram.fisher_eigenvalues(fisher_gram.gram(network, point.activation))[0]
    spectra = dual, torch.linalg.eigvalsh(gradients.mT @ gradients / point.samples)
    return max(_excess(values.flip(0), rank) for values in spectra)


def _excess(values: Any, rank: int) -> float:
    return float(max(-values[-1], *values[rank:].abs(), 0.0) / values[0])


def _weights(point: Point) -> int:
    return sum(a * b for a, b in pairwise(point.widths))


def _rank_bound(point: Point) -> int:
    inputs, *_, outputs = point.widths
    return fisher.rank_bound(
        depth=len(point.widths) - 1,
        width=inputs,
        samples=point.samples,
        outputs=outputs,
        width_ratios=[units / inputs for units in point.widths[:-1]],
    )


RANK = ExactProperty(
    id="karakida2019/fisher-rank",
    entries=("C9",),
    source=f"{PAPER}, eq. (8)",
    statement=r"F \succeq 0, \quad \mathrm{rank}\, F \le \min(P, C T)",
    says="In any network, the Fisher matrix has no negative eigenvalue, and its rank exceeds neither the "
    "number of parameters nor that of outputs times samples.",
    domain={
        "activation": OneOf("relu", "tanh", "erf", "linear", "sigmoid", "softplus", "gelu"),
        "widths": Many(Between(1, 4), 2, 4),
        "samples": Between(1, 9),
        "weight_variance": Between(0.1, 4.0),
        "bias_variance": Between(0.0, 2.0),
    },
    violation=lambda rng, point: _beyond(rng, point, _rank_bound(point)),
    examples=(
        Point(activation="tanh", widths=(4, 3, 2), samples=5, weight_variance=1.7, bias_variance=0.3),
        Point(activation="tanh", widths=(1, 1, 1), samples=7, weight_variance=1.7, bias_variance=0.3),
    ),
    tolerance=1e-12,
    tolerance_reason="rounding of a symmetric eigenvalue problem, relative to the largest eigenvalue",
    rivals={
        "rank T": lambda rng, point: _beyond(rng, point, point.samples),
        "weights only": lambda rng, point: _beyond(
            rng, point, min(_weights(point), point.widths[-1] * point.samples)
        ),
        "one less": lambda rng, point: _beyond(rng, point, _rank_bound(point) - 1),
    },
    seconds=0.025,
)

# --- kappa1 in closed form -----------------------------------------------------------------------------------


CLAIMS: tuple[AnyClaim, ...] = RANK
