"""Karakida, Akaho and Amari (2019), section 3.3: gradients through normalised hidden layers, and exact moments."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulate import activations
from simulate.monte_carlo import Block, Point
from simulate.wide import batch_normed, fisher_gram, signals
from theory.fisher import middle_normalisation
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.batch_norm.batch_norm import normed_network
from verify.model import AnyClaim, ExactProperty, NoTheory, Passage, Standing
from verify.model.domains import Between, Domain, Many, OneOf

__all__ = ["CLAIMS"]


def _architectures(*, hidden: int = 0, samples: tuple[int, int] = (2, 6)) -> Domain:
    """Networks with at least so many hidden layers, and so many samples."""
    return {
        "activation": OneOf("relu", "tanh", "erf", "linear", "sigmoid", "softplus", "gelu"),
        "widths": Many(Between(1, 6), 2 + hidden, 5),
        "samples": Between(*samples),
    }


def _single(rng: np.random.Generator, point: Point) -> Any:
    return normed_network(Block((rng,)), widths=point.widths, samples=point.samples)


def _jacobian(network: Any, activation: str, *, held: tuple[str, ...] = ()) -> tuple[Any, Any]:
    """Derivatives (C, T, P) of one network by weights and by biases, each of a list of one per layer.

    Automatic differentiation through the normalisation, or with means or deviations held fixed.
    """
    import torch

    phi = activations.nonlinearity(activation).function
    x = network.inputs[0]

    def outputs(weights: list[torch.Tensor], biases: list[torch.Tensor]) -> torch.Tensor:
        h = x
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            u = h @ weight.mT + bias
            mean = u.mean(0)
            centred = u - (mean.detach() if "mean" in held else mean)
            deviation = centred.square().mean(0).sqrt()
            h = phi(centred / (deviation.detach() if "deviation" in held else deviation))
        return (h @ weights[-1].mT + biases[-1]).T

    parameters = [w[0] for w in network.weights], [b[0] for b in network.biases]
    by_weights, by_biases = torch.func.jacrev(outputs, argnums=(0, 1))(*parameters)
    return [j.flatten(2) for j in by_weights], [j.flatten(2) for j in by_biases]


def _gram_difference(rng: np.random.Generator, point: Point, held: tuple[str, ...] = ()) -> float:
    """Largest difference of the closed Gram matrix and J J' by automatic differentiation, relative."""
    import torch

    network = _single(rng, point)
    flat = torch.cat([part for group in _jacobian(network, point.activation, held=held) for part in group], 2)
    expected = torch.einsum("ksp,mtp->kmst", flat, flat)
    found = batch_normed.batch_normed_gram(network, point.activation)[0]
    return float((found - expected).abs().max() / found.abs().max())


def _bias_gradients(rng: np.random.Generator, point: Point, *, last: bool = False, **options: Any) -> float:
    """Largest derivative by a bias of the hidden layers, over the largest of all."""
    weights, biases = _jacobian(_single(rng, point), point.activation, **options)
    largest = max(float(j.abs().max()) for j in (*weights, *biases))
    return max(float(j.abs().max()) for j in (biases if last else biases[:-1])) / largest


def _moved(
    rng: np.random.Generator, point: Point, *, layers: int | None = None, normalised: bool = True
) -> float:
    """Change of the Gram matrix when biases are drawn anew and the weights of `layers` layers are multiplied."""
    network = _single(rng, point)
    gram = batch_normed.batch_normed_gram if normalised else fisher_gram.gram
    changed = signals.WideNetwork(
        weights=tuple(2.7 * w if layers is None or i < layers else w for i, w in enumerate(network.weights)),
        biases=tuple(b + float(rng.normal()) for b in network.biases),
        inputs=network.inputs,
    )
    before, after = gram(network, point.activation), gram(changed, point.activation)
    return float((after - before).abs().max() / before.abs().max())


def _two_samples(rng: np.random.Generator, point: Point) -> float:
    """Largest difference of the Gram matrix and what the last layer contributes, relative."""
    import torch

    network = _single(rng, point)
    h = batch_normed.batch_normed_signals(network, point.activation).activations[-1][0]
    found = batch_normed.batch_normed_gram(network, point.activation)[0]
    expected = torch.eye(len(found), dtype=h.dtype)[:, :, None, None] * (h @ h.mT + 1)
    return float((found - expected).abs().max() / expected.abs().max())


def _expected(p: Point, name: str) -> float:
    return float(getattr(middle_normalisation.batch_norm_moments("relu", samples=p.samples), name))


DEEP = Point(activation="tanh", widths=(4, 6, 5, 3), samples=5)
SHALLOW = Point(activation="softplus", widths=(3, 5, 2), samples=4)
EXACT = "an exact identity in float64; the derivative amplifies rounding where a deviation is small"

CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="karakida2019/batch-norm-biases",
        entries=("C37",),
        source=f"{PAPER}, section 3.3: the biases cancel in the mean subtraction of each middle layer",
        passage=Passage(
            Standing.AS_STATED,
            "they are canceled out in the mean subtraction of each middle layer",
            "Section 3.3",
        ),
        no_theory=NoTheory.CONSTANT,
        statement=r"\frac{\partial f_k(s)}{\partial b^l} = 0,\quad l < L",
        says="With batch normalisation in the hidden layers, the outputs do not depend on the biases of "
        "these layers, in any network.",
        domain=_architectures(hidden=1),
        violation=_bias_gradients,
        examples=(DEEP, SHALLOW),
        tolerance=1e-10,
        tolerance_reason=EXACT,
        rivals={
            "for l = L too": lambda rng, p: _bias_gradients(rng, p, last=True),
            "with the mean held fixed": lambda rng, p: _bias_gradients(rng, p, held=("mean",)),
        },
        seconds=0.018,
    ),
)
