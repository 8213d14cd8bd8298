"""Karakida, Akaho and Amari (2019), Theorem 4.1: Fisher statistics and bounds with layer normalisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, layer_normed
from theory import fisher
from theory.fisher import layer_normalisation
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import kappas_at, network_of, setting
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind

__all__ = ["CLAIMS", "normed_kappas", "normed_statistics"]


def normed_fisher(block: Block, point: Point) -> Mapping[str, Any]:
    """Fisher statistics of the normalised outputs, and the averages of 1/sigma^2 that the theorem reads."""
    network = network_of(block, point)
    signals = layer_normed.layer_normed_signals(network, point.activation)
    gram = layer_normed.layer_normed_gram(network, point.activation)
    values = fisher_gram.fisher_eigenvalues(gram)
    count = sum(w[0].numel() for w in network.weights) + sum(b[0].numel() for b in network.biases)
    return {
        "mean": fisher_gram.fisher_trace(gram) / count,
        "rayleigh": fisher_gram.rayleigh(gram) * point.outputs,
        "largest": values[:, -1],
        **layer_normed.etas(signals),
    }


NORMED = Experiment(
    id="karakida2019/layer-norm",
    replicate="one network with its inputs",
    simulate=normed_fisher,
    points=(
        Point(
            activation="relu",
            weight_variance=0.65,
            bias_variance=0.1,
            depth=3,
            outputs=7,
            samples=6,
            width=240,
        ),
        Point(
            activation="tanh",
            weight_variance=0.7,
            bias_variance=0.15,
            depth=3,
            outputs=5,
            samples=9,
            width=240,
        ),
        Point(
            activation="erf",
            weight_variance=0.45,
            bias_variance=0.3,
            depth=3,
            outputs=6,
            samples=11,
            width=240,
        ),
    ),
    budget=2048,
    seconds=0.69,
)


@cache
def _cached_kappas(
    activation: str, depth: int, weight_variance: float, bias_variance: float
) -> fisher.Kappas:
    return layer_normalisation.layer_norm_kappas(
        activation, depth=depth, weight_variance=weight_variance, bias_variance=bias_variance
    )


def normed_kappas(p: Any) -> fisher.Kappas:
    """Constants of the Fisher matrix with layer normalisation."""
    return _cached_kappas(**setting(p))


def normed_statistics(p: Any, **changed: Any) -> layer_normalisation.LayerNormStatistics:
    """Theorem 4.1 with the etas of each network."""
    names = {"width", "samples", "outputs", "eta1", "eta2", "eta3"} - changed.keys()
    return layer_normalisation.layer_norm_statistics(**setting(p, *names), **changed)


def _mean(p: Any) -> Any:
    return normed_statistics(p, eta2=1.0, eta3=1.0, finite_width=True).mean


def _without_normalisation(p: Any) -> Any:
    """The constant kappa1 of the same network without normalisation."""
    return _mean(p) * kappas_at(p).kappa1 / normed_kappas(p).kappa1


def _rayleigh(p: Any, **changed: Any) -> Any:
    names = {"width", "samples", "outputs", "eta1", "overlap"} - changed.keys()
    return layer_normalisation.layer_norm_rayleigh(**setting(p, *names), **changed, finite_width=True)


def _single(p: Any) -> Any:
    """The part of the Rayleigh quotients from the diagonal of K."""
    return _rayleigh(p, overlap=0.0)


def _times_kappa(p: Any, value: Any) -> Any:
    """As if one kappa stood for the other."""
    return value * normed_kappas(p).kappa2 / normed_kappas(p).kappa1


# What is typical of each point, only to tell rivals apart before a run.
TYPICAL = {
    "relu": {"eta1": 3.8, "eta2": 16.0, "eta3": 2.8, "overlap": 13.0, "lower": 300.0, "upper": 1290.0},
    "tanh": {"eta1": 4.8, "eta2": 30.0, "eta3": 3.4, "overlap": 9.2, "lower": 210.0, "upper": 840.0},
    "erf": {"eta1": 2.9, "eta2": 9.4, "eta3": 2.4, "overlap": 9.2, "lower": 170.0, "upper": 630.0},
}


def _typical(*names: str) -> dict[str, Callable[[Point], float]]:
    return {name: lambda p, n=name: TYPICAL[p.activation][n] for name in names}


LINEAR = "linear in the Gram matrix: unbiased up to O(1/M), 1.3 % at M = 240; at most 3 % for wide networks"
ETAS = ("eta1", "eta2", "eta3")

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/layer-norm-mean",
        entries=("C50",),
        source=f"{PAPER}, theorem 4.1, eq. (26)",
        statement=r"m_\lambda = \frac{(C - 2)\, \eta_1}{P} \Big(\alpha M \kappa_1' + \sum_l \tilde q_t^l\Big),\quad "
        r"\eta_1 = \frac1T \sum_t \frac{1}{\sigma(t)^2}",
        says="With layer normalisation, the mean Fisher eigenvalue of a wide network is in proportion to "
        "two less than the number of outputs and to the mean inverse output variance.",
        experiment=NORMED,
        score="mean",
        inputs=_typical("eta1"),
        predict=_mean,
        margin=0.03,
        margin_reason=LINEAR,
        rivals={
            "C for C - 2": lambda p: _mean(p) * p.outputs / (p.outputs - 2),
            "C - 1 for C - 2": lambda p: _mean(p) * (p.outputs - 1) / (p.outputs - 2),
            "kappa2' for kappa1'": lambda p: _times_kappa(p, _mean(p)),
            "kappa1 without normalisation": _without_normalisation,
        },
        quantity="mean eigenvalue with layer normalisation",
    ),
    Claim(
        id="karakida2019/layer-norm-rayleigh",
        entries=("C51",),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        passage=OURS,
        statement=r"\frac{1}{T^2} \sum_k \mathbf 1^\top K_{kk} \mathbf 1 = \alpha M \Big[(C - 2) \frac{\eta_1}{T} "
        r"\kappa_1' + \frac{\kappa_2'}{T^2} \sum_{s \ne t} "
        r"\frac{C - 3 + (f(s) \cdot f(t)/C)^2}{\sigma(s)\, \sigma(t)}\Big] + \text{biases}",
        says="With layer normalisation, the summed Rayleigh quotients of a wide network's outputs at equal "
        "weights follow from the deviations and overlaps of these outputs.",
        experiment=NORMED,
        score="rayleigh",
        inputs=_typical("eta1", "overlap"),
        predict=_rayleigh,
        margin=0.03,
        margin_reason=LINEAR,
        rivals={
            "pairs only": lambda p: _rayleigh(p) - _single(p),
            "single samples only": lambda p: _single(p),
            "kappa2' for kappa1'": lambda p: _rayleigh(p) - _single(p) + _times_kappa(p, _single(p)),
            "C - 3 for C - 2": lambda p: _rayleigh(p, eta1=p.eta1 * (p.outputs - 3) / (p.outputs - 2)),
        },
        quantity="Rayleigh quotients at equal weights, summed over the outputs",
    ),
    Claim(
        id="karakida2019/layer-norm-lower-bound",
        entries=("C52",),
        source=f"{PAPER}, theorem 4.1, eq. (26)",
        statement=r"\mathbb{E}\,\lambda_{\max} \ge \frac{\alpha M}{(C - 2)\, \eta_1 \kappa_1'} "
        r"\Big[\big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2 "
        r"+ (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2)\Big]",
        says="With layer normalisation, the mean largest Fisher eigenvalue of a wide network lies above the "
        "theorem's lower bound, which grows in proportion to the width.",
        experiment=NORMED,
        kind=Kind.AT_LEAST,
        score="largest",
        inputs=_typical(*ETAS),
        predict=lambda p: normed_statistics(p).lower,
        margin=0.03,
        margin_reason="at most 3 % for wide networks",
        rivals={
            "upper bound": lambda p: normed_statistics(p).upper,
            "kappa2' for kappa1' in the trace": lambda p: (
                normed_statistics(p).lower * normed_kappas(p).kappa1 / normed_kappas(p).kappa2
            ),
        },
        quantity="largest eigenvalue with layer normalisation",
    ),
    Claim(
        id="karakida2019/layer-norm-upper-bound",
        entries=("C52",),
        source=f"{PAPER}, theorem 4.1, eq. (26)",
        statement=r"\mathbb{E}\,\lambda_{\max} \le \alpha M \sqrt{\big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2 "
        r"+ (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2)}",
        says="With layer normalisation, the mean largest Fisher eigenvalue of a wide network lies below the "
        "theorem's upper bound, which grows in proportion to the width.",
        experiment=NORMED,
        kind=Kind.AT_MOST,
        score="largest",
        inputs=_typical(*ETAS),
        predict=lambda p: normed_statistics(p).upper,
        margin=0.03,
        margin_reason="at most 3 % for wide networks",
        rivals={
            "lower bound": lambda p: normed_statistics(p).lower,
            "no alpha": lambda p: normed_statistics(p).upper / normed_kappas(p).alpha,
        },
        quantity="largest eigenvalue with layer normalisation",
    ),
)
