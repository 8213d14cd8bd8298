"""Granziol, Zohren and Roberts (2022): batches of networks on images, what holds of them exactly, and Algorithm 1."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate.matrices import populations
from simulate.monte_carlo import Point
from simulate.perceptrons import own_direction as measured, per_sample, sample_products
from theory import batch_hessian, own_direction
from verify.claims import Floats
from verify.claims.beyond import networks
from verify.claims.beyond.networks import (
    Noise,
    formulas,
    law_of,
    noise_of,
    perceptron,
)
from verify.claims.drawn_networks import sampled_images, stream_by_stream
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.outliers.outliers import THEOREM_7
from verify.model import (
    OURS,
    Arrays,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    NoTheory,
    Verdict,
    as_stated,
    misprint,
    out_of_scope,
)
from verify.model.domains import Between, OneOf

# --- batches of networks drawn at random ---------------------------------------------------------------------


@stream_by_stream
def network_batches(rng: Generator, point: Point, device: str) -> Arrays:
    """One partition of a network's images into batches for each size.

    Every prediction is for the mean over the batches drawn; the own-direction law reads which samples are in them.
    """
    samples = networks.small_perceptron(rng, point, device)
    vectors = measured.top_eigenvectors(samples, point.directions)
    pairs = measured.sample_pairs(samples, tolerance=1e-4)
    law = law_of(measured.statistics(samples, vectors, pairs, rng))
    noise = noise_of(samples, rng, vectors)
    found = {"measured": [], "own_directions": []}
    for size in point.batch_size:
        batches = measured.partitions(rng, samples.size, size, 1)
        tops = measured.batch_tops(samples, batches, tolerance=1e-3)
        found["measured"].append(tops.mean())
        found["own_directions"].append(own_direction.batch_eigenvalues(law, batches).mean())
    return {**found, **formulas(noise, samples.dim, point.batch_size, samples.size)}


ROUNDING = 1e-4
"""Numerical error of a score or input: at most 1.8e-5 on 48 networks against double precision, training included."""

IMAGES = {"images": "digits", "directions": 8}

BATCHES = Experiment(
    id="granziol2022/network-batches",
    replicate="one tanh network 16-8-10 with its images, in batches",
    simulate=network_batches,
    single="its matrices are in single precision",
    points=(
        Point(matrix="hessian", steps=0, samples=60, batch_size=(3, 6), **IMAGES),
        Point(matrix="gauss-newton", steps=40, samples=72, batch_size=(2, 4, 24), **IMAGES),
    ),
    budget=512,
    seconds=4.8,
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
    """Return the typical value of a formula, in units of lambda_1."""
    relative = FORMULAS.get(name, {})
    return lambda p: LAW.get(p.batch_size, 1.0) * relative.get(p.batch_size, 1.0)


OF_BATCHES = {
    "experiment": BATCHES,
    "along": "batch_size",
    "score": "measured",
    "inputs": {name: _typical(name) for name in ("own_directions", *FORMULAS)},
    "numerical": ROUNDING,
    "axis": "batch_size",
    "quantity": "top eigenvalue of a batch",
}

FAR_FROM_THE_LIMIT = out_of_scope("our results are in the limit of P,B →∞", "Section 8.2.1")
"""Passage for networks of 226 parameters: the paper's words on B = 128 are of networks of millions."""

FAR_OFF: dict[str, Any] = OF_BATCHES | {
    "passage": FAR_FROM_THE_LIMIT,
    "expected": Verdict.DISAGREES,
    "margin": 0.05,
    "margin_reason": "5 % of what the formula gives; it is off by a tenth at least, and by a factor of five at most",
    "pilot": "the margin 5 %: half of the least error of the formula on the first networks drawn",
}

NETWORKS_CLAIMS = (
    Claim(
        id="granziol2022/theorem-4-on-networks",
        **FAR_OFF,
        entries=("B19", "B40"),
        source=f"{PAPER}, theorem 4, eq. (9), on networks (section 8)",
        statement=r"\mathbb{E}\,\lambda_1(H_B) = \lambda_1 + \frac{P \sigma^2}{b \lambda_1}\ (\lambda_1 > s),"
        r"\quad 2 s \text{ else}",
        says="Theorem 4, with one variance for all elements, gives the mean top eigenvalue of small networks' "
        "batches of a few images, outside its limit.",
        finding="On networks Theorem 4 is too low: several times at batches of 2 to 24, by at most 15 % at 128 before "
        "training, and by 10 to 63 % after. Their noise sits along the directions of large curvature, where it is many "
        "times the average.",
        predict=lambda p: p.theorem_4,
        rivals={"own directions": lambda p: p.own_directions, "theorem 7": lambda p: p.theorem_7},
    ),
    Claim(
        id="granziol2022/theorem-7-on-networks",
        **FAR_OFF,
        entries=("B26", "B40"),
        source=f"{PAPER}, theorem 7, eq. (16), repaired, on networks (section 8)",
        statement=r"\mathbb{E}\,\lambda_1(G_B) = \theta + \frac{\sigma^2 \theta}{\theta - (P/b) \sigma^2},\quad "
        r"\theta = \lambda_1 - \sigma^2",
        says="Theorem 7, threshold and shift repaired, gives the mean top eigenvalue of small networks' batches of a "
        "few images, outside its limit.",
        finding="Outside the limit of large P and B, with batches of 2 to 24, Theorem 7 is high for the smallest "
        "batches and low for larger ones, repaired or not.",
        predict=lambda p: p.theorem_7,
        printed=lambda p: p.theorem_7_read,
        reads=THEOREM_7,
        rivals={"theorem 4": lambda p: p.theorem_4, "own directions": lambda p: p.own_directions},
    ),
    Claim(
        id="beyond/own-directions",
        **OF_BATCHES,
        entries=("D1", "granziol2022/B19"),
        source="ours, docs/claims/beyond.md, D1",
        statement=r"\mathbb{E}\,\lambda_1(H_B) = \mathbb{E}_S\,\max\{\lambda : \lambda = "
        r"\lambda_{\max}(F_S(\lambda))\}",
        says="From statistics of single samples, the own-direction law gives the mean top eigenvalue of small "
        "networks' batches of real images.",
        passage=OURS,
        predict=lambda p: p.own_directions,
        margin=0.15,
        margin_reason="the largest error on four networks that the law had never seen was 12 %",
        pilot="the margin 0.15: the largest error on four networks drawn before was 12 %",
        rivals={
            "theorem 4": lambda p: p.theorem_4,
            "theorem 7 as our copy reads": lambda p: p.theorem_7_read,
        },
    ),
)


def uneven_coupling(rng: Generator, point: Point) -> Arrays:
    """Samples in pairs that cancel in the mean, a few of them coupled to V by much more than one direction."""
    import torch

    matrices = _pairs(rng, point)
    samples = sample_products.DenseSamples(torch.from_numpy(matrices))
    vectors = measured.top_eigenvectors(samples, 1)
    found = measured.statistics(samples, vectors, measured.sample_pairs(samples), rng, probes=len(matrices))
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


def _pairs(rng: Generator, point: Point) -> Floats:
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


def all_elements(rng: Generator, point: Point) -> Arrays:
    """Mean square of every element of the noise over all batches."""
    curvature = per_sample.hessians if point.matrix == "hessian" else per_sample.gauss_newtons
    matrices = curvature(*perceptron(rng, point)).numpy()
    drawn = populations.every_batch(len(matrices), point.batch_size)
    noise = matrices[drawn].mean(axis=1) - matrices.mean(axis=0)
    variance, size = matrices.var(axis=0), {"batch_size": point.batch_size, "dataset_size": len(matrices)}
    predicted = batch_hessian.finite_population_fluctuation(variance=variance, **size)
    return {
        "over all batches": (noise**2).mean(axis=0),
        "variance of each element": predicted,
        "divisor N": predicted * (1 - 1 / len(matrices)),
        "1/B in place of 1/b": matrices.var(axis=0, ddof=1) / point.batch_size,
        "one variance for all elements": np.full_like(predicted, predicted.mean()),
    }


# --- bounds of every batch from its samples alone ------------------------------------------------------------


def law_of_samples(matrices: Floats) -> own_direction.OwnDirections:
    """Own-direction law from eigenvectors of dense matrices, with the top one of their mean as the only direction V."""
    v = np.linalg.eigh(matrices.mean(axis=0))[1][:, -1:]
    values, vectors = np.linalg.eigh(matrices)
    return own_direction.own_directions(
        v.T @ matrices @ v,
        v.T @ matrices @ matrices @ v,
        values[:, -1],
        (v.T @ vectors[:, :, -1:])[..., 0],
        background=0.0,
        spread=0.0,
    )


def outside_bounds(rng: Generator, point: Point, *, lower: float = 1.0, upper: float = 1.0) -> float:
    """Distance of top eigenvalues of batches outside the bounds from single samples."""
    matrices = populations.symmetric_matrices(rng, point.samples, point.dim)
    if point.semidefinite:
        matrices = matrices @ matrices
    elif np.linalg.eigvalsh(matrices.mean(axis=0))[-1] <= 0:
        # directions are those of positive curvature of the mean, and one in forty 3 x 3 ones has none
        matrices = -matrices
    drawn = populations.every_batch(point.samples, min(point.batch_size, point.samples))
    tops = np.linalg.eigvalsh(matrices[drawn].mean(axis=1))[:, -1]
    found = own_direction.batch_bounds(law_of_samples(matrices), drawn, semidefinite=point.semidefinite)
    outside = (lower * found.lower - tops).max(), (tops - upper * found.upper).max()
    return max(0.0, *map(float, outside)) / float(np.abs(matrices).max())


EXACT_CLAIMS = (
    Identity(
        id="beyond/own-directions-uneven-coupling",
        entries=("D1",),
        source="ours, docs/claims/beyond.md, D1",
        statement=r"\mathbb{E}\,\lambda_1(H_B) \text{ with } T_i \text{ sample by sample, over all batches of a "
        r"population that cancels in pairs}",
        says="Where a few samples couple to the top direction far more than others, the own-direction law holds with "
        "each one's coupling kept.",
        passage=OURS,
        routes=uneven_coupling,
        points=(Point(pairs=20, heavy=3, batch_size=2, rest=4.0, own=6.0),),
        tolerance=0.04,
        tolerance_reason="partners in one batch cancel, which statistics of single samples cannot know: one pair in 39",
        quantity="mean top eigenvalue of a batch",
    ),
    Identity(
        id="granziol2022/element-variance-of-networks",
        entries=("B38",),
        source=f"{PAPER}, section 8.2",
        statement=r"\mathbb{E}\,\varepsilon_{jk}^2 = \Big(\frac1B - \frac1N\Big) \mathrm{Var}_i\,(H_i)_{jk}\quad "
        r"\text{element by element}",
        says="On networks with real images, each noise element has its own variance over the samples, divided by the "
        "effective batch size.",
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
    ExactProperty(
        id="beyond/bounds-of-every-batch",
        entries=("D1",),
        source="ours: a compression, and the triangle inequality",
        statement=r"\lambda_{\max}\Big(\frac1B \sum_{i \in S} V^\top H_i V\Big) \le \lambda_1(H_S) \le "
        r"\frac1B \sum_{i \in S} \lambda_1(H_i),\quad \lambda_1(H_S) \ge \frac1B \max_{i \in S} \lambda_1(H_i)\ "
        r"(H_i \succeq 0)",
        says="The top eigenvalue of every batch lies between that of its samples restricted to a few directions and "
        "the mean of the samples' own.",
        passage=OURS,
        domain={
            "samples": Between(2, 7),
            "dim": Between(2, 6),
            "batch_size": Between(1, 5),
            "semidefinite": OneOf(True, False),
        },
        violation=outside_bounds,
        examples=(
            Point(samples=6, dim=5, batch_size=3, semidefinite=False),
            Point(samples=7, dim=4, batch_size=1, semidefinite=True),
        ),
        tolerance=1e-10,
        tolerance_reason="rounding of symmetric eigenvalue problems",
        rivals={
            "upper one 5 % lower": partial(outside_bounds, upper=0.95),
            "lower one 5 % higher": partial(outside_bounds, lower=1.05),
        },
        seconds=0.01,
    ),
)


@stream_by_stream
def typical_batches(rng: Generator, point: Point, device: str) -> Arrays:
    """Top eigenvalues of ten batches of a network, and how many of their deviations their mean is off a theorem.

    Networks are trained, and matrices made, in single precision, at six tenths of the cost; see `ROUNDING`.
    """
    import torch

    samples = networks.small_perceptron(rng, point, device)
    batches = measured.partitions(rng, samples.size, point.batch_size, 1)[: point.batches]
    parts = samples.on(batches)
    inner = parts.inner()
    matrices = parts.matrices(inner, ordered=False)
    whole = matrices.mean(0)
    *tops, top = measured.top_pairs(torch.cat([matrices, whole[None]]), tolerance=1e-3).values.tolist()
    noise = Noise(top, networks.mean_squares(inner, whole), 0.0, 0.0)
    said = formulas(noise, samples.dim, (point.batch_size, 1), samples.size)
    (fourth, alone), seventh = said["theorem_4"].tolist(), float(said["theorem_7_read"][0])
    mean, deviation = float(np.mean(tops)), float(np.std(tops, ddof=1))
    return {
        "measured": mean,
        "theorem_4": fourth,
        "theorem_4_for_one_sample": alone,
        "off_4": (mean - fourth) / deviation,
        "off_7": (mean - seventh) / deviation,
    }


SETTING = {"images": "digits", "samples": 1280, "batch_size": 128, "batches": 10}

START = Experiment(
    id="granziol2022/typical-batches",
    replicate="one tanh network 16-8-10 at the start, with 1280 images and ten batches of 128",
    simulate=typical_batches,
    single="its matrices are in single precision",
    points=tuple(Point(matrix=matrix, steps=0, **SETTING) for matrix in ("hessian", "gauss-newton")),
    budget=1024,
    seconds=3.1,
    data="digits",
)

TRAINED = replace(
    START,
    id="granziol2022/typical-batches-trained",
    replicate="one tanh network 16-8-10 after 300 steps, with 1280 images and ten batches of 128",
    points=(Point(matrix="hessian", steps=300, **SETTING),),
    budget=512,
    seconds=4.2,
    on_host="training, in numpy",
)


WITHIN_A_THIRD = {
    "entries": ("B19", "B40"),
    "source": f"{PAPER}, theorem 4, eq. (9), at B = 128 (section 8.2.1)",
    "statement": r"\mathbb{E}\,\lambda_1(H_B) = \lambda_1 + \frac{P \sigma^2}{b \lambda_1} \text{ to } 30\,\%,\quad "
    r"B = 128",
    "passage": FAR_FROM_THE_LIMIT,
    "score": "measured",
    "inputs": {"theorem_4": 0.6, "theorem_4_for_one_sample": 1.9},
    "predict": lambda p: p.theorem_4,
    "margin": 0.3,
    "numerical": ROUNDING,
    "margin_reason": "the accuracy that section 8.2.1 gives for B = 128",
    "rivals": {"a batch of one sample": lambda p: p.theorem_4_for_one_sample},
    "quantity": "mean top eigenvalue of ten batches",
}

WITHIN_A_DEVIATION = {
    "entries": ("B40",),
    "statement": r"\Big|\mathbb{E}\,\frac{\bar\lambda - \lambda_1'}{s}\Big| \le 1,\quad \bar\lambda, s: "
    r"\text{mean and standard deviation of } \lambda_1(H_B) \text{ over ten batches},\ B = 128",
    "passage": FAR_FROM_THE_LIMIT,
    "predict": lambda _: 0.0,
    "margin": 1.0,
    "numerical": ROUNDING,
    "relative": False,
    "margin_reason": "the one standard deviation of section 8.2.1, of the batches, as in figure 9",
    "pilot": "that a batch of one sample is taken as three deviations off: on networks drawn first the theorem at "
    "b = 1 was off by 4.5 and 17 at the start and by 6.2 after training",
    "rivals": {"a batch of one sample": lambda _: 3.0},
    "quantity": "mean top eigenvalue of ten batches less the theorem, in their standard deviations",
}

TYPICAL_BATCHES_CLAIMS = (
    Claim(
        **WITHIN_A_THIRD,
        id="granziol2022/theorem-4-at-128",
        says="At the start of training, on small networks, Theorem 4 gives the mean top eigenvalue of batches of 128 "
        "to the accuracy stated.",
        experiment=START,
    ),
    Claim(
        **WITHIN_A_THIRD,
        id="granziol2022/theorem-4-trained-at-128",
        says="After some hundred steps too, on networks of 226 parameters, Theorem 4 gives the mean top eigenvalue of "
        "batches of 128 to the accuracy stated.",
        experiment=TRAINED,
        expected=Verdict.DISAGREES,
        finding="On networks of 226 parameters after 300 steps, far from its limit, the theorem is low by more than "
        "the 30 % that the paper allows: the noise sits along the directions of large curvature.",
    ),
    Claim(
        **WITHIN_A_DEVIATION,
        id="granziol2022/theorem-7-within-a-deviation",
        source=f"{PAPER}, theorem 7, eq. (16), at B = 128 (section 8.2.1, figure 9)",
        says="At the start of training, on small networks, the mean top eigenvalue of batches of 128 lies within one "
        "of their deviations of Theorem 7.",
        experiment=START,
        score="off_7",
    ),
    Claim(
        **WITHIN_A_DEVIATION,
        id="granziol2022/theorem-4-trained-within-a-deviation",
        source=f"{PAPER}, theorem 4, eq. (9), at B = 128 (section 8.2.1, figure 9)",
        says="After some hundred steps, on networks of 226 parameters, the mean top eigenvalue of batches of 128 lies "
        "within one of their deviations of Theorem 4.",
        experiment=TRAINED,
        score="off_4",
        expected=Verdict.DISAGREES,
        finding="On networks of 226 parameters after 300 steps, far from the theorem's limit, the mean over ten "
        "batches of 128 is more than one of their deviations above it.",
    ),
)


@stream_by_stream
def algorithm_1(rng: Generator, point: Point, device: str) -> Arrays:
    """The estimator of the noise of per-sample Hessians, and its target from all of their elements."""
    images, classes = sampled_images(rng, point, 4)
    widths = (16, networks.HIDDEN, classes)
    theta = per_sample.initial_parameters(rng, widths).to(device)
    samples = sample_products.PerceptronSamples(widths, theta, images.images, images.labels)
    probes = rng.standard_normal((point.probes, len(theta)))
    pieces = sample_products.algorithm_1_probes(
        samples, probes / np.linalg.norm(probes, axis=1, keepdims=True)
    )
    square, form = pieces.mean_square, pieces.quadratic_form_squared
    return {
        "noise_of_all_elements": networks.total_noise(samples),
        "corrected": float((square - pieces.square_of_mean).mean()),
        "as_read": float((point.samples * square - form).mean()),
        "with_form": float((square - form).mean()),
        "squared_mean_product": float(pieces.square_of_mean.mean()),
    }


ALGORITHM_1 = Experiment(
    id="granziol2022/algorithm-1",
    replicate="one tanh network 16-8-10 at initialisation with 50 images and 160 probes",
    simulate=algorithm_1,
    points=(Point(images="digits", samples=50, probes=160),),
    budget=1024,
    seconds=4.3,
    data="digits",
)

OF_ALGORITHM_1 = {
    "no_theory": NoTheory.MEASURED,
    "entries": ("B37",),
    "source": f"{PAPER}, algorithm 1",
    "experiment": ALGORITHM_1,
    "inputs": {"noise_of_all_elements": 0.92, "squared_mean_product": 0.08},
    "predict": lambda p: p.noise_of_all_elements,
    "margin": 0.02,
    "quantity": "noise of the per-sample Hessian, P sigma^2",
}

CLAIMS = (
    *NETWORKS_CLAIMS,
    *EXACT_CLAIMS,
    *TYPICAL_BATCHES_CLAIMS,
    Claim(
        id="granziol2022/algorithm-1",
        **OF_ALGORITHM_1,
        statement=r"\mathbb{E}_v\Big[\frac1N \sum_i \lVert H_i v\rVert^2 - \lVert \bar H v\rVert^2\Big] = "
        r"\frac1P \sum_{jk} \mathrm{Var}_i\,(H_i)_{jk} = P \sigma^2",
        says="With the sum over the number of samples and the squared norm of the mean product taken off, Algorithm "
        "1 estimates the noise without bias.",
        passage=misprint("σ2 ← σ2 + vTH2 i v", "Algorithm 1, line 6"),
        score="corrected",
        printed="as_read",
        reads=r"\sigma^2 \leftarrow \sigma^2 + v^\top H_i^2 v,\quad \sigma^2 \leftarrow \sigma^2 - \Big[v^\top "
        r"\Big(\frac1N \sum_{j=1}^N H_j\Big) v\Big]^2",
        finding="As our copy reads the sum over the samples lacks the factor 1/N that the second term has.",
        margin_reason="an unbiased estimator; 2 % resolves the subtracted term, four times as large",
        rivals={
            "variance per element": lambda p: p.noise_of_all_elements / 226,
            "mean not subtracted": lambda p: p.noise_of_all_elements + p.squared_mean_product,
        },
    ),
    Claim(
        id="granziol2022/algorithm-1-second-term",
        **OF_ALGORITHM_1,
        statement=r"\mathbb{E}_v\Big[\frac1N \sum_i \lVert H_i v\rVert^2 - (v^\top \bar H v)^2\Big] = P \sigma^2",
        says="With the square of the mean quadratic form taken off, Algorithm 1 estimates the noise of a network's "
        "per-sample Hessians.",
        passage=as_stated("[vT (1/N ∑N j=1Hj)v] 2", "Algorithm 1, line 9"),
        expected=Verdict.DISAGREES,
        finding="The second term, here with the factor 1/N of line 6 restored, is the square of the quadratic form; "
        "the variance of the elements, which Section 8.2 infers, needs the squared norm of the mean product, else "
        "most of the mean Hessian stays in. Nothing in the paper has it otherwise.",
        score="with_form",
        margin_reason="as for the corrected estimator",
        rivals={"variance per element": lambda p: p.noise_of_all_elements / 226},
    ),
)
