"""Follow-ups of Karakida, Akaho and Amari (2019): the neural tangent parameterisation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import fisher
from theory.fisher import tangent
from verify.claims.karakida2019 import wide_networks
from verify.claims.karakida2019.small_networks import (
    SMALL,
    architectures,
    distance,
    jacobian_gram,
    small_network,
)
from verify.claims.karakida2019.wide_networks import PAPER, setting
from verify.model import OURS, AnyClaim, Claim, ExactProperty, Experiment, Kind

__all__ = ["CLAIMS"]

LINEAR = "linear in the Gram matrix: unbiased up to O(1/M), 0.5 % at M = 200; at most 3 % for wide networks"
TANGENT = "the kernel is that of Jacot, Gabriel and Hongler (2018), arXiv 1806.07572"
ORDERS = "the orders at issue are 1/2, 1 and 2: less than half the way to the nearest"

SETTINGS = (
    Point(activation="relu", weight_variance=2.6, bias_variance=0.4),
    Point(activation="tanh", weight_variance=2.7, bias_variance=0.6),
    Point(activation="erf", weight_variance=0.8, bias_variance=2.1),
)


def tangent_fisher(block: Block, point: Point) -> Mapping[str, Any]:
    """Statistics linear in the Gram matrix of the tangent parameters."""
    from simulate.wide import fisher_gram

    network = wide_networks.wide_network(block, point)
    gram = _tangent_gram(network, point)
    count = sum(w[0].numel() for w in network.weights) + sum(b[0].numel() for b in network.biases)
    return {"mean": fisher_gram.trace(gram) / count, "rayleigh": fisher_gram.rayleigh(gram)}


def tangent_largest(block: Block, point: Point) -> Mapping[str, Any]:
    """Rayleigh quotient at equal weights over the mean of the C largest eigenvalues, at every width."""
    import torch

    from simulate.wide import fisher_gram

    ratios = []
    for width in point.widths:
        gram = _tangent_gram(wide_networks.wide_network(block, point, width=width), point)
        top = fisher_gram.eigenvalues(gram)[:, -point.outputs :].mean(1)
        ratios.append(fisher_gram.rayleigh(gram) / top)
    return {"ratio": torch.stack(ratios, dim=1)}


def _tangent_gram(network: Any, point: Point) -> Any:
    from simulate.wide import gram_variants

    return gram_variants.tangent_gram(
        network, point.activation, weight_variance=point.weight_variance, bias_variance=point.bias_variance
    )


TANGENT = Experiment(
    id="karakida2019/tangent",
    replicate="one network with its inputs",
    simulate=tangent_fisher,
    points=tuple(s | {"depth": 3, "width": 200, "samples": 6, "outputs": 4} for s in SETTINGS),
    budget=2048,
    seconds=0.6,
)

TANGENT_SIZES = Experiment(
    id="karakida2019/tangent-largest",
    replicate="one network with its inputs at each width",
    simulate=tangent_largest,
    points=(
        Point(
            activation="erf",
            weight_variance=1.4,
            bias_variance=0.7,
            depth=2,
            samples=7,
            outputs=3,
            widths=(8, 16, 32, 64, 128),
        ),
    ),
    budget=1536,
    seconds=1.2,
)


@cache
def _tangent(p: Point) -> tangent.TangentKernelStatistics:
    return tangent.tangent_kernel_statistics(
        **setting(p), width=p.width, samples=p.samples, outputs=p.outputs
    )


@cache
def _kernel(p: Point) -> tangent.TangentKernel:
    return tangent.tangent_kernel(**setting(p))


def _parameters(p: Point) -> int:
    return int(fisher.parameter_count(depth=p.depth, width=p.width, outputs=p.outputs))


@cache
def _by_weights_alone(p: Point) -> tuple[float, float]:
    """Sums over layers of the gradients by the weights: kappa without sigma_b^2."""
    from theory.order_parameters import order_parameters

    m = order_parameters(**setting(p))
    own, shared = (m.q_tilde_t * m.q_hat_t).sum(), (m.q_tilde_st * m.q_hat_st).sum()
    return float(p.weight_variance * own), float(p.weight_variance * shared)


def _mixed(p: Point, own: float, shared: float) -> float:
    """Mean of the entries of a block."""
    return (p.samples - 1) / p.samples * shared + own / p.samples


@cache
def _standard(p: Point) -> fisher.FisherStatistics:
    return fisher.eigenvalue_statistics(
        **setting(p), width=p.width, samples=p.samples, outputs=p.outputs, finite_width=True
    )


TANGENT_ORDER = Claim(
    id="karakida2019/tangent-largest-order",
    entries=("C56",),
    source=f"ours, beside {PAPER}, theorem 2.2; {TANGENT}",
    passage=OURS,
    statement=r"1 - \mathbb{E}\Big[\tfrac{1}{T^2 C} \sum_k \mathbf 1^\top K_{kk} \mathbf 1 "
    r"\Big/ \frac1C \sum_{i \le C} \lambda_i\Big] \sim M^{-1}",
    experiment=TANGENT_SIZES,
    kind=Kind.EXPONENT,
    score="ratio",
    along="widths",
    terms=(1,),
    offset=lambda _: 1.0,
    predict=lambda _: -1.0,
    margin=0.24,
    relative=False,
    margin_reason=ORDERS,
    rivals={"as for the largest alone": lambda _: -0.5, "square": lambda _: -2.0},
    quantity="one less Rayleigh quotient over the C largest eigenvalues",
)

TANGENT_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/tangent-mean",
        entries=("C56", "C17"),
        source=f"ours, beside {PAPER}, theorem 2.2; {TANGENT}",
        passage=OURS,
        statement=r"m_\lambda = \frac{C}{P} \kappa_1^N,\quad \kappa_1^N = \sum_l \tilde q_t^l\, q_t^l",
        experiment=TANGENT,
        score="mean",
        predict=lambda p: _tangent(p).mean,
        margin=0.03,
        margin_reason=LINEAR,
        rivals={
            "without biases": lambda p: p.outputs * _by_weights_alone(p)[0] / _parameters(p),
            "standard parameterisation": lambda p: float(_standard(p).mean),
            "kappa2 for kappa1": lambda p: p.outputs * _kernel(p).kappa2 / _parameters(p),
            "one output": lambda p: _kernel(p).kappa1 / _parameters(p),
        },
        quantity="mean eigenvalue, tangent parameters",
        axis="weight_variance",
    ),
    Claim(
        id="karakida2019/tangent-rayleigh",
        entries=("C56",),
        source=f"ours, beside {PAPER}, theorem 2.2, in Rayleigh form; {TANGENT}",
        passage=OURS,
        statement=r"\frac{1}{T^2} \mathbf 1^\top K_{kk} \mathbf 1 = "
        r"\frac{T-1}{T} \kappa_2^N + \frac1T \kappa_1^N,\quad "
        r"\kappa_2^N = \sum_l \tilde q_{st}^l\, q_{st}^l",
        experiment=TANGENT,
        score="rayleigh",
        predict=lambda p: _tangent(p).largest,
        margin=0.03,
        margin_reason=LINEAR,
        rivals={
            "without biases": lambda p: _mixed(p, *_by_weights_alone(p)),
            "standard parameterisation": lambda p: float(_standard(p).largest),
            "kappa2 only": lambda p: _kernel(p).kappa2,
            "kappa1 only": lambda p: _kernel(p).kappa1,
            "kappa2 + kappa1 / T": lambda p: _kernel(p).kappa2 + _kernel(p).kappa1 / p.samples,
        },
        quantity="Rayleigh quotient at equal weights, tangent parameters",
        axis="weight_variance",
    ),
    Claim(
        id="karakida2019/tangent-largest",
        entries=("C56",),
        source=f"ours, beside {PAPER}, theorem 2.2, for the C largest eigenvalues; {TANGENT}",
        passage=OURS,
        statement=r"\lim_{M \to \infty} \mathbb{E}\Big[\tfrac{1}{T^2 C} \sum_k \mathbf 1^\top K_{kk} \mathbf 1 "
        r"\Big/ \frac1C \sum_{i \le C} \lambda_i\Big] = 1",
        experiment=TANGENT_SIZES,
        kind=Kind.LIMIT,
        score="ratio",
        along="widths",
        terms=(1, 2),
        order=TANGENT_ORDER,
        predict=lambda _: 1.0,
        margin=0.01,
        margin_reason="at most 1 %; the ratio itself is 0.956 at M = 8",
        rivals={"no convergence from M = 8 on": lambda _: 0.956, "none from M = 16 on": lambda _: 0.979},
        quantity="Rayleigh quotient over the C largest eigenvalues, tangent parameters",
    ),
    TANGENT_ORDER,
)


# --- the Gram matrix -----------------------------------------------------------------------------------------


def tangent_gram_difference(rng: np.random.Generator, point: Point, *, biases: bool = True) -> float:
    """Largest difference of the layer-wise tangent Gram and J J' by automatic differentiation, relative."""
    from simulate.wide import gram_variants

    network = small_network(rng, point)
    offsets = point.bias_variance if biases else 0.0
    found = gram_variants.tangent_gram(
        network, point.activation, weight_variance=point.weight_variance, bias_variance=offsets
    )
    return distance(found[0], jacobian_gram(network, point))


GRAM_PROPERTY = ExactProperty(
    id="karakida2019/tangent-gram",
    entries=("C56",),
    source=f"ours, beside {PAPER}, eqs. (4) and (8); {TANGENT}",
    passage=OURS,
    statement=r"J_N J_N^\top = \sum_l \big[\delta^l(s)^\top \delta^l(t)\big] "
    r"\Big[\frac{\sigma_w^2}{M_{l-1}} h^{l-1}(s)^\top h^{l-1}(t) + \sigma_b^2\Big]",
    strategies=architectures,
    violation=tangent_gram_difference,
    examples=SMALL,
    tolerance=1e-12,
    tolerance_reason="an exact identity in float64",
    rivals={"without biases": lambda rng, point: tangent_gram_difference(rng, point, biases=False)},
    seconds=1.0,
)

CLAIMS: tuple[AnyClaim, ...] = (*TANGENT_CLAIMS, GRAM_PROPERTY)
