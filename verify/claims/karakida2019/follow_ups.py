"""Follow-ups of Karakida, Akaho and Amari (2019): the neural tangent parameterisation, and the cross-entropy."""

from __future__ import annotations

from functools import cache, partial

from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, gram_variants, signals
from theory import fisher
from theory.order_parameters import order_parameters
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import (
    WIDE,
    law,
    lazy_network_of,
    one_network,
    parameters_of,
    setting,
    statistics_of,
    wide,
)
from verify.model import KNOWN, Arrays, Claim

LINEAR = f"linear in the Gram matrix: unbiased up to O(1/M), 0.2 % at M = 600; {WIDE}"
IN_2021 = "Karakida, Akaho and Amari (2021), arXiv 1910.05992"
TANGENT_ELSEWHERE = "the kernel is that of Jacot, Gabriel and Hongler (2018), arXiv 1806.07572"

_linear = partial(Claim, margin=0.03, margin_reason=LINEAR, axis="weight_variance")

# --- the tangent kernel --------------------------------------------------------------------------------------


def tangent_fisher(block: Block, point: Point) -> Arrays:
    """Statistics linear in the Gram matrix of the tangent parameters."""
    network = lazy_network_of(block, point)
    overlap = gram_variants.tangent_overlap(
        weight_variance=point.weight_variance, bias_variance=point.bias_variance
    )
    gram = fisher_gram.gram(network, point.activation, overlap=overlap)
    return {
        "mean": fisher_gram.fisher_trace(gram) / network.parameters,
        "rayleigh": fisher_gram.rayleigh(gram),
    }


SIZES: Arrays = {"depth": 3, "width": 600, "samples": 6, "outputs": 4}

TANGENT = one_network(
    id="karakida2019/tangent",
    simulate=tangent_fisher,
    points=(law("relu", 2.6, 0.4, **SIZES), law("tanh", 2.7, 0.6, **SIZES), law("erf", 0.8, 2.1, **SIZES)),
    budget=2048,
    seconds=0.2,
)


@cache
def _kernel(p: Point) -> fisher.TangentKernel:
    return fisher.tangent_kernel(**setting(p))


def tangent_statistics(p: Point) -> fisher.TangentKernelStatistics:
    """Fisher statistics of the tangent parameters."""
    return fisher.tangent_kernel_statistics(**setting(p, "width", "samples", "outputs"))


def _by_weights_alone(p: Point) -> float:
    """Quotient from gradients by the weights: kappas without sigma_b^2."""
    m = order_parameters(**setting(p))
    own, shared = (m.q_tilde_t * m.q_hat_t).sum(), (m.q_tilde_st * m.q_hat_st).sum()
    return float(p.weight_variance * ((p.samples - 1) * shared + own) / p.samples)


TANGENT_CLAIMS = (
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
        predict=lambda p: tangent_statistics(p).largest,
        rivals={
            "without biases": _by_weights_alone,
            "standard parameterisation": lambda p: statistics_of(p).largest,
            "kappa2 only": lambda p: _kernel(p).kappa2,
            "kappa1 only": lambda p: _kernel(p).kappa1,
            "kappa2 + kappa1 / T": lambda p: _kernel(p).kappa2 + _kernel(p).kappa1 / p.samples,
        },
        quantity="Rayleigh quotient at equal weights, tangent parameters",
    ),
)

# --- the cross-entropy -----------------------------------------------------------------------------------------


def softmax_fisher(block: Block, point: Point) -> Arrays:
    """Trace of the cross-entropy's Fisher matrix, the spread of its softmax, and what theory makes of the softmax.

    `squares` are those of the eigenvalues over their mean and the largest, over the same of theory; `outlier` is the
    largest of theory over that of many samples.
    """
    network = lazy_network_of(block, point)
    logits = signals.forward(network, point.activation).preactivations[-1]
    gram = fisher_gram.gram(network, point.activation)
    law, shares = setting(point, "width"), logits.softmax(-1)
    weighed = gram_variants.cross_entropy_gram(gram, logits)
    known = []
    for p in shares.cpu().numpy():
        of = {**law, "probabilities": p, "finite_width": True}
        mean, second, largest = fisher.cross_entropy_statistics(**of)
        outlier = fisher.cross_entropy_outliers(**of)[0]
        known.append([mean, second / (mean * largest), largest / outlier])
    mean, squares, outlier = logits.new_tensor(known).T
    trace = fisher_gram.fisher_trace(weighed)
    top = fisher_gram.fisher_eigenvalues(weighed)[:, -1]
    return {
        "mean": trace,
        "spread": 1 - shares.square().sum(-1).mean(1),
        "known_mean": mean * parameters_of(point),
        "squares": fisher_gram.trace_of_square(weighed) / (trace * top) / squares,
        "outlier": outlier,
    }


# outputs of variances near 1 or 2, else the softmax is certain and its Fisher matrix small and scattered
UNCERTAIN: Arrays = {"depth": 3, "width": 600, "samples": 7, "outputs": 5}

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


def _diagonal_entry(p: Point) -> float:
    """Diagonal entry of the Gram matrix, as the statistics of one sample."""
    return statistics_of(p, samples=1, outputs=1).largest


SPREAD = 0.58
"""Typical of these networks."""

CLAIMS = (
    *TANGENT_CLAIMS,
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
        inputs={"spread": SPREAD, "known_mean": lambda p: _diagonal_entry(p) * SPREAD},
        predict=lambda p: p.known_mean,
        rivals={
            # an off-diagonal entry is the statistic of infinitely many samples
            "kappa2 for kappa1": lambda p: statistics_of(p, samples=10**15, outputs=1).largest * p.spread,
            "no alpha": lambda p: _diagonal_entry(p) * p.spread / (p.depth - 1),
            "without the softmax": lambda p: _diagonal_entry(p) * p.outputs,
            "equal probabilities": lambda p: _diagonal_entry(p) * (1 - 1 / p.outputs),
        },
        quantity="trace of the Fisher matrix of the cross-entropy",
    ),
    wide(
        id="karakida2019/cross-entropy-second-moment",
        entries=("C57",),
        source=f"beside {PAPER}, theorem 2.2; the second moment under a softmax, {IN_2021}",
        passage=KNOWN,
        statement=r"\mathbb{E}\,\frac{\mathrm{Tr}\,F^2}{\mathrm{Tr}\,F\,\lambda_1} \Big/ "
        r"\frac{s_\lambda}{m_\lambda \lambda_{\max}} = 1,\quad P s_\lambda = "
        r"\Big(\frac{\alpha M}{T}\Big)^2 \sum_{s,t} \kappa_{st}^2\, \mathrm{Tr}\,Q(s) Q(t)",
        says="For cross-entropy, the second moment of the Fisher eigenvalues, over mean and largest, is what gradient "
        "overlaps and softmax covariances give.",
        experiment=SOFTMAX,
        score="squares",
        inputs={"outlier": 1.3},
        predict=lambda _: 1.0,
        rivals={"largest of many samples": lambda p: 1 / p.outlier, "as at M = 8": lambda _: 1.08},
        quantity="second moment over mean and largest, over that of theory, cross-entropy",
    ),
)
