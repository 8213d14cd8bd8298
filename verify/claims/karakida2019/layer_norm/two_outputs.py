"""Karakida, Akaho and Amari (2019), layer normalisation of two outputs, with the constant that libraries add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, layer_normed
from verify.claims.karakida2019.wide_networks import network_of
from verify.model import AnyClaim, Experiment

__all__ = ["CLAIMS"]


def two_outputs(block: Block, point: Point) -> Mapping[str, Any]:
    """Whether a constant in the variances, as libraries have it, leaves the matrix sharper than no normalisation."""
    network = network_of(block, point)
    normed = layer_normed.layer_normed_gram(network, point.activation, eps=point.eps)
    plain = fisher_gram.gram(network, point.activation)
    largest, unnormalised = (fisher_gram.fisher_eigenvalues(g)[:, -1] for g in (normed, plain))
    return {"sharper": (largest > unnormalised).double()}


TWO = Experiment(
    id="karakida2019/layer-norm-two",
    replicate="one network with its inputs",
    simulate=two_outputs,
    points=(
        Point(
            activation="relu",
            weight_variance=1.7,
            bias_variance=0.7,
            depth=3,
            outputs=2,
            samples=90,
            width=40,
            eps=1e-5,
        ),
    ),
    budget=2048,
    seconds=0.46,
)

CLAIMS: tuple[AnyClaim, ...] = ()
