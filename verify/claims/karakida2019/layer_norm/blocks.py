"""Karakida, Akaho and Amari (2019), Theorem 4.1: the blocks of a wide Gram matrix, given the outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from theory.fisher import layer_normalisation
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.layer_norm.layer_norm import normed_kappas, normed_statistics
from verify.model import AnyClaim, ExactProperty
from verify.model.domains import Between, Domain, OneOf

__all__ = ["CLAIMS"]


OUTPUTS: Domain = {
    "activation": OneOf("relu", "erf", "linear"),
    "depth": Between(2, 5),
    "outputs": Between(3, 8),
    "samples": Between(1, 12),
    "weight_variance": Between(0.1, 4.0),
    "bias_variance": Between(0.0, 2.0),
    "shared": Between(0.0, 3.0),
}


def _blocks(rng: np.random.Generator, p: Any) -> tuple[Any, Any, float]:
    """Outputs drawn before their normalisation, the blocks of K over alpha M, and the largest 1/sigma^2."""
    u = rng.standard_normal((p.samples, p.outputs)) + p.shared * rng.standard_normal(p.outputs)
    centred = u - u.mean(1, keepdims=True)
    deviation = centred.std(1)
    f = centred / deviation[:, None]
    projectors = np.eye(p.outputs) - 1 / p.outputs - f[:, :, None] * f[:, None, :] / p.outputs
    scaled = (projectors / deviation[:, None, None]).reshape(-1, p.outputs)
    kappas = np.where(np.eye(p.samples, dtype=bool), normed_kappas(p).kappa1, normed_kappas(p).kappa2)
    k = scaled @ scaled.T * np.kron(kappas, np.ones((p.outputs, p.outputs)))
    return u, k, float((deviation**-2).max())


def _squares_difference(rng: np.random.Generator, p: Point, **changes: Callable[[Any], Any]) -> float:
    """Trace of the squared blocks and its formula in the etas, relative difference."""
    u, k, _ = _blocks(rng, p)
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

CLAIMS: tuple[AnyClaim, ...] = (
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
