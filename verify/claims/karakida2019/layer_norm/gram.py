"""Karakida, Akaho and Amari (2019), layer normalisation: the Gram matrix of any network, its rank, two outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulate import activations
from simulate.monte_carlo import Point
from simulate.wide import layer_normed
from theory.fisher.layer_normalisation import layer_norm_rank
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.small_networks import distance, small_network
from verify.model import OURS, AnyClaim, ExactProperty, NoTheory, Passage, Standing
from verify.model.domains import Between, Domain, Many, OneOf

__all__ = ["CLAIMS"]


ARCHITECTURES: Domain = {
    "activation": OneOf("tanh", "erf", "linear", "sigmoid", "softplus", "gelu"),
    "hidden": Many(Between(4, 9), 1, 3),
    "outputs": Between(3, 7),
    "samples": Between(1, 5),
    "weight_variance": Between(0.1, 4.0),
    "bias_variance": Between(0.0, 2.0),
}


def _network(rng: np.random.Generator, point: Point) -> Any:
    return small_network(rng, point | {"widths": (*point.hidden, point.outputs)})


def _gram_difference(
    rng: np.random.Generator, point: Point, *, fixed_deviation: bool = False, **options: Any
) -> float:
    """Largest difference of the layer-wise Gram matrix and J J' by automatic differentiation, relative."""
    import torch

    network = _network(rng, point)
    parameters = [t[0] for pair in zip(network.weights, network.biases, strict=True) for t in pair]
    phi = activations.nonlinearity(point.activation).function

    def outputs(*theta: torch.Tensor) -> torch.Tensor:
        h = network.inputs[0]
        for layer, (w, b) in enumerate(zip(theta[::2], theta[1::2], strict=True)):
            u = h @ w.mT + b
            deviation = u.std(-1, correction=0, keepdim=True)
            f = (u - u.mean(-1, keepdim=True)) / (deviation.detach() if fixed_deviation else deviation)
            h = f if layer == network.depth - 1 else phi(f)
        return h.T

    jacobian = torch.func.jacrev(outputs, argnums=tuple(range(len(parameters))))(*parameters)
    flat = torch.cat([j.flatten(2) for j in jacobian], dim=2)
    expected = torch.einsum("ksp,mtp->kmst", flat, flat)
    found = layer_normed.layer_normed_gram(network, point.activation, **options)[0]
    return distance(found, expected)


def _rank_difference(rng: np.random.Generator, point: Point, *, further: int = 0) -> float:
    """By how much the rank of some sample's block differs if normalisation takes `further` dimensions from it."""
    import torch

    gram = layer_normed.layer_normed_gram(_network(rng, point), point.activation)[0]
    own = torch.linalg.eigvalsh(gram.diagonal(dim1=2, dim2=3).movedim(2, 0))
    rank = (own > 1e-9 * own[:, -1:]).sum(1)
    return float((rank - layer_norm_rank(point.outputs) + further).abs().max())


def _of_two_outputs(rng: np.random.Generator, point: Point, *, eps: float = 0.0, outputs: int = 2) -> float:
    """Largest entry of K over that of the last layer's part if its mean alone were subtracted."""
    network = _network(rng, point | {"outputs": outputs})
    found = layer_normed.layer_normed_signals(network, point.activation)
    scale = found.inverses[-1].square() * found.activations[-1].square().sum(-1) / 2
    gram = layer_normed.layer_normed_gram(network, point.activation, eps=eps)
    return float(gram.abs().max() / scale.max())


SMALL = (
    Point(activation="tanh", hidden=(4, 6, 5), outputs=4, samples=3, weight_variance=1.7, bias_variance=0.3),
    Point(activation="softplus", hidden=(5, 8), outputs=6, samples=4, weight_variance=2.1, bias_variance=0.7),
)

CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="karakida2019/layer-norm-rank",
        entries=("C50",),
        source=f"ours, behind theorem 4.1 of {PAPER}",
        passage=OURS,
        statement=r"\mathrm{rank}\, K_{tt} = C - 2",
        says="With layer normalisation, the gradients of one sample's outputs span two dimensions fewer "
        "than there are outputs.",
        domain=ARCHITECTURES,
        violation=_rank_difference,
        examples=SMALL,
        tolerance=1e-9,
        tolerance_reason="an exact count, eigenvalues below 1e-9 of the largest being zero in float64",
        rivals={
            "C - 3": lambda rng, p: _rank_difference(rng, p, further=1),
            "C - 1": lambda rng, p: _rank_difference(rng, p, further=-1),
        },
        seconds=0.014,
    ),
    ExactProperty(
        id="karakida2019/layer-norm-two-outputs",
        entries=("C53",),
        source=f"{PAPER}, theorem 4.1",
        passage=Passage(
            Standing.AS_STATED, "the FIM becomes a zero matrix because of a special symmetry", "Section 4"
        ),
        no_theory=NoTheory.CONSTANT,
        statement=r"K = 0 \quad (C = 2)",
        says="With two layer-normalised outputs, the Fisher matrix of every network is zero.",
        domain=ARCHITECTURES,
        violation=_of_two_outputs,
        examples=SMALL,
        tolerance=1e-20,
        tolerance_reason="exactly zero up to the square of rounding: two normalised outputs are 1 and -1",
        rivals={
            "with 0.00001 added to the variance": lambda rng, p: _of_two_outputs(rng, p, eps=1e-5),
            "three outputs": lambda rng, p: _of_two_outputs(rng, p, outputs=3),
        },
        seconds=0.014,
    ),
)
