"""Karakida, Akaho and Amari (2019), theorem 3.3: how order parameters scatter, and the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, signals
from theory.activations import gaussian_kernels, resolve
from theory.fisher import mean_subtraction
from theory.order_parameters import Propagation, propagate
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import (
    WIDE,
    at_each_width,
    exponent,
    law,
    lazy_network_of,
    network_of,
    one_network,
    power_of_width,
    setting,
    wide,
    width_by_width,
)
from verify.model import Arrays, Claim, Experiment, Kind, NoTheory

RATIOS = (1.25, 0.75, 1.5)

# --- order parameters of two networks ------------------------------------------------------------------------


@width_by_width
def pairs_of_networks(block: Block, point: Point, width: int) -> Arrays:
    """Distance of the order parameters of two networks, forward in the last layer, backward in the first."""
    networks = [lazy_network_of(block, point, width=width) for _ in range(2)]
    passed = [signals.forward(network, point.activation) for network in networks]
    hats = [p.activations[-1] @ p.activations[-1].mT / p.activations[-1].shape[-1] for p in passed]
    tildes = [_overlaps(network, point, p) for network, p in zip(networks, passed, strict=True)]
    return {"forward": _distance(hats), "backward": _distance(tildes)}


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
    replicate="pairs of networks with their inputs at each width",
    simulate=pairs_of_networks,
    points=(
        law(
            "erf",
            2.7,
            0.6,
            depth=3,
            widths=(16, 32, 64, 128, 256),
            networks=(3, 4, 1, 1, 1),
            ratios=RATIOS,
            samples=10,
            outputs=9,
        ),
    ),
    budget=352,
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
    network, other = (lazy_network_of(block, point) for _ in range(2))
    passed = signals.forward(network, point.activation)
    return {
        f"{name}_mean": _off_diagonal_mean(_overlaps(weights, point, passed))
        for name, weights in (("true", network), ("fresh", other))
    }


FRESH = Experiment(
    id="karakida2019/fresh-weights",
    replicate="one network with its inputs, and other weights",
    simulate=fresh_weights,
    points=(law("erf", 2.7, 0.6, depth=3, width=576, ratios=RATIOS, samples=8, outputs=5),),
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


# --- growth and value of what is behind the bounds ------------------------------------------------------------


def _setting(p: Point) -> dict[str, Any]:
    return setting(p) | {"width_ratios": p.ratios}


@width_by_width
def bounds_by_width(block: Block, point: Point, width: int) -> Arrays:
    """Root of the summed squares of the eigenvalues after mean subtraction, T = M / rho."""
    network = network_of(block, point, width=width, samples=round(width / point.rho))
    gram = fisher_gram.centred(fisher_gram.gram(network, point.activation))
    return {"root_of_squares": fisher_gram.trace_of_square(gram).sqrt()}


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
            networks=(6, 8, 2, 1),
            ratios=RATIOS,
            rho=1.6,
            outputs=2,
        ),
    ),
    budget=512,
    seconds=1.6,
)


def bounds_at_large_width(block: Block, point: Point) -> Arrays:
    """Lower bound over the mean of the non-zero eigenvalues, in T - 1 of T directions."""
    gram = fisher_gram.centred(fisher_gram.gram(network_of(block, point), point.activation))
    squares, trace = fisher_gram.trace_of_square(gram), fisher_gram.fisher_trace(gram)
    mean = trace / point.outputs / (point.samples - 1)
    return {"quotient": squares / (trace * mean)}


VALUES = one_network(
    id="karakida2019/values-of-bounds",
    simulate=bounds_at_large_width,
    points=tuple(
        law(activation, 0.8, 2.1, depth=3, width=320, ratios=RATIOS, samples=70, outputs=2)
        for activation in ("erf", "hard_tanh", "relu")  # smooth, clipped, and with a kink
    ),
    budget=512,
    seconds=0.48,
)


def _bound(p: Point, name: str, width: int, samples: int) -> float:
    """Bound of eq. (18), by its name."""
    size = {"width": width, "samples": samples, "outputs": p.outputs}
    return getattr(mean_subtraction.mean_subtracted_statistics(**_setting(p), **size), name)


def _lower(p: Point) -> float:
    """Lower bound over the mean of the eigenvalues that are not zero."""
    mean = mean_subtraction.mean_subtracted_largest(**_setting(p), width=p.width, samples=p.samples)
    return _bound(p, "lower", p.width, p.samples) / mean


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
    exponent(
        id="karakida2019/upper-bound-growth",
        entries=("C30",),
        source=f"{PAPER}, section 3.2, order of the upper bound, q* = 1/2",
        statement=r"\mathbb{E} \sqrt{\mathrm{Tr}\, \bar F^2} \sim M^{1 - q^*} = M^{1/2} \quad (T = M / \rho)",
        says="With mean subtraction and samples in proportion to the width, the upper bound of the largest Fisher "
        "eigenvalue grows like its root.",
        experiment=BOUNDS,
        score="root_of_squares",
        predict=lambda p: power_of_width(p, lambda width: _bound(p, "upper", width, round(width / p.rho))),
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
)
