"""Karakida, Akaho and Amari (2019), theorem 3.3: how order parameters and Gram entries scatter, and the bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, fisher_gram, pair_scatter, signals
from theory import fisher
from theory.activations import gaussian_kernels, resolve
from theory.fisher import mean_subtraction
from theory.order_parameters import Propagation, propagate
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import (
    WIDE,
    approach,
    at_each_width,
    by_width,
    exponent,
    kappas_at,
    law,
    limit,
    network_of,
    one_network,
    passed_at,
    setting,
    wide,
)
from verify.model import OURS, Arrays, Claim, Experiment, Identity, Kind, NoTheory, Prediction, Tier

# --- order parameters of two networks ------------------------------------------------------------------------


def pairs_of_networks(block: Block, point: Point) -> Arrays:
    """Distance of the order parameters of two networks at every width, forward in the last, backward in the first."""

    def pair(block: Block, width: int) -> Arrays:
        networks = [network_of(block, point, width=width) for _ in range(2)]
        passed = [signals.forward(network, point.activation) for network in networks]
        hats = [p.activations[-1] @ p.activations[-1].mT / p.activations[-1].shape[-1] for p in passed]
        tildes = [_overlaps(network, point, p) for network, p in zip(networks, passed, strict=True)]
        return {"forward": _distance(hats), "backward": _distance(tildes)}

    return by_width(block, point, pair)


def _overlaps(network: Any, point: Point, passed: Any) -> Any:
    """Inner products of the derivatives by the first layer, (n, C, T, T), back through this network's weights."""
    *_, delta = signals.backward(network, point.activation, passed.preactivations)
    return delta @ delta.mT


def _off_diagonal_mean(entries: Any) -> Any:
    """Over s != t, and over all dimensions but the first."""
    import torch

    samples = entries.shape[-1]
    left = entries - torch.diag_embed(entries.diagonal(dim1=-2, dim2=-1))
    return left.mean(tuple(range(1, entries.ndim))) * samples / (samples - 1)


def _distance(pair: Sequence[Any]) -> Any:
    """Root mean square of the differences."""
    return _off_diagonal_mean((pair[0] - pair[1]).square()).sqrt()


PAIRS = Experiment(
    id="karakida2019/pairs-of-networks",
    replicate="two networks with their inputs at each width",
    simulate=pairs_of_networks,
    points=(
        law(
            "erf",
            2.7,
            0.6,
            depth=3,
            widths=(16, 32, 64, 128, 256),
            ratios=(1.25, 0.75, 1.5),
            samples=10,
            outputs=9,
        ),
    ),
    budget=512,
    seconds=2.9,
)


def _rate(name: str, score: str, statement: str, says: str) -> Claim:
    return exponent(
        id=f"karakida2019/{name}",
        entries=("C31",),
        source=f"{PAPER}, section 3.2, q = 1/2 in order parameters that converge as M^(-q)",
        no_theory=NoTheory.CONSTANT,
        statement=statement,
        says=f"{says} differ between two random networks by an amount that falls like one over the root of the width.",
        experiment=PAIRS,
        score=score,
        predict=lambda _: -0.5,
        margin=0.12,
        rivals={"1/4": lambda _: -0.25, "1": lambda _: -1.0},
        quantity=f"distance of the {score} order parameters of two networks",
    )


# --- fresh weights on the way back ---------------------------------------------------------------------------


def fresh_weights(block: Block, point: Point) -> Arrays:
    """Backward order parameter, with true and with other weights."""
    network, other = (network_of(block, point) for _ in range(2))
    passed = signals.forward(network, point.activation)
    return {
        f"{name}_mean": _off_diagonal_mean(_overlaps(weights, point, passed))
        for name, weights in (("true", network), ("fresh", other))
    }


FRESH = Experiment(
    id="karakida2019/fresh-weights",
    replicate="one network with its inputs, and other weights",
    simulate=fresh_weights,
    points=(law("erf", 2.7, 0.6, depth=3, width=192, ratios=(1.25, 0.75, 1.5), samples=20, outputs=5),),
    budget=3072,
    seconds=1.3,
)


def _moments(p: Point) -> Propagation:
    activations = resolve(p.activation, p.depth - 1)
    return propagate(activations, weight_variance=p.weight_variance, bias_variance=p.bias_variance)


def _independent_gates(p: Point) -> float:
    """Slopes averaged for every sample by itself, over those averaged for the pair."""
    m, slopes = _moments(p), gaussian_kernels(resolve(p.activation, 1)[0]).derivative
    triples = zip(m.variance, m.covariance, m.gap, strict=True)
    return float(np.prod([slopes(a, b, d).overlap / slopes(a, 0.0, a).overlap for a, b, d in triples]))


INDEPENDENCE = wide(
    id="karakida2019/gradient-independence",
    entries=("C22",),
    source=f"{PAPER}, assumption 3.2",
    no_theory=NoTheory.MEASURED,
    statement=r"\mathbb{E}\, \tilde q_{st}^1 \text{ with the weights of the forward pass} = "
    r"\mathbb{E}\, \tilde q_{st}^1 \text{ with fresh ones}",
    says="Fresh random weights on the way back leave the mean overlap of two samples' gradients as it is.",
    experiment=FRESH,
    kind=Kind.RATIO,
    score=("true_mean", "fresh_mean"),
    predict=lambda _: 1.0,
    margin_reason=f"{WIDE}; they differ by O(1/M)",
    rivals={"fresh slopes as well": _independent_gates, "half": lambda _: 0.5},
    quantity="backward order parameter, true over fresh weights",
)

# --- scatter of the Gram entries, hence the constants of the bounds -------------------------------------------


def scatter_at_large_width(block: Block, point: Point) -> Arrays:
    """Variance of centred cosines between gradients of one output, times the width."""
    return {"same": _scatter(few_signals.passed_gram(passed_at(block, point)), point.width)["same"]}


def scatter_by_width(block: Block, point: Point) -> Arrays:
    """Variance of centred cosines between gradients of two outputs, times the width, at every width."""

    def other(block: Block, width: int) -> Arrays:
        gram = fisher_gram.gram(network_of(block, point, width=width), point.activation)
        return {"other": _scatter(gram, width)["other"]}

    return by_width(block, point, other)


def _scatter(gram: Any, width: int) -> Any:
    outputs = gram.shape[1]
    norms = gram.diagonal(dim1=1, dim2=2).diagonal(dim1=1, dim2=2).mean(2)
    variances = width * pair_scatter.pair_variance(gram) / (norms[:, :, None] * norms[:, None, :])
    own, every = variances.diagonal(dim1=1, dim2=2).sum(1), variances.sum((1, 2))
    return {"same": own / outputs, "other": (every - own) / (outputs * (outputs - 1))}


RATIOS = (1.25, 0.75, 1.5, 0.875)

SAME = one_network(
    id="karakida2019/scatter-of-one-output",
    simulate=scatter_at_large_width,
    points=(law("erf", 2.3, 3.1, depth=4, width=256, ratios=RATIOS, samples=20, outputs=3),),
    budget=2048,
    seconds=1.7,
)

OTHER = at_each_width(
    id="karakida2019/scatter-of-two-outputs",
    simulate=scatter_by_width,
    points=(
        law(
            "erf",
            5.3,
            3.1,
            depth=4,
            widths=(16, 32, 64, 128, 256),
            networks=(4, 4, 1, 1, 1),
            ratios=RATIOS,
            samples=14,
            outputs=8,
        ),
    ),
    budget=1920,
    seconds=15.0,
    tier=Tier.FULL,
)


def _setting(p: Point) -> dict[str, Any]:
    return setting(p) | {"width_ratios": p.ratios}


def _same_output_variance(p: Point) -> float:
    """Variance S_same of a centred entry of the Gram matrix, for one output."""
    return fisher.gram_entry_variances(**_setting(p)).same


def _other_output_variance(p: Point) -> float:
    """Variance S_diff of a centred entry of the Gram matrix, for two outputs."""
    return fisher.gram_entry_variances(**_setting(p)).other


def _kappas(p: Point) -> fisher.Kappas:
    return fisher.kappas(**_setting(p))


def _norm(p: Point) -> float:
    return (_kappas(p).alpha * _kappas(p).kappa1) ** 2


def _forward_only(p: Point) -> tuple[float, float]:
    """Parts of S_same that input overlaps and the noise of the forward pass make, slopes on the way back fixed.

    A disturbance of the overlap in layer l goes on as sigma_w^2 I_phi' from layer to layer, which is what the
    covariance of the backward signals is made of: it arrives in every later term with the weight alpha q_tilde.
    """
    m, ratios = _moments(p), np.asarray(p.ratios)
    kernel = gaussian_kernels(resolve(p.activation, 1)[0])
    later = ratios[::-1].cumsum()[::-1]
    inputs = (m.q_tilde_st[0] * later[0]) ** 2 / ratios[0]
    noise = [kernel.fluctuations(b, d)[0] for b, d in zip(m.covariance, m.gap, strict=True)]
    hidden = zip(m.q_tilde_st[1:], later[1:], noise, ratios[1:], strict=True)
    return float(inputs), float(sum((t * a) ** 2 * v / r for t, a, v, r in hidden))


def _over_norm(value: Prediction) -> Prediction:
    return lambda p: value(p) / _norm(p)


SCATTER_CLAIMS = (
    wide(
        id="karakida2019/scatter-of-one-output",
        entries=("C28",),
        source=f"ours: c2 of {PAPER}, theorem 3.3, eq. (18), derived",
        passage=OURS,
        statement=r"M\, \mathbb{E} \frac{\mathrm{Var}\, K_{kk}(s, t)}{\bar K_{kk}^2} \to "
        r"\frac{S_{\rm same}}{\alpha^2 \kappa_1^2}, \quad c_2 = C S_{\rm same} + C (C - 1) S_{\rm diff}",
        says="Products of one output's gradients at two samples scatter with the variance that a derived recursion"
        " gives.",
        experiment=SAME,
        score="same",
        predict=_over_norm(_same_output_variance),
        margin_reason=f"{WIDE}; the offset is O(1/M)",
        rivals={
            "input overlaps only": _over_norm(lambda p: _forward_only(p)[0]),
            "forward part only": _over_norm(lambda p: sum(_forward_only(p))),
            "as for two outputs": _over_norm(_other_output_variance),
            "of the gap": lambda p: (
                _same_output_variance(p) / (_kappas(p).alpha * _kappas(p).difference) ** 2
            ),
        },
        quantity="variance of centred Gram entries of one output over the squared mean diagonal, times M",
    ),
    limit(
        id="karakida2019/scatter-of-two-outputs",
        entries=("C28",),
        source=f"ours: c2 of {PAPER}, theorem 3.3, eq. (18), derived",
        passage=OURS,
        statement=r"\lim_{M \to \infty} M\, \mathbb{E} \frac{\mathrm{Var}\, K_{kk'}(s, t)}{\bar K_{kk} \bar K_{k'k'}} "
        r"= \frac{S_{\rm diff}}{\alpha^2 \kappa_1^2} > 0 \quad (k \ne k')",
        says="Products of two outputs' gradients keep a variance, scaled by the width, that a derived recursion "
        "gives.",
        experiment=OTHER,
        score="other",
        order=approach(OTHER, "other", _over_norm(_other_output_variance)),
        predict=_over_norm(_other_output_variance),
        margin=0.06,
        margin_reason="a second-order part of c2, extrapolated from three times its value at M = 16; 6 % of it is "
        "0.7 % of c2 with two outputs, 2.8 % with eight",
        rivals={
            "none": lambda _: 0.0,
            "as for one output": _over_norm(_same_output_variance),
            "as at M = 256": lambda p: 1.2 * _other_output_variance(p) / _norm(p),
            "three for one": lambda p: 3 * _other_output_variance(p) / _norm(p),
        },
        quantity="variance of centred Gram entries of two outputs over their mean diagonals, times M",
    ),
)


def _linear(_: Generator, point: Point) -> Arrays:
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


CLOSED_FORM = Identity(
    id="karakida2019/linear-bound-constants",
    entries=("C28",),
    source=f"ours, beside theorem 3.3 of {PAPER}",
    passage=OURS,
    statement=r"\frac{c_2}{C} = \sigma_w^{4 (L-1)} \sum_{l=0}^{L-1} \frac{A_l^2}{\alpha_l}, \quad "
    r"c_1 = \frac{c_2}{C \sigma_w^{2 (L-1)} A_0}, \quad "
    r"A_l = \sum_{j \ge l} \alpha_j \quad \text{for linear networks}",
    says="For linear networks, both constants of the mean-subtraction bounds have a closed form in sums of "
    "widths.",
    routes=_linear,
    points=(
        Point(ratios=(1.75, 0.375), outputs=1, weight_variance=2.3, bias_variance=0.0),
        Point(ratios=(0.5, 1.75, 1.25, 0.75), outputs=3, weight_variance=0.6, bias_variance=0.7),
        Point(ratios=(2.25, 0.75, 1.5, 0.25, 1.0, 3.5), outputs=2, weight_variance=1.4, bias_variance=1.3),
    ),
    tolerance=1e-13,
    tolerance_reason="rounding of a recursion over six layers",
    quantity="constants of the bounds",
)

# --- mean subtraction of few samples --------------------------------------------------------------------------


def _few_samples(block: Block, point: Point) -> Arrays:
    """Mean of the eigenvalues that mean subtraction leaves."""
    gram = few_signals.passed_gram(passed_at(block, point))
    left = point.outputs * (point.samples - 1)
    return {"mean_of_nonzero": fisher_gram.fisher_trace(fisher_gram.centred(gram)) / left}


FEW = one_network(
    id="karakida2019/few-samples",
    simulate=_few_samples,
    points=(
        law("relu", 2.6, 0.4, depth=3, width=160, samples=2, outputs=5),
        law("tanh", 2.7, 0.6, depth=4, width=160, samples=3, outputs=5),
        law("erf", 0.8, 2.1, depth=3, width=160, samples=13, outputs=5),
    ),
    budget=4096,
    seconds=0.27,
)


def _at_fixed_samples(p: Any) -> float:
    return mean_subtraction.mean_subtracted_largest(**setting(p, "width", "samples"), finite_width=True)


def _instead(p: Any, constant: float) -> float:
    """Eq. (17) with another constant in place of kappa1 - kappa2."""
    return constant * kappas_at(p).alpha * p.width / p.samples


MEAN_OF_NONZERO = wide(
    id="karakida2019/mean-of-nonzero",
    entries=("C24", "C25"),
    source=f"{PAPER}, theorem 3.3, eqs. (16) and (17), for the mean of the eigenvalues that are not zero",
    statement=r"\frac{\mathrm{Tr}\,\bar F}{C (T - 1)} = \frac{1}{T} "
    r"\Big(\alpha M (\kappa_1 - \kappa_2) + \sum_l (\tilde q_t^l - \tilde q_{st}^l)\Big),\quad T \ge 2",
    says="With mean subtraction of few samples, the non-zero Fisher eigenvalues have the mean that the theorem"
    " gives for the largest.",
    experiment=FEW,
    score="mean_of_nonzero",
    predict=_at_fixed_samples,
    margin_reason=f"linear in the Gram matrix: unbiased up to O(1/M); {WIDE}",
    rivals={
        "over T - 1": lambda p: _at_fixed_samples(p) * p.samples / (p.samples - 1),
        "1 - 2/T for 1 - 1/T": lambda p: _at_fixed_samples(p) * (p.samples - 2) / (p.samples - 1),
        "kappa1": lambda p: _instead(p, kappas_at(p).kappa1),
        "kappa1 - kappa2 (1 - 1/T)": lambda p: _instead(
            p, kappas_at(p).kappa1 - (1 - 1 / p.samples) * kappas_at(p).kappa2
        ),
        "no alpha": lambda p: _at_fixed_samples(p) / (p.depth - 1),
    },
    quantity="mean of the eigenvalues that are not zero after mean subtraction",
    axis="samples",
)

# --- growth and value of what is behind the bounds ------------------------------------------------------------


def bounds_by_width(block: Block, point: Point) -> Arrays:
    """Root of the summed squares of the eigenvalues after mean subtraction, T = M / rho."""

    def root(block: Block, width: int) -> Arrays:
        network = network_of(block, point, width=width, samples=round(width / point.rho))
        gram = fisher_gram.centred(fisher_gram.gram(network, point.activation))
        return {"root_of_squares": fisher_gram.trace_of_square(gram).sqrt()}

    return by_width(block, point, root)


BOUNDS = at_each_width(
    id="karakida2019/bounds-by-width",
    simulate=bounds_by_width,
    points=(
        law(
            "tanh",
            1.6,
            0.3,
            depth=3,
            widths=(16, 32, 64, 128),
            networks=(6, 3, 2, 1),
            ratios=RATIOS[:3],
            rho=1.6,
            outputs=2,
        ),
    ),
    budget=640,
    seconds=1.6,
)


def bounds_at_large_width(block: Block, point: Point) -> Arrays:
    """Bounds over the mean of the non-zero eigenvalues, without the factor of T - 1 in T directions."""
    gram = fisher_gram.centred(fisher_gram.gram(network_of(block, point), point.activation))
    squares, trace = fisher_gram.trace_of_square(gram), fisher_gram.fisher_trace(gram)
    mean = trace / point.outputs / (point.samples - 1)
    root = (squares / (1 - 1 / point.samples)).sqrt()
    return {"quotient": squares / (trace * mean), "root": root / mean}


VALUES = one_network(
    id="karakida2019/values-of-bounds",
    simulate=bounds_at_large_width,
    points=tuple(
        law(activation, 0.8, 2.1, depth=3, width=320, ratios=RATIOS[:3], samples=70, outputs=2)
        for activation in ("erf", "hard_tanh")  # smooth, and clipped
    ),
    budget=512,
    seconds=0.48,
)


def _bound(p: Point, name: str, width: int, samples: int) -> float:
    """Bound of eq. (18), by its name."""
    size = {"width": width, "samples": samples, "outputs": p.outputs}
    return getattr(mean_subtraction.mean_subtracted_statistics(**_setting(p), **size), name)


def _growth_of_upper(p: Point) -> float:
    """Power of the width by which the upper bound grows from the narrowest network to the widest, T = M / rho."""
    widths = p.widths[0], p.widths[-1]
    narrow, wide = (_bound(p, "upper", width, round(width / p.rho)) for width in widths)
    return math.log(wide / narrow) / math.log(widths[1] / widths[0])


def _over_mean(name: str) -> Prediction:
    """Over the mean of the eigenvalues that are not zero."""
    return lambda p: (
        _bound(p, name, p.width, p.samples)
        / mean_subtraction.mean_subtracted_largest(**_setting(p), width=p.width, samples=p.samples)
    )


_lower, _upper = _over_mean("lower"), _over_mean("upper")

OF_C1 = f"{WIDE}; the bias is O(1/M) of the part with c1"
AT_ONE_WIDTH = (
    "that one width is judged, and which: over widths from 8 on its limit was undecided at one of two seeds"
)

CLAIMS = (
    _rate(
        "forward-rate",
        "forward",
        r"\mathbb{E}\, \|\hat q_{st}^{L-1} - \hat q_{st}^{L-1 \prime}\| \sim M^{-1/2} \text{ for two networks}",
        "The overlaps of activations between inputs",
    ),
    _rate(
        "backward-rate",
        "backward",
        r"\mathbb{E}\, \|\tilde q_{st}^1 - \tilde q_{st}^{1 \prime}\| \sim M^{-1/2} \text{ for two networks}",
        "The overlaps of back-propagated gradients between inputs",
    ),
    INDEPENDENCE,
    *SCATTER_CLAIMS,
    CLOSED_FORM,
    MEAN_OF_NONZERO,
    exponent(
        id="karakida2019/upper-bound-growth",
        entries=("C30",),
        source=f"{PAPER}, section 3.2, order of the upper bound, q* = 1/2",
        statement=r"\mathbb{E} \sqrt{\mathrm{Tr}\, \bar F^2} \sim M^{1 - q^*} = M^{1/2} \quad (T = M / \rho)",
        says="With mean subtraction and samples in proportion to the width, the upper bound of the largest Fisher "
        "eigenvalue grows like its root.",
        experiment=BOUNDS,
        score="root_of_squares",
        predict=_growth_of_upper,
        margin=0.1,
        rivals={"q* = 1/4": lambda _: 0.75, "q* = 0": lambda _: 1.0, "as the eigenvalue": lambda _: 0.0},
        quantity="upper bound of the largest eigenvalue after mean subtraction",
    ),
    wide(
        id="karakida2019/squares-over-trace",
        entries=("C26", "C28"),
        source=f"{PAPER}, theorem 3.3, eq. (18), the quotient behind its lower bound, with c1 derived",
        statement=r"\mathbb{E}\,\frac{\mathrm{Tr}\,\bar F^2}{m \mathrm{Tr}\,\bar F} = "
        r"1 + \frac{c_1}{\rho \alpha (\kappa_1 - \kappa_2)},\quad m = \frac{\mathrm{Tr}\,\bar F}{C (T - 1)}",
        says="With mean subtraction, fluctuations raise the second moment of Fisher eigenvalues above that of "
        "equal ones by the derived constant of the lower bound.",
        experiment=VALUES,
        score="quotient",
        predict=_lower,
        margin_reason=OF_C1,
        pilot=AT_ONE_WIDTH,
        rivals={
            "without c1": lambda _: 1.0,
            "c1 over the number of outputs": lambda p: 1 + (_lower(p) - 1) / p.outputs,
            "half more of c1": lambda p: 1.5 * _lower(p) - 0.5,
        },
        quantity="mean square of the eigenvalues after mean subtraction over that of equal ones",
    ),
    wide(
        id="karakida2019/root-of-squares",
        entries=("C27", "C28"),
        source=f"{PAPER}, theorem 3.3, eq. (18), the root behind its upper bound, with c2 derived",
        statement=r"\mathbb{E}\,\frac{1}{m} \sqrt{\frac{T\,\mathrm{Tr}\,\bar F^2}{T - 1}} = "
        r"\frac{\sqrt{(C \alpha^2 \rho (\kappa_1 - \kappa_2)^2 + c_2) M}}{\rho \alpha (\kappa_1 - \kappa_2)}",
        says="With mean subtraction, the root of the summed squared Fisher eigenvalues is the theorem's upper "
        "bound, its constant derived.",
        experiment=VALUES,
        score="root",
        predict=_upper,
        margin_reason=OF_C1,
        pilot=AT_ONE_WIDTH,
        rivals={
            "without c2": lambda p: _upper(p) / math.sqrt(_lower(p)),
            "one output": lambda p: _upper(p) / math.sqrt(p.outputs),
        },
        quantity="root of Tr F^2 after mean subtraction, over the mean of the eigenvalues",
    ),
)
