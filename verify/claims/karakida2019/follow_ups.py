"""Follow-ups of Karakida, Akaho and Amari (2019): the neural tangent parameterisation, and the cross-entropy."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, fisher_gram, gram_variants
from theory import fisher
from theory.order_parameters import order_parameters
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import (
    WIDE,
    law,
    one_network,
    parameters_of,
    passed_at,
    setting,
    statistics_of,
)
from verify.model import KNOWN, OURS, Arrays, Claim

LINEAR = f"linear in the Gram matrix: unbiased up to O(1/M), 0.5 % at M = 200; {WIDE}"
IN_2021 = "Karakida, Akaho and Amari (2021), arXiv 1910.05992"
TANGENT_ELSEWHERE = "the kernel is that of Jacot, Gabriel and Hongler (2018), arXiv 1806.07572"
SOFTMAX_ELSEWHERE = f"softmax outputs are also in {IN_2021}"

_linear = partial(Claim, margin=0.03, margin_reason=LINEAR, axis="weight_variance")

# --- the tangent kernel --------------------------------------------------------------------------------------


def tangent_fisher(block: Block, point: Point) -> Arrays:
    """Statistics linear in the Gram matrix of the tangent parameters."""
    passed = passed_at(block, point)
    gram = few_signals.passed_gram(passed, overlap=gram_variants.tangent_overlap(**_variances(point)))
    return {
        "mean": fisher_gram.fisher_trace(gram) / passed.parameters,
        "rayleigh": fisher_gram.rayleigh(gram),
    }


def _variances(point: Point) -> dict[str, float]:
    return {"weight_variance": point.weight_variance, "bias_variance": point.bias_variance}


SIZES: Arrays = {"depth": 3, "width": 200, "samples": 6, "outputs": 4}

TANGENT = one_network(
    id="karakida2019/tangent",
    simulate=tangent_fisher,
    points=(law("relu", 2.6, 0.4, **SIZES), law("tanh", 2.7, 0.6, **SIZES), law("erf", 0.8, 2.1, **SIZES)),
    budget=2048,
    seconds=0.2,
)


@cache
def _tangent(p: Point, width: int) -> fisher.TangentKernelStatistics:
    return fisher.tangent_kernel_statistics(**setting(p, "samples", "outputs"), width=width)


@cache
def _kernel(p: Point) -> fisher.TangentKernel:
    return fisher.tangent_kernel(**setting(p))


@cache
def _by_weights_alone(p: Point) -> tuple[float, float]:
    """Sums over layers of the gradients by the weights: kappa without sigma_b^2."""
    m = order_parameters(**setting(p))
    own, shared = (m.q_tilde_t * m.q_hat_t).sum(), (m.q_tilde_st * m.q_hat_st).sum()
    return float(p.weight_variance * own), float(p.weight_variance * shared)


def _mixed(p: Point, own: float, shared: float) -> float:
    """Mean of the entries of a block."""
    return (p.samples - 1) / p.samples * shared + own / p.samples


TANGENT_CLAIMS = (
    _linear(
        id="karakida2019/tangent-mean",
        entries=("C56", "C17"),
        source=f"beside {PAPER}, theorem 2.2; {TANGENT_ELSEWHERE}",
        passage=KNOWN,
        statement=r"m_\lambda = \frac{C}{P} \kappa_1^N,\quad \kappa_1^N = \sum_l \tilde q_t^l\, q_t^l",
        says="With tangent parameters, the mean Fisher eigenvalue sums backward variances times those of the pre-"
        "activations, biases counting fully.",
        experiment=TANGENT,
        score="mean",
        predict=lambda p: _tangent(p, p.width).mean,
        rivals={
            "without biases": lambda p: p.outputs * _by_weights_alone(p)[0] / parameters_of(p),
            "standard parameterisation": lambda p: statistics_of(p).mean,
            "kappa2 for kappa1": lambda p: p.outputs * _kernel(p).kappa2 / parameters_of(p),
            "one output": lambda p: _kernel(p).kappa1 / parameters_of(p),
        },
        quantity="mean eigenvalue, tangent parameters",
    ),
    _linear(
        id="karakida2019/tangent-rayleigh",
        entries=("C56",),
        source=f"beside {PAPER}, theorem 2.2, in Rayleigh form; {TANGENT_ELSEWHERE}",
        passage=KNOWN,
        statement=r"\frac{1}{T^2} \mathbf 1^\top K_{kk} \mathbf 1 = "
        r"\frac{T-1}{T} \kappa_2^N + \frac1T \kappa_1^N,\quad "
        r"\kappa_2^N = \sum_l \tilde q_{st}^l\, q_{st}^l",
        says="With tangent parameters, the Rayleigh quotient mixes the kernel at one sample with that at two, "
        "without a factor of the width.",
        experiment=TANGENT,
        score="rayleigh",
        predict=lambda p: _tangent(p, p.width).largest,
        rivals={
            "without biases": lambda p: _mixed(p, *_by_weights_alone(p)),
            "standard parameterisation": lambda p: statistics_of(p).largest,
            "kappa2 only": lambda p: _kernel(p).kappa2,
            "kappa1 only": lambda p: _kernel(p).kappa1,
            "kappa2 + kappa1 / T": lambda p: _kernel(p).kappa2 + _kernel(p).kappa1 / p.samples,
        },
        quantity="Rayleigh quotient at equal weights, tangent parameters",
    ),
)

# --- the cross-entropy: trace and Rayleigh quotient ------------------------------------------------------------


def softmax_fisher(block: Block, point: Point) -> Arrays:
    """Trace and Rayleigh quotient of the cross-entropy's Fisher matrix, and what they need of the softmax.

    The quotient is taken at the top eigenvector of the averaged Gram matrix; `shared` and `own` are those of the
    matrices with a kernel of ones and with one of the identity. `known_mean` and `known_largest` are what theory makes
    of the softmax of each network.
    """
    import torch

    passed = passed_at(block, point)
    logits, gram = passed.signals.preactivations[-1], few_signals.passed_gram(passed)
    vector = ensembles.top_eigenpair(_dual(gram_variants.averaged(gram), logits))[1]
    ones, one = torch.ones_like(gram[:1, 0, 0]), torch.eye(point.samples).to(gram)[None]
    known = _predicted_statistics(point, logits)
    return {
        "mean": fisher_gram.fisher_trace(gram_variants.cross_entropy_gram(gram, logits)),
        "spread": 1 - logits.softmax(-1).square().sum(-1).mean(1),
        "rayleigh": _quotient(vector, _dual(gram, logits)) / point.samples,
        "shared": _quotient(vector, _dual(_blocks(ones, gram), logits)) / point.samples,
        "own": _quotient(vector, _dual(_blocks(one, gram), logits)) / point.samples,
        "known_mean": logits.new_tensor([s.mean for s in known]) * parameters_of(point),
        "known_largest": logits.new_tensor([s.largest for s in known]),
    }


def _predicted_statistics(point: Point, logits: Any) -> list[fisher.CrossEntropyStatistics]:
    """Predicted Fisher statistics of cross-entropy, given the softmax of each network."""
    law, probabilities = setting(point, "width"), logits.softmax(-1).cpu().numpy()
    return [fisher.cross_entropy_statistics(**law, probabilities=p, finite_width=True) for p in probabilities]


def _dual(gram: Any, logits: Any) -> Any:
    """The cross-entropy's Gram as matrices."""
    return gram_variants.cross_entropy_gram(gram, logits).transpose(2, 3).flatten(3, 4).flatten(1, 2)


def _blocks(kernel: Any, like: Any) -> Any:
    """Kernel of all outputs: the same one for every output, 0 between different outputs."""
    import torch

    same = torch.eye(like.shape[1]).to(like)
    return (same[None, :, :, None, None] * kernel[:, None, None]).expand_as(like)


def _quotient(vector: Any, matrix: Any) -> Any:
    """Rayleigh quotients, one for each network."""
    return (vector[:, None] @ matrix @ vector[:, :, None])[:, 0, 0]


# outputs of variances near 1 or 2, else the softmax is certain and its Fisher matrix small and scattered
UNCERTAIN: Arrays = {"depth": 3, "width": 200, "samples": 7, "outputs": 5}

SOFTMAX = one_network(
    id="karakida2019/cross-entropy",
    simulate=softmax_fisher,
    points=(
        law("relu", 1.4, 0.6, **UNCERTAIN),
        law("tanh", 1.7, 0.6, **UNCERTAIN),
        law("erf", 0.8, 2.1, **UNCERTAIN),
    ),
    budget=2048,
    seconds=0.66,
)


def _eq_10(p: Point, samples: int = 0) -> float:
    return statistics_of(p, samples=samples or p.samples, outputs=1).largest


def _diagonal_entry(p: Point) -> float:
    """Diagonal entry of the Gram matrix, as the statistics of one sample."""
    return _eq_10(p, 1)


def _off_diagonal_entry(p: Point) -> float:
    """Off-diagonal entry of the Gram matrix, as the statistics of infinitely many samples."""
    return _eq_10(p, 10**15)


def _quotient_of(p: Point) -> float:
    return _off_diagonal_entry(p) * p.shared + (_diagonal_entry(p) - _off_diagonal_entry(p)) * p.own


TYPICAL: dict[str, float] = {"spread": 0.58, "shared": 0.3, "own": 0.045}

SOFTMAX_CLAIMS = (
    _linear(
        id="karakida2019/cross-entropy-trace",
        entries=("C57",),
        source=f"beside {PAPER}, theorem 2.2; the mean eigenvalue under a softmax, {IN_2021}",
        passage=KNOWN,
        statement=r"\mathrm{Tr}\,F = \Big(\alpha M \kappa_1 + \sum_l \tilde q_t^l\Big) "
        r"\Big\langle 1 - \sum_k g_k^2 \Big\rangle",
        says="For cross-entropy, the Fisher trace is one output's for squared error times one minus the mean sum "
        "of squared probabilities.",
        experiment=SOFTMAX,
        score="mean",
        inputs=TYPICAL | {"known_mean": lambda p: _diagonal_entry(p) * TYPICAL["spread"]},
        predict=lambda p: p.known_mean,
        rivals={
            "kappa2 for kappa1": lambda p: _off_diagonal_entry(p) * p.spread,
            "no alpha": lambda p: _diagonal_entry(p) * p.spread / (p.depth - 1),
            "without the softmax": lambda p: _diagonal_entry(p) * p.outputs,
            "equal probabilities": lambda p: _diagonal_entry(p) * (1 - 1 / p.outputs),
        },
        quantity="trace of the Fisher matrix of the cross-entropy",
    ),
    _linear(
        id="karakida2019/cross-entropy-rayleigh",
        entries=("C57",),
        source=f"ours, beside {PAPER}, theorem 2.2, in Rayleigh form; {SOFTMAX_ELSEWHERE}",
        passage=OURS,
        statement=r"v^\top \frac{K}{T} v = \frac{\alpha M}{T} "
        r"\lambda_{\max}\big(\kappa_{st}\, Q(s)^{1/2} Q(t)^{1/2}\big) + \ldots,\quad v \text{ its eigenvector}",
        says="For cross-entropy, the Rayleigh quotient at the top eigenvector of the averaged matrix follows from "
        "gradient overlaps and softmax covariances.",
        experiment=SOFTMAX,
        score="rayleigh",
        inputs=TYPICAL | {"known_largest": lambda p: _quotient_of(p | TYPICAL)},
        predict=lambda p: p.known_largest,
        rivals={
            "eq. (10) times the mean of 1 - sum of squares": lambda p: _eq_10(p) * p.spread,
            "eq. (10), without the softmax": _eq_10,
            "kappa2 only": lambda p: _off_diagonal_entry(p) * p.shared,
            "kappa1 for kappa2": lambda p: _diagonal_entry(p) * p.shared,
        },
        quantity="Rayleigh quotient of the Fisher matrix of the cross-entropy",
    ),
)

CLAIMS = (*TANGENT_CLAIMS, *SOFTMAX_CLAIMS)
