"""Karakida, Akaho and Amari (2019), layer normalisation of two outputs, with the constant that libraries add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulate.monte_carlo import Block, Point
from verify.claims.wide_networks import PAPER, wide_network
from verify.model import AnyClaim, Claim, Experiment, Kind, Verdict

__all__ = ["CLAIMS"]


def two_outputs(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest eigenvalue with a constant in the variances, as libraries have it, and without any normalisation."""
    from simulate import fisher_gram, layer_normed

    network = wide_network(block, point)
    normed = layer_normed.gram(network, point.activation, eps=point.eps)
    plain = fisher_gram.gram(network, point.activation)
    return {
        "largest": fisher_gram.eigenvalues(normed)[:, -1],
        "unnormalised": fisher_gram.eigenvalues(plain)[:, -1],
    }


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
    budget=128,
    seconds=0.5,
)

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/layer-norm-two-outputs-in-practice",
        entries=("C53",),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        statement=r"\lambda_{\max} \le \lambda_{\max}(\text{no normalisation}) \quad "
        r"(C = 2,\ \sigma^2 + 10^{-5} \text{ for } \sigma^2)",
        experiment=TWO,
        kind=Kind.NEVER_ABOVE,
        score="largest",
        inputs={"unnormalised": 100.0},
        predict=lambda p: p.unnormalised,
        expected=Verdict.DISAGREES,
        finding="the matrix of two normalised outputs is zero only without the constant that libraries add to the "
        "variance: with it a single sample whose outputs nearly agree makes the sharpness larger than it is without "
        "normalisation.",
        margin=0.05,
        relative=False,
        margin_reason="a violation in 5 % of the networks would be seen",
        numerical=1e-9,
        rivals={"zero": lambda p: 0.0 * p.unnormalised},
        quantity="largest eigenvalue with two normalised outputs",
    ),
)
