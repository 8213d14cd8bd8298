"""Karakida, Akaho and Amari (2019), theorem 2.2: the mean eigenvalue; the Gram matrix of any network, its rank."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, fisher_gram, signals
from theory import fisher
from theory.order_parameters import order_parameters
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import kappas_at, passed_at, setting, small_network
from verify.model import AnyClaim, Claim, ExactProperty, Experiment, NoTheory, Passage, Standing
from verify.model.domains import Between, Many, OneOf

__all__ = ["CLAIMS"]

SETTINGS = (
    Point(activation="relu", weight_variance=2.6, bias_variance=0.4),
    Point(activation="tanh", weight_variance=2.7, bias_variance=0.6),
    Point(activation="erf", weight_variance=0.8, bias_variance=2.1),
)


# --- the mean eigenvalue -------------------------------------------------------------------------------------


def wide_fisher(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean eigenvalue of the Fisher information, linear in the Gram matrix and hence unbiased."""
    passed = passed_at(block, point)
    return {"mean": fisher_gram.fisher_trace(few_signals.passed_gram(passed)) / passed.parameters}


FISHER = Experiment(
    id="karakida2019/fisher",
    replicate="one network with its inputs",
    simulate=wide_fisher,
    points=tuple(s | {"depth": 3, "width": 240, "samples": 6, "outputs": 4} for s in SETTINGS),
    budget=2048,
    seconds=0.29,
)


def _mean(p: Point) -> float:
    return float(
        fisher.eigenvalue_statistics(**setting(p, "width", "samples", "outputs"), finite_width=True).mean
    )


def _eq_11_as_read(p: Point) -> float:
    """Trace of the Fisher matrix over P with forward for backward signals in kappa1, as our copy reads."""
    known = order_parameters(**setting(p))
    q = p.weight_variance * known.q_hat_t[-1] + p.bias_variance
    hats = np.append(known.q_hat_t, q)  # the read-out is linear: its activation is its pre-activation
    misread = float((hats[1:] * hats[:-1]).sum()) / (p.depth - 1)
    count = int(fisher.parameter_count(depth=p.depth, width=p.width, outputs=p.outputs))
    return _mean(p) + (misread - kappas_at(p).kappa1) * (p.depth - 1) * p.width * p.outputs / count


LINEAR = "linear in the Gram matrix: unbiased up to O(1/M), 0.2 % at M = 240; at most 3 % for wide networks"

MEAN_EIGENVALUE = Claim(
    id="karakida2019/mean-eigenvalue",
    entries=("C12", "C16"),
    source=f"{PAPER}, theorem 2.2, eqs. (10) and (11)",
    passage=Passage(Standing.MISPRINT, "obtained using order parameters", "Eq 11", slip=True),
    statement=r"m_\lambda = \frac{C}{P} \Big(\alpha M \kappa_1 + \sum_l \tilde q_t^l\Big),\quad "
    r"\kappa_1 = \sum_{l=1}^{L} \frac{\alpha_{l-1}}{\alpha} \tilde q_t^l\, \hat q_t^{l-1}",
    says="The mean Fisher eigenvalue of a wide network follows from the backward variance of each layer "
    "times the forward variance below it, with the biases counted.",
    experiment=FISHER,
    score="mean",
    predict=lambda p: _mean(p),
    printed=_eq_11_as_read,
    reads=r"\kappa_1 = \sum_{l=1}^{L} \frac{\alpha_{l-1}}{\alpha} \hat q_t^l\, \hat q_t^{l-1}",
    finding="As our copy reads, eq. (11) has a forward order parameter in both places, where kappa1 pairs the "
    "backward one of a layer with the forward one below it; a lost tilde, very likely a slip of the conversion.",
    margin=0.03,
    margin_reason=LINEAR,
    rivals={
        "no alpha": lambda p: _mean(p) / (p.depth - 1),
        "kappa2 for kappa1": lambda p: _mean(p) * kappas_at(p).kappa2 / kappas_at(p).kappa1,
        "one output": lambda p: _mean(p) / p.outputs,
        "P missing a layer": lambda p: _mean(p) * (p.depth - 1) / (p.depth - 2),
    },
    quantity="mean eigenvalue of the Fisher matrix",
    axis="weight_variance",
)

# --- the Gram matrix -----------------------------------------------------------------------------------------


def _output_gradients(network: Any, activation: str) -> list[Any]:
    """Derivatives (C, T, p) of all outputs of one network by the weights and biases of each layer, by autograd."""
    import torch

    def outputs(*theta: torch.Tensor) -> torch.Tensor:
        moved = [t[None] for t in theta]
        one = signals.WideNetwork(weights=tuple(moved[::2]), biases=tuple(moved[1::2]), inputs=network.inputs)
        return signals.forward(one, activation).preactivations[-1][0].T

    start = [t[0] for pair in zip(network.weights, network.biases, strict=True) for t in pair]
    return [j.flatten(2) for j in torch.func.jacrev(outputs, argnums=tuple(range(len(start))))(*start)]


def _gram_difference(rng: np.random.Generator, point: Point, **options: Any) -> float:
    """Largest difference of the layer-wise Gram matrix and J J' by automatic differentiation, relative."""
    import torch

    network = small_network(rng, point)
    found = fisher_gram.gram(network, point.activation, **options)[0]
    jacobian = torch.cat(_output_gradients(network, point.activation), dim=2)
    expected = torch.einsum("ksp,mtp->kmst", jacobian, jacobian)
    return float((found - expected).abs().max() / expected.abs().max())


ACTIVATIONS = ("relu", "tanh", "erf", "linear", "sigmoid", "softplus", "gelu")

GRAM_PROPERTY = ExactProperty(
    id="karakida2019/gram",
    entries=("C4", "C17", "C55"),
    source=f"{PAPER}, eqs. (4) and (8)",
    no_theory=NoTheory.MEASURED,
    statement=r"J J^\top = \sum_l \big[\delta^l(s)^\top \delta^l(t)\big] \big[h^{l-1}(s)^\top h^{l-1}(t) + 1\big]",
    says="In any network, the Gram matrix of the output gradients, biases included, is a sum over layers of "
    "backward overlaps times forward overlaps.",
    domain={
        "activation": OneOf(*ACTIVATIONS),
        "widths": Many(Between(1, 7), 2, 5),
        "samples": Between(1, 5),
        "weight_variance": Between(0.1, 4.0),
        "bias_variance": Between(0.0, 2.0),
    },
    violation=_gram_difference,
    examples=(
        Point(activation="tanh", widths=(4, 6, 5, 3), samples=4, weight_variance=1.7, bias_variance=0.3),
        Point(activation="relu", widths=(5, 7, 2), samples=3, weight_variance=2.1, bias_variance=0.0),
    ),
    tolerance=1e-12,
    tolerance_reason="an exact identity in float64",
    rivals={"no gradient of the biases": lambda rng, point: _gram_difference(rng, point, biases=False)},
    seconds=0.026,
)


def _beyond(rng: np.random.Generator, point: Point, rank: int) -> float:
    """The most negative eigenvalue, or the first that a matrix of such a rank would not have, over the largest.

    Of the Gram matrix, layer by layer, and of the Fisher matrix itself: neither has the size of the other.
    """
    import torch

    network = small_network(rng, point)
    parts = _output_gradients(network, point.activation)
    gradients = torch.cat([*parts[::2], *parts[1::2]], dim=2).flatten(0, 1)
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
        "activation": OneOf(*ACTIVATIONS),
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

CLAIMS: tuple[AnyClaim, ...] = (MEAN_EIGENVALUE, GRAM_PROPERTY, RANK)
