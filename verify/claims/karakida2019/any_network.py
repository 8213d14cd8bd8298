"""Signals and Fisher statistics of wide random networks of any depth, activation and normalisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.training import wide_training
from simulate.wide import fisher_gram, signals
from theory import fisher
from theory.order_parameters import order_parameters
from verify.claims.karakida2019 import PAPER, follow_ups, layer_norm, spectrum
from verify.claims.karakida2019.wide_networks import (
    law,
    lazy_network_of,
    network_of,
    parameters_of,
    setting,
    statistics_of,
)
from verify.judging.families import by_name, one, ratio
from verify.model import StatisticalProperty
from verify.model.domains import Between, OneOf

NAMES = (
    "mean-eigenvalue",
    "tangent-rayleigh",
    "cross-entropy-trace",
    "layer-norm-mean",
    "layer-norm-rayleigh",
)
BY_NAME = by_name((*spectrum.CLAIMS, *follow_ups.CLAIMS, *layer_norm.CLAIMS), *NAMES)


def _forward_variance(block: Block, p: Point) -> Any:
    """Mean squared activation of the last hidden layer, over theory."""
    squares = signals.forward(lazy_network_of(block, p), p.activation).activations[-1].square()
    return squares.mean((1, 2)) / float(order_parameters(**setting(p)).q_hat_t[-1])


def _first_layer(block: Block, p: Point) -> Any:
    """Derivatives by the pre-activations of the first layer, (n, C, T, M)."""
    network = lazy_network_of(block, p)
    passed = signals.forward(network, p.activation)
    *_, delta = signals.backward(network, p.activation, passed.preactivations)
    return delta


def _backward_variance(block: Block, p: Point) -> Any:
    """Mean squared derivative in the first layer, over theory."""
    squares = _first_layer(block, p).square()
    return squares.sum(3).mean((1, 2)) / float(order_parameters(**setting(p)).q_tilde_t[0])


def _backward_covariance(block: Block, p: Point) -> Any:
    """Mean product of derivatives of two samples, over theory: the square of a sum, less its diagonal."""
    delta = _first_layer(block, p)
    pairs = (delta.sum(2).square() - delta.square().sum(2)).sum(2).mean(1) / (p.samples * (p.samples - 1))
    return pairs / float(order_parameters(**setting(p)).q_tilde_st[0])


def _rayleigh(block: Block, p: Point) -> Any:
    """Quotient at equal weights on all samples."""
    gram = fisher_gram.gram(lazy_network_of(block, p), p.activation)
    return fisher_gram.rayleigh(gram) / float(statistics_of(p).largest)


def _subtracted(block: Block, p: Point) -> Any:
    """Mean eigenvalue behind mean subtraction."""
    network = lazy_network_of(block, p)
    trace = fisher_gram.fisher_trace(fisher_gram.centred(fisher_gram.gram(network, p.activation)))
    known = setting(p, "width", "samples", "outputs")
    mean = fisher.mean_subtracted_statistics(**known, finite_width=True).mean
    return trace / network.parameters / float(mean)


def _sharpness(block: Block, p: Point) -> Any:
    """Largest eigenvalue of one output of one sample: the squared length of a gradient."""
    network = network_of(block, p, samples=1, outputs=1)
    return wide_training.sharpness(network, p.activation) / float(
        statistics_of(p, samples=1, outputs=1).largest
    )


def _signals_and_eigenvalue(block: Block, p: Point) -> Any:
    """Signals forth and back, and the mean eigenvalue, of whole networks."""
    network = network_of(block, p)
    known = order_parameters(**setting(p))
    measured = signals.measured_order_parameters(network, p.activation)
    parts = [measured[name][:, -1] / float(getattr(known, name)[-1]) for name in ("q_hat_t", "q_tilde_st")]
    trace = fisher_gram.fisher_trace(fisher_gram.gram(network, p.activation))
    return (sum(parts) + trace / float(statistics_of(p).mean * parameters_of(p))) / 3


def _tangent_mean(block: Block, p: Point) -> Any:
    """Mean eigenvalue, tangent parameters."""
    return follow_ups.tangent_fisher(block, p)["mean"] / float(follow_ups.tangent_statistics(p).mean)


def _of(name: str) -> Callable[[Block, Point], Any]:
    return lambda block, p: ratio(BY_NAME[name], block, p)


CASES: dict[str, Callable[[Block, Point], Any]] = {
    "forward-variance": _forward_variance,
    "backward-variance": _backward_variance,
    "backward-covariance": _backward_covariance,
    "mean-eigenvalue": _of("mean-eigenvalue"),
    "rayleigh-quotient": _rayleigh,
    "mean-subtraction": _subtracted,
    "tangent-mean": _tangent_mean,
    **{name: _of(name) for name in NAMES[1:]},
    "sharpness": _sharpness,
    "whole": _signals_and_eigenvalue,
}


def any_network(block: Block, point: Point) -> Mapping[str, Any]:
    """A statistic over what theory says of it."""
    return {"ratio": CASES[point.case](block, point)}


CLAIMS = (
    StatisticalProperty(
        id="karakida2019/any-network",
        entries=("C5", "C7", "C12", "C14", "C24", "C50", "C51"),
        source=f"{PAPER}, eqs. (5) to (7), theorems 2.2, 3.3 and 4.1; the tangent kernel by Jacot et al. (2018), the "
        "cross-entropy by Karakida et al. (2021)",
        statement=r"\hat q_t^l,\ \tilde q_t^l,\ m_\lambda,\ \tfrac{1}{T^2} \mathbf 1^\top K \mathbf 1\text{ for "
        r"any } \phi, L, \sigma_w, \sigma_b",
        says="Signals and Fisher statistics of wide networks of any kind and normalisation agree with theory.",
        domain={
            "case": OneOf(*CASES),
            "activation": OneOf("relu", "tanh", "erf", "linear", "softplus", "leaky_relu"),
            "depth": Between(2, 4),
            "width": Between(80, 130),
            "samples": Between(3, 6),
            "outputs": Between(4, 6),
            "weight_variance": Between(0.6, 2.5),
            "bias_variance": Between(0.1, 1.5),
        },
        simulate=any_network,
        on_host="Lanczos of small matrices",
        replicate="one network with its inputs",
        examples=tuple(
            law("tanh", 1.7, 0.6, case=case, depth=3, width=90, samples=5, outputs=4) for case in CASES
        ),
        score="ratio",
        predict=one,
        margin=0.05,
        margin_reason="the bias is O(1/M), up to 2 % at M = 80; wider networks cost more than they scatter less",
        rivals={
            "one layer less": lambda p: (p.depth - 1) / p.depth,
            "one output": lambda p: 1 / p.outputs,
            "no 1 - 1/T": lambda p: p.samples / (p.samples - 1),
            "without sigma_w^2": lambda p: 1 / p.weight_variance,
        },
        budget=4096,
        seconds=7.0,
        quantity="statistic over theory",
    ),
)
