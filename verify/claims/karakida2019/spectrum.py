"""Karakida, Akaho and Amari (2019), theorem 2.2: Gram matrix, rank, moments and eigenvectors without normalisation.

Layers of different widths, the input's included, and numbers of samples down to one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, gradient_span, signals
from theory import fisher
from theory.order_parameters import OrderParameters, order_parameters
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import (
    WIDE,
    approach,
    at_each_width,
    exponent,
    kappas_at,
    law,
    lazy_network_of,
    limit,
    one_network,
    parameters_of,
    setting,
    small_network,
    statistics_of,
    wide,
    width_by_width,
)
from verify.model import Arrays, ExactProperty, NoTheory, as_stated, misprint
from verify.model.domains import Between, Domain, Many, OneOf

LINEAR = f"linear in the Gram matrix: unbiased up to O(1/M); {WIDE}"
MISREAD = misprint("obtained using order parameters", "Eq 11", slip=True)
LOST_TILDE = (
    "As our copy reads, eq. (11) has a forward order parameter in both places, where kappa pairs the backward one of a "
    "layer with the forward one below it; a lost tilde, very likely a slip of the text conversion."
)

# --- the mean eigenvalue -------------------------------------------------------------------------------------


def wide_fisher(block: Block, point: Point) -> Arrays:
    """Mean eigenvalue of the Fisher information, linear in the Gram matrix and hence unbiased."""
    network = lazy_network_of(block, point)
    gram = fisher_gram.gram(network, point.activation)
    return {"mean": fisher_gram.fisher_trace(gram) / network.parameters}


FISHER = one_network(
    id="karakida2019/fisher",
    simulate=wide_fisher,
    points=tuple(
        law(*parameters, depth=3, width=240, samples=6, outputs=4)
        for parameters in (("relu", 2.6, 0.4), ("tanh", 2.7, 0.6), ("erf", 0.8, 2.1))
    ),
    budget=2048,
    seconds=0.29,
)


def _mean(p: Point) -> float:
    return statistics_of(p).mean


def _eq_11_as_read(p: Point) -> float:
    """Trace of the Fisher matrix over P with forward for backward signals in kappa1, as our copy reads."""
    misread = float((_same_layer(p, "q_hat_t") * _moments(p).q_hat_t).sum()) / (p.depth - 1)
    blocks = (p.depth - 1) * p.width * p.outputs
    return _mean(p) + (misread - kappas_at(p).kappa1) * blocks / parameters_of(p)


MEAN_EIGENVALUE = wide(
    id="karakida2019/mean-eigenvalue",
    entries=("C12", "C16"),
    source=f"{PAPER}, theorem 2.2, eqs. (10) and (11)",
    passage=MISREAD,
    statement=r"m_\lambda = \frac{C}{P} \Big(\alpha M \kappa_1 + \sum_l \tilde q_t^l\Big),\quad "
    r"\kappa_1 = \sum_{l=1}^{L} \frac{\alpha_{l-1}}{\alpha} \tilde q_t^l\, \hat q_t^{l-1}",
    says="The mean Fisher eigenvalue sums over layers the backward variance times the forward variance below "
    "it, biases included.",
    experiment=FISHER,
    score="mean",
    predict=_mean,
    printed=_eq_11_as_read,
    reads=r"\kappa_1 = \sum_{l=1}^{L} \frac{\alpha_{l-1}}{\alpha} \hat q_t^l\, \hat q_t^{l-1}",
    finding=LOST_TILDE,
    margin_reason=f"{LINEAR}, 0.2 % at M = 240",
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


def _gram_difference(rng: Generator, point: Point, **options: Any) -> float:
    """Largest difference of the layer-wise Gram matrix and J J' by automatic differentiation, relative."""
    import torch

    network = small_network(rng, point)
    found = fisher_gram.gram(network, point.activation, **options)[0]
    jacobian = torch.cat(_output_gradients(network, point.activation), dim=2)
    expected = torch.einsum("ksp,mtp->kmst", jacobian, jacobian)
    return float((found - expected).abs().max() / expected.abs().max())


def _networks(widest: int, most: int, samples: int) -> Domain:
    return {
        "activation": OneOf("relu", "tanh", "erf", "linear", "sigmoid", "softplus", "gelu"),
        "widths": Many(Between(1, widest), 2, most),
        "samples": Between(1, samples),
        "weight_variance": Between(0.1, 4.0),
        "bias_variance": Between(0.0, 2.0),
    }


GRAM_PROPERTY = ExactProperty(
    id="karakida2019/gram",
    entries=("C4", "C17", "C55"),
    source=f"{PAPER}, eqs. (4) and (8)",
    no_theory=NoTheory.MEASURED,
    statement=r"J J^\top = \sum_l \big[\delta^l(s)^\top \delta^l(t)\big] \big[h^{l-1}(s)^\top h^{l-1}(t) + 1\big]",
    says="The Gram matrix of the output gradients sums over layers backward overlaps times forward overlaps, "
    "biases included.",
    domain=_networks(7, 5, 5),
    violation=_gram_difference,
    examples=(
        law("tanh", 1.7, 0.3, widths=(4, 6, 5, 3), samples=4),
        law("relu", 2.1, 0.0, widths=(5, 7, 2), samples=3),
    ),
    tolerance=1e-12,
    tolerance_reason="an exact identity in float64",
    rivals={"no gradient of the biases": partial(_gram_difference, biases=False)},
    seconds=0.026,
)


def _beyond(rng: Generator, point: Point, rank: int) -> float:
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
    says="The Fisher matrix has no negative eigenvalue, and a rank of at most its parameters and of outputs "
    "times samples.",
    domain=_networks(4, 4, 9),
    violation=lambda rng, p: _beyond(rng, p, _rank_bound(p)),
    examples=(
        law("tanh", 1.7, 0.3, widths=(4, 3, 2), samples=5),
        law("tanh", 1.7, 0.3, widths=(1, 1, 1), samples=7),
    ),
    tolerance=1e-12,
    tolerance_reason="rounding of a symmetric eigenvalue problem, relative to the largest eigenvalue",
    rivals={
        "rank T": lambda rng, p: _beyond(rng, p, p.samples),
        "weights only": lambda rng, p: _beyond(
            rng, p, min(sum(a * b for a, b in pairwise(p.widths)), p.widths[-1] * p.samples)
        ),
        "one less": lambda rng, p: _beyond(rng, p, _rank_bound(p) - 1),
    },
    seconds=0.025,
)

# --- layers of different widths ------------------------------------------------------------------------------


def uneven_layers(block: Block, point: Point) -> Arrays:
    """Mean entry of the Gram matrix of one output off its diagonal, per unit of width."""
    gram = fisher_gram.gram(lazy_network_of(block, point), point.activation)
    diagonal = fisher_gram.fisher_trace(gram) / point.outputs
    off = (fisher_gram.rayleigh(gram) * point.samples - diagonal) / (point.samples - 1)
    return {"off_diagonal": off / point.width}


UNEVEN = one_network(
    id="karakida2019/uneven-layers",
    simulate=uneven_layers,
    points=(
        law("relu", 2.6, 1.4, depth=3, width=720, ratios=(0.4, 1.75, 0.7), samples=7, outputs=4),
        law("tanh", 2.7, 0.6, depth=4, width=480, ratios=(2.25, 0.7, 1.6, 1.25), samples=7, outputs=3),
        law("erf", 1.8, 2.1, depth=4, width=320, ratios=(0.7, 1.6, 0.4, 1.75), samples=7, outputs=3),
    ),
    budget=4096,
    seconds=0.34,
)


def _moments(p: Point) -> OrderParameters:
    return order_parameters(**setting(p))


def _kappas(p: Point) -> fisher.Kappas:
    return fisher.kappas(**setting(p), width_ratios=p.ratios)


def _biases(p: Point, name: str = "q_tilde_st") -> float:
    """Part of an entry of the Gram matrix, for two samples or for one."""
    return float(getattr(_moments(p), name).sum()) / p.width


def _sum(p: Point, backward: np.ndarray, forward: np.ndarray, ratios: Any = None) -> float:
    """The sum over layers with other order parameters, or other numbers in place of alpha_{l-1}."""
    return float(np.asarray(ratios or p.ratios, float) @ (backward * forward)) + _biases(p)


def _rewidened(ratios: Callable[[Point], Any]) -> Callable[[Point], float]:
    return lambda p: _sum(p, _moments(p).q_tilde_st, _moments(p).q_hat_st, ratios(p))


def _before_activation(p: Point, name: str = "q_hat_st") -> Any:
    """q^l, of the pre-activation of the layer above, for the activation below."""
    return p.weight_variance * getattr(_moments(p), name) + p.bias_variance


def _same_layer(p: Point, name: str = "q_hat_st") -> Any:
    """Forward order parameters of the same layer; the read-out's activation is its pre-activation."""
    return np.append(getattr(_moments(p), name)[1:], _before_activation(p, name)[-1])


UNEVEN_CLAIM = wide(
    id="karakida2019/uneven-kappa2",
    entries=("C8", "C14", "C16"),
    source=f"{PAPER}, theorem 2.2, eq. (11), widths M_l = alpha_l M",
    passage=MISREAD,
    statement=r"\frac{1}{M}\, \mathbb{E}\, K_{kk}(s, t) = \alpha \kappa_2 + \frac1M \sum_l \tilde q_{st}^l,\quad "
    r"\alpha \kappa_2 = \sum_{l=1}^{L} \alpha_{l-1} \tilde q_{st}^l\, \hat q_{st}^{l-1}",
    says="The mean product of two samples' gradients sums over layers backward times forward covariances, "
    "weighted by the width below.",
    experiment=UNEVEN,
    score="off_diagonal",
    predict=lambda p: _kappas(p).alpha * _kappas(p).kappa2 + _biases(p),
    printed=lambda p: _sum(p, _same_layer(p), _moments(p).q_hat_st),
    reads=r"\kappa_2 = \sum_{l=1}^{L} \frac{\alpha_{l-1}}{\alpha} \hat q_{st}^l\, \hat q_{st}^{l-1}",
    finding=LOST_TILDE,
    margin_reason=LINEAR,
    rivals={
        "kappa1": lambda p: _kappas(p).alpha * _kappas(p).kappa1 + _biases(p, "q_tilde_t"),
        "hidden layers as wide as M": _rewidened(lambda p: (p.ratios[0], *(1.0 for _ in p.ratios[1:]))),
        "width of the layer above": _rewidened(lambda p: (*p.ratios[1:], p.outputs / p.width)),
        "last layer dropped": _rewidened(lambda p: (*p.ratios[:-1], 0.0)),
        "index shifted": lambda p: _sum(p, _moments(p).q_tilde_st, _same_layer(p)),
        "q for q hat": lambda p: _sum(p, _moments(p).q_tilde_st, _before_activation(p)),
    },
    quantity="mean off-diagonal entry of the Gram matrix per unit of width",
)

# --- any number of samples -----------------------------------------------------------------------------------


def any_samples(block: Block, point: Point) -> Arrays:
    """Rayleigh quotient at equal weights with the first T of the inputs, for every T."""
    import torch

    network = lazy_network_of(block, point, samples=max(point.samples))
    gram = fisher_gram.gram(network, point.activation)
    return {"rayleigh": torch.stack([fisher_gram.rayleigh(gram[..., :t, :t]) for t in point.samples], dim=1)}


MANY: Arrays = {"depth": 3, "width": 360, "outputs": 2}

ANY_SAMPLES = one_network(
    id="karakida2019/any-samples",
    simulate=any_samples,
    points=tuple(
        law(*network, **MANY, samples=samples)
        for samples in ((1, 4, 9, 25), (6, 15))
        for network in (("tanh", 2.7, 0.6), ("erf", 1.7, 2.3))
    ),
    budget=4096,
    seconds=0.48,
)


def _at(p: Any, diagonal: float, off_diagonal: float) -> float:
    """Mix kappa1 and kappa2, times alpha M."""
    k = kappas_at(p)
    return k.alpha * p.width * (diagonal * k.kappa1 + off_diagonal * k.kappa2)


ANY_SAMPLES_CLAIM = wide(
    id="karakida2019/any-samples",
    entries=("C9", "C14"),
    source=f"{PAPER}, theorem 2.2, eq. (10), for any T",
    passage=as_stated("investigates such an empirical FIM for arbitrary", "Section 2.3"),
    statement=r"\frac{1}{T^2} \mathbf 1^\top K_{kk} \mathbf 1 = "
    r"\alpha M \Big(\frac{T-1}{T} \kappa_2 + \frac{1}{T} \kappa_1\Big) + O(1), \quad T = 1 \text{ to } 25",
    says="The formula for the Rayleigh quotient holds at any number of samples, down to a single one.",
    experiment=ANY_SAMPLES,
    score="rayleigh",
    along="samples",
    predict=lambda p: statistics_of(p).largest,
    margin_reason=LINEAR,
    rivals={
        "many samples only": lambda p: _at(p, 0.0, 1.0),
        "kappa1 over T only": lambda p: _at(p, 1 / p.samples, 0.0),
        "one sample only": lambda p: _at(p, 1.0, 0.0),
        "kappa1 in full": lambda p: _at(p, 1.0, (p.samples - 1) / p.samples),
        "T - 1 for T": lambda p: _at(p, 1 / max(p.samples - 1, 1), 1 - 1 / max(p.samples - 1, 1)),
    },
    axis="samples",
    quantity="Rayleigh quotient of the Fisher matrix at equal weights",
)

# --- as the width grows --------------------------------------------------------------------------------------


@width_by_width
def growing_layers(block: Block, point: Point, width: int) -> Arrays:
    """Second moment of the eigenvalues, the largest ones and their eigenvectors."""
    gram = fisher_gram.gram(lazy_network_of(block, point, width=width), point.activation)
    squares = gram.square().sum((1, 2, 3, 4)) / point.samples**2
    span, scale = gradient_span.top_span(gram), fisher_gram.rayleigh(gram)
    return {
        "second_moment": squares / (scale * fisher_gram.fisher_trace(gram)),
        "mean_of_top": span.eigenvalues.mean(1) / scale,
        "sine": (1 - span.overlap).sqrt(),
    }


GROWING = at_each_width(
    id="karakida2019/growing-layers",
    simulate=growing_layers,
    points=(
        law(
            "relu",
            2.6,
            1.1,
            depth=3,
            widths=(16, 32, 64, 128, 256),
            networks=(6, 10, 2, 3, 4),
            ratios=(1.25, 0.75, 1.5),
            samples=5,
            outputs=4,
        ),
    ),
    budget=640,
    seconds=4.6,
)


def _second_moment(p: Point, diagonal: float, off_diagonal: float) -> float:
    """A mix of the squares of kappa1 and kappa2, over kappa1 and the factor of eq. (10)."""
    k = _kappas(p)
    return (diagonal * k.kappa1**2 + off_diagonal * k.kappa2**2) / (k.kappa1 * _bracket(p))


def _bracket(p: Point) -> float:
    """Factor of alpha M in eq. (10)."""
    return (p.samples - 1) / p.samples * _kappas(p).kappa2 + _kappas(p).kappa1 / p.samples


def _by_theorem(p: Point) -> float:
    """Second moment over mean and largest eigenvalue, to leading order in the width, whatever it is."""
    size = {"width": 100, "width_ratios": p.ratios}
    known = fisher.eigenvalue_statistics(**setting(p, "samples", "outputs"), **size)
    return known.second_moment / (known.mean * known.largest)


def _one_large(p: Point) -> float:
    """Mean of the C largest over the largest if one alone had the size of eq. (10), the others that of the rest."""
    k = _kappas(p)
    rest = k.difference / ((p.samples - 1) * k.kappa2 + k.kappa1)
    return (1 + (p.outputs - 1) * rest) / p.outputs


CLAIMS = (
    MEAN_EIGENVALUE,
    GRAM_PROPERTY,
    RANK,
    UNEVEN_CLAIM,
    ANY_SAMPLES_CLAIM,
    limit(
        id="karakida2019/second-moment",
        entries=("C13",),
        source="Karakida, Akaho and Amari (2019), Universal statistics of Fisher information in deep neural networks",
        statement=r"s_\lambda = \alpha C \Big(\frac{T-1}{T} \kappa_2^2 + \frac1T \kappa_1^2\Big): \quad "
        r"\lim_{M \to \infty} \mathbb{E}\Big[\frac{s_\lambda}{m_\lambda \bar r}\Big] = "
        r"\frac{(T-1) \kappa_2^2 + \kappa_1^2}{\kappa_1 ((T-1) \kappa_2 + \kappa_1)}",
        says="The second moment of Fisher eigenvalues, over mean and Rayleigh quotient, tends to a mix of squared "
        "gradient overlaps within and between samples.",
        experiment=GROWING,
        score="second_moment",
        order=approach(GROWING, "second_moment", _by_theorem),
        predict=_by_theorem,
        margin=0.03,
        margin_reason=f"{WIDE}; at M = 16 it is a third higher",
        rivals={
            "kappa2^2 only": lambda p: _second_moment(p, 0.0, 1.0),
            "kappa1^2 only": lambda p: _second_moment(p, 1.0, 0.0),
            "kappa1^2 in full": lambda p: _second_moment(p, 1.0, 1 - 1 / p.samples),
            "lambda_max^2": lambda p: _bracket(p) / _kappas(p).kappa1,
            "no alpha": lambda p: _by_theorem(p) / _kappas(p).alpha,
            "one output": lambda p: _by_theorem(p) / p.outputs,
        },
        quantity="second moment of the eigenvalues over mean and Rayleigh quotient",
    ),
    limit(
        id="karakida2019/mean-of-top",
        entries=("C14", "C15"),
        source=f"{PAPER}, theorem 2.2, eq. (10), for C eigenvalues",
        no_theory=NoTheory.MEASURED,
        statement=r"\lim_{M \to \infty} \mathbb{E}\Big[\frac1C \sum_{j \le C} \lambda_j \big/ \bar r\Big] = 1,"
        r"\quad \bar r = \frac1{C T^2} \sum_k \mathbf 1^\top K_{kk} \mathbf 1",
        says="As the width grows, the mean of the C largest Fisher eigenvalues tends to the Rayleigh quotient.",
        experiment=GROWING,
        score="mean_of_top",
        order=approach(GROWING, "mean_of_top", lambda _: 1.0),
        predict=lambda _: 1.0,
        margin=0.01,
        margin_reason="at most 1 %; the ratio itself is 1.14 at M = 16",
        rivals={"one large eigenvalue": _one_large, "no convergence from M = 32 on": lambda _: 1.07},
        quantity="mean of the C largest eigenvalues over the mean Rayleigh quotient",
    ),
    exponent(
        id="karakida2019/span-of-top",
        entries=("C19",),
        source=f"{PAPER}, theorem 3.1, on the eigenspace of the largest eigenvalues",
        passage=as_stated("We find the following eigenspace of", "Section 3.1"),
        no_theory=NoTheory.CONSTANT,
        statement=r"\mathbb{E} \sqrt{1 - \tfrac1C \mathrm{tr} P_v P_g} \sim M^{-1/2} \to 0,\quad "
        r"P_v \text{ on } v_1..v_C,\ P_g \text{ on } E[\nabla f_1]..E[\nabla f_C]",
        says="The angle between the spans of the top Fisher eigenvectors and of the outputs' mean gradients falls "
        "like one over the root of the width.",
        experiment=GROWING,
        score="sine",
        predict=lambda _: -0.5,
        margin=0.24,
        rivals={"do not align": lambda _: 0.0, "faster": lambda _: -1.0},
        quantity="sine of the angle between the spans of the C top eigenvectors and of the mean gradients",
    ),
)
