"""Follow-ups of Karakida, Akaho and Amari (2019): the neural tangent parameterisation, and the cross-entropy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, fisher_gram, gram_variants, signals
from theory import fisher
from theory.order_parameters import order_parameters
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import (
    WIDE,
    approach,
    by_width,
    kappas_at,
    law,
    limit,
    network_of,
    one_network,
    parameters_of,
    passed_at,
    setting,
    statistics_of,
)
from verify.model import KNOWN, OURS, Arrays, Claim, Experiment

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


def tangent_largest(block: Block, point: Point) -> Arrays:
    """Second moment of the eigenvalues over their mean and the Rayleigh quotient at equal weights, at every width."""

    def moment(block: Block, width: int) -> Arrays:
        network = network_of(block, point, width=width)
        gram = gram_variants.tangent_gram(network, point.activation, **_variances(point))
        scale = fisher_gram.rayleigh(gram) * fisher_gram.fisher_trace(gram)
        return {"second_moment": fisher_gram.trace_of_square(gram) / scale}

    return by_width(block, point, moment)


SIZES: Arrays = {"depth": 3, "width": 200, "samples": 6, "outputs": 4}

TANGENT = one_network(
    id="karakida2019/tangent",
    simulate=tangent_fisher,
    points=(law("relu", 2.6, 0.4, **SIZES), law("tanh", 2.7, 0.6, **SIZES), law("erf", 0.8, 2.1, **SIZES)),
    budget=2048,
    seconds=0.2,
)

TANGENT_SIZES = Experiment(
    id="karakida2019/tangent-largest",
    replicate="one network with its inputs at each width",
    simulate=tangent_largest,
    points=(law("erf", 1.4, 0.7, depth=2, samples=7, outputs=3, widths=(8, 16, 32, 64, 128)),),
    budget=1536,
    seconds=0.76,
)


@cache
def _tangent(p: Point, width: int) -> fisher.TangentKernelStatistics:
    return fisher.tangent_kernel_statistics(**setting(p, "samples", "outputs"), width=width)


def _second_moment(p: Point) -> float:
    """Over the mean and the largest: no width is left in it."""
    known = _tangent(p, p.widths[-1])
    return known.second_moment / (known.mean * known.largest)


def _squares(p: Point, own: float, shared: float) -> float:
    """A mix of the squares of the kernel of one sample and of two, over the first and the quotient."""
    k = _kernel(p)
    return (own * k.kappa1**2 + shared * k.kappa2**2) / (k.kappa1 * _mixed(p, k.kappa1, k.kappa2))


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


THE_WIDTHS = "the widths: that they resolve it was seen in first draws; the margin is the usual one"

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
    limit(
        id="karakida2019/tangent-second-moment",
        entries=("C56",),
        source=f"beside {PAPER}, theorem 2.2; of the tangent kernel {IN_2021}",
        passage=KNOWN,
        statement=r"\lim_{M \to \infty} \mathbb{E}\Big[\frac{s_\lambda}{m_\lambda \bar r}\Big] = "
        r"\frac{(T-1) (\kappa_2^N)^2 + (\kappa_1^N)^2}{\kappa_1^N ((T-1) \kappa_2^N + \kappa_1^N)},\quad "
        r"\bar r = \frac1{C T^2} \sum_k \mathbf 1^\top K_{kk} \mathbf 1",
        says="With tangent parameters, the second moment of Fisher eigenvalues, over mean and Rayleigh quotient, "
        "tends to a mix of squared kernel values.",
        experiment=TANGENT_SIZES,
        score="second_moment",
        order=approach(TANGENT_SIZES, "second_moment", _second_moment),
        predict=_second_moment,
        margin=0.03,
        margin_reason=WIDE,
        pilot=THE_WIDTHS,
        rivals={
            "kappa2^2 only": lambda p: _squares(p, 0.0, 1.0),
            "kappa1^2 beside all pairs": lambda p: _squares(p, 1 / p.samples, 1.0),
            "kappa1^2 in full": lambda p: _squares(p, 1.0, 1 - 1 / p.samples),
        },
        quantity="second moment over mean and Rayleigh quotient, tangent parameters",
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
    return _of_each_softmax(fisher.cross_entropy_statistics, point, logits)


def _of_each_softmax(theory: Callable[..., Any], point: Point, logits: Any) -> list[Any]:
    probabilities = logits.softmax(-1).cpu().numpy()
    return [theory(**setting(point, "width"), probabilities=g, finite_width=True) for g in probabilities]


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

# --- second moment and largest eigenvalue ---------------------------------------------------------------------


def _outputs_and_gram(block: Block, point: Point) -> tuple[Any, Any]:
    network = network_of(block, point)
    logits = signals.forward(network, point.activation).preactivations[-1]
    return logits, fisher_gram.gram(network, point.activation)


def softmax_squares(block: Block, point: Point) -> Arrays:
    """Second moment of the eigenvalues over their mean and the Rayleigh quotient, over the same of theory."""
    logits, gram = _outputs_and_gram(block, point)
    matrix = _dual(gram, logits)
    value = _quotient(ensembles.top_eigenpair(_dual(gram_variants.averaged(gram), logits))[1], matrix)
    trace, squares = matrix.diagonal(dim1=1, dim2=2).sum(1), matrix.square().sum((1, 2))
    theory = [s.second_moment / (s.mean * s.largest) for s in _predicted_statistics(point, logits)]
    return {"squares": squares / (value * trace) / logits.new_tensor(theory)}


def top_outlier(block: Block, point: Point) -> Arrays:
    """Largest eigenvalue of the cross-entropy over the Rayleigh quotient without it, over the same of theory."""
    logits, gram = _outputs_and_gram(block, point)
    outliers = logits.new_tensor(np.array(_of_each_softmax(fisher.cross_entropy_outliers, point, logits)))
    measured = ensembles.top_eigenvalue(_dual(gram, logits)) / point.samples / fisher_gram.rayleigh(gram)
    return {"top": measured / (outliers[:, 0] / statistics_of(point).largest)}


SOFTMAX_LAW: Arrays = {"activation": "softplus", "weight_variance": 0.6, "bias_variance": 0.2}

SQUARES = one_network(
    id="karakida2019/cross-entropy-squares",
    simulate=softmax_squares,
    points=(Point(**SOFTMAX_LAW, depth=2, samples=7, outputs=3, width=200),),
    budget=1024,
    seconds=0.097,
)

TOP_OUTLIER = one_network(
    id="karakida2019/cross-entropy-top-outlier",
    simulate=top_outlier,
    points=(Point(**SOFTMAX_LAW, depth=2, outputs=3, width=128, samples=144),),
    budget=1024,
    seconds=0.64,
)


def _alike(p: Any, *, own: float = 1.0, shared: float = 1.0) -> float:
    """Sum of squares with factors on its parts over what it is, for a softmax that is the same at all samples."""
    one, pairs = kappas_at(p).kappa1 ** 2, (p.samples - 1) * kappas_at(p).kappa2 ** 2
    return (own * one + shared * pairs) / (one + pairs)


AFTER_WIDTHS = (
    "that one width is judged, and which: over widths from 8 on the order of the correction was not resolved at every "
    "seed; first draws at this width lay"
)

_at_one_width = partial(
    Claim,
    entries=("C57",),
    predict=lambda _: 1.0,
    margin=0.03,
    margin_reason=f"{WIDE}; the bias is O(1/M)",
)

CLAIMS = (
    *TANGENT_CLAIMS,
    *SOFTMAX_CLAIMS,
    _at_one_width(
        id="karakida2019/cross-entropy-second-moment",
        source=f"beside {PAPER}, theorem 2.2; the second moment under a softmax, {IN_2021}",
        passage=KNOWN,
        statement=r"\mathbb{E}\,\frac{\mathrm{Tr}\,F^2}{\mathrm{Tr}\,F\; v^\top K v / T} \Big/ "
        r"\frac{s_\lambda}{m_\lambda \lambda_{\max}} = 1,\quad P s_\lambda = "
        r"\Big(\frac{\alpha M}{T}\Big)^2 \sum_{s,t} \kappa_{st}^2\, \mathrm{Tr}\,Q(s) Q(t)",
        says="For cross-entropy, the second moment over mean and Rayleigh quotient follows from gradient overlaps "
        "and softmax covariances.",
        experiment=SQUARES,
        score="squares",
        pilot=f"{AFTER_WIDTHS} 0.5 % above the prediction",
        rivals={
            "kappa2 only": lambda p: _alike(p, own=0.0),
            "kappa1 and all T pairs": lambda p: _alike(p, shared=p.samples / (p.samples - 1)),
            "as at M = 8": lambda _: 1.08,
        },
        quantity="second moment over mean and Rayleigh quotient, over that of theory, cross-entropy",
    ),
    _at_one_width(
        id="karakida2019/cross-entropy-top-outlier",
        source=f"ours, beside {PAPER}, section 2.3; {SOFTMAX_ELSEWHERE}",
        passage=OURS,
        statement=r"\mathbb{E}\,\frac{\lambda_1}{\bar r} \Big/ "
        r"\frac{\alpha M \kappa_2\, \lambda_1(\langle Q \rangle)}{\lambda_{\max}} = 1\quad (T = O(M)),\quad "
        r"\bar r, \lambda_{\max} \text{ those without the softmax}",
        says="For cross-entropy on many samples, the largest Fisher eigenvalue is that of the averaged softmax "
        "covariance times the gradient overlap.",
        experiment=TOP_OUTLIER,
        score="top",
        pilot=f"{AFTER_WIDTHS} 0.6 % above the prediction, with 128 samples",
        rivals={
            "kappa1 for kappa2": lambda p: kappas_at(p).kappa1 / kappas_at(p).kappa2,
            "as at M = 8": lambda _: 1.08,
        },
        quantity="largest eigenvalue over the plain quotient, over that of theory, cross-entropy",
    ),
)
