"""Follow-ups of Karakida, Akaho and Amari (2019): the Fisher information of the cross-entropy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import fisher
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
SOFTMAX = "softmax outputs are also in Karakida, Akaho and Amari (2021), arXiv 1910.05992"
ORDERS = "the orders at issue are 1/2, 1 and 2: less than half the way to the nearest"


def softmax_fisher(block: Block, point: Point) -> Mapping[str, Any]:
    """Trace and Rayleigh quotient of the cross-entropy's Fisher matrix, and what they need of the softmax.

    The quotient is taken at the top eigenvector of the averaged Gram matrix; `shared` and `own` are those of the
    matrices with a kernel of ones and with one of the identity.
    """
    import torch

    from simulate.matrices import ensembles
    from simulate.wide import fisher_gram, gram_variants, signals

    network = wide_networks.wide_network(block, point)
    logits = signals.forward(network, point.activation).preactivations[-1]
    gram = fisher_gram.gram(network, point.activation)
    probabilities = torch.softmax(logits, -1)
    vector = ensembles.top_eigenpair(_dual(gram_variants.averaged(gram), logits))[1]
    ones, one = torch.ones_like(gram[:1, 0, 0]), torch.eye(point.samples, dtype=gram.dtype)[None]
    return {
        "mean": fisher_gram.trace(gram_variants.cross_entropy_gram(gram, logits)),
        "spread": 1 - probabilities.square().sum(-1).mean(1),
        "rayleigh": _quotient(vector, _dual(gram, logits)) / point.samples,
        "shared": _quotient(vector, _dual(_blocks(ones, gram), logits)) / point.samples,
        "own": _quotient(vector, _dual(_blocks(one, gram), logits)) / point.samples,
    }


def softmax_largest(block: Block, point: Point) -> Mapping[str, Any]:
    """Rayleigh quotient at the top eigenvector of the averaged Gram over the largest eigenvalue, at every width."""
    return {"ratio": _by_width(_quotient_over_largest, block, point)}


def _by_width(simulate: Callable[[Block, Point, int], Any], block: Block, point: Point) -> Any:
    """What is drawn at every width, the last axis; of small networks several are drawn, and averaged."""
    import torch

    found = [
        torch.stack([simulate(block, point, width) for _ in range(draws)]).mean(0)
        for width, draws in zip(point.widths, point.draws, strict=True)
    ]
    return torch.stack(found, dim=-1)


def _quotient_over_largest(block: Block, point: Point, width: int) -> Any:
    from simulate.matrices import ensembles
    from simulate.wide import fisher_gram, gram_variants, signals

    network = wide_networks.wide_network(block, point, width=width)
    logits = signals.forward(network, point.activation).preactivations[-1]
    gram = fisher_gram.gram(network, point.activation)
    matrix = _dual(gram, logits)
    vector = ensembles.top_eigenpair(_dual(gram_variants.averaged(gram), logits))[1]
    return _quotient(vector, matrix) / ensembles.top_eigenvalue(matrix)


def softmax_outliers(block: Block, point: Point) -> Mapping[str, Any]:
    """Eigenvalue C of the cross-entropy's Fisher matrix over the largest at every width, T = M samples.

    At the largest width also eigenvalue C - 1, and that of the mean of Q over its largest.
    """
    last, share, beyond = _by_width(_softmax_ratios, block, point)
    return {"last": last[:, -1], "share": share[:, -1], "beyond": beyond}


def _softmax_ratios(block: Block, point: Point, width: int) -> Any:
    import torch

    from simulate.wide import fisher_gram, gram_variants, signals

    network = wide_networks.wide_network(block, point, width=width, samples=width)
    logits = signals.forward(network, point.activation).preactivations[-1]
    gram = gram_variants.cross_entropy_gram(fisher_gram.gram(network, point.activation), logits)
    values, weights = fisher_gram.eigenvalues(gram).flip(1), _mean_covariance(logits)
    c = point.outputs
    values, weights = values / values[:, :1], weights / weights[:, :1]
    return torch.stack([values[:, c - 2], weights[:, c - 2], values[:, c - 1]])


def _mean_covariance(logits: Any) -> Any:
    """Eigenvalues of the mean of diag(g) - g g' over the samples, descending."""
    import torch

    g = torch.softmax(logits, -1)
    mean = torch.diag_embed(g.mean(1)) - g.mT @ g / g.shape[1]
    return torch.linalg.eigvalsh(mean).flip(1)


def _dual(gram: Any, logits: Any) -> Any:
    """The cross-entropy's Gram as matrices."""
    from simulate.wide import gram_variants

    return gram_variants.cross_entropy_gram(gram, logits).transpose(2, 3).flatten(3, 4).flatten(1, 2)


def _blocks(kernel: Any, like: Any) -> Any:
    """The same kernel for every output, none between different outputs."""
    import torch

    same = torch.eye(like.shape[1], dtype=like.dtype)
    return (same[None, :, :, None, None] * kernel[:, None, None]).expand_as(like)


def _quotient(vector: Any, matrix: Any) -> Any:
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
    seconds=0.8,
)

SOFTMAX_SETTING = {"activation": "softplus", "weight_variance": 0.6, "bias_variance": 0.2}

SOFTMAX_SIZES = Experiment(
    id="karakida2019/cross-entropy-largest",
    replicate="networks with their inputs at each width",
    simulate=softmax_largest,
    points=(
        Point(
            **SOFTMAX_SETTING,
            depth=2,
            samples=7,
            outputs=3,
            widths=(8, 16, 32, 64, 128),
            draws=(4, 3, 2, 1, 1),
        ),
    ),
    budget=1280,
    seconds=2.2,
)

SOFTMAX_OUTLIERS = Experiment(
    id="karakida2019/cross-entropy-outliers",
    replicate="networks with their inputs at each width, T = M",
    simulate=softmax_outliers,
    points=(Point(**SOFTMAX_SETTING, depth=2, outputs=3, widths=(8, 16, 32, 64), draws=(4, 3, 2, 1)),),
    budget=384,
    seconds=1.8,
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


TYPICAL = {"spread": 0.58, "shared": 0.3, "own": 0.045}

SOFTMAX_ORDER = Claim(
    id="karakida2019/cross-entropy-largest-order",
    entries=("C57",),
    source=f"ours, beside {PAPER}, theorem 2.2; {SOFTMAX}",
    passage=OURS,
    statement=r"1 - \mathbb{E}\big[v^\top K v \big/ \lambda_{\max}\big] \sim M^{-1}",
    experiment=SOFTMAX_SIZES,
    kind=Kind.EXPONENT,
    score="ratio",
    along="widths",
    terms=(1,),
    offset=lambda _: 1.0,
    predict=lambda _: -1.0,
    margin=0.24,
    relative=False,
    margin_reason=ORDERS,
    rivals={"as for equal eigenvalues": lambda _: -0.5, "square": lambda _: -2.0},
    quantity="one less Rayleigh quotient over the largest eigenvalue",
)

SOFTMAX_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/cross-entropy-trace",
        entries=("C57",),
        source=f"ours, beside {PAPER}, theorem 2.2; {SOFTMAX}",
        passage=OURS,
        statement=r"\mathrm{Tr}\,F = \Big(\alpha M \kappa_1 + \sum_l \tilde q_t^l\Big) "
        r"\Big\langle 1 - \sum_k g_k^2 \Big\rangle",
        experiment=SOFTMAX,
        score="mean",
        inputs=TYPICAL,
        predict=lambda p: _own(p) * p.spread,
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
        source=f"ours, beside {PAPER}, theorem 2.2, in Rayleigh form; {SOFTMAX}",
        passage=OURS,
        statement=r"v^\top \frac{K}{T} v = \frac{\alpha M}{T} \Big[\kappa_2 \Big|\sum_t Q(t)^{1/2} v(t)\Big|^2 + "
        r"(\kappa_1 - \kappa_2) \sum_t v(t)^\top Q(t)\, v(t)\Big] + \ldots",
        experiment=SOFTMAX,
        score="rayleigh",
        inputs=TYPICAL,
        predict=_quotient_of,
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
    Claim(
        id="karakida2019/cross-entropy-largest",
        entries=("C57",),
        source=f"ours, beside {PAPER}, theorem 2.2, for the largest eigenvalue itself; {SOFTMAX}",
        passage=OURS,
        statement=r"\lim_{M \to \infty} \mathbb{E}\big[v^\top K v \big/ \lambda_{\max}\big] = 1,\quad "
        r"v \text{ the top eigenvector of the blocks } \kappa_{st}\, Q(s)^{1/2} Q(t)^{1/2}",
        experiment=SOFTMAX_SIZES,
        kind=Kind.LIMIT,
        score="ratio",
        along="widths",
        terms=(1, 2),
        order=SOFTMAX_ORDER,
        predict=lambda _: 1.0,
        margin=0.01,
        margin_reason="at most 1 %; the ratio itself is 0.970 at M = 8",
        rivals={"no convergence from M = 8 on": lambda _: 0.97},
        quantity="Rayleigh quotient over the largest eigenvalue, cross-entropy",
    ),
    SOFTMAX_ORDER,
    Claim(
        id="karakida2019/cross-entropy-last-outlier",
        entries=("C57",),
        source=f"ours, beside {PAPER}, section 2.3; {SOFTMAX}",
        passage=OURS,
        statement=r"\frac{\lambda_{C-1}}{\lambda_1} = "
        r"\frac{\lambda_{C-1}(\langle Q \rangle)}{\lambda_1(\langle Q \rangle)} \quad (T = M)",
        experiment=SOFTMAX_OUTLIERS,
        score="last",
        inputs={"share": 0.54},
        predict=lambda p: p.share,
        margin=0.03,
        margin_reason="at most 3 % for wide networks; the bias is O(1/M), 0.3 % at M = 64",
        rivals={"equal outliers": lambda _: 1.0, "no outlier": lambda _: 0.034},
        quantity="eigenvalue C - 1 over the largest",
    ),
    Claim(
        id="karakida2019/cross-entropy-outliers",
        entries=("C57",),
        source=f"ours, beside {PAPER}, section 2.3, which counts C outliers for the squared error; {SOFTMAX}",
        passage=OURS,
        statement=r"\mathbb{E}\,\lambda_{C} / \lambda_1 \sim M^{-1} \quad (T = M)",
        experiment=SOFTMAX_OUTLIERS,
        kind=Kind.EXPONENT,
        score="beyond",
        along="widths",
        terms=(1,),
        predict=lambda _: -1.0,
        margin=0.24,
        relative=False,
        margin_reason="the exponents at issue are 0, -1/2 and -1: less than half the way to the nearest",
        rivals={"C outliers": lambda _: 0.0, "split from them": lambda _: -0.5},
        quantity="eigenvalue C over the largest",
    ),
)


# --- the Gram matrix -----------------------------------------------------------------------------------------


def softmax_gram_difference(rng: np.random.Generator, point: Point, *, mean: bool = True) -> float:
    """The same for the Gram of the cross-entropy, the Jacobian being that of twice the root of the softmax."""
    import torch

    from simulate.wide import fisher_gram, gram_variants, signals

    network = small_network(rng, point)
    logits = signals.forward(network, point.activation).preactivations[-1]
    gram = fisher_gram.gram(network, point.activation)
    found = gram_variants.cross_entropy_gram(gram, logits)
    if not mean:  # Q without its second term
        root = torch.softmax(logits, -1).sqrt().mT
        found = root[:, :, None, :, None] * gram * root[:, None, :, None, :]
    expected = jacobian_gram(network, point, lambda f: 2 * torch.softmax(f, -1).sqrt(), scaled=False)
    return distance(found[0], expected)


def _softmax_architectures() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    # a certain output has no information, and nothing to compare with
    widths = st.tuples(st.lists(st.integers(1, 7), min_size=1, max_size=3), st.integers(2, 5))
    return {
        **architectures(),
        "widths": widths.map(lambda w: [*w[0], w[1]]),
        "weight_variance": st.floats(0.1, 1.5),
    }


GRAM_PROPERTY = ExactProperty(
    id="karakida2019/cross-entropy-gram",
    entries=("C57",),
    source=f"ours, beside {PAPER}, eq. (8)",
    passage=OURS,
    statement=r"4\, \nabla\!\sqrt{g}\, \nabla\!\sqrt{g}^\top = B^\top J J^\top B,\quad "
    r"B B^\top = Q = \mathrm{diag}(g) - g g^\top",
    strategies=_softmax_architectures,
    violation=softmax_gram_difference,
    examples=SMALL,
    tolerance=1e-9,
    tolerance_reason="an exact identity in float64; what cancels in Q is relative to K",
    rivals={"without its second term": lambda rng, point: softmax_gram_difference(rng, point, mean=False)},
    seconds=1.0,
)

CLAIMS: tuple[AnyClaim, ...] = (*SOFTMAX_CLAIMS, GRAM_PROPERTY)
