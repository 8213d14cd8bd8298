"""Karakida, Akaho and Amari (2019), theorem 4.1: layer normalisation, of any network, of wide ones, and its etas."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from numpy.random import Generator

from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, layer_normed
from theory import fisher
from theory.fisher import layer_normalisation
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
    setting,
    small_network,
    width_by_width,
)
from verify.model import (
    OURS,
    Arrays,
    Claim,
    ExactProperty,
    Kind,
    NoTheory,
    as_stated,
)
from verify.model.domains import Between, Many, OneOf

ETAS = ("eta1", "eta2", "eta3")


@cache
def _kappas(**known: Any) -> fisher.Kappas:
    return layer_normalisation.layer_norm_kappas(**known)


def normed_kappas(p: Any) -> fisher.Kappas:
    """Constants of the Fisher matrix with layer normalisation."""
    return _kappas(**setting(p))


def normed_statistics(p: Any, **changed: Any) -> layer_normalisation.LayerNormStatistics:
    """Theorem 4.1 with the etas of each network."""
    names = {"width", "samples", "outputs", *ETAS} - changed.keys()
    return layer_normalisation.layer_norm_statistics(**setting(p, *names), **changed)


# --- of any network ------------------------------------------------------------------------------------------


def _network(rng: Generator, point: Point) -> Any:
    return small_network(rng, point | {"widths": (*point.hidden, point.outputs)})


def _of_two_outputs(rng: Generator, point: Point, *, eps: float = 0.0, outputs: int = 2) -> float:
    """Largest entry of K over that of the last layer's part if its mean alone were subtracted."""
    network = _network(rng, point | {"outputs": outputs})
    found = layer_normed.layer_normed_signals(network, point.activation)
    scale = found.inverses[-1].square() * found.activations[-1].square().sum(-1) / 2
    gram = layer_normed.layer_normed_gram(network, point.activation, eps=eps)
    return float(gram.abs().max() / scale.max())


TWO_OUTPUTS = ExactProperty(
    id="karakida2019/layer-norm-two-outputs",
    entries=("C53",),
    source=f"{PAPER}, theorem 4.1",
    passage=as_stated("the FIM becomes a zero matrix because of a special symmetry", "Section 4"),
    no_theory=NoTheory.CONSTANT,
    statement=r"K = 0 \quad (C = 2)",
    says="With two layer-normalised outputs, the Fisher matrix of every network is zero.",
    domain={
        "activation": OneOf("tanh", "erf", "linear", "sigmoid", "softplus", "gelu"),
        "hidden": Many(Between(4, 9), 1, 3),
        "outputs": Between(3, 7),
        "samples": Between(1, 5),
        "weight_variance": Between(0.1, 4.0),
        "bias_variance": Between(0.0, 2.0),
    },
    violation=_of_two_outputs,
    examples=(
        law("tanh", 1.7, 0.3, hidden=(4, 6, 5), outputs=4, samples=3),
        law("softplus", 2.1, 0.7, hidden=(5, 8), outputs=6, samples=4),
    ),
    tolerance=1e-20,
    tolerance_reason="exactly zero up to the square of rounding: two normalised outputs are 1 and -1",
    rivals={
        "with 0.00001 added to the variance": partial(_of_two_outputs, eps=1e-5),
        "three outputs": partial(_of_two_outputs, outputs=3),
    },
    seconds=0.014,
)


# --- statistics and bounds -------------------------------------------------------------------------------------


def normed_fisher(block: Block, point: Point) -> Arrays:
    """Fisher statistics of the normalised outputs, and the averages of 1/sigma^2 that the theorem reads."""
    network = lazy_network_of(block, point)
    signals = layer_normed.layer_normed_signals(network, point.activation)
    gram = layer_normed.layer_normed_gram(network, point.activation, signals=signals)
    values = fisher_gram.fisher_eigenvalues(gram)
    return {
        "mean": fisher_gram.fisher_trace(gram) / network.parameters,
        "rayleigh": fisher_gram.rayleigh(gram) * point.outputs,
        "largest": values[:, -1],
        **layer_normed.etas(signals),
    }


NORMED = one_network(
    id="karakida2019/layer-norm",
    simulate=normed_fisher,
    points=(
        law("relu", 0.65, 0.1, depth=3, outputs=7, samples=6, width=240),
        law("tanh", 0.7, 0.15, depth=3, outputs=5, samples=9, width=240),
        law("erf", 0.45, 0.3, depth=3, outputs=6, samples=11, width=240),
    ),
    budget=2048,
    seconds=0.69,
)


def _mean(p: Any) -> Any:
    return normed_statistics(p, eta2=1.0, eta3=1.0, finite_width=True).mean


def _rayleigh(p: Any, **changed: Any) -> Any:
    names = {"width", "samples", "outputs", "eta1", "overlap"} - changed.keys()
    return layer_normalisation.layer_norm_rayleigh(**setting(p, *names), **changed, finite_width=True)


def _single(p: Any) -> Any:
    """The part of the Rayleigh quotients from the diagonal of K."""
    return _rayleigh(p, overlap=0.0)


def _times_kappa(p: Any, value: Any) -> Any:
    """Value with one kappa in place of the other."""
    return value * normed_kappas(p).kappa2 / normed_kappas(p).kappa1


# What is typical of each point, only to tell rivals apart before a run.
TYPICAL = {
    "eta1": {"relu": 3.8, "tanh": 4.8, "erf": 2.9},
    "eta2": {"relu": 16.0, "tanh": 30.0, "erf": 9.4},
    "eta3": {"relu": 2.8, "tanh": 3.4, "erf": 2.4},
    "overlap": {"relu": 13.0, "tanh": 9.2, "erf": 9.2},
}


def _typical(*names: str) -> dict[str, Callable[[Point], float]]:
    return {name: lambda p, n=name: TYPICAL[n][p.activation] for name in names}


LINEAR = f"linear in the Gram matrix: unbiased up to O(1/M), 1.3 % at M = 240; {WIDE}"
_normed = partial(Claim, experiment=NORMED, margin=0.03, margin_reason=WIDE)
_bound = partial(
    _normed,
    entries=("C52",),
    source=f"{PAPER}, theorem 4.1, eq. (26)",
    score="largest",
    inputs=_typical(*ETAS),
    quantity="largest eigenvalue with layer normalisation",
)

NORMED_CLAIMS = (
    _normed(
        id="karakida2019/layer-norm-mean",
        entries=("C50",),
        source=f"{PAPER}, theorem 4.1, eq. (26)",
        statement=r"m_\lambda = \frac{(C - 2)\, \eta_1}{P} \Big(\alpha M \kappa_1' + \sum_l \tilde q_t^l\Big),\quad "
        r"\eta_1 = \frac1T \sum_t \frac{1}{\sigma(t)^2}",
        says="With layer normalisation, the mean Fisher eigenvalue is in proportion to the number of outputs less "
        "two and to the mean inverse output variance.",
        score="mean",
        inputs=_typical("eta1"),
        predict=_mean,
        margin_reason=LINEAR,
        rivals={
            "C for C - 2": lambda p: _mean(p) * p.outputs / (p.outputs - 2),
            "C - 1 for C - 2": lambda p: _mean(p) * (p.outputs - 1) / (p.outputs - 2),
            "kappa2' for kappa1'": lambda p: _times_kappa(p, _mean(p)),
            "kappa1 without normalisation": lambda p: (
                _mean(p) * kappas_at(p).kappa1 / normed_kappas(p).kappa1
            ),
        },
        quantity="mean eigenvalue with layer normalisation",
    ),
    _normed(
        id="karakida2019/layer-norm-rayleigh",
        entries=("C51",),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        passage=OURS,
        statement=r"\frac{1}{T^2} \sum_k \mathbf 1^\top K_{kk} \mathbf 1 = \alpha M \Big[(C - 2) \frac{\eta_1}{T} "
        r"\kappa_1' + \frac{\kappa_2'}{T^2} \sum_{s \ne t} "
        r"\frac{C - 3 + (f(s) \cdot f(t)/C)^2}{\sigma(s)\, \sigma(t)}\Big] + \text{biases}",
        says="With layer normalisation, the summed Rayleigh quotients follow from deviations and overlaps of the "
        "outputs.",
        score="rayleigh",
        inputs=_typical("eta1", "overlap"),
        predict=_rayleigh,
        margin_reason=LINEAR,
        rivals={
            "pairs only": lambda p: _rayleigh(p) - _single(p),
            "single samples only": _single,
            "kappa2' for kappa1'": lambda p: _rayleigh(p) - _single(p) + _times_kappa(p, _single(p)),
            "C - 3 for C - 2": lambda p: _rayleigh(p, eta1=p.eta1 * (p.outputs - 3) / (p.outputs - 2)),
        },
        quantity="Rayleigh quotients at equal weights, summed over the outputs",
    ),
    _bound(
        id="karakida2019/layer-norm-lower-bound",
        statement=r"\mathbb{E}\,\lambda_{\max} \ge \frac{\alpha M}{(C - 2)\, \eta_1 \kappa_1'} "
        r"\Big[\big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2 "
        r"+ (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2)\Big]",
        says="With layer normalisation, the mean largest Fisher eigenvalue lies above the theorem's lower bound, "
        "which grows like the width.",
        kind=Kind.AT_LEAST,
        predict=lambda p: normed_statistics(p).lower,
        rivals={
            "upper bound": lambda p: normed_statistics(p).upper,
            "kappa2' for kappa1' in the trace": lambda p: (
                normed_statistics(p).lower * normed_kappas(p).kappa1 / normed_kappas(p).kappa2
            ),
        },
        quantity="largest eigenvalue with layer normalisation",
    ),
    _bound(
        id="karakida2019/layer-norm-upper-bound",
        statement=r"\mathbb{E}\,\lambda_{\max} \le \alpha M \sqrt{\big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2 "
        r"+ (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2)}",
        says="With layer normalisation, the mean largest Fisher eigenvalue lies below the theorem's upper bound, "
        "which grows like the width.",
        kind=Kind.AT_MOST,
        predict=lambda p: normed_statistics(p).upper,
        rivals={
            "lower bound": lambda p: normed_statistics(p).lower,
            "no alpha": lambda p: normed_statistics(p).upper / normed_kappas(p).alpha,
        },
    ),
)

# --- limits of infinite width, given the outputs ----------------------------------------------------------------


def growing_squares(block: Block, point: Point) -> Arrays:
    """Logarithm of Tr F^2 / Tr F over the theory given the etas of each network, at every width."""
    return {"ratio": _squares_over_theory(block, point)["ratio"].log()}


@width_by_width
def _squares_over_theory(block: Block, point: Point, width: int) -> Arrays:
    import torch

    network = lazy_network_of(block, point, width=width)
    signals = layer_normed.layer_normed_signals(network, point.activation)
    etas = layer_normed.etas(signals)
    gram = layer_normed.layer_normed_gram(network, point.activation, signals=signals)
    found = gram.square().sum((1, 2, 3, 4)) / point.samples**2
    mean_etas: dict[str, Any] = {name: etas[name].cpu().numpy() for name in ETAS}
    law = setting(point, "samples", "outputs")
    known = layer_normalisation.layer_norm_statistics(**law, width=width, **mean_etas)
    moments = torch.from_numpy(known.second_moment / known.mean).to(block.device)
    return {"ratio": found / fisher_gram.fisher_trace(gram) / moments}


SQUARES = at_each_width(
    id="karakida2019/layer-norm-squares",
    simulate=growing_squares,
    points=(
        law(
            "erf",
            1.7,
            1.3,
            depth=3,
            outputs=4,
            samples=6,
            widths=(8, 16, 32, 64, 128),
            networks=(2, 6, 1, 2, 5),
        ),
    ),
    budget=1536,
    seconds=5.7,
)

MEDIANS: dict[str, Any] = {"eta1": 1.1, "eta2": 2.2, "eta3": 0.9}
"""Medians of the etas over networks at this point; only the first has a mean."""


def _of_squares(p: Any, **changed: Any) -> float:
    """Limit of the score if another formula were right."""
    law, etas = setting(p, "samples", "outputs"), (MEDIANS | changed, MEDIANS)
    other, known = (
        float(layer_normalisation.layer_norm_statistics(**law, width=p.widths[-1], **e).second_moment)
        for e in etas
    )
    return math.log(other / known)


LIMIT_CLAIMS = (
    limit(
        id="karakida2019/layer-norm-second-moment",
        entries=("C51",),
        source=f"{PAPER}, theorem 4.1, eq. (27); the etas are our reading",
        statement=r"\lim_{M \to \infty} \mathbb{E} \log \frac{\mathrm{Tr}\, F^2}{\mathrm{Tr}\, F} "
        r"\frac{m_\lambda}{s_\lambda} = 0,\quad "
        r"s_\lambda = \alpha \Big[\big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2 "
        r"+ (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2)\Big]",
        says="With layer normalisation, the second over the first moment of Fisher eigenvalues tends to the "
        "theorem's value for each network's outputs.",
        experiment=SQUARES,
        score="ratio",
        predict=lambda _: 0.0,
        margin=0.03,
        relative=False,
        order=approach(SQUARES, "ratio", lambda _: 0.0),
        margin_reason=f"{WIDE}; a logarithm, as 1/sigma^2 makes the ratio itself heavy-tailed",
        rivals={
            "eta1 for eta3": lambda p: _of_squares(p, eta3=MEDIANS["eta1"]),
            "without eta3": lambda p: _of_squares(p, eta3=1e-9),
            "the square of eta1 for eta2": lambda p: _of_squares(p, eta2=MEDIANS["eta1"] ** 2),
            "without eta2": lambda p: _of_squares(p, eta2=1e-9),
        },
        quantity="logarithm of Tr F^2 / Tr F over its limit",
        logarithm="e",
    ),
)

# --- an average of the output variances ----------------------------------------------------------------------


@width_by_width
def etas_by_width(block: Block, point: Point, width: int) -> Arrays:
    """The third eta of one network."""
    network = lazy_network_of(block, point, width=width)
    signals = layer_normed.layer_normed_signals(network, point.activation)
    return {"eta3": layer_normed.etas(signals)["eta3"]}


WIDTHS = at_each_width(
    id="karakida2019/layer-norm-etas-by-width",
    simulate=etas_by_width,
    points=(
        law(
            "tanh",
            1.7,
            0.7,
            depth=3,
            outputs=60,
            samples=5,
            widths=(8, 16, 32, 64, 128),
            networks=(4, 8, 2, 2, 8),
        ),
    ),
    budget=480,
    seconds=1.7,
)


ETA_3 = "root mean square overlap between samples' outputs over their variances"

CLAIMS = (
    TWO_OUTPUTS,
    *NORMED_CLAIMS,
    *LIMIT_CLAIMS,
    exponent(
        id="karakida2019/layer-norm-eta3-by-width",
        entries=("C54",),
        source=f"{PAPER}, theorem 4.1",
        passage=as_stated("are constants independent of", "Theorem 4.1"),
        no_theory=NoTheory.CONSTANT,
        statement=r"\mathbb{E}\,\eta_3 \sim M^0",
        says=f"With layer normalisation, the expected {ETA_3} does not depend on the width.",
        experiment=WIDTHS,
        score="eta3",
        predict=lambda _: 0.0,
        margin=0.2,
        rivals={"square root": lambda _: 0.5, "as one over the width": lambda _: -1.0},
        quantity=ETA_3,
    ),
)
