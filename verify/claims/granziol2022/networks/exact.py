"""Granziol, Zohren and Roberts (2022): batches of networks, where a law is exact, or with an error that is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulate import eigenvalues, operators, perceptrons
from simulate.matrices import populations
from simulate.monte_carlo import Point
from simulate.perceptrons import per_sample, sample_products, trained
from theory import batch_hessian, own_direction
from verify.claims.beyond import networks
from verify.claims.beyond.networks import formulas, law_of, noise_of, perceptron
from verify.claims.granziol2022 import PAPER
from verify.model import OURS, AnyClaim, Identity

__all__ = ["CLAIMS"]

Floats = NDArray[np.float64]


class Studied(NamedTuple):
    """A network, as `perceptron` gives it, and the law from products with its samples."""

    network: tuple[Any, ...]
    law: own_direction.OwnDirections
    noise: networks.Noise


def _studied(rng: np.random.Generator, point: Point) -> Studied:
    network = perceptron(rng, point)
    samples = sample_products.PerceptronSamples(*network, matrix=point.matrix)
    vectors = perceptrons.own_direction.top_eigenvectors(samples, point.directions)
    law = law_of(
        perceptrons.own_direction.statistics(
            samples, vectors, perceptrons.own_direction.sample_pairs(samples), rng
        )
    )
    return Studied(network, law, noise_of(samples, rng, vectors))


def _matrices(network: tuple[Any, ...], matrix: str) -> Floats:
    """Of every sample, by automatic differentiation."""
    curvature = per_sample.hessians if matrix == "hessian" else per_sample.gauss_newtons
    return curvature(*network).numpy()


def full_batch(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """All samples as the batch. In a data set of a thousand copies of them x is 1/B."""
    found = _studied(rng, point)
    matrix = operators.hessian if point.matrix == "hessian" else operators.gauss_newton
    whole = matrix(trained.perceptron_objective(*found.network))
    everything = np.arange(point.samples)[None]
    said = formulas(found.noise, whole.dim, (point.samples,), point.samples)
    return {
        "full-data eigenvalue": eigenvalues.extremes(whole, np.random.default_rng(0), tolerance=1e-12).values,
        "law": own_direction.batch_eigenvalues(found.law, everything),
        "1/B in place of x": own_direction.batch_eigenvalues(_copies(found.law, 1000), everything),
        "theorem 7 as our copy reads": said["theorem_7_read"],
    }


def single_samples(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Each sample as a batch."""
    found = _studied(rng, point)
    matrices = _matrices(found.network, point.matrix)
    each = np.arange(point.samples)[:, None]
    said = formulas(found.noise, matrices.shape[1], (1,), point.samples)
    alone = replace(found.law, coupling=0 * found.law.coupling, own=0 * found.law.own)
    return {
        "eigenvalue of the sample": np.linalg.eigvalsh(matrices)[:, -1],
        "law": own_direction.batch_eigenvalues(found.law, each),
        "without own directions": own_direction.batch_eigenvalues(alone, each),
        "theorem 4": np.repeat(said["theorem_4"], point.samples),
        "second order": np.repeat(said["second_order"], point.samples),
    }


def _copies(law: own_direction.OwnDirections, count: int) -> own_direction.OwnDirections:
    """The statistics of a data set that holds every sample so many times."""
    return replace(
        law,
        projected=np.tile(law.projected, (count, 1, 1)),
        rest=np.tile(law.rest, (count, 1, 1)),
        coupling=np.tile(law.coupling, (count, 1)),
        own=np.tile(law.own, count),
    )


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


ADAM = 1e-8
"""Its damping."""


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


SOME = {"images": "digits", "directions": 6}

CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="beyond/own-directions-full-batch",
        entries=("D1",),
        source="ours, docs/claims/beyond.md, D1",
        statement=r"B = N:\quad \lambda = \lambda_{\max}(F_S(\lambda)) \Rightarrow \lambda = \lambda_1(H)",
        says="With all samples in the batch, the own-direction law gives the top eigenvalue of the data set "
        "exactly.",
        passage=OURS,
        routes=full_batch,
        points=(
            Point(matrix="hessian", steps=0, samples=48, **SOME),
            Point(matrix="gauss-newton", steps=30, samples=40, **SOME),
        ),
        tolerance=1e-9,
        tolerance_reason="an identity; top eigenvectors in float64",
        data="digits",
        quantity="top eigenvalue",
    ),
    Identity(
        id="beyond/own-directions-single-samples",
        entries=("D1",),
        source="ours, docs/claims/beyond.md, D1",
        statement=r"B = 1:\quad \lambda = \lambda_{\max}(F_{\{i\}}(\lambda)) \Rightarrow "
        r"\lambda = \lambda_1(H_i) + O(1/N)",
        says="With one sample in the batch, the own-direction law gives that sample's top eigenvalue, up to the "
        "inverse number of samples.",
        passage=OURS,
        routes=single_samples,
        points=(
            Point(matrix="hessian", steps=0, samples=160, **SOME),
            Point(matrix="gauss-newton", steps=30, samples=120, **SOME),
        ),
        tolerance=0.02,
        tolerance_reason="of order 1/N, here 0.8 %, by the part of the sample itself in the mean",
        data="digits",
        quantity="top eigenvalue of each sample",
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
