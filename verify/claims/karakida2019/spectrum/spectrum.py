"""Karakida, Akaho and Amari (2019): the Fisher spectrum without normalisation, at one width.

Layers of different widths, the input's included, numbers of samples down to one, and the rank of the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, fisher_gram, signals
from theory import fisher
from theory.order_parameters import OrderParameters, order_parameters
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import kappas_at, network_of, passed_at, setting
from verify.model import AnyClaim, Claim, Experiment, Passage, Standing

__all__ = ["CLAIMS", "network_at", "widths_at"]

LINEAR = "linear in the Gram matrix: unbiased up to O(1/M); at most 3 % for wide networks"

# --- layers of different widths ------------------------------------------------------------------------------


def network_at(block: Block, point: Point, width: int) -> Any:
    """Networks whose layers have `width` times the ratios of the point."""
    return signals.wide_network(
        block,
        widths=widths_at(point, width),
        samples=point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )


def widths_at(point: Point, width: int) -> tuple[int, ...]:
    """Theirs, inputs first."""
    return (*(round(ratio * width) for ratio in point.ratios), point.outputs)


def uneven_layers(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean entry of the Gram matrix of one output off its diagonal, per unit of width."""
    gram = few_signals.passed_gram(passed_at(block, point, widths_at(point, point.width)))
    diagonal = fisher_gram.fisher_trace(gram) / point.outputs
    off = (fisher_gram.rayleigh(gram) * point.samples - diagonal) / (point.samples - 1)
    return {"off_diagonal": off / point.width}


UNEVEN = Experiment(
    id="karakida2019/uneven-layers",
    replicate="one network with its inputs",
    simulate=uneven_layers,
    points=(
        Point(
            activation="relu",
            weight_variance=2.6,
            bias_variance=1.4,
            depth=3,
            width=240,
            ratios=(0.4, 1.75, 0.7),
            samples=7,
            outputs=4,
        ),
        Point(
            activation="tanh",
            weight_variance=2.7,
            bias_variance=0.6,
            depth=4,
            width=160,
            ratios=(2.25, 0.7, 1.6, 1.25),
            samples=7,
            outputs=3,
        ),
        Point(
            activation="erf",
            weight_variance=1.8,
            bias_variance=2.1,
            depth=4,
            width=160,
            ratios=(0.7, 1.6, 0.4, 1.75),
            samples=7,
            outputs=3,
        ),
    ),
    budget=4096,
    seconds=0.34,
)


def _moments(p: Point) -> OrderParameters:
    return order_parameters(**setting(p))


def _kappa1(p: Point) -> float:
    """Of one sample in place of two: alpha times kappa1, with the biases."""
    k = fisher.kappas(**setting(p), width_ratios=p.ratios)
    return k.alpha * k.kappa1 + float(_moments(p).q_tilde_t.sum()) / p.width


def _biases(p: Point) -> float:
    return float(_moments(p).q_tilde_st.sum()) / p.width


def _kappa2(p: Point) -> float:
    """By the theory: alpha times kappa2, with the biases."""
    k = fisher.kappas(**setting(p), width_ratios=p.ratios)
    return k.alpha * k.kappa2 + _biases(p)


def _sum(p: Point, backward: np.ndarray, forward: np.ndarray, ratios: Any = None) -> float:
    """The sum over layers with other order parameters, or other numbers in place of alpha_{l-1}."""
    return float(np.asarray(ratios or p.ratios, float) @ (backward * forward)) + _biases(p)


def _rewidened(ratios: Callable[[Point], Any]) -> Callable[[Point], float]:
    return lambda p: _sum(p, _moments(p).q_tilde_st, _moments(p).q_hat_st, ratios(p))


def _above(p: Point) -> np.ndarray:
    """Forward order parameters of the same layer; the read-out's activation is its pre-activation."""
    forward = _moments(p).q_hat_st
    return np.append(forward[1:], p.weight_variance * forward[-1] + p.bias_variance)


def _before_activation(p: Point) -> float:
    """q^l, of the pre-activation of the same layer, for the activation below."""
    m = _moments(p)
    return _sum(p, m.q_tilde_st, p.weight_variance * m.q_hat_st + p.bias_variance)


UNEVEN_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/uneven-kappa2",
        entries=("C8", "C14", "C16"),
        source=f"{PAPER}, theorem 2.2, eq. (11), widths M_l = alpha_l M",
        passage=Passage(Standing.MISPRINT, "obtained using order parameters", "Eq 11", slip=True),
        statement=r"\frac{1}{M}\, \mathbb{E}\, K_{kk}(s, t) = \alpha \kappa_2 + \frac1M \sum_l \tilde q_{st}^l,\quad "
        r"\alpha \kappa_2 = \sum_{l=1}^{L} \alpha_{l-1} \tilde q_{st}^l\, \hat q_{st}^{l-1}",
        says="With layers of different widths, the mean product of two samples' gradients sums backward "
        "times forward covariances over layers, each weighted by the width of the layer below.",
        experiment=UNEVEN,
        score="off_diagonal",
        predict=_kappa2,
        printed=lambda p: _sum(p, _above(p), _moments(p).q_hat_st),
        reads=r"\kappa_2 = \sum_{l=1}^{L} \frac{\alpha_{l-1}}{\alpha} \hat q_{st}^l\, \hat q_{st}^{l-1}",
        finding="As our copy reads, eq. (11) has a forward order parameter in both places, where kappa pairs the "
        "backward one of a layer with the forward one below it; a lost tilde, very likely a slip of the text "
        "conversion.",
        margin=0.03,
        margin_reason=LINEAR,
        rivals={
            "kappa1": _kappa1,
            "hidden layers as wide as M": _rewidened(lambda p: (p.ratios[0], *(1.0 for _ in p.ratios[1:]))),
            "width of the layer above": _rewidened(lambda p: (*p.ratios[1:], p.outputs / p.width)),
            "last layer dropped": _rewidened(lambda p: (*p.ratios[:-1], 0.0)),
            "index shifted": lambda p: _sum(p, _moments(p).q_tilde_st, _above(p)),
            "q for q hat": _before_activation,
        },
        quantity="mean off-diagonal entry of the Gram matrix per unit of width",
    ),
)

# --- any number of samples -----------------------------------------------------------------------------------


def any_samples(block: Block, point: Point) -> Mapping[str, Any]:
    """Rayleigh quotient at equal weights with the first T of the inputs, for every T."""
    import torch

    network = network_of(block, point, samples=max(point.samples))
    gram = fisher_gram.gram(network, point.activation)
    return {"rayleigh": torch.stack([fisher_gram.rayleigh(gram[..., :t, :t]) for t in point.samples], dim=1)}


MANY = {"depth": 3, "width": 120, "samples": (1, 4, 9, 25), "outputs": 2}

ANY_SAMPLES = Experiment(
    id="karakida2019/any-samples",
    replicate="one network with its inputs",
    simulate=any_samples,
    points=(
        Point(activation="tanh", weight_variance=2.7, bias_variance=0.6, **MANY),
        Point(activation="erf", weight_variance=1.7, bias_variance=2.3, **MANY),
    ),
    budget=4096,
    seconds=0.48,
)


def _at(p: Point, diagonal: float, off_diagonal: float) -> float:
    """Mix kappa1 and kappa2, times alpha M."""
    k = kappas_at(p)
    return k.alpha * p.width * (diagonal * k.kappa1 + off_diagonal * k.kappa2)


def _eq_10(p: Point) -> float:
    return fisher.eigenvalue_statistics(
        **setting(p, "width", "samples", "outputs"), finite_width=True
    ).largest


ANY_SAMPLES_CLAIM = Claim(
    id="karakida2019/any-samples",
    entries=("C9", "C14"),
    source=f"{PAPER}, theorem 2.2, eq. (10), for any T",
    passage=Passage(Standing.AS_STATED, "investigates such an empirical FIM for arbitrary", "Section 2.3"),
    statement=r"\frac{1}{T^2} \mathbf 1^\top K_{kk} \mathbf 1 = "
    r"\alpha M \Big(\frac{T-1}{T} \kappa_2 + \frac{1}{T} \kappa_1\Big) + O(1), \quad T = 1 \text{ to } 25",
    says="The formula for the Rayleigh quotient of a wide network's Fisher matrix at equal weights holds at "
    "any number of samples, down to a single one.",
    experiment=ANY_SAMPLES,
    score="rayleigh",
    along="samples",
    predict=_eq_10,
    margin=0.03,
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

CLAIMS: tuple[AnyClaim, ...] = (
    *UNEVEN_CLAIMS,
    ANY_SAMPLES_CLAIM,
)
