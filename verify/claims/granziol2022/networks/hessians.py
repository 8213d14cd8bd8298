"""Granziol, Zohren and Roberts (2022): Hessian and Gauss-Newton matrix of a network, paths, small loss, ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import special

from simulate import networks, operators
from simulate.monte_carlo import Point
from simulate.perceptrons import curvature, per_sample, trained as trained_perceptrons
from theory import softmax
from theory.batch_hessian import ranks
from verify.claims import Array
from verify.claims.drawn_networks import (
    COUNTS,
    FINELY_RESOLVED,
    ROUNDING,
    Violation,
    bias_free_objective,
    bias_free_on_images,
    on_noise,
    rank_of,
)
from verify.claims.granziol2022 import PAPER
from verify.model import (
    OURS,
    Arrays,
    ExactProperty,
    Identity,
    NoTheory,
    as_stated,
    misprint,
)
from verify.model.domains import Between, Domain, Each, Either, OneOf


def _probabilities(logits: Array) -> Array:
    return special.softmax(logits, axis=-1)


def split_terms(rng: Generator, point: Point) -> Arrays:
    """Hessian of the mean loss by its products; its two terms from closed derivatives of the logits."""
    import torch

    weights, x, labels = bias_free_on_images(rng, point)
    every = torch.eye(sum(weight.numel() for weight in weights), dtype=torch.float64)
    net = curvature.ProjectedMlp(weights, x, labels, every)
    logits, jacobian, second = (np.asarray(d) for d in (net.logits, net.jacobian, net.second_derivatives))
    p, hot = _probabilities(logits), np.eye(logits.shape[1])[labels]
    gauss_newton = np.einsum("nkp,nkl,nlq->pq", jacobian, softmax.covariance(p), jacobian) / len(p)

    def residual(slopes: Array) -> Array:
        return np.einsum("nk,nkpq->pq", slopes, second) / len(p)

    return {
        "Hessian": operators.hessian(bias_free_objective(weights, x, labels)).dense(),
        "two terms": gauss_newton + residual(p - hot),
        "Gauss-Newton term alone": gauss_newton,
        "second term with the other sign": gauss_newton - residual(p - hot),
        "probabilities for derivatives of the loss": gauss_newton + residual(p),
    }


def _fisher(rng: Generator, point: Point) -> Arrays:
    """Gauss-Newton matrix by its products; second moments of gradients over labels of three kinds, one by one."""
    weights, x, labels = bias_free_on_images(rng, point)
    p = _probabilities(_forward(weights, x))
    network, every = per_sample.flattened(weights), np.ones(len(x), dtype=np.int64)
    scores = np.stack(
        [per_sample.loss_gradients(*network, x, k * every, "relu").numpy() for k in range(p.shape[1])], axis=1
    )

    def moments(shares: Array) -> Array:
        return np.einsum("nk,nkp,nkq->pq", shares, scores, scores) / len(p)

    return {
        "Gauss-Newton": operators.gauss_newton(bias_free_objective(weights, x, labels)).dense(),
        "labels from the model": moments(p),
        "labels of the data": moments(np.eye(p.shape[1])[labels]),
        "uniform labels": moments(np.full(p.shape, 1 / p.shape[1])),
    }


def _root(rng: Generator, point: Point) -> Arrays:
    """Gauss-Newton matrix of one sample, and products of factors with a matrix root and with element-wise ones."""
    weights, x, labels = on_noise(rng, (point.inputs, point.hidden, point.classes), 1)
    found = per_sample.all_logit_derivatives(*per_sample.flattened(weights), x, "relu")
    jacobian, outer = found.jacobian[0].numpy(), softmax.covariance(_probabilities(found.logits[0].numpy()))
    values, vectors = np.linalg.eigh(outer)
    matrix_root = (vectors * np.sqrt(values.clip(0.0))) @ vectors.T
    element_wise = jacobian.T @ np.sqrt(outer.astype(complex))
    moduli = jacobian.T @ np.sqrt(np.abs(outer))
    return {
        "Gauss-Newton": operators.gauss_newton(bias_free_objective(weights, x, labels)).dense(),
        "matrix root": jacobian.T @ matrix_root @ matrix_root.T @ jacobian,
        "element-wise root": element_wise @ element_wise.T,
        "element-wise root, conjugated": element_wise @ element_wise.conj().T,
        "roots of the moduli": moduli @ moduli.T,
    }


def cross_entropy_hessian(p: Array, label: int, first: Array, second: Array) -> Array:
    """Equation (20): Hessian of the loss of one sample from derivatives (K, P) and (K, P, P) of its logits."""
    mean = p @ first
    return -second[label] + np.tensordot(p, second, 1) + (first.T * p) @ first - np.outer(mean, mean)


def _eq_20_with(change: Callable[[Array, int, Array, Array], Array]) -> Violation:
    """Return the distance of a reading of equation (20) from automatic differentiation of the loss itself.

    Relative to the largest of its terms, which cancel where the network is sure of the label.
    """

    def violation(rng: Generator, point: Point) -> float:
        weights, x, labels = on_noise(rng, point.widths, point.samples)
        network = per_sample.flattened(weights)
        derivatives = per_sample.all_logit_derivatives(*network, x, point.activation)
        logits, first, second = (np.asarray(d) for d in derivatives)
        pieces = zip(_probabilities(logits), labels, first, second, strict=True)
        expected = per_sample.hessians(*network, x, labels, point.activation).numpy()
        terms = max(np.abs(second).max(), np.abs(first).max() ** 2) or 1.0
        return float(np.abs(np.stack([change(*sample) for sample in pieces]) - expected).max() / terms)

    return violation


def _rank_is(bound: Callable[[int, int, int], int]) -> Violation:
    """Return the distance of a batch's rank from a number, on a tanh network wide enough not to limit it."""

    def violation(rng: Generator, point: Point) -> float:
        widths = (point.inputs, point.samples + point.spare, point.classes)
        theta = per_sample.initial_parameters(rng, widths)
        x, labels = (
            rng.standard_normal((point.samples, point.inputs)),
            rng.integers(0, widths[-1], point.samples),
        )
        found = trained_perceptrons.perceptron_objective(widths, theta, x, labels)
        rank = rank_of(operators.gauss_newton(found).dense())
        return abs(rank - bound(point.samples, point.classes, len(theta)))

    return violation


_on_images = partial(
    Identity,
    points=(Point(images="digits", samples=7, hidden=5),),
    tolerance=1e-12,
    tolerance_reason=ROUNDING,
    data="digits",
)

_measured = partial(ExactProperty, no_theory=NoTheory.MEASURED, tolerance=1e-12, tolerance_reason=ROUNDING)

GAUSS_NEWTON_CLAIMS = (
    _on_images(
        id="granziol2022/hessian-split",
        entries=("B20",),
        source=f"{PAPER}, eq. (12), with the derivative by the output in its second term",
        passage=misprint("∂σ(f(w)) ∂wk", "Eq 12"),
        finding="As our copy reads, the second term has no derivative by the output, and no meaning.",
        statement=r"H = J^\top \frac{\partial^2 \ell}{\partial f^2} J + "
        r"\sum_{k=1}^{d_y} \frac{\partial \ell}{\partial f_k} \nabla^2 f_k",
        says="The Hessian of the loss is the Gauss-Newton matrix plus each output's curvature times the loss's "
        "derivative by it.",
        routes=split_terms,
        seconds=0.019,
        quantity="Hessian of a ReLU network 16-5-10",
    ),
    _on_images(
        id="granziol2022/gauss-newton-is-fisher",
        no_theory=NoTheory.MEASURED,
        entries=("B21",),
        source=f"{PAPER}, section 6",
        statement=r"G = \mathbb{E}_x\, \mathbb{E}_{y \sim p(x)} \nabla\ell\, \nabla\ell^\top",
        says="For softmax and cross-entropy the Gauss-Newton matrix is the Fisher information with labels drawn "
        "from the model.",
        routes=_fisher,
        seconds=0.021,
        quantity="Gauss-Newton matrix of a ReLU network 16-5-10",
    ),
    Identity(
        id="granziol2022/gauss-newton-root",
        entries=("B23",),
        source=f"{PAPER}, eq. (13)",
        statement=r"G_i = J_* J_*^\top,\quad J_* = J^\top \big(\mathrm{diag}(p) - p p^\top\big)^{1/2}",
        says="One sample's Gauss-Newton matrix is a factor times its transpose, with the matrix root of the output "
        "curvature.",
        routes=_root,
        points=tuple(Point(inputs=4, hidden=17, classes=k) for k in (3, 5, 8)),
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        seconds=0.039,
        quantity="Gauss-Newton matrix of one sample",
    ),
    _measured(
        id="granziol2022/cross-entropy-hessian",
        entries=("B31", "B20"),
        source=f"{PAPER}, eq. (20)",
        statement=r"\nabla^2 \ell = -\nabla^2 h_c + \sum_i p_i (\nabla^2 h_i + \nabla h_i \nabla h_i^\top) - "
        r"\Big(\sum_i p_i \nabla h_i\Big) \Big(\sum_i p_i \nabla h_i\Big)^\top",
        says="The Hessian of the cross-entropy follows exactly from the logits' derivatives and the softmax "
        "probabilities.",
        domain={
            "widths": Either(
                Each(Between(2, 4), Between(2, 5), Between(2, 4), Between(2, 5)),
                Each(Between(2, 5), Between(2, 6), Between(2, 6)),
            ),
            "samples": Between(1, 4),
            "activation": OneOf("relu", "tanh", "gelu", "softplus"),
        },
        violation=_eq_20_with(cross_entropy_hessian),
        examples=(
            Point(widths=(3, 5, 4), samples=3, activation="tanh"),
            Point(widths=(4, 3, 5, 3), samples=2, activation="softplus"),
        ),
        rivals={
            "no outer product of the mean": _eq_20_with(
                lambda p, c, first, second: (
                    cross_entropy_hessian(p, c, first, second) + np.outer(p @ first, p @ first)
                )
            ),
            "no curvature of the label's logit": _eq_20_with(
                lambda p, c, first, second: cross_entropy_hessian(p, c, first, second) + second[c]
            ),
            "no curvature of the logits": _eq_20_with(
                lambda p, c, first, second: cross_entropy_hessian(p, c, first, np.zeros_like(second))
            ),
        },
        seconds=0.11,
    ),
    ExactProperty(
        id="granziol2022/gauss-newton-rank",
        entries=("B22",),
        source=f"{PAPER}, section 6; that the bound is sharp is ours",
        statement=r"\mathrm{rank}\, G_B = B (d_y - 1) \text{ on a tanh network of at least } B \text{ hidden units}",
        says="On tanh networks with at least as many hidden units as samples, the Gauss-Newton rank of a batch is "
        "its size times the classes less one.",
        passage=OURS,
        domain={
            "inputs": Between(3, 6),
            "spare": Between(0, 5),
            "classes": Between(2, 6),
            "samples": Between(1, 6),
        },
        violation=_rank_is(ranks.ggn_rank_bound),
        examples=(
            Point(inputs=4, spare=3, classes=2, samples=5),
            Point(inputs=6, spare=0, classes=4, samples=3),
        ),
        tolerance=0.1,
        tolerance_reason=COUNTS,
        rivals={
            "B d_y, the bound of section 6, attained": _rank_is(lambda batch, classes, _: batch * classes),
            "one per sample, of observed labels": _rank_is(lambda batch, *_: batch),
        },
        seconds=0.082,
    ),
)


# --- ReLU networks as sums over paths: eqs. (17) and (19) -----------------------------------------------------


def _paths(weights: list[Array], x: Array, *, gates: bool) -> Iterator[tuple[int, float, list[int]]]:
    """Output, input times gates, and flat positions of the weights, of every path from an input to an output."""
    active, signal = [np.ones_like(x)], x
    for weight in weights[:-1]:
        signal = np.maximum(weight @ signal, 0.0)
        active.append((signal > 0).astype(float) if gates else np.ones_like(signal))
    starts = np.cumsum([0] + [weight.size for weight in weights])
    for units in product(*(range(len(a)) for a in active), range(len(weights[-1]))):
        steps = zip(starts, weights, pairwise(units), strict=False)
        positions = [int(start) + to * weight.shape[1] + at for start, weight, (at, to) in steps]
        gate = np.prod([a[unit] for a, unit in zip(active, units, strict=False)])
        yield units[-1], float(x[units[0]] * gate), positions


def path_sum(weights: list[Array], x: Array, *, gates: bool = True) -> Array:
    """Equation (17): outputs (K,) of a ReLU network on one input."""
    theta = np.concatenate([weight.ravel() for weight in weights])
    outputs = np.zeros(len(weights[-1]))
    for k, signal, positions in _paths(weights, x, gates=gates):
        outputs[k] += signal * np.prod(theta[positions])
    return outputs


def path_sum_curvature(weights: list[Array], x: Array, *, gates: bool = True, squares: bool = False) -> Array:
    """Equation (19): second derivatives (K, P, P), each path multilinear in its weights."""
    theta = np.concatenate([weight.ravel() for weight in weights])
    second = np.zeros((len(weights[-1]), len(theta), len(theta)))
    for k, signal, positions in _paths(weights, x, gates=gates):
        for a, b in combinations(range(len(positions)), 2):
            others = theta[[p for i, p in enumerate(positions) if i not in (a, b)]]
            i, j = positions[a], positions[b]
            second[k, i, j] += signal * np.prod(others)
            second[k, j, i] += signal * np.prod(others)
            if squares:
                second[k, i, i] += signal * np.prod(others)
    return second


def _forward(weights: Any, x: Array) -> Array:
    return networks.mlp_logits(weights, weights[0].new_tensor(x)).numpy()


def _autodiff(weights: Any, x: Array) -> Array:
    return per_sample.all_logit_derivatives(*per_sample.flattened(weights), x, "relu").second.numpy()


def _against(
    expected: Callable[[Any, Array], Array], formula: Callable[[list[Array], Array], Array]
) -> Violation:
    def violation(rng: Generator, point: Point) -> float:
        weights, x, _ = on_noise(rng, point.widths, point.samples)
        matrices, known = [weight.numpy() for weight in weights], expected(weights, x)
        found = np.stack([formula(matrices, sample) for sample in x])
        return float(np.abs(found - known).max()) / (float(np.abs(known).max()) or 1.0)

    return violation


SMALL_UNITS = Between(2, 4)
SMALL_NETWORKS: Domain = {
    "widths": Either(Each(*[SMALL_UNITS] * 3), Each(*[SMALL_UNITS] * 4)),
    "samples": Between(1, 2),
}


SMALL = (Point(widths=(3, 4, 2), samples=3), Point(widths=(4, 3, 4, 2), samples=2))

PATH_CLAIMS = (
    _measured(
        id="granziol2022/path-sum",
        entries=("B28",),
        source=f"{PAPER}, eq. (17), with the gates that our copy lacks",
        passage=misprint("f(W T Hf(W T H−1....f(W1x))) =", "Eq 17"),
        finding="As our copy reads, the activations on the left leave no gate on the right.",
        statement=r"f_k(x) = \sum_{\text{paths to } k} x_{i_0} \prod_l W^{(l)}_{i_l i_{l-1}}\, "
        r"\mathbb{1}[\text{all units of the path active}]",
        says="The output of a ReLU network is a sum over paths of input times weights, of those with all units "
        "active.",
        domain=SMALL_NETWORKS,
        violation=_against(_forward, path_sum),
        examples=SMALL,
        rivals={"no gates": _against(_forward, lambda w, x: path_sum(w, x, gates=False))},
        seconds=0.016,
    ),
    _measured(
        id="granziol2022/path-sum-curvature",
        symbols={"b": "another weight"},
        entries=("B30",),
        source=f"{PAPER}, eq. (19), within a region of fixed gates",
        passage=misprint("f(W T Hf(W T H−1....f(W1x))) =", "Eq 17, which Eq 19 differentiates"),
        finding="As our copy reads, no path has a gate, as in the sum that is differentiated.",
        statement=r"\frac{\partial^2 f_k}{\partial w_a \partial w_b} = \sum_{\text{active paths through } a, b} "
        r"x_{i_0} \prod_{w \ne w_a, w_b} w,\qquad \frac{\partial^2 f_k}{\partial w_a^2} = 0",
        says="Within fixed gates, second derivatives of a ReLU network's output are sums over active paths through "
        "both weights, 0 on the diagonal.",
        domain=SMALL_NETWORKS,
        violation=_against(_autodiff, path_sum_curvature),
        examples=SMALL,
        rivals={
            "no gates": _against(_autodiff, lambda w, x: path_sum_curvature(w, x, gates=False)),
            "a diagonal": _against(_autodiff, lambda w, x: path_sum_curvature(w, x, squares=True)),
        },
        seconds=0.092,
    ),
)

# --- small loss: eq. (18) ------------------------------------------------------------------------------------

GAP = 16.0
"""Logit of the label above the next: the loss is about exp(-16) times the number of near runners-up."""


def small_loss(rng: Generator, point: Point) -> Arrays:
    """Hessians at images of which a network is sure: by their products, and readings of eq. (18)."""
    weights, images, labels = bias_free_on_images(rng, point)
    found = {}
    for x, label in zip(images[:, None], labels, strict=True):
        sure = _made_sure(weights, x[0], label)
        exact = operators.hessian(bias_free_objective(sure, x, np.array([label]), "tanh")).dense().numpy()
        derivatives = per_sample.all_logit_derivatives(*per_sample.flattened(sure), x, "tanh")
        logits, first, second = (np.asarray(d[0]) for d in derivatives)
        readings = _eq_18(logits, first, second, label)
        for name, matrix in {"Hessian": exact, **readings}.items():
            found.setdefault(name, []).append(matrix / np.abs(exact).max())
    return {name: np.stack(matrices) for name, matrices in found.items()}


def _made_sure(weights: Any, x: Array, label: int) -> tuple[Any, Any]:
    """The network with the label's row moved along the hidden units until its logit leads by `GAP`."""
    first, last = weights
    hidden = (first @ first.new_tensor(x)).tanh()
    logits = last @ hidden
    others = [k for k in range(len(logits)) if k != label]
    moved = last.clone()
    moved[label] += (GAP + logits[others].max() - logits[label]) * hidden / (hidden @ hidden)
    return first, moved


def _eq_18(logits: Array, first: Array, second: Array, label: int) -> Arrays:
    others = np.arange(len(logits)) != label
    above = np.exp(logits[others] - logits[label])

    def summed(factors: Array, gradients: Array, hessians: Array) -> Array:
        return np.tensordot(factors, hessians, 1) + (gradients.T * factors) @ gradients

    relative = first[others] - first[label], second[others] - second[label]
    absolute = first[others], second[others]
    return {
        "logits relative to the label's": summed(above, *relative),
        "as our copy reads": -summed(np.exp(logits[others]), *absolute),
        "relative logits in the exponent only": summed(above, *absolute),
        "without the curvature of the logits": summed(above, relative[0], 0 * relative[1]),
        "the other sign": -summed(above, *relative),
    }


SMALL_LOSS = Identity(
    id="granziol2022/small-loss-hessian",
    no_theory=NoTheory.MEASURED,
    entries=("B29",),
    source=f"{PAPER}, eq. (18)",
    statement=r"\nabla^2 \ell \to \sum_{m \ne c} e^{u_m} \big(\nabla^2 u_m + \nabla u_m \nabla u_m^\top\big),\quad "
    r"u_m = h_m - h_c,\ \ell \to 0",
    says="At small loss the Hessian of the cross-entropy is a positive sum over wrong classes, weighted "
    "exponentially in their logits less the label's.",
    passage=misprint("→ − ∑ m 6=c exp(hm)", "Eq 18"),
    routes=small_loss,
    points=(Point(images="digits", samples=9, hidden=5),),
    printed="as our copy reads",
    reads=r"\frac{\partial^2 \ell}{\partial w_{\phi,\kappa} \partial w_{\theta,\nu}} \to -\sum_{m \ne c} \exp(h_m) "
    r"\Big[\frac{\partial^2 h_m}{\partial w_{\phi,\kappa} \partial w_{\theta,\nu}} + \frac{\partial "
    r"h_m}{\partial w_{\phi,\kappa}} \frac{\partial h_m}{\partial w_{\theta,\nu}}\Big]",
    finding="As our copy reads the sign is minus and the logits are not relative to the label's; Eq 20 in the same "
    "limit gives plus and u_m = h_m - h_c, in exponent and derivatives.",
    tolerance=1e-4,
    tolerance_reason="the next order is smaller by the loss, 1e-7 to 1e-6 here",
    seconds=0.1,
    data="digits",
    quantity="Hessian of a tanh network 16-5-10 at losses of 1e-7 to 1e-6",
)

# --- rank of the Hessian -------------------------------------------------------------------------------------


def data_set_rank(rng: Generator, point: Point) -> Arrays:
    """Rank of the Hessian of a whole data set on a ReLU network, and bounds on it."""
    widths = (point.inputs, point.hidden, 2)
    (first, last), x, labels = on_noise(rng, widths, point.samples)
    # a unit that hardly reaches the logits would be there in theory and below the resolution
    signs = last[0].sign()
    weights = first, last.new_tensor([[1.0], [-1.0]]) * signs
    hessian = operators.hessian(bias_free_objective(weights, x, labels)).dense()
    one = ranks.sample_rank_bound(widths[1:], biases=False)
    size = len(hessian)
    return {
        "rank": rank_of(hessian, FINELY_RESOLVED),
        "parameters less shifts of the logits": ranks.dataset_rank_bound(
            one, samples=point.samples, dim=size, symmetries=point.hidden
        ),
        "4 d_y (sum N_l + d_x)": _copy_bound(widths),
        "parameters": size,
        "one sample's": one,
    }


def _copy_bound(widths: tuple[int, ...]) -> int:
    """The bound of section 7 as our copy reads: 4 d_y (sum of N_l + d_x)."""
    return ranks.sample_rank_bound_of_paths(widths[0], widths[1:])


def _sharp_bound(widths: tuple[int, ...]) -> int:
    return min(ranks.sample_rank_bound(widths[1:], biases=False), _copy_bound(widths))


def _of_samples(bound: Callable[[Point], int]) -> Violation:
    """Return the excess of the rank of a sample's Hessian over a bound."""

    def violation(rng: Generator, point: Point) -> float:
        weights, x, labels = on_noise(rng, point.widths, point.samples)
        found = per_sample.hessians(*per_sample.flattened(weights), x, labels, point.activation)
        return max(0, max(map(rank_of, found)) - bound(point))

    return violation


def _of_a_data_set(rng: Generator, point: Point) -> float:
    """Excess of a data set's rank over the bound of one sample, with as many samples as parameters."""
    size = sum(a * b for a, b in pairwise(point.widths))
    hessian = operators.hessian(bias_free_objective(*on_noise(rng, point.widths, size))).dense()
    return max(0, rank_of(hessian) - _copy_bound(point.widths))


UNITS, CLASSES = Between(2, 6), Between(2, 4)
ANY_DEPTH: Domain = {
    "widths": Either(Each(UNITS, UNITS, CLASSES), Each(UNITS, UNITS, UNITS, CLASSES)),
    "samples": Between(1, 6),
    "activation": OneOf("relu", "tanh"),
}


CLAIMS = (
    *GAUSS_NEWTON_CLAIMS,
    *PATH_CLAIMS,
    SMALL_LOSS,
    Identity(
        id="granziol2022/data-set-rank",
        entries=("B32",),
        source=f"{PAPER}, section 7; the rank is ours",
        statement=r"\mathrm{rank}\, H = P - N_1 \text{ for a ReLU network } d_x\text{-}N_1\text{-}2 "
        r"\text{ and many samples}",
        says="With many samples the Hessian of a two-class ReLU network lacks one direction per hidden unit of full "
        "rank.",
        passage=as_stated("and thence a rank bound of 4dy( ∑ lNl + dx)", "Section 7.1, after Eq 20"),
        routes=data_set_rank,
        points=(
            Point(inputs=21, hidden=20, samples=700),
            Point(inputs=19, hidden=23, samples=800),
        ),
        printed="4 d_y (sum N_l + d_x)",
        reads=r"\text{rank bound of } 4 d_y \Big(\sum_l N_l + d_x\Big)",
        finding="The bound holds for a single sample. For a data set, to which the paper puts it, gates change from "
        "sample to sample and ranks add, until only the directions that shift all logits alike are left.",
        tolerance=1e-3,
        tolerance_reason=COUNTS,
        seconds=0.26,
        quantity="rank of the Hessian of a data set",
    ),
    ExactProperty(
        id="granziol2022/sample-rank",
        entries=("B32",),
        source=f"{PAPER}, section 7, of one sample; the first bound is ours",
        statement=r"\mathrm{rank}\, H_i \le \min\Big(2 \sum_{l < L} N_l + d_y - L,\ "
        r"4 d_y \big(\sum_l N_l + d_x\big)\Big)\quad\text{for every sample}",
        says="The Hessian of a single sample keeps to the rank bound of Section 7 and to a sharper one in hidden "
        "units and classes.",
        domain=ANY_DEPTH,
        violation=_of_samples(lambda p: _sharp_bound(p.widths)),
        examples=(
            Point(widths=(5, 6, 4), samples=4, activation="tanh"),
            Point(widths=(18, 18, 2), samples=3, activation="relu"),
        ),
        tolerance=0.1,
        tolerance_reason=COUNTS,
        rivals={
            "of a data set": _of_a_data_set,
            "one less": _of_samples(lambda p: _sharp_bound(p.widths) - 1),
            "rank of the Gauss-Newton matrix": _of_samples(lambda p: p.widths[-1] - 1),
        },
        seconds=0.074,
    ),
)
