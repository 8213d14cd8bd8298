"""Granziol, Zohren and Roberts (2022): batches of networks, where a law is exact, or with an error that is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate import perceptrons
from simulate.matrices import populations
from simulate.monte_carlo import Point
from simulate.perceptrons import per_sample, sample_products, trained
from theory import batch_hessian, loss_change, own_direction
from verify.claims.beyond import networks
from verify.claims.beyond.networks import formulas, law_of, noise_of, perceptron
from verify.claims.granziol2022 import PAPER
from verify.model import OURS, AnyClaim, ExactProperty, Identity, NoTheory, Tier
from verify.model.domains import Between, OneOf

__all__ = ["CLAIMS"]

Floats = NDArray[np.float64]


def _matrices(network: tuple[Any, ...], matrix: str) -> Floats:
    """Of every sample, by automatic differentiation."""
    curvature = per_sample.hessians if matrix == "hessian" else per_sample.gauss_newtons
    return curvature(*network).numpy()


def uneven_coupling(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Samples in pairs that cancel in the mean, a few of them coupled to V by much more than one direction."""
    import torch

    matrices = _pairs(rng, point)
    samples = sample_products.DenseSamples(torch.from_numpy(matrices))
    vectors = perceptrons.own_direction.top_eigenvectors(samples, 1)
    found = perceptrons.own_direction.statistics(
        samples, vectors, perceptrons.own_direction.sample_pairs(samples), rng, probes=len(matrices)
    )
    law, drawn = law_of(found), populations.every_batch(len(matrices), point.batch_size)
    mean_rest = replace(law, rest=np.broadcast_to(law.rest.mean(axis=0), law.rest.shape))
    noise = noise_of(samples, rng, vectors)
    said = formulas(noise, matrices.shape[1], (point.batch_size,), len(matrices))
    return {
        "all batches": np.linalg.eigvalsh(matrices[drawn].mean(axis=1))[:, -1].mean(),
        "law": own_direction.expected_eigenvalue(law, drawn),
        "one mean T": own_direction.expected_eigenvalue(mean_rest, drawn),
        "theorem 4": said["theorem_4"][0],
        "second order": said["second_order"][0],
    }


def _pairs(rng: np.random.Generator, point: Point) -> Floats:
    """H_i on v, an own direction of curvature d and one of none, shared with the partner of opposite coupling."""
    found = np.zeros((2 * point.pairs, 1 + 2 * point.pairs, 1 + 2 * point.pairs))
    for index, matrix in enumerate(found):
        first, heavy = 1 + 2 * (index // 2), index // 2 < point.heavy
        matrix[0, 0] = 1 + 0.3 * rng.standard_normal()
        own, rest, curvature = (0.3, point.rest, point.own) if heavy else (0.1, 0.05, 0.3)
        matrix[0, first : first + 2] = matrix[first : first + 2, 0] = (-1) ** index * np.array([own, rest])
        matrix[first, first] = curvature * (1 + 0.1 * rng.standard_normal())
        matrix[first + 1, first + 1] = 0.05
    return found


def tops_of_batches(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Top eigenvalue of each batch of a partition, from products with samples and from all elements."""
    network = perceptron(rng, point)
    samples = sample_products.PerceptronSamples(*network, matrix=point.matrix)
    batches = perceptrons.own_direction.partitions(rng, point.samples, point.batch_size, 1)
    matrices = _matrices(network, point.matrix)
    return {
        "by Lanczos": perceptrons.own_direction.batch_tops(samples, batches, tolerance=1e-7),
        "of the mean matrix": np.linalg.eigvalsh(matrices[batches].mean(axis=1))[:, -1],
        "mean over the samples": np.linalg.eigvalsh(matrices)[:, -1][batches].mean(axis=1),
        "of the data set": np.repeat(np.linalg.eigvalsh(matrices.mean(axis=0))[-1], len(batches)),
    }


ADAM = 1e-8
"""Its damping."""


def first_step_of_adam(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Change of a network's loss in Adam's first step, whose preconditioner is the size of each gradient element."""
    network = perceptron(rng, point)
    widths, theta, x, labels = network
    moved = trained.trained(widths, theta, x, labels, steps=1, rate=point.rate)
    gradient = trained.perceptron_objective(*network).gradient().numpy()
    hessian = _matrices(network, "hessian").mean(axis=0)
    sizes = np.diag(np.abs(gradient) + ADAM)
    return {
        "change of the loss": float(
            trained.loss(widths, moved, x, labels) - trained.loss(widths, theta, x, labels)
        ),
        "second order": loss_change.quadratic_change(point.rate, gradient, hessian, preconditioner=sizes),
        "first order": -point.rate * np.abs(gradient).sum(),
        "without the half": loss_change.quadratic_change(
            point.rate, gradient, 2 * hessian, preconditioner=sizes
        ),
        "plain step": loss_change.quadratic_change(point.rate, gradient, hessian),
    }


def all_but_one(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """How far batches of all samples but one lie above the data set; every image is there many times."""
    matrices = _matrices(perceptron(rng, point), point.matrix)
    total, mean = point.copies * point.samples, matrices.mean(axis=0)
    values, vectors = np.linalg.eigh(mean)
    tops = np.linalg.eigvalsh((total * mean - matrices) / (total - 1))[:, -1]
    variances = (matrices @ vectors[:, -1] @ vectors).var(axis=0) * total / (total - 1)
    coefficient = batch_hessian.second_order_coefficient(values[::-1], variances[::-1])
    size = {"batch_size": total - 1, "dataset_size": total}
    said = {
        "second order": batch_hessian.second_order_eigenvalue(values[-1], coefficient=coefficient, **size),
        "theorem 4": batch_hessian.batch_eigenvalue(
            values[-1], sigma=matrices.var(axis=0).mean() ** 0.5, dim=len(mean), **size
        ),
        "1/B in place of 1/b": batch_hessian.second_order_eigenvalue(
            values[-1], coefficient=coefficient, batch_size=total - 1, dataset_size=math.inf
        ),
    }
    above = {name: value - values[-1] for name, value in said.items()}
    return {"mean over the batches": tops.mean() - values[-1], **above}


def all_elements(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Mean square of every element of the noise over all batches."""
    matrices = _matrices(perceptron(rng, point), point.matrix)
    noise = matrices[populations.every_batch(len(matrices), point.batch_size)].mean(axis=1) - matrices.mean(
        axis=0
    )
    variance, size = matrices.var(axis=0), {"batch_size": point.batch_size, "dataset_size": len(matrices)}
    predicted = batch_hessian.finite_population_fluctuation(variance=variance, **size)
    return {
        "over all batches": (noise**2).mean(axis=0),
        "variance of each element": predicted,
        "divisor N": predicted * (1 - 1 / len(matrices)),
        "1/B in place of 1/b": matrices.var(axis=0, ddof=1) / point.batch_size,
        "one variance for all elements": np.full_like(predicted, predicted.mean()),
    }


def _mean_gain(rng: np.random.Generator, point: Point) -> float:
    """Mean top eigenvalue of disjoint batches of a network's images, over that of all of them."""
    samples = networks.small_perceptron(rng, point | {"samples": point.batches * point.batch_size})
    batches = perceptrons.own_direction.partitions(rng, samples.size, point.batch_size, 1)
    whole = perceptrons.own_direction.batch_tops(samples, batches.reshape(1, -1), tolerance=1e-6)
    return float((perceptrons.own_direction.batch_tops(samples, batches, tolerance=1e-6) / whole).mean())


def mean_below_whole(rng: np.random.Generator, point: Point) -> float:
    """By how much the mean over the disjoint batches lies below the whole."""
    return max(0.0, 1 - _mean_gain(rng, point))


def mean_below_double(rng: np.random.Generator, point: Point) -> float:
    """By how much the mean is short of twice the whole."""
    return max(0.0, 2 - _mean_gain(rng, point))


SOME = {"images": "digits", "directions": 6}

CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="granziol2022/disjoint-batches-of-networks",
        no_theory=NoTheory.MEASURED,
        entries=("B1", "B19"),
        source="ours, beside the abstract and sections 1 and 8.1: convexity of the top eigenvalue",
        statement=r"\frac1m \sum_{j=1}^m \lambda_1(H_{S_j}) \ge \lambda_1(H_{S_1 \cup \dots \cup S_m})\quad "
        r"\text{for disjoint batches of a network, without an expectation}",
        says="For every split of a network's images into disjoint batches, the mean of the batches' top "
        "eigenvalues is at least that of their union.",
        passage=OURS,
        domain={
            "images": OneOf("digits"),
            "matrix": OneOf("hessian", "gauss-newton"),
            "steps": Between(0, 20),
            "batch_size": Between(1, 24),
            "batches": Between(2, 5),
        },
        violation=mean_below_whole,
        examples=(
            Point(images="digits", matrix="gauss-newton", steps=0, batch_size=40, batches=3),
            Point(images="digits", matrix="hessian", steps=12, batch_size=30, batches=4),
        ),
        tolerance=1e-6,
        tolerance_reason="eigenvalues by Lanczos to a residual of 1e-6",
        rivals={"at least doubled": mean_below_double},
        seconds=0.73,
        tier=Tier.DEFAULT,
        data="digits",
    ),
    Identity(
        id="granziol2022/tops-of-batches",
        entries=("B1",),
        source="ours, for the batches of section 8.1: products with samples in place of matrices",
        passage=OURS,
        no_theory=NoTheory.MEASURED,
        statement=r"\lambda_1(H_B) = \lambda_{\max}\Big(\frac1B \sum_{i \in B} H_i\Big)\quad \text{batch by batch}",
        says="The top eigenvalue of each batch of a network's images, found by products with single samples' Hessians, "
        "is that of their mean matrix.",
        routes=tops_of_batches,
        points=(
            Point(matrix="hessian", steps=0, samples=42, batch_size=6, images="digits"),
            Point(matrix="gauss-newton", steps=30, samples=40, batch_size=4, images="digits"),
        ),
        tolerance=1e-8,
        tolerance_reason="Lanczos to a residual of 1e-7, whose square is the error of an eigenvalue",
        seconds=0.19,
        data="digits",
        quantity="top eigenvalue of each batch",
    ),
    Identity(
        id="granziol2022/first-step-of-adam",
        entries=("B52",),
        source=f"ours: {PAPER}, eq. (26), sign corrected, on a network",
        passage=OURS,
        statement=r"\theta' = \theta - a A^{-1} g,\ A = \mathrm{diag}\,(|g| + \delta):\quad L(\theta') - L(\theta) = "
        r"-a\, g^\top A^{-1} g + \tfrac{a^2}{2} g^\top A^{-1} H A^{-1} g + O(a^3)",
        says="Adam's first step changes a network's loss as the quadratic form of a preconditioned step says, the "
        "preconditioner the size of each gradient element plus the damping.",
        routes=first_step_of_adam,
        points=(
            Point(steps=0, samples=48, rate=1e-4, images="digits"),
            Point(steps=25, samples=40, rate=1e-4, images="digits"),
        ),
        tolerance=1e-5,
        tolerance_reason="the third order, some ten times the square of the rate: 1e-7",
        seconds=0.044,
        data="digits",
        quantity="change of the loss in one step",
    ),
    Identity(
        id="beyond/own-directions-uneven-coupling",
        entries=("D1",),
        source="ours, docs/claims/beyond.md, D1",
        statement=r"\mathbb{E}\,\lambda_1(H_B) \text{ with } T_i \text{ sample by sample, over all batches of a "
        r"population that cancels in pairs}",
        says="Where a few samples couple to the top direction far more than others, the own-direction law holds "
        "with each sample's coupling kept.",
        passage=OURS,
        routes=uneven_coupling,
        points=(Point(pairs=20, heavy=3, batch_size=2, rest=4.0, own=6.0),),
        tolerance=0.04,
        tolerance_reason="partners in one batch cancel, which statistics of single samples cannot know: one pair in 39",
        quantity="mean top eigenvalue of a batch",
    ),
    Identity(
        id="granziol2022/second-order-on-networks",
        entries=("B16", "B19"),
        source="ours, beside theorem 4 on networks",
        statement=r"B \to N:\quad b\,\big(\mathbb{E}\,\lambda_1(H_B) - \lambda_1\big) \to "
        r"\sum_{k > 1} \frac{\mathrm{Var}_i(v_k^\top H_i v_1)}{\lambda_1 - \lambda_k}",
        says="As the batch nears the data set, the shift of a network's top eigenvalue over the inverse effective "
        "batch size is that of second-order perturbation theory.",
        passage=OURS,
        routes=all_but_one,
        points=(
            Point(matrix="hessian", steps=0, samples=60, copies=100, **SOME),
            Point(matrix="gauss-newton", steps=30, samples=70, copies=100, **SOME),
        ),
        tolerance=0.05,
        tolerance_reason="the next order, of 1/N over the gap of the eigenvalues: 0.3 % in the middle of ten networks",
        pilot="the tolerance 5 %: ten networks drawn before were off by 0.3 % in the middle",
        data="digits",
        quantity="top eigenvalue less that of the data set",
    ),
    Identity(
        id="granziol2022/element-variance-of-networks",
        entries=("B38",),
        source=f"{PAPER}, section 8.2",
        statement=r"\mathbb{E}\,\varepsilon_{jk}^2 = \Big(\frac1B - \frac1N\Big) \mathrm{Var}_i\,(H_i)_{jk}\quad "
        r"\text{element by element}",
        says="On networks with real images, each noise element has a mean square of its own variance over the "
        "samples divided by the effective batch size.",
        routes=all_elements,
        points=(
            Point(matrix="hessian", steps=0, samples=8, batch_size=3, images="digits", directions=4),
            Point(matrix="gauss-newton", steps=30, samples=9, batch_size=4, images="digits", directions=5),
        ),
        tolerance=1e-12,
        tolerance_reason="an identity in float64",
        data="digits",
        quantity="mean square of an element of the noise",
    ),
)
