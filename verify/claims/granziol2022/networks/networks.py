"""Granziol, Zohren and Roberts (2022) on networks trained on images: what holds exactly, and what comes near."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Block, Point
from theory import batch_hessian, own_direction
from verify.claims.beyond import network_observations
from verify.claims.beyond.network_observations import formulas, law_of, noise_of, perceptron
from verify.model import (
    OURS,
    AnyClaim,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Kind,
    Passage,
    Standing,
    Verdict,
)

__all__ = ["CLAIMS"]

PAPER = "Granziol, Zohren and Roberts (2022)"

Floats = NDArray[np.float64]

# --- batches of networks drawn at random ---------------------------------------------------------------------


def network_batches(block: Block, point: Point) -> Mapping[str, Any]:
    """One partition of a network's images into batches for each size.

    Every prediction is for the mean over the batches drawn; the own-direction law reads which samples are in them.
    """
    rows = [_batches_of_one(rng, point) for rng in block.streams]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _batches_of_one(rng: np.random.Generator, point: Point) -> dict[str, Any]:
    from simulate.perceptrons import own_direction as measured

    samples = network_observations.small_network(rng, point)
    vectors = measured.top_eigenvectors(samples, point.directions)
    pairs = measured.sample_pairs(samples, tolerance=1e-4)
    law = law_of(measured.statistics(samples, vectors, pairs, rng))
    noise = noise_of(samples, rng, vectors)
    found: dict[str, list[float]] = {"measured": [], "own": [], "gain": []}
    for size in point.batch_size:
        batches = measured.partitions(rng, samples.size, size, 1)
        tops = measured.batch_eigenvalues(samples, batches, tolerance=1e-3)
        found["measured"].append(tops.mean())
        found["own"].append(own_direction.batch_eigenvalues(law, batches).mean())
        found["gain"].append(np.log(tops / noise.eigenvalue).mean())
    said = formulas(noise, samples.dim, point.batch_size, samples.size)
    return {**found, **said, "full": noise.eigenvalue}


IMAGES = {"images": "digits", "directions": 8}

BATCHES = Experiment(
    id="granziol2022/network-batches",
    replicate="one tanh network 16-8-10 with its images, in batches",
    simulate=network_batches,
    points=(
        Point(matrix="hessian", steps=0, samples=60, batch_size=(3, 6), **IMAGES),
        Point(matrix="gauss-newton", steps=40, samples=72, batch_size=(2, 4, 24), **IMAGES),
    ),
    budget=512,
    seconds=6.0,
    data="digits",
)

LAW = {2: 6.1, 3: 4.4, 4: 4.0, 6: 2.9, 24: 1.5}
"""The own-direction law over lambda_1 at each batch size, from runs with other seeds."""

FORMULAS = {
    "theorem_4": {2: 0.21, 3: 0.34, 4: 0.29, 6: 0.43, 24: 0.67},
    "theorem_7": {2: 1.1, 3: 1.7, 4: 0.9, 6: 1.3, 24: 0.68},
    "theorem_7_read": {2: 1.9, 3: 2.7, 4: 1.4, 6: 2.0, 24: 0.71},
}
"""The formulas over the law, from the same runs."""


def _typical(name: str) -> Any:
    """Of a formula, in units of lambda_1."""
    relative = FORMULAS.get(name, {})
    return lambda p: LAW.get(p.batch_size, 1.0) * relative.get(p.batch_size, 1.0)


INPUTS = {name: _typical(name) for name in ("own", *FORMULAS)}

WITHIN = "the largest error on four networks that the law had never seen was 12 %, on one of them at one batch size"

FAR_OFF = (
    "5 % of the measured eigenvalue; the formula is off by a tenth at least, and by a factor of four at most"
)

BATCH_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/broadening-of-networks",
        entries=("B1", "B19"),
        source=f"{PAPER}, abstract and sections 1 and 8.1; Jensen's inequality",
        statement=r"\mathbb{E}\,\log\lambda_1(H_B) \ge \log\lambda_1(H),\ "
        r"\text{hence } \mathbb{E}\,\lambda_1(H_B) \ge \lambda_1(H),\ \text{on real networks}",
        experiment=BATCHES,
        kind=Kind.AT_LEAST,
        along="batch_size",
        score="gain",
        predict=lambda _: 0.0,
        margin=0.02,
        relative=False,
        margin_reason="2 % of the eigenvalue; the logarithm keeps heavy batches from ruling the mean",
        rivals={"at least doubled": lambda _: math.log(2)},
        axis="batch_size",
        quantity="logarithm of the batch eigenvalue over that of the data set",
    ),
    Claim(
        id="granziol2022/theorem-4-on-networks",
        entries=("B19", "B40"),
        source=f"{PAPER}, theorem 4, eq. (9), on networks (section 8)",
        statement=r"\mathbb{E}\,\lambda_1(H_B) = \lambda_1 + \frac{P \sigma^2}{b \lambda_1}\ (\lambda_1 > s),"
        r"\quad 2 s \text{ else}",
        passage=Passage(Standing.OUTSIDE, "our results are in the limit of P,B →∞", "Section 8.2.1"),
        expected=Verdict.DISAGREES,
        finding="Outside the limit of large P and B, with batches of 2 to 24, Theorem 4 is low: on "
        "networks the noise is not spread evenly over the elements but sits along the directions of large "
        "curvature, where it is many times the average.",
        experiment=BATCHES,
        along="batch_size",
        score="measured",
        inputs=INPUTS,
        predict=lambda p: p.theorem_4,
        margin=0.05,
        margin_reason=FAR_OFF,
        rivals={"own directions": lambda p: p.own},
        axis="batch_size",
        quantity="top eigenvalue of a batch",
    ),
    Claim(
        id="granziol2022/theorem-7-on-networks",
        entries=("B26", "B40"),
        source=f"{PAPER}, theorem 7, eq. (16), repaired, on networks (section 8)",
        statement=r"\mathbb{E}\,\lambda_1(G_B) = \theta + \frac{\sigma^2 \theta}{\theta - (P/b) \sigma^2},\quad "
        r"\theta = \lambda_1 - \sigma^2",
        passage=Passage(Standing.OUTSIDE, "our results are in the limit of P,B →∞", "Section 8.2.1"),
        expected=Verdict.DISAGREES,
        finding="Outside the limit of large P and B, with batches of 2 to 24, Theorem 7 is high for the "
        "smallest batches and low for larger ones, crossing the truth in between, with or without the "
        "repairs of its threshold and shift.",
        experiment=BATCHES,
        along="batch_size",
        score="measured",
        inputs=INPUTS,
        predict=lambda p: p.theorem_7,
        printed=lambda p: p.theorem_7_read,
        margin=0.05,
        margin_reason=FAR_OFF,
        rivals={"theorem 4": lambda p: p.theorem_4, "own directions": lambda p: p.own},
        axis="batch_size",
        quantity="top eigenvalue of a batch",
    ),
    Claim(
        id="beyond/own-directions",
        entries=("D1", "granziol2022/B19"),
        source="ours, docs/claims/beyond.md, D1",
        statement=r"\mathbb{E}\,\lambda_1(H_B) = \mathbb{E}_S\,\max\{\lambda : \lambda = "
        r"\lambda_{\max}(F_S(\lambda))\}",
        passage=OURS,
        experiment=BATCHES,
        along="batch_size",
        score="measured",
        inputs=INPUTS,
        predict=lambda p: p.own,
        margin=0.15,
        margin_reason=WITHIN,
        rivals={
            "theorem 4": lambda p: p.theorem_4,
            "theorem 7 as our copy reads": lambda p: p.theorem_7_read,
        },
        axis="batch_size",
        quantity="top eigenvalue of a batch",
    ),
)

# --- exact, or with an error that is known -------------------------------------------------------------------


class Studied(NamedTuple):
    """A network, as `perceptron` gives it, and the law from products with its samples."""

    network: tuple[Any, ...]
    law: own_direction.OwnDirections
    noise: network_observations.Noise


def _studied(rng: np.random.Generator, point: Point) -> Studied:
    from simulate.perceptrons import own_direction as measured
    from simulate.perceptrons.sample_products import PerceptronSamples

    network = perceptron(rng, point)
    samples = PerceptronSamples(*network, matrix=point.matrix)
    vectors = measured.top_eigenvectors(samples, point.directions)
    law = law_of(measured.statistics(samples, vectors, measured.sample_pairs(samples), rng))
    return Studied(network, law, noise_of(samples, rng, vectors))


def _matrices(network: tuple[Any, ...], matrix: str) -> Floats:
    """Of every sample, by automatic differentiation."""
    from simulate.perceptrons import per_sample

    curvature = per_sample.hessians if matrix == "hessian" else per_sample.gauss_newtons
    return curvature(*network).numpy()


def full_batch(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """All samples as the batch. In a data set of a thousand copies of them x is 1/B."""
    from simulate import operators
    from simulate.eigenvalues import extremes
    from simulate.perceptrons.trained import objective

    found = _studied(rng, point)
    matrix = operators.hessian if point.matrix == "hessian" else operators.gauss_newton
    whole = matrix(objective(*found.network))
    everything = np.arange(point.samples)[None]
    said = formulas(found.noise, whole.dim, (point.samples,), point.samples)
    return {
        "full-data eigenvalue": extremes(whole, np.random.default_rng(0), tolerance=1e-12).values,
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

    from simulate.matrices.populations import batches
    from simulate.perceptrons import own_direction as measured
    from simulate.perceptrons.sample_products import DenseSamples

    matrices = _pairs(rng, point)
    samples = DenseSamples(torch.from_numpy(matrices))
    vectors = measured.top_eigenvectors(samples, 1)
    found = measured.statistics(samples, vectors, measured.sample_pairs(samples), rng, probes=len(matrices))
    law, drawn = law_of(found), batches(len(matrices), point.batch_size)
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


def all_but_one(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """How far batches of all samples but one lie above the data set; every image is there many times."""
    matrices = _matrices(perceptron(rng, point), point.matrix)
    total, mean = point.copies * point.samples, matrices.mean(axis=0)
    values, vectors = np.linalg.eigh(mean)
    tops = np.linalg.eigvalsh((total * mean - matrices) / (total - 1))[:, -1]
    variances = (matrices @ vectors[:, -1] @ vectors).var(axis=0) * total / (total - 1)
    coefficient = variances[:-1] @ (1 / (values[-1] - values[:-1]))
    size = {"batch_size": total - 1, "dataset_size": total}
    said = {
        "second order": batch_hessian.second_order_eigenvalue(values[-1], coefficient=coefficient, **size),
        "1/B in place of 1/b": batch_hessian.second_order_eigenvalue(
            values[-1], coefficient=coefficient, batch_size=total - 1, dataset_size=math.inf
        ),
        "theorem 4": batch_hessian.batch_eigenvalue(
            values[-1], sigma=matrices.var(axis=0).mean() ** 0.5, dim=len(mean), **size
        ),
    }
    above = {name: value - values[-1] for name, value in said.items()}
    return {"mean over the batches": tops.mean() - values[-1], **above}


def all_elements(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Mean square of every element of the noise over all batches."""
    from simulate.matrices.populations import batches

    matrices = _matrices(perceptron(rng, point), point.matrix)
    noise = matrices[batches(len(matrices), point.batch_size)].mean(axis=1) - matrices.mean(axis=0)
    variance, size = matrices.var(axis=0, ddof=1), {"batch_size": point.batch_size}
    predicted = batch_hessian.element_fluctuation(variance=variance, dataset_size=len(matrices), **size)
    return {
        "over all batches": (noise**2).mean(axis=0),
        "variance of each element": predicted,
        "divisor N": predicted * (1 - 1 / len(matrices)),
        "1/B in place of 1/b": variance / point.batch_size,
        "one variance for all elements": np.full_like(predicted, predicted.mean()),
    }


def _mean_gain(rng: np.random.Generator, point: Point) -> float:
    """Mean top eigenvalue of disjoint batches of a network's images, over that of all of them."""
    from simulate.perceptrons import own_direction as measured

    samples = network_observations.small_network(rng, point | {"samples": point.batches * point.batch_size})
    batches = measured.partitions(rng, samples.size, point.batch_size, 1)
    whole = measured.batch_eigenvalues(samples, batches.reshape(1, -1), tolerance=1e-6)
    return float((measured.batch_eigenvalues(samples, batches, tolerance=1e-6) / whole).mean())


def mean_below_whole(rng: np.random.Generator, point: Point) -> float:
    """By how much the mean over the disjoint batches lies below the whole."""
    return max(0.0, 1 - _mean_gain(rng, point))


def mean_below_double(rng: np.random.Generator, point: Point) -> float:
    """By how much the mean is short of twice the whole."""
    return max(0.0, 2 - _mean_gain(rng, point))


def _partitions() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "images": st.just("digits"),
        "matrix": st.sampled_from(["hessian", "gauss-newton"]),
        "steps": st.integers(0, 20),
        "batch_size": st.integers(1, 24),
        "batches": st.integers(2, 5),
    }


SOME = {"images": "digits", "directions": 6}

EXACT_CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="granziol2022/disjoint-batches-of-networks",
        entries=("B1", "B19"),
        source="ours, beside the abstract and sections 1 and 8.1: convexity of the top eigenvalue",
        statement=r"\frac1m \sum_{j=1}^m \lambda_1(H_{S_j}) \ge \lambda_1(H_{S_1 \cup \dots \cup S_m})\quad "
        r"\text{for disjoint batches of a network, without an expectation}",
        passage=OURS,
        strategies=_partitions,
        violation=mean_below_whole,
        examples=(
            Point(images="digits", matrix="gauss-newton", steps=0, batch_size=40, batches=3),
            Point(images="digits", matrix="hessian", steps=12, batch_size=30, batches=4),
        ),
        tolerance=1e-6,
        tolerance_reason="eigenvalues by Lanczos to a residual of 1e-6",
        rivals={"at least doubled": mean_below_double},
        seconds=3.0,
        smoke=False,
        data="digits",
    ),
    Identity(
        id="beyond/own-directions-full-batch",
        entries=("D1",),
        source="ours, docs/claims/beyond.md, D1",
        statement=r"B = N:\quad \lambda = \lambda_{\max}(F_S(\lambda)) \Rightarrow \lambda = \lambda_1(H)",
        passage=OURS,
        routes=full_batch,
        points=(
            Point(matrix="hessian", steps=0, samples=48, **SOME),
            Point(matrix="gauss-newton", steps=30, samples=40, **SOME),
        ),
        measured="full-data eigenvalue",
        theory="law",
        tolerance=1e-9,
        tolerance_reason="an identity; top eigenvectors in float64",
        rivals=("1/B in place of x", "theorem 7 as our copy reads"),
        data="digits",
        quantity="top eigenvalue",
    ),
    Identity(
        id="beyond/own-directions-single-samples",
        entries=("D1",),
        source="ours, docs/claims/beyond.md, D1",
        statement=r"B = 1:\quad \lambda = \lambda_{\max}(F_{\{i\}}(\lambda)) \Rightarrow "
        r"\lambda = \lambda_1(H_i) + O(1/N)",
        passage=OURS,
        routes=single_samples,
        points=(
            Point(matrix="hessian", steps=0, samples=160, **SOME),
            Point(matrix="gauss-newton", steps=30, samples=120, **SOME),
        ),
        measured="eigenvalue of the sample",
        theory="law",
        tolerance=0.02,
        tolerance_reason="of order 1/N, here 0.8 %, by the part of the sample itself in the mean",
        rivals=("without own directions", "theorem 4", "second order"),
        data="digits",
        quantity="top eigenvalue of each sample",
    ),
    Identity(
        id="beyond/own-directions-uneven-coupling",
        entries=("D1",),
        source="ours, docs/claims/beyond.md, D1",
        statement=r"\mathbb{E}\,\lambda_1(H_B) \text{ with } T_i \text{ sample by sample, over all batches of a "
        r"population that cancels in pairs}",
        passage=OURS,
        routes=uneven_coupling,
        points=(Point(pairs=20, heavy=3, batch_size=2, rest=4.0, own=6.0),),
        measured="all batches",
        theory="law",
        tolerance=0.04,
        tolerance_reason="partners in one batch cancel, which statistics of single samples cannot know: one pair in 39",
        rivals=("one mean T", "theorem 4", "second order"),
        quantity="mean top eigenvalue of a batch",
    ),
    Identity(
        id="granziol2022/second-order-on-networks",
        entries=("B16", "B19"),
        source="ours, beside theorem 4 on networks",
        statement=r"B \to N:\quad b\,\big(\mathbb{E}\,\lambda_1(H_B) - \lambda_1\big) \to "
        r"\sum_{k > 1} \frac{\mathrm{Var}_i(v_k^\top H_i v_1)}{\lambda_1 - \lambda_k}",
        passage=OURS,
        routes=all_but_one,
        points=(
            Point(matrix="hessian", steps=0, samples=60, copies=100, **SOME),
            Point(matrix="gauss-newton", steps=30, samples=70, copies=100, **SOME),
        ),
        measured="mean over the batches",
        theory="second order",
        tolerance=0.05,
        tolerance_reason="the next order, of 1/N over the gap of the eigenvalues: 0.3 % in the middle of ten networks",
        rivals=("theorem 4", "1/B in place of 1/b"),
        data="digits",
        quantity="top eigenvalue less that of the data set",
    ),
    Identity(
        id="granziol2022/element-variance-of-networks",
        entries=("B38",),
        source=f"{PAPER}, section 8.2",
        statement=r"\mathbb{E}\,\varepsilon_{jk}^2 = \Big(\frac1B - \frac1N\Big) \mathrm{Var}_i\,(H_i)_{jk}\quad "
        r"\text{element by element}",
        routes=all_elements,
        points=(
            Point(matrix="hessian", steps=0, samples=8, batch_size=3, images="digits", directions=4),
            Point(matrix="gauss-newton", steps=30, samples=9, batch_size=4, images="digits", directions=5),
        ),
        measured="over all batches",
        theory="variance of each element",
        tolerance=1e-12,
        tolerance_reason="an identity in float64",
        rivals=("divisor N", "1/B in place of 1/b", "one variance for all elements"),
        data="digits",
        quantity="mean square of an element of the noise",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*BATCH_CLAIMS, *EXACT_CLAIMS)
