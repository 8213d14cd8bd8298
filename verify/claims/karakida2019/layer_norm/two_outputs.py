"""Karakida, Akaho and Amari (2019), layer normalisation of two outputs, with the constant that libraries add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, layer_normed
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import network_of
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind, NoTheory

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

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/layer-norm-two-outputs-in-practice",
        entries=("C53",),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        passage=OURS,
        no_theory=NoTheory.CONSTANT,
        statement=r"P\big(\lambda_{\max} > \lambda_{\max}(\text{no normalisation})\big) \ge \tfrac14 \quad "
        r"(C = 2,\ \sigma^2 + 10^{-5} \text{ for } \sigma^2,\ M = 40,\ T = 90)",
        says="With two outputs and the small constant that libraries add to the variance, layer "
        "normalisation leaves at least a quarter of the networks sharper than none does.",
        experiment=TWO,
        kind=Kind.AT_LEAST,
        score="sharper",
        predict=lambda _: 0.25,
        margin=0.05,
        relative=False,
        margin_reason="five networks in a hundred; without the constant there would be none, for the matrix is zero",
        pilot="the bound 1/4: no theory gives it; below the share of the first networks drawn",
        rivals={"every network": lambda _: 1.0},
        quantity="share of networks that two normalised outputs leave sharper",
    ),
)
