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
from verify.claims.karakida2019.wide_networks import passed_at
from verify.model import AnyClaim, Claim, Experiment, Passage, Standing

__all__ = ["CLAIMS", "network_at", "widths_at"]

SETTING = ("activation", "depth", "weight_variance", "bias_variance")

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
    return order_parameters(**{name: p[name] for name in SETTING})


def _diagonal(p: Point) -> tuple[np.ndarray, np.ndarray, float]:
    """Backward and forward order parameters of one sample, layer by layer, and what the biases add."""
    m = _moments(p)
    return m.q_tilde_t, m.q_hat_t, float(m.q_tilde_t.sum()) / p.width


def _off_diagonal(p: Point) -> tuple[np.ndarray, np.ndarray, float]:
    """The same of two samples."""
    m = _moments(p)
    return m.q_tilde_st, m.q_hat_st, float(m.q_tilde_st.sum()) / p.width


Entries = Callable[[Point], tuple[np.ndarray, np.ndarray, float]]


def _entry(name: str) -> Callable[[Point], float]:
    """By the theory: alpha times kappa, with the biases."""

    def value(p: Point) -> float:
        k = fisher.kappas(**{s: p[s] for s in SETTING}, width_ratios=p.ratios)
        biases = (_diagonal if name == "kappa1" else _off_diagonal)(p)[2]
        return k.alpha * getattr(k, name) + biases

    return value


def _rewidened(entries: Entries, ratios: Callable[[Point], Any]) -> Callable[[Point], float]:
    """The sum over layers with other numbers in place of alpha_{l-1}."""

    def value(p: Point) -> float:
        backward, forward, biases = entries(p)
        return float(np.asarray(ratios(p), float) @ (backward * forward)) + biases

    return value


def _above(p: Point, forward: np.ndarray) -> np.ndarray:
    """Forward order parameters of the same layer; the read-out's activation is its pre-activation."""
    return np.append(forward[1:], p.weight_variance * forward[-1] + p.bias_variance)


def _shifted(entries: Entries) -> Callable[[Point], float]:
    """Backward and forward order parameters of the same layer."""

    def value(p: Point) -> float:
        backward, forward, biases = entries(p)
        return float(np.asarray(p.ratios) @ (backward * _above(p, forward))) + biases

    return value


def _both_forward(entries: Entries) -> Callable[[Point], float]:
    """As our copy reads: the forward order parameter in place of the backward one."""

    def value(p: Point) -> float:
        _, forward, biases = entries(p)
        return float(np.asarray(p.ratios) @ (_above(p, forward) * forward)) + biases

    return value


def _before_activation(entries: Entries) -> Callable[[Point], float]:
    """q^l, of the pre-activation of the same layer, for the activation below."""

    def value(p: Point) -> float:
        backward, forward, biases = entries(p)
        q = p.weight_variance * forward + p.bias_variance
        return float(np.asarray(p.ratios) @ (backward * q)) + biases

    return value


def _rivals(entries: Entries) -> dict[str, Callable[[Point], float]]:
    return {
        "hidden layers as wide as M": _rewidened(
            entries, lambda p: (p.ratios[0], *(1.0 for _ in p.ratios[1:]))
        ),
        "width of the layer above": _rewidened(entries, lambda p: (*p.ratios[1:], p.outputs / p.width)),
        "last layer dropped": _rewidened(entries, lambda p: (*p.ratios[:-1], 0.0)),
        "index shifted": _shifted(entries),
        "q for q hat": _before_activation(entries),
    }


SLIP = Passage(Standing.MISPRINT, "obtained using order parameters", "Eq 11", slip=True)

FINDING = (
    "As our copy reads, eq. (11) has a forward order parameter in both places, where kappa pairs the backward one of a "
    "layer with the forward one below it; a lost tilde, very likely a slip of the text conversion."
)

UNEVEN_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/uneven-kappa2",
        entries=("C8", "C14", "C16"),
        source=f"{PAPER}, theorem 2.2, eq. (11), widths M_l = alpha_l M",
        passage=SLIP,
        statement=r"\frac{1}{M}\, \mathbb{E}\, K_{kk}(s, t) = \alpha \kappa_2 + \frac1M \sum_l \tilde q_{st}^l,\quad "
        r"\alpha \kappa_2 = \sum_{l=1}^{L} \alpha_{l-1} \tilde q_{st}^l\, \hat q_{st}^{l-1}",
        says="With layers of different widths, the mean product of two samples' gradients sums backward "
        "times forward covariances over layers, each weighted by the width of the layer below.",
        experiment=UNEVEN,
        score="off_diagonal",
        predict=_entry("kappa2"),
        printed=_both_forward(_off_diagonal),
        reads=r"\kappa_2 = \sum_{l=1}^{L} \frac{\alpha_{l-1}}{\alpha} \hat q_{st}^l\, \hat q_{st}^{l-1}",
        finding=FINDING,
        margin=0.03,
        margin_reason=LINEAR,
        rivals={"kappa1": _entry("kappa1"), **_rivals(_off_diagonal)},
        quantity="mean off-diagonal entry of the Gram matrix per unit of width",
    ),
)

# --- any number of samples -----------------------------------------------------------------------------------


def any_samples(block: Block, point: Point) -> Mapping[str, Any]:
    """Rayleigh quotient at equal weights with the first T of the inputs, for every T."""
    import torch

    network = signals.wide_network(
        block,
        widths=(point.width,) * point.depth + (point.outputs,),
        samples=max(point.samples),
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )
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
    k = fisher.kappas(**{name: p[name] for name in SETTING})
    return k.alpha * p.width * (diagonal * k.kappa1 + off_diagonal * k.kappa2)


def _eq_10(p: Point) -> float:
    names = (*SETTING, "width", "samples", "outputs")
    return fisher.eigenvalue_statistics(**{name: p[name] for name in names}, finite_width=True).largest


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
