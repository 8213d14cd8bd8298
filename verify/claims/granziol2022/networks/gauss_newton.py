"""Granziol, Zohren and Roberts (2022): exact statements on the Hessian of a network and its Gauss-Newton matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from theory import softmax
from theory.batch_hessian import ranks
from verify.claims.drawn_networks import (
    COUNTS,
    PAPER,
    ROUNDING,
    Array,
    Violation,
    objective,
    on_images,
    on_noise,
    rank_of,
)
from verify.model import OURS, AnyClaim, ExactProperty, Identity, Passage, Standing

__all__ = ["CLAIMS"]


def _piecewise_linear(weights: Any, x: Any, labels: Any) -> Any:
    """A ReLU network in all its parameters: derivatives in closed form, without automatic differentiation."""
    import torch

    from simulate.perceptrons import curvature

    size = sum(weight.numel() for weight in weights)
    return curvature.ProjectedMlp(weights, x, labels, torch.eye(size, dtype=torch.float64))


def _probabilities(logits: Array) -> Array:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def split(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Hessian of the mean loss by its products; its two terms from closed derivatives of the logits."""
    from simulate import operators

    weights, x, labels = on_images(rng, point)
    net = _piecewise_linear(weights, x, labels)
    logits, jacobian, second = (np.asarray(d) for d in (net.logits, net.jacobian, net.second_derivatives))
    p, hot = _probabilities(logits), np.eye(logits.shape[1])[labels]
    gauss_newton = np.einsum("nkp,nkl,nlq->pq", jacobian, softmax.covariance(p), jacobian) / len(p)

    def residual(slopes: Array) -> Array:
        return np.einsum("nk,nkpq->pq", slopes, second) / len(p)

    return {
        "Hessian": operators.hessian(objective(weights, x, labels)).dense(),
        "two terms": gauss_newton + residual(p - hot),
        "Gauss-Newton term alone": gauss_newton,
        "second term with the other sign": gauss_newton - residual(p - hot),
        "probabilities for derivatives of the loss": gauss_newton + residual(p),
    }


def fisher(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gauss-Newton matrix by its products; second moments of gradients over labels of three kinds, one by one."""
    from simulate import networks, operators
    from simulate.perceptrons import autodiff

    weights, x, labels = on_images(rng, point)
    p = _probabilities(networks.mlp_logits(weights, weights[0].new_tensor(x)).numpy())
    scores = np.stack(
        [autodiff.loss_gradients(weights, x, np.full(len(x), k)).numpy() for k in range(p.shape[1])], axis=1
    )

    def moments(shares: Array) -> Array:
        return np.einsum("nk,nkp,nkq->pq", shares, scores, scores) / len(p)

    return {
        "Gauss-Newton": operators.gauss_newton(objective(weights, x, labels)).dense(),
        "labels from the model": moments(p),
        "labels of the data": moments(np.eye(p.shape[1])[labels]),
        "uniform labels": moments(np.full(p.shape, 1 / p.shape[1])),
    }


def root(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gauss-Newton matrix of one sample, and products of factors with a matrix root and with element-wise ones."""
    from simulate import operators
    from simulate.perceptrons import autodiff

    weights, x, labels = on_noise(rng, (point.inputs, point.hidden, point.classes), 1)
    found = autodiff.logit_derivatives(weights, x)
    jacobian, outer = found.jacobian[0].numpy(), softmax.covariance(_probabilities(found.logits[0].numpy()))
    values, vectors = np.linalg.eigh(outer)
    matrix_root = (vectors * np.sqrt(values.clip(0.0))) @ vectors.T
    element_wise = jacobian.T @ np.sqrt(outer.astype(complex))
    moduli = jacobian.T @ np.sqrt(np.abs(outer))
    return {
        "Gauss-Newton": operators.gauss_newton(objective(weights, x, labels)).dense(),
        "matrix root": jacobian.T @ matrix_root @ matrix_root.T @ jacobian,
        "element-wise root": element_wise @ element_wise.T,
        "element-wise root, conjugated": element_wise @ element_wise.conj().T,
        "roots of the moduli": moduli @ moduli.T,
    }


def imaginary_roots(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Entries of the output Hessian, by automatic differentiation, whose square root is imaginary."""
    import torch

    from simulate.perceptrons import curvature

    logits = torch.from_numpy(rng.standard_normal(point.classes))
    outer = curvature.hessian(lambda z: torch.logsumexp(z, 0))(logits).numpy()
    off_diagonal = point.classes * (point.classes - 1)
    return {
        "imaginary": np.count_nonzero(np.imag(np.sqrt(outer.astype(complex)))),
        "off-diagonal": off_diagonal,
        "none": 0,
        "half of the off-diagonal": off_diagonal / 2,
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
        from simulate.perceptrons import autodiff

        weights, x, labels = on_noise(rng, point.widths, point.samples)
        derivatives = autodiff.logit_derivatives(weights, x, point.activation)
        logits, first, second = (np.asarray(d) for d in derivatives)
        pieces = zip(_probabilities(logits), labels, first, second, strict=True)
        expected = autodiff.loss_hessians(weights, x, labels, point.activation).numpy()
        terms = max(np.abs(second).max(), np.abs(first).max() ** 2) or 1.0
        return float(np.abs(np.stack([change(*sample) for sample in pieces]) - expected).max() / terms)

    return violation


def _networks() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "widths": st.tuples(
            st.integers(2, 4), st.integers(2, 5), st.integers(2, 4), st.integers(2, 5)
        ) | st.tuples(st.integers(2, 5), st.integers(2, 6), st.integers(2, 6)),
        "samples": st.integers(1, 4),
        "activation": st.sampled_from(["relu", "tanh", "gelu", "softplus"]),
    }  # fmt: skip


def _rank_is(bound: Callable[[int, int, int], int]) -> Violation:
    """How far the rank of a batch is from a number, on a tanh network wide enough not to limit it."""

    def violation(rng: np.random.Generator, point: Point) -> float:
        from simulate import operators
        from simulate.perceptrons import per_sample, trained as trained_perceptrons

        widths = (point.inputs, point.samples + point.spare, point.classes)
        theta = per_sample.initial_parameters(rng, widths)
        x, labels = (
            rng.standard_normal((point.samples, point.inputs)),
            rng.integers(0, widths[-1], point.samples),
        )
        found = trained_perceptrons.objective(widths, theta, x, labels)
        rank = rank_of(operators.gauss_newton(found).dense())
        return abs(rank - bound(point.samples, point.classes, len(theta)))

    return violation


def _batches() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "inputs": st.integers(3, 6),
        "spare": st.integers(0, 5),
        "classes": st.integers(2, 6),
        "samples": st.integers(1, 6),
    }


CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/hessian-split",
        entries=("B20",),
        source=f"{PAPER}, eq. (12), with the derivative by the output in its second term",
        passage=Passage(Standing.MISPRINT, "∂σ(f(w)) ∂wk", "Eq 12"),
        statement=r"H = J^\top \frac{\partial^2 \ell}{\partial f^2} J + "
        r"\sum_{k=1}^{d_y} \frac{\partial \ell}{\partial f_k} \nabla^2 f_k",
        routes=split,
        points=(Point(images="digits", samples=7, hidden=5),),
        measured="Hessian",
        theory="two terms",
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        rivals=(
            "Gauss-Newton term alone",
            "second term with the other sign",
            "probabilities for derivatives of the loss",
        ),
        seconds=0.2,
        data="digits",
        quantity="Hessian of a ReLU network 16-5-10",
    ),
    Identity(
        id="granziol2022/gauss-newton-is-fisher",
        entries=("B21",),
        source=f"{PAPER}, section 6",
        statement=r"G = \mathbb{E}_x\, \mathbb{E}_{y \sim p(x)} \nabla\ell\, \nabla\ell^\top",
        routes=fisher,
        points=(Point(images="digits", samples=7, hidden=5),),
        measured="Gauss-Newton",
        theory="labels from the model",
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        rivals=("labels of the data", "uniform labels"),
        seconds=0.2,
        data="digits",
        quantity="Gauss-Newton matrix of a ReLU network 16-5-10",
    ),
    Identity(
        id="granziol2022/gauss-newton-root",
        entries=("B23",),
        source=f"{PAPER}, eq. (13)",
        statement=r"G_i = J_* J_*^\top,\quad J_* = J^\top \big(\mathrm{diag}(p) - p p^\top\big)^{1/2}",
        routes=root,
        points=tuple(Point(inputs=4, hidden=17, classes=k) for k in (3, 5, 8)),
        measured="Gauss-Newton",
        theory="matrix root",
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        rivals=("element-wise root", "element-wise root, conjugated", "roots of the moduli"),
        seconds=0.2,
        quantity="Gauss-Newton matrix of one sample",
    ),
    Identity(
        id="granziol2022/imaginary-roots",
        entries=("B23",),
        source=f"ours, beside eq. (13) of {PAPER}",
        statement=r"\#\big\{(k, l): \sqrt{\partial^2 \ell / \partial f_k \partial f_l} \notin \mathbb{R}\big\} = "
        r"d_y (d_y - 1)",
        passage=OURS,
        routes=imaginary_roots,
        points=tuple(Point(classes=k) for k in (3, 5, 10)),
        measured="imaginary",
        theory="off-diagonal",
        tolerance=1e-3,
        tolerance_reason=COUNTS,
        rivals=("none", "half of the off-diagonal"),
        seconds=0.1,
        quantity="imaginary entries of the element-wise root",
    ),
    ExactProperty(
        id="granziol2022/cross-entropy-hessian",
        entries=("B31", "B20"),
        source=f"{PAPER}, eq. (20)",
        statement=r"\nabla^2 \ell = -\nabla^2 h_c + \sum_i p_i (\nabla^2 h_i + \nabla h_i \nabla h_i^\top) - "
        r"\Big(\sum_i p_i \nabla h_i\Big) \Big(\sum_i p_i \nabla h_i\Big)^\top",
        strategies=_networks,
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
        seconds=1.0,
    ),
    ExactProperty(
        id="granziol2022/gauss-newton-rank",
        entries=("B22",),
        source=f"{PAPER}, section 6; that the bound is sharp is ours",
        statement=r"\mathrm{rank}\, G_B = B (d_y - 1) \text{ on a tanh network of at least } B \text{ hidden units}",
        passage=OURS,
        strategies=_batches,
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
        seconds=1.0,
    ),
)
