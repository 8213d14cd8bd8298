"""Experiments and claims of Karakida, Akaho and Amari (2019): Fisher information of wide networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, fisher_gram, signals
from theory import fisher
from theory.order_parameters import OrderParameters, order_parameters
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.small_networks import (
    architectures,
    distance,
    jacobian_gram,
    small_network,
)
from verify.claims.karakida2019.wide_networks import QUANTITIES, passed_at
from verify.model import AnyClaim, Claim, ExactProperty, Experiment, NoTheory, Passage, Standing

__all__ = ["CLAIMS"]

# --- order parameters ----------------------------------------------------------------------------------------


def wide_signals(block: Block, point: Point) -> Mapping[str, Any]:
    """Measured order parameters: forward in the last hidden layer, backward in the first."""
    passed = passed_at(block, point)
    found = signals.moments_of_signals(passed.signals, reversed(passed.deltas))
    return {
        "forward_variance": found["q_hat_t"][:, -1],
        "forward_covariance": found["q_hat_st"][:, -1],
        "backward_variance": found["q_tilde_t"][:, 0],
        "backward_covariance": found["q_tilde_st"][:, 0],
    }


SETTINGS = (
    Point(activation="relu", weight_variance=2.6, bias_variance=0.4),
    Point(activation="tanh", weight_variance=2.7, bias_variance=0.6),
    Point(activation="erf", weight_variance=0.8, bias_variance=2.1),
)

SIGNALS = Experiment(
    id="karakida2019/signals",
    replicate="one network with its inputs",
    simulate=wide_signals,
    points=tuple(s | {"depth": 3, "width": 400, "samples": 5, "outputs": 4} for s in SETTINGS),
    budget=2048,
    seconds=0.32,
)


def _parameters(p: Point, **changed: Any) -> OrderParameters:
    setting = {name: p[name] for name in ("activation", "depth", "weight_variance", "bias_variance")}
    return order_parameters(**{**setting, **changed})


def _last(name: str, **changed: Any) -> Callable[[Point], float]:
    return lambda p: float(getattr(_parameters(p, **changed), name)[-1])


def _first(name: str, **changed: Any) -> Callable[[Point], float]:
    return lambda p: float(getattr(_parameters(p, **changed), name)[0])


def _backward_without_weights(name: str) -> Callable[[Point], float]:
    """The recursion without its factor sigma_w^2 in every layer."""
    return lambda p: _first(name)(p) / p.weight_variance ** (p.depth - 1)


def _one_layer_less(name: str) -> Callable[[Point], float]:
    return lambda p: float(getattr(_parameters(p), name)[-2])


WIDE = "at most 3 % for wide networks; the bias is O(1/M), 0.2 % at M = 400"


def _signal_claim(
    name: str, entry: str, equation: str, statement: str, says: str, score: str, predict: Any, rivals: Any
) -> Claim:
    return Claim(
        id=f"karakida2019/{name}",
        entries=(entry,),
        source=f"{PAPER}, {equation}",
        statement=statement,
        says=says,
        experiment=SIGNALS,
        score=score,
        predict=predict,
        margin=0.03,
        margin_reason=WIDE,
        rivals=rivals,
        quantity=QUANTITIES[score],
    )


SIGNAL_CLAIMS: tuple[AnyClaim, ...] = (
    _signal_claim(
        "forward-variance",
        "C5",
        "eqs. (5) and (6)",
        r"\hat q_t^l = \int Dz\, \phi(\sqrt{q_t^l}\, z)^2,\quad q_t^{l+1} = \sigma_w^2 \hat q_t^l + \sigma_b^2",
        "In a wide random network, the mean square of the last hidden layer's activations follows the "
        "recursion of the variances over layers.",
        "forward_variance",
        _last("q_hat_t"),
        {"without biases": _last("q_hat_t", bias_variance=0.0), "one layer less": _one_layer_less("q_hat_t")},
    ),
    _signal_claim(
        "forward-covariance",
        "C5",
        "eqs. (5) and (6)",
        r"\hat q_{st}^l = I_\phi[q_t^l, q_{st}^l],\quad q_{st}^{l+1} = \sigma_w^2 \hat q_{st}^l + \sigma_b^2",
        "In a wide random network, the mean product of the last hidden layer's activations for two inputs "
        "follows the recursion of the covariances.",
        "forward_covariance",
        _last("q_hat_st"),
        {
            "variance for covariance": _last("q_hat_t"),
            "without biases": _last("q_hat_st", bias_variance=0.0),
            "one layer less": _one_layer_less("q_hat_st"),
        },
    ),
    _signal_claim(
        "backward-variance",
        "C7",
        "eq. (7)",
        r"\tilde q_t^l = \sigma_w^2\, \tilde q_t^{l+1} \int Dz\, \phi'(\sqrt{q_t^l}\, z)^2",
        "In a wide random network, the squared norm of the gradient that reaches the first layer follows "
        "the backward recursion of the variances.",
        "backward_variance",
        _first("q_tilde_t"),
        {
            "without sigma_w^2": _backward_without_weights("q_tilde_t"),
            "covariance for variance": _first("q_tilde_st"),
        },
    ),
    _signal_claim(
        "backward-covariance",
        "C7",
        "eq. (7)",
        r"\tilde q_{st}^l = \sigma_w^2\, \tilde q_{st}^{l+1} I_{\phi'}[q_t^l, q_{st}^l]",
        "In a wide random network, the inner product of two inputs' gradients that reach the first layer "
        "follows the backward recursion of the covariances.",
        "backward_covariance",
        _first("q_tilde_st"),
        {
            "without sigma_w^2": _backward_without_weights("q_tilde_st"),
            "variance for covariance": _first("q_tilde_t"),
        },
    ),
)

# --- eigenvalue statistics of the Fisher information ---------------------------------------------------------


def wide_fisher(block: Block, point: Point) -> Mapping[str, Any]:
    """Statistics linear in the Gram matrix, hence unbiased: traces and the Rayleigh quotient at equal weights."""
    passed = passed_at(block, point)
    gram, count = few_signals.passed_gram(passed), passed.parameters
    return {
        "mean": fisher_gram.fisher_trace(gram) / count,
        "rayleigh": fisher_gram.rayleigh(gram),
        "mean_subtracted": fisher_gram.fisher_trace(fisher_gram.centred(gram)) / count,
    }


FISHER = Experiment(
    id="karakida2019/fisher",
    replicate="one network with its inputs",
    simulate=wide_fisher,
    points=tuple(s | {"depth": 3, "width": 240, "samples": 6, "outputs": 4} for s in SETTINGS),
    budget=2048,
    seconds=0.29,
)


def _arguments(p: Point) -> dict[str, Any]:
    names = ("activation", "depth", "width", "samples", "outputs", "weight_variance", "bias_variance")
    return {name: p[name] for name in names}


def _statistics(p: Point, *, finite_width: bool = True) -> fisher.FisherStatistics:
    return fisher.eigenvalue_statistics(**_arguments(p), finite_width=finite_width)


def _kappas(p: Point) -> fisher.Kappas:
    return fisher.kappas(
        p.activation, depth=p.depth, weight_variance=p.weight_variance, bias_variance=p.bias_variance
    )


def _count(p: Point) -> int:
    return int(fisher.parameter_count(depth=p.depth, width=p.width, outputs=p.outputs))


def _eq_11_as_read(p: Point) -> float:
    """Trace of the Fisher matrix over P with forward for backward signals in kappa1, as our copy reads."""
    known = _parameters(p)
    q = p.weight_variance * known.q_hat_t[-1] + p.bias_variance
    hats = np.append(known.q_hat_t, q)  # the read-out is linear: its activation is its pre-activation
    misread = float((hats[1:] * hats[:-1]).sum()) / (p.depth - 1)
    excess = (misread - _kappas(p).kappa1) * (p.depth - 1) * p.width * p.outputs / _count(p)
    return float(_statistics(p).mean) + excess


def _largest(p: Point, diagonal: float, off_diagonal: float) -> float:
    """Mix kappa1 and kappa2, times alpha M."""
    return (p.depth - 1) * p.width * (diagonal * _kappas(p).kappa1 + off_diagonal * _kappas(p).kappa2)


def _subtracted(p: Point) -> float:
    return float(fisher.mean_subtracted_statistics(**_arguments(p), finite_width=True).mean)


LINEAR = "linear in the Gram matrix: unbiased up to O(1/M), 0.2 % at M = 240; at most 3 % for wide networks"

FISHER_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/mean-eigenvalue",
        entries=("C12", "C16"),
        source=f"{PAPER}, theorem 2.2, eqs. (10) and (11)",
        passage=Passage(Standing.MISPRINT, "obtained using order parameters", "Eq 11", slip=True),
        statement=r"m_\lambda = \frac{C}{P} \Big(\alpha M \kappa_1 + \sum_l \tilde q_t^l\Big),\quad "
        r"\kappa_1 = \sum_{l=1}^{L} \frac{\alpha_{l-1}}{\alpha} \tilde q_t^l\, \hat q_t^{l-1}",
        says="The mean Fisher eigenvalue of a wide network follows from the backward variance of each layer "
        "times the forward variance below it, with the biases counted.",
        experiment=FISHER,
        score="mean",
        predict=lambda p: float(_statistics(p).mean),
        printed=_eq_11_as_read,
        reads=r"\kappa_1 = \sum_{l=1}^{L} \frac{\alpha_{l-1}}{\alpha} \hat q_t^l\, \hat q_t^{l-1}",
        finding="As our copy reads, eq. (11) has a forward order parameter in both places, where kappa1 pairs the "
        "backward one of a layer with the forward one below it; a lost tilde, very likely a slip of the conversion.",
        margin=0.03,
        margin_reason=LINEAR,
        rivals={
            "no alpha": lambda p: float(_statistics(p).mean) / (p.depth - 1),
            "kappa2 for kappa1": lambda p: float(_statistics(p).mean) * _kappas(p).kappa2 / _kappas(p).kappa1,
            "one output": lambda p: float(_statistics(p).mean) / p.outputs,
            "P missing a layer": lambda p: float(_statistics(p).mean) * (p.depth - 1) / (p.depth - 2),
        },
        quantity="mean eigenvalue of the Fisher matrix",
        axis="weight_variance",
    ),
)

# --- the Gram matrix -----------------------------------------------------------------------------------------


def _gram_difference(rng: np.random.Generator, point: Point, **options: Any) -> float:
    """Largest difference of the layer-wise Gram matrix and J J' by automatic differentiation, relative."""
    network = small_network(rng, point)
    found = fisher_gram.gram(network, point.activation, **options)[0]
    return distance(found, jacobian_gram(network, point, scaled=False))


GRAM_PROPERTY = ExactProperty(
    id="karakida2019/gram",
    entries=("C4", "C17", "C55"),
    source=f"{PAPER}, eqs. (4) and (8)",
    no_theory=NoTheory.MEASURED,
    statement=r"J J^\top = \sum_l \big[\delta^l(s)^\top \delta^l(t)\big] \big[h^{l-1}(s)^\top h^{l-1}(t) + 1\big]",
    says="In any network, the Gram matrix of the output gradients, biases included, is a sum over layers of "
    "backward overlaps times forward overlaps.",
    domain=architectures(least_bias=0.0),
    violation=_gram_difference,
    examples=(
        Point(activation="tanh", widths=(4, 6, 5, 3), samples=4, weight_variance=1.7, bias_variance=0.3),
        Point(activation="relu", widths=(5, 7, 2), samples=3, weight_variance=2.1, bias_variance=0.0),
    ),
    tolerance=1e-12,
    tolerance_reason="an exact identity in float64",
    rivals={"no gradient of the biases": lambda rng, point: _gram_difference(rng, point, biases=False)},
    seconds=0.026,
)

CLAIMS: tuple[AnyClaim, ...] = (*SIGNAL_CLAIMS, *FISHER_CLAIMS, GRAM_PROPERTY)
