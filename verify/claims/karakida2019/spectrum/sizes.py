"""Karakida, Akaho and Amari (2019): how the largest Fisher eigenvalue grows with the width, and its bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simulate.monte_carlo import Block, Point
from theory import fisher
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind, Passage, Standing

__all__ = ["CLAIMS"]

PAPER = "Karakida, Akaho and Amari (2019)"

RELU = {"activation": "relu", "weight_variance": 2.1, "bias_variance": 0.2, "depth": 3, "outputs": 1}


def growing_networks(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest Fisher eigenvalue and the two that bound it, with and without mean subtraction, T = M samples."""
    import torch

    found = [_at_width(block, point, width) for width in point.widths]
    return {name: torch.stack([scores[name] for scores in found], dim=1) for name in found[0]}


def largest_over_rayleigh(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest Fisher eigenvalue over the Rayleigh quotient at equal weights, at every width."""
    import torch

    from simulate.matrices import ensembles
    from simulate.wide import fisher_gram

    ratios = []
    for width in point.widths:
        gram = _gram(block, point, width)
        top = ensembles.top_eigenvalue(gram[:, 0, 0]) / gram.shape[-1]
        ratios.append(top / fisher_gram.rayleigh(gram))
    return {"ratio": torch.stack(ratios, dim=1)}


def _at_width(block: Block, point: Point, width: int) -> dict[str, Any]:
    from simulate.matrices import ensembles
    from simulate.wide import fisher_gram

    gram = _gram(block, point, width)
    subtracted = fisher_gram.centred(gram)[:, 0, 0] / width
    squares, trace = subtracted.square().sum((1, 2)), subtracted.diagonal(dim1=1, dim2=2).sum(1)
    return {
        "largest": ensembles.top_eigenvalue(gram[:, 0, 0]) / width,
        "subtracted": ensembles.top_eigenvalue(subtracted),
        "root_of_squares": squares.sqrt(),
        "squares_over_trace": squares / trace,
    }


def _gram(block: Block, point: Point, width: int) -> Any:
    from simulate.wide import fisher_gram, signals

    network = signals.wide_network(
        block,
        widths=(width,) * point.depth + (point.outputs,),
        samples=width,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )
    return fisher_gram.gram(network, point.activation)


GROWTH = Experiment(
    id="karakida2019/growth",
    replicate="one network with its inputs at each width",
    simulate=growing_networks,
    points=(Point(widths=(16, 32, 64, 128), **RELU),),
    budget=6144,
    seconds=22.0,
    special="one output: with more the largest of C nearly equal eigenvalues is biased by O(M^-1/2)",
)

RAYLEIGH = Experiment(
    id="karakida2019/largest-over-rayleigh",
    replicate="one network with its inputs at each width",
    simulate=largest_over_rayleigh,
    points=(Point(widths=(16, 32, 64, 128, 256), **RELU),),
    budget=1280,
    seconds=20.0,
    special=GROWTH.special,
)


def _bounds(p: Point) -> fisher.MeanSubtractedStatistics:
    """Theorem 3.3 at one width, T = M."""
    return fisher.mean_subtracted_statistics(
        p.activation,
        depth=p.depth,
        width=p.widths,
        samples=p.widths,
        outputs=p.outputs,
        weight_variance=p.weight_variance,
        bias_variance=p.bias_variance,
    )


def _kappas(p: Point) -> fisher.Kappas:
    return fisher.kappas(
        p.activation, depth=p.depth, weight_variance=p.weight_variance, bias_variance=p.bias_variance
    )


def _without_c1(p: Point) -> float:
    """The spike alpha (kappa1 - kappa2): what the bound is without its constant at T = M."""
    return float(_kappas(p).alpha * _kappas(p).difference)


HALFWAY = "the exponents at issue are 0, 1/2 and 1: less than half the way to the nearest"

RAYLEIGH_ORDER = Claim(
    id="karakida2019/largest-order",
    entries=("C14",),
    source=f"ours, beside theorem 2.2 of {PAPER}",
    passage=OURS,
    statement=r"\mathbb{E}\Big[\lambda_{\max} \big/ \tfrac{1}{T^2} \mathbf 1^\top K \mathbf 1\Big] - 1 \sim M^{-1}",
    experiment=RAYLEIGH,
    kind=Kind.EXPONENT,
    score="ratio",
    along="widths",
    terms=(1,),
    offset=lambda _: 1.0,
    predict=lambda _: -1.0,
    margin=0.2,
    relative=False,
    margin_reason="the orders at issue are 1/2, 1 and 2: less than half the way to the nearest",
    rivals={"as for several outputs": lambda _: -0.5, "square": lambda _: -2.0},
    quantity="largest eigenvalue over its Rayleigh quotient, less one",
)

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/largest-is-rayleigh",
        entries=("C14",),
        source=f"{PAPER}, theorem 2.2, eq. (10), for the largest eigenvalue itself",
        statement=r"\lim_{M = T \to \infty} \mathbb{E}\Big[\lambda_{\max} "
        r"\big/ \tfrac{1}{T^2} \mathbf 1^\top K \mathbf 1\Big] = 1",
        experiment=RAYLEIGH,
        kind=Kind.LIMIT,
        score="ratio",
        along="widths",
        terms=(1, 2),
        predict=lambda _: 1.0,
        margin=0.01,
        order=RAYLEIGH_ORDER,
        margin_reason="at most 1 %; the ratio itself is 1.15 at M = 16",
        rivals={"no convergence from M = 16 on": lambda _: 1.15, "none from M = 64 on": lambda _: 1.04},
        quantity="largest eigenvalue over its Rayleigh quotient at equal weights",
    ),
    RAYLEIGH_ORDER,
    Claim(
        id="karakida2019/growth",
        entries=("C14", "C29"),
        source=f"{PAPER}, theorem 2.2, figure 1",
        statement=r"\mathbb{E}\,\lambda_{\max} \sim M \quad (T = M)",
        experiment=GROWTH,
        kind=Kind.EXPONENT,
        score="largest",
        along="widths",
        terms=(1,),
        predict=lambda _: 1.0,
        margin=0.2,
        relative=False,
        margin_reason=HALFWAY,
        rivals={"square root": lambda _: 0.5, "bounded": lambda _: 0.0},
        quantity="largest eigenvalue of the Fisher matrix",
    ),
    Claim(
        id="karakida2019/no-growth",
        entries=("C29", "C33"),
        source=f"{PAPER}, section 3.2 and figure 1",
        passage=Passage(
            Standing.AS_STATED, "pathological sharpness disappeared when", "Section 3.2, on Figure 1"
        ),
        statement=r"\mathbb{E}\,\bar\lambda_{\max} \sim M^0 \quad (T = M,\ \text{mean subtraction})",
        experiment=GROWTH,
        kind=Kind.EXPONENT,
        score="subtracted",
        along="widths",
        terms=(2 / 3,),
        predict=lambda _: 0.0,
        margin=0.24,
        relative=False,
        margin_reason=HALFWAY,
        rivals={"of the upper bound": lambda _: 0.5, "without subtraction": lambda _: 1.0},
        quantity="largest eigenvalue after mean subtraction",
    ),
    Claim(
        id="karakida2019/lower-bound",
        entries=("C26", "C29"),
        source=f"{PAPER}, theorem 3.3, eq. (18), without its constant",
        passage=Passage(
            Standing.AS_STATED, "relatively loose compared to the experimental results", "Section 3.2"
        ),
        statement=r"\mathbb{E}\,\bar\lambda_{\max} \ge \rho \alpha (\kappa_1 - \kappa_2),\quad \rho = M/T = 1",
        experiment=GROWTH,
        kind=Kind.AT_LEAST,
        score="subtracted",
        along="widths",
        axis="widths",
        predict=_without_c1,
        margin=0.03,
        margin_reason="at most 3 % for wide networks",
        rivals={"upper bound": lambda p: float(_bounds(p).upper)},
        quantity="largest eigenvalue after mean subtraction",
    ),
    Claim(
        id="karakida2019/lower-bound-with-c1",
        entries=("C26",),
        source=f"{PAPER}, theorem 3.3, eq. (18), with c1 derived",
        statement=r"\mathbb{E}\,\bar\lambda_{\max} \ge \rho \alpha (\kappa_1 - \kappa_2) + c_1,\quad "
        r"c_1 = \frac{c_2}{C \alpha (\kappa_1 - \kappa_2)}",
        experiment=GROWTH,
        kind=Kind.AT_LEAST,
        score="subtracted",
        along="widths",
        axis="widths",
        predict=lambda p: float(_bounds(p).lower),
        margin=0.03,
        margin_reason="at most 3 % for wide networks",
        rivals={"upper bound": lambda p: float(_bounds(p).upper)},
        quantity="largest eigenvalue after mean subtraction",
    ),
    Claim(
        id="karakida2019/upper-bound",
        entries=("C27",),
        source=f"{PAPER}, theorem 3.3, eq. (18), with c2 derived",
        passage=Passage(
            Standing.AS_STATED, "relatively loose compared to the experimental results", "Section 3.2"
        ),
        statement=r"\mathbb{E}\,\bar\lambda_{\max} \le "
        r"\sqrt{\big(C \alpha^2 \rho (\kappa_1 - \kappa_2)^2 + c_2\big) M}",
        experiment=GROWTH,
        kind=Kind.AT_MOST,
        score="subtracted",
        along="widths",
        axis="widths",
        predict=lambda p: float(_bounds(p).upper),
        margin=0.03,
        margin_reason="at most 3 % for wide networks",
        rivals={
            "lower bound": lambda p: float(_bounds(p).lower),
            "without M": lambda p: float(_bounds(p).upper) / math.sqrt(p.widths),
        },
        quantity="largest eigenvalue after mean subtraction",
    ),
    Claim(
        id="karakida2019/largest-over-root",
        entries=("C27",),
        source=f"ours, behind theorem 3.3 of {PAPER}",
        passage=OURS,
        statement=r"\bar\lambda_{\max} \le \sqrt{\mathrm{Tr}\,\bar F^2}",
        experiment=GROWTH,
        kind=Kind.NEVER_ABOVE,
        score="subtracted",
        along="widths",
        inputs={"root_of_squares": 20.0, "squares_over_trace": 4.0},
        predict=lambda p: p.root_of_squares,
        margin=0.05,
        relative=False,
        margin_reason="an inequality of matrices: violations in 5 % of the networks would be seen",
        numerical=1e-9,
        rivals={"trace of F^2 over trace of F": lambda p: p.squares_over_trace},
        quantity="largest eigenvalue after mean subtraction",
    ),
    Claim(
        id="karakida2019/largest-over-mean-square",
        entries=("C26",),
        source=f"ours, behind theorem 3.3 of {PAPER}",
        passage=OURS,
        statement=r"\bar\lambda_{\max} \ge \mathrm{Tr}\,\bar F^2 / \mathrm{Tr}\,\bar F",
        experiment=GROWTH,
        kind=Kind.NEVER_BELOW,
        score="subtracted",
        along="widths",
        inputs={"root_of_squares": 20.0, "squares_over_trace": 4.0},
        predict=lambda p: p.squares_over_trace,
        margin=0.05,
        relative=False,
        margin_reason="an inequality of matrices: violations in 5 % of the networks would be seen",
        numerical=1e-9,
        rivals={"root of the trace of F^2": lambda p: p.root_of_squares},
        quantity="largest eigenvalue after mean subtraction",
    ),
)
