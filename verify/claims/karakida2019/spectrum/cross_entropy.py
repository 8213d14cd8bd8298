"""Follow-ups of Karakida, Akaho and Amari (2019): the Fisher information of the cross-entropy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, fisher_gram, gram_variants
from theory import fisher
from verify.claims.karakida2019 import PAPER, wide_networks
from verify.claims.karakida2019.wide_networks import setting
from verify.model import KNOWN, OURS, AnyClaim, Claim, Experiment

__all__ = [
    "CLAIMS",
    "ORDERS",
    "SOFTMAX_ELSEWHERE",
    "SOFTMAX_THERE",
    "dual",
    "known",
    "parameters_of",
    "quotient",
]

LINEAR = "linear in the Gram matrix: unbiased up to O(1/M), 0.5 % at M = 200; at most 3 % for wide networks"
SOFTMAX_THERE = "Karakida, Akaho and Amari (2021), arXiv 1910.05992"
SOFTMAX_ELSEWHERE = f"softmax outputs are also in {SOFTMAX_THERE}"
ORDERS = "the orders at issue are 1/2, 1 and 2: less than half the way to the nearest"


def softmax_fisher(block: Block, point: Point) -> Mapping[str, Any]:
    """Trace and Rayleigh quotient of the cross-entropy's Fisher matrix, and what they need of the softmax.

    The quotient is taken at the top eigenvector of the averaged Gram matrix; `shared` and `own` are those of the
    matrices with a kernel of ones and with one of the identity. `known_mean` and `known_largest` are what theory makes
    of the softmax of each network.
    """
    import torch

    passed = wide_networks.passed_at(block, point)
    logits, gram = passed.signals.preactivations[-1], few_signals.passed_gram(passed)
    probabilities = torch.softmax(logits, -1)
    vector = ensembles.top_eigenpair(dual(gram_variants.averaged(gram), logits))[1]
    ones, one = torch.ones_like(gram[:1, 0, 0]), torch.eye(point.samples).to(gram)[None]
    return {
        "mean": fisher_gram.fisher_trace(gram_variants.cross_entropy_gram(gram, logits)),
        "spread": 1 - probabilities.square().sum(-1).mean(1),
        "rayleigh": quotient(vector, dual(gram, logits)) / point.samples,
        "shared": quotient(vector, dual(_blocks(ones, gram), logits)) / point.samples,
        "own": quotient(vector, dual(_blocks(one, gram), logits)) / point.samples,
        "known_mean": known(point, probabilities, lambda s: s.mean) * parameters_of(point),
        "known_largest": known(point, probabilities, lambda s: s.largest),
    }


def known(
    point: Point, probabilities: Any, statistic: Callable[[fisher.CrossEntropyStatistics], float]
) -> Any:
    """A statistic of the cross-entropy's Fisher matrix by theory, given the softmax of each network."""
    found = [
        fisher.cross_entropy_statistics(
            **setting(point), width=point.width, probabilities=g, finite_width=True
        )
        for g in probabilities.cpu().numpy()
    ]
    return probabilities.new_tensor([statistic(statistics) for statistics in found])


def parameters_of(point: Point) -> int:
    """Number of parameters of the network of a point."""
    return fisher.parameter_count(depth=point.depth, width=point.width, outputs=point.outputs)


def dual(gram: Any, logits: Any) -> Any:
    """The cross-entropy's Gram as matrices."""
    return gram_variants.cross_entropy_gram(gram, logits).transpose(2, 3).flatten(3, 4).flatten(1, 2)


def _blocks(kernel: Any, like: Any) -> Any:
    """The same kernel for every output, none between different outputs."""
    import torch

    same = torch.eye(like.shape[1]).to(like)
    return (same[None, :, :, None, None] * kernel[:, None, None]).expand_as(like)


def quotient(vector: Any, matrix: Any) -> Any:
    """Rayleigh quotients, one for each network."""
    return (vector[:, None] @ matrix @ vector[:, :, None])[:, 0, 0]


# outputs of variances near 1 or 2, else the softmax is certain and its Fisher matrix small and scattered
UNCERTAIN = (
    Point(activation="relu", weight_variance=1.4, bias_variance=0.6),
    Point(activation="tanh", weight_variance=1.7, bias_variance=0.6),
    Point(activation="erf", weight_variance=0.8, bias_variance=2.1),
)

SOFTMAX = Experiment(
    id="karakida2019/cross-entropy",
    replicate="one network with its inputs",
    simulate=softmax_fisher,
    points=tuple(s | {"depth": 3, "width": 200, "samples": 7, "outputs": 5} for s in UNCERTAIN),
    budget=2048,
    seconds=0.66,
)


def _entries(p: Point) -> tuple[float, float]:
    """Entries of the Gram on and off its diagonal: statistics of one sample, and of infinitely many."""
    return _largest(1, width=p.width, **setting(p)), _largest(10**15, width=p.width, **setting(p))


@cache
def _largest(samples: int, **setting: Any) -> float:
    statistics = fisher.eigenvalue_statistics(**setting, samples=samples, outputs=1, finite_width=True)
    return float(statistics.largest)


def _own(p: Point) -> float:
    return _entries(p)[0]


def _quotient_of(p: Point) -> float:
    own, shared = _entries(p)
    return shared * p.shared + (own - shared) * p.own


def _eq_10(p: Point) -> float:
    return _largest(p.samples, width=p.width, **setting(p))


TYPICAL: dict[str, float] = {"spread": 0.58, "shared": 0.3, "own": 0.045}

SOFTMAX_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/cross-entropy-trace",
        entries=("C57",),
        source=f"beside {PAPER}, theorem 2.2; the mean eigenvalue under a softmax, {SOFTMAX_THERE}",
        passage=KNOWN,
        statement=r"\mathrm{Tr}\,F = \Big(\alpha M \kappa_1 + \sum_l \tilde q_t^l\Big) "
        r"\Big\langle 1 - \sum_k g_k^2 \Big\rangle",
        says="For cross-entropy, the trace of a wide network's Fisher matrix is one output's trace for "
        "squared error times one minus the mean sum of squared probabilities.",
        experiment=SOFTMAX,
        score="mean",
        inputs=TYPICAL | {"known_mean": lambda p: _own(p) * TYPICAL["spread"]},
        predict=lambda p: p.known_mean,
        margin=0.03,
        margin_reason=LINEAR,
        rivals={
            "kappa2 for kappa1": lambda p: _entries(p)[1] * p.spread,
            "no alpha": lambda p: _own(p) * p.spread / (p.depth - 1),
            "without the softmax": lambda p: _own(p) * p.outputs,
            "equal probabilities": lambda p: _own(p) * (1 - 1 / p.outputs),
        },
        quantity="trace of the Fisher matrix of the cross-entropy",
        axis="weight_variance",
    ),
    Claim(
        id="karakida2019/cross-entropy-rayleigh",
        entries=("C57",),
        source=f"ours, beside {PAPER}, theorem 2.2, in Rayleigh form; {SOFTMAX_ELSEWHERE}",
        passage=OURS,
        statement=r"v^\top \frac{K}{T} v = \frac{\alpha M}{T} "
        r"\lambda_{\max}\big(\kappa_{st}\, Q(s)^{1/2} Q(t)^{1/2}\big) + \ldots,\quad v \text{ its eigenvector}",
        says="For cross-entropy, the Rayleigh quotient of a wide network's Fisher matrix at the top "
        "eigenvector of the averaged one follows from gradient overlaps and softmax covariances.",
        experiment=SOFTMAX,
        score="rayleigh",
        inputs=TYPICAL | {"known_largest": lambda p: _quotient_of(p | TYPICAL)},
        predict=lambda p: p.known_largest,
        margin=0.03,
        margin_reason=LINEAR,
        rivals={
            "eq. (10) times the mean of 1 - sum of squares": lambda p: _eq_10(p) * p.spread,
            "eq. (10), without the softmax": _eq_10,
            "kappa2 only": lambda p: _entries(p)[1] * p.shared,
            "kappa1 for kappa2": lambda p: _entries(p)[0] * p.shared,
        },
        quantity="Rayleigh quotient of the Fisher matrix of the cross-entropy",
        axis="weight_variance",
    ),
)


CLAIMS: tuple[AnyClaim, ...] = SOFTMAX_CLAIMS
