"""Karakida, Akaho and Amari (2019): scatter of the Gram entries, hence the constants of theorem 3.3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, fisher_gram, pair_scatter
from theory import fisher
from theory.activations import gaussian_kernels, resolve
from theory.order_parameters import propagate
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.spectrum.spectrum import network_at, widths_at
from verify.claims.karakida2019.wide_networks import passed_at
from verify.model import OURS, AnyClaim, Claim, Experiment, Identity, Kind, Tier

__all__ = ["CLAIMS"]

# --- constants of the bounds ---------------------------------------------------------------------------------


def scatter_at_large_width(block: Block, point: Point) -> Mapping[str, Any]:
    """Variance of centred cosines between gradients of one output, times the width."""
    passed = passed_at(block, point, widths_at(point, point.width))
    return {"same": _scatter(few_signals.passed_gram(passed), point.width)["same"]}


def scatter_by_width(block: Block, point: Point) -> Mapping[str, Any]:
    """The same for two outputs, at every width."""
    import torch

    def other(width: int) -> Any:
        gram = fisher_gram.gram(network_at(block, point, width), point.activation)
        return _scatter(gram, width)["other"]

    sizes = zip(point.widths, point.networks, strict=True)
    found = [torch.stack([other(width) for _ in range(count)]) for width, count in sizes]
    return {"other": torch.stack([several.mean(0) for several in found], dim=1)}


def _scatter(gram: Any, width: int) -> Any:
    outputs = gram.shape[1]
    norms = gram.diagonal(dim1=1, dim2=2).diagonal(dim1=1, dim2=2).mean(2)
    variances = width * pair_scatter.pair_variance(gram) / (norms[:, :, None] * norms[:, None, :])
    own, every = variances.diagonal(dim1=1, dim2=2).sum(1), variances.sum((1, 2))
    return {"same": own / outputs, "other": (every - own) / (outputs * (outputs - 1))}


SAME = Experiment(
    id="karakida2019/scatter-of-one-output",
    replicate="one network with its inputs",
    simulate=scatter_at_large_width,
    points=(
        Point(
            activation="erf",
            weight_variance=2.3,
            bias_variance=3.1,
            depth=4,
            width=256,
            ratios=(1.25, 0.75, 1.5, 0.875),
            samples=20,
            outputs=3,
        ),
    ),
    budget=2048,
    seconds=1.7,
)

OTHER = Experiment(
    id="karakida2019/scatter-of-two-outputs",
    replicate="one network with its inputs at each width, several at the small ones",
    simulate=scatter_by_width,
    points=(
        Point(
            activation="erf",
            weight_variance=5.3,
            bias_variance=3.1,
            depth=4,
            widths=(16, 32, 64, 128, 256),
            networks=(4, 4, 1, 1, 1),
            ratios=(1.25, 0.75, 1.5, 0.875),
            samples=14,
            outputs=8,
        ),
    ),
    budget=1920,
    seconds=15.0,
    tier=Tier.FULL,
)


def _setting(p: Point) -> dict[str, Any]:
    return {
        "activation": p.activation,
        "depth": p.depth,
        "weight_variance": p.weight_variance,
        "bias_variance": p.bias_variance,
        "width_ratios": p.ratios,
    }


def _own(p: Point) -> float:
    """S_same."""
    return fisher.gram_entry_variances(**_setting(p)).same


def _other(p: Point) -> float:
    """S_diff."""
    return fisher.gram_entry_variances(**_setting(p)).other


def _norm(p: Point) -> float:
    k = fisher.kappas(**_setting(p))
    return (k.alpha * k.kappa1) ** 2


def _gap(p: Point) -> float:
    return fisher.kappas(**_setting(p)).difference


def _forward_only(p: Point) -> tuple[float, float]:
    """Parts of S_same that input overlaps and the noise of the forward pass make, slopes on the way back fixed.

    A disturbance of the overlap in layer l goes on as sigma_w^2 I_phi' from layer to layer, which is what the
    covariance of the backward signals is made of: it arrives in every later term with the weight alpha q_tilde.
    """
    activations, ratios = resolve(p.activation, p.depth - 1), np.asarray(p.ratios)
    m = propagate(activations, weight_variance=p.weight_variance, bias_variance=p.bias_variance)
    kernel = gaussian_kernels(activations[0])
    later = ratios[::-1].cumsum()[::-1]
    inputs = (m.q_tilde_st[0] * later[0]) ** 2 / ratios[0]
    noise = [kernel.fluctuations(b, d)[0] for b, d in zip(m.covariance, m.gap, strict=True)]
    hidden = zip(m.q_tilde_st[1:], later[1:], noise, ratios[1:], strict=True)
    return float(inputs), float(sum((t * a) ** 2 * v / r for t, a, v, r in hidden))


def _over_norm(value: Callable[[Point], float]) -> Callable[[Point], float]:
    return lambda p: value(p) / _norm(p)


OTHER_ORDER = Claim(
    id="karakida2019/scatter-of-two-outputs-order",
    entries=("C28",),
    source=f"ours, beside theorem 3.3 of {PAPER}",
    passage=OURS,
    statement=r"M\, \mathbb{E} \frac{\mathrm{Var}\, K_{kk'}(s, t)}{\bar K_{kk} \bar K_{k'k'}} - "
    r"\frac{S_{\rm diff}}{\alpha^2 \kappa_1^2} \sim M^{-1} \quad (k \ne k')",
    says="The scaled variance of the products of two different outputs' gradients approaches its limit like "
    "one over the width.",
    experiment=OTHER,
    kind=Kind.EXPONENT,
    score="other",
    along="widths",
    terms=(1,),
    offset=_over_norm(_other),
    predict=lambda _: -1.0,
    margin=0.24,
    relative=False,
    margin_reason="less than half the way to the nearest exponent at issue",
    rivals={"square root": lambda _: -0.5, "square": lambda _: -2.0},
    quantity="variance of Gram entries of two outputs, less its limit",
)

SCATTER_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/scatter-of-one-output",
        entries=("C28",),
        source=f"ours: c2 of {PAPER}, theorem 3.3, eq. (18), derived",
        passage=OURS,
        statement=r"M\, \mathbb{E} \frac{\mathrm{Var}\, K_{kk}(s, t)}{\bar K_{kk}^2} \to "
        r"\frac{S_{\rm same}}{\alpha^2 \kappa_1^2}, \quad c_2 = C S_{\rm same} + C (C - 1) S_{\rm diff}",
        says="In wide networks, the products of one output's gradients at two samples scatter with the "
        "variance that a derived recursion over layers gives.",
        experiment=SAME,
        score="same",
        predict=_over_norm(_own),
        margin=0.03,
        margin_reason="at most 3 % for wide networks; the offset is O(1/M)",
        rivals={
            "input overlaps only": _over_norm(lambda p: _forward_only(p)[0]),
            "forward part only": _over_norm(lambda p: sum(_forward_only(p))),
            "as for two outputs": _over_norm(_other),
            "of the gap": lambda p: _own(p) / (fisher.kappas(**_setting(p)).alpha * _gap(p)) ** 2,
        },
        quantity="variance of centred Gram entries of one output, over the squared mean diagonal, times M",
    ),
    Claim(
        id="karakida2019/scatter-of-two-outputs",
        entries=("C28",),
        source=f"ours: c2 of {PAPER}, theorem 3.3, eq. (18), derived",
        passage=OURS,
        statement=r"\lim_{M \to \infty} M\, \mathbb{E} \frac{\mathrm{Var}\, K_{kk'}(s, t)}{\bar K_{kk} \bar K_{k'k'}} "
        r"= \frac{S_{\rm diff}}{\alpha^2 \kappa_1^2} > 0 \quad (k \ne k')",
        says="As the width grows, the products of two different outputs' gradients keep a variance, once "
        "scaled by the width, which a derived recursion over layers gives.",
        experiment=OTHER,
        kind=Kind.LIMIT,
        score="other",
        along="widths",
        terms=(1, 2),
        order=OTHER_ORDER,
        predict=_over_norm(_other),
        margin=0.06,
        margin_reason="a second-order part of c2, extrapolated from three times its value at M = 16; 6 % of it is "
        "0.7 % of c2 with two outputs, 2.8 % with eight",
        rivals={
            "none": lambda _: 0.0,
            "as for one output": _over_norm(_own),
            "as at M = 256": lambda p: 1.2 * _other(p) / _norm(p),
            "three for one": lambda p: 3 * _other(p) / _norm(p),
        },
        quantity="variance of centred Gram entries of two outputs, over their mean diagonals, times M",
    ),
    OTHER_ORDER,
)

# --- closed forms --------------------------------------------------------------------------------------------


def _linear(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """c2 and c1 of linear networks: overlaps of signals fluctuate alike in every layer and reach all later terms."""
    known = fisher.fluctuation_constants(
        "linear",
        depth=len(point.ratios),
        outputs=point.outputs,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
        width_ratios=point.ratios,
    )
    ratios = [Fraction(r) for r in point.ratios]
    later = list(accumulate(reversed(ratios)))[::-1]
    terms = [a**2 / r for a, r in zip(later, ratios, strict=True)]
    scale = point.weight_variance ** (len(ratios) - 1)

    def pair(total: Fraction) -> list[float]:
        return [scale**2 * float(total), scale * float(total / later[0])]

    return {
        "constants": [known.c2 / point.outputs, known.c1],
        "closed form": pair(sum(terms, Fraction())),
        "hidden layers only": pair(sum(terms[1:], Fraction())),
        "input overlaps only": pair(terms[0]),
        "own layer only": pair(later[0]),
        "without the ratio": pair(sum((a**2 for a in later), Fraction())),
        "weights of variance 1": [float(sum(terms)), float(sum(terms) / later[0])],
    }


def _shallow_relu(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """c2 of one hidden layer of ReLU without biases: the slopes of two samples overlap by a quarter."""
    known = fisher.fluctuation_constants(
        "relu",
        depth=2,
        outputs=point.outputs,
        weight_variance=point.weight_variance,
        bias_variance=0.0,
        width_ratios=point.ratios,
    )
    inputs, hidden = map(Fraction, point.ratios)
    scale = point.weight_variance**2 / 4
    overlaps = scale * float((inputs + hidden) ** 2 / inputs) / 4
    own = scale * float(hidden)
    return {
        "constant": known.c2 / point.outputs,
        "closed form": overlaps + own * (1 - 1 / np.pi) ** 2,
        "input overlaps only": overlaps,
        "second moment for variance": overlaps + own,
        "equal widths": scale * (1 + (1 - 1 / np.pi) ** 2),
        "weights of variance 2": (overlaps + own * (1 - 1 / np.pi) ** 2) / scale,
    }


CLOSED_FORMS: tuple[AnyClaim, ...] = (
    Identity(
        id="karakida2019/linear-bound-constants",
        entries=("C28",),
        source=f"ours, beside theorem 3.3 of {PAPER}",
        passage=OURS,
        statement=r"\frac{c_2}{C} = \sigma_w^{4 (L-1)} \sum_{l=0}^{L-1} \frac{A_l^2}{\alpha_l}, \quad "
        r"c_1 = \frac{c_2}{C \sigma_w^{2 (L-1)} A_0}, \quad "
        r"A_l = \sum_{j \ge l} \alpha_j \quad \text{for linear networks}",
        says="For linear networks with layers of any widths, the recursion for both constants of the "
        "mean-subtraction bounds has a closed form in sums of widths.",
        routes=_linear,
        points=(
            Point(ratios=(1.75, 0.375), outputs=1, weight_variance=2.3, bias_variance=0.0),
            Point(ratios=(0.5, 1.75, 1.25, 0.75), outputs=3, weight_variance=0.6, bias_variance=0.7),
            Point(
                ratios=(2.25, 0.75, 1.5, 0.25, 1.0, 3.5), outputs=2, weight_variance=1.4, bias_variance=1.3
            ),
        ),
        tolerance=1e-13,
        tolerance_reason="rounding of a recursion over six layers",
        quantity="constants of the bounds",
    ),
    Identity(
        id="karakida2019/shallow-relu-constant",
        entries=("C28",),
        source=f"ours, beside theorem 3.3 of {PAPER}",
        passage=OURS,
        statement=r"\frac{c_2}{C} = \frac{\sigma_w^4}{4} \Big[\frac{(\alpha_0 + \alpha_1)^2}{4 \alpha_0} + "
        r"\alpha_1 \Big(1 - \frac1\pi\Big)^2\Big] \quad "
        r"\text{for ReLU, } L = 2,\ \sigma_b^2 = 0",
        says="For ReLU networks with one hidden layer and biases that start at zero, the constant of the "
        "mean-subtraction upper bound has a closed form in the ratios of widths.",
        routes=_shallow_relu,
        points=(
            Point(ratios=(1.0, 1.0), outputs=1, weight_variance=2.0),
            Point(ratios=(1.75, 0.375), outputs=5, weight_variance=2.7),
        ),
        tolerance=1e-13,
        tolerance_reason="rounding",
        quantity="constant of the upper bound",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*SCATTER_CLAIMS, *CLOSED_FORMS)
