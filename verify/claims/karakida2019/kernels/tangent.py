"""Follow-ups of Karakida, Akaho and Amari (2019): the neural tangent parameterisation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, fisher_gram, gram_variants
from theory import fisher
from verify.claims.karakida2019 import PAPER, wide_networks
from verify.claims.karakida2019.wide_networks import setting
from verify.model import KNOWN, OURS, AnyClaim, Claim, Experiment, Kind

__all__ = ["CLAIMS"]

LINEAR = "linear in the Gram matrix: unbiased up to O(1/M), 0.5 % at M = 200; at most 3 % for wide networks"
TANGENT_ELSEWHERE = "the kernel is that of Jacot, Gabriel and Hongler (2018), arXiv 1806.07572"
ORDERS = "the orders at issue are 1/2, 1 and 2: less than half the way to the nearest"

SETTINGS = (
    Point(activation="relu", weight_variance=2.6, bias_variance=0.4),
    Point(activation="tanh", weight_variance=2.7, bias_variance=0.6),
    Point(activation="erf", weight_variance=0.8, bias_variance=2.1),
)


def tangent_fisher(block: Block, point: Point) -> Mapping[str, Any]:
    """Statistics linear in the Gram matrix of the tangent parameters."""
    overlap = gram_variants.tangent_overlap(
        weight_variance=point.weight_variance, bias_variance=point.bias_variance
    )
    passed = wide_networks.passed_at(block, point)
    gram = few_signals.passed_gram(passed, overlap=overlap)
    return {
        "mean": fisher_gram.fisher_trace(gram) / passed.parameters,
        "rayleigh": fisher_gram.rayleigh(gram),
    }


def tangent_largest(block: Block, point: Point) -> Mapping[str, Any]:
    """Second moment of the eigenvalues over their mean and the Rayleigh quotient at equal weights, at every width."""
    import torch

    moments = []
    for width in point.widths:
        gram = _tangent_gram(wide_networks.network_of(block, point, width=width), point)
        quotient = fisher_gram.rayleigh(gram)
        moments.append(fisher_gram.trace_of_square(gram) / (quotient * fisher_gram.fisher_trace(gram)))
    return {"second_moment": torch.stack(moments, dim=1)}


def _tangent_gram(network: Any, point: Point) -> Any:
    return gram_variants.tangent_gram(
        network, point.activation, weight_variance=point.weight_variance, bias_variance=point.bias_variance
    )


TANGENT = Experiment(
    id="karakida2019/tangent",
    replicate="one network with its inputs",
    simulate=tangent_fisher,
    points=tuple(s | {"depth": 3, "width": 200, "samples": 6, "outputs": 4} for s in SETTINGS),
    budget=2048,
    seconds=0.2,
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
    seconds=0.76,
)


@cache
def _tangent(p: Point) -> fisher.TangentKernelStatistics:
    return fisher.tangent_kernel_statistics(**setting(p), width=p.width, samples=p.samples, outputs=p.outputs)


def _second_moment(p: Point) -> float:
    """Over the mean and the largest: no width is left in it."""
    known = fisher.tangent_kernel_statistics(
        **setting(p), width=p.widths[-1], samples=p.samples, outputs=p.outputs
    )
    return known.second_moment / (known.mean * known.largest)


def _squares(p: Point, own: float, shared: float) -> float:
    """A mix of the squares of the kernel of one sample and of two, over the first and the quotient."""
    k = _kernel(p)
    return (own * k.kappa1**2 + shared * k.kappa2**2) / (k.kappa1 * _mixed(p, k.kappa1, k.kappa2))


@cache
def _kernel(p: Point) -> fisher.TangentKernel:
    return fisher.tangent_kernel(**setting(p))


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


MOMENT_ORDER = Claim(
    id="karakida2019/tangent-second-moment-order",
    entries=("C56",),
    source=f"ours, beside {PAPER}, theorem 2.2; {TANGENT_ELSEWHERE}",
    passage=OURS,
    statement=r"\mathbb{E}\Big[\frac{s_\lambda}{m_\lambda \bar r}\Big] - "
    r"\frac{(T-1) (\kappa_2^N)^2 + (\kappa_1^N)^2}{\kappa_1^N ((T-1) \kappa_2^N + \kappa_1^N)} \sim M^{-1}",
    says="In the neural tangent parameterisation, the second moment of the Fisher eigenvalues, over mean "
    "and Rayleigh quotient, approaches its limit like one over the width.",
    experiment=TANGENT_SIZES,
    kind=Kind.EXPONENT,
    score="second_moment",
    along="widths",
    terms=(1,),
    offset=_second_moment,
    predict=lambda _: -1.0,
    margin=0.24,
    relative=False,
    margin_reason=ORDERS,
    pilot="the widths: that they resolve it was seen in first draws; the margin is the usual one",
    rivals={"square root": lambda _: -0.5, "square": lambda _: -2.0},
    quantity="second moment over mean and Rayleigh quotient, less the limit, tangent parameters",
)

TANGENT_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/tangent-mean",
        entries=("C56", "C17"),
        source=f"beside {PAPER}, theorem 2.2; {TANGENT_ELSEWHERE}",
        passage=KNOWN,
        statement=r"m_\lambda = \frac{C}{P} \kappa_1^N,\quad \kappa_1^N = \sum_l \tilde q_t^l\, q_t^l",
        says="In the neural tangent parameterisation, the mean Fisher eigenvalue of a wide network sums "
        "backward variances times those of the pre-activations, biases counting fully.",
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
        source=f"beside {PAPER}, theorem 2.2, in Rayleigh form; {TANGENT_ELSEWHERE}",
        passage=KNOWN,
        statement=r"\frac{1}{T^2} \mathbf 1^\top K_{kk} \mathbf 1 = "
        r"\frac{T-1}{T} \kappa_2^N + \frac1T \kappa_1^N,\quad "
        r"\kappa_2^N = \sum_l \tilde q_{st}^l\, q_{st}^l",
        says="In the neural tangent parameterisation, the Rayleigh quotient at equal weights mixes the "
        "kernel at one sample with that at two, without a factor of the width.",
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
        id="karakida2019/tangent-second-moment",
        entries=("C56",),
        source=f"beside {PAPER}, theorem 2.2; of the tangent kernel Karakida, Akaho and Amari (2021), arXiv 1910.05992",
        passage=KNOWN,
        statement=r"\lim_{M \to \infty} \mathbb{E}\Big[\frac{s_\lambda}{m_\lambda \bar r}\Big] = "
        r"\frac{(T-1) (\kappa_2^N)^2 + (\kappa_1^N)^2}{\kappa_1^N ((T-1) \kappa_2^N + \kappa_1^N)},\quad "
        r"\bar r = \frac1{C T^2} \sum_k \mathbf 1^\top K_{kk} \mathbf 1",
        says="In the neural tangent parameterisation, the second moment of the Fisher eigenvalues, over "
        "mean and Rayleigh quotient, tends to a mix of squared kernel values as the width grows.",
        experiment=TANGENT_SIZES,
        kind=Kind.LIMIT,
        score="second_moment",
        along="widths",
        terms=(1, 2),
        order=MOMENT_ORDER,
        predict=_second_moment,
        margin=0.03,
        margin_reason="at most 3 % for wide networks",
        pilot="the widths: that they resolve it was seen in first draws; the margin is the usual one",
        rivals={
            "kappa2^2 only": lambda p: _squares(p, 0.0, 1.0),
            "kappa1^2 beside all pairs": lambda p: _squares(p, 1 / p.samples, 1.0),
            "kappa1^2 in full": lambda p: _squares(p, 1.0, 1 - 1 / p.samples),
        },
        quantity="second moment of the eigenvalues over their mean and the Rayleigh quotient, tangent parameters",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = TANGENT_CLAIMS
