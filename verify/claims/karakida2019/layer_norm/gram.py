"""Karakida, Akaho and Amari (2019), layer normalisation: Gram matrices, of any network and given the outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from simulate.wide import layer_normed
from theory.fisher import layer_normalisation
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.layer_norm.layer_norm import normed_kappas, normed_statistics
from verify.claims.karakida2019.wide_networks import small_network
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


def _rank_difference(rng: np.random.Generator, point: Point, *, further: int = 0) -> float:
    """By how much the rank of some sample's block differs if normalisation takes `further` dimensions from it."""
    import torch

    gram = layer_normed.layer_normed_gram(_network(rng, point), point.activation)[0]
    own = torch.linalg.eigvalsh(gram.diagonal(dim1=2, dim2=3).movedim(2, 0))
    rank = (own > 1e-9 * own[:, -1:]).sum(1)
    return float((rank - layer_normalisation.layer_norm_rank(point.outputs) + further).abs().max())


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

ANY_NETWORK: tuple[AnyClaim, ...] = (
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


# --- Theorem 4.1 given the outputs ----------------------------------------------------------------------------


OUTPUTS: Domain = {
    "activation": OneOf("relu", "erf", "linear"),
    "depth": Between(2, 5),
    "outputs": Between(3, 8),
    "samples": Between(1, 12),
    "weight_variance": Between(0.1, 4.0),
    "bias_variance": Between(0.0, 2.0),
    "shared": Between(0.0, 3.0),
}


def _blocks(rng: np.random.Generator, p: Any) -> tuple[Any, Any]:
    """Outputs drawn before their normalisation, and the blocks of K over alpha M."""
    u = rng.standard_normal((p.samples, p.outputs)) + p.shared * rng.standard_normal(p.outputs)
    centred = u - u.mean(1, keepdims=True)
    deviation = centred.std(1)
    f = centred / deviation[:, None]
    projectors = np.eye(p.outputs) - 1 / p.outputs - f[:, :, None] * f[:, None, :] / p.outputs
    scaled = (projectors / deviation[:, None, None]).reshape(-1, p.outputs)
    kappas = np.where(np.eye(p.samples, dtype=bool), normed_kappas(p).kappa1, normed_kappas(p).kappa2)
    k = scaled @ scaled.T * np.kron(kappas, np.ones((p.outputs, p.outputs)))
    return u, k


def _squares_difference(rng: np.random.Generator, p: Point, **changes: Callable[[Any], Any]) -> float:
    """Trace of the squared blocks and its formula in the etas, relative difference."""
    u, k = _blocks(rng, p)
    etas = layer_normalisation.realised_etas(u)
    given = {name: change(etas) for name, change in changes.items()}
    found = normed_statistics(_with(p, etas), **given).upper
    expected = normed_kappas(p).alpha * WIDTH / p.samples * np.linalg.norm(k)
    return float(abs(found / expected - 1))


WIDTH = 100


def _with(p: Point, etas: layer_normalisation.Etas) -> Point:
    return p | {name: float(value) for name, value in etas._asdict().items()} | {"width": WIDTH}


DRAWN = (
    Point(
        activation="relu", depth=3, outputs=5, samples=11, weight_variance=1.7, bias_variance=0.3, shared=0.7
    ),
    Point(
        activation="erf", depth=4, outputs=3, samples=7, weight_variance=2.3, bias_variance=0.4, shared=1.3
    ),
)

BLOCK_CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="karakida2019/layer-norm-etas",
        entries=("C51",),
        source=f"{PAPER}, theorem 4.1, eq. (27); the etas are our reading",
        statement=r"\frac{\|K\|_F^2}{(\alpha M)^2 T^2} = \big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2 "
        r"+ (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2),\quad "
        r"K_{st} = \alpha M \kappa_{st}' \frac{P(s) P(t)}{\sigma(s)\, \sigma(t)}",
        says="Given the outputs, the squared entries of the wide-network Gram matrix with layer "
        "normalisation sum to the theorem's formula in three averages of output deviations and overlaps.",
        domain=OUTPUTS,
        violation=_squares_difference,
        examples=DRAWN,
        tolerance=1e-9,
        tolerance_reason="an exact identity in float64",
        rivals={
            "eta1 for eta3": lambda rng, p: _squares_difference(rng, p, eta3=lambda e: e.eta1),
            "the square of eta1 for eta2": lambda rng, p: _squares_difference(
                rng, p, eta2=lambda e: e.eta1**2
            ),
            "eta3 for its square": lambda rng, p: _squares_difference(rng, p, eta3=lambda e: e.eta3**0.5),
        },
        seconds=0.016,
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*ANY_NETWORK, *BLOCK_CLAIMS)
