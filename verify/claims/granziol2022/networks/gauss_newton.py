"""Granziol, Zohren and Roberts (2022): exact statements on the Hessian of a network and its Gauss-Newton matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulate import networks, operators
from simulate.monte_carlo import Point
from simulate.perceptrons import per_sample, trained as trained_perceptrons
from theory import softmax
from theory.batch_hessian import ranks
from verify.claims.drawn_networks import (
    COUNTS,
    ROUNDING,
    Array,
    Violation,
    bias_free_objective,
    bias_free_on_images,
    in_closed_form,
    on_noise,
    rank_of,
)
from verify.claims.granziol2022 import PAPER
from verify.model import OURS, AnyClaim, ExactProperty, Identity, NoTheory, Passage, Standing
from verify.model.domains import Between, Each, Either, OneOf

__all__ = ["CLAIMS"]


def _probabilities(logits: Array) -> Array:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def split_terms(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Hessian of the mean loss by its products; its two terms from closed derivatives of the logits."""
    weights, x, labels = bias_free_on_images(rng, point)
    net = in_closed_form(weights, x, labels)
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


def _fisher(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gauss-Newton matrix by its products; second moments of gradients over labels of three kinds, one by one."""
    weights, x, labels = bias_free_on_images(rng, point)
    p = _probabilities(networks.mlp_logits(weights, weights[0].new_tensor(x)).numpy())
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


def _root(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
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
    """How far a reading of equation (20) is from automatic differentiation of the loss itself.

    Relative to the largest of its terms, which cancel where the network is sure of the label.
    """

    def violation(rng: np.random.Generator, point: Point) -> float:
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
    """How far the rank of a batch is from a number, on a tanh network wide enough not to limit it."""

    def violation(rng: np.random.Generator, point: Point) -> float:
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


CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/hessian-split",
        entries=("B20",),
        source=f"{PAPER}, eq. (12), with the derivative by the output in its second term",
        passage=Passage(Standing.MISPRINT, "∂σ(f(w)) ∂wk", "Eq 12"),
        finding="As our copy reads, the second term has no derivative by the output, and no meaning.",
        statement=r"H = J^\top \frac{\partial^2 \ell}{\partial f^2} J + "
        r"\sum_{k=1}^{d_y} \frac{\partial \ell}{\partial f_k} \nabla^2 f_k",
        says="The Hessian of the loss is the Gauss-Newton matrix plus each output's curvature, weighted by the "
        "derivative of the loss by that output.",
        routes=split_terms,
        points=(Point(images="digits", samples=7, hidden=5),),
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        seconds=0.019,
        data="digits",
        quantity="Hessian of a ReLU network 16-5-10",
    ),
    Identity(
        id="granziol2022/gauss-newton-is-fisher",
        no_theory=NoTheory.MEASURED,
        entries=("B21",),
        source=f"{PAPER}, section 6",
        statement=r"G = \mathbb{E}_x\, \mathbb{E}_{y \sim p(x)} \nabla\ell\, \nabla\ell^\top",
        says="For softmax and cross-entropy the Gauss-Newton matrix is the Fisher information with labels drawn "
        "from the model.",
        routes=_fisher,
        points=(Point(images="digits", samples=7, hidden=5),),
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        seconds=0.021,
        data="digits",
        quantity="Gauss-Newton matrix of a ReLU network 16-5-10",
    ),
    Identity(
        id="granziol2022/gauss-newton-root",
        entries=("B23",),
        source=f"{PAPER}, eq. (13)",
        statement=r"G_i = J_* J_*^\top,\quad J_* = J^\top \big(\mathrm{diag}(p) - p p^\top\big)^{1/2}",
        says="One sample's Gauss-Newton matrix is a factor times its transpose, with the matrix root of the output "
        "curvature in the factor.",
        routes=_root,
        points=tuple(Point(inputs=4, hidden=17, classes=k) for k in (3, 5, 8)),
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        seconds=0.039,
        quantity="Gauss-Newton matrix of one sample",
    ),
    ExactProperty(
        id="granziol2022/cross-entropy-hessian",
        no_theory=NoTheory.MEASURED,
        entries=("B31", "B20"),
        source=f"{PAPER}, eq. (20)",
        statement=r"\nabla^2 \ell = -\nabla^2 h_c + \sum_i p_i (\nabla^2 h_i + \nabla h_i \nabla h_i^\top) - "
        r"\Big(\sum_i p_i \nabla h_i\Big) \Big(\sum_i p_i \nabla h_i\Big)^\top",
        says="The Hessian of the cross-entropy follows exactly from the logits' first and second derivatives and "
        "the softmax probabilities.",
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
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
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
