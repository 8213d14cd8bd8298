"""Karakida, Akaho and Amari (2019), section 3.3: gradients through normalised hidden layers, and exact moments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import activations
from simulate.monte_carlo import Block, Point
from simulate.wide import batch_normed, fisher_gram, signals
from theory.fisher import middle_normalisation
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.batch_norm.batch_norm import OWN, normed_network
from verify.model import OURS, AnyClaim, ExactProperty, Identity, NoTheory, Passage, Standing
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


def _smallest_deviation(network: Any, activation: str) -> float:
    """Of a unit over the samples, at most 1: what it is divided by, so that its inverse amplifies rounding."""
    deviations = batch_normed.batch_normed_signals(network, activation).deviations
    return min([1.0, *(float(each.min()) for each in deviations)])


def _gram_difference(rng: np.random.Generator, point: Point, held: tuple[str, ...] = ()) -> float:
    """Largest difference of the closed Gram matrix and J J' by automatic differentiation, relative."""
    import torch

    network = _single(rng, point)
    flat = torch.cat([part for group in _jacobian(network, point.activation, held=held) for part in group], 2)
    expected = torch.einsum("ksp,mtp->kmst", flat, flat)
    found = batch_normed.batch_normed_gram(network, point.activation)[0]
    steady = _smallest_deviation(network, point.activation)
    return steady * float((found - expected).abs().max() / found.abs().max())


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
    steady = _smallest_deviation(network, point.activation)
    return steady * float((after - before).abs().max() / before.abs().max())


def _two_samples(rng: np.random.Generator, point: Point) -> float:
    """Largest difference of the Gram matrix and what the last layer contributes, relative."""
    import torch

    network = _single(rng, point)
    h = batch_normed.batch_normed_signals(network, point.activation).activations[-1][0]
    found = batch_normed.batch_normed_gram(network, point.activation)[0]
    expected = torch.eye(len(found), dtype=h.dtype)[:, :, None, None] * (h @ h.mT + 1)
    steady = _smallest_deviation(network, point.activation)
    return steady * float((found - expected).abs().max() / expected.abs().max())


def _last_moment(network: Any, name: str) -> float:
    """A second moment of the activations of the last hidden layer, of ReLU."""
    return float(
        batch_normed.measured_moments(batch_normed.batch_normed_signals(network, "relu"))[name][0, -1]
    )


def _mirrored(rng: np.random.Generator, point: Point, name: str = "q_hat_t") -> float:
    """A moment of a network and of its mirror image in the last hidden layer, from twice the mean."""
    network = _single(rng, point)
    signs = [1.0] * (network.depth - 2) + [-1.0, 1.0]
    mirror = signals.WideNetwork(
        weights=tuple(s * w for s, w in zip(signs, network.weights, strict=True)),
        biases=tuple(s * b for s, b in zip(signs, network.biases, strict=True)),
        inputs=network.inputs,
    )
    return abs(_last_moment(network, name) + _last_moment(mirror, name) - 2 * _expected(point, name))


def _one_half(rng: np.random.Generator, point: Point) -> float:
    return abs(_last_moment(_single(rng, point), "q_hat_t") - 0.5)


def _expected(p: Point, name: str) -> float:
    return float(getattr(middle_normalisation.batch_norm_moments("relu", samples=p.samples), name))


def two_normalised_samples(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Moments of the activations of two samples, and what they should be."""
    network = _single(rng, point)
    return {
        "measured": np.array([_last_moment(network, name) for name in ("q_hat_t", "q_hat_st")]),
        "theory": np.array(middle_normalisation.batch_norm_moments("relu", samples=2)),
        "of very many samples": np.array([0.5, 1 / (2 * math.pi)]),
        "uncorrelated": np.array([0.5, 0.25]),
    }


DEEP = Point(activation="tanh", widths=(4, 6, 5, 3), samples=5)
SHALLOW = Point(activation="softplus", widths=(3, 5, 2), samples=4)
EXACT = "an exact identity in float64; the derivative amplifies rounding where a deviation is small"

CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="karakida2019/batch-norm-gradients",
        entries=("C37",),
        source=f"ours, for {PAPER}, eqs. (20) and (21)",
        passage=OURS,
        no_theory=NoTheory.MEASURED,
        statement=r"\frac{\partial}{\partial u(s)} = \frac{1}{\sigma} \Big(v(s) - \tfrac1T \sum_t v(t) "
        r"- \bar u(s) \tfrac1T \sum_t \bar u(t)\, v(t)\Big),\quad v = \frac{\partial}{\partial \bar u}",
        says="Back-propagation through a batch-normalised layer takes out the signal's mean over the "
        "samples and its part along the normalised values, and divides by the deviation.",
        domain=_architectures(),
        violation=_gram_difference,
        examples=(DEEP, SHALLOW, Point(activation="relu", widths=(2, 5, 4, 3, 2), samples=6)),
        tolerance=1e-10,
        tolerance_reason=EXACT,
        rivals={
            "no coupling of samples": lambda rng, p: _gram_difference(rng, p, ("mean", "deviation")),
            "deviation held fixed": lambda rng, p: _gram_difference(rng, p, ("deviation",)),
            "mean held fixed": lambda rng, p: _gram_difference(rng, p, ("mean",)),
        },
        seconds=0.036,
    ),
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
    ExactProperty(
        id="karakida2019/batch-norm-variances",
        entries=("C37", "C38"),
        source=OWN,
        passage=OURS,
        no_theory=NoTheory.MEASURED,
        statement=r"K(c W, b + b') = K(W, b) \text{ for one } c > 0 \text{ in all layers and any } b'"
        r"\text{: neither } \sigma_w \text{ nor } \sigma_b \text{ matters}",
        says="With batch-normalised hidden layers, a common factor on all weights and any shift of the "
        "biases leave the Gram matrix of the gradients unchanged.",
        domain=_architectures(),
        violation=_moved,
        examples=(DEEP, SHALLOW),
        tolerance=1e-10,
        tolerance_reason=EXACT,
        rivals={
            "a factor of one layer": lambda rng, p: _moved(rng, p, layers=1),
            "without normalisation": lambda rng, p: _moved(rng, p, normalised=False),
        },
        seconds=0.016,
    ),
    ExactProperty(
        id="karakida2019/batch-norm-two-samples",
        entries=("C37", "C39"),
        source=OWN,
        passage=OURS,
        no_theory=NoTheory.MEASURED,
        statement=r"T = 2:\quad K_{km} = \delta_{km} (h^{L-1} h^{L-1\top} + \mathbf 1 \mathbf 1^\top)",
        says="With two samples, batch normalisation of the hidden layers leaves gradients in the last layer "
        "alone, and none shared by two outputs.",
        domain=_architectures(samples=(2, 2)),
        violation=_two_samples,
        examples=(DEEP | {"samples": 2}, SHALLOW | {"samples": 2}),
        tolerance=1e-10,
        tolerance_reason=EXACT,
        rivals={"T = 3": lambda rng, p: _two_samples(rng, p | {"samples": 3})},
        seconds=0.012,
    ),
    ExactProperty(
        id="karakida2019/batch-norm-mirror",
        entries=("C39",),
        source=OWN,
        passage=OURS,
        statement=r"\hat q_t(W^{L-1}, b^{L-1}) + \hat q_t(-W^{L-1}, -b^{L-1}) = 1 "
        r"\text{ for ReLU, hence } \mathbb{E}\,\hat q_t = \tfrac12 \text{ at any } M, T",
        says="For ReLU behind batch normalisation, the mean squared activations of a network and of its "
        "copy with the last hidden weights and biases reversed add up to one.",
        domain=_architectures(hidden=1),
        violation=_mirrored,
        examples=(DEEP, SHALLOW),
        tolerance=1e-12,
        tolerance_reason="an exact identity in float64",
        rivals={
            "on every network": _one_half,
            "for the product at two samples": lambda rng, p: _mirrored(rng, p, "q_hat_st"),
        },
        seconds=0.01,
    ),
    Identity(
        id="karakida2019/batch-norm-vanishing-covariance",
        entries=("C39",),
        source=f"{PAPER}, section 3.3, its moments for ReLU at two samples",
        statement=r"T = 2:\quad \hat q_{t,BN} = \tfrac12,\ \hat q_{st,BN} = 0 \text{ for ReLU, on every network}",
        says="With two samples, ReLU behind batch normalisation has activations of mean square one half and "
        "of vanishing product between the samples, in every network.",
        routes=two_normalised_samples,
        points=(Point(widths=(5, 7, 9, 3), samples=2),),
        tolerance=1e-12,
        tolerance_reason="two samples are normalised to -1 and 1, of which ReLU keeps one",
        seconds=0.01,
        quantity="mean square and mean product of the activations",
    ),
)
